(class_declaration declaration_kind: ["class" "actor"] name: (_) @path) @definition.class
(class_declaration declaration_kind: "struct" name: (_) @path) @definition.struct
(class_declaration declaration_kind: "enum" name: (_) @path) @definition.enum
(class_declaration declaration_kind: "extension" name: (_) @path) @definition.extension
(protocol_declaration name: (_) @name) @definition.protocol
(function_declaration name: [(simple_identifier) "==" "!=" "<" ">" "<=" ">=" "+" "-" "*" "/" (custom_operator)] @name) @definition.function
(protocol_function_declaration name: (simple_identifier) @name) @definition.method
(init_declaration "init" @name) @definition.method
(deinit_declaration "deinit" @name) @definition.method
(subscript_declaration "subscript" @name) @definition.method
(property_declaration
  name: (pattern bound_identifier: (_) @name) computed_value: (computed_property)) @definition.property
(typealias_declaration name: (type_identifier) @name) @definition.type

[(comment) (multiline_comment)] @lead

(call_expression . [(simple_identifier) (navigation_expression)] @call)
