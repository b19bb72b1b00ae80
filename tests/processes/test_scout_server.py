"""The MCP server of micro-scout, through the official client over real stdio."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mcp.types as types
import pytest

from tests.processes.mcp_client import Client, connected
from tests.processes.scout_programs import SCOUT, failure, result
from tests.scout.indexed_tree import LANTERNS, build_index, index_path, write

SERVE = (*SCOUT, "serve")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    write(root, {"src/lanterns.py": LANTERNS})
    build_index(root)
    return root


@pytest.fixture
def client(root: Path) -> Iterator[Client]:
    with connected(cwd=root, command=SERVE) as client:
        yield client


def call(client: Client, tool: str, **arguments: Any) -> tuple[dict[str, Any], str]:
    """Call a tool that must succeed; returns the structured content and the one text block."""
    answer = client.result(tool, arguments)
    (content,) = answer.content
    assert isinstance(content, types.TextContent)
    assert not answer.isError, content.text
    assert answer.structuredContent is not None
    return answer.structuredContent, content.text


def error(client: Client, tool: str, **arguments: Any) -> str:
    """Call a tool that must answer with a tool error; returns its sentence."""
    answer = client.result(tool, arguments)
    (content,) = answer.content
    assert isinstance(content, types.TextContent)
    assert answer.isError, content.text
    return content.text


@pytest.mark.requirement("scout-mcp-handshake")
def test_the_handshake_says_what_the_tools_are_for(client: Client) -> None:
    assert client.handshake.serverInfo.name == "micro-scout"
    instructions = client.handshake.instructions or ""
    for said in ("scout_search", "untrusted data", "never", "not probabilities", "micro-scout index"):
        assert said in instructions


@pytest.mark.requirement("scout-mcp-tools")
def test_three_tools_are_there_all_read_only(client: Client) -> None:
    tools = client.tools()
    assert sorted(tools) == ["scout_read", "scout_search", "scout_status"]
    for tool in tools.values():
        assert tool.annotations is not None
        assert tool.annotations.readOnlyHint
        assert tool.inputSchema["additionalProperties"] is False
    assert "path" not in tools["scout_read"].inputSchema["properties"]


@pytest.mark.requirement("scout-mcp-structured")
def test_a_search_is_structured_and_renders_as_text(client: Client) -> None:
    response, text = call(client, "scout_search", query="douse")
    (found, *_) = response["results"]
    assert found["name"] == "Lantern.douse"
    assert text.startswith(f"{found['reference']} method Lantern.douse (id {found['id']})\n{found['content']}")
    read, text = call(client, "scout_read", symbol_id=found["id"])
    assert read["content"] == found["content"]
    assert found["content"] in text
    status, text = call(client, "scout_status")
    assert status["snapshot"] == response["snapshot"]
    assert f"snapshot: {status['snapshot']}" in text


@pytest.mark.requirement("scout-mcp-arguments")
@pytest.mark.parametrize(
    ("tool", "arguments", "named"),
    [
        ("scout_search", {}, "query is required: from 1 to 8,000 characters"),
        ("scout_search", {"query": ""}, "query must not be empty"),
        ("scout_search", {"query": "x" * 8_001}, "query must have at most 8,000 characters"),
        ("scout_search", {"query": 7}, "query must be text"),
        ("scout_search", {"query": "x", "top_k": 51}, "top_k must be a whole number from 1 to 50"),
        ("scout_search", {"query": "x", "top_k": True}, "top_k must be a whole number from 1 to 50"),
        ("scout_search", {"query": "x", "max_chars": 100_001}, "max_chars must be a whole number from 100 to 100,000"),
        ("scout_search", {"query": "x", "language": "klingon"}, "language must be one of"),
        ("scout_search", {"query": "x", "include_docs": "yes"}, "include_docs must be true or false"),
        ("scout_search", {"query": "x", "mode": "dense"}, "mode must be lexical"),
        ("scout_search", {"query": "x", "mode": "psychic"}, "mode must be one of lexical, dense, hybrid"),
        ("scout_search", {"query": "x", "expand": False}, "'expand' is not an argument"),
        ("scout_read", {"symbol_id": "../../etc/passwd"}, "no id of this index"),
        ("scout_read", {"path": "src/lanterns.py"}, "'path' is not an argument"),
        ("scout_status", {"verbose": True}, "'verbose' is not an argument"),
        ("scout_feedback", {"request_id": "x", "useful_ids": [], "outcome": "helpful"}, "--trace"),
        ("scout_dance", {}, "no tool"),
    ],
)
def test_a_wrong_argument_is_a_tool_error_that_names_it(
    client: Client, tool: str, arguments: dict[str, Any], named: str
) -> None:
    assert named in error(client, tool, **arguments)
    assert call(client, "scout_search", query="douse")[0]["results"]


@pytest.mark.requirement("scout-reload")
def test_a_replaced_index_is_taken_up_between_requests(client: Client, root: Path) -> None:
    before, _ = call(client, "scout_search", query="douse")
    write(root, {"src/new.py": "def kindle():\n    return 1\n"})
    build_index(root)
    after, _ = call(client, "scout_search", query="kindle")
    assert [found["name"] for found in after["results"]] == ["kindle"]
    (warning,) = after["warnings"]
    assert f"the loaded snapshot {before['snapshot']} was built" in warning
    assert after["snapshot"] in warning
    assert call(client, "scout_search", query="kindle")[0]["warnings"] == []


@pytest.mark.requirement("scout-reload")
def test_an_index_that_is_gone_or_unusable_goes_on_answering_with_a_warning(client: Client, root: Path) -> None:
    call(client, "scout_search", query="douse")
    content = index_path(root).read_bytes()
    index_path(root).unlink()
    response, _ = call(client, "scout_search", query="douse")
    assert response["results"]
    assert "The index file is gone" in response["warnings"][0]
    index_path(root).write_bytes(b"garbage" * 1_000)
    response, _ = call(client, "scout_search", query="douse")
    assert response["results"]
    assert "cannot be used" in response["warnings"][0]
    index_path(root).write_bytes(content)
    assert call(client, "scout_search", query="douse")[0]["warnings"] == []


@pytest.mark.requirement("scout-command-serve")
def test_a_server_without_an_index_fails_at_once(tmp_path: Path) -> None:
    assert failure("serve", cwd=tmp_path)["type"] == "NoIndexError"


@pytest.mark.requirement("scout-trace")
@pytest.mark.requirement("scout-feedback")
def test_searches_and_feedback_are_traced_without_source(root: Path) -> None:
    trace = root / "trace.jsonl"
    with connected("--trace", str(trace), cwd=root, command=SERVE) as client:
        tool = client.tools()["scout_feedback"]
        assert tool.annotations is not None
        assert tool.annotations.readOnlyHint is False
        response, _ = call(client, "scout_search", query="read settings")
        (found,) = response["results"]
        (neighbour,) = response["neighbors"]
        said = {"request_id": response["request_id"], "outcome": "helpful"}
        assert call(client, "scout_feedback", useful_ids=[found["id"]], **said)[0] == {"recorded": True}
        assert "not" in error(client, "scout_feedback", useful_ids=["f" * 16], **said)
        assert "request_id" in error(client, "scout_feedback", useful_ids=[], request_id="other", outcome="unknown")
        assert "outcome" in error(
            client, "scout_feedback", useful_ids=[], request_id=response["request_id"], outcome="great"
        )
        assert "useful_ids" in error(client, "scout_feedback", useful_ids="all", **said)
    searched, fed_back = map(json.loads, trace.read_text().splitlines())
    assert searched.keys() == {
        "schema_version", "time", "event", "request_id", "query", "mode", "filters", "snapshot", "model_fingerprint",
        "latency_ms", "returned_ids", "neighbor_ids",
    }  # fmt: skip
    assert (searched["event"], searched["returned_ids"]) == ("search", [found["id"]])
    assert searched["neighbor_ids"] == [neighbour["id"]]
    assert fed_back["event"] == "feedback"
    assert {name: fed_back[name] for name in ("request_id", "useful_ids", "outcome", "snapshot")} == {
        "request_id": response["request_id"],
        "useful_ids": [found["id"]],
        "outcome": "helpful",
        "snapshot": response["snapshot"],
    }
    assert "json.load" not in trace.read_text()


@pytest.mark.requirement("scout-trace")
def test_a_trace_is_appended_to_and_an_unwritable_one_fails_at_start(root: Path) -> None:
    trace = root / "trace.jsonl"
    for _ in range(2):
        result("search", "douse", "--trace", str(trace), cwd=root)
    assert len(trace.read_text().splitlines()) == 2
    failed = failure("serve", "--trace", str(root / "missing" / "trace.jsonl"), cwd=root)
    assert (failed["type"], "--trace" in failed["error"]) == ("ArgumentError", True)


@pytest.mark.requirement("scout-command-serve")
def test_the_encoder_stays_loaded_and_every_mode_answers(root: Path) -> None:
    result("index", ".", cwd=root)
    with connected(cwd=root, command=SERVE) as client:
        for mode in ("lexical", "dense", "hybrid"):
            response, _ = call(client, "scout_search", query="put out the light", mode=mode)
            assert response["mode"] == mode
            assert response["model_fingerprint"]
