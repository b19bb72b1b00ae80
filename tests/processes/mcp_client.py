"""The official MCP client, for tests that are not asynchronous, and a reader of search results."""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TextIO

import mcp.types as types
from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

from tests.processes.programs import NOTHING, SCREE
from tests.waiting import eventually

ANSWER_SECONDS = 30.0

HIT = re.compile(
    r'<hit n="(?P<n>\d+)" path="(?P<path>[^"]*)" (?:lines="(?P<lines>[^"]*)"|(?P<stale>stale="true")) '
    r'heading="(?P<heading>[^"]*)"(?: score="(?P<score>-?[01]\.\d{3})")?(?: also="(?P<also>[^"]*)")?>\n'
    r"(?P<text>.*?)\n</hit>",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Found:
    """A hit as it was printed."""

    n: int
    path: str
    lines: str | None
    heading: str
    score: float | None
    also: str | None
    text: str


def found(response: str) -> list[Found]:
    """Return the hits of a response."""
    return [
        Found(
            int(match["n"]),
            match["path"],
            match["lines"],
            match["heading"],
            None if match["score"] is None else float(match["score"]),
            match["also"],
            match["text"],
        )
        for match in HIT.finditer(response)
    ]


def note(response: str) -> str | None:
    """Return the status note that a response ends with, if any."""
    last = response.rsplit("\n", 1)[-1]
    return last if last.startswith("[") and last.endswith("]") else None


class Client:
    """One session of the official client with one server. May be used from several threads."""

    def __init__(self, portal: BlockingPortal, session: ClientSession, handshake: types.InitializeResult) -> None:
        self.handshake = handshake
        self._portal = portal
        self._session = session

    def tools(self) -> dict[str, types.Tool]:
        """List the tools by name."""
        return {tool.name: tool for tool in self._portal.call(self._session.list_tools).tools}

    def result(self, tool: str, arguments: Mapping[str, object]) -> types.CallToolResult:
        """Call a tool."""
        result: types.CallToolResult = self._portal.call(self._session.call_tool, tool, dict(arguments))
        return result

    def call(self, tool: str, **arguments: object) -> str:
        """Call a tool that must succeed; returns its text."""
        result = self.result(tool, arguments)
        text = only_text(result)
        assert not result.isError, text
        return text

    def error(self, tool: str, **arguments: object) -> str:
        """Call a tool that must answer with a tool error; returns its text."""
        result = self.result(tool, arguments)
        text = only_text(result)
        assert result.isError, text
        return text

    def search(self, query: str, **arguments: object) -> str:
        """Call `search_docs`."""
        return self.call("search_docs", query=query, **arguments)

    def hits(self, query: str, **arguments: object) -> list[Found]:
        """Call `search_docs`; returns the hits."""
        return found(self.search(query, **arguments))

    def await_complete(self) -> None:
        """Wait until searches come without a status note."""
        eventually(lambda: note(self.search("complete", mode="keyword")) is None, ANSWER_SECONDS, "a complete index")


def only_text(result: types.CallToolResult) -> str:
    """Return the text of a result that holds one text and nothing else."""
    (content,) = result.content
    assert isinstance(content, types.TextContent)
    assert result.structuredContent is None
    return content.text


@contextmanager
def connected(
    *arguments: str,
    cwd: Path,
    environment: Mapping[str, str] = NOTHING,
    log: Path | None = None,
    command: tuple[str, ...] = (*SCREE, "serve"),
) -> Iterator[Client]:
    """Start a server and connect to it.

    Args:
        arguments: added to the command.
        cwd: the working folder of the server.
        environment: what is set besides the test's own.
        log: where its stderr goes.
        command: what is started.
    """
    program, *rest = command
    parameters = StdioServerParameters(
        command=program, args=[*rest, *arguments], env={**os.environ, **environment}, cwd=cwd
    )
    with (
        (log or Path(os.devnull)).open("w", encoding="utf-8") as stderr,
        start_blocking_portal("asyncio") as portal,
        portal.wrap_async_context_manager(_session(parameters, stderr)) as (session, handshake),
    ):
        yield Client(portal, session, handshake)


@asynccontextmanager
async def _session(
    parameters: StdioServerParameters, stderr: TextIO
) -> AsyncIterator[tuple[ClientSession, types.InitializeResult]]:
    async with (
        stdio_client(parameters, stderr) as (incoming, outgoing),
        ClientSession(incoming, outgoing, read_timeout_seconds=timedelta(seconds=ANSWER_SECONDS)) as session,
    ):
        yield session, await session.initialize()
