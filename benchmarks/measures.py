"""Numbers with the targets they have to reach, as a table and as JSON."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

from benchmarks.report import table


@dataclass(frozen=True, slots=True)
class Measure:
    """One number, and what it has to reach.

    Attributes:
        what: in words, with the unit.
        value: the number; None where it could not be measured here.
        low: first quartile of what `value` is the median of, if it is one.
        high: third quartile.
        samples: how many there were.
        at_most: the target from above.
        at_least: the target from below.
    """

    what: str
    value: float | None
    low: float | None = None
    high: float | None = None
    samples: int = 1
    at_most: float | None = None
    at_least: float | None = None

    @property
    def target(self) -> str:
        """The target in words."""
        if self.at_most is not None:
            return f"<= {self.at_most:g}"
        return "" if self.at_least is None else f">= {self.at_least:g}"

    @property
    def verdict(self) -> str:
        """Whether the target was reached, in words."""
        if self.value is None:
            return "not measured"
        if self.at_most is not None:
            return "reached" if self.value <= self.at_most else "MISSED"
        if self.at_least is not None:
            return "reached" if self.value >= self.at_least else "MISSED"
        return ""


def ratios(above: Sequence[float], below: Sequence[float]) -> list[float]:
    """Return what each of `above` is of that of `below` which was measured beside it."""
    return [numerator / denominator for numerator, denominator in zip(above, below, strict=True)]


def median(
    what: str, samples: Sequence[float], *, at_most: float | None = None, at_least: float | None = None
) -> Measure:
    """Return the median of samples as a measure, with its quartiles."""
    low, high = quantile(samples, 0.25), quantile(samples, 0.75)
    return Measure(what, statistics.median(samples), low, high, len(samples), at_most, at_least)


def quantile(samples: Sequence[float], share: float) -> float:
    """Return the smallest sample that at least `share` of them do not exceed."""
    return sorted(samples)[max(0, -int(-share * len(samples) // 1) - 1)]


def reported(measures: Iterable[Measure]) -> list[dict[str, object]]:
    """Print the measures as a table; returns them as they are stored."""
    found = list(measures)
    rows = [(one.what, "" if one.value is None else one.value, one.target, one.verdict) for one in found]
    print(table([("measure", "value", "target", ""), *rows]))
    return [{**asdict(one), "verdict": one.verdict} for one in found]
