(call target: (identifier) @_keyword (arguments . (alias) @name)
  (#eq? @_keyword "defmodule")) @definition.module
(call target: (identifier) @_keyword (arguments . (alias) @name)
  (#eq? @_keyword "defprotocol")) @definition.protocol
(call target: (identifier) @_keyword (arguments . (alias) @name)
  (#eq? @_keyword "defimpl")) @definition.impl

; def name, def name(…), def name(…) when …
(call
  target: (identifier) @_keyword
  (arguments
    .
    [
      (identifier) @name
      (call target: (identifier) @name)
      (binary_operator left: [(identifier) @name (call target: (identifier) @name)] operator: "when")
    ])
  (#any-of? @_keyword "def" "defp" "defdelegate" "defguard" "defguardp")
  (#set! merge "true")) @definition.function
(call
  target: (identifier) @_keyword
  (arguments
    .
    [
      (identifier) @name
      (call target: (identifier) @name)
      (binary_operator left: [(identifier) @name (call target: (identifier) @name)] operator: "when")
    ])
  (#any-of? @_keyword "defmacro" "defmacrop")
  (#set! merge "true")) @definition.macro

(unary_operator operator: "@" operand: (call target: (identifier) @_attribute
  (#any-of? @_attribute "doc" "spec" "impl" "deprecated" "since"))) @lead
(comment) @lead

(call target: [(identifier) (dot left: (alias) right: (identifier))] @call
  (#not-match? @call "^(def[a-z]*|alias|import|require|use|if|unless|case|cond|with|for|quote|unquote|raise|(module|type)?doc|spec)$"))

(call target: (identifier) @_alias (arguments . (alias) @import.module .)
  (#eq? @_alias "alias"))
