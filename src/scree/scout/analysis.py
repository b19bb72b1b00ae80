"""One source file → what the snapshot stores of it: candidates, their index terms, what the encoder sees of them.

Runs in worker processes: an `Analysed` is small to send, whatever the file is. Reads one file, touches no database.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from scree.core.files import ChangedWhileRead, decode_utf8, read_source
from scree.core.lexical_index import CHUNK_SHIFT, HEADING_WEIGHT, MAX_FREQUENCY, TERM_SHIFT, term_numbers
from scree.errors import SkippedFile
from scree.scout.outlines import Candidate, Outline
from scree.scout.postings import defining_numbers
from scree.scout.symbols import outline, split_lines

# The contract's: a larger file is data or generated.
MAX_FILE_BYTES = 1_000_000

# What `outlines` calls a window of a long function; it shares the function's name and defines nothing.
FRAGMENT = "fragment"

# What is put in front of a candidate's code for the encoder, and its code, at most: far beyond what 512 tokens hold.
MAX_SEEN_CHARS = 8_192


@dataclass(frozen=True, slots=True)
class Analysed:
    """What is known of one file.

    Attributes:
        path: relative to the root.
        language: of the file.
        skipped: why it is not indexed after all; then the rest is empty.
        sha256: of its bytes.
        parsed: whether it has the symbols that its language should give.
        candidates: see `Outline`.
        lengths: `(candidates,)` int64, in index terms.
        postings: uint64, ascending, packed as in `lexical_index`; the chunk is the candidate's number in the file.
        outline: pickled; for the graph.
        texts: what the encoder sees of each candidate, context and code; empty without an encoder.
    """

    path: str
    language: str
    skipped: str | None = None
    sha256: bytes = b""
    parsed: bool = True
    candidates: tuple[Candidate, ...] = ()
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
        candidates=found.candidates,
        lengths=lengths,
        postings=postings,
        outline=pickle.dumps(found),
        texts=tuple(seen(path, candidate, lines) for candidate in found.candidates) if with_texts else (),
    )


def count_terms(path: str, found: Outline, lines: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """Return the length of each candidate in terms, and the postings of all.

    Candidates overlap, a class with its methods and a function with its fragments, so each line is cut into terms once.
    Path and qualified name are the heading: they count more.
    """
    by_line = [term_numbers(line) for line in lines]
    ends = np.cumsum([0, *map(len, by_line)])
    body = np.fromiter((number for line in by_line for number in line), np.uint64, int(ends[-1]))
    path_numbers = term_numbers(path)
    lengths = np.zeros(len(found.candidates), np.int64)
    parts = []
    for place, candidate in enumerate(found.candidates):
        heading = np.array(path_numbers + term_numbers(candidate.name), np.uint64)
        inside = body[ends[candidate.start_line - 1] : ends[candidate.end_line]]
        numbers, counts = np.unique(np.concatenate([inside, *[heading] * HEADING_WEIGHT]), return_counts=True)
        counts = np.minimum(counts, MAX_FREQUENCY)
        lengths[place] = counts.sum()
        parts.append(numbers << TERM_SHIFT | np.uint64(place << CHUNK_SHIFT) | counts.astype(np.uint64))
        if candidate.kind != FRAGMENT:
            names = np.array(defining_numbers(candidate.name), np.uint64)
            parts.append(names << TERM_SHIFT | np.uint64(place << CHUNK_SHIFT | MAX_FREQUENCY))
    postings = np.concatenate([np.empty(0, np.uint64), *parts])
    postings.sort()
    return lengths, postings


def seen(path: str, candidate: Candidate, lines: Sequence[str]) -> tuple[str, str]:
    """Return what the encoder sees of a candidate: path and qualified name, and its code without trailing blanks."""
    code = "\n".join(line.rstrip() for line in lines[candidate.start_line - 1 : candidate.end_line])
    return f"{path} {candidate.name}".rstrip(), code[:MAX_SEEN_CHARS]
