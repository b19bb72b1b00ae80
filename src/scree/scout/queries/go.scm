(function_declaration name: (_) @name) @definition.function
(method_declaration
  receiver: (parameter_list
    (parameter_declaration
      type: [
        (type_identifier) @qualifier
        (pointer_type (type_identifier) @qualifier)
        (generic_type type: (_) @qualifier)
        (pointer_type (generic_type type: (_) @qualifier))
      ]))
  name: (_) @name) @definition.method
(type_spec name: (_) @name type: (struct_type)) @definition.struct
(type_spec name: (_) @name type: (interface_type)) @definition.interface
(type_spec name: (_) @name) @definition.type
(type_alias name: (_) @name) @definition.type

(type_declaration . [(type_spec) (type_alias)] @inner .) @wider

(comment) @lead

(call_expression function: [(identifier) (selector_expression)] @call)

(import_spec !name path: (_) @import.module)
(import_spec name: (_) @import.name path: (_) @import.module)
