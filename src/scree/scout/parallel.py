"""Analyse many files on every core, in order, with little on its way at a time."""

from __future__ import annotations

import gc
import itertools
import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Generator, Iterable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

from scree.core.encoder import usable_cores
from scree.errors import ScreeError
from scree.scout.analysis import Analysed, analyse
from scree.scout.files import Found

# Below this much source a tree is analysed faster than worker processes start: they take about half a second, in which
# one core gets through some 2 MB.
MIN_BYTES_FOR_WORKERS = 2_000_000

# Files go to the workers in batches of about so many bytes, small enough that none waits long for its turn.
BATCH_BYTES = 200_000
# Batches in work or waiting for each worker.
BATCHES_AHEAD = 3


def analyse_all(root: Path, files: Sequence[Found], with_texts: bool) -> Generator[Analysed, None, None]:
    """Yield what is known of each file, in order. Closing the generator ends the workers."""
    workers = usable_cores()
    if workers == 1 or sum(file.size for file in files) < MIN_BYTES_FOR_WORKERS:
        yield from _analyse_here(root, files, with_texts)
        return
    # Not forked: the caller may have threads, and locks with them.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, context, _start_worker)
    ahead: deque[Future[list[Analysed]]] = deque()
    try:
        for batch in batches(files):
            ahead.append(pool.submit(analyse_batch, root, batch, with_texts))
            if len(ahead) >= BATCHES_AHEAD * workers:
                yield from ahead.popleft().result()
        while ahead:
            yield from ahead.popleft().result()
    except BrokenProcessPool as error:
        raise ScreeError(
            "A process that reads source files was ended from outside, as happens when memory runs out; try again."
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


def _analyse_here(root: Path, files: Iterable[Found], with_texts: bool) -> Generator[Analysed, None, None]:
    # A syntax tree is many objects without cycles: looking for cycles among them doubles the time of a parse.
    was_enabled = gc.isenabled()
    for file in files:
        gc.disable()
        try:
            analysed = analyse(root, file.path, file.language, with_texts)
        finally:
            if was_enabled:
                gc.enable()
        yield analysed


def analyse_batch(root: Path, files: Sequence[Found], with_texts: bool) -> list[Analysed]:
    """Return what is known of each file of a batch; runs in a worker."""
    return [analyse(root, file.path, file.language, with_texts) for file in files]


def batches(files: Iterable[Found]) -> Iterable[list[Found]]:
    """Cut the files into runs of about `BATCH_BYTES`."""
    ends = itertools.accumulate((file.size for file in files), initial=0)
    for _, batch in itertools.groupby(zip(ends, files, strict=False), key=lambda pair: pair[0] // BATCH_BYTES):
        yield [file for _, file in batch]


def _start_worker() -> None:
    gc.disable()  # see `_analyse_here`
    # The terminal sends an interrupt to all; the parent decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End this process when its parent is gone: a worker whose parent was killed waits for work for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
