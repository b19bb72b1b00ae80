"""The trace, the feedback and the age of a snapshot; the model that goes with an index."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from scree.errors import ArgumentError, ModelMismatchError
from scree.scout import traces
from scree.scout.models import ModelChoice
from scree.scout.service import Service, age
from scree.scout.snapshot import Snapshot
from scree.scout.traces import Trace
from tests.fake_encoder import FakeEncoder
from tests.scout.indexed_tree import LANTERNS, build_index, index_path, write


@pytest.fixture
def index(tmp_path: Path) -> Path:
    write(tmp_path, {"a.py": LANTERNS})
    build_index(tmp_path)
    return index_path(tmp_path)


def feedback(service: Service, response: dict[str, Any], *ids: str) -> None:
    service.feedback({"request_id": response["request_id"], "useful_ids": list(ids), "outcome": "helpful"})


@pytest.mark.requirement("scout-feedback")
def test_feedback_reaches_a_bounded_number_of_searches_back(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert traces.REMEMBERED_SEARCHES == 1_000
    monkeypatch.setattr(traces, "REMEMBERED_SEARCHES", 2)
    service = Service(index, None, Trace(tmp_path / "trace.jsonl"))
    first, second, third = (service.search({"query": "douse"}) for _ in range(3))
    with pytest.raises(ArgumentError, match="request_id"):
        feedback(service, first)
    feedback(service, second, second["results"][0]["id"])
    feedback(service, third)
    events = [json.loads(line)["event"] for line in (tmp_path / "trace.jsonl").read_text().splitlines()]
    assert events == ["search"] * 3 + ["feedback"] * 2


def test_a_trace_that_fails_later_costs_no_search(index: Path, tmp_path: Path) -> None:
    trace = Trace(tmp_path / "trace.jsonl")
    service = Service(index, None, trace)
    trace.close()
    response = service.search({"query": "douse"})
    assert response["results"]
    assert "cannot be written" in response["warnings"][-1]


@pytest.mark.parametrize(
    ("passed", "words"),
    [
        (timedelta(seconds=5), "less than a minute"),
        (timedelta(minutes=1, seconds=5), "1 minute"),
        (timedelta(hours=3), "3 hours"),
        (timedelta(days=2), "2 days"),
    ],
)
def test_an_age_is_in_words(index: Path, passed: timedelta, words: str) -> None:
    facts = Snapshot(index).facts
    assert age(replace(facts, built_at=(datetime.now(UTC) - passed).isoformat())) == words
    assert age(replace(facts, built_at="yesterday")) == "an unknown time"


@pytest.mark.requirement("scout-model-fingerprint")
def test_a_model_has_to_be_the_one_of_the_index(tmp_path: Path) -> None:
    write(tmp_path, {"a.py": LANTERNS})
    facts = build_index(tmp_path, FakeEncoder())
    with pytest.raises(ModelMismatchError, match="build it again"):
        ModelChoice.of("builtin", facts)
    with pytest.raises(ModelMismatchError, match="without a model"):
        ModelChoice.of("builtin", replace(facts, model=None, model_fingerprint=None))
    assert ModelChoice.of("none", facts).default_mode == "lexical"
    assert ModelChoice.of(None, replace(facts, model=None, model_fingerprint=None)).encoder is None
