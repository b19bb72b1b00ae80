(class_declaration name: (_) @name) @definition.class
(interface_declaration name: (_) @name) @definition.interface
(trait_declaration name: (_) @name) @definition.trait
(enum_declaration name: (_) @name) @definition.enum
(function_definition name: (_) @name) @definition.function
(method_declaration name: (_) @name) @definition.method

(namespace_definition name: (_) @path body: (_)) @scope
(namespace_definition name: (_) @path !body) @scope.rest

(comment) @lead

(function_call_expression function: [(name) (qualified_name)] @call)
(member_call_expression object: (variable_name) @call.object name: (name) @call)
(scoped_call_expression scope: [(name) (qualified_name) (relative_scope)] @call.object name: (name) @call)
(object_creation_expression [(name) (qualified_name)] @call)

(namespace_use_clause (qualified_name) @import.module alias: (name)? @import.name)
