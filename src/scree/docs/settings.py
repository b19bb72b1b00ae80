"""The `SCREE_*` environment variables as one frozen object."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from scree.errors import ArgumentError

MARKDOWN_SUFFIXES = frozenset({".md", ".markdown", ".mdx"})

MAX_FILE_BYTES = 1_000_000
FIRST_SYNC_MB = 32.0
BUILTIN_ENCODER = "builtin"


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
            ArgumentError: a value is not a number above zero; the sentence names the variable.
        """
        threads = environment.get("SCREE_THREADS")
        return cls(
            max_file_bytes=int(_positive(environment, "SCREE_MAX_FILE_BYTES", MAX_FILE_BYTES)),
            first_sync_mb=_positive(environment, "SCREE_FIRST_SYNC_MB", FIRST_SYNC_MB),
            encoder=environment.get("SCREE_ENCODER") or BUILTIN_ENCODER,
            threads=max(1, int(_positive(environment, "SCREE_THREADS", 1))) if threads else None,
        )


def _positive(environment: Mapping[str, str], name: str, default: float) -> float:
    raw = environment.get(name)
    if not raw:
        return default
    try:
        value = float(raw)
    except ValueError:
        value = -1.0
    if not 0 < value < float("inf"):
        raise ArgumentError(f'{name} must be a number above 0, not "{raw}".')
    return value
