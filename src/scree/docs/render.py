"""Hits, documents, status notes and replies as the exact text of the interface.

Pure. File text is data from strangers: whatever it holds, it cannot end its own element, begin another, or
add a line outside of one. So a status note written into a file stays inside its `<hit>`, while scree's own is
the last line, outside of every element. Refuses to rank, to read files and to decide what is shown.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from scree.core.printable import printable

# The contract's caps, in bytes of UTF-8. The marks that end a cut text are counted in.
MAX_HIT_BYTES = 4_000
MAX_RESPONSE_BYTES = 64 * 1024
MAX_DOCUMENT_BYTES = 256 * 1024

# A note is one line to glance at; a reason that comes from elsewhere is cut here.
MAX_REASON_CHARS = 500

CUT = "[cut]"
TRUNCATED = "\n[truncated at 256 KB]"
NO_RESULTS = "No matching documents."

ENTITIES = {"quot": '"', "lt": "<", "amp": "&"}
# What an attribute cannot hold as it is: `&` only where it would read as one of the escapes.
ESCAPED = re.compile(r'["<]|&(?=(?:quot|lt|amp);)')
ESCAPE = re.compile(r"&(quot|lt|amp);")

# A tag of ours, also as a careless reader sees it: white space, control and invisible characters passed over.
INVISIBLE = r"[\s\x00-\x1f\x7f-\xa0\xad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff]*+"
TAG = re.compile(rf"<(?={INVISIBLE}/?+{INVISIBLE}(?:hit|doc))", re.IGNORECASE)
SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Location:
    """A place in a file of the project.

    Attributes:
        path: relative to the root, with `/`, as it is on disk.
        start_line: 1-based; None where the file has changed and the text is gone.
        end_line: inclusive; None where it is not known.
    """

    path: str
    start_line: int | None
    end_line: int | None


@dataclass(frozen=True, slots=True)
class Hit:
    """One result of a search.

    Attributes:
        n: rank, from 1.
        location: where the chunk is now.
        trail: the headings above it.
        score: cosine similarity of query and chunk; None where no encoder is at hand.
        text: of the chunk, as it is in the file.
        also: where the same text is besides.
    """

    n: int
    location: Location
    trail: tuple[str, ...]
    score: float | None
    text: str
    also: tuple[Location, ...] = ()

    @property
    def stale(self) -> bool:
        """Whether the file has changed and no longer holds the text."""
        return self.location.start_line is None


def render_hits(hits: Sequence[Hit], note: str | None = None) -> str:
    """Return the text of a search: the hits, how many did not fit, and the status note, at most 64 KB in all.

    Args:
        hits: best first.
        note: the status note, one line.
    """
    elements = [_hit(hit) for hit in hits] or [NO_RESULTS]
    last = [] if note is None else [note]
    for shown in range(len(elements), -1, -1):
        omitted = len(elements) - shown
        more = [f"[{omitted} more hits omitted: output limit]"] if omitted else []
        response = "\n".join([*elements[:shown], *more, *last])
        if _size(response) <= MAX_RESPONSE_BYTES:
            return response
    return "\n".join(last)


def hits_as_json(hits: Sequence[Hit], note: str | None = None) -> dict[str, object]:
    """Return what `scree search --json` prints: names as elsewhere but without escapes, texts whole."""
    return {
        "hits": [
            {
                "n": hit.n,
                **_location_as_json(hit.location),
                "heading": _heading(hit.trail),
                "score": None if hit.score is None else round(hit.score, 3),
                "text": SURROGATE.sub("\ufffd", hit.text),
                "stale": hit.stale,
                "also": [_location_as_json(location) for location in hit.also],
            }
            for hit in hits
        ],
        "note": note,
    }


def render_document(path: str, start: int, end: int, text: str) -> str:
    """Return one `<doc>` element.

    Args:
        path: relative to the root, as it is on disk.
        start: first line of `text`, 1-based.
        end: last line of `text`; where the text is cut, the element names the last line it shows instead.
        text: lines `start` to `end`, joined with LF.
    """
    shown = neutralise(text)
    if _size(shown) > MAX_DOCUMENT_BYTES:
        shown = _cut(shown, MAX_DOCUMENT_BYTES - len(TRUNCATED))
        end = start + shown.count("\n")
        shown += TRUNCATED
    return f'<doc path="{escape_attribute(path)}" lines="{start}-{end}">\n{shown}\n</doc>'


def escape_attribute(text: str) -> str:
    """Return `text` as the value of an attribute: on one line, and free of `"` and `<`."""
    names = {character: name for name, character in ENTITIES.items()}
    return ESCAPED.sub(lambda match: f"&{names[match[0]]};", printable(text))


def unescape_path(path: str) -> str:
    """Return a path as printed without its escapes: `printable(path)` of the path on disk."""
    return ESCAPE.sub(lambda match: ENTITIES[match[1]], path)


def neutralise(text: str) -> str:
    """Return file text in which no `<` begins a tag of ours, and that can be encoded."""
    return SURROGATE.sub("\ufffd", TAG.sub("&lt;", text))


def note_first_sync(notes: int) -> str:
    """Return the status note of a session that builds a new index, `notes` documents so far."""
    return f"[index incomplete: first sync in progress, {notes} notes indexed so far]"


def note_other_builds(pid: int) -> str:
    """Return the status note for an index that another process builds."""
    return f"[index incomplete: another scree process (pid {pid}) is building it]"


def note_not_updating(reason: str) -> str:
    """Return the status note for an index that nobody keeps current, whatever lines the reason had."""
    words = " ".join(printable(" ".join(reason.split())).split())
    return f"[index not updating: {words[:MAX_REASON_CHARS]}]"


def note_over_cap(markdown_mb: float, cap_mb: float) -> str:
    """Return the status note for a folder with more markdown than `SCREE_FIRST_SYNC_MB`, both in MB."""
    # Rounded up, so that the size never reads as equal to the cap it is over.
    size = f"{math.ceil(round(markdown_mb * 10, 6)) / 10:g}"
    return (
        f"[not indexed: this folder has {size} MB of markdown, over SCREE_FIRST_SYNC_MB={cap_mb:g}; "
        'run "scree reindex" in it to index it anyway]'
    )


def note_printed_alike(others: int) -> str:
    """Return the line that follows a document where `others` more files have a path that prints like its own."""
    return f"[{others} more {'file has' if others == 1 else 'files have'} a path that prints like this one]"


def reindex_file(path: str, *, changed: bool) -> str:
    """Return the reply to `reindex` with a path, where this process writes."""
    return f'Re-indexed "{printable(path)}".' if changed else f'"{printable(path)}" is already up to date.'


def reindex_scan(scanned: int, indexed: int, removed: int, failed: int, deferred: int) -> str:
    """Return the reply to `reindex` without a path, where this process writes."""
    counts = f"{indexed} indexed, {removed} removed, {failed} failed, {deferred} deferred"
    return f"Scanned {scanned} notes: {counts}."


def reindex_first_sync(notes: int) -> str:
    """Return the reply to `reindex` during the first sync."""
    return f"The first sync is still running ({notes} notes indexed so far); new and changed files are included."


def reindex_elsewhere(pid: int) -> str:
    """Return the reply to `reindex` where another process writes."""
    return f"Another scree process (pid {pid}) keeps this index current; edits are picked up within a few seconds."


def _hit(hit: Hit) -> str:
    location = hit.location
    attributes = [f'n="{hit.n}"', f'path="{escape_attribute(location.path)}"']
    attributes.append('stale="true"' if hit.stale else f'lines="{_lines(location)}"')
    attributes.append(f'heading="{escape_attribute(_heading(hit.trail))}"')
    if hit.score is not None:
        # Adding zero turns a rounded -0.0 into 0.0.
        attributes.append(f'score="{round(hit.score, 3) + 0.0:.3f}"')
    if hit.also:
        places = (f"{other.path}:{_lines(other)}" if other.start_line else other.path for other in hit.also)
        attributes.append(f'also="{escape_attribute(", ".join(places))}"')
    text = neutralise(hit.text)
    if _size(text) > MAX_HIT_BYTES:
        text = _cut(text, MAX_HIT_BYTES - len(CUT)) + CUT
    return f"<hit {' '.join(attributes)}>\n{text}\n</hit>"


def _lines(location: Location) -> str:
    return str(location.start_line) if location.end_line is None else f"{location.start_line}-{location.end_line}"


def _heading(trail: tuple[str, ...]) -> str:
    return printable(" > ".join(trail))


def _location_as_json(location: Location) -> dict[str, object]:
    return {
        "path": printable(location.path),
        "start_line": location.start_line,
        "end_line": location.end_line,
    }


def _size(text: str) -> int:
    return len(text.encode())


def _cut(text: str, size: int) -> str:
    """Return the longest beginning of `text` of at most `size` bytes that ends between characters."""
    return text.encode()[:size].decode(errors="ignore")
