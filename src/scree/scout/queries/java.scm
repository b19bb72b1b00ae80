(class_declaration name: (_) @name) @definition.class
(interface_declaration name: (_) @name) @definition.interface
(annotation_type_declaration name: (_) @name) @definition.interface
(enum_declaration name: (_) @name) @definition.enum
(record_declaration name: (_) @name) @definition.record
(method_declaration name: (_) @name) @definition.method
(constructor_declaration name: (_) @name) @definition.method
(compact_constructor_declaration name: (_) @name) @definition.method

(enum_constant name: (_) @name body: (_)) @scope

[(line_comment) (block_comment)] @lead

(method_invocation !object name: (_) @call)
(method_invocation object: [(identifier) (this) (field_access)] @call.object name: (_) @call)
(object_creation_expression type: [(type_identifier) (scoped_type_identifier) (generic_type)] @call)

(import_declaration (scoped_identifier scope: (_) @import.module name: (_) @import.member))
