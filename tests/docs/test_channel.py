from __future__ import annotations

import json
import os
import socket
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from scree.docs import channel
from scree.docs.channel import Listener, Message, Send, ask, socket_path
from scree.docs.contact import ChannelError
from scree.errors import ArgumentError, ScreeError
from tests.ordinary_user import ordinary_user
from tests.waiting import eventually


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "project"


@pytest.fixture(autouse=True)
def impatience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel, "PATIENCE_SECONDS", 0.4)
    monkeypatch.setattr(channel, "BEAT_SECONDS", 0.05)
    monkeypatch.setattr(channel, "RETRY_SECONDS", 0.01)


@pytest.fixture
def listen(root: Path) -> Iterator[Callable[[Callable[[Message, Send], None]], Listener]]:
    listeners: list[Listener] = []

    def start(answer: Callable[[Message, Send], None]) -> Listener:
        listeners.append(Listener(root, answer, no_session))
        return listeners[-1]

    yield start
    for listener in listeners:
        listener.close()
    # A thread that still answered would meet the next test.
    eventually(lambda: not answering(), what="the end of all answers")


def answering() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name in ("scree-answer", "scree-beat")]


def address(root: Path) -> str:
    return str(socket_path(root))


def no_session(_: socket.socket) -> None:
    raise AssertionError("nobody asked for a session")


def echo(request: Message, send: Send) -> None:
    send({"got": request})


@contextmanager
def client(root: Path) -> Iterator[socket.socket]:
    with closing(socket.socket(socket.AF_UNIX)) as connection:
        connection.settimeout(10)
        connection.connect(str(socket_path(root)))
        yield connection


def everything(connection: socket.socket) -> bytes:
    """What the other side sends until it hangs up."""
    received = b""
    try:
        while part := connection.recv(65_536):
            received += part
    except ConnectionResetError:
        pass  # it hung up on what it had not read
    return received


Listen = Callable[[Callable[[Message, Send], None]], Listener]


# Where it listens


def test_the_socket_lies_in_a_folder_that_only_the_user_can_open(root: Path, listen: Listen) -> None:
    listen(echo)
    path = socket_path(root)
    assert path.parent == Path(os.environ["XDG_RUNTIME_DIR"]) / "scree"
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert stat.S_ISSOCK(path.stat().st_mode)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert not root.exists()


def test_every_root_has_a_socket_of_its_own(tmp_path: Path) -> None:
    roots = [tmp_path, tmp_path / "a", Path(os.fsdecode(b"/odd\xff"))]
    paths = [socket_path(root) for root in roots]
    assert len(set(paths)) == 3
    assert paths == [socket_path(root) for root in roots]


@pytest.mark.parametrize("runtime", [None, "", "missing", "long"])
def test_without_a_usable_runtime_folder_it_lies_in_the_one_for_temporary_files(
    tmp_path: Path, runtime_folder: Path, monkeypatch: pytest.MonkeyPatch, runtime: str | None
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(runtime_folder))
    if runtime is None:
        monkeypatch.delenv("XDG_RUNTIME_DIR")
    else:
        long = tmp_path / ("x" * 90)
        long.mkdir()
        values = {"": "", "missing": str(tmp_path / "missing"), "long": str(long)}
        monkeypatch.setenv("XDG_RUNTIME_DIR", values[runtime])
    path = socket_path(tmp_path)
    assert path.parent == runtime_folder / f"scree-{os.getuid()}"
    assert path.parent.stat().st_mode & 0o077 == 0
    assert len(os.fsencode(path)) <= 103


def test_a_long_folder_for_temporary_files_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    long = tmp_path / ("x" * 90)
    long.mkdir()
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    monkeypatch.setattr("tempfile.tempdir", str(long))
    assert socket_path(tmp_path).parent == Path("/tmp") / f"scree-{os.getuid()}"
    assert os.listdir(long) == []


@pytest.fixture
def private(root: Path) -> Iterator[Path]:
    """The folder of the sockets, put back to what it should be."""
    folder = socket_path(root).parent
    folder.rmdir()
    yield folder
    if folder.is_symlink() or folder.is_file():
        folder.unlink()
    else:
        folder.chmod(0o700)


@pytest.mark.parametrize("mode", [0o755, 0o710, 0o701, 0o777])
def test_a_folder_that_others_may_enter_is_refused(root: Path, private: Path, mode: int) -> None:
    private.mkdir()
    private.chmod(mode)
    for use in (lambda: Listener(root, echo, no_session), lambda: list(ask(address(root), {}))):
        with pytest.raises(ChannelError, match="only you can open; remove it"):
            use()
    assert list(private.iterdir()) == []


@pytest.mark.parametrize("kind", ["link", "file"])
def test_what_is_no_folder_is_refused(root: Path, private: Path, tmp_path: Path, kind: str) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    if kind == "link":
        private.symlink_to(elsewhere)
    else:
        private.touch(mode=0o600)
    with pytest.raises(ChannelError):
        Listener(root, echo, no_session)
    assert list(elsewhere.iterdir()) == []


def test_a_folder_of_another_user_is_refused(root: Path, private: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("only root can give a folder to another user")
    private.mkdir(mode=0o700)
    os.chown(private, 65534, -1)
    with pytest.raises(ChannelError, match="only you can open"):
        Listener(root, echo, no_session)
    os.chown(private, 0, -1)


def test_a_folder_that_cannot_be_made_has_a_sentence(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ordinary_user() as folder:
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
        folder.chmod(0o500)
        with pytest.raises(ChannelError, match=r"cannot be made \(Permission denied\)"):
            socket_path(root)
        folder.chmod(0o700)


# Asking and answering


def test_an_answer_has_any_number_of_lines(root: Path, listen: Listen) -> None:
    def count(request: Message, send: Send) -> None:
        assert isinstance(request["to"], int)
        for number in range(request["to"]):
            send({"n": number})

    listen(count)
    assert list(ask(address(root), {"to": 3})) == [{"n": 0}, {"n": 1}, {"n": 2}]
    assert list(ask(address(root), {"to": 0})) == []


def test_any_text_comes_through(root: Path, listen: Listen) -> None:
    listen(echo)
    request = {"path": os.fsdecode(b"odd\xff\n\"'.md"), "more": "é😀\u2028" * 1_000, "none": None}
    assert list(ask(address(root), request)) == [{"got": request}]


def test_an_error_of_the_writer_is_one_of_whoever_asked(root: Path, listen: Listen) -> None:
    def refuse(_: Message, send: Send) -> None:
        send({"stage": "reading"})
        raise ArgumentError("k must be 1.")

    listen(refuse)
    answer = ask(address(root), {})
    assert next(answer) == {"stage": "reading"}
    with pytest.raises(ScreeError, match=r"^k must be 1\.$") as caught:
        next(answer)
    assert not isinstance(caught.value, ChannelError)


def test_several_are_answered_at_once(root: Path, listen: Listen) -> None:
    together = threading.Barrier(4, timeout=10)

    def meet(request: Message, send: Send) -> None:
        together.wait()
        send(request)

    listen(meet)
    answers: list[Message] = []
    threads = [threading.Thread(target=lambda n=n: answers.extend(ask(address(root), {"n": n}))) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(str, answers)) == [str({"n": n}) for n in range(4)]


def test_more_than_there_is_room_for_wait_their_turn(
    root: Path, listen: Listen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channel, "MAX_CONNECTIONS", 2)
    lock = threading.Lock()
    now = most = 0

    def busy(request: Message, send: Send) -> None:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        threading.Event().wait(0.01)
        with lock:
            now -= 1
        send(request)

    listen(busy)
    answers: list[Message] = []
    threads = [threading.Thread(target=lambda: answers.extend(ask(address(root), {"a": 1}))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [{"a": 1}] * 8
    assert most <= 2


def test_a_writer_that_works_for_long_is_waited_for(root: Path, listen: Listen) -> None:
    def work(_: Message, send: Send) -> None:
        threading.Event().wait(3 * channel.PATIENCE_SECONDS)
        send({"done": True})

    listen(work)
    assert list(ask(address(root), {})) == [{"done": True}]


def test_a_writer_that_hangs_is_not(root: Path) -> None:
    """As a process does that is stopped: the system takes connections for it, and nobody answers."""
    with closing(socket.socket(socket.AF_UNIX)) as hung:
        hung.bind(str(socket_path(root)))
        hung.listen()
        with pytest.raises(ChannelError, match=r"does not answer \(timed out\)"):
            list(ask(address(root), {}))
    socket_path(root).unlink()


def test_nobody_there_is_an_error(root: Path, listen: Listen) -> None:
    with pytest.raises(ChannelError, match="does not answer"):
        list(ask(address(root), {}))
    listen(echo).close()
    with pytest.raises(ChannelError, match="does not answer"):
        list(ask(address(root), {}))


@pytest.mark.parametrize(
    "answer",
    [b"", b'{"stage": "reading"}\n', b'{"result": ', b"garbage\n", b"[1]\n", b"7\n", b"\n\n", b"[" * 60_000 + b"\n"],
)
def test_an_answer_that_is_cut_off_or_garbage_is_an_error(root: Path, answer: bytes) -> None:
    def serve(listening: socket.socket) -> None:
        connection, _ = listening.accept()
        with connection:
            connection.recv(65_536)
            connection.sendall(answer)

    with closing(socket.socket(socket.AF_UNIX)) as listening:
        listening.bind(str(socket_path(root)))
        listening.listen()
        thread = threading.Thread(target=serve, args=(listening,))
        thread.start()
        with pytest.raises(ChannelError, match="does not answer"):
            list(ask(address(root), {}))
        thread.join()
    socket_path(root).unlink()


# What may not harm the listener


@pytest.mark.parametrize(
    "garbage",
    [
        b"",
        b"\n",
        b"hello\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"[]\n",
        b"7\n",
        b'{"a": 1',
        b"\xff\xfe\n",
        b"[" * 60_000 + b"\n",
    ],
)
def test_garbage_gets_no_answer_and_does_no_harm(root: Path, listen: Listen, garbage: bytes) -> None:
    listen(echo)
    with client(root) as connection:
        connection.sendall(garbage)
        connection.shutdown(socket.SHUT_WR)
        assert everything(connection) == b""
    assert list(ask(address(root), {"a": 1})) == [{"got": {"a": 1}}]


def test_a_huge_request_is_not_read_to_its_end(root: Path, listen: Listen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel, "PATIENCE_SECONDS", 60.0)
    listen(echo)
    with client(root) as connection:
        with pytest.raises(OSError, match=r"Broken pipe|reset"):
            connection.sendall(b"x" * 64_000_000)
        assert everything(connection) == b""
    assert list(ask(address(root), {"a": 1})) == [{"got": {"a": 1}}]


def test_a_client_that_says_nothing_is_left(root: Path, listen: Listen) -> None:
    listen(echo)
    with client(root) as silent, client(root) as slow:
        slow.sendall(b'{"a"')
        assert list(ask(address(root), {"a": 1})) == [{"got": {"a": 1}}]
        assert everything(silent) == everything(slow) == b""


def test_a_client_that_never_reads_is_left(root: Path, listen: Listen) -> None:
    given_up = threading.Event()

    def flood(request: Message, send: Send) -> None:
        if "flood" not in request:
            return echo(request, send)
        try:
            while True:
                send({"filler": "x" * 65_536})
        finally:
            given_up.set()

    listen(flood)
    with client(root) as connection:
        connection.sendall(b'{"flood": true}\n')
        assert list(ask(address(root), {"a": 1})) == [{"got": {"a": 1}}]
        assert given_up.wait(10)
    assert list(ask(address(root), {"a": 1})) == [{"got": {"a": 1}}]


def test_a_client_that_goes_away_stops_its_answer(root: Path, listen: Listen) -> None:
    given_up = threading.Event()

    def talk(_: Message, send: Send) -> None:
        try:
            while True:
                send({"tick": 1})
        finally:
            given_up.set()

    listen(talk)
    answer = ask(address(root), {})
    assert next(answer) == {"tick": 1}
    answer.close()
    assert given_up.wait(10)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_bug_in_an_answer_is_shown_and_the_next_request_is_answered(
    root: Path, listen: Listen, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[type[BaseException]] = []
    monkeypatch.setattr(threading, "excepthook", lambda arguments: shown.append(arguments.exc_type))

    def fail(request: Message, send: Send) -> None:
        if "bug" in request:
            raise ValueError("a bug")
        echo(request, send)

    listen(fail)
    with pytest.raises(ChannelError, match="does not answer"):
        list(ask(address(root), {"bug": 1}))
    assert list(ask(address(root), {"a": 1})) == [{"got": {"a": 1}}]
    assert eventually(lambda: shown) == [ValueError]


def test_a_listener_outlives_a_lack_of_descriptors(root: Path, listen: Listen, monkeypatch: pytest.MonkeyPatch) -> None:
    accept = socket.socket.accept
    failures = 3

    def scarce(self: socket.socket) -> tuple[socket.socket, object]:
        nonlocal failures
        if failures:
            failures -= 1
            raise OSError(24, "Too many open files")
        return accept(self)

    monkeypatch.setattr(socket.socket, "accept", scarce)
    listen(echo)
    assert list(ask(address(root), {"a": 1})) == [{"got": {"a": 1}}]
    assert failures == 0


# Beginning and end


@pytest.mark.requirement("writer-killed")
def test_a_socket_left_behind_is_replaced(root: Path, listen: Listen) -> None:
    with closing(socket.socket(socket.AF_UNIX)) as dead:
        dead.bind(str(socket_path(root)))
    with pytest.raises(ChannelError, match="refused"):
        list(ask(address(root), {}))
    listen(echo)
    assert list(ask(address(root), {"a": 1})) == [{"got": {"a": 1}}]


def test_closing_ends_it_and_removes_the_socket(root: Path) -> None:
    before = threading.active_count()
    listener = Listener(root, echo, no_session)
    assert list(ask(address(root), {"a": 1})) == [{"got": {"a": 1}}]
    listener.close()
    assert not socket_path(root).exists()
    eventually(lambda: threading.active_count() == before, what="the end of its threads")
    listener.close()


def test_closing_leaves_the_socket_of_another_alone(root: Path, listen: Listen) -> None:
    first = listen(echo)
    listen(echo)
    first.close()
    assert list(ask(address(root), {"a": 1})) == [{"got": {"a": 1}}]


def test_what_cannot_be_replaced_has_a_sentence(root: Path) -> None:
    path = socket_path(root)
    path.mkdir()
    try:
        with pytest.raises(ChannelError, match="cannot be made"):
            Listener(root, echo, no_session)
    finally:
        path.rmdir()


def test_requests_and_answers_are_lines_of_json(root: Path, listen: Listen) -> None:
    listen(echo)
    with client(root) as connection:
        connection.sendall(b'{"a": "b"}\n')
        lines = [json.loads(line) for line in everything(connection).splitlines() if line]
    assert lines == [{"got": {"a": "b"}}, {"end": True}]
