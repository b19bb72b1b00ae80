"""Front matter at the top of a markdown file: where it ends, its title, and whether it opts the file out.

Pure. It reads the two keys scree needs, `title` and `scree`, at the top level of YAML or TOML, and refuses to
be a YAML parser: one in Python takes seconds for 200 KB, and rejects a whole block for one bad line in it.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass

# A value is read up to here: a title is a line of text, and nesting costs a TOML parser more than its length.
MAX_VALUE_CHARS = 2_000


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """What the top of a file says about the file.

    Attributes:
        end: offset at which the text begins, behind front matter and BOM.
        title: as one line; empty if there is none.
        title_span: offsets of the title's entry, its key included.
        opted_out: whether it says `scree: ignore`.
    """

    end: int = 0
    title: str = ""
    title_span: tuple[int, int] = (0, 0)
    opted_out: bool = False


def read_front_matter(source: str) -> FrontMatter:
    """Read the front matter of a text whose lines all end with LF.

    It counts only from the very first line (after a BOM) and only if it is closed; otherwise `---` is a
    thematic break.
    """
    for syntax in (YAML, TOML):
        opening = syntax.opening.match(source)
        closing = syntax.closing.search(source, opening.end()) if opening else None
        if not opening or not closing or not syntax.first.match(source, opening.end(), closing.end()):
            continue
        start, end = opening.end(), closing.start()
        title, title_span = _entry(syntax, source, start, end, "title")
        marker, _ = _entry(syntax, source, start, end, "scree")
        return FrontMatter(
            end=min(closing.end() + 1, len(source)),
            title=title,
            title_span=title_span,
            opted_out=marker.casefold() == "ignore",
        )
    return FrontMatter(end=int(source.startswith("\ufeff")))


@dataclass(frozen=True, slots=True)
class _Syntax:
    """What tells one language of front matter from another.

    Attributes:
        opening: the first line of the file.
        closing: the line that ends the block.
        first: what the block begins with, blank lines and comments passed over, up to its closing line.
        separator: between key and value.
        value: a value with the lines it runs on over.
        scalar: the text a written value stands for; its line breaks may stay.
        last: what ends the top level before the block ends; None if nothing does.
    """

    opening: re.Pattern[str]
    closing: re.Pattern[str]
    first: re.Pattern[str]
    separator: str
    value: re.Pattern[str]
    scalar: Callable[[str], str]
    last: re.Pattern[str] | None = None


def _entry(syntax: _Syntax, source: str, start: int, end: int, name: str) -> tuple[str, tuple[int, int]]:
    """Return the value of a key as one line, empty if it is not there, and the offsets of key and value."""
    if syntax.last and (last := syntax.last.search(source, start, end)):
        end = last.start()
    key = re.compile(rf"""^(["']?){name}\1[ \t]*{syntax.separator}[ \t]*""", re.MULTILINE | re.IGNORECASE)
    if not (found := key.search(source, start, end)):
        return "", (start, start)
    value = syntax.value.match(source, found.end(), min(end, found.end() + MAX_VALUE_CHARS))
    text = value[0].rstrip() if value else ""
    line = " ".join(syntax.scalar(text.lstrip()).split())
    # A quoted title can spell half a surrogate pair, which no file or client could take.
    return re.sub("[\ud800-\udfff]", "\ufffd", line), (found.start(), found.end() + len(text))


def _yaml_scalar(text: str) -> str:
    if quoted := re.match(r'"((?:[^"\\]|\\.)*)"', text, re.DOTALL):
        content = " ".join(quoted[1].split())
        try:
            return str(json.loads(f'"{content}"', strict=False))
        except ValueError:  # an escape that YAML has and JSON has not
            return content
    if quoted := re.match(r"'((?:[^']|'')*)'", text):
        return quoted[1].replace("''", "'")
    if indicator := re.match(r"[|>][-+0-9]*[ \t]*(?:#.*)?(?:\n|$)", text):
        return text[indicator.end() :]
    plain = re.sub(r"(?:^|(?<=\s))#.*", "", text).strip()
    return "" if plain.casefold() in {"~", "null"} else plain


def _toml_scalar(text: str) -> str:
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):  # not TOML: no title then; the text below is still worth indexing
        return ""
    return value if isinstance(value, str) else ""


YAML = _Syntax(
    opening=re.compile(r"\ufeff?---[ \t]*\n"),
    closing=re.compile(r"^(?:---|\.\.\.)[ \t]*$", re.MULTILINE),
    # A key, or nothing at all. Prose or a heading between two thematic breaks is text.
    first=re.compile(r"[ \t\n]*(?:---|\.\.\.)[ \t]*\Z|(?:[ \t]*(?:#.*)?\n)*[ \t]*[^\s#*`>|\-].*?:(?:\s|\Z)"),
    separator=r":(?=\s|\Z)",
    value=re.compile(r"[^\n]*(?:\n(?:[ \t]+\S[^\n]*|[ \t]*(?=\n)))*"),
    scalar=_yaml_scalar,
)

TOML = _Syntax(
    opening=re.compile(r"\ufeff?\+\+\+[ \t]*\n"),
    closing=re.compile(r"^\+\+\+[ \t]*$", re.MULTILINE),
    first=re.compile(""),
    separator="=",
    value=re.compile(r""""{3}.*?"{3}|'{3}.*?'{3}|[^\n]*""", re.DOTALL),
    scalar=_toml_scalar,
    last=re.compile(r"^[ \t]*\[", re.MULTILINE),
)
