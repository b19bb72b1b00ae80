(function_definition name: (_) @name) @definition.function

(comment) @lead

(command name: (command_name . (word) @call .))
