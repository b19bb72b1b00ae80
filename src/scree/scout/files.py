"""Which files of a tree are indexed, and what was left out and why.

The ignore rules of scree decide, which agree with git's own list; this module adds what only code needs: known
languages. It opens nothing.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from scree.core.ignore_rules import OTHER_TYPE, IgnoreRules
from scree.core.printable import printable
from scree.errors import NotFoundError, RootError
from scree.scout.languages import language_of

# Of each reason so many paths are shown, as examples: what was left out can be a million files.
EXAMPLES = 3

# A suffix of every name: which types are known is decided here, so that the others can be counted.
ANY = ("",)

# Folders and files of tests, as the tools of many languages find them: pytest, go test, Jest, JUnit, NUnit, RSpec.
TEST = re.compile(
    r"(?:^|/)(?:tests?|__tests__|specs?|testing|testdata)/|(?:^|/)test_[^/]*$|(?:_test|_spec|\.test|\.spec|Tests?)\.[^./]+$"
)

UNREADABLE = "cannot be read"


@dataclass(slots=True)
class Skipped:
    """What was left out, by reason.

    Attributes:
        counts: files and folders by the printable reason; what lies in a folder that is out is not counted.
        examples: some of their paths, printable.
    """

    counts: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[str]] = field(default_factory=dict)

    def add(self, path: str, reason: str) -> None:
        """Count one path."""
        self.counts[reason] += 1
        examples = self.examples.setdefault(reason, [])
        if len(examples) < EXAMPLES:
            examples.append(printable(path))

    def as_json(self) -> list[dict[str, object]]:
        """Return the reasons, the most frequent first."""
        ordered = sorted(self.counts.items(), key=lambda item: (-item[1], item[0]))
        return [{"reason": reason, "count": count, "examples": self.examples[reason]} for reason, count in ordered]


class Found(NamedTuple):
    """A file that may be indexed.

    Attributes:
        path: relative to the root, with `/`.
        language: by its name.
        size: in bytes.
    """

    path: str
    language: str
    size: int


@dataclass(frozen=True, slots=True)
class Listing:
    """What one look at a tree found.

    Attributes:
        files: sorted by path.
        skipped: the rest.
    """

    files: tuple[Found, ...]
    skipped: Skipped


def list_files(root: Path) -> Listing:
    """Return the files of `root` that may be indexed, by git's list where there is git.

    Raises:
        RootError: the root cannot be listed.
        NotFoundError: there is no file to index; the sentence says why.
    """
    try:
        os.listdir(root)
    except OSError as error:
        raise RootError(f'The folder "{printable(str(root))}" cannot be listed: {error.strerror}.') from error
    walk = IgnoreRules(root, ANY).walk()
    skipped = Skipped()
    for path, reason in sorted(walk.skipped.items()):
        skipped.add(path, reason)
    for path in sorted(walk.unreadable):
        skipped.add(path, UNREADABLE)
    files: list[Found] = []
    for path, status in sorted(walk.files.items()):
        language = language_of(path)
        if language is None:
            skipped.add(path, OTHER_TYPE)
        else:
            files.append(Found(path, language, status.st_size))
    require_some(root, files, skipped)
    return Listing(tuple(files), skipped)


def is_test(path: str) -> bool:
    """Whether a file holds tests, by its path relative to the root."""
    return TEST.search(path) is not None


def require_some(root: Path, files: Iterable[object], skipped: Skipped) -> None:
    """Raise `NotFoundError` if there is nothing to index, with the most frequent reason."""
    if any(True for _ in files):
        return
    name = printable(str(root))
    if not skipped.counts:
        raise NotFoundError(f'There is no file in "{name}" to index; name the folder that holds the code.')
    reason, count = max(skipped.counts.items(), key=lambda item: (item[1], item[0]))
    of_all = skipped.counts.total()
    raise NotFoundError(
        f'No file in "{name}" can be indexed: of {of_all} entries left out, {count} for the reason "{reason}", such as '
        f'"{skipped.examples[reason][0]}"; name another folder, or bring files back by "!path" in .screeignore.'
    )
