(class_declaration name: (_) @name) @definition.class
(struct_declaration name: (_) @name) @definition.struct
(interface_declaration name: (_) @name) @definition.interface
(enum_declaration name: (_) @name) @definition.enum
(record_declaration name: (_) @name) @definition.record
(delegate_declaration name: (_) @name) @definition.type
(method_declaration name: (_) @name) @definition.method
(constructor_declaration name: (_) @name) @definition.method
(destructor_declaration "~" @name name: (_) @name) @definition.method
(operator_declaration "operator" @name operator: _ @name) @definition.method
(property_declaration name: (_) @name) @definition.property
(indexer_declaration (#set! name "this")) @definition.property
(local_function_statement name: (_) @name) @definition.function

(namespace_declaration name: (_) @path) @scope
(file_scoped_namespace_declaration name: (_) @path) @scope.rest

(comment) @lead

(invocation_expression function: [(identifier) (member_access_expression)] @call)
(object_creation_expression type: [(identifier) (qualified_name)] @call)
(using_directive (_) @import.module (#set! name "*"))
