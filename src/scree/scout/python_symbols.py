"""Python source → outline, by the standard library's `ast`.

Pure. Which syntax parses is decided by the Python that runs; what does not is cut into chunks. Refuses to run or
import anything.
"""

from __future__ import annotations

import ast
import warnings

from scree.scout.outlines import CallSite, Definition, Import, Outline, assemble, chunks, split_lines

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def python_outline(source: str) -> Outline:
    """Return functions, methods and classes, from the first decorator on, and the module-level code between them."""
    try:
        with warnings.catch_warnings():
            # What the compiler thinks of somebody's escape sequences is none of our business.
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
    # SyntaxError: no Python; ValueError: NUL or a lone surrogate; the others: nested deeper than the parser goes.
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return chunks(source, parsed=False)
    walk = _Walk(split_lines(source))
    walk.run(tree)
    return assemble(source, walk.definitions, walk.calls, walk.imports)


class _Walk:
    """One pass over a tree; with a stack of its own, since `elif` nests as deep as a file is long."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self.definitions: list[Definition] = []
        self.calls: list[CallSite] = []
        self.imports: list[Import] = []

    def run(self, tree: ast.Module) -> None:
        """Fill the lists."""
        stack: list[tuple[ast.AST, int | None]] = [(tree, None)]
        while stack:
            node, parent = stack.pop()
            inside = parent
            if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
                inside = self._define(node, parent)
            elif isinstance(node, ast.Call):
                target = _dotted(node.func)
                if target:
                    self.calls.append(CallSite(parent, node.lineno, target))
            elif isinstance(node, (ast.Import, ast.ImportFrom)):
                self._import(node)
            stack += [(child, inside) for child in reversed(list(ast.iter_child_nodes(node)))]

    def _define(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, parent: int | None) -> int:
        outer = None if parent is None else self.definitions[parent]
        if isinstance(node, ast.ClassDef):
            kind = "class"
        else:
            kind = "method" if outer and outer.kind == "class" else "function"
        name = f"{outer.name}.{node.name}" if outer else node.name
        end = node.end_lineno or node.lineno
        self.definitions.append(Definition(name, kind, self._first_line(node), end, parent))
        return len(self.definitions) - 1

    def _first_line(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> int:
        if not node.decorator_list:
            return node.lineno
        line = node.decorator_list[0].lineno
        # An expression's line is not its parenthesis': the @ may stand further up.
        while line > 1 and not self.lines[line - 1].lstrip().startswith("@"):
            line -= 1
        return line

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        if isinstance(node, ast.Import):
            self.imports += (Import(each.asname or each.name, each.name, "") for each in node.names)
        else:
            module = "." * node.level + (node.module or "")
            for each in node.names:
                self.imports.append(Import(each.asname or each.name, module, "" if each.name == "*" else each.name))


def _dotted(node: ast.expr) -> str:
    """Return a chain of attributes as text; empty for anything else."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return ".".join([node.id, *reversed(names)])
