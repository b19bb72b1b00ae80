"""Which language a file is written in, by its name, and what is known of that language: the table `languages.toml`.

Pure. Refuses to look into files.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

TABLE = "languages.toml"


@dataclass(frozen=True, slots=True)
class Language:
    """A row of the table.

    Attributes:
        name: as users give it.
        role: `code`, `docs` or `config`; the latter two are only ever cut into chunks.
        suffixes: of its files, with the dot, lower case.
        names: of its files that have no such suffix, whole.
        grammar: the tree-sitter grammar as `module:function`; empty without one.
        second_grammar: the language whose grammar is tried where this one's finds errors; empty for none.
        second_sign: a regular expression; a line that starts so needs the second grammar, and the first is not tried.
        family: the languages with this word call each other.
        imports: how an import names a file, see `modules`; empty where we cannot tell.
        package: `directory` where the files of a folder see each other's names without an import; else empty.
        bare_members: whether a method calls another of its object by name alone.
    """

    name: str
    role: str
    suffixes: tuple[str, ...]
    names: tuple[str, ...] = ()
    grammar: str = ""
    second_grammar: str = ""
    second_sign: str = ""
    family: str = ""
    imports: str = ""
    package: str = ""
    bare_members: bool = False


def _read_table() -> dict[str, Language]:
    rows = tomllib.loads(files(__package__).joinpath(TABLE).read_text(encoding="utf-8"))
    table = {}
    for name, row in rows.items():
        lists = {key: tuple(row.get(key, ())) for key in ("suffixes", "names")}
        table[name] = Language(name, **{"family": name, **row, **lists})
    return table


TABLE_BY_NAME: Mapping[str, Language] = _read_table()

# Every language's name, sorted.
LANGUAGES = tuple(sorted(TABLE_BY_NAME))

# Those that are prose, which a search leaves out unless asked.
DOCS = frozenset(name for name, row in TABLE_BY_NAME.items() if row.role == "docs")

# Markup and configuration: chunks, never symbols.
CHUNKS_ONLY = frozenset(name for name, row in TABLE_BY_NAME.items() if row.role != "code")


@cache
def _by_name() -> tuple[dict[str, str], dict[str, str]]:
    rows = TABLE_BY_NAME.values()
    whole = {file_name: row.name for row in rows for file_name in row.names}
    suffix = {suffix: row.name for row in rows for suffix in row.suffixes}
    return whole, suffix


def language_of(path: str) -> str | None:
    """Return the language of the file at `path` by its name; None for an unknown one, which is not indexed.

    Args:
        path: names joined with `/`.
    """
    whole, by_suffix = _by_name()
    name = path.rsplit("/", 1)[-1]
    if name in whole:
        return whole[name]
    # The longest suffix that is known: of `a.d.ts` that would be `.d.ts`. A leading dot starts no suffix.
    dot = name.find(".", 1)
    while dot >= 0:
        language = by_suffix.get(name[dot:].lower())
        if language:
            return language
        dot = name.find(".", dot + 1)
    return None
