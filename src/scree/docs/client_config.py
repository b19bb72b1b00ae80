"""Opt a repository in or out: scree's entry in the project's `.mcp.json`, and nothing else in that file.

The file is edited as text, at the one place that changes, so that its other bytes stay as they are.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from dataclasses import dataclass
from json.decoder import scanstring
from pathlib import Path

from scree.errors import ScreeError

CONFIG_NAME = ".mcp.json"
SERVERS_KEY = "mcpServers"
ENTRY_KEY = "scree"

_SPACE = re.compile(r"[ \t\r\n]*")


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
    servers = _find(_members(text, 0, path, "the file"), SERVERS_KEY)
    if servers is None:
        return False
    members = _members(text, servers.value, path, f'"{SERVERS_KEY}"')
    entry = _find(members, ENTRY_KEY)
    if entry is None:
        return False
    position = members.index(entry)
    if position > 0:
        start, end = members[position - 1].end, entry.end
    elif len(members) > 1:
        start, end = entry.start, members[1].start
    else:
        start, end = servers.value + 1, text.index("}", entry.end)
    _write(path, text[:start] + text[end:])
    return True


def _find(members: list[_Member], key: str) -> _Member | None:
    return next((member for member in members if member.key == key), None)


def _read(path: Path) -> str | None:
    try:
        text = path.read_bytes().decode("utf-8")
        json.loads(text.removeprefix("\ufeff"))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ClientConfigError(f'"{path}" cannot be read ({error.strerror}); nothing was changed.') from error
    except ValueError as error:
        raise ClientConfigError(f'"{path}" is not valid JSON ({error}); mend it first, nothing was changed.') from error
    return text


def _members(text: str, start: int, path: Path, what: str) -> list[_Member]:
    """List the members of the object that begins at `start` of a text known to be valid JSON."""
    position = text.find("{", start)
    if text[start:position].strip(" \t\r\n\ufeff"):
        raise ClientConfigError(f'In "{path}" {what} is not a JSON object; mend it first, nothing was changed.')
    decoder = json.JSONDecoder()
    members = []
    position = _skip(text, position + 1)
    while text[position] != "}":
        key_start = position
        key, position = scanstring(text, position + 1)
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
    newline = "\r\n" if "\r\n" in text else "\n"
    if "\n" not in text:
        addition = f"{json.dumps(key)}: {json.dumps(value)}"
        at = members[-1].end if members else text.index("{", start) + 1
        return text[:at] + (", " if members else "") + addition + text[at:]
    unit = _indentation(text)
    opening = text.index("{", start)
    line = text[text.rfind("\n", 0, opening) + 1 : opening]
    outer = line[: len(line) - len(line.lstrip(" \t"))]
    inner = outer + unit
    body = json.dumps(value, indent=unit).replace("\n", newline + inner)
    addition = f"{newline}{inner}{json.dumps(key)}: {body}"
    if members:
        at = members[-1].end
        return f"{text[:at]},{addition}{text[at:]}"
    closing = text.index("}", opening)
    return f"{text[: opening + 1]}{addition}{newline}{outer}{text[closing:]}"


def _indentation(text: str) -> str:
    """Return one step of the file's indentation; two spaces where it shows none."""
    match = re.search(r"\n([ \t]+)\S", text)
    return match[1] if match else "  "


def _write(path: Path, text: str) -> None:
    """Replace the file in one step, through a link if it is one, keeping its mode."""
    target = path.resolve()
    try:
        mode = target.stat().st_mode & 0o777 if target.exists() else 0o644
        with tempfile.NamedTemporaryFile("wb", dir=target.parent, prefix=CONFIG_NAME, delete=False) as file:
            file.write(text.encode("utf-8"))
        os.chmod(file.name, mode)
        os.replace(file.name, target)
    except OSError as error:
        raise ClientConfigError(f'"{path}" cannot be written ({error.strerror}); nothing was changed.') from error
