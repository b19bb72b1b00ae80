"""One source file → what the snapshot stores of it: candidates, their index terms, what the encoder sees of them.

Runs in worker processes: an `Analysed` is small to send, whatever the file is. Reads one file, touches no database.
"""

from __future__ import annotations

import marshal
from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import starmap
from operator import attrgetter
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from scree.core.files import ChangedWhileRead, decode_utf8, read_source
from scree.core.lexical_index import (
    CHUNK_SHIFT,
    HEADING_WEIGHT,
    MAX_FREQUENCY,
    TERM_SHIFT,
    chunk_places,
    term_numbers,
)
from scree.errors import SkippedFile
from scree.scout.outlines import Call, Candidate, Import, Outline
from scree.scout.postings import defining_numbers
from scree.scout.symbols import outline, split_lines

# The contract's: a larger file is data or generated.
MAX_FILE_BYTES = 1_000_000

# What `outlines` calls a window of a long function; it shares the function's name and defines nothing.
FRAGMENT = "fragment"

# What is put in front of a candidate's code for the encoder, and its code, at most: far beyond what 512 tokens hold.
MAX_SEEN_CHARS = 8_192


CANDIDATE, CALL, IMPORT = (attrgetter(*(field.name for field in fields(kind))) for kind in (Candidate, Call, Import))

NOTHING = np.empty(0, np.uint64)


@dataclass(frozen=True, slots=True)
class Analysed:
    """What is known of one file.

    Attributes:
        path: relative to the root.
        language: of the file.
        skipped: why it is not indexed after all; then the rest is empty.
        sha256: of its bytes.
        parsed: whether it has the symbols that its language should give.
        lengths: `(candidates,)` int64, in index terms.
        postings: uint64, ascending, packed as in `lexical_index`; the chunk is the candidate's number in the file.
        outline: from `pack_outline`.
        texts: what the encoder sees of each candidate, context and code; empty without an encoder.
    """

    path: str
    language: str
    skipped: str | None = None
    sha256: bytes = b""
    parsed: bool = True
    lengths: NDArray[np.int64] | None = None
    postings: NDArray[np.uint64] | None = None
    outline: bytes = b""
    texts: tuple[tuple[str, str], ...] = ()


def analyse(root: Path, path: str, language: str, with_texts: bool) -> Analysed:
    """Read and analyse one file; whatever is wrong with it is its own reason to be skipped."""
    try:
        source = read_source(root, path, MAX_FILE_BYTES, decode_utf8)
    except SkippedFile as error:
        return Analysed(path, language, skipped=error.reason)
    except ChangedWhileRead:
        return Analysed(path, language, skipped="changed while it was read")
    except (FileNotFoundError, NotADirectoryError):
        return Analysed(path, language, skipped="vanished while the index was built")
    except OSError as error:
        return Analysed(path, language, skipped=f"cannot be read ({error.strerror})")
    found = outline(source.text, language)
    lines = split_lines(source.text)
    lengths, postings = count_terms(path, found, lines)
    return Analysed(
        path,
        language,
        sha256=source.sha256,
        parsed=found.parsed,
        lengths=lengths,
        postings=postings,
        outline=pack_outline(found),
        texts=tuple(seen(path, candidate, lines) for candidate in found.candidates) if with_texts else (),
    )


def count_terms(path: str, found: Outline, lines: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """Return the length of each candidate in terms, and the postings of all.

    Candidates overlap, a class with its methods and a function with its fragments, so each line is cut into terms once.
    Path and qualified name are the heading: they count more.
    """
    body, ends = number_lines(lines)
    path_numbers = term_numbers(path)
    parts, names = [], []
    for place, candidate in enumerate(found.candidates):
        heading = np.array((path_numbers + term_numbers(candidate.name)) * HEADING_WEIGHT, np.uint64)
        parts += [body[ends[candidate.start_line - 1] : ends[candidate.end_line]], heading]
        if candidate.kind != FRAGMENT:
            names += [number << TERM_SHIFT | place << CHUNK_SHIFT for number in defining_numbers(candidate.name)]
    sizes = [len(inside) + len(heading) for inside, heading in zip(parts[::2], parts[1::2], strict=True)]
    places = np.repeat(np.arange(len(sizes), dtype=np.uint64) << CHUNK_SHIFT, sizes)
    keys, counts = np.unique(np.concatenate([NOTHING, *parts]) << TERM_SHIFT | places, return_counts=True)
    counts = np.minimum(counts, MAX_FREQUENCY)
    lengths = np.bincount(chunk_places(keys), counts, len(sizes)).astype(np.int64)
    defining = np.array(names, np.uint64) | np.uint64(MAX_FREQUENCY)
    postings = np.concatenate([keys | counts.astype(np.uint64), defining])
    postings.sort()
    return lengths, postings


def number_lines(lines: Sequence[str]) -> tuple[NDArray[np.uint64], list[int]]:
    """Return the numbers of the terms of all lines, in order, and how many of them the first 0, 1, 2, … lines have."""
    numbers: list[int] = []
    ends = [0]
    for line in lines:
        if line:
            numbers += term_numbers(line)
        ends.append(len(numbers))
    return np.array(numbers, np.uint64), ends


def pack_outline(found: Outline) -> bytes:
    """Turn an outline into bytes, for this program on this machine: several times as fast as pickling its objects."""
    return marshal.dumps(
        (
            list(map(CANDIDATE, found.candidates)),
            list(map(CALL, found.calls)),
            list(map(IMPORT, found.imports)),
            found.parsed,
        )
    )


def unpack_outline(packed: bytes) -> Outline:
    """Turn bytes of `pack_outline` back into the outline."""
    candidates, calls, imports, parsed = marshal.loads(packed)
    return Outline(
        tuple(starmap(Candidate, candidates)), tuple(starmap(Call, calls)), tuple(starmap(Import, imports)), parsed
    )


def seen(path: str, candidate: Candidate, lines: Sequence[str]) -> tuple[str, str]:
    """Return what the encoder sees of a candidate: path and qualified name, and its code without trailing blanks."""
    code = "\n".join(line.rstrip() for line in lines[candidate.start_line - 1 : candidate.end_line])
    return f"{path} {candidate.name}".rstrip(), code[:MAX_SEEN_CHARS]
