from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from scree.docs.client_config import ClientConfigError, add_entry, remove_entry
from tests.ordinary_user import ordinary_user

COMMAND = "scree-mcp"
ENTRY = {"command": COMMAND, "args": []}

CHANGES: list[Callable[[Path], bool]] = [lambda root: add_entry(root, COMMAND), remove_entry]


def config(root: Path, text: str) -> Path:
    path = root / ".mcp.json"
    path.write_bytes(text.encode())
    return path


@pytest.mark.requirement("command-init")
def test_a_project_without_a_file_gets_one(tmp_path: Path) -> None:
    assert add_entry(tmp_path, COMMAND)
    text = (tmp_path / ".mcp.json").read_text()
    assert json.loads(text) == {"mcpServers": {"scree": ENTRY}}
    assert text.endswith("}\n")
    assert '\n  "mcpServers"' in text
    assert os.listdir(tmp_path) == [".mcp.json"]


@pytest.mark.requirement("command-init-formatting")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(
            '{\n    "mcpServers": {\n        "other": {"command": "x"}\n    }\n}\n',
            '{\n    "mcpServers": {\n        "other": {"command": "x"},\n        "scree": {\n'
            '            "command": "scree-mcp",\n            "args": []\n        }\n    }\n}\n',
            id="four spaces",
        ),
        pytest.param(
            '{\n\t"mcpServers": {}\n}',
            '{\n\t"mcpServers": {\n\t\t"scree": {\n\t\t\t"command": "scree-mcp",\n\t\t\t"args": []\n\t\t}\n\t}\n}',
            id="tabs, empty, no final newline",
        ),
        pytest.param(
            '{\r\n  "a": 1\r\n}\r\n',
            '{\r\n  "a": 1,\r\n  "mcpServers": {\r\n    "scree": {\r\n      "command": "scree-mcp",\r\n'
            '      "args": []\r\n    }\r\n  }\r\n}\r\n',
            id="CRLF",
        ),
        pytest.param(
            '{"mcpServers": {"a": {}}}',
            '{"mcpServers": {"a": {}, "scree": {"command": "scree-mcp", "args": []}}}',
            id="one line",
        ),
        pytest.param(
            '{"mcpServers": {}, "b": [1, 2]}\n',
            '{"mcpServers": {"scree": {"command": "scree-mcp", "args": []}}, "b": [1, 2]}\n',
            id="one line with an empty object and a final newline",
        ),
        pytest.param(
            "{}\n",
            '{\n  "mcpServers": {\n    "scree": {\n      "command": "scree-mcp",\n      "args": []\n    }\n  }\n}\n',
            id="nothing in it",
        ),
        pytest.param(
            '{\n"mcpServers": {\n"a": {}\n}\n}\n',
            '{\n"mcpServers": {\n"a": {},\n"scree": {\n  "command": "scree-mcp",\n  "args": []\n}\n}\n}\n',
            id="not indented",
        ),
        pytest.param(
            '\ufeff{ "mcpServers" : { "a" : 1 } , "z": "}" }',
            '\ufeff{ "mcpServers" : { "a" : 1, "scree": {"command": "scree-mcp", "args": []} } , "z": "}" }',
            id="byte order mark and loose spaces",
        ),
    ],
)
def test_the_entry_is_laid_out_as_the_file_is_and_nothing_else_moves(tmp_path: Path, before: str, after: str) -> None:
    path = config(tmp_path, before)
    assert add_entry(tmp_path, COMMAND)
    assert path.read_bytes().decode() == after


@pytest.mark.requirement("command-init-formatting")
def test_other_keys_keep_their_order_spelling_and_numbers(tmp_path: Path) -> None:
    inside = '"z": 1.50e+3, "a": "\\u00e9\\/", "mcpServers": {"ß": {"env": {"K": "}{"}}}, "a": 12345678901234567890123'
    path = config(tmp_path, "{" + inside + "}")
    assert add_entry(tmp_path, COMMAND)
    added = ', "scree": {"command": "scree-mcp", "args": []}'
    assert path.read_text(encoding="utf-8") == "{" + inside.replace("}}}", "}}" + added + "}") + "}"


def test_of_a_repeated_key_the_last_counts_as_it_does_for_clients(tmp_path: Path) -> None:
    path = config(tmp_path, '{"mcpServers": {"a": 1}, "mcpServers": {"b": 2}}')
    assert add_entry(tmp_path, COMMAND)
    assert json.loads(path.read_text())["mcpServers"] == {"b": 2, "scree": ENTRY}
    assert remove_entry(tmp_path)
    assert path.read_text() == '{"mcpServers": {"a": 1}, "mcpServers": {"b": 2}}'


def test_an_entry_that_is_there_stays_and_the_file_is_not_written(tmp_path: Path) -> None:
    path = config(tmp_path, '{"mcpServers": {"scree": {"command": "/my/own/scree-mcp"}}}')
    os.utime(path, ns=(1, 1))
    assert not add_entry(tmp_path, COMMAND)
    assert path.stat().st_mtime_ns == 1


@pytest.mark.requirement("command-init-remove")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{"mcpServers": {"scree": {}}}', '{"mcpServers": {}}'),
        ('{\n  "mcpServers": {\n    "scree": {}\n  }\n}\n', '{\n  "mcpServers": {}\n}\n'),
        ('{"mcpServers": {"scree": {}, "b": {}}, "c": 1}', '{"mcpServers": {"b": {}}, "c": 1}'),
        ('{"mcpServers": {"a": {} , "scree": {"x": ["}"]} , "b": {}}}', '{"mcpServers": {"a": {} , "b": {}}}'),
        ('{"mcpServers": {"a": {},\n"scree": {}\n}}', '{"mcpServers": {"a": {}\n}}'),
        ('{"mcpServers": {"scree": 1, "a": 2, "scree": 3}}', '{"mcpServers": {"a": 2}}'),
    ],
)
def test_removing_takes_out_the_entry_and_its_comma(tmp_path: Path, before: str, after: str) -> None:
    path = config(tmp_path, before)
    assert remove_entry(tmp_path)
    assert path.read_text() == after
    assert not remove_entry(tmp_path)


@pytest.mark.requirement("command-init-remove")
@pytest.mark.parametrize("text", [None, "{}", '{"scree": {}}', '{"mcpServers": {"scree2": {"scree": 1}}}'])
def test_removing_what_is_not_there_changes_nothing(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        os.utime(config(tmp_path, text), ns=(1, 1))
    assert not remove_entry(tmp_path)
    assert [path.stat().st_mtime_ns for path in tmp_path.iterdir()] == ([] if text is None else [1])


INVALID = {
    "empty": b"",
    "blank": b" \n",
    "comment": b'{\n  // mine\n  "mcpServers": {}\n}',
    "trailing comma": b'{"mcpServers": {},}',
    "two documents": b"{}{}",
    "not a number in JSON": b'{"mcpServers": {}, "a": NaN}',
    "infinite": b'{"mcpServers": {}, "a": -Infinity}',
    "latin-1": b'{"mcpServers": {}, "a": "\xe9"}',
    "utf-16": '{"mcpServers": {}}'.encode("utf-16"),
    "too deep": b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
}


@pytest.mark.requirement("command-init-invalid-json")
@pytest.mark.parametrize("content", INVALID.values(), ids=INVALID.keys())
def test_what_is_not_valid_json_is_never_touched(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / ".mcp.json"
    path.write_bytes(content)
    for change in CHANGES:
        with pytest.raises(ClientConfigError, match=r"is not valid JSON .* nothing was changed"):
            change(tmp_path)
    assert path.read_bytes() == content


@pytest.mark.requirement("command-init-invalid-json")
@pytest.mark.parametrize("text", ["5", "null", '"{}"', "[]", '[{"mcpServers": {}}]', '{"mcpServers": null}'])
def test_json_of_another_form_is_not_touched_either(tmp_path: Path, text: str) -> None:
    path = config(tmp_path, text)
    for change in CHANGES:
        with pytest.raises(ClientConfigError, match="is not a JSON object"):
            change(tmp_path)
    assert path.read_text() == text


def test_the_file_keeps_its_mode_and_may_be_a_link(tmp_path: Path) -> None:
    target = tmp_path / "shared.json"
    target.write_text("{}")
    target.chmod(0o640)
    (tmp_path / ".mcp.json").symlink_to(target)
    assert add_entry(tmp_path, COMMAND)
    assert (tmp_path / ".mcp.json").is_symlink()
    assert "scree" in json.loads(target.read_text())["mcpServers"]
    assert target.stat().st_mode & 0o777 == 0o640


def test_a_folder_in_its_place_has_a_sentence(tmp_path: Path) -> None:
    (tmp_path / ".mcp.json").mkdir()
    with pytest.raises(ClientConfigError, match="cannot be read"):
        add_entry(tmp_path, COMMAND)


def test_a_project_that_cannot_be_written_has_a_sentence_and_keeps_its_file() -> None:
    with ordinary_user() as folder:
        path = config(folder, "{}")
        folder.chmod(0o500)
        try:
            with pytest.raises(ClientConfigError, match=r"cannot be written .* nothing was changed"):
                add_entry(folder, COMMAND)
        finally:
            folder.chmod(0o700)
        assert path.read_text() == "{}"


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = config(tmp_path, "{}")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ClientConfigError, match="No space left"):
        add_entry(tmp_path, COMMAND)
    assert os.listdir(tmp_path) == [".mcp.json"]
    assert path.read_text() == "{}"
