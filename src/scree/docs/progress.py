"""How far a sync is, on a terminal."""

from __future__ import annotations

from contextlib import AbstractContextManager

from scree.core import progress
from scree.docs.sync import Progress


def progress_bar() -> AbstractContextManager[Progress]:
    """Return a context that yields what draws the stages of a sync."""
    return progress.progress_bar({"reading": "files", "embedding": "chunks"})
