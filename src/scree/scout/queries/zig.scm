(function_declaration name: (_) @name) @definition.function
(variable_declaration (identifier) @name . (struct_declaration)) @definition.struct
(variable_declaration (identifier) @name . (enum_declaration)) @definition.enum
(variable_declaration (identifier) @name . (union_declaration)) @definition.union
(variable_declaration (identifier) @name . (opaque_declaration)) @definition.struct
(test_declaration (string (string_content) @name)) @definition.test

(comment) @lead

(call_expression function: [(identifier) (field_expression)] @call)
