from __future__ import annotations

import io
import sys

import pytest

from scree.core.progress import silent
from scree.docs.progress import progress_bar


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.requirement("command-progress")
def test_nothing_is_drawn_where_there_is_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    output = io.StringIO()
    monkeypatch.setattr(sys, "stderr", output)
    with progress_bar() as progress:
        assert progress is silent
        progress("reading", 1, 2)
    assert output.getvalue() == ""


@pytest.mark.requirement("command-progress")
def test_a_terminal_gets_a_bar_for_each_stage_and_is_left_clean(monkeypatch: pytest.MonkeyPatch) -> None:
    output = Terminal()
    monkeypatch.setattr(sys, "stderr", output)
    with progress_bar() as progress:
        for done in range(4):
            progress("reading", done, 3)
        progress("embedding", 0, 0)
        progress("embedding", 1, 8)
        progress("embedding", 0, 9)  # begun anew, with more to do
    drawn = output.getvalue()
    assert "reading" in drawn
    assert "files" in drawn
    assert drawn.index("reading") < drawn.index("embedding")
    assert "chunks" in drawn
    assert drawn.endswith("\r")
    assert drawn.rstrip("\r").rpartition("\r")[2].strip() == ""


def test_the_bar_goes_away_when_the_work_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    output = Terminal()
    monkeypatch.setattr(sys, "stderr", output)

    def fail() -> None:
        with progress_bar() as progress:
            progress("reading", 1, 3)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert output.getvalue().endswith("\r")
