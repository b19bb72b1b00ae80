"""How another process of the same user asks the writer for work: JSON lines over a Unix socket.

The socket lies in a folder that only the user can open, never in the repository: socket paths are short, and a checkout
may be on a file system without sockets. A request is one line; the answer is any number of lines, then the end.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import socket
import stat
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from scree.errors import ScreeError

# The longest that one side waits for the other to take or give a line that it owes at once.
PATIENCE_SECONDS = 5.0

MAX_REQUEST_BYTES = 65_536

Message = Mapping[str, object]
Send = Callable[[Message], None]


class ChannelError(ScreeError):
    """The writer cannot be reached, or its socket is not safe to use."""


def socket_path(root: Path) -> Path:
    """Return where the writer of `root` listens, in a folder that this makes and checks.

    Raises:
        ChannelError: the folder belongs to somebody else, or others may enter it.
    """
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    folder = Path(runtime) / "scree" if runtime else Path(tempfile.gettempdir()) / f"scree-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = os.lstat(folder)
    except OSError as error:
        raise ChannelError(f'The folder "{folder}" for sockets cannot be made ({error.strerror}).') from error
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise ChannelError(f'"{folder}" must be a folder that only you can open; remove it, and it is made again.')
    return folder / f"{hashlib.sha256(os.fsencode(root)).hexdigest()[:16]}.sock"


class Listener:
    """Answers requests, each in a thread of its own, until closed. For the holder of the lease only."""

    def __init__(self, root: Path, answer: Callable[[Message, Send], None]) -> None:
        """Listen for `root`.

        Args:
            root: the project folder.
            answer: handles one request; sends lines with the function it is given, and may raise `ScreeError`.

        Raises:
            ChannelError: the socket cannot be made.
        """
        self._answer = answer
        self._path = socket_path(root)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            # Whoever holds the lease owns the address; what lies there is left over from a process that died.
            self._path.unlink(missing_ok=True)
            self._socket.bind(str(self._path))
            os.chmod(self._path, 0o600)
            self._socket.listen()
        except OSError as error:
            self._socket.close()
            raise ChannelError(f'The socket "{self._path}" cannot be made ({error}).') from error
        threading.Thread(target=self._accept, name="scree-listen", daemon=True).start()

    def close(self) -> None:
        """Stop listening and remove the socket."""
        self._path.unlink(missing_ok=True)
        # Closing alone does not wake a thread that waits in accept on every system.
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return  # closed
            threading.Thread(target=self._serve, args=(connection,), name="scree-answer", daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        connection.settimeout(PATIENCE_SECONDS)

        def send(message: Message) -> None:
            connection.sendall(json.dumps(message).encode() + b"\n")

        with connection, connection.makefile("rb") as lines:
            try:
                request = json.loads(lines.readline(MAX_REQUEST_BYTES))
                self._answer(request if isinstance(request, dict) else {}, send)
            except ScreeError as error:
                with contextlib.suppress(OSError):
                    send({"error": str(error)})
            except (OSError, ValueError):
                return  # a client that went away or does not speak this protocol


def ask(root: Path, request: Message) -> Iterator[Message]:
    """Send a request to the writer of `root` and yield the lines of its answer.

    Raises:
        ChannelError: nobody listens, or the connection broke.
        ScreeError: the writer answered with an error.
    """
    path = socket_path(root)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        try:
            connection.settimeout(PATIENCE_SECONDS)
            connection.connect(str(path))
            connection.sendall(json.dumps(request).encode() + b"\n")
            connection.settimeout(None)
            with connection.makefile("rb") as lines:
                for line in lines:
                    message = json.loads(line)
                    if "error" in message:
                        raise ScreeError(str(message["error"]))
                    yield message
        except (OSError, ValueError) as error:
            raise ChannelError(f'The process that writes the index of "{root}" does not answer ({error}).') from error
