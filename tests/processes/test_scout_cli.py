"""The `micro-scout` program from a terminal: JSON on stdout, one JSON line on stderr for whatever fails."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.processes.scout_programs import failure, result, scout
from tests.scout.indexed_tree import LANTERNS, index_path, write


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    write(root, {"src/lanterns.py": LANTERNS, "README.md": "# Lanterns\n"})
    return root


@pytest.fixture
def indexed(root: Path) -> Path:
    result("index", ".", "--model", "none", cwd=root)
    return root


@pytest.mark.requirement("scout-command-index")
def test_index_builds_a_snapshot_in_the_projects_own_folder(root: Path) -> None:
    facts = result("index", str(root), "--model", "none", cwd=root.parent)
    assert facts["index"] == str(index_path(root))
    assert (facts["files"], facts["languages"]) == (2, {"markdown": 1, "python": 1})
    assert (index_path(root).parent / ".gitignore").read_text() == "*\n"
    assert (
        result("index", str(root), "--model", "none", "--output", "other.sqlite", cwd=root.parent)["snapshot"]
        == (facts["snapshot"])
    )
    assert result("search", "douse", "--index", "other.sqlite", cwd=root.parent)["results"]


@pytest.mark.requirement("scout-command-index")
@pytest.mark.requirement("scout-model-choice")
def test_the_builtin_model_is_the_default_and_is_used_again(root: Path) -> None:
    facts = result("index", ".", cwd=root)
    assert (facts["model"], facts["dimension"], facts["embedded"]) == ("builtin", 384, facts["symbols"])
    again = result("index", ".", cwd=root)
    assert (again["embedded"], again["reused"]) == (0, facts["symbols"])
    response = result("search", "how to put out a light", cwd=root)
    assert response["mode"] == result("status", cwd=root)["default_mode"] != "lexical"
    assert response["model_fingerprint"] == facts["model_fingerprint"]
    assert result("search", "douse", "--model", "none", cwd=root)["mode"] == "lexical"
    assert failure("search", "x", "--model", "none", "--mode", "dense", cwd=root)["type"] == "ArgumentError"


@pytest.mark.requirement("scout-command-search")
def test_search_prints_a_response(indexed: Path) -> None:
    response = result("search", "douse", "--top-k", "1", "--no-expand", "--language", "python", cwd=indexed)
    assert response.keys() == {
        "request_id", "query", "mode", "snapshot", "model_fingerprint", "filters", "results", "neighbors", "warnings",
        "returned_chars", "latency_ms",
    }  # fmt: skip
    assert response["mode"] == "lexical"
    assert response["filters"] == {"language": "python", "include_docs": False}
    assert [each["name"] for each in response["results"]] == ["Lantern.douse"]
    assert response["neighbors"] == []


@pytest.mark.requirement("scout-command-read")
def test_read_prints_a_symbol(indexed: Path) -> None:
    (found,) = result("search", "douse", "--top-k", "1", cwd=indexed)["results"]
    read = result("read", found["id"], cwd=indexed)
    assert (read["content"], read["verified"]) == (found["content"], True)
    assert failure("read", "nothing", cwd=indexed)["type"] == "NotFoundError"


@pytest.mark.requirement("scout-command-status")
def test_status_describes_the_index(indexed: Path) -> None:
    status = result("status", cwd=indexed)
    assert status["root"] == str(indexed)
    assert (status["files"], status["model"], status["dimension"]) == (2, None, None)
    assert (status["default_mode"], status["reused_embeddings"], status["skipped"]) == ("lexical", 0, [])


@pytest.mark.requirement("scout-failure-line")
@pytest.mark.parametrize(
    ("arguments", "kind", "named"),
    [
        ((), "ArgumentError", "COMMAND"),
        (("frobnicate",), "ArgumentError", "frobnicate"),
        (("search",), "ArgumentError", "QUERY"),
        (("search", "x", "--top-k", "many"), "ArgumentError", "--top-k"),
        (("search", "x", "--top-k", "0"), "ArgumentError", "top_k must be a whole number from 1 to 50"),
        (("search", "x", "--max-chars", "99"), "ArgumentError", "max_chars must be a whole number from 100 to 100,000"),
        (("search", "x" * 8_001), "ArgumentError", "8,000"),
        (("search", " "), "ArgumentError", "query must not be empty"),
        (("search", "x", "--mode", "psychic"), "ArgumentError", "lexical, dense, hybrid"),
        (("search", "x", "--language", "klingon"), "ArgumentError", "python"),
        (("search", "x", "--device", "cuda"), "ArgumentError", "cpu"),
        (("search", "x", "--model", "builtin"), "ModelMismatchError", "without a model"),
        (("search", "x", "--model", "missing"), "ModelMismatchError", "without a model"),
        (("search", "x", "--index", "missing.sqlite"), "NoIndexError", "micro-scout index"),
        (("search", "x", "--trace", "missing/trace.jsonl"), "ArgumentError", "--trace"),
        (("index", "missing"), "RootError", "missing"),
        (("index", ".", "--model", "missing"), "EncoderError", "missing"),
        (("index", ".", "--model", "none", "--max-symbols", "2"), "ArgumentError", "--max-symbols"),
        (("index", ".", "--threads", "0"), "ArgumentError", "--threads"),
        (("benchmark", "--queries", "missing"), "ArgumentError", "--queries"),
    ],
)
def test_a_failure_is_one_json_line_and_status_2(
    indexed: Path, arguments: tuple[str, ...], kind: str, named: str
) -> None:
    failed = failure(*arguments, cwd=indexed)
    assert failed["type"] == kind
    assert named in failed["error"]


@pytest.mark.requirement("scout-model-fingerprint")
def test_another_model_than_the_indexs_is_an_error_that_says_to_rebuild(root: Path, tmp_path: Path) -> None:
    from scree.core.encoder import BUILTIN_FOLDER

    other = tmp_path / "other"
    other.mkdir()
    for file in BUILTIN_FOLDER.iterdir():
        (other / file.name).symlink_to(file)
    manifest = json.loads((other / "encoder.json").read_bytes())
    (other / "encoder.json").unlink()
    (other / "encoder.json").write_text(json.dumps(manifest | {"query_prefix": "query: "}))
    result("index", ".", cwd=root)
    failed = failure("search", "x", "--model", str(other), cwd=root)
    assert (failed["type"], "build it again" in failed["error"]) == ("ModelMismatchError", True)


@pytest.mark.requirement("scout-model-choice")
def test_a_models_own_default_mode_counts(root: Path, tmp_path: Path) -> None:
    from scree.core.encoder import BUILTIN_FOLDER

    other = tmp_path / "other"
    other.mkdir()
    for file in BUILTIN_FOLDER.iterdir():
        (other / file.name).symlink_to(file)
    manifest = json.loads((other / "encoder.json").read_bytes())
    (other / "encoder.json").unlink()
    (other / "encoder.json").write_text(json.dumps(manifest | {"default_mode": "dense"}))
    result("index", ".", "--model", str(other), cwd=root)
    assert result("search", "put out the light", cwd=root)["mode"] == "dense"


@pytest.mark.requirement("scout-command-benchmark")
def test_benchmark_measures_warm_searches(indexed: Path) -> None:
    (indexed / "queries.txt").write_text("douse\n\nread the settings\n")
    measured = result(
        "benchmark", "--iterations", "20", "--queries", "queries.txt", "--output", "out.json", cwd=indexed
    )
    assert measured == json.loads((indexed / "out.json").read_text())
    assert (measured["iterations"], measured["queries"]) == (20, 2)
    assert 0 < measured["min_ms"] <= measured["median_ms"] <= measured["p95_ms"] <= measured["max_ms"]
    assert measured["startup_ms"] > 0
    assert result("benchmark", "--iterations", "1", cwd=indexed)["queries"] > 1


def test_nothing_is_written_beside_the_index_by_reading_it(indexed: Path) -> None:
    before = sorted(path.name for path in index_path(indexed).parent.iterdir())
    result("search", "douse", cwd=indexed)
    result("status", cwd=indexed)
    assert (
        sorted(path.name for path in index_path(indexed).parent.iterdir()) == before == [".gitignore", "index.sqlite"]
    )


def test_help_and_version_are_answered(tmp_path: Path) -> None:
    assert "benchmark" in scout("--help", cwd=tmp_path).stdout
    assert scout("--version", cwd=tmp_path).stdout.startswith("micro-scout ")
