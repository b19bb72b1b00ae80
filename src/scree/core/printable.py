"""Names from the disk as one line that is safe to print. Pure."""

from __future__ import annotations

import unicodedata

# Control characters, line and paragraph separators.
STRIPPED = frozenset({"Cc", "Zl", "Zp"})

# They reorder the text around them (UAX #9), so that a name could pose as another. Other format characters
# stay: emoji and several scripts need them.
BIDIRECTIONAL = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def printable(text: str) -> str:
    """Return `text` without the characters that break a line or reorder it.

    Half a surrogate pair, which stands for a byte that is not UTF-8 and cannot be encoded for output, becomes
    U+FFFD.
    """
    if text.isprintable():
        return text
    return "".join(map(_shown, text))


def _shown(character: str) -> str:
    category = unicodedata.category(character)
    if category == "Cs":
        return "\ufffd"
    return "" if category in STRIPPED or character in BIDIRECTIONAL else character
