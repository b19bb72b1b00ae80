; TEST(Suite, Name) {…} of the test libraries
(function_definition
  declarator: (function_declarator
    declarator: (identifier) @_macro
    parameters: (parameter_list
      .
      (parameter_declaration type: (type_identifier) @qualifier)
      .
      (parameter_declaration type: (type_identifier) @name)
      .))
  (#match? @_macro "^(TYPED_)?TEST(_[FP])?$")) @definition.test
; class EXPORT_MACRO Name {…}: the grammar takes it for a function
(function_definition type: (class_specifier !body) declarator: (identifier) @name) @definition.class
(function_definition type: (struct_specifier !body) declarator: (identifier) @name) @definition.struct
(function_definition
  declarator: (function_declarator
    declarator: [(identifier) (field_identifier) (operator_name) (destructor_name)] @name)
  (#not-match? @name "^(TYPED_)?TEST(_[FP])?$")) @definition.function
(function_definition
  declarator: (_ (function_declarator
    declarator: [(identifier) (field_identifier) (operator_name) (destructor_name)] @name))) @definition.function
(function_definition
  declarator: (_ (_ (function_declarator
    declarator: [(identifier) (field_identifier) (operator_name) (destructor_name)] @name)))) @definition.function
(function_definition
  declarator: (function_declarator declarator: (qualified_identifier) @path)) @definition.method
(function_definition
  declarator: (_ (function_declarator declarator: (qualified_identifier) @path))) @definition.method
(function_definition
  declarator: (_ (_ (function_declarator declarator: (qualified_identifier) @path)))) @definition.method
(function_definition
  declarator: (function_declarator declarator: (template_function name: (_) @name))) @definition.function
(function_definition declarator: (operator_cast "operator" @name type: (_) @name)) @definition.function
(function_definition
  declarator: (qualified_identifier
    scope: (_) @qualifier name: (operator_cast "operator" @name type: (_) @name))) @definition.method
(class_specifier name: [(type_identifier) (qualified_identifier) (template_type)] @path body: (_)) @definition.class
(struct_specifier name: [(type_identifier) (qualified_identifier) (template_type)] @path body: (_)) @definition.struct
(union_specifier name: (_) @path body: (_)) @definition.union
(enum_specifier name: (_) @path body: (_)) @definition.enum
(concept_definition name: (_) @name) @definition.concept
(alias_declaration name: (_) @name) @definition.type
(type_definition type: (struct_specifier !name body: (_)) declarator: (type_identifier) @name) @definition.struct
(type_definition type: (union_specifier !name body: (_)) declarator: (type_identifier) @name) @definition.union
(type_definition type: (enum_specifier !name body: (_)) declarator: (type_identifier) @name) @definition.enum
(preproc_function_def name: (_) @name) @definition.macro

(namespace_definition name: (_) @path) @scope

(template_declaration [
  (function_definition) (class_specifier) (struct_specifier) (union_specifier) (alias_declaration)
  (concept_definition) (template_declaration)
] @inner) @wider
(type_definition type: (_ body: (_)) @inner) @wider

(comment) @lead

(call_expression function: [(identifier) (field_expression) (qualified_identifier)] @call)
(preproc_include path: (_) @import.module (#set! name "*"))
