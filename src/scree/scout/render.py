"""How much of each snippet is shown, and the text block that shows a response. Pure.

Refuses to touch a snippet's text: what is shown is whole lines, as they stand in the file.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any

# Between two snippets; no line of source can pose as it, for those are shown behind a reference that says how many
# lines follow.
GAP = "\n\n"


def fitting(lines: Sequence[str], budget: int) -> int:
    """Return how many of the first `lines`, joined by line feeds, have at most `budget` characters."""
    return len(_lengths(lines, budget))


def allot(snippets: Sequence[Sequence[str]], budget: int) -> list[int]:
    """Return how many lines of each snippet are shown, the best snippet first, in `budget` characters altogether.

    Each gets its first line, the best first, as far as that goes. Short snippets are shown whole; longer ones get equal
    shares of what those leave, and then, the best first, what is left of that. So one long class does not take the room
    of five functions, and the best result is shown however long its first line is.
    """
    lengths = [_lengths(lines, budget) for lines in snippets]
    wanted = [
        each[-1] if len(each) == len(lines) and each else budget for each, lines in zip(lengths, snippets, strict=True)
    ]
    share = _share(wanted, budget)
    counts, left = [0] * len(snippets), budget
    for place, each in enumerate(lengths):
        if each and each[0] <= left:
            counts[place] = 1
            left -= each[0]
    # Whatever an equal share allows; then what is left.
    for allowed in (share, budget):
        for place, each in enumerate(lengths):
            used = each[counts[place] - 1] if counts[place] else 0
            counts[place] = bisect_right(each, min(max(allowed, used), used + left))
            left -= (each[counts[place] - 1] if counts[place] else 0) - used
    return counts


def search_text(response: Mapping[str, Any]) -> str:
    """Return a search response as text: warnings, then reference and source of each result and neighbour."""
    parts = [f"warning: {warning}" for warning in response["warnings"]]
    parts += [_snippet(result) for result in response["results"]]
    parts += [
        f"[{each['relation']}, {each['direction']}, of {each['from_id']}] {_snippet(each)}"
        for each in response["neighbors"]
    ]
    if not response["results"]:
        parts.append("no results")
    return GAP.join(parts)


def read_text(response: Mapping[str, Any]) -> str:
    """Return the response of a read as text."""
    return GAP.join([*(f"warning: {warning}" for warning in response["warnings"]), _snippet(response)])


def status_text(status: Mapping[str, Any]) -> str:
    """Return a status as text, one line a fact."""
    lines = [f"{name}: {value}" for name, value in status.items() if not isinstance(value, list | dict)]
    lines += [f"{language}: {count} files" for language, count in status["languages"].items()]
    lines += [f"skipped {one['count']}: {one['reason']} (such as {one['examples'][0]})" for one in status["skipped"]]
    lines += [f"warning: {warning}" for warning in status["warnings"]]
    return "\n".join(lines)


def _snippet(snippet: Mapping[str, Any]) -> str:
    name = f" {snippet['name']}" if snippet["name"] else ""
    cut = ", truncated" if snippet["truncated"] else ""
    return f"{snippet['reference']} {snippet['kind']}{name} (id {snippet['id']}{cut})\n{snippet['content']}"


def _lengths(lines: Sequence[str], budget: int) -> list[int]:
    """Return the characters of the first 1, 2, … lines, joined by line feeds, as far as they are within a budget."""
    lengths: list[int] = []
    total = -1
    for line in lines:
        total += 1 + len(line)
        if total > budget:
            break
        lengths.append(total)
    return lengths


def _share(sizes: Sequence[int], budget: int) -> int:
    """Return the size that all may have so that they fit together: those that are smaller leave more to the others."""
    left = budget
    ordered = sorted(sizes)
    for place, size in enumerate(ordered):
        share = left // (len(ordered) - place)
        if size > share:
            return share
        left -= size
    return budget
