"""The process that answers one session from the index as it is, while the one that writes does not answer.

A session starts it, talks to it over its standard input, which is a socket, and ends it. It only reads.
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
from pathlib import Path

from scree.docs.host import Host
from scree.docs.session import Session
from scree.docs.settings import Settings
from scree.errors import EncoderError


def main() -> None:
    """Serve the session at the other end of standard input until it hangs up.

    The arguments are the root, the pid of the process that writes, and why that does not answer, empty where it is only
    busy.
    """
    root, pid, trouble = sys.argv[1:]

    def open_session() -> Session:
        session = Session(Path(root), Settings.from_environment(os.environ))
        session.stand_by(int(pid), trouble)
        return session

    host = Host(Path(root), open_session)
    ended = host.adopt(socket.socket(fileno=os.dup(0)))
    # Somebody waits for the first answer already: what that needs is loaded while the protocol is imported.
    with contextlib.suppress(EncoderError):  # which the search will say
        host.session().encoder()
    ended.result()
    os._exit(0)


if __name__ == "__main__":
    main()
