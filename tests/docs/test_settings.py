from __future__ import annotations

import pytest

from scree.docs.settings import Settings
from scree.errors import ArgumentError


def test_without_variables_the_defaults_hold() -> None:
    settings = Settings.from_environment({"PATH": "/bin", "SCREE_ENCODER": "", "SCREE_MAX_FILE_BYTES": ""})
    assert settings == Settings(max_file_bytes=1_000_000, first_sync_mb=32, encoder="builtin", threads=None)


def test_every_variable_counts() -> None:
    settings = Settings.from_environment(
        {
            "SCREE_MAX_FILE_BYTES": "2e6",
            "SCREE_FIRST_SYNC_MB": "0.5",
            "SCREE_ENCODER": "models/ours",
            "SCREE_THREADS": "3",
        }
    )
    assert settings == Settings(max_file_bytes=2_000_000, first_sync_mb=0.5, encoder="models/ours", threads=3)


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        *[("SCREE_MAX_FILE_BYTES", value, "a whole number from 1 to 1,000,000,000") for value in ("0", "-1", "1e10")],
        *[("SCREE_MAX_FILE_BYTES", value, "a whole number from 1 to") for value in ("0.5", "1.5", "nan", "1 MB")],
        *[("SCREE_THREADS", value, "a whole number from 1 to 1,024") for value in ("0", "two", "inf", "1e9")],
        *[("SCREE_FIRST_SYNC_MB", value, "a number above 0") for value in ("0", "-3", "nan", "inf", "much", " ")],
    ],
)
def test_a_wrong_value_is_named_with_what_is_allowed(name: str, value: str, allowed: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        Settings.from_environment({name: value})
    assert str(caught.value).startswith(f"{name} must be {allowed}")
    assert str(caught.value).endswith(f'not "{value}".')


def test_the_sentence_is_one_line() -> None:
    with pytest.raises(ArgumentError, match=r'^[^\n]+not "manylines"\.$'):
        Settings.from_environment({"SCREE_THREADS": "many\nlines"})
