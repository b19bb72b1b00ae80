"""What a search returns: the filters, the check against the disk, the budget, the overlaps, the neighbours."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from scree.errors import ArgumentError, ChangedFileError, NotFoundError, StorageError
from scree.scout.arguments import Mode, ReadArguments
from scree.scout.search import Searcher
from scree.scout.snapshot import Entry, Snapshot
from tests.fake_encoder import FakeEncoder
from tests.scout.indexed_tree import LANTERNS, build_index, index_path, names, paths, search, write

LONG = "def long_lantern():\n" + "".join(f"    value_{number} = {number}\n" for number in range(80)) + "    return 1\n"

FIELDS = {
    "id", "path", "name", "kind", "language", "start_line", "end_line", "reference", "content", "file_sha256",
    "verified", "truncated",
}  # fmt: skip
SCORES = {"score", "bm25_score", "cosine_similarity"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write(tmp_path, {"src/lanterns.py": LANTERNS})
    return tmp_path


def read(root: Path, symbol_id: str, **arguments: Any) -> dict[str, Any]:
    snapshot = Snapshot(index_path(root))
    try:
        return Searcher(snapshot).read(ReadArguments(symbol_id, **arguments))
    finally:
        snapshot.close()


# Results


@pytest.mark.requirement("scout-result-fields")
def test_a_result_says_where_it_is_and_what_it_is(root: Path) -> None:
    build_index(root)
    response = search(root, "read settings")
    (result,) = response["results"]
    assert result.keys() == FIELDS | SCORES
    assert result["reference"] == "src/lanterns.py:5-7"
    assert result["content"] == 'def load_config(path):\n    """Read the settings."""\n    return json.load(open(path))'
    assert (result["name"], result["kind"], result["language"]) == ("load_config", "function", "python")
    assert (result["verified"], result["truncated"], result["cosine_similarity"]) == (True, False, None)
    assert result["bm25_score"] > 0


@pytest.mark.requirement("scout-neighbours")
@pytest.mark.requirement("scout-result-fields")
def test_what_calls_a_result_is_its_neighbour(root: Path) -> None:
    build_index(root)
    response = search(root, "read settings")
    (neighbour,) = response["neighbors"]
    assert neighbour.keys() == FIELDS | {"relation", "direction", "from_id"}
    assert (neighbour["name"], neighbour["relation"], neighbour["direction"]) == ("Lantern.ignite", "calls", "incoming")
    assert neighbour["from_id"] == response["results"][0]["id"]
    assert response["returned_chars"] == sum(
        len(each["content"]) for each in response["results"] + response["neighbors"]
    )
    assert search(root, "read settings", expand=False)["neighbors"] == []


@pytest.mark.requirement("scout-neighbours")
def test_neighbours_are_three_at_most_and_take_only_what_is_left(tmp_path: Path) -> None:
    callers = "".join(f"\n\ndef caller_{number}():\n    return beacon()\n" for number in range(5))
    write(tmp_path, {"a.py": "def beacon():\n    return 'a light that is seen from afar'\n" + callers})
    build_index(tmp_path)
    assert len(search(tmp_path, "seen from afar")["neighbors"]) == 3
    response = search(tmp_path, "seen from afar", max_chars=100)
    assert response["returned_chars"] <= 100
    assert len(response["results"]) == 1


@pytest.mark.requirement("scout-method-not-class")
@pytest.mark.parametrize("query", ["douse", "Lantern.douse", "the douse method", "ignite(oil)"])
def test_a_query_that_names_a_method_gets_the_method_and_not_its_class(root: Path, query: str) -> None:
    build_index(root)
    assert names(search(root, query))[0] == ("Lantern.ignite" if "ignite" in query else "Lantern.douse")


@pytest.mark.requirement("scout-method-not-class")
def test_a_query_that_names_a_class_gets_the_class(root: Path) -> None:
    build_index(root)
    assert names(search(root, "Lantern"))[0] == "Lantern"


@pytest.mark.requirement("scout-no-overlap")
def test_no_line_is_returned_twice(root: Path) -> None:
    write(root, {"src/long.py": LONG + LANTERNS})
    build_index(root)
    seen: set[tuple[str, int]] = set()
    response = search(root, "lantern value 7 settings oil return", top_k=50, max_chars=100_000)
    for each in response["results"] + response["neighbors"]:
        lines = {(each["path"], line) for line in range(each["start_line"], each["end_line"] + 1)}
        assert not lines & seen
        seen |= lines
    assert len(response["results"]) > 2


@pytest.mark.requirement("scout-fragment-parent")
def test_a_fragment_names_its_function_and_reading_it_gives_the_function(root: Path) -> None:
    write(root, {"src/long.py": LONG})
    build_index(root)
    fragment = next(
        result for result in search(root, "value_70 value_71 value_72")["results"] if result["kind"] == "fragment"
    )
    assert fragment["name"] == "long_lantern"
    function = read(root, fragment["id"])
    assert (function["id"], function["kind"], function["requested_id"]) == (
        fragment["parent_id"],
        "function",
        fragment["id"],
    )
    assert function["content"] == LONG.rstrip("\n")
    # Where the function does not fit, the fragment alone is better than a function without it.
    assert read(root, fragment["id"], max_chars=len(fragment["content"]))["id"] == fragment["id"]


# Filters


@pytest.mark.requirement("scout-language-filter")
@pytest.mark.requirement("scout-docs-filter")
def test_filters_narrow_what_is_ranked(root: Path) -> None:
    write(root, {"README.md": "# Lanterns\n\nHow to douse a lantern.\n", "lib.rs": "fn douse() {}\n"})
    build_index(root)
    assert set(paths(search(root, "douse"))) == {"src/lanterns.py", "lib.rs"}
    assert paths(search(root, "douse", language="rust")) == ["lib.rs"]
    assert "README.md" in paths(search(root, "douse", include_docs=True))
    assert paths(search(root, "douse", language="markdown")) == ["README.md"]
    response = search(root, "douse", language="go")
    assert response["results"] == []
    assert response["warnings"] == ["The index has no go file; it has markdown, python, rust."]


# Modes


@pytest.mark.requirement("scout-modes")
def test_every_mode_finds_and_says_by_what(root: Path) -> None:
    encoder = FakeEncoder()
    build_index(root, encoder)
    uses: dict[Mode, tuple[bool, bool]] = {"lexical": (True, False), "dense": (False, True), "hybrid": (True, True)}
    for mode, (words, meaning) in uses.items():
        query = 'def load_config(path): """Read the settings."""'
        result = search(root, query, mode=mode, encoder=encoder)["results"][0]
        assert result["name"] == "load_config"
        assert (result["bm25_score"] is not None, result["cosine_similarity"] is not None) == (words, meaning)
    with pytest.raises(ArgumentError, match="lexical"):
        search(root, "read settings", mode="dense")


@pytest.mark.requirement("scout-embedding-content")
def test_the_encoder_sees_path_name_and_code_in_one_window(root: Path) -> None:
    encoder = FakeEncoder()
    build_index(root, encoder)
    passage = next(each for each in encoder.embedded if "douse" in each.context)
    assert passage.context == "src/lanterns.py Lantern.douse"
    assert passage.text == "    def douse(self):\n        return None"
    assert passage.windows == 1


# The disk


@pytest.mark.requirement("scout-changed-file")
def test_a_file_that_changed_is_left_out_with_a_warning(root: Path) -> None:
    build_index(root)
    (result,) = search(root, "read settings")["results"]
    write(root, {"src/lanterns.py": "#\n" * 10 + LANTERNS})
    response = search(root, "read settings")
    assert response["results"] == []
    (warning,) = response["warnings"]
    assert '"src/lanterns.py" changed since it was indexed' in warning
    with pytest.raises(ChangedFileError, match="changed"):
        read(root, result["id"])
    (root / "src/lanterns.py").unlink()
    assert '"src/lanterns.py" is gone' in search(root, "read settings")["warnings"][0]
    with pytest.raises(ChangedFileError, match="gone"):
        read(root, result["id"])


@pytest.mark.requirement("scout-containment")
@pytest.mark.parametrize("path", ["../secret.py", "/etc/hostname", "link.py", "folder/secret.py", "a/../../secret.py"])
def test_an_index_edited_by_hand_leads_nowhere_outside_the_root(tmp_path: Path, path: str) -> None:
    root = tmp_path / "project"
    write(tmp_path, {"secret.py": LANTERNS, "project/a.py": LANTERNS})
    build_index(root)
    (result,) = search(root, "read settings")["results"]
    (root / "link.py").symlink_to("../secret.py")
    (root / "folder").symlink_to("..")
    connection = sqlite3.connect(index_path(root))
    connection.execute("UPDATE files SET path = ?", (os.fsencode(path),))
    connection.execute("UPDATE facts SET value = ? WHERE name = 'root'", (f'"{tmp_path}"',))
    connection.commit()
    connection.close()
    response = search(root, "read settings")
    assert response["results"] == response["neighbors"] == []
    assert len(response["warnings"]) == 1
    with pytest.raises(ChangedFileError):
        read(root, result["id"])


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE candidates SET end_line = 4000",
        "UPDATE candidates SET start_line = 0",
        "UPDATE candidates SET start_line = -5, end_line = -1",
        "UPDATE candidates SET name = x'00'",
        "UPDATE candidates SET file = 77",
        "UPDATE files SET sha256 = 'text'",
        "UPDATE postings SET candidates = x'0102'",
        "UPDATE postings SET candidates = x'ffffffff'",
        "UPDATE columns SET data = x'00'",
        "DELETE FROM candidates",
        "DELETE FROM columns",
        "UPDATE edges SET target = target + 1000000",
        "UPDATE facts SET value = '{' WHERE name = 'snapshot'",
        "UPDATE facts SET value = '7' WHERE name = 'languages'",
        "DROP TABLE edges",
    ],
)
def test_a_damaged_index_is_said_or_does_no_harm(root: Path, statement: str) -> None:
    build_index(root)
    connection = sqlite3.connect(index_path(root))
    connection.execute(statement)
    connection.commit()
    connection.close()
    try:
        response = search(root, "read settings")
    except StorageError as error:
        assert str(index_path(root)) in str(error)  # noqa: PT017 - either is right
        return
    assert response["results"] or response["warnings"]
    for result in response["results"]:
        assert result["content"] == "\n".join(LANTERNS.splitlines()[result["start_line"] - 1 : result["end_line"]])


# Lines and characters


@pytest.mark.requirement("scout-lines")
@pytest.mark.parametrize(
    "above", ["# 🏮🏮 灯台 é\n", "\ufeff# mark\n", "# a\x0cb\u2028c\x85d\n", "# mac\r", "# dos\r\n# dos\r\n"]
)
@pytest.mark.parametrize("name", ["a.py", "a.js", "a.md"])
def test_lines_are_those_of_an_editor(tmp_path: Path, above: str, name: str) -> None:
    body = {
        "a.py": "def lantern():\n    return 'oil'\n",
        "a.js": "function lantern() {\n  return 'oil' }\n",
        "a.md": "lantern\noil\n",
    }[name]
    above = above.replace("#", "//") if name.endswith("js") else above
    write(tmp_path, {name: above + "\n" + body})
    build_index(tmp_path)
    (result,) = search(tmp_path, "lantern", include_docs=True, top_k=1)["results"]
    text = (tmp_path / name).read_bytes().decode().removeprefix("\ufeff")
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    assert result["content"] == "\n".join(lines[result["start_line"] - 1 : result["end_line"]])
    assert result["content"].endswith(body.rstrip("\n"))


# Budget


@pytest.mark.requirement("scout-truncation")
def test_truncation_is_at_a_line_and_is_said(root: Path) -> None:
    write(root, {"src/long.py": LONG})
    build_index(root)
    (result,) = search(root, "long_lantern", top_k=1, max_chars=200)["results"]
    assert result["truncated"]
    assert len(result["content"]) <= 200
    assert result["content"] == "\n".join(LONG.split("\n")[: result["end_line"]])
    assert result["reference"] == f"src/long.py:1-{result['end_line']}"
    whole = read(root, result["id"])
    assert (whole["truncated"], whole["content"]) == (False, LONG.rstrip("\n"))


@pytest.mark.requirement("scout-long-line")
def test_a_first_line_longer_than_the_budget_is_reported(tmp_path: Path) -> None:
    write(tmp_path, {"bundle.js": "var beacon = '" + "x" * 5_000 + "';\n", "a.py": LANTERNS})
    build_index(tmp_path)
    response = search(tmp_path, "beacon", max_chars=1_000)
    assert response["results"] == []
    (warning,) = response["warnings"]
    assert '"bundle.js:1" has a line of 5,016 characters' in warning
    (result,) = search(tmp_path, "beacon")["results"]
    with pytest.raises(ArgumentError, match="5,016 characters"):
        read(tmp_path, result["id"], max_chars=1_000)


# Reading


@pytest.mark.requirement("scout-read")
@pytest.mark.parametrize("symbol_id", ["zzz", "0" * 16, "f" * 16, "src/lanterns.py", "../../etc/passwd", "0" * 17])
def test_what_is_no_id_of_the_index_is_an_error(root: Path, symbol_id: str) -> None:
    build_index(root)
    with pytest.raises(NotFoundError, match="no id of this index"):
        read(root, symbol_id)


@pytest.mark.requirement("scout-read")
def test_an_id_lives_as_long_as_its_file_is_the_same(root: Path) -> None:
    build_index(root)
    (before,) = search(root, "read settings")["results"]
    write(root, {"src/another.py": "def another():\n    return 0\n"})
    build_index(root)
    assert read(root, before["id"])["content"] == before["content"]


@pytest.mark.requirement("scout-query-plain")
@pytest.mark.parametrize(
    "query", ['"load" AND config*', "load_config(", "NEAR(load config)", "<|endoftext|> load_config", "load' OR 1=1 --"]
)
def test_a_query_is_words_and_never_syntax(root: Path, query: str) -> None:
    build_index(root)
    assert "load_config" in names(search(root, query))


def test_a_search_reads_no_symbol_but_those_it_returns(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(root, {f"src/more{number}.py": LANTERNS.replace("settings", f"word{number}") for number in range(40)})
    build_index(root)
    asked: list[int] = []
    original = Snapshot.entry

    def entry(self: Snapshot, position: int) -> Entry:
        asked.append(position)
        return original(self, position)

    monkeypatch.setattr(Snapshot, "entry", entry)
    assert names(search(root, "word17", top_k=1, expand=False)) == ["load_config"]
    assert len(asked) == 1


@pytest.mark.parametrize("mode", ["lexical", "dense", "hybrid"])
@pytest.mark.parametrize(("query", "language"), [("!!!", None), ("lantern", "go"), ("灯台 🏮", None)])
def test_a_query_that_finds_nothing_is_an_answer(root: Path, mode: Mode, query: str, language: str | None) -> None:
    encoder = FakeEncoder()
    build_index(root, encoder)
    response = search(root, query, mode=mode, encoder=encoder, language=language)
    if mode == "lexical" or language == "go":
        assert response["results"] == []


@pytest.mark.parametrize("mode", ["lexical", "dense", "hybrid"])
def test_an_index_without_a_symbol_answers(tmp_path: Path, mode: Mode) -> None:
    write(tmp_path, {"empty.py": "", "blank.rs": " \n\n"})
    encoder = FakeEncoder()
    assert build_index(tmp_path, encoder).symbols == 0
    assert search(tmp_path, "lantern", mode=mode, encoder=encoder)["results"] == []


def test_tests_stand_behind_what_they_test_unless_they_are_asked_for(tmp_path: Path) -> None:
    code = "def fire_lantern(oil):\n    return oil\n"
    test = "def check_lantern(oil):\n    return oil or lantern\n"
    other = {f"src/other{number}.py": f"def other{number}():\n    return {number}\n" for number in range(9)}
    write(tmp_path, {"src/a.py": code, "tests/test_a.py": test, **other})
    build_index(tmp_path)
    assert paths(search(tmp_path, "lantern oil")) == ["src/a.py", "tests/test_a.py"]
    assert paths(search(tmp_path, "test lantern oil"))[0] == "tests/test_a.py"


def test_results_stand_in_the_order_of_their_scores(tmp_path: Path) -> None:
    write(tmp_path, {f"part{number}.py": LANTERNS.replace("oil", f"oil{number}") for number in range(5)})
    build_index(tmp_path)
    scores = [each["score"] for each in search(tmp_path, "lantern oil3 settings", top_k=20)["results"]]
    assert len(scores) > 5
    assert scores == sorted(scores, reverse=True)
