"""Embeddings that the indexes of a repository's other work trees hold already, so that no text is embedded twice.

Only embeddings are taken, and only under content keys that are asked for: no text of another branch gets in. The other
index is left as it is, down to the files beside it. Whatever is wrong with it (missing, damaged, locked, of another
schema, another user's) is the concern of those who use it; here it has nothing to lend.
"""

from __future__ import annotations

import os
import time
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from scree.core.database import database_files, in_use, unpack_embeddings
from scree.core.encoder import Encoder
from scree.core.git import WorkTree
from scree.docs.file_state import FileState
from scree.docs.store import Store, index_path
from scree.errors import StorageError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Batch = list[tuple[bytes, "NDArray[np.float32]"]]

# Contents asked for at a time: with three windows each some 10 ms, and 1 MB of rows.
BATCH = 256

# How far the length of a stored unit row may be from 1. Half precision rounds a coordinate by at most 2**-11 of it;
# twice that leaves room for what float32 and the smallest coordinates add.
LENGTH_TOLERANCE = 2**-10


def lenders(root: Path, tree: WorkTree | None) -> list[Path]:
    """Return where the indexes may be that hold the same texts as that of `root`; some may not exist.

    They are those of the top level of every work tree, and of the folder in it that `root` is in its own.

    Args:
        root: absolute and without links.
        tree: the work tree that it lies in, if any.
    """
    if tree is None:
        return []
    folders = (folder for top in tree.all_tops() for folder in (top / tree.prefix, top))
    return [index_path(folder) for folder in dict.fromkeys(folders) if folder != root]


def borrowed(paths: Iterable[Path], encoder: Encoder, keys: Iterable[bytes]) -> Generator[Batch, None, None]:
    """Yield what the indexes at `paths` hold of `keys`, each content once, in batches that are never empty.

    Args:
        paths: of indexes that others own.
        encoder: whose embeddings are wanted.
        keys: content keys.

    Yields:
        `(content key, (windows, dimension) float32 unit rows)` pairs.
    """
    wanted = dict.fromkeys(keys)
    for path in paths:
        if not wanted:
            return
        try:
            for batch in _lent(path, encoder, list(wanted)):
                for key, _ in batch:
                    del wanted[key]
                yield batch
        except (StorageError, OSError):
            # What is not borrowed is embedded, and whoever uses that index is told what is wrong with it.
            continue


def _lent(path: Path, encoder: Encoder, keys: list[bytes]) -> Iterator[Batch]:
    """Yield what one index holds of `keys`.

    Raises:
        StorageError: it cannot be used.
        OSError: it cannot be looked at.
    """
    began_ns = time.time_ns()
    status = path.lstat()
    # The work tree may be long gone, and its place anybody's. And a branch may have a link in any place.
    if status.st_uid != os.geteuid() or any(os.path.realpath(file) != str(file) for file in database_files(path)):
        return
    state = FileState.of(status)
    frozen = not in_use(path)
    with closing(Store.frozen(path) if frozen else Store.reader(path)) as lender:
        encoder_id = lender.encoder_id(encoder.fingerprint)
        if encoder_id is None:
            return
        for start in range(0, len(keys), BATCH):
            packed = lender.packed_embeddings(encoder_id, keys[start : start + BATCH])
            if frozen and not state.holds(began_ns, FileState.of(path.lstat())):
                return  # somebody writes to it now, and it was read without a lock
            checked = ((key, _unit_rows(blob, encoder.dimension)) for key, blob in packed.items())
            if batch := [(key, rows) for key, rows in checked if rows is not None]:
                yield batch


def _unit_rows(blob: object, dimension: int) -> NDArray[np.float32] | None:
    """Return the rows that a stored value holds; None unless there are some, and each is finite and of length 1."""
    import numpy as np

    if not isinstance(blob, bytes) or not blob:
        return None
    try:
        rows = unpack_embeddings(blob, dimension)
    except ValueError:
        return None  # not whole rows of this dimension
    # What is infinite or not a number is not near 1 either.
    return rows if np.all(np.abs(np.linalg.norm(rows, axis=1) - 1) <= LENGTH_TOLERANCE) else None
