"""Nothing is fetched and nobody can connect: search works where there is no network and no PyTorch."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.oracle import PATIENCE_SECONDS
from tests.processes.mcp_client import connected
from tests.processes.programs import printed, running, startup_hook
from tests.repositories import GitRepository
from tests.waiting import eventually

FILES = {"README.md": "# Harbour\n\nThe harbour opens at dawn.\n", "docs/x.md": "# Valves\n\nClosed at night.\n"}

# Any use of an internet address, and any library that could fetch a model, ends the program.
OFFLINE = """
import os, socket, sys

REFUSED = (socket.AF_INET, socket.AF_INET6)

class Socket(socket.socket):
    def __init__(self, family=-1, *rest, **named):
        if family in REFUSED or (family == -1 and named.get("fileno") is None):
            os.write(2, b"a socket of the internet\\n")
            os._exit(70)
        super().__init__(family, *rest, **named)

def refuse(*_, **__):
    os.write(2, b"a name of the internet\\n")
    os._exit(70)

socket.socket = Socket
socket.getaddrinfo = socket.create_connection = socket.gethostbyname = refuse

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name in ("torch", "transformers", "sentence_transformers", "huggingface_hub", "requests", "urllib3"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
"""


@pytest.mark.requirement("no-network")
@pytest.mark.requirement("encoder-builtin")
def test_a_search_needs_no_network_and_no_torch(git_repository: Callable[..., GitRepository], tmp_path: Path) -> None:
    root = git_repository(FILES).path
    environment = startup_hook(tmp_path / "hook", OFFLINE)
    said = printed(
        "search", "when may ships come in", "-k", "1", "--mode", "semantic", cwd=root, environment=environment
    )
    assert "The harbour opens at dawn." in said


@pytest.mark.requirement("no-network")
@pytest.mark.requirement("encoder-builtin")
def test_a_server_needs_no_network_and_no_torch(git_repository: Callable[..., GitRepository], tmp_path: Path) -> None:
    root = git_repository(FILES).path
    environment = startup_hook(tmp_path / "hook", OFFLINE)
    with connected(cwd=root, environment=environment, log=tmp_path / "log") as client:
        client.await_complete()
        assert client.hits("when may ships come in", mode="semantic", k=1)[0].path == "README.md"
        (root / "new.md").write_text("# New\n\nA quinquereme.\n")
        eventually(lambda: client.hits("quinquereme", mode="keyword"), PATIENCE_SECONDS, "the new file")
    assert (tmp_path / "log").read_text() == ""


@pytest.mark.requirement("no-network")
def test_a_writer_listens_on_nothing_but_its_unix_socket(
    git_repository: Callable[..., GitRepository], log: Path, runtime_folder: Path
) -> None:
    if not Path("/proc/net/tcp").exists():
        pytest.skip("this system does not show a process's sockets")
    root = git_repository(FILES).path
    with running("watch", cwd=root, log=log) as writer:
        eventually(lambda: len(writer.log()) == 2, PATIENCE_SECONDS, "the first sync")
        assert list((runtime_folder / "scree").glob("*.sock"))
        assert (runtime_folder / "scree").stat().st_mode & 0o777 == 0o700
        own = {os.readlink(link) for link in Path(f"/proc/{writer.pid}/fd").iterdir()}
        internet = {
            f"socket:[{line.split()[9]}]"
            for table in ("tcp", "tcp6", "udp", "udp6")
            if (path := Path(f"/proc/{writer.pid}/net/{table}")).exists()
            for line in path.read_text().splitlines()[1:]
        }
        assert any(name.startswith("socket:") for name in own)
        assert own.isdisjoint(internet)
