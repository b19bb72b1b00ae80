"""Edges between the candidates of a repository: what contains what, and who calls whom.

Pure. A call is an edge where a reader could confirm it: the called name is defined in the same file where the caller
sees it, in the same package, or in the file that an import names. Where the text leaves it open, but only one
definition has the name, the edge says that it is approximate. Refuses to guess between two.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from scree.scout.languages import TABLE_BY_NAME, language_of
from scree.scout.modules import Modules
from scree.scout.outlines import TYPES, Call, Candidate, Import, Outline

CONTAINS = "contains"
CALLS = "calls"
CALLS_APPROXIMATE = "calls (approximate)"

# The object a method belongs to, in its own code.
RECEIVERS = frozenset({"self", "cls", "this", "Self", "$this", "static"})

# What one module takes from another is followed so far; packages that gather their parts go through one or two.
MAX_HOPS = 4

# A name with more definitions than this says nothing about which is meant.
MAX_NAMESAKES = 32


@dataclass(frozen=True, slots=True)
class Edge:
    """From one candidate to another.

    Attributes:
        source: path and index among its outline's candidates.
        target: the same of the other end.
        kind: `contains`, `calls`, or `calls (approximate)` where the text does not make the target certain.
    """

    source: tuple[str, int]
    target: tuple[str, int]
    kind: str


@dataclass(frozen=True, slots=True)
class _Names:
    """What one file defines and imports; all that is kept of it.

    Attributes:
        family: of languages that call each other.
        symbols: the first candidate with a qualified name.
        repeated: names that more than one candidate has.
        types: names of classes and the like.
        imports: by the name they give.
        stars: modules all of whose names are imported.
    """

    family: str
    symbols: dict[str, int]
    repeated: frozenset[str]
    types: frozenset[str]
    imports: dict[str, Import]
    stars: tuple[Import, ...]


def edges(outlines: Mapping[str, Outline]) -> Iterator[Edge]:
    """Yield the edges of a repository, each once.

    Args:
        outlines: by path. Walked twice, one outline at a time, so that a mapping may read them from a file; names are
            kept in memory, nothing else.
    """
    graph = _Graph()
    for path, outline in outlines.items():
        graph.add(path, outline)
    for path, outline in outlines.items():
        yield from graph.edges(path, outline)


class _Graph:
    """The names of all files."""

    def __init__(self) -> None:
        self._files: dict[str, _Names] = {}
        self._modules = Modules()
        # By family and last part of the name: path and qualified name; None once there are too many.
        self._namesakes: dict[tuple[str, str], list[tuple[str, str]] | None] = {}

    def add(self, path: str, outline: Outline) -> None:
        row = TABLE_BY_NAME.get(language_of(path) or "")
        if row is None or row.role != "code":
            return
        symbols: dict[str, int] = {}
        repeated = set()
        for index, candidate in enumerate(outline.candidates):
            if not candidate.name or candidate.kind == "fragment":
                continue
            if candidate.name in symbols:
                repeated.add(candidate.name)
                continue
            symbols[candidate.name] = index
            key = (row.family, candidate.name.rsplit(".", 1)[-1])
            known = self._namesakes.setdefault(key, [])
            if known is not None:
                known.append((path, candidate.name))
                if len(known) > MAX_NAMESAKES:
                    self._namesakes[key] = None
        types = frozenset(candidate.name for candidate in outline.candidates if candidate.kind in TYPES)
        stars = tuple(each for each in outline.imports if each.name == "*" and row.imports)
        imports = {each.name: each for each in outline.imports if each.name != "*"}
        self._files[path] = _Names(row.family, symbols, frozenset(repeated), types, imports, stars)
        self._modules.add(path)

    def edges(self, path: str, outline: Outline) -> Iterator[Edge]:
        for index, candidate in enumerate(outline.candidates):
            if candidate.parent is not None and candidate.kind != "fragment":
                yield Edge((path, candidate.parent), (path, index), CONTAINS)
        names = self._files.get(path)
        if names is None:
            return
        found: dict[tuple[int, tuple[str, int]], str] = {}
        for call in outline.calls:
            resolved = self._resolve(path, names, outline, call)
            if resolved is None:
                continue
            (target_path, name), kind = resolved
            target = (target_path, self._files[target_path].symbols[name])
            if target == (path, call.source):
                continue
            if found.get((call.source, target)) != CALLS:
                found[call.source, target] = kind
        for (source, target), kind in found.items():
            yield Edge((path, source), target, kind)

    def _resolve(self, path: str, names: _Names, outline: Outline, call: Call) -> tuple[tuple[str, str], str] | None:
        """Return path and name of what is called, and the kind of the edge."""
        caller = outline.candidates[call.source]
        first, _, rest = call.target.partition(".")
        local = self._in_type(names, outline, caller, rest) if first in RECEIVERS else None
        local = local or self._in_scope(path, names, caller, call.target)
        if local:
            return (path, local), CALLS_APPROXIMATE if local in names.repeated else CALLS
        place, known = self._by_import(path, names, call.target)
        if place:
            return place, CALLS_APPROXIMATE if place[1] in self._files[place[0]].repeated else CALLS
        if known:
            return None
        return self._by_name(path, names, call.target)

    @staticmethod
    def _in_type(names: _Names, outline: Outline, caller: Candidate, rest: str) -> str | None:
        """Return the member `rest` of the type around the caller."""
        around: Candidate | None = caller
        while around is not None:
            if around.name in names.types:
                return name if (name := f"{around.name}.{rest}") in names.symbols else None
            around = None if around.parent is None else outline.candidates[around.parent]
        # Methods stand outside their type in Go, Lua and C++: `Type.method`.
        name = f"{caller.name.rpartition('.')[0]}.{rest}"
        return name if name in names.symbols else None

    @staticmethod
    def _in_scope(path: str, names: _Names, caller: Candidate, target: str) -> str | None:
        """Return the definition in the file that `target` means where the caller stands."""
        row = TABLE_BY_NAME[language_of(path) or ""]
        scope = caller.name
        while scope:
            if row.bare_members or scope not in names.types:
                name = f"{scope}.{target}"
                if name in names.symbols:
                    return name
            scope = scope.rpartition(".")[0]
        return target if target in names.symbols else None

    def _by_import(self, path: str, names: _Names, target: str) -> tuple[tuple[str, str] | None, bool]:
        """Return path and name of a target that an import gives; and whether an import gives its first part."""
        head = target
        while head:
            imported = names.imports.get(head)
            if imported is not None:
                return self._member(path, imported, target[len(head) + 1 :], MAX_HOPS), True
            head = head.rpartition(".")[0]
        for star in names.stars:
            place = self._member(path, star, target, MAX_HOPS)
            if place:
                return place, True
        return None, False

    def _member(self, path: str, imported: Import, rest: str, hops: int) -> tuple[str, str] | None:
        """Return path and name of `rest` in what `imported` names; None unless there is one such place."""
        places: dict[tuple[str, str], None] = {}
        for module_path, name in self._modules.find(path, imported, rest):
            names = self._files[module_path]
            if name in names.symbols:
                places[module_path, name] = None
            elif hops:
                further = self._passed_on(module_path, names, name, hops - 1)
                if further:
                    places[further] = None
        return next(iter(places)) if len(places) == 1 else None

    def _passed_on(self, path: str, names: _Names, name: str, hops: int) -> tuple[str, str] | None:
        """Return where a module has a name from that it does not define."""
        first, _, rest = name.partition(".")
        imported = names.imports.get(first)
        if imported is not None:
            return self._member(path, imported, rest, hops)
        for star in names.stars:
            place = self._member(path, star, name, hops)
            if place:
                return place
        return None

    def _by_name(self, path: str, names: _Names, target: str) -> tuple[tuple[str, str], str] | None:
        """Return the one definition in the package, or else in the repository, that the name fits."""
        last = target.rsplit(".", 1)[-1]
        namesakes = self._namesakes.get((names.family, last))
        if not namesakes:
            return None
        row = TABLE_BY_NAME[language_of(path) or ""]
        if row.package == "directory":
            folder = path.rpartition("/")[0]
            within = [place for place in namesakes if place[0].rpartition("/")[0] == folder and place[1] == target]
            if len(within) == 1:
                return within[0], CALLS
        if len(namesakes) > 1:
            return None
        place = namesakes[0]
        member = "." in place[1] and place[1].rpartition(".")[0] in self._files[place[0]].types
        # A bare name calls no method of another type.
        if member and "." not in target:
            return None
        return place, CALLS_APPROXIMATE
