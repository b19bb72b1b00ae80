"""Sections, trails, lines and cuts, on markdown written for the purpose."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from scree.docs.chunks import MAX_CHUNK_CHARS, Document, normalise_newlines, opts_out, parse

GOLDEN = Path(__file__).parents[1] / "golden" / "chunks"


def trails(document: Document) -> list[str]:
    return [" > ".join(chunk.trail) for chunk in document.chunks]


def texts(document: Document) -> list[str]:
    return [chunk.text for chunk in document.chunks]


def lines(document: Document) -> list[tuple[int, int]]:
    return [(chunk.start_line, chunk.end_line) for chunk in document.chunks]


def as_json(document: Document) -> dict[str, Any]:
    chunks = [{**asdict(chunk), "trail": list(chunk.trail)} for chunk in document.chunks]
    return {"title": document.title, "opted_out": document.opted_out, "chunks": chunks}


@pytest.mark.requirement("chunks-headings")
@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.md*")), ids=lambda path: path.name)
def test_golden_files(path: Path) -> None:
    expected = json.loads(path.with_suffix(".json").read_text())
    assert as_json(parse(path.read_text())) == expected


class TestHeadings:
    @pytest.mark.requirement("chunks-headings")
    def test_atx_and_setext_headings_open_a_chunk_under_the_headings_above(self) -> None:
        document = parse("intro\n# A\na\n## B\nb\n\nC c\n---\nc\n### D\nd\n\nE\n===\ne\n")
        assert trails(document) == ["", "A", "A > B", "A > C c", "A > C c > D", "E"]
        assert texts(document) == ["intro", "a", "b", "c", "d", "e"]
        assert lines(document) == [(1, 1), (3, 3), (5, 5), (9, 9), (11, 11), (15, 15)]

    @pytest.mark.requirement("chunks-headings")
    def test_a_skipped_level_keeps_the_trail_true(self) -> None:
        assert trails(parse("# A\na\n#### B\nb\n## C\nc\n# D\nd")) == ["A", "A > B", "A > C", "D"]

    @pytest.mark.requirement("chunks-code")
    @pytest.mark.parametrize(
        "block",
        [
            "```\n# no\n```",
            "~~~\n# no\n~~~",
            "~~~\n```\n# no\n~~~",
            "````\n```\n# no\n```\n# no\n````",
            "``` ``` x\n\n    # no",
            "    # no\n\n    # no",
            "```\n# no, and never closed",
            "> # no",
            "- # no\n\n  # no",
            "<div>\n# no\n</div>",
            "<!--\n\n# no\n\n-->",
            "\\# no",
            "#no",
            "####### no",
        ],
    )
    def test_what_only_looks_like_a_heading_opens_no_chunk(self, block: str) -> None:
        document = parse(f"# A\n\n{block}\n")
        assert trails(document) == ["A"]
        assert texts(document) == [block]

    @pytest.mark.requirement("chunks-code")
    def test_a_heading_after_a_closed_fence_opens_a_chunk(self) -> None:
        assert trails(parse("````\n# no\n```\n````\n# A\na\n")) == ["", "A"]

    @pytest.mark.requirement("chunks-headings")
    @pytest.mark.parametrize(
        ("heading", "plain"),
        [
            ("# `code` and *some* **emphasis** ##", "code and some emphasis"),
            ("# [a link](https://example.org) and [another][ref]", "a link and another"),
            ("# ![the logo](logo.png) Project", "the logo Project"),
            ("# Setup {#set-up}", "Setup"),
            ("# Setup { #set-up .wide data-x='1' }", "Setup"),
            ("# Setup {: #set-up}", "Setup"),
            ("# Setup {/*set-up*/}", "Setup"),
            ('# <a name="x"></a>Setup<br/>and run <!-- todo -->', "Setup and run"),
            ("# AT&amp;T &lt;b&gt; \\*x\\*", "AT&T <b> *x*"),
            ("# `{#not-an-id}`", "{#not-an-id}"),
            ("# Array<T> {x}", "Array {x}"),
            ("#  spaced \t out\u00a0here ", "spaced out here"),
            ("one\ntwo  \nthree\n===", "one two three"),
            ("# snake_case_name and 2 * 3 * 4", "snake_case_name and 2 * 3 * 4"),
        ],
    )
    def test_a_trail_is_plain_text(self, heading: str, plain: str) -> None:
        assert trails(parse(f"{heading}\n\ntext\n\n[ref]: https://example.org\n")) == [plain]

    @pytest.mark.requirement("chunks-headings")
    def test_no_heading_without_text_is_lost(self) -> None:
        document = parse("# A\n## B\n### C\n# D\nd\n## E\n")
        assert trails(document) == ["A > B > C", "D", "D > E"]
        assert texts(document) == ["### C", "d", "## E"]
        assert lines(document) == [(3, 3), (5, 5), (6, 6)]

    @pytest.mark.requirement("chunks-headings")
    def test_an_empty_heading_ends_a_section_and_adds_nothing(self) -> None:
        assert trails(parse("# A\n## B\nb\n##\nc\n##\n")) == ["A > B", "A"]

    @pytest.mark.requirement("chunks-headings")
    def test_a_heading_too_long_for_a_trail_stays_in_the_text(self) -> None:
        paragraph = "word " * 500 + "last"
        document = parse(f"{paragraph}\n---\nbelow\n")
        assert texts(document) == [f"{paragraph}\n---\nbelow"]
        assert len(document.chunks[0].trail[0]) <= 300
        assert document.chunks[0].trail[0].endswith("…")

    @pytest.mark.requirement("chunks-headings")
    def test_a_heading_of_nothing_readable_stays_in_the_text(self) -> None:
        document = parse('# <img src="banner.png">\n\ntext\n')
        assert trails(document) == [""]
        assert texts(document) == ['# <img src="banner.png">\n\ntext']

    @pytest.mark.requirement("chunks-headings")
    def test_containers_nested_out_of_bounds_do_not_swallow_the_rest(self) -> None:
        deep = "".join(f"{'  ' * depth}- item\n" for depth in range(40))
        assert trails(parse(f"{deep}\n# A\na\n")) == ["", "A"]
        assert trails(parse(f"{'> ' * 10_000}x\n\n# A\na\n"))[-1] == "A"


class TestLines:
    @pytest.mark.requirement("chunks-lines")
    @pytest.mark.parametrize("newline", ["\n", "\r\n"])
    @pytest.mark.parametrize("end", ["", "\n", "\n\n\n"])
    def test_lines_are_those_of_the_file(self, newline: str, end: str) -> None:
        source = f"\n\n  \nintro\n\n# A\n\n\n    code\n\nlast  {end}".replace("\n", newline)
        document = parse(source)
        assert lines(document) == [(4, 4), (9, 11)]
        assert texts(document) == ["intro", "    code\n\nlast  "]

    @pytest.mark.requirement("chunks-lines")
    @pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\x0c", "\x0b", "\x85", "\x1c", "\x1e"])
    def test_only_lf_ends_a_line(self, separator: str) -> None:
        document = parse(f"one{separator}# not a heading{separator}two\n# A\na{separator}b\n")
        assert lines(document) == [(1, 1), (3, 3)]
        assert texts(document) == [f"one{separator}# not a heading{separator}two", f"a{separator}b"]

    @pytest.mark.requirement("chunks-lines")
    def test_a_file_from_an_old_mac_has_its_headings_and_one_line(self) -> None:
        document = parse("---\rtitle: Old\r---\rintro\r\r# A\ra\r\rb\r## B\rc\r")
        assert document.title == "Old"
        assert trails(document) == ["", "A", "A > B"]
        assert texts(document) == ["intro", "a\r\rb", "c"]
        assert lines(document) == [(1, 1)] * 3

    @pytest.mark.requirement("chunks-lines")
    def test_lone_cr_among_lf_counts_no_line(self) -> None:
        document = parse("a\rb\n# A\r\nc\r\r\nd\n")
        assert texts(document) == ["a\rb", "c\r\nd"]
        assert lines(document) == [(1, 1), (3, 4)]

    @pytest.mark.requirement("chunks-lines")
    def test_a_bom_is_no_text(self) -> None:
        assert texts(parse("\ufeff# A\na")) == ["a"]
        assert texts(parse("\ufefftext")) == ["text"]
        assert parse("\ufeff---\ntitle: T\n---\na").title == "T"

    @pytest.mark.requirement("chunks-lines")
    @pytest.mark.parametrize("source", ["", "\n", "\r\n\r\n", "\ufeff", " \t\n\u2028\n\x0c", "---\n---\n", "#\n##\n"])
    def test_a_file_without_text_has_no_chunks(self, source: str) -> None:
        assert parse(source) == Document("", (), opted_out=False)


class TestFrontMatter:
    @pytest.mark.requirement("chunks-front-matter")
    @pytest.mark.parametrize(
        ("entry", "title"),
        [
            ("title: Plain text", "Plain text"),
            ("title:   spaced   out  # a comment", "spaced out"),
            ("title: C# and F# # really", "C# and F#"),
            ('title: "Quoted: \\"yes\\" \\u00e9" # c', 'Quoted: "yes" é'),
            ("title: 'It''s: # fine'", "It's: # fine"),
            ('"title": keyed', "keyed"),
            ("Title: cased", "cased"),
            ("title: >-\n  folded\n  lines\nother: x", "folded lines"),
            ("title: |\n  literal\n\n  lines", "literal lines"),
            ("title:\n  on the\n  next lines", "on the next lines"),
            ('title: "quoted\n  over lines"', "quoted over lines"),
            ('title: "\\ud800 half"', "\ufffd half"),
            ('title: "never closed', '"never closed'),
            ("title:", ""),
            ("title: null", ""),
            ("nested:\n  title: no", ""),
            ("subtitle: no", ""),
            ("text: |\n  title: no\ntitle: yes it is", "yes it is"),
            ("# a comment\n\ntitle: below it", "below it"),
        ],
    )
    def test_yaml_title(self, entry: str, title: str) -> None:
        document = parse(f"---\n{entry}\nother: [a, b]\n---\ntext\n")
        assert document.title == title
        assert texts(document) == ["text"]

    @pytest.mark.requirement("chunks-front-matter")
    @pytest.mark.parametrize(
        ("entry", "title"),
        [
            ('title = "Basic \\"one\\""', 'Basic "one"'),
            ("title = 'literal' # comment", "literal"),
            ('"title"="keyed"', "keyed"),
            ('title = """\nover\nlines"""', "over lines"),
            ("title = 3", ""),
            ("title = not toml", ""),
            ('[table]\ntitle = "no"', ""),
        ],
    )
    def test_toml_title(self, entry: str, title: str) -> None:
        document = parse(f"+++\ndraft = false\n{entry}\n+++\ntext\n")
        assert document.title == title
        assert texts(document) == ["text"]

    @pytest.mark.requirement("chunks-front-matter")
    def test_dots_close_yaml(self) -> None:
        document = parse("---  \ntitle: T\n...\ntext\n")
        assert (document.title, texts(document), lines(document)) == ("T", ["text"], [(4, 4)])

    @pytest.mark.requirement("chunks-front-matter")
    @pytest.mark.parametrize(
        "source",
        [
            "---\ntitle: never closed\n\ntext",
            "+++\ntitle = 'never closed'\n\ntext",
            "\n---\ntitle: not on the first line\n\n---\ntext",
            "---\nProse between two breaks.\n\n---\nmore",
        ],
    )
    def test_what_only_looks_like_front_matter_is_text(self, source: str) -> None:
        document = parse(source)
        assert document.title == ""
        assert normalise_newlines(source).strip() == "\n".join(texts(document))

    @pytest.mark.requirement("chunks-front-matter")
    def test_a_heading_between_two_breaks_is_a_heading(self) -> None:
        assert trails(parse("---\n# A\n\na\n\n---\nb")) == ["", "A"]

    @pytest.mark.requirement("chunks-front-matter")
    def test_a_thematic_break_in_the_text_is_text(self) -> None:
        assert texts(parse("a\n\n---\ntitle: x\n\n---\n\nb")) == ["a\n\n---\ntitle: x\n\n---\n\nb"]

    @pytest.mark.requirement("chunks-front-matter")
    def test_200_kb_of_front_matter(self) -> None:
        block = "".join(f"key{number}: value number {number}\n" for number in range(8_000))
        document = parse(f"---\n{block}title: At the end\n---\n# A\na\n")
        assert len(block) > 200_000
        assert document.title == "At the end"
        assert [(chunk.text, chunk.start_line) for chunk in document.chunks] == [("a", 8_005)]

    @pytest.mark.requirement("chunks-front-matter")
    def test_a_title_without_text_can_be_found(self) -> None:
        document = parse("---\ntags: [a]\ntitle: 'Only this'\nx: y\n---\n\n")
        assert [(chunk.trail, chunk.text, chunk.start_line, chunk.end_line) for chunk in document.chunks] == [
            ((), "title: 'Only this'", 3, 3)
        ]


class TestOptOut:
    @pytest.mark.requirement("ignore-marker-front-matter")
    @pytest.mark.parametrize(
        "source",
        [
            "---\nscree: ignore\n---\ntext",
            "---\ntitle: x\nSCREE:   'Ignore'  # private\n---\ntext",
            "\ufeff---\r\nscree: ignore\r\n---\r\ntext",
            '+++\nscree = "ignore"\n+++\ntext',
        ],
    )
    def test_front_matter(self, source: str) -> None:
        document = parse(source)
        assert document.opted_out
        assert document.chunks == ()

    @pytest.mark.requirement("ignore-marker-front-matter")
    @pytest.mark.parametrize(
        "source",
        [
            "---\nscree: index\n---\ntext",
            "---\nnested:\n  scree: ignore\n---\ntext",
            "---\nscree: ignore\n\nnever closed",
            "text\n\n---\nscree: ignore\n---\n",
            "scree: ignore",
        ],
    )
    def test_no_front_matter_marker(self, source: str) -> None:
        assert not parse(source).opted_out

    @pytest.mark.requirement("ignore-marker-comment")
    @pytest.mark.parametrize(
        "source",
        [
            "<!-- scree: ignore -->",
            "# A\n\n<!--SCREE : Ignore-->\n",
            "text <!-- scree:\nignore --> in a line",
            "> <!-- scree: ignore -->",
            "\n" * 19 + "<!-- scree: ignore -->",
            "---\ntitle: x\n---\n<!-- scree: ignore -->",
            "long " * 10_000 + "<!-- scree: ignore -->",
        ],
    )
    def test_comment(self, source: str) -> None:
        assert opts_out(source)
        assert parse(source) == Document("x" if "title" in source else "", (), opted_out=True)

    @pytest.mark.requirement("ignore-marker-comment")
    @pytest.mark.parametrize(
        "source",
        [
            "\n" * 20 + "<!-- scree: ignore -->",
            "```html\n<!-- scree: ignore -->\n```",
            "    <!-- scree: ignore -->",
            "Write `<!-- scree: ignore -->` to opt out.",
            "<!-- scree: ignored -->",
            "<!-- do not scree: ignore -->",
            "\\<!-- scree: ignore -->",
        ],
    )
    def test_no_comment_marker(self, source: str) -> None:
        assert not opts_out(source)
        assert not parse(source).opted_out


class TestSharing:
    @pytest.mark.requirement("chunks-tiny")
    def test_headings_without_text_share_a_chunk_under_their_parent(self) -> None:
        document = parse("# A\na\n## B\n\n## C\n\n## D\nd\n## E\n# F\n")
        assert trails(document) == ["A", "A", "A > D", "A > E", "F"]
        assert texts(document) == ["a", "## B\n\n## C", "d", "## E", "# F"]

    @pytest.mark.requirement("chunks-tiny")
    def test_small_sections_share_a_chunk_if_asked_to(self) -> None:
        source = "# A\n## B\nb\n## C\nc\n# D\nd\n# E\ne\n"
        document = parse(source, small_chars=10)
        # Without a heading above them, D and E have no parent.
        assert trails(document) == ["A", "D", "E"]
        assert texts(document) == ["## B\nb\n## C\nc", "d", "e"]
        assert trails(parse(source)) == ["A > B", "A > C", "D", "E"]
        assert trails(parse("# A\n## B\n## C\n", small_chars=-1)) == ["A > B", "A > C"]

    @pytest.mark.requirement("chunks-tiny")
    def test_a_shared_chunk_has_a_limit_and_one_level(self) -> None:
        source = "# A\n" + "".join(f"## B{number}\nb\n" for number in range(10)) + "### C\nc\n## D\nd\n"
        document = parse(source, small_chars=10, shared_chars=40)
        assert trails(document) == ["A", "A", "A > B9", "A > B9 > C", "A > D"]
        assert all(len(text) <= 40 for text in texts(document))


class TestCuts:
    @pytest.mark.requirement("chunk-limit")
    @pytest.mark.requirement("chunks-split")
    def test_a_long_section_splits_at_blank_lines_into_even_pieces(self) -> None:
        paragraphs = [f"Paragraph {number}. " + "Some more of it. " * 10 for number in range(40)]
        document = parse("# A\n\n" + "\n\n".join(paragraphs))
        sizes = [len(text) for text in texts(document)]
        assert max(sizes) <= MAX_CHUNK_CHARS
        assert min(sizes) > max(sizes) * 0.8
        assert "\n\n".join(texts(document)) == "\n\n".join(paragraphs)
        assert set(trails(document)) == {"A"}

    @pytest.mark.requirement("chunks-split")
    def test_a_little_too_much_leaves_no_scrap(self) -> None:
        document = parse(" ".join(["A sentence of some words."] * 134) + "\n\nA last one.")
        assert sum(len(text) for text in texts(document)) > MAX_CHUNK_CHARS - 60
        assert len(document.chunks) == 1
        document = parse(" ".join(["A sentence of some words."] * 140) + "\n\nA last one.")
        assert len(document.chunks) == 2
        assert min(len(text) for text in texts(document)) > 1_500

    @pytest.mark.requirement("chunks-split")
    def test_a_list_splits_at_its_own_items(self) -> None:
        item = "- An item of the list,\n  with a second line.\n  - And one below it,\n    also of two lines.\n"
        for text in texts(parse(item * 100)):
            assert text.startswith("- An item")
            assert text.endswith("of two lines.")

    @pytest.mark.requirement("chunks-split")
    def test_a_table_splits_between_rows(self) -> None:
        rows = [f"| row {number} | {'x' * 50} |" for number in range(200)]
        table = "\n".join(["| a | b |", "|---|---|", *rows])
        document = parse(table)
        assert "\n".join(texts(document)) == table

    @pytest.mark.requirement("chunks-split")
    @pytest.mark.parametrize(
        ("sentence", "end"),
        [
            ("All of this is one line. ", "."),
            ('Is it "quoted?" ', '"'),
            ("これは文です。", "。"),
            ("真的吗？", "？"),
        ],
    )
    def test_a_long_line_splits_at_sentence_ends(self, sentence: str, end: str) -> None:
        document = parse((sentence * 1_000).rstrip())
        assert len(document.chunks) > 1
        for text in texts(document):
            assert text.endswith(end)
            assert text.startswith(sentence[:3])

    @pytest.mark.requirement("chunks-split")
    def test_abbreviations_end_no_sentence(self) -> None:
        assert all(not text.endswith("e.g.") for text in texts(parse("some words e.g. other words. Then " * 300)))

    @pytest.mark.requirement("chunks-split")
    def test_a_line_without_sentences_splits_at_spaces(self) -> None:
        line = " ".join(["word"] * 2_000)
        document = parse(line)
        assert " ".join(texts(document)) == line
        assert lines(document) == [(1, 1)] * len(document.chunks)

    @pytest.mark.requirement("chunks-split")
    def test_a_line_without_spaces_is_cut_between_characters(self) -> None:
        line = "e\u0301" * 5_000
        document = parse(line)
        assert "".join(texts(document)) == line
        assert all(text.startswith("e") for text in texts(document))

    @pytest.mark.requirement("chunks-fence-whole")
    @pytest.mark.parametrize("prefix", ["", "  "])
    def test_a_fence_that_fits_is_whole(self, prefix: str) -> None:
        body = "".join(f"{prefix}line {number} of code\n\n" for number in range(150))
        fence = f"{prefix}```\n{body}{prefix}```"
        assert MAX_CHUNK_CHARS * 0.7 < len(fence) < MAX_CHUNK_CHARS
        item = "- item\n\n" if prefix else ""
        document = parse(f"{'Before. ' * 200}\n\n{item}{fence}\n\n{'After. ' * 300}")
        assert len([text for text in texts(document) if fence in text]) == 1

    @pytest.mark.requirement("chunks-fence-whole")
    def test_a_fence_as_large_as_a_chunk_is_whole(self) -> None:
        fence = "```\n" + "x" * (MAX_CHUNK_CHARS - 8) + "\n```"
        assert texts(parse(f"before\n{fence}\nafter")) == ["before", fence, "after"]

    @pytest.mark.requirement("chunks-fence-whole")
    def test_a_fence_larger_than_a_chunk_splits_at_its_blank_lines(self) -> None:
        fence = "```\n" + "def f():\n    return 1\n\n" * 300 + "```"
        document = parse(fence)
        assert all(text.startswith("def f") for text in texts(document)[1:])
        assert "\n\n".join(texts(document)) == fence

    @pytest.mark.requirement("chunk-limit")
    def test_the_limit_can_be_chosen(self) -> None:
        source = "# A\n\n" + "Some words in a row. " * 100
        assert max(len(text) for text in texts(parse(source, max_chars=100))) <= 100
        assert "".join(texts(parse(source, max_chars=1))) == "Somewordsinarow." * 100


@pytest.mark.requirement("sync-bad-file")
@pytest.mark.parametrize(
    "source",
    [
        pytest.param("x" * 900_000, id="one line"),
        pytest.param("word " * 180_000, id="one line of words"),
        pytest.param("a" + " " * 900_000 + "b", id="spaces"),
        pytest.param("\n" * 900_000, id="blank lines"),
        pytest.param("e" + "\u0301" * 900_000, id="accents"),
        pytest.param("# heading\n" * 50_000, id="headings"),
        pytest.param("[" * 10_000 + "\n" + "![" * 10_000, id="brackets"),
        pytest.param("# " + "![" * 100_000, id="brackets in a heading"),
        pytest.param(">" * 10_000 + "\n" + "> " * 10_000, id="quotes"),
        pytest.param("- " * 10_000, id="lists"),
        pytest.param("> ```\na\n" * 10_000, id="quoted fences without end"),
        pytest.param("> # a\nb\n" * 10_000, id="quoted headings"),
        pytest.param("- a\n+ b\n" * 5_000, id="one-item lists"),
        pytest.param("<!-- " * 100_000, id="comments"),
        pytest.param("---\n" + "k:\n" * 50_000, id="front matter without end"),
        pytest.param("+++\ntitle = " + "[" * 200_000 + "\n+++\n", id="nested TOML"),
        pytest.param("# h\rtext\r" * 5_000, id="old Mac"),
        pytest.param("\x00\x1b[31m\ud800\uffff" * 1_000, id="no text"),
    ],
)
def test_hostile_files_are_cut_in_linear_time(source: str) -> None:
    """With quadratic time anywhere, these take minutes, and the test run's limit of a minute ends them."""
    document = parse(source)
    assert all(len(chunk.text) <= MAX_CHUNK_CHARS for chunk in document.chunks)
