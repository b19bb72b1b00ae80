"""Turn text into index terms.

The same function serves documents and queries, so a query term is found exactly where a document has it. There is no
stop-word list and no stemming, and nothing here knows a query language: quotes and operators are plain text. Pure: no
disk, no clock, no database.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

# Scripts written without spaces, and Hangul, whose particles are glued to the nouns: Unicode's Han, Hiragana, Katakana,
# Bopomofo and Hangul blocks, without their punctuation.
CJK = (
    "\u1100-\u11ff\u3005-\u3007\u3031-\u3035\u3041-\u309f\u30a1-\u30fa\u30fc-\u318e\u31a0-\u31bf\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U0001b000-\U0001b16f\U00020000-\U000323af"
)

# Emoji and dingbats, each a term of its own: people mark and search with them. Other symbols only separate.
EMOJI = "\u2600-\u27bf\U0001f300-\U0001faff"

# Longer runs (base64, hashes, minified code) are cut into pieces, so that no input makes one huge term; 64 letters hold
# a SHA-256 and every word people search for.
MAX_RUN = 64

# So many parts make one identifier; only generated text has more.
MAX_PARTS = 16


def _identifier(letters: str) -> str:
    run = rf"[{letters}]{{1,{MAX_RUN}}}"
    return rf"{run}(?:[._\-]+{run}){{0,{MAX_PARTS - 1}}}"


WORD = re.compile(_identifier(rf"^\W_{CJK}") + f"|[{CJK}]+|[{EMOJI}]")
# The same where all is ASCII, in half the time.
ASCII_WORD = re.compile(_identifier("A-Za-z0-9"))
LOWER = r"[^\W\d_A-Z]"
PART = re.compile(rf"[A-Z]+s?(?!{LOWER})|[A-Z]?{LOWER}+|\d+")
LOOSE_SEPARATOR = re.compile(r"(?<!\d)[._\-]+|[._\-]+(?!\d)")
IS_CJK = re.compile(f"[{CJK}]")

# Distinct words whose terms are remembered: a few megabytes, and most words of a repository's documents.
REMEMBERED_WORDS = 16_384


def terms(text: str) -> list[str]:
    """Return the index terms of `text`, in order, repeats kept; in time linear in its length.

    Letters are compared after NFKC and case folding. An identifier gives its parts, then itself without separators,
    which makes `frozenLockfile`, `frozen_lockfile` and `frozen-lockfile` one term; separators between digits stay, as
    in `2026.4.10`. Runs of CJK characters give their overlapping pairs, or the character that stands alone.
    """
    found: list[str] = []
    for word in words(text):
        found.extend(word_terms(word))
    return found


def words(text: str) -> list[str]:
    """Return what `text` is cut into before each piece gives its terms by `word_terms`."""
    found: list[str]
    found = ASCII_WORD.findall(text) if text.isascii() else WORD.findall(unicodedata.normalize("NFKC", text))
    return found


@lru_cache(REMEMBERED_WORDS)
def word_terms(word: str) -> tuple[str, ...]:
    """Return the terms of one match of `WORD`."""
    if IS_CJK.match(word):
        return tuple(word[start : start + 2] for start in range(max(1, len(word) - 1)))
    parts = tuple(part.casefold() for part in PART.findall(word))
    if len(parts) < 2:
        return (word.casefold(),)
    return (*parts, LOOSE_SEPARATOR.sub("", word).casefold())
