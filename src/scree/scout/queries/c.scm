(function_definition declarator: (function_declarator declarator: (identifier) @name)) @definition.function
(function_definition
  declarator: (pointer_declarator declarator: (function_declarator declarator: (identifier) @name))) @definition.function
(function_definition
  declarator: (pointer_declarator
    declarator: (pointer_declarator declarator: (function_declarator declarator: (identifier) @name)))) @definition.function
; int (f)(int), and functions that return pointers to functions
(function_definition
  declarator: (function_declarator declarator: (parenthesized_declarator (identifier) @name))) @definition.function
(function_definition
  declarator: (function_declarator
    declarator: (parenthesized_declarator
      (pointer_declarator declarator: (function_declarator declarator: (identifier) @name))))) @definition.function
(struct_specifier name: (_) @name body: (_)) @definition.struct
(union_specifier name: (_) @name body: (_)) @definition.union
(enum_specifier name: (_) @name body: (_)) @definition.enum
(type_definition type: (struct_specifier !name body: (_)) declarator: (type_identifier) @name) @definition.struct
(type_definition type: (union_specifier !name body: (_)) declarator: (type_identifier) @name) @definition.union
(type_definition type: (enum_specifier !name body: (_)) declarator: (type_identifier) @name) @definition.enum
(preproc_function_def name: (_) @name) @definition.macro

(type_definition type: (_ body: (_)) @inner) @wider

(comment) @lead

(call_expression function: [(identifier) (field_expression)] @call)
(preproc_include path: (_) @import.module (#set! name "*"))
