; Functions and classes, and whatever a function is assigned to.
(function_declaration name: (_) @name) @definition.function
(generator_function_declaration name: (_) @name) @definition.function
(class_declaration name: (_) @name) @definition.class
(method_definition name: (_) @name) @definition.method
(field_definition property: (_) @name value: [(arrow_function) (function_expression) (generator_function)]) @definition.method
(pair key: (_) @name value: [(arrow_function) (function_expression) (generator_function)]) @definition.method
(variable_declarator
  name: (identifier) @name
  value: [(arrow_function) (function_expression) (generator_function)]) @definition.function
(variable_declarator name: (identifier) @name value: (class)) @definition.class
(assignment_expression
  left: [(identifier) (member_expression)] @path
  right: [(arrow_function) (function_expression) (generator_function)]) @definition.function
(assignment_expression left: [(identifier) (member_expression)] @path right: (class)) @definition.class
(export_statement value: [(arrow_function) (function_expression) (generator_function)] (#set! name "default")) @definition.function
(export_statement value: (class) (#set! name "default")) @definition.class

(variable_declarator name: (identifier) @name value: (object)) @scope
(assignment_expression left: [(identifier) (member_expression)] @path right: (object)) @scope
(pair key: (property_identifier) @name value: (object)) @scope

(expression_statement . (assignment_expression) @inner .) @wider
(lexical_declaration . (variable_declarator) @inner .) @wider
(variable_declaration . (variable_declarator) @inner .) @wider
(export_statement declaration: (_) @inner) @wider

[(comment) (decorator)] @lead

(call_expression function: [(identifier) (member_expression)] @call)
(new_expression constructor: [(identifier) (member_expression)] @call)
(jsx_opening_element name: [(identifier) (member_expression)] @call)
(jsx_self_closing_element name: [(identifier) (member_expression)] @call)

(import_statement
  (import_clause (named_imports (import_specifier name: (_) @import.member !alias)))
  source: (string) @import.module)
(import_statement
  (import_clause (named_imports (import_specifier name: (_) @import.member alias: (_) @import.name)))
  source: (string) @import.module)
(import_statement (import_clause (namespace_import (identifier) @import.name)) source: (string) @import.module)
(import_statement (import_clause (identifier) @import.name) source: (string) @import.module
  (#set! member "default"))
(export_statement
  (export_clause (export_specifier name: (_) @import.member !alias)) source: (string) @import.module)
(export_statement
  (export_clause (export_specifier name: (_) @import.member alias: (_) @import.name)) source: (string) @import.module)
(export_statement "*" source: (string) @import.module (#set! name "*"))
(variable_declarator
  name: (identifier) @import.name
  value: (call_expression
    function: (identifier) @_require arguments: (arguments . (string) @import.module .))
  (#eq? @_require "require"))
(variable_declarator
  name: (object_pattern (shorthand_property_identifier_pattern) @import.member)
  value: (call_expression
    function: (identifier) @_require arguments: (arguments . (string) @import.module .))
  (#eq? @_require "require"))
