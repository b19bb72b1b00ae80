"""Edges: containment, calls a reader could confirm, and those that say they are approximate."""

from __future__ import annotations

import pytest

from scree.scout.graph import edges
from scree.scout.languages import language_of
from scree.scout.symbols import outline


def found(files: dict[str, str], *kinds: str) -> set[str]:
    """The edges of some files as `path name > path name`, those of the given kinds."""
    outlines = {path: outline(source, language_of(path) or "") for path, source in files.items()}

    def shown(place: tuple[str, int]) -> str:
        return f"{place[0]} {outlines[place[0]].candidates[place[1]].name}".rstrip()

    return {f"{shown(each.source)} > {shown(each.target)}" for each in edges(outlines) if each.kind in kinds}


def calls(files: dict[str, str]) -> set[str]:
    return found(files, "calls")


def approximate(files: dict[str, str]) -> set[str]:
    return found(files, "calls (approximate)")


@pytest.mark.requirement("scout-edges-contain")
def test_what_contains_what() -> None:
    files = {"a.py": "class A:\n    class B:\n        def c(self): ...\n    def d(self):\n" + "        x = 1\n" * 50}
    assert found(files, "contains") == {"a.py A > a.py A.B", "a.py A.B > a.py A.B.c", "a.py A > a.py A.d"}


class TestInOneFile:
    @pytest.mark.requirement("scout-edges-calls")
    def test_python(self) -> None:
        source = (
            "def a(): ...\n\n"
            "class B:\n    def a(self): ...\n"
            "    def c(self):\n        a()\n        self.a()\n        self.missing()\n\n"
            "def d():\n    def inner(): a()\n    inner()\n    B()\n    B.c(1)\n    d()\n\n"
            "d()\n"
        )
        assert calls({"m.py": source}) == {
            "m.py B.c > m.py a",
            "m.py B.c > m.py B.a",
            "m.py d.inner > m.py a",
            "m.py d > m.py d.inner",
            "m.py d > m.py B",
            "m.py d > m.py B.c",
            "m.py > m.py d",
        }

    @pytest.mark.requirement("scout-edges-calls")
    @pytest.mark.parametrize(
        ("path", "source"),
        [
            ("A.java", "class A {\n  void a() { b(); }\n  void b() {}\n}\n"),
            ("a.cs", "class A {\n  void a() { this.b(); }\n  void b() {}\n}\n"),
            ("a.ts", "class A {\n  a() { this.b(); }\n  b() {}\n}\n"),
            ("a.rs", "impl A {\n  fn a() { Self::b(); }\n  fn b() {}\n}\n"),
            ("a.rb", "class A\n  def a\n    b(1)\n  end\n  def b(x); end\nend\n"),
            ("a.php", "<?php\nclass A {\n  function a() { $this->b(); }\n  function b() {}\n}\n"),
            ("a.kt", "class A {\n  fun a() { b() }\n  fun b() {}\n}\n"),
            ("a.swift", "class A {\n  func a() { self.b() }\n  func b() {}\n}\n"),
            ("a.cpp", "void A::a() { this->b(); }\nvoid A::b() {}\n"),
            ("a.lua", "function A:a()\n  self.b()\nend\nfunction A.b() end\n"),
        ],
        ids=lambda value: value if len(value) < 9 else "",
    )
    def test_a_method_calls_another_of_its_type(self, path: str, source: str) -> None:
        assert f"{path} A.a > {path} A.b" in calls({path: source})

    @pytest.mark.requirement("scout-edges-calls")
    def test_a_bare_name_calls_no_method_where_the_object_must_be_named(self) -> None:
        assert calls({"a.py": "class A:\n    def a(self): b()\n    def b(self): ...\n"}) == set()

    @pytest.mark.requirement("scout-edges-approximate")
    def test_one_of_several_of_a_name_is_approximate(self) -> None:
        files = {"A.java": "class A {\n  void a() { b(1); }\n  void b(int x) {}\n  void b(long x) {}\n}\n"}
        assert calls(files) == set()
        assert approximate(files) == {"A.java A.a > A.java A.b"}


class TestAcrossFiles:
    @pytest.mark.requirement("scout-edges-imports")
    @pytest.mark.parametrize(
        ("statement", "call"),
        [
            ("from pkg.b import f", "f()"),
            ("from pkg.b import f as g", "g()"),
            ("from pkg import b", "b.f()"),
            ("from . import b", "b.f()"),
            ("from .b import f", "f()"),
            ("from .b import *", "f()"),
            ("import pkg.b", "pkg.b.f()"),
            ("import pkg.b as c", "c.f()"),
            ("from pkg import f", "f()"),
            ("from pkg import passed_on", "passed_on()"),
        ],
    )
    def test_python(self, statement: str, call: str) -> None:
        files = {
            "src/pkg/__init__.py": "from .b import f, f as passed_on\n",
            "src/pkg/a.py": f"{statement}\n\ndef a(): {call}\n",
            "src/pkg/b.py": "def f(): ...\n",
            "src/other/b.py": "def f(): ...\n",
        }
        assert calls(files) == {"src/pkg/a.py a > src/pkg/b.py f"}

    @pytest.mark.requirement("scout-edges-imports")
    def test_a_library_is_not_a_module_of_that_name_in_a_package(self) -> None:
        files = {
            "pkg/__init__.py": "",
            "pkg/json.py": "def loads(): ...\n",
            "pkg/a.py": "import json\n\ndef a(): json.loads()\n",
        }
        assert found(files, "calls", "calls (approximate)") == set()

    @pytest.mark.requirement("scout-edges-imports")
    def test_two_modules_that_fit_are_none(self) -> None:
        files = {
            "one/lib.py": "def f(): ...\n",
            "two/lib.py": "def f(): ...\n",
            "a.py": "from lib import f\n\ndef a(): f()\n",
        }
        assert found(files, "calls", "calls (approximate)") == set()

    @pytest.mark.requirement("scout-edges-imports")
    @pytest.mark.parametrize(
        ("statement", "call"),
        [
            ('import { f } from "./lib/b";', "f()"),
            ('import { f as g } from "./lib/b.js";', "g()"),
            ('import * as b from "./lib/b";', "b.f()"),
            ('import { f } from "./lib";', "f()"),
            ('const { f } = require("./lib/b");', "f()"),
            ('const b = require("./lib/b");', "b.f()"),
        ],
    )
    def test_javascript(self, statement: str, call: str) -> None:
        files = {
            "web/a.ts": f"{statement}\nfunction a() {{ {call}; }}\n",
            "web/lib/index.ts": 'export * from "./b";\n',
            "web/lib/b.ts": "export function f() {}\n",
            "web/b.ts": "export function f() {}\n",
        }
        assert calls(files) == {"web/a.ts a > web/lib/b.ts f"}

    @pytest.mark.requirement("scout-edges-imports")
    @pytest.mark.parametrize("path", ["crate::tree::node", "super::node", "crate::tree"])
    def test_rust(self, path: str) -> None:
        files = {
            "core/src/tree/walk.rs": f"use {path}::Node;\nfn a() {{ Node::new(); }}\n",
            "core/src/tree/mod.rs": "use crate::tree::node::Node;\n",
            "core/src/tree/node.rs": "impl Node {\n    fn new() {}\n}\n",
        }
        assert calls(files) == {"core/src/tree/walk.rs a > core/src/tree/node.rs Node.new"}

    @pytest.mark.requirement("scout-edges-imports")
    def test_java_by_import_and_by_package(self) -> None:
        files = {
            "src/org/shop/A.java": (
                "import org.money.Amount;\nclass A {\n  void a() { Amount.of(); Near.help(); String.valueOf(1); }\n}\n"
            ),
            "src/org/money/Amount.java": "class Amount {\n  static void of() {}\n}\n",
            "src/org/shop/Near.java": "class Near {\n  static void help() {}\n}\n",
            "src/org/other/Near.java": "class Near {\n  static void help() {}\n}\n",
        }
        assert calls(files) == {
            "src/org/shop/A.java A.a > src/org/money/Amount.java Amount.of",
            "src/org/shop/A.java A.a > src/org/shop/Near.java Near.help",
        }

    @pytest.mark.requirement("scout-edges-imports")
    def test_go_sees_its_package(self) -> None:
        files = {
            "p/a.go": "package p\n\nfunc A() { f() }\n",
            "p/b.go": "package p\n\nfunc f() {}\n",
            "q/b.go": "package q\n\nfunc f() {}\n",
        }
        assert calls(files) == {"p/a.go A > p/b.go f"}

    @pytest.mark.requirement("scout-edges-approximate")
    def test_the_only_one_of_a_name_is_approximate(self) -> None:
        files = {
            "a.py": "def a(parser):\n    parser.parse_all()\n    parser.close()\n",
            "b.py": "class Parser:\n    def parse_all(self): ...\n    def close(self): ...\n",
            "c.py": "class File:\n    def close(self): ...\n",
        }
        assert calls(files) == set()
        assert approximate(files) == {"a.py a > b.py Parser.parse_all"}

    @pytest.mark.requirement("scout-edges-approximate")
    def test_languages_do_not_call_each_other(self) -> None:
        files = {"a.py": "def a(x):\n    x.only_here()\n", "b.js": "class B { only_here() {} }\n"}
        assert approximate(files) == set()


@pytest.mark.requirement("scout-edges-imports")
def test_a_circle_of_imports_ends() -> None:
    files = {"a.py": "from b import *\nfrom b import x\nx()\n", "b.py": "from a import *\nfrom a import x\nx()\n"}
    assert found(files, "calls", "calls (approximate)") == set()


@pytest.mark.requirement("scout-edges-stream")
def test_a_mapping_may_make_its_outlines_when_asked() -> None:
    class Counted(dict[str, str]):
        asked = 0

    sources = Counted(
        {f"m{number}.py": f"from m{number + 1} import f\n\ndef f(): ...\n\nf()\n" for number in range(20)}
    )

    class Lazy(dict):  # type: ignore[type-arg]
        def items(self):  # type: ignore[no-untyped-def]
            for path, source in sources.items():
                sources.asked += 1
                yield path, outline(source, "python")

    assert len(list(edges(Lazy()))) == 20
    assert sources.asked == 2 * len(sources)
