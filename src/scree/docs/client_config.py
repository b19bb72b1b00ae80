"""Opt a repository in or out: scree's entry in the project's `.mcp.json`, and nothing else in that file.

The file is edited as text, at the one place that changes, so that its other bytes stay as they are.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path

from scree.errors import ScreeError

CONFIG_NAME = ".mcp.json"
SERVERS_KEY = "mcpServers"
ENTRY_KEY = "scree"
NEW_FILE_MODE = 0o644

# A byte order mark can only stand in front of everything.
_SPACE = re.compile(r"\ufeff?[ \t\r\n]*")
_INDENTED = re.compile(r"\n([ \t]+)\S")


class ClientConfigError(ScreeError):
    """The client's configuration file is not what it should be; it was left as it is."""


@dataclass(frozen=True, slots=True)
class _Member:
    key: str
    start: int  # of the key
    value: int  # of the value
    end: int  # of the value


def add_entry(root: Path, command: str) -> bool:
    """Add scree's entry, unless there is one; returns whether the file was changed.

    Args:
        root: the project folder.
        command: what the client starts.

    Raises:
        ClientConfigError: the file is not valid JSON, or not of the expected form; it is left alone.
    """
    path = root / CONFIG_NAME
    entry = {"command": command, "args": []}
    text = _read(path)
    if text is None:
        _write(path, json.dumps({SERVERS_KEY: {ENTRY_KEY: entry}}, indent=2) + "\n")
        return True
    top = _members(text, 0, path, "the file")
    servers = _find(top, SERVERS_KEY)
    if servers is None:
        _write(path, _insert(text, 0, top, SERVERS_KEY, {ENTRY_KEY: entry}))
        return True
    members = _members(text, servers.value, path, f'"{SERVERS_KEY}"')
    if _find(members, ENTRY_KEY) is not None:
        return False
    _write(path, _insert(text, servers.value, members, ENTRY_KEY, entry))
    return True


def remove_entry(root: Path) -> bool:
    """Remove scree's entry; returns whether there was one.

    Raises:
        ClientConfigError: as for `add_entry`.
    """
    path = root / CONFIG_NAME
    text = _read(path)
    if text is None:
        return False
    # Once for each time that it stands there: of a repeated key, clients take the last.
    changed = False
    while (without := _without_entry(text, path)) is not None:
        text, changed = without, True
    if changed:
        _write(path, text)
    return changed


def _without_entry(text: str, path: Path) -> str | None:
    servers = _find(_members(text, 0, path, "the file"), SERVERS_KEY)
    if servers is None:
        return None
    members = _members(text, servers.value, path, f'"{SERVERS_KEY}"')
    entry = _find(members, ENTRY_KEY)
    if entry is None:
        return None
    position = members.index(entry)
    if position > 0:
        start, end = members[position - 1].end, entry.end
    elif len(members) > 1:
        start, end = entry.start, members[1].start
    else:
        start, end = servers.value + 1, _skip(text, entry.end)
    return text[:start] + text[end:]


def _find(members: list[_Member], key: str) -> _Member | None:
    return next((member for member in reversed(members) if member.key == key), None)


def _read(path: Path) -> str | None:
    try:
        text = path.read_bytes().decode("utf-8")
        json.loads(text.removeprefix("\ufeff"), parse_constant=_refuse_constant)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ClientConfigError(f'"{path}" cannot be read ({error.strerror}); nothing was changed.') from error
    except (ValueError, RecursionError) as error:
        raise ClientConfigError(f'"{path}" is not valid JSON ({error}); mend it first, nothing was changed.') from error
    return text


def _refuse_constant(name: str) -> None:
    """Refuse what Python's parser takes and JSON does not know."""
    raise ValueError(f"{name} is not a number in JSON")


def _members(text: str, start: int, path: Path, what: str) -> list[_Member]:
    """List the members of the object at `start`, white space before it aside, of a text known to be valid JSON."""
    opening = _skip(text, start)
    if text[opening] != "{":
        raise ClientConfigError(f'In "{path}" {what} is not a JSON object; mend it first, nothing was changed.')
    decoder = json.JSONDecoder()
    members = []
    position = _skip(text, opening + 1)
    while text[position] != "}":
        key_start = position
        key, position = decoder.raw_decode(text, key_start)
        value = _skip(text, _skip(text, position) + 1)
        _, end = decoder.raw_decode(text, value)
        members.append(_Member(key, key_start, value, end))
        position = _skip(text, end)
        if text[position] == ",":
            position = _skip(text, position + 1)
    return members


def _skip(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    return match.end() if match else position


def _insert(text: str, start: int, members: list[_Member], key: str, value: object) -> str:
    """Insert a member as the last one of the object at `start`, laid out as its neighbours are."""
    opening = _skip(text, start)
    line = text[text.rfind("\n", 0, opening) + 1 : opening]
    outer = line[: len(line) - len(line.lstrip(" \t"))]
    indented = _INDENTED.search(text)
    unit = indented[1] if indented else "  "
    if members:
        before = text[: members[-1].start]
        gap = before[len(before.rstrip(" \t\r\n")) :]
    else:
        # In a file of one line, everything below the top stays in that line.
        gap = "" if opening > _skip(text, 0) and "\n" not in text[:opening] else f"\n{outer}{unit}"
    newline = "\r\n" if "\r\n" in text else "\n"
    _, broken, inner = gap.rpartition("\n")
    body = json.dumps(value, indent=unit).replace("\n", newline + inner) if broken else json.dumps(value)
    member = f"{json.dumps(key)}: {body}"
    if members:
        at = members[-1].end
        return f"{text[:at]},{newline + inner if broken else ' '}{member}{text[at:]}"
    closing = _skip(text, opening + 1)
    inside = f"{newline}{inner}{member}{newline}{outer}" if broken else member
    return text[: opening + 1] + inside + text[closing:]


def _write(path: Path, text: str) -> None:
    """Replace the file in one step, through a link if it is one, keeping its mode."""
    target = path.resolve()
    try:
        mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else NEW_FILE_MODE
        with contextlib.ExitStack() as on_error:
            with tempfile.NamedTemporaryFile("wb", dir=target.parent, prefix=f"{CONFIG_NAME}.", delete=False) as file:
                on_error.callback(os.unlink, file.name)
                file.write(text.encode("utf-8"))
                file.flush()
                os.fsync(file.fileno())
            os.chmod(file.name, mode)
            os.replace(file.name, target)
            on_error.pop_all()
    except OSError as error:
        raise ClientConfigError(f'"{path}" cannot be written ({error.strerror}); nothing was changed.') from error
