"""Which files an import names.

Pure. One way per kind of import, chosen by `imports` in the table of languages:

- `python`: a module is a file, or a folder with `__init__.py`, below a folder that is no package itself;
- `relative`: a path from the importing file's folder, its suffix or `/index` left out (JavaScript and its family);
- `rust`: `crate::`, `self::` and `super::` are paths from the crate's `src`, this module, and the one above;
- `package`: the module is the end of a folder's path (Java, Kotlin, Scala).

Refuses to look at the disk: it knows the paths it was given.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

from scree.scout.languages import TABLE_BY_NAME, language_of
from scree.scout.outlines import Import

INIT = "__init__"
# What a relative import may leave out, in the order in which bundlers look.
SCRIPT_SUFFIXES = (".ts", ".tsx", ".d.ts", ".js", ".jsx", ".mts", ".mjs", ".cts", ".cjs")


class Modules:
    """The files of a repository, as imports name them."""

    def __init__(self) -> None:
        self._paths: set[str] = set()
        # Python files by the last part of their module's name; other packages' files by their folder's last part.
        self._stems: dict[str, list[str]] = {}
        self._folders: dict[str, list[str]] = {}

    def add(self, path: str) -> None:
        """Take in a file."""
        self._paths.add(path)
        row = TABLE_BY_NAME[language_of(path) or ""]
        folder, _, name = path.rpartition("/")
        if row.imports == "python":
            stem = name.partition(".")[0]
            self._stems.setdefault(folder.rpartition("/")[2] if stem == INIT else stem, []).append(path)
        elif row.imports == "package":
            self._folders.setdefault(folder.rpartition("/")[2], []).append(path)

    def find(self, path: str, imported: Import, rest: str) -> Iterator[tuple[str, str]]:
        """Yield the files that `rest` of `imported` may be in, each with its name there.

        Args:
            path: the importing file.
            imported: the import.
            rest: what follows the imported name, joined with dots; empty for the name itself.
        """
        kind = TABLE_BY_NAME[language_of(path) or ""].imports
        name = ".".join(filter(None, (imported.member, rest)))
        if kind == "python":
            yield from self._python(path, imported, name)
        elif kind == "relative":
            found = self._relative(path, imported.module)
            if found and name:
                yield found, name
        elif kind == "rust":
            yield from ((found, name) for found in self._rust(path, imported.module) if name)
        elif kind == "package":
            yield from self._package(imported, rest)

    def _python(self, path: str, imported: Import, name: str) -> Iterator[tuple[str, str]]:
        for found in self._python_files(path, imported.module):
            if name:
                yield found, name
        # `from package import module`
        first, _, rest = name.partition(".")
        if rest and first == imported.member:
            joint = "" if imported.module.endswith(".") else "."
            for found in self._python_files(path, f"{imported.module}{joint}{first}"):
                yield found, rest

    def _python_files(self, path: str, module: str) -> list[str]:
        absolute = module.lstrip(".")
        level = len(module) - len(absolute)
        parts = absolute.replace(".", "/")
        if level:
            folder = path
            for _ in range(level):
                folder = posixpath.dirname(folder)
            base = posixpath.join(folder, parts).rstrip("/")
            return [found for found in (f"{base}.py", f"{base}/{INIT}.py") if found in self._paths]
        found = []
        for candidate in self._stems.get(parts.rpartition("/")[2], ()):
            where = posixpath.splitext(candidate)[0].removesuffix(f"/{INIT}")
            if where != parts and not where.endswith(f"/{parts}"):
                continue
            root = where[: len(where) - len(parts)]
            if f"{root}{INIT}.py" not in self._paths:
                found.append(candidate)
        return found if len(found) == 1 else []

    def _relative(self, path: str, module: str) -> str | None:
        if not module.startswith("."):
            return None
        base = posixpath.normpath(posixpath.join(posixpath.dirname(path), module))
        # In TypeScript one imports the file that the compiler will write.
        bare = posixpath.splitext(base)[0] if base.endswith((".js", ".jsx", ".mjs", ".cjs")) else base
        tries = [base, *(f"{each}{suffix}" for each in (base, bare, f"{base}/index") for suffix in SCRIPT_SUFFIXES)]
        return next((each for each in tries if each in self._paths), None)

    def _rust(self, path: str, module: str) -> list[str]:
        first, *parts = module.split("::")
        folder, _, name = path.rpartition("/")
        # `a/mod.rs` is module `a`, and `a/b.rs` has its children in `a/b`.
        own = folder if name in {"mod.rs", "lib.rs", "main.rs"} else posixpath.join(folder, name.removesuffix(".rs"))
        if first == "crate":
            before, source, _ = f"/{path}".rpartition("/src/")
            base = f"{before}{source}".strip("/") if source else ""
        elif first == "self":
            base = own
        elif first == "super":
            base = posixpath.dirname(own)
            while parts and parts[0] == "super":
                base, parts = posixpath.dirname(base), parts[1:]
        else:
            return []
        where = posixpath.join(base, *parts)
        tries = [f"{where}.rs", f"{where}/mod.rs"]
        if not parts:
            tries += [f"{where}/lib.rs", f"{where}/main.rs"]
        return [each for each in tries if each in self._paths]

    def _package(self, imported: Import, rest: str) -> Iterator[tuple[str, str]]:
        module, _, member = (
            imported.module.rpartition(".")
            if not imported.member
            else (
                imported.module,
                ".",
                imported.member,
            )
        )
        folder = module.replace(".", "/")
        name = ".".join(filter(None, (member, rest)))
        for path in self._folders.get(folder.rpartition("/")[2], ()):
            where = posixpath.dirname(path)
            if where == folder or where.endswith(f"/{folder}"):
                yield path, name
