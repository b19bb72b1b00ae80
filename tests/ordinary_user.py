"""Permissions for real, also where the tests run as root, whom no permission stops."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

NOBODY = 65534


@contextmanager
def ordinary_user() -> Iterator[Path]:
    """Be a user without privileges inside the block; yields a folder of that user's.

    What the block imports must have been imported before, for that user may not be able to read it.
    """
    if os.getuid() != 0:
        with tempfile.TemporaryDirectory(prefix="scree-") as name:
            yield Path(name)
        return
    with tempfile.TemporaryDirectory(prefix="scree-") as name:
        try:
            os.chown(name, NOBODY, -1)
            os.setresuid(NOBODY, NOBODY, 0)
        except OSError as error:
            pytest.skip(f"runs as root, and cannot become an ordinary user here: {error}")
        try:
            yield Path(name)
        finally:
            os.setresuid(0, 0, 0)
