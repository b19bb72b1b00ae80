"""One root served to any number of clients by this process, each over a socket.

The process that holds the writer lease does this for every session of the root, and a helper does it for the session
that started it. The writer's socket is there before anything heavy is imported, so that other sessions find it at once.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING

from scree.docs.channel import Listener, Message, Send
from scree.docs.contact import PING_REQUEST, ChannelError
from scree.docs.lease import INDEX_FOLDER, WriterLease
from scree.docs.settings import Settings
from scree.errors import ScreeError, StorageError

if TYPE_CHECKING:
    import asyncio

    from scree.docs.mcp_server import Service
    from scree.docs.session import Session

# A client that asks nothing after the handshake still gets its index: heavy work begins this long after the start.
SETTLE_SECONDS = 0.5

# Work that a client no longer waits for may not keep the process alive.
EXIT_SECONDS = 0.5

# How long the loop that serves the clients may take for a turn and still count as alive.
TURN_SECONDS = 0.5


class Host:
    """Serves one root to the clients that are handed to it. May be used from several threads."""

    def __init__(self, root: Path, open_session: Callable[[], Session]) -> None:
        """Begin to serve.

        Args:
            root: the project folder.
            open_session: called once, in a thread of its own, as soon as somebody asks or time has passed.
        """
        self._root = root
        self._open_session = open_session
        self._lock = threading.Lock()
        self._wanted = threading.Event()  # somebody waits for an answer
        self._session: Future[Session] = Future()
        self._loop: Future[asyncio.AbstractEventLoop] = Future()
        self._service: Service | None = None
        self._serving: threading.Thread | None = None
        self._conversations: set[asyncio.Task[None]] = set()
        self._listener: Listener | None = None
        threading.Thread(target=self._start, name="scree-start", daemon=True).start()

    @classmethod
    def writing(cls, root: Path, lease: WriterLease, *, log_changes: bool = False) -> Host:
        """Serve as the writer, also those who find its socket.

        Args:
            root: the project folder.
            lease: held already; or not to be had, which the status notes then explain.
            log_changes: whether the log has a line for each change of the index.
        """

        def open_session() -> Session:
            from scree.docs.session import Session

            session = Session(root, Settings.from_environment(os.environ), lease)
            session.start(log_changes=log_changes)
            return session

        host = cls(root, open_session)
        if lease.intact():
            host._listen(lease)
        return host

    def adopt(self, connection: socket.socket, *, own: bool = False) -> Future[None]:
        """Serve the client at the other end of a connection, which is closed in the end.

        Args:
            connection: one that `Relay` passes messages over.
            own: whether the client's session is that of this process.

        Returns:
            What is done once the client has hung up.
        """
        ended: Future[None] = Future()
        with self._lock:
            if self._serving is None:
                self._serving = threading.Thread(target=self._serve, name="scree-serve", daemon=True)
                self._serving.start()
        self._loop.add_done_callback(
            lambda loop: loop.result().call_soon_threadsafe(self._welcome, connection, own, ended)
        )
        return ended

    def session(self) -> Session:
        """Return the session that answers, opened at once."""
        self._wanted.set()
        return self._session.result()

    def close(self) -> None:
        """Stop writing and listening; the process is about to end."""
        if self._session.done() and self._session.exception() is None:
            self._session.result().stop(EXIT_SECONDS)
        if self._listener is not None:
            self._listener.close()

    def _listen(self, lease: WriterLease) -> None:
        address = ""
        try:
            self._listener = Listener(self._root, self._answer, self.adopt)
            address = self._listener.address
        except ChannelError as error:
            print(f"scree: {error} Other sessions of this project answer for themselves.", file=sys.stderr)
        try:
            lease.publish(address)
        except StorageError as error:
            print(f"scree: {error}", file=sys.stderr)

    def _start(self) -> None:
        self._wanted.wait(SETTLE_SECONDS)
        try:
            self._session.set_result(self._open_session())
        except Exception as error:
            self._session.set_exception(error)
            raise

    def _serve(self) -> None:
        import asyncio

        import scree.docs.mcp_server  # noqa: F401 - outside of the loop, which is to turn

        try:
            asyncio.run(self._keep_serving())
        except BaseException:  # noqa: BLE001 - a bug; other sessions go on when this process ends
            traceback.print_exc()
            os._exit(1)

    async def _keep_serving(self) -> None:
        import asyncio

        from scree.docs.mcp_server import Service

        self._service = Service(self._root, self._call)
        self._loop.set_result(asyncio.get_running_loop())
        await asyncio.Event().wait()

    def _call(self, tool: str, arguments: Mapping[str, object], own: bool) -> str:
        return self.session().call(tool, arguments, own=own)

    def _welcome(self, connection: socket.socket, own: bool, ended: Future[None]) -> None:
        import asyncio

        async def conversation() -> None:
            assert self._service is not None
            try:
                await self._service.converse(connection, own=own)
            except Exception:  # noqa: BLE001 - one client's trouble is not another's
                traceback.print_exc()
            finally:
                ended.set_result(None)

        task = asyncio.get_running_loop().create_task(conversation())
        self._conversations.add(task)
        task.add_done_callback(self._conversations.discard)

    def _answer(self, request: Message, send: Send) -> None:
        """Do what another process asks for, sending it the progress and then the outcome."""
        if request != PING_REQUEST:
            self.session().writer.answer(request, send)
        elif self._loop.done():
            turned = threading.Event()
            self._loop.result().call_soon_threadsafe(turned.set)
            if not turned.wait(TURN_SECONDS):
                raise ChannelError("The process that writes this index is stuck; restart it.")


def watch(root: Path) -> None:
    """Keep the index of `root` current in the foreground, logging each change, until a signal asks to stop.

    Raises:
        StorageError: another process keeps it current already, or the index cannot be written.
    """
    lease = WriterLease(root / INDEX_FOLDER)
    if not lease.acquire():
        raise StorageError(f"Process {lease.holder()} keeps this index current already; there is nothing to do.")
    host = Host.writing(root, lease, log_changes=True)
    session = host.session()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: session.writer.stop())
    trouble = session.await_end()
    host.close()
    if trouble is not None:
        raise ScreeError(f"Stopped: {trouble}")
