(function_item name: (_) @name) @definition.function
(function_signature_item name: (_) @name) @definition.function
(struct_item name: (_) @name) @definition.struct
(enum_item name: (_) @name) @definition.enum
(union_item name: (_) @name) @definition.union
(trait_item name: (_) @name) @definition.trait
(type_item name: (_) @name) @definition.type
(mod_item name: (_) @name body: (_)) @definition.module
(macro_definition name: (_) @name) @definition.macro
(impl_item type: [(type_identifier) (scoped_type_identifier) (generic_type) (primitive_type)] @path) @definition.impl
(impl_item type: [(reference_type) (tuple_type) (array_type) (pointer_type) (dynamic_type)] @name) @definition.impl

[(line_comment) (block_comment) (attribute_item)] @lead

(call_expression function: [(identifier) (scoped_identifier) (field_expression)] @call)
(call_expression function: (generic_function function: (_) @call))
(macro_invocation macro: (_) @call)

(use_declaration argument: (scoped_identifier path: (_) @import.module name: (_) @import.member))
(use_declaration argument: (use_as_clause
  path: (scoped_identifier path: (_) @import.module name: (_) @import.member) alias: (_) @import.name))
(use_declaration argument: (scoped_use_list
  path: (_) @import.module list: (use_list (identifier) @import.member)))
