"""Every definition with its exact lines and name, in every language, and texts that have tripped others."""

from __future__ import annotations

import ast
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from scree.scout import tree_symbols
from scree.scout.languages import TABLE_BY_NAME, language_of
from scree.scout.outlines import CHUNK_LINES, FRAGMENT_LINES, FRAGMENT_OVERLAP, LONG_FUNCTION_LINES
from scree.scout.symbols import Candidate, Outline, outline, split_lines

GOLDEN = Path(__file__).parents[1] / "golden" / "symbols"
SOURCES = sorted(path for path in GOLDEN.iterdir() if path.suffix != ".outline")

# Every twentieth file takes a few seconds; all of them were compared when this was written.
STANDARD_LIBRARY = sorted(Path(sysconfig.get_path("stdlib")).rglob("*.py"))
SAMPLE = [path for path in STANDARD_LIBRARY if "site-packages" not in path.parts][::20]


def shown(found: Outline) -> str:
    """One line a candidate, as the golden files have them."""
    lines = (f"{each.start_line}-{each.end_line} {each.kind} {each.name}".rstrip() for each in found.candidates)
    return "".join(f"{line}\n" for line in lines)


def symbol(found: Outline, name: str) -> Candidate:
    """The only symbol of that name."""
    (only,) = (each for each in found.candidates if each.name == name and each.kind != "fragment")
    return only


def lines_of(found: Outline, name: str) -> tuple[int, int]:
    return symbol(found, name).start_line, symbol(found, name).end_line


@pytest.mark.requirement("scout-symbols-languages")
@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_golden_files(path: Path) -> None:
    found = outline(path.read_text(encoding="utf-8"), language_of(path.name) or "")
    assert found.parsed
    assert shown(found) == path.with_suffix(f"{path.suffix}.outline").read_text(encoding="utf-8")


@pytest.mark.requirement("scout-symbols-languages")
def test_every_language_with_a_grammar_has_a_golden_file() -> None:
    with_symbols = {"python", *(name for name, row in TABLE_BY_NAME.items() if row.grammar)}
    assert with_symbols == {language_of(path.name) for path in SOURCES}


def expected(tree: ast.Module) -> Iterator[tuple[str, str, int, int]]:
    """Name, kind and lines of each function and class, found the plain way."""

    def below(node: ast.AST, outer: str, in_class: bool) -> Iterator[tuple[str, str, int, int]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                is_class = isinstance(child, ast.ClassDef)
                kind = "class" if is_class else "method" if in_class else "function"
                start = min([child.lineno, *(each.lineno for each in child.decorator_list)])
                assert child.end_lineno is not None
                yield f"{outer}{child.name}", kind, start, child.end_lineno
                yield from below(child, f"{outer}{child.name}.", is_class)
            else:
                yield from below(child, outer, in_class and not isinstance(child, ast.Lambda))

    return below(tree, "", in_class=False)


@pytest.mark.requirement("scout-python-ast")
def test_standard_library_as_ast_has_it() -> None:
    compared = 0
    for path in SAMPLE:
        try:
            source = path.read_bytes().decode("utf-8")
            tree = ast.parse(source)
        except (UnicodeDecodeError, SyntaxError, ValueError):
            continue
        found = outline(source, "python")
        symbols = [
            (each.name, each.kind, each.start_line, each.end_line)
            for each in found.candidates
            if each.name and each.kind != "fragment"
        ]
        assert sorted(symbols) == sorted(expected(tree)), path
        compared += len(symbols)
    assert compared > 1_000


class TestPython:
    @pytest.mark.requirement("scout-python-ast")
    def test_a_decorator_whose_expression_stands_below_its_sign(self) -> None:
        assert lines_of(outline("x = 1\n@(\n    y\n)\ndef f(): ...\n", "python"), "f") == (2, 5)

    @pytest.mark.requirement("scout-python-ast")
    def test_module_level_code_between_symbols(self) -> None:
        found = outline("import a\n\n\ndef f(): ...\n\nx = 1\n\n\ny = 2\nclass C: ...\n\n", "python")
        assert shown(found) == "1-1 module\n4-4 function f\n6-9 module\n10-10 class C\n"

    @pytest.mark.requirement("scout-python-module-code")
    def test_long_module_level_code_is_cut_into_chunks(self) -> None:
        found = outline("".join(f"x{number} = 1\n" for number in range(130)), "python")
        assert [(each.start_line, each.end_line) for each in found.candidates] == [(1, 60), (61, 120), (121, 130)]

    @pytest.mark.requirement("scout-python-fallback")
    @pytest.mark.parametrize("source", ["def f(:\n", "print 'x'\n", "a\0b\n", "\ud800 = 1\n", "<<<<<<< x\n"])
    def test_what_does_not_parse_becomes_chunks(self, source: str) -> None:
        found = outline(source + "\n" + "x = 1\n" * 100, "python")
        assert not found.parsed
        assert {each.kind for each in found.candidates} == {"chunk"}
        assert [each.start_line for each in found.candidates] == [1, 61]
        assert found.candidates[0].end_line == CHUNK_LINES

    @pytest.mark.requirement("scout-python-ast")
    def test_warnings_about_the_code_are_nobodys_business(self) -> None:
        assert outline("x = '\\d'\nassert (1, 2)\n1 is 1\n", "python").parsed


class TestFragments:
    @pytest.mark.requirement("scout-fragments")
    @pytest.mark.parametrize("lines", [LONG_FUNCTION_LINES, LONG_FUNCTION_LINES + 1, 56, 57, 80, 81, 200])
    @pytest.mark.parametrize("language", ["python", "go"])
    def test_a_long_function_has_overlapping_windows_to_its_end(self, language: str, lines: int) -> None:
        head, tail = {"python": ("def f():", "    return"), "go": ("func f() {", "}")}[language]
        found = outline("\n" + "\n".join([head, *["    x()"] * (lines - 2), tail]), language)
        place = found.candidates.index(symbol(found, "f"))
        fragments = [each for each in found.candidates if each.kind == "fragment"]
        if lines <= LONG_FUNCTION_LINES:
            assert not fragments
            return
        assert {(each.parent, each.name) for each in fragments} == {(place, "f")}
        assert (fragments[0].start_line, fragments[-1].end_line) == (2, lines + 1)
        assert all(each.end_line - each.start_line < FRAGMENT_LINES for each in fragments)
        assert all(one.end_line - other.start_line + 1 == FRAGMENT_OVERLAP for one, other in pairwise(fragments))

    @pytest.mark.requirement("scout-fragments")
    def test_a_class_has_none(self) -> None:
        found = outline("class C:\n" + "    x = 1\n" * 100, "python")
        assert [each.kind for each in found.candidates] == ["class"]


class TestLines:
    """A range opens on the right line in an editor."""

    UNUSUAL = ("\f", "\u2028", "\u2029", "\v", "\x1c", "\x85", "🦊字")

    @pytest.mark.requirement("scout-lines")
    @pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
    def test_only_line_ends_end_lines(self, end: str) -> None:
        assert split_lines(end.join(["a\fb\u2028c\v\x85", "", "d", ""])) == ["a\fb\u2028c\v\x85", "", "d"]
        assert split_lines("") == []
        assert split_lines(end) == [""]

    @pytest.mark.requirement("scout-lines")
    @pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
    @pytest.mark.parametrize("mark", ["", "\ufeff"], ids=["plain", "BOM"])
    @pytest.mark.parametrize(
        ("language", "comment", "definition"),
        [
            ("python", "#", "def f():|    return '字🦊'"),
            ("javascript", "//", "function f() {|  return '字🦊'; }"),
            ("go", "//", 'func f() string {|  return "字🦊" }'),
            ("rust", "//", 'fn f() -> &str {|  "字🦊" }'),
            ("c", "//", 'char *f() {|  return "字🦊"; }'),
            ("ruby", "#", "def f|  '字🦊' end"),
            ("java", "//", 'class f {|  String a = "字🦊"; }'),
        ],
    )
    def test_unusual_characters_above_a_definition(
        self, language: str, comment: str, definition: str, mark: str, end: str
    ) -> None:
        above = [
            f"{comment} {character} x"
            for character in self.UNUSUAL
            if language != "javascript" or character != "\u2028"
        ]
        source = mark + end.join([*above, "", "", *definition.split("|"), ""])
        found = outline(source, language)
        assert found.parsed
        start = len(above) + 3
        assert lines_of(found, "f") == (start, start + 1)

    @pytest.mark.requirement("scout-lines")
    def test_no_line_end_at_the_end(self) -> None:
        assert lines_of(outline("def f():\n    pass", "python"), "f") == (1, 2)
        assert lines_of(outline("int f() {\n}", "c"), "f") == (1, 2)


class TestWhatBelongsToASymbol:
    @pytest.mark.requirement("scout-symbol-range")
    def test_comments_and_attributes_directly_above(self) -> None:
        source = "// not this\n\n// this\n/* and\n   this */\n#[inline]\n// and this\nfn f() {}\n"
        assert lines_of(outline(source, "rust"), "f") == (3, 8)

    @pytest.mark.requirement("scout-symbol-range")
    def test_a_comment_behind_other_code_is_not_the_next_symbols(self) -> None:
        assert lines_of(outline("int a; // of a\nint f() { return 1; }\n", "c"), "f") == (2, 2)

    @pytest.mark.requirement("scout-symbol-range")
    def test_what_leads_to_a_class_is_not_its_methods(self) -> None:
        found = outline("// of A\nclass A { f() {} }\n", "javascript")
        assert lines_of(found, "A") == (1, 2)
        assert lines_of(found, "A.f") == (2, 2)

    @pytest.mark.requirement("scout-symbol-range")
    def test_a_block_comment_that_ends_on_the_symbols_line(self) -> None:
        assert lines_of(outline("/* of\n f */ int f() { return 1; }\n", "c"), "f") == (1, 2)


class TestLongLines:
    @pytest.mark.requirement("scout-long-lines")
    @pytest.mark.parametrize("language", ["javascript", "css", "json", "python"])
    def test_a_line_of_900_kilobytes_is_one_candidate(self, language: str) -> None:
        source = "x = '" + "a" * 900_000 + "'"
        assert shown(outline(source, language)).split()[0] == "1-1"
        assert len(outline(source, language).candidates) == 1

    @pytest.mark.requirement("scout-long-lines")
    def test_a_minified_bundle_is_not_a_thousand_symbols(self) -> None:
        bundle = ";".join(f"function f{number}(a){{return a+{number}}}" for number in range(1_000))
        found = outline(f"/*! library */\n{bundle}\n//# sourceMappingURL=x\n", "javascript")
        assert shown(found) == "1-3 module\n"

    @pytest.mark.requirement("scout-long-lines")
    def test_generated_code_with_long_lines_keeps_its_symbols(self) -> None:
        found = outline(
            f"const table = [{'1, ' * 5_000}];\n\nfunction look(x) {{\n  return table[x];\n}}\n", "javascript"
        )
        assert lines_of(found, "look") == (3, 5)


DEEP = {
    "python": ["(" * 20_000 + ")" * 20_000, "-" * 50_000 + "1", "a" + ".b" * 20_000, "[" * 50_000, "lambda:" * 20_000],
    "javascript": [
        "(" * 20_000 + ")" * 20_000,
        "function f(){" * 3_000 + "}" * 3_000,
        "a" + ".b" * 20_000,
        "[" * 50_000,
    ],
    "elixir": ["(" * 20_000 + ")" * 20_000, "a" + ".b" * 40_000],
}


@pytest.mark.requirement("scout-never-raises")
@pytest.mark.parametrize(
    ("language", "source"), [(each, source) for each, sources in DEEP.items() for source in sources]
)
def test_deep_nesting(language: str, source: str) -> None:
    assert len(outline(source, language).candidates) == 1


@pytest.mark.requirement("scout-never-raises")
@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_20000_parentheses_in_every_language(path: Path) -> None:
    found = outline("(" * 20_000 + ")" * 20_000, language_of(path.name) or "")
    assert [(each.start_line, each.end_line) for each in found.candidates] == [(1, 1)]


@pytest.mark.requirement("scout-never-raises")
@pytest.mark.parametrize(
    ("language", "piece"), [("java", "a<"), ("csharp", "a<"), ("cpp", "a<b|"), ("typescript", "a<b,"), ("tsx", "a<b,")]
)
def test_type_arguments_that_nothing_closes(language: str, piece: str) -> None:
    assert not outline(piece * 20_000, language).parsed


@pytest.mark.requirement("scout-never-raises")
def test_a_last_line_without_end_that_begins_an_annotation() -> None:
    # In a process of its own: a parser that does not come back cannot be interrupted.
    program = "from scree.scout.symbols import outline; outline('val a = 1\\n@', 'kotlin')"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=30)


@pytest.mark.requirement("scout-never-raises")
def test_an_attribute_without_end_takes_no_symbol_out_of_its_own() -> None:
    found = outline('@spec add(t,\n"""\n"""\ndef add(a) do\n  defp store(b), er)\n  def empty, do: []\n', "elixir")
    assert all(
        found.candidates[each.parent].start_line <= each.start_line
        for each in found.candidates
        if each.parent is not None
    )


@pytest.mark.requirement("scout-never-raises")
def test_twenty_thousand_branches() -> None:
    source = "if a:\n    def f(): ...\n" + "elif b:\n    def g(): ...\n" * 1_000
    found = outline(source, "python")
    names = [each.name for each in found.candidates if each.kind == "function"]
    # How deep Python parses depends on its version.
    assert names == (["f", *["g"] * 1_000] if found.parsed else [])


@pytest.mark.requirement("scout-never-raises")
def test_a_tokenizers_special_words_are_text() -> None:
    found = outline("def f():\n    return '<|endoftext|>'\n\n\n# <|endoftext|> [CLS] <s>\n", "python")
    assert shown(found) == "1-2 function f\n5-5 module\n"


@pytest.mark.requirement("scout-chunks")
@pytest.mark.parametrize("language", ["markdown", "toml", "yaml", "json", "css", "no such language"])
def test_other_files_are_chunks_of_60_lines(language: str) -> None:
    found = outline("x: 1\n" * 61 + "\n" * 200 + "y: 1\n", language)
    assert found.parsed
    assert shown(found) == "1-60 chunk\n61-61 chunk\n262-262 chunk\n"


@pytest.mark.requirement("scout-chunks")
@pytest.mark.parametrize("language", ["python", "go", "markdown"])
@pytest.mark.parametrize("source", ["", "\n", " \n\t\n", "\ufeff"])
def test_nothing_in_a_blank_file(source: str, language: str) -> None:
    assert outline(source, language).candidates == ()


@pytest.mark.requirement("scout-unparsable")
def test_what_is_in_no_language_at_all_is_chunks() -> None:
    found = outline("¿¿ ::== )) }} §§§ ]] ((\n" * 100, "java")
    assert not found.parsed
    assert [each.kind for each in found.candidates] == ["chunk", "chunk"]


@pytest.mark.requirement("scout-unparsable")
def test_a_parse_that_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    source = "int f() { return 1; }\n" * 1_000
    with monkeypatch.context() as patch:
        patch.setattr(tree_symbols, "MAX_PARSE_SECONDS", -1.0)
        given_up = outline(source, "c")
    assert not given_up.parsed
    assert {each.kind for each in given_up.candidates} == {"chunk"}
    assert len([each for each in outline(source, "c").candidates if each.kind == "function"]) == 1_000


@pytest.mark.requirement("scout-unparsable")
def test_an_error_in_a_file_costs_no_other_symbol() -> None:
    found = outline("int f() { return 1; }\n\nint g( {{{ ;\n\nint h() { return 1; }\n", "c")
    assert lines_of(found, "f") == (1, 1)


@pytest.mark.requirement("scout-symbols-languages")
def test_a_header_in_cpp_is_read_as_such() -> None:
    found = outline("namespace a {\nclass B {\n public:\n  int c() { return 1; }\n};\n}\n", "c")
    assert [each.name for each in found.candidates if each.name] == ["a.B", "a.B.c"]
