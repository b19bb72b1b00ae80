; The first pattern that fits tells the kind.
(class_declaration (modifiers (class_modifier "enum")) "class" name: (_) @name) @definition.enum
(class_declaration "interface" name: (_) @name) @definition.interface
(class_declaration "class" name: (_) @name) @definition.class
(object_declaration name: (_) @name) @definition.object
(companion_object name: (_) @name) @definition.object
(companion_object !name (#set! name "Companion")) @definition.object
(function_declaration (user_type) @qualifier . name: (_) @name) @definition.function
(function_declaration name: (_) @name) @definition.function
(secondary_constructor (#set! name "constructor")) @definition.method
(type_alias type: (_) @name) @definition.type

[(line_comment) (block_comment)] @lead

(call_expression . [(identifier) (navigation_expression)] @call)
(import (qualified_identifier) @import.module)
