"""Source text → outline: symbols with their lines, fragments, module-level code, calls and imports.

Pure. Python by `ast`, the languages that have a grammar by tree-sitter, anything else in chunks. Refuses to raise,
whatever the text is: what does not parse becomes chunks, and the outline says so.
"""

from __future__ import annotations

from scree.scout.languages import TABLE_BY_NAME
from scree.scout.outlines import BYTE_ORDER_MARK, Call, Candidate, Import, Outline, chunks, split_lines
from scree.scout.python_symbols import python_outline
from scree.scout.tree_symbols import tree_outline

__all__ = ["Call", "Candidate", "Import", "Outline", "outline", "split_lines"]


def outline(source: str, language: str) -> Outline:
    """Return the outline of one file.

    Args:
        source: the decoded file; line ends as they are, with or without a byte order mark.
        language: a name from `languages.LANGUAGES`; any other gets chunks.
    """
    source = source.removeprefix(BYTE_ORDER_MARK)
    if language == "python":
        return python_outline(source)
    row = TABLE_BY_NAME.get(language)
    if row is not None and row.grammar:
        return tree_outline(source, row)
    return chunks(source, parsed=True)
