"""A progress bar on a terminal; nothing anywhere else."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import NoReturn


def silent(stage: str, done: int, total: int) -> None:
    """Show nothing."""


@contextlib.contextmanager
def progress_bar(units: Mapping[str, str]) -> Iterator[Callable[[str, int, int], None]]:
    """Yield a function that draws how far a stage is, on standard error if that is a terminal.

    Args:
        units: what is counted in each stage.
    """
    if not sys.stderr.isatty():
        yield silent
        return
    from tqdm import tqdm

    with contextlib.ExitStack() as bars:
        open_bars: dict[str, tqdm[NoReturn]] = {}

        def draw(stage: str, done: int, total: int) -> None:
            if total == 0:
                return
            if stage not in open_bars:
                bars.close()
                open_bars.clear()
                unit = f" {units[stage]}"
                bar = tqdm(total=total, desc=stage, unit=unit, dynamic_ncols=True, leave=False, file=sys.stderr)
                open_bars[stage] = bars.enter_context(contextlib.closing(bar))
            bar = open_bars[stage]
            bar.total = total
            bar.update(done - bar.n)

        yield draw
