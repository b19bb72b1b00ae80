"""How other processes of the same user reach the writer: JSON lines over a Unix socket.

The socket lies in a folder that only the user can open, never in the repository: socket paths are short, and a checkout
may be on a file system without sockets. A request is one line; the answer is any number of lines, then one that says it
is complete. While an answer is being made, an empty line goes out every second, so that a writer that hangs is told
from one that works. One request is different: after `serve` the connection belongs to a client's session for good.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from typing import cast

from scree.docs.contact import SESSION_REQUEST, ChannelError, check_folder, connect
from scree.errors import ScreeError

# The longest that one side waits for the other to take or give a line that it owes at once.
PATIENCE_SECONDS = 5.0
BEAT_SECONDS = 1.0

MAX_REQUEST_BYTES = 65_536

# What fits in `sun_path` on macOS, the shortest of the systems scree runs on, with the zero at its end.
MAX_SOCKET_PATH_BYTES = 103

# Whoever asks for more at once than this waits until others are answered; sessions do not count.
MAX_CONNECTIONS = 64

# The pause after the system could not accept a connection, for lack of file descriptors for instance.
RETRY_SECONDS = 0.1

END_KEY = "end"
ERROR_KEY = "error"


Message = Mapping[str, object]
Send = Callable[[Message], None]
Adopt = Callable[[socket.socket], object]


class _ClientGoneError(Exception):
    """The other side of a connection no longer listens; nobody has to be told."""


def socket_path(root: Path) -> Path:
    """Return where the writer of `root` listens, in a folder that this makes and checks.

    That is `$XDG_RUNTIME_DIR/scree`, else `scree-<uid>` in the folder for temporary files, else that in `/tmp`: the
    first that is there and short enough.

    Raises:
        ChannelError: the folder belongs to somebody else, or others may enter it.
    """
    name = f"{hashlib.sha256(os.fsencode(root)).hexdigest()[:16]}.sock"
    own = f"scree-{os.getuid()}"
    candidates = [Path(tempfile.gettempdir(), own), Path("/tmp", own)]
    if runtime := os.environ.get("XDG_RUNTIME_DIR"):
        candidates.insert(0, Path(runtime, "scree"))
    for folder in candidates:
        path = folder / name
        if folder.parent.is_dir() and len(os.fsencode(path)) <= MAX_SOCKET_PATH_BYTES:
            break
    else:
        raise ChannelError("There is no folder for sockets: set XDG_RUNTIME_DIR to one with a short path.")
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise ChannelError(f'The folder "{folder}" for sockets cannot be made ({error.strerror}).') from error
    check_folder(folder)
    return path


class Listener:
    """Answers requests, each in a thread of its own, until closed. For the holder of the lease only."""

    def __init__(self, root: Path, answer: Callable[[Message, Send], None], adopt: Adopt) -> None:
        """Listen for `root`.

        Args:
            root: the project folder.
            answer: handles one request; sends lines with the function it is given, and may raise `ScreeError`.
            adopt: takes over the connection of a client's session, which has sent nothing yet.

        Raises:
            ChannelError: the socket cannot be made.
        """
        self._answer = answer
        self._adopt = adopt
        self._closed = threading.Event()
        self._room = threading.BoundedSemaphore(MAX_CONNECTIONS)
        self._path = socket_path(root)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            # Whoever holds the lease owns the address; what lies there is left over from a process that died.
            self._path.unlink(missing_ok=True)
            self._socket.bind(str(self._path))
            os.chmod(self._path, 0o600)
            self._state = os.lstat(self._path)
            self._socket.listen()
        except OSError as error:
            self._socket.close()
            raise ChannelError(f'The socket "{self._path}" cannot be made ({error}).') from error
        self._thread = threading.Thread(target=self._accept, name="scree-listen", daemon=True)
        self._thread.start()

    @property
    def address(self) -> str:
        """The path of the socket."""
        return str(self._path)

    def close(self) -> None:
        """Stop listening and remove the socket, unless another process has put its own in its place."""
        self._closed.set()
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(self._state, os.lstat(self._path)):
                self._path.unlink()
        # Closing alone does not wake a thread that waits in accept on every system.
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(PATIENCE_SECONDS)

    def _accept(self) -> None:
        while not self._closed.is_set():
            if not self._room.acquire(timeout=BEAT_SECONDS):
                continue
            try:
                connection, _ = self._socket.accept()
            except OSError:
                # No descriptors left, which passes; or closed.
                self._room.release()
                self._closed.wait(RETRY_SECONDS)
            else:
                threading.Thread(target=self._serve, args=(connection,), name="scree-answer", daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            connection.settimeout(PATIENCE_SECONDS)
            request = _received(connection)
            if request == SESSION_REQUEST:
                connection.sendall(b"\n")
                self._adopt(connection)
                return
            with connection:
                if request is not None:
                    self._reply(connection, request)
        except OSError:
            connection.close()  # it went away meanwhile
        finally:
            self._room.release()

    def _reply(self, connection: socket.socket, request: Message) -> None:
        line = threading.Lock()
        done = threading.Event()

        def put(data: bytes) -> None:
            try:
                with line:
                    connection.sendall(data + b"\n")
            except OSError as error:
                raise _ClientGoneError from error

        def send(message: Message) -> None:
            put(json.dumps(message).encode())

        def beat() -> None:
            with contextlib.suppress(_ClientGoneError):
                while not done.wait(BEAT_SECONDS):
                    put(b"")

        beating = threading.Thread(target=beat, name="scree-beat", daemon=True)
        beating.start()
        with contextlib.suppress(_ClientGoneError):
            try:
                self._answer(request, send)
                send({END_KEY: True})
            except ScreeError as error:
                send({ERROR_KEY: str(error)})
            finally:
                done.set()
                beating.join()


def ask(address: str, request: Message) -> Generator[Message, None, None]:
    """Send a request to the writer that listens at `address` and yield the lines of its answer.

    Raises:
        ChannelError: nobody listens, or the answer did not come, or not to its end.
        ScreeError: the writer answered with an error.
    """
    with connect(address, seconds=PATIENCE_SECONDS) as connection:
        try:
            connection.sendall(json.dumps(request).encode() + b"\n")
            with connection.makefile("rb") as lines:
                for line in lines:
                    if not line.strip():
                        continue
                    message = _message(line)
                    if END_KEY in message:
                        return
                    if ERROR_KEY in message:
                        raise ScreeError(str(message[ERROR_KEY]))
                    yield message
            raise ValueError("it ended in the middle of its answer")
        except (OSError, ValueError) as error:
            raise ChannelError(f"The process that writes this index does not answer ({error}).") from error


def _received(connection: socket.socket) -> Message | None:
    """Return the request that a client sends, all of it in time; None from one that does not speak this protocol."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    data = bytearray()
    try:
        while b"\n" not in data:
            part = connection.recv(MAX_REQUEST_BYTES)
            data += part
            if not part or len(data) > MAX_REQUEST_BYTES or time.monotonic() > deadline:
                return None
        return _message(bytes(data))
    except (OSError, ValueError):
        return None


def _message(line: bytes) -> Message:
    """Read a line.

    Raises:
        ValueError: it is not a JSON object.
    """
    try:
        message = json.loads(line)
    except RecursionError as error:
        raise ValueError("its line is nested too deeply") from error
    if not isinstance(message, dict):
        raise ValueError("its line is not a JSON object")
    return cast(Message, message)
