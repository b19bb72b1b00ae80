"""A running `scree serve`, seen from outside: its client, its memory, its processor time."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import mcp.types as types
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

from scree.docs.lease import INDEX_FOLDER, WriterLease

# The longest that anything is waited for: a first sync of the largest corpus on a slow machine takes minutes.
PATIENCE_SECONDS = 1_800.0

INCOMPLETE = "[index incomplete"


class Server:
    """One server of one root, and the official client that talks to it.

    Attributes:
        pid: of the process that writes the index, which is the server.
    """

    def __init__(self, root: Path, client: ClientSession) -> None:
        self._lease = WriterLease(root / INDEX_FOLDER)
        self._client = client

    async def search(self, query: str, mode: str = "hybrid", k: int = 8) -> str:
        """Return what `search_docs` answers.

        Raises:
            RuntimeError: the answer is an error.
        """
        result = await self._client.call_tool("search_docs", {"query": query, "mode": mode, "k": k})
        text = "".join(part.text for part in result.content if isinstance(part, types.TextContent))
        if result.isError:
            raise RuntimeError(text)
        return text

    async def found(self, text: str, query: str, mode: str = "hybrid", *, pause: float) -> float:
        """Search until the answer holds `text`; returns the time at which it did, in `time.perf_counter` seconds.

        Raises:
            TimeoutError: it never did.
        """
        with anyio.fail_after(PATIENCE_SECONDS):
            while text not in await self.search(query, mode):
                await anyio.sleep(pause)
        return time.perf_counter()

    async def completed(self) -> float:
        """Search now and then until the index is complete; returns the time as above."""
        with anyio.fail_after(PATIENCE_SECONDS):
            while INCOMPLETE in await self.search("what is this"):
                await anyio.sleep(0.5)
        return time.perf_counter()

    @property
    def pid(self) -> int:  # noqa: D102 - described above
        pid = self._lease.holder()
        assert pid is not None
        return pid

    def peak_bytes(self) -> int | None:
        """Return the most memory that was resident at any time; None where the system does not tell."""
        found = re.search(r"^VmHWM:\s*(\d+) kB", _read(f"/proc/{self.pid}/status"), re.MULTILINE)
        return int(found[1]) * 1024 if found else None

    def processor_seconds(self) -> float | None:
        """Return the processor time used so far; None where the system does not tell."""
        return processor_seconds(self.pid)


def processor_seconds(pid: int) -> float | None:
    """Return the processor time that a process has used so far; None where the system does not tell."""
    # proc(5): fields 14 and 15 are user and system time; the name, which may hold anything, ends with a bracket.
    fields = _read(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") if fields else None


@asynccontextmanager
async def serving(root: Path) -> AsyncIterator[Server]:
    """Start a server for `root`, yield it after the handshake, end it."""
    command, *arguments = serve_command(root)
    async with (
        stdio_client(StdioServerParameters(command=command, args=arguments)) as streams,
        ClientSession(*streams) as client,
    ):
        await client.initialize()
        yield Server(root, client)


def seconds_to_initialize(root: Path) -> float:
    """Return the seconds from the start of a server to its answer to `initialize`."""
    request = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": types.LATEST_PROTOCOL_VERSION,
            "capabilities": {},
            "clientInfo": {"name": "benchmark", "version": "1"},
        },
    }
    started = time.perf_counter()
    with subprocess.Popen(
        serve_command(root), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        print(json.dumps(request), file=process.stdin, flush=True)
        answer = process.stdout.readline()
        seconds = time.perf_counter() - started
        process.stdin.close()
        process.wait()
    if "serverInfo" not in answer:
        raise RuntimeError(f"The server did not answer `initialize` but said: {answer!r}")
    return seconds


def seconds_to_import(module: str) -> float:
    """Return the seconds that a new Python takes to import `module` and end."""
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", f"import {module}"], check=True)
    return time.perf_counter() - started


def serve_command(root: Path) -> list[str]:
    """Return what a client runs: the script beside this Python."""
    return [str(Path(sys.executable).with_name("scree-mcp")), "--root", str(root)]


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return ""
