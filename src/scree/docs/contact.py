"""Find the socket of the process that writes an index, and make sure that it is the user's own.

Imports nothing but small modules, for each session of a project has this one in memory.
"""

from __future__ import annotations

import os
import socket
import stat

from scree import __version__
from scree.errors import ScreeError

# What a session asks for that wants to be served; only one of the same version is. The answer is an empty line, or an
# error as for every other request.
SESSION_REQUEST = {"do": "serve", "version": __version__}

# What asks for a sign of life.
PING_REQUEST = {"do": "ping"}


class ChannelError(ScreeError):
    """The writer cannot be reached, or its socket is not safe to use."""


def check_folder(folder: str | os.PathLike[str]) -> None:
    """Make sure that nobody else can put a socket into `folder`.

    Raises:
        ChannelError: the folder belongs to somebody else, or others may enter it.
    """
    try:
        found = os.lstat(folder)
    except OSError as error:
        raise ChannelError(f'The folder "{folder}" for sockets cannot be used ({error.strerror}).') from error
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise ChannelError(f'"{folder}" must be a folder that only you can open; remove it, and it is made again.')


def connect(address: str, *, seconds: float = 0.0) -> socket.socket:
    """Connect to the socket at `address`; the connection waits `seconds` for whatever it does, 0 not at all.

    Raises:
        ChannelError: nobody listens there, or it is not the user's own.
    """
    check_folder(os.path.dirname(address))
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        found = os.lstat(address)
        if not stat.S_ISSOCK(found.st_mode) or found.st_uid != os.getuid():
            raise ChannelError(f'"{address}" is not a socket of yours.')
        connection.settimeout(seconds)
        connection.connect(address)
    except OSError as error:
        connection.close()
        raise ChannelError(f'The process at "{address}" does not answer ({error.strerror or error}).') from error
    except ChannelError:
        connection.close()
        raise
    return connection
