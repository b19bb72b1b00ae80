"""Sessions driven line by line, for tests that have to know the process or what it is sent at which moment."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.processes.programs import NOTHING, SCREE, Program, running

CLIENT = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
HANDSHAKE = (
    json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": CLIENT}).encode(),
    json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}).encode(),
)
LIST_TOOLS = json.dumps({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}).encode()


def call(number: int, tool: str, **arguments: object) -> bytes:
    params = {"name": tool, "arguments": arguments}
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}).encode()


def answer(program: Program, number: int) -> dict[str, object]:
    """Read up to the answer to request `number`; every line on the way must be the protocol's."""
    while True:
        line = program.line()
        assert line, "\n".join(program.log())
        message = json.loads(line)
        assert message["jsonrpc"] == "2.0"
        if message.get("id") == number:
            assert isinstance(message, dict)
            return message


def text_of(message: dict[str, object]) -> str:
    result = message["result"]
    assert isinstance(result, dict)
    text: str = result["content"][0]["text"]
    return text


class RawSession:
    """One session of `scree serve` after its handshake."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._numbers = itertools.count(2)
        program.send(*HANDSHAKE)
        answer(program, 1)

    @property
    def pid(self) -> int:
        return self.program.pid

    def ask(self, tool: str, **arguments: object) -> int:
        """Send a call without waiting; returns its number."""
        number = next(self._numbers)
        self.program.send(call(number, tool, **arguments))
        return number

    def text(self, number: int) -> str:
        """Wait for the answer to a call; returns its text."""
        return text_of(answer(self.program, number))

    def search(self, query: str, **arguments: object) -> str:
        """Search and wait for the answer."""
        return self.text(self.ask("search_docs", query=query, **arguments))


@contextmanager
def raw_session(
    cwd: Path, log: Path, environment: Mapping[str, str] = NOTHING, command: tuple[str, ...] = SCREE
) -> Iterator[RawSession]:
    """Start a session; it is killed at the end, if it still runs."""
    with running("serve", cwd=cwd, log=log, environment=environment, command=command) as program:
        yield RawSession(program)
