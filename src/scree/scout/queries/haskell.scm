; A signature and the equations below it are one function.
(signature name: (variable) @name (#set! merge "true")) @definition.function
(signature name: (prefix_id (operator) @name) (#set! merge "true")) @definition.function
(function name: (variable) @name (#set! merge "true")) @definition.function
(function name: (prefix_id (operator) @name) (#set! merge "true")) @definition.function
(function (infix operator: (operator) @name) (#set! merge "true")) @definition.function
(function (infix operator: (infix_id (variable) @name)) (#set! merge "true")) @definition.function
(bind name: (variable) @name (#set! merge "true")) @definition.function
(data_type name: (_) @name) @definition.type
(newtype name: (_) @name) @definition.type
(type_synonym name: (_) @name) @definition.type
(class name: (_) @name) @definition.class
(instance name: (_) @name) @definition.impl

[(comment) (haddock) (pragma)] @lead

(apply function: (variable) @call)
