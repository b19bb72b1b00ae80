"""Markdown to measure on: any folder of it, or the documentation that comes with every installation.

The same folder, or the same versions of Python and the libraries, give the same documents in the same order.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import sysconfig
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from scree.core.ignore_rules import IgnoreRules
from scree.docs.chunks import Chunk, parse
from scree.docs.settings import MARKDOWN_SUFFIXES

# Written by many people over many years: reference, prose, code in between.
DOCUMENTED_PACKAGES = ("numpy", "mcp", "pydantic", "onnxruntime")

# Folders of Python packages that hold no documentation of their own.
LEFT_OUT = frozenset({"site-packages", "test", "tests", "idlelib"})

MAX_HEADING_LEVEL = 6


@dataclass(frozen=True, slots=True)
class Markdown:
    """One document to index: its path relative to a root, its text, and its chunks as scree cuts them."""

    path: str
    text: str
    chunks: tuple[Chunk, ...]


def gather(folder: Path | None, chunks: int) -> list[Markdown]:
    """Return documents that hold at least `chunks` chunks together, fewer only where there are no more.

    Args:
        folder: searched for markdown; None takes the documentation inside the standard library and some packages.
        chunks: how many are wanted.
    """
    files = documented_modules() if folder is None else markdown_files(folder)
    gathered: list[Markdown] = []
    missing = chunks
    # A sample of everything and not the first folders: the digest of a name is as good as chance, and stays.
    for name in sorted(files, key=lambda name: hashlib.sha256(name.encode("utf-8", "surrogateescape")).digest()):
        if missing <= 0:
            break
        text = module_as_markdown(name, files[name]) if folder is None else files[name].read_text("utf-8", "replace")
        document = Markdown(name, text, parse(text).chunks)
        gathered.append(document)
        missing -= len(document.chunks)
    return gathered


def write(root: Path, documents: Iterable[Markdown]) -> None:
    """Write documents as files below `root`."""
    for document in documents:
        target = root / document.path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(document.text, encoding="utf-8", newline="")


def markdown_files(folder: Path) -> dict[str, Path]:
    """Return what scree would index below `folder`, by relative path."""
    return {name: folder / name for name in IgnoreRules(folder.resolve(), MARKDOWN_SUFFIXES).walk().files}


def documented_modules() -> dict[str, Path]:
    """Return the modules of the standard library and of some packages, by the path their documentation shall have."""
    roots = {"python": Path(sysconfig.get_path("stdlib"))}
    for package in DOCUMENTED_PACKAGES:
        spec = importlib.util.find_spec(package)
        if spec is not None and spec.origin is not None:
            roots[package] = Path(spec.origin).parent
    modules = {}
    for package, root in roots.items():
        for path in root.rglob("*.py"):
            parts = path.relative_to(root).with_suffix("").parts
            if LEFT_OUT.isdisjoint(parts):
                modules[f"{package}/{'.'.join(parts)}.md"] = path
    return modules


def module_as_markdown(document: str, path: Path) -> str:
    """Return a module's docstrings: a section for the module and for each class, a paragraph for each function.

    Args:
        document: the path of the document, which tells the module's name.
        path: the module's source.
    """
    try:
        with warnings.catch_warnings(action="ignore"):
            tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):
        return ""
    return "\n\n".join(_sections(tree, (document.removesuffix(".md").replace("/", "."),)))


def _sections(
    node: ast.AsyncFunctionDef | ast.FunctionDef | ast.ClassDef | ast.Module, names: tuple[str, ...]
) -> Iterator[str]:
    text = ast.get_docstring(node)
    functions = [child for child in node.body if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)]
    classes = [child for child in node.body if isinstance(child, ast.ClassDef)]
    if text and isinstance(node, ast.ClassDef | ast.Module):
        yield f"{'#' * min(len(names), MAX_HEADING_LEVEL)} {'.'.join(names)}\n\n{text}"
    elif text:
        yield f"`{names[-1]}`: {text}"
    for child in (*functions, *classes):
        yield from _sections(child, (*names, child.name))
