"""Many sessions in one repository: one writes, all answer, and whatever happens to the writer, nobody notices."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from scree.docs.channel import Listener, Message, Send, socket_path
from scree.docs.contact import ChannelError
from scree.docs.lease import INDEX_FOLDER, WriterLease
from tests.oracle import PATIENCE_SECONDS, await_equal_to_fresh, content
from tests.processes.conftest import SLOW, SLOW_FILES
from tests.processes.mcp_client import Client, connected, found, note
from tests.processes.programs import SCREE, Program, printed, running
from tests.processes.raw_session import HANDSHAKE, RawSession, answer, call, raw_session
from tests.repositories import GitRepository
from tests.waiting import eventually

FILES = {f"docs/{n}.md": f"# Part {n}\n\nThe zephyr blows.\n\nunique{n}\n" for n in range(6)}

# The contract's own range ends here; what a session needs is measured in benchmarks/docs_sessions.py.
SMALL_BYTES = 19_000_000


@pytest.fixture
def root(git_repository: Callable[..., GitRepository]) -> Path:
    return git_repository(FILES).path


@contextmanager
def sessions(root: Path, count: int, logs: Path) -> Iterator[list[RawSession]]:
    """Start sessions one after the other; the first one writes."""
    with ExitStack() as stack:
        started: list[RawSession] = []
        for number in range(count):
            started.append(stack.enter_context(raw_session(cwd=root, log=logs / f"stderr-{number}.txt")))
        yield started


def holder(root: Path) -> int | None:
    return WriterLease(root / INDEX_FOLDER).holder()


def await_complete(session: RawSession) -> None:
    eventually(lambda: note(session.search("zephyr", mode="keyword")) is None, PATIENCE_SECONDS, "a complete index")


def await_text(session: RawSession, word: str) -> None:
    eventually(lambda: word in session.search(word, mode="keyword", k=1), PATIENCE_SECONDS, word)


def await_another_writer(root: Path, pid: int) -> None:
    eventually(lambda: holder(root) not in (None, pid), 6, "another writer")


def resident_bytes(pid: int) -> int:
    match = re.search(r"^VmRSS:\s*(\d+) kB", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    assert match is not None
    return int(match[1]) * 1024


def libraries(pid: int) -> str:
    return Path(f"/proc/{pid}/maps").read_text()


@pytest.mark.requirement("sessions-one-writer")
@pytest.mark.requirement("sessions-small")
def test_one_session_writes_and_the_others_are_small(root: Path, tmp_path: Path) -> None:
    with sessions(root, 3, tmp_path) as (first, *others):
        await_complete(first)
        assert holder(root) == first.pid
        for other in others:
            for _ in range(5):
                assert len(found(other.search("zephyr"))) == len(FILES)
            assert "zephyr" in other.text(other.ask("read_doc", path="docs/1.md"))
            elsewhere = f"Another scree process (pid {first.pid}) keeps this index current; "
            assert other.text(other.ask("reindex")) == elsewhere + "edits are picked up within a few seconds."
            if sys.platform == "linux":
                assert resident_bytes(other.pid) < SMALL_BYTES
                assert not re.search(r"onnxruntime|numpy|libssl|_sqlite3", libraries(other.pid))
                assert "anon_inode:inotify" not in descriptors(other.pid)
                assert "anon_inode:inotify" in descriptors(first.pid)
        assert holder(root) == first.pid


def descriptors(pid: int) -> list[str]:
    return [os.readlink(entry) for entry in Path(f"/proc/{pid}/fd").iterdir()]


@pytest.mark.requirement("sessions-takeover")
@pytest.mark.requirement("writer-killed")
def test_when_the_writer_is_killed_another_session_takes_over_and_syncs_first(root: Path, tmp_path: Path) -> None:
    with sessions(root, 3, tmp_path) as (first, *others):
        await_complete(others[0])
        os.kill(first.pid, signal.SIGSTOP)  # so that it does not see the edit
        (root / "docs" / "1.md").write_text("# Edited\n\nA quinquereme of Nineveh.\n")
        first.program.kill()
        eventually(lambda: holder(root) in {other.pid for other in others}, 6, "a new writer")
        for other in others:
            await_text(other, "quinquereme")
            assert "unique1" not in other.search("unique1", mode="keyword")
        await_equal_to_fresh(root, tmp_path)


@pytest.mark.requirement("sessions-in-flight")
@pytest.mark.parametrize("kind", [signal.SIGKILL, signal.SIGTERM])
def test_what_was_asked_when_the_writer_went_away_is_answered(root: Path, tmp_path: Path, kind: signal.Signals) -> None:
    with sessions(root, 3, tmp_path) as (first, second, third):
        await_complete(second)
        os.kill(first.pid, signal.SIGSTOP)
        asked = [(other, other.ask("search_docs", query="zephyr")) for other in (second, third)]
        first.program.process.send_signal(kind)
        os.kill(first.pid, signal.SIGCONT)
        for other, number in asked:
            assert len(found(other.text(number))) == len(FILES)


@pytest.mark.requirement("sessions-in-flight")
def test_a_session_whose_client_leaves_hands_over(root: Path, tmp_path: Path) -> None:
    with sessions(root, 2, tmp_path) as (first, second):
        await_complete(second)
        asked = second.ask("search_docs", query="zephyr")
        first.program.close_stdin()
        assert len(found(second.text(asked))) == len(FILES)
        assert first.program.process.wait(5) == 0
        eventually(lambda: holder(root) == second.pid, 6, "the takeover")
        assert len(found(second.search("zephyr"))) == len(FILES)


@pytest.mark.requirement("sessions-hung-writer")
def test_while_the_writer_is_stopped_the_others_answer_and_say_so(root: Path, tmp_path: Path) -> None:
    with sessions(root, 3, tmp_path) as (first, *others):
        await_complete(others[1])
        os.kill(first.pid, signal.SIGSTOP)
        try:
            told = f"[index not updating: process {first.pid}, which keeps it current, does not answer]"
            numbers = [other.ask("search_docs", query="zephyr") for other in others]
            for other, number in zip(others, numbers, strict=True):
                response = other.text(number)
                assert note(response) == told
                assert len(found(response)) == len(FILES)
                assert "zephyr" in other.text(other.ask("read_doc", path="docs/1.md"))
                assert "Nothing was changed" in other.text(other.ask("reindex"))
            assert helpers(others[0].pid)
        finally:
            os.kill(first.pid, signal.SIGCONT)
        for other in others:
            await_complete(other)
            assert not helpers(other.pid)
        assert holder(root) == first.pid


def helpers(pid: int) -> list[int]:
    """The processes that a session has started."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(child) for child in children.split()]


@pytest.mark.requirement("sessions-hung-writer")
def test_a_session_that_starts_while_the_writer_is_stopped_is_answered(root: Path, tmp_path: Path) -> None:
    with sessions(root, 1, tmp_path) as (first,):
        await_complete(first)
        os.kill(first.pid, signal.SIGSTOP)
        try:
            with raw_session(cwd=root, log=tmp_path / "second.txt") as second:
                assert "does not answer" in (note(second.search("zephyr")) or "")
                os.kill(first.pid, signal.SIGCONT)
                eventually(lambda: note(second.search("zephyr")) is None, what="the recovery")
        finally:
            os.kill(first.pid, signal.SIGCONT)


@pytest.mark.requirement("sessions-hung-writer")
def test_a_writer_that_is_killed_while_it_is_stopped_is_succeeded(root: Path, tmp_path: Path) -> None:
    with sessions(root, 2, tmp_path) as (first, second):
        await_complete(second)
        os.kill(first.pid, signal.SIGSTOP)
        assert "does not answer" in (note(second.search("zephyr")) or "")
        first.program.kill()
        eventually(lambda: holder(root) == second.pid, 6, "the takeover")
        eventually(lambda: note(second.search("zephyr")) is None, what="the recovery")
        assert not helpers(second.pid)


@pytest.mark.requirement("sessions-one-writer")
@pytest.mark.requirement("note-other-builds")
@pytest.mark.requirement("note-first-sync")
def test_the_writers_own_session_counts_and_the_others_name_it(slow_repository: GitRepository, tmp_path: Path) -> None:
    root = slow_repository.path
    with (
        raw_session(cwd=root, log=tmp_path / "1.txt", environment=SLOW) as first,
        raw_session(cwd=root, log=tmp_path / "2.txt", environment=SLOW) as second,
    ):
        eventually(lambda: found(second.search("unique7", mode="keyword")), PATIENCE_SECONDS, "the first hit")
        told = f"[index incomplete: another scree process (pid {first.pid}) is building it]"
        assert note(second.search("unique7", mode="keyword")) == told
        assert "first sync in progress" in (note(first.search("unique7", mode="keyword")) or "")
        # Another one goes on where it was, and says so to its own client.
        first.program.kill()
        eventually(lambda: "first sync in progress" in (note(second.search("unique7", mode="keyword")) or ""))
        assert found(second.search(f"unique{SLOW_FILES - 1}", mode="keyword", k=1))


@pytest.mark.requirement("sessions-one-writer")
def test_of_many_sessions_started_at_once_one_builds_and_all_answer(root: Path, tmp_path: Path) -> None:
    count = 40
    with ExitStack() as stack:
        logs = [tmp_path / f"{number}.txt" for number in range(count)]
        programs = [stack.enter_context(running("serve", cwd=root, log=log)) for log in logs]
        for program in programs:
            program.send(*HANDSHAKE, call(2, "search_docs", query="zephyr", mode="keyword"))
        for program in programs:
            assert "error" not in answer(program, 1)
            assert "error" not in answer(program, 2)
        writer = holder(root)
        assert writer in {program.pid for program in programs}
        for number, program in enumerate(programs):
            session_number = 3

            def complete(program: Program = program) -> bool:
                nonlocal session_number
                session_number += 1
                program.send(call(session_number, "search_docs", query="zephyr"))
                result = answer(program, session_number)["result"]
                assert isinstance(result, dict)
                text: str = result["content"][0]["text"]
                return len(found(text)) == len(FILES) and note(text) is None

            eventually(complete, PATIENCE_SECONDS, f"session {number}")
        assert holder(root) == writer
        assert [log.read_text() for log in logs] == [""] * count


# Fairness


@pytest.mark.requirement("sessions-fair")
def test_a_client_that_never_reads_delays_nobody(root: Path, tmp_path: Path) -> None:
    (root / "long.md").write_text("# Long\n\n" + "A long line about the zephyr.\n" * 9_000)
    with sessions(root, 3, tmp_path) as (first, deaf, other):
        await_complete(other)
        # Its process takes no more than some of this, and its client reads none of it.
        line = call(0, "read_doc", path="long.md")
        sending = threading.Thread(target=flood, args=(deaf.program, line), daemon=True)
        sending.start()
        for _ in range(20):
            assert len(found(other.search("zephyr blows"))) > len(FILES)
            assert len(found(first.search("zephyr blows"))) > len(FILES)
        assert resident_bytes(deaf.pid) < 2 * SMALL_BYTES
        deaf.program.kill()
        sending.join(10)
        assert len(found(other.search("zephyr blows"))) > len(FILES)


def flood(program: Program, line: bytes) -> None:
    """Ask the same thing again and again until the program takes no more or is gone."""
    try:
        for number in range(1_000):
            program.send(line.replace(b'"id": 0', f'"id": {number + 10}'.encode()))
    except (BrokenPipeError, ValueError):
        pass  # it has been killed


@pytest.mark.requirement("sessions-fair")
def test_a_stopped_client_delays_nobody(root: Path, tmp_path: Path) -> None:
    with sessions(root, 3, tmp_path) as (first, stopped, other):
        await_complete(other)
        for _ in range(50):
            stopped.ask("search_docs", query="zephyr")
        os.kill(stopped.pid, signal.SIGSTOP)
        for _ in range(20):
            assert len(found(other.search("zephyr"))) == len(FILES)
            assert len(found(first.search("zephyr"))) == len(FILES)
        os.kill(stopped.pid, signal.SIGCONT)
        assert len(found(stopped.search("zephyr"))) == len(FILES)


@pytest.mark.requirement("sessions-fair")
@pytest.mark.parametrize("size", [2_000_000, 80_000_000])
def test_a_huge_request_is_an_error_and_harms_nobody(root: Path, tmp_path: Path, size: int) -> None:
    with sessions(root, 2, tmp_path) as (first, second):
        await_complete(second)
        second.program.send(call(900, "search_docs", query="x" * size))
        refused = json.loads(second.program.line())
        assert refused["error"]["message"] == "The message is longer than 1,048,576 bytes."
        assert refused["id"] == (900 if size < 10_000_000 else None)
        assert len(found(second.search("zephyr"))) == len(FILES)
        assert len(found(first.search("zephyr"))) == len(FILES)


@pytest.mark.requirement("sessions-fair")
def test_what_is_not_the_protocol_harms_nobody(root: Path, tmp_path: Path) -> None:
    with sessions(root, 2, tmp_path) as (first, second):
        await_complete(second)
        second.program.send(b"", b"not json", b"[" * 100_000, b'{"method": 1}', b"\xff\xfe", b"[]", b'{"id": {}}')
        assert len(found(second.search("zephyr"))) == len(FILES)
        assert len(found(first.search("zephyr"))) == len(FILES)


@pytest.mark.requirement("sessions-fair")
def test_a_request_that_was_taken_back_is_not_asked_again(root: Path, tmp_path: Path) -> None:
    with sessions(root, 2, tmp_path) as (first, second):
        await_complete(second)
        os.kill(first.pid, signal.SIGSTOP)
        number = second.ask("search_docs", query="zephyr")
        cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}}
        second.program.send(json.dumps(cancelled).encode())
        first.program.kill()
        following = second.ask("search_docs", query="unique1", mode="keyword", k=1)
        message = json.loads(second.program.line())
        assert message["id"] == following


# The socket


@pytest.mark.requirement("sessions-socket")
def test_the_socket_and_its_folder_are_the_users_alone(root: Path, tmp_path: Path, runtime_folder: Path) -> None:
    with sessions(root, 1, tmp_path) as (first,):
        await_complete(first)
        contact = WriterLease(root / INDEX_FOLDER).contact()
        assert contact is not None
        path = Path(contact[1])
        assert path.parent == runtime_folder / "scree"
        assert path.parent.stat().st_mode & 0o777 == 0o700
        assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.requirement("sessions-socket")
def test_a_stale_socket_is_replaced(root: Path, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as left_over:
        left_over.bind(str(socket_path(root)))
    with sessions(root, 2, tmp_path) as (first, second):
        await_complete(second)
        assert holder(root) == first.pid


@pytest.mark.requirement("sessions-socket")
@pytest.mark.requirement("sessions-hung-writer")
def test_a_folder_of_sockets_that_others_may_enter_is_not_used(
    root: Path, tmp_path: Path, runtime_folder: Path
) -> None:
    folder = runtime_folder / "scree"
    folder.mkdir(exist_ok=True)
    folder.chmod(0o755)
    try:
        with sessions(root, 2, tmp_path) as (first, second):
            eventually(lambda: note(first.search("zephyr")) is None, PATIENCE_SECONDS)
            assert len(found(second.search("zephyr"))) == len(FILES)
            assert "only you can open" in "\n".join(first.program.log())
            # Nothing is wrong with the index: the other one keeps it current.
            assert note(second.search("zephyr")) is None
    finally:
        folder.chmod(0o700)


@pytest.mark.requirement("sessions-socket")
def test_a_socket_that_opens_to_others_later_is_refused(root: Path, tmp_path: Path, runtime_folder: Path) -> None:
    with sessions(root, 1, tmp_path) as (first,):
        await_complete(first)
        (runtime_folder / "scree").chmod(0o777)
        try:
            with raw_session(cwd=root, log=tmp_path / "2.txt") as second:
                told = note(second.search("zephyr"))
                assert told == f"[index not updating: process {first.pid}, which keeps it current, cannot be reached]"
                (runtime_folder / "scree").chmod(0o700)
                eventually(lambda: note(second.search("zephyr")) is None, what="the connection")
                assert not helpers(second.pid)
        finally:
            (runtime_folder / "scree").chmod(0o700)


@pytest.mark.requirement("sessions-hung-writer")
def test_a_writer_of_another_version_is_not_asked(root: Path, tmp_path: Path) -> None:
    printed("reindex", cwd=root)
    lease = WriterLease(root / INDEX_FOLDER)
    assert lease.acquire()

    def refuse(_: Message, __: Send) -> None:
        raise ChannelError("It is of another version.")

    listener = Listener(root, refuse, lambda connection: connection.close())
    try:
        lease.publish(listener.address)
        with raw_session(cwd=root, log=tmp_path / "log.txt", environment=other_version(tmp_path)) as session:
            told = f"process {os.getpid()}, which keeps it current, is of another version of scree; restart it"
            response = session.search("zephyr")
            assert note(response) == f"[index not updating: {told}]"
            assert len(found(response)) == len(FILES)
            lease.release()
            listener.close()
            eventually(lambda: note(session.search("zephyr")) is None, PATIENCE_SECONDS, "the takeover")
            assert holder(root) == session.pid
    finally:
        lease.release()
        listener.close()


def other_version(folder: Path) -> dict[str, str]:
    """The environment in which scree is of another version."""
    hook = folder / "hook"
    hook.mkdir()
    (hook / "sitecustomize.py").write_text("import scree\nscree.__version__ = '0.0.0'\n")
    return {"PYTHONPATH": str(hook)}


# Other programs beside


@pytest.mark.requirement("sessions-one-writer")
def test_a_session_is_served_while_a_command_writes(slow_repository: GitRepository, tmp_path: Path) -> None:
    root = slow_repository.path
    with running("reindex", cwd=root, log=tmp_path / "reindex.txt", environment=SLOW) as command:
        eventually(lambda: holder(root) == command.pid, PATIENCE_SECONDS, "the command")
        with raw_session(cwd=root, log=tmp_path / "log.txt", environment=SLOW) as session:
            told = f"[index incomplete: another scree process (pid {command.pid}) is building it]"
            eventually(lambda: note(session.search("unique7", mode="keyword")) == told, PATIENCE_SECONDS, "the note")
            command.kill()
            eventually(lambda: holder(root) == session.pid, 6, "the takeover")
            eventually(lambda: "first sync in progress" in (note(session.search("unique7", mode="keyword")) or ""))


@pytest.mark.requirement("sessions-one-writer")
def test_a_watch_serves_sessions_too(root: Path, tmp_path: Path) -> None:
    with running("watch", cwd=root, log=tmp_path / "watch.txt") as watch, ExitStack() as stack:
        eventually(lambda: holder(root) == watch.pid, PATIENCE_SECONDS, "the writer")
        client = stack.enter_context(connected(cwd=root))
        client.await_complete()
        assert len(client.hits("zephyr")) == len(FILES)
        watch.process.send_signal(signal.SIGTERM)
        assert watch.process.wait(10) == 0
        assert len(client.hits("zephyr")) == len(FILES)
        eventually(lambda: holder(root) not in (None, watch.pid), 6, "the takeover")


# The end


@pytest.mark.requirement("sessions-end")
@pytest.mark.parametrize("which", ["first", "second"])
def test_a_session_ends_with_its_parent_though_its_stdin_stays_open(root: Path, tmp_path: Path, which: str) -> None:
    with sessions(root, 1 if which == "second" else 0, tmp_path):
        reading, writing = os.pipe()
        # A shell that is killed, and a pipe that this test keeps open.
        script = "import subprocess, sys, time; print(subprocess.Popen(sys.argv[1:]).pid, flush=True); time.sleep(60)"
        with subprocess.Popen(
            [sys.executable, "-c", script, *SCREE, "serve"],
            cwd=root,
            stdin=reading,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        ) as parent:
            os.close(reading)
            assert parent.stdout is not None
            pid = int(parent.stdout.readline())
            os.write(writing, b"\n".join((*HANDSHAKE, b"")))
            assert '"id":1' in parent.stdout.readline()
            parent.kill()
            eventually(lambda: not lives(pid), 10, "the end of the session")
        os.close(writing)


def lives(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


# Everything at once

SEARCHERS = 5
EDITORS = 2
WORK_SECONDS = float(os.environ.get("SCREE_TEST_WORK_SECONDS", "8"))
KILLS = int(os.environ.get("SCREE_TEST_KILLS", "8"))


class Editors:
    """Edit files at random until told to stop."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._stopped = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(number,)) for number in range(EDITORS)]

    def __enter__(self) -> Editors:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        for thread in self._threads:
            thread.join()

    def _run(self, number: int) -> None:
        dice = random.Random(number)
        while not self._stopped.wait(dice.uniform(0, 0.1)):
            path = self._root / "docs" / f"{number}-{dice.randrange(20)}.md"
            if dice.random() < 0.2:
                path.unlink(missing_ok=True)
            else:
                path.write_text(f"# Page {dice.randrange(1_000)}\n\nzephyr {dice.randrange(1_000_000)}\n")


@pytest.mark.timeout(60 + 4 * WORK_SECONDS)
@pytest.mark.requirement("sessions-one-writer")
def test_edits_and_searches_from_many_sessions_at_once_make_no_error(root: Path, tmp_path: Path) -> None:
    with ExitStack() as stack:
        clients = [
            stack.enter_context(connected(cwd=root, log=tmp_path / f"{number}.txt")) for number in range(SEARCHERS)
        ]
        clients[0].await_complete()
        stop = threading.Event()

        def search(client: Client) -> int:
            count = 0
            while not stop.is_set():
                for mode in ("hybrid", "keyword", "semantic"):
                    assert client.hits("zephyr", mode=mode)
                    count += 1
            return count

        with Editors(root), ThreadPoolExecutor(SEARCHERS) as pool:
            searching = [pool.submit(search, client) for client in clients]
            stop.wait(WORK_SECONDS)
            stop.set()
            assert all(work.result() > 0 for work in searching)
        await_equal_to_fresh(root, tmp_path)
        assert [(tmp_path / f"{number}.txt").read_text() for number in range(SEARCHERS)] == [""] * SEARCHERS


class Searching:
    """A session that searches without a pause until it is killed or told to stop."""

    def __init__(self, session: RawSession) -> None:
        self.session = session
        self.failure: BaseException | None = None
        self._leaving = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def kill(self) -> None:
        """Kill the session in the middle of whatever it does."""
        self._leaving.set()
        self.session.program.kill()
        self._thread.join()

    def stop(self) -> None:
        """Let it have its answer, then no more."""
        self._leaving.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._leaving.is_set():
            try:
                response = self.session.search("zephyr")
                assert found(response) or note(response), response
            except BaseException as error:  # noqa: BLE001 - judged by the test
                self.failure = None if self._leaving.is_set() else error
                return


@pytest.mark.timeout(60 + 15 * KILLS)
@pytest.mark.requirement("writer-killed")
@pytest.mark.requirement("sessions-takeover")
@pytest.mark.requirement("sessions-in-flight")
def test_killing_writer_after_writer_loses_nothing(root: Path, tmp_path: Path) -> None:
    dice = random.Random(KILLS)
    with ExitStack() as stack:
        logs = [tmp_path / f"session-{number}.txt" for number in range(KILLS + 3)]

        def start() -> Searching:
            return Searching(stack.enter_context(raw_session(cwd=root, log=logs.pop())))

        alive: list[Searching] = []
        for _ in range(3):
            alive.append(start())
        dead: list[Searching] = []
        with Editors(root):
            try:
                for _ in range(KILLS):
                    threading.Event().wait(dice.uniform(0, 1.5))
                    gone = eventually(lambda: holder(root), 6, "a writer")
                    (victim,) = (one for one in alive if one.session.pid == gone)
                    victim.kill()
                    await_another_writer(root, victim.session.pid)
                    alive.remove(victim)
                    dead.append(victim)
                    alive.append(start())
            finally:
                for searching in alive:
                    searching.stop()
        assert [one.failure for one in alive + dead] == [None] * (KILLS + 3)
        await_equal_to_fresh(root, tmp_path)
        assert content(root).get("strays", 0) == 0
