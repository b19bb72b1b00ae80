"""A progress bar on a terminal; nothing anywhere else."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import NoReturn

from scree.docs.sync import Progress, Stage, silent


@contextlib.contextmanager
def progress_bar() -> Iterator[Progress]:
    """Yield a function that draws how far a sync is, on standard error if that is a terminal."""
    if not sys.stderr.isatty():
        yield silent
        return
    from tqdm import tqdm

    with contextlib.ExitStack() as bars:
        open_bars: dict[Stage, tqdm[NoReturn]] = {}

        def draw(stage: Stage, done: int, total: int) -> None:
            if total == 0:
                return
            if stage not in open_bars:
                bars.close()
                open_bars.clear()
                unit = " files" if stage == "reading" else " chunks"
                bar = tqdm(total=total, desc=stage, unit=unit, dynamic_ncols=True, leave=False, file=sys.stderr)
                open_bars[stage] = bars.enter_context(contextlib.closing(bar))
            bar = open_bars[stage]
            bar.total = total
            bar.update(done - bar.n)

        yield draw
