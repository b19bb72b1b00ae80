(function_declaration name: (_) @path) @definition.function
(assignment_statement
  (variable_list . name: (_) @path) (expression_list . value: (function_definition))) @definition.function
(field name: (identifier) @name value: (function_definition)) @definition.function

(assignment_statement
  (variable_list . name: (_) @path) (expression_list . value: (table_constructor))) @scope
(field name: (identifier) @name value: (table_constructor)) @scope

(variable_declaration (assignment_statement) @inner) @wider

(comment) @lead

(function_call name: [(identifier) (dot_index_expression) (method_index_expression)] @call)
