"""What the ignore rules say of one name in one folder. Pure.

Rules 1 and 2 go by the name; rules 3 and 4 by the ignore files in force, which the caller has read. What is
true of the disk, of links and repositories within, is the caller's business, and so is whether git tracks a
file.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from scree.core.gitignore_patterns import Pattern, PatternList
from scree.core.printable import printable

# Git's folder, and those that hold our indexes: out for good.
NEVER_INDEXED = frozenset({".git", ".scree", ".micro-scout"})

HIDDEN_BUT_IN = ".github"

# Where package managers put the code of others: npm, yarn, pnpm; Bower; jspm; Composer, Go and Bundler;
# virtual environments; pip; PEP 582; tox and nox; setuptools; CocoaPods; Carthage; Elm.
DEPENDENCY_FOLDERS = frozenset({
    "node_modules", ".yarn", ".pnpm-store", "bower_components", "jspm_packages", "vendor", ".bundle", ".venv",
    "venv", "virtualenv", "site-packages", "dist-packages", "__pypackages__", ".tox", ".nox", ".eggs", "Pods",
    "Carthage", "elm-stuff",
})  # fmt: skip

# Where build tools put what they make: Python, JavaScript and Gradle; Rust and Maven; IDEs; .NET; Xcode;
# Sphinx and OCaml; Jekyll; coverage.py; Storybook; web frameworks.
BUILD_FOLDERS = frozenset({
    "build", "dist", "__pycache__", ".gradle", "target", "out", "obj", "DerivedData", "_build", "_site",
    "htmlcov", "storybook-static", ".next", ".nuxt", ".output", ".svelte-kit", ".docusaurus", ".parcel-cache",
    ".turbo",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Verdict:
    """What each rule has against a path, as its printable reason; None where it has nothing.

    Attributes:
        hidden: rule 1.
        dependency: rule 2, of a dependency folder.
        build: rule 2, of a build folder; void for a file that git tracks.
        git: rule 3; void for a file that git tracks.
        for_good: rule 4, and the folders that are never indexed.
    """

    hidden: str | None = None
    dependency: str | None = None
    build: str | None = None
    git: str | None = None
    for_good: str | None = None

    @property
    def depends_on_git(self) -> bool:
        """Whether it matters if git tracks the file."""
        return bool(self.git or self.build) and not self.for_good

    def reason(self, *, tracked: bool) -> str | None:
        """Return the reason of the last rule that has one."""
        git, build = (None, None) if tracked else (self.git, self.build)
        return self.for_good or git or self.dependency or build or self.hidden


IN = Verdict()


class Source(NamedTuple):
    """An ignore file in force.

    Attributes:
        patterns: what it says.
        offset: where, in the paths that are judged, the part begins that is relative to its folder.
        label: how it is called in a reason.
    """

    patterns: PatternList
    offset: int
    label: str


class Surroundings(NamedTuple):
    """What is in force for the names in one folder; ignore files come weakest first.

    Attributes:
        verdict: what the rules say of the folder itself.
        git: the sources of rule 3.
        scree: the sources of rule 4.
    """

    verdict: Verdict
    git: tuple[Source, ...] = ()
    scree: tuple[Source, ...] = ()

    def of(self, verdict: Verdict) -> Surroundings:
        """Return what is in force in a folder of this folder, of which `verdict` was said."""
        return self if verdict is self.verdict else self._replace(verdict=verdict)

    def judge(self, path: bytes, name: str, *, folder: bool) -> Verdict:
        """Return what the rules say of one name in this folder.

        Args:
            path: where it is, as the sources count offsets.
            name: its last name.
            folder: whether it is a folder.
        """
        if name.lower() in NEVER_INDEXED:
            return Verdict(for_good=_named("hidden", name, folder))
        verdict = self.verdict
        if name[0] == "." and not verdict.hidden and not (folder and name == HIDDEN_BUT_IN):
            verdict = replace(verdict, hidden=_named("hidden", name, folder))
        if folder and name in DEPENDENCY_FOLDERS and not verdict.dependency:
            verdict = replace(verdict, dependency=_named("dependency", name, folder))
        if folder and name in BUILD_FOLDERS and not verdict.build:
            verdict = replace(verdict, build=_named("build", name, folder))
        if not verdict.git:
            match = _last_match(self.git, path, folder)
            if match and not match.negative:
                verdict = replace(verdict, git=match.quoted)
        # Inside a folder that is out, a name alone says too little to bring something back.
        match = _last_match(self.scree, path, folder, places_only=self.verdict is not IN)
        if match:
            return IN if match.negative else Verdict(for_good=match.quoted)
        return verdict

    def may_bring_back_below(self, path: bytes) -> bool:
        """Whether something inside the folder at `path`, which is out, may be in."""
        return any(source.patterns.may_bring_back_below(path[source.offset :]) for source in self.scree)


class _Match(NamedTuple):
    source: Source
    pattern: Pattern

    @property
    def negative(self) -> bool:
        return self.pattern.negative

    @property
    def quoted(self) -> str:
        text = self.pattern.text.decode("utf-8", "replace")
        return printable(f"{self.source.label}:{self.pattern.line}: {text}")


def _last_match(sources: tuple[Source, ...], path: bytes, folder: bool, *, places_only: bool = False) -> _Match | None:
    for source in reversed(sources):
        pattern = source.patterns.last_match(path[source.offset :], folder=folder, places_only=places_only)
        if pattern:
            return _Match(source, pattern)
    return None


def _named(rule: str, name: str, folder: bool) -> str:
    return f'{rule} {"folder" if folder else "file"} "{printable(name)}"'
