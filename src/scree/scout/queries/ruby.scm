(class name: (_) @path) @definition.class
(module name: (_) @path) @definition.module
(class body: (_ (method name: (_) @name) @definition.method))
(module body: (_ (method name: (_) @name) @definition.method))
(singleton_class body: (_ (method name: (_) @name) @definition.method))
(method name: (_) @name) @definition.function
(singleton_method name: (_) @name) @definition.method
(assignment left: (constant) @name right: (call
  receiver: (constant) method: (identifier) @_new (#any-of? @_new "new" "define"))) @definition.class

(comment) @lead

(call !receiver method: (_) @call)
(call receiver: [(identifier) (constant) (self) (scope_resolution)] @call.object method: (identifier) @call)
