(class_definition name: (_) @name) @definition.class
(trait_definition name: (_) @name) @definition.trait
(object_definition name: (_) @name) @definition.object
(enum_definition name: (_) @name) @definition.enum
(function_definition name: (_) @name) @definition.function
(function_declaration name: (_) @name) @definition.function
(val_definition pattern: (identifier) @name value: (lambda_expression)) @definition.function
(given_definition name: (_) @name) @definition.object
(type_definition name: (_) @name) @definition.type

[(comment) (block_comment)] @lead

(call_expression function: [(identifier) (field_expression)] @call)
