"""Names from the disk as one line that is safe to print."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scree.core.printable import printable


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("docs/a b.md", "docs/a b.md"),
        ("a\nb\r\tc\x1b[31m\x7f\x85.md", "abc[31m.md"),
        ("a\u2028b\u2029.md", "ab.md"),
        ("\u202egnp.md\u2066x\u2069", "gnp.mdx"),
        ("\udcff.md", "\ufffd.md"),
        ("👩\u200d💻 é e\u0301 नमस्\u200cते.md", "👩\u200d💻 é e\u0301 नमस्\u200cते.md"),
    ],
)
def test_only_what_breaks_or_reorders_a_line_is_left_out(name: str, shown: str) -> None:
    assert printable(name) == shown


@given(st.text(st.characters(exclude_categories=[])))
def test_what_is_printed_is_one_line_that_can_be_encoded(name: str) -> None:
    shown = printable(name)
    shown.encode()
    assert len(shown.splitlines()) <= 1
    assert printable(shown) == shown
