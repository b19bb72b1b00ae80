"""The session of one client: passes lines between its stdin and stdout and whoever answers them.

That is the process that writes the index, reached over its socket; or this process itself, once it holds the lease; or,
while the one that writes does not answer, a helper process that only reads. The client notices none of it: what it has
asked and not been told yet is asked again, after its handshake, of whoever comes next.

Most sessions are nothing but this module, so it imports nothing but small ones: no threads, no `asyncio`, no `re`.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import sys
import time

from scree.docs.contact import PING_REQUEST, SESSION_REQUEST, ChannelError, connect
from scree.docs.lease import INDEX_FOLDER, STARTING, WriterLease
from scree.errors import StorageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from scree.docs.host import Host

# The pause between two attempts to find whoever writes, at first and once a helper answers in its place: the contract
# wants the lease tried every 5 seconds.
RETRY_SECONDS = 0.05
LATER_SECONDS = 1.0

# A client is to be answered within 3 seconds though the writer hangs, and the helper takes half of them to start. So a
# request may go unanswered this long before the writer is asked for a sign of life, which it owes within the other.
PING_SECONDS = 0.3
PATIENCE_SECONDS = 0.8

# A process that has just become the writer has to start listening, on a machine where forty others start with it.
STARTING_SECONDS = 10.0

# A request that ended this many processes is not tried on another one.
MAX_LOSSES = 5

# No message of a client has a reason to be longer. What is gets an error, as long as it can be read at all.
MAX_MESSAGE_BYTES = 1_048_576
MAX_LINE_BYTES = 67_108_864

# How much of what somebody sends is held for somebody who does not take it.
MAX_WAITING_BYTES = 1_048_576
PART_BYTES = 65_536

INTERNAL_ERROR = -32603  # JSON-RPC 2.0
INVALID_REQUEST = -32600
TOO_LONG = f"The message is longer than {MAX_MESSAGE_BYTES:,} bytes."

# How often a process looks whether its parent still lives, where the system does not tell.
PARENT_SECONDS = 5.0


class Link:
    """A connection to somebody who answers.

    What comes back is lines of the JSON of a request's id (nothing, where it is no answer), a tab, and a message.

    Attributes:
        sent: the ids, as JSON, of the requests that went over it.
    """

    def __init__(self, connection: socket.socket, helper: int | None = None) -> None:
        connection.setblocking(False)
        self.sent: set[str] = set()
        self._connection = connection
        self._helper = helper
        self._outgoing = bytearray()
        self._incoming = bytearray()

    def fileno(self) -> int:
        """The descriptor of the connection."""
        return self._connection.fileno()

    @property
    def waiting(self) -> int:
        """How many bytes the other side has not taken yet."""
        return len(self._outgoing)

    def send(self, line: bytes) -> None:
        """Send a line as soon as the other side takes it."""
        self._outgoing += line + b"\n"

    def flush(self) -> None:
        """Send what the other side takes at once; that it has gone shows when reading."""
        if self._outgoing:
            try:
                del self._outgoing[: self._connection.send(self._outgoing)]
            except BlockingIOError:
                pass
            except OSError:
                self._outgoing.clear()

    def receive(self) -> Iterator[bytes]:
        """Yield the lines that have come.

        Raises:
            EOFError: the other side has gone.
        """
        try:
            part = self._connection.recv(PART_BYTES)
        except BlockingIOError:
            return
        except OSError as error:
            raise EOFError from error
        if not part:
            raise EOFError
        self._incoming += part
        while (end := self._incoming.find(b"\n")) >= 0:
            line = bytes(self._incoming[:end])
            del self._incoming[: end + 1]
            yield line

    def close(self) -> None:
        """Hang up; a helper process is ended."""
        self._connection.close()
        if self._helper is not None:
            os.kill(self._helper, signal.SIGKILL)  # it only reads
            os.waitpid(self._helper, 0)


class Relay:
    """One client's session with one root."""

    def __init__(self, root: str, incoming: int, outgoing: int) -> None:
        """Prepare.

        Args:
            root: the project folder.
            incoming: the descriptor that the client writes to.
            outgoing: the one it reads from.
        """
        self._root = root
        self._lease = WriterLease(os.path.join(root, INDEX_FOLDER), STARTING)
        self._incoming = incoming
        self._outgoing = outgoing
        self._from_client = bytearray()
        self._too_long = False
        self._for_client = bytearray()
        self._handshake: list[bytes] = []
        self._open: dict[str, bytes] = {}  # requests that are not answered, by their id as JSON
        self._losses: dict[str, int] = {}
        self._host: Host | None = None  # once this process holds the lease
        self._writer: Link | None = None
        self._greeted = False  # whether the writer has taken this session on
        self._ping: Link | None = None
        self._sign_at = 0.0  # when the writer last gave a sign of life
        self._asked_at: float | None = None  # since when it owes one
        self._silent = False
        self._helper: Link | None = None
        self._pid = 0  # of the process that writes
        self._trouble = ""  # why it does not answer this session
        self._patience = PATIENCE_SECONDS
        self._seeking_since: float | None = None
        self._seek_at = 0.0
        self._status: int | None = None  # to exit with

    def run(self) -> int:
        """Serve the client until it goes away; returns the exit status."""
        parent = _Parent()
        try:
            while self._status is None and not parent.gone():
                self._turn(parent)
            return self._status or 0
        finally:
            for link in self._links():
                link.close()
            if self._host is not None:
                self._host.close()

    def _turn(self, parent: _Parent) -> None:
        """Wait for something to do, and do it."""
        wait = self._attend(time.monotonic())
        waits = [seconds for seconds in (wait, parent.seconds) if seconds is not None]
        poll = select.poll()
        if parent.descriptor is not None:
            poll.register(parent.descriptor, select.POLLIN)
        link = self._link()
        if link is None or link.waiting < MAX_WAITING_BYTES:
            poll.register(self._incoming, select.POLLIN)
        if self._for_client:
            poll.register(self._outgoing, select.POLLOUT)
        for link in self._links():
            takes = select.POLLIN if len(self._for_client) < MAX_WAITING_BYTES else 0
            poll.register(link, takes | (select.POLLOUT if link.waiting else 0))
        ready = dict(poll.poll(1_000 * min(waits) if waits else None))
        if self._incoming in ready:
            self._from_the_client()
        if self._outgoing in ready:
            self._to_the_client()
        for link in self._links():
            if link.fileno() in ready:
                self._exchange(link)

    def _links(self) -> list[Link]:
        return [link for link in (self._writer, self._ping, self._helper) if link is not None]

    def _link(self) -> Link | None:
        """Whoever answers at this moment."""
        if self._writer is not None and self._greeted and not self._silent:
            return self._writer
        return self._helper

    # The client

    def _from_the_client(self) -> None:
        """Take what the client says, or that it has gone."""
        part = os.read(self._incoming, PART_BYTES)
        if not part:
            self._status = 0
        self._from_client += part
        while (end := self._from_client.find(b"\n")) >= 0:
            line = bytes(self._from_client[:end])
            del self._from_client[: end + 1]
            if self._too_long:
                self._too_long = False
            elif line.strip():
                self._ask(line)
        if len(self._from_client) > MAX_LINE_BYTES:
            self._too_long = True
            self._tell("null", INVALID_REQUEST, TOO_LONG)
        if self._too_long:
            self._from_client.clear()

    def _ask(self, line: bytes) -> None:
        """Pass on a message of the client, and remember what has to be said again to another process."""
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            message = None  # whoever answers says what is wrong with it
        key = None
        if isinstance(message, dict) and "method" in message:
            method = message["method"]
            if "id" in message:
                key = json.dumps(message["id"])
                if len(line) > MAX_MESSAGE_BYTES:
                    self._tell(key, INVALID_REQUEST, TOO_LONG)
                    return
                self._open[key] = line
            if method == "initialize":
                self._handshake = [line]
            elif method == "notifications/initialized":
                self._handshake.append(line)
            elif method == "notifications/cancelled" and isinstance(message.get("params"), dict):
                self._open.pop(json.dumps(message["params"].get("requestId")), None)
        link = self._link()
        if link is not None:
            link.send(line)
            if key is not None:
                link.sent.add(key)
            link.flush()

    def _to_the_client(self) -> None:
        """Write what the client is ready to take, or find that it has gone."""
        try:
            # As much as goes into a pipe that is ready, without waiting: the descriptor may be shared, and stays as is.
            del self._for_client[: os.write(self._outgoing, self._for_client[: select.PIPE_BUF])]
        except OSError:
            self._status = 0

    def _tell(self, key: str, code: int, text: str) -> None:
        error = {"code": code, "message": text}
        self._for_client += f'{{"jsonrpc":"2.0","id":{key},"error":{json.dumps(error)}}}\n'.encode()

    # Those who answer

    def _exchange(self, link: Link) -> None:
        """Take what has come over a link, and send what waits."""
        link.flush()
        try:
            for line in link.receive():
                if link is self._helper:
                    self._answer(link, line)
                else:
                    self._from_the_writer(link, line)
        except EOFError:
            self._lost(link)

    def _from_the_writer(self, link: Link, line: bytes) -> None:
        self._sign_at = time.monotonic()
        self._asked_at = None
        if link is self._ping:
            self._drop_ping()
        elif self._greeted:
            self._answer(link, line)
        elif line:
            # It does not take this session on.
            self._drop_writer()
            self._trouble = f"process {self._pid}, which keeps it current, is of another version of scree; restart it"
            self._seek_at = self._sign_at + LATER_SECONDS
            self._ask_a_helper()
            return
        else:
            self._greeted = True
            self._seeking_since = None
            self._introduce(link)
        if self._silent or (self._helper is not None and self._greeted):
            self._return_to_writer()

    def _answer(self, link: Link, line: bytes) -> None:
        """Pass on an answer that the client still waits for, or any other message of whoever answers now."""
        key, _, message = line.partition(b"\t")
        if not key:
            if link is self._link():
                self._for_client += message + b"\n"
        elif self._open.pop(key.decode(), None) is not None:
            self._losses.pop(key.decode(), None)
            self._for_client += message + b"\n"

    def _introduce(self, link: Link) -> None:
        """Say the handshake over a new link, whose answer the client knows, and what is open."""
        for line in self._handshake:
            link.send(line)
        for key, line in self._open.items():
            link.sent.add(key)
            if line not in self._handshake:
                link.send(line)
        link.flush()

    def _return_to_writer(self) -> None:
        """Go on with a writer that answers, again or at last."""
        assert self._writer is not None
        self._silent = False
        self._trouble = ""
        if self._helper is not None:
            self._helper.close()
            self._helper = None
        for key, line in self._open.items():
            if key not in self._writer.sent:
                self._writer.sent.add(key)
                self._writer.send(line)
        self._writer.flush()

    def _lost(self, link: Link) -> None:
        """Go on after somebody has gone."""
        if link is self._ping:
            self._drop_ping()  # the sign of life stays owed
            return
        for key in link.sent & self._open.keys():
            self._losses[key] = self._losses.get(key, 0) + 1
            if self._losses[key] == MAX_LOSSES:
                del self._open[key], self._losses[key]
                self._tell(key, INTERNAL_ERROR, f"{MAX_LOSSES} processes ended while they answered this.")
        if link is self._helper:
            self._helper.close()
            self._helper = None
        elif self._host is not None:
            self._status = 1  # a thread of this process has ended, and said why
        else:
            self._seek_at = 0.0 if self._greeted else time.monotonic() + RETRY_SECONDS
            self._drop_writer()

    def _drop_writer(self) -> None:
        if self._writer is not None:
            self._writer.close()
        self._drop_ping()
        self._writer = None
        self._greeted = self._silent = False
        self._asked_at = None

    def _drop_ping(self) -> None:
        if self._ping is not None:
            self._ping.close()
            self._ping = None

    # Who answers

    def _attend(self, now: float) -> float | None:
        """See to it that somebody answers; returns after how many seconds to do so again, None for not by itself."""
        if self._writer is None:
            if now >= self._seek_at:
                self._seek(now)
            if self._writer is None:
                if self._in_vain(now):
                    self._ask_a_helper()
                return max(0.0, self._seek_at - now)
        if self._host is not None:
            return None
        if self._silent:
            self._ask_a_helper()
            return None
        if self._asked_at is None:
            if not self._writer.sent & self._open.keys():
                return None
            if now < self._sign_at + PING_SECONDS:
                return self._sign_at + PING_SECONDS - now
            self._ask_for_a_sign(now)
        assert self._asked_at is not None
        if now < self._asked_at + PATIENCE_SECONDS:
            return self._asked_at + PATIENCE_SECONDS - now
        self._silent = True
        self._trouble = f"process {self._pid}, which keeps it current, does not answer"
        self._ask_a_helper()
        return None

    def _seek(self, now: float) -> None:
        """Become the process that writes, or find it."""
        if self._seeking_since is None:
            self._seeking_since = now
        self._seek_at = now + (LATER_SECONDS if self._in_vain(now) else RETRY_SECONDS)
        try:
            if self._lease.acquire():
                self._write()
                return
            contact = self._lease.contact()
        except StorageError:
            self._write()  # in vain, but what a client asks then ends with what is wrong
            return
        if contact is None:
            return
        self._pid, address = contact
        self._patience = STARTING_SECONDS if address == STARTING else PATIENCE_SECONDS
        if address in ("", STARTING):
            self._trouble = ""  # a command that does one thing, or a session that is about to listen
            return
        try:
            self._writer = Link(connect(address))
        except ChannelError:
            self._trouble = f"process {self._pid}, which keeps it current, cannot be reached"
            return
        self._writer.send(json.dumps(SESSION_REQUEST).encode())
        self._writer.flush()
        self._asked_at = now

    def _in_vain(self, now: float) -> bool:
        """Whether whoever writes has been looked for long enough."""
        return self._seeking_since is not None and now >= self._seeking_since + self._patience

    def _write(self) -> None:
        """Be the process that writes, for every session of the root, this one being the first."""
        from pathlib import Path

        from scree.docs.host import Host

        self._host = Host.writing(Path(self._root), self._lease)
        mine, theirs = socket.socketpair()
        self._host.adopt(theirs, own=True)
        self._writer = Link(mine)
        self._greeted = True
        self._introduce(self._writer)
        self._return_to_writer()

    def _ask_for_a_sign(self, now: float) -> None:
        self._asked_at = now
        _, address = self._lease.contact() or (0, "")
        try:
            self._ping = Link(connect(address))
        except ChannelError:
            return  # the sign of life stays owed
        self._ping.send(json.dumps(PING_REQUEST).encode())
        self._ping.flush()

    def _ask_a_helper(self) -> None:
        """Have a process of this session's own answer, from the index as it is."""
        if self._helper is not None or not self._open:
            return
        mine, theirs = socket.socketpair()
        with theirs:
            pid = os.posix_spawn(
                sys.executable,
                [sys.executable, "-P", "-m", "scree.docs.helper", self._root, str(self._pid), self._trouble],
                os.environ,
                file_actions=[(os.POSIX_SPAWN_DUP2, theirs.fileno(), 0), (os.POSIX_SPAWN_DUP2, 2, 1)],
            )
        self._helper = Link(mine, pid)
        self._introduce(self._helper)


class _Parent:
    """The process that has started this one.

    Attributes:
        descriptor: becomes readable when it ends; None where the system has no such thing.
        seconds: how often to look instead.
    """

    def __init__(self) -> None:
        self._pid = os.getppid()
        self.descriptor: int | None = None
        self.seconds: float | None = PARENT_SECONDS
        if sys.platform == "linux":
            try:
                self.descriptor = os.pidfd_open(self._pid)
                self.seconds = None
            except OSError:
                pass  # an older kernel, or a parent outside of this container

    def gone(self) -> bool:
        """Return whether it has ended."""
        return os.getppid() != self._pid


def serve(arguments: list[str]) -> int:
    """Run `scree serve` with these arguments, its own name among them; returns the exit status.

    Where a client is served, the process ends in here.
    """
    root = _chosen_root(arguments)
    if isinstance(root, int):
        return root
    incoming, outgoing = os.dup(0), os.dup(1)
    # Nothing else in this process reads what the client says, and what it prints is not for the client.
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    try:
        status = Relay(root, incoming, outgoing).run()
    except KeyboardInterrupt:
        status = 130
    # Threads in the middle of a search or an embedding are not waited for; SQLite does not mind.
    os._exit(status)


def _chosen_root(arguments: list[str]) -> str | int:
    """Return the root that the command line and the environment choose, or the exit status if they choose none.

    A child process finds out, so that what it imports to do so is gone afterwards.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            from scree.docs.commands import run

            status = run(arguments, root_to=writing)
        except SystemExit as end:
            sys.stdout.flush()
            status = end.code if isinstance(end.code, int) else 1
        except BaseException:  # noqa: BLE001 - a bug; two processes must not go on from here
            sys.excepthook(*sys.exc_info())
        finally:
            os._exit(status)
    os.close(writing)
    root = b""
    while part := os.read(reading, PART_BYTES):
        root += part
    os.close(reading)
    _, status = os.waitpid(child, 0)
    return os.fsdecode(root) if root else os.waitstatus_to_exitcode(status)
