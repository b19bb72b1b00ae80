"""The `SCREE_*` environment variables as one frozen object."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from scree.core.printable import printable
from scree.errors import ArgumentError

MARKDOWN_SUFFIXES = frozenset({".md", ".markdown", ".mdx"})

MAX_FILE_BYTES = 1_000_000
FIRST_SYNC_MB = 32.0
BUILTIN_ENCODER = "builtin"

# A file is read whole, into memory; more than this is no document.
LARGEST_MAX_FILE_BYTES = 1_000_000_000
MOST_THREADS = 1_024


@dataclass(frozen=True, slots=True)
class Settings:
    """What a user can set.

    Attributes:
        max_file_bytes: `SCREE_MAX_FILE_BYTES`; larger files are not indexed and not read, in bytes.
        first_sync_mb: `SCREE_FIRST_SYNC_MB`; a new index over more markdown than this is not begun by itself, in units
            of 1,000,000 bytes.
        encoder: `SCREE_ENCODER`; `builtin`, or the folder of another encoder.
        threads: `SCREE_THREADS`; how many processor cores embedding may use.
    """

    max_file_bytes: int = MAX_FILE_BYTES
    first_sync_mb: float = FIRST_SYNC_MB
    encoder: str = BUILTIN_ENCODER
    threads: int | None = None

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Settings:
        """Read the settings from `environment`.

        Raises:
            ArgumentError: a value is not a number in the range allowed; the sentence names the variable and the range.
        """
        threads = environment.get("SCREE_THREADS")
        return cls(
            max_file_bytes=_whole(environment, "SCREE_MAX_FILE_BYTES", MAX_FILE_BYTES, LARGEST_MAX_FILE_BYTES),
            first_sync_mb=_above_zero(environment, "SCREE_FIRST_SYNC_MB", FIRST_SYNC_MB),
            encoder=environment.get("SCREE_ENCODER") or BUILTIN_ENCODER,
            threads=_whole(environment, "SCREE_THREADS", 1, MOST_THREADS) if threads else None,
        )


def _whole(environment: Mapping[str, str], name: str, default: int, largest: int) -> int:
    raw = environment.get(name)
    if not raw:
        return default
    value = _number(raw)
    if not (1 <= value <= largest and value.is_integer()):
        raise ArgumentError(f'{name} must be a whole number from 1 to {largest:,}, not "{printable(raw)}".')
    return int(value)


def _above_zero(environment: Mapping[str, str], name: str, default: float) -> float:
    raw = environment.get(name)
    if not raw:
        return default
    value = _number(raw)
    if not 0 < value < math.inf:
        raise ArgumentError(f'{name} must be a number above 0, not "{printable(raw)}".')
    return value


def _number(raw: str) -> float:
    """Return what `raw` says, not-a-number (which is in no range) where that is no number."""
    try:
        return float(raw)
    except ValueError:
        return math.nan
