"""What holds for every hit and document, whatever stands in names and texts."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scree.core.printable import printable
from scree.docs.render import (
    MAX_DOCUMENT_BYTES,
    MAX_HIT_BYTES,
    MAX_RESPONSE_BYTES,
    Hit,
    Location,
    escape_attribute,
    neutralise,
    note_not_updating,
    render_document,
    render_hits,
    unescape_path,
)

SNIPPETS = st.sampled_from(
    [
        "<hit",
        "</hit>",
        "</ HIT >",
        "<\nhit",
        "<doc>",
        "</\u00a0doc",
        "<",
        "/",
        "\n",
        "\r",
        " ",
        "\u2028",
        '"',
        "&",
        "lt;",
        "&lt;",
        "amp;",
        "quot;",
        "hit",
        "[cut]",
        "[index not updating: x]",
        "日本語",
        "\udce9",
        "\u200b",
        ' n="1">',
        "x" * 4_000,
    ]
)
TEXTS = st.lists(SNIPPETS | st.text(max_size=5), max_size=25).map("".join)
NAMES = TEXTS | st.text(st.characters(), max_size=20)
LOCATIONS = st.builds(
    lambda path, start, length: Location(path, start, None if start is None else start + length),
    NAMES,
    st.none() | st.integers(1, 10**6),
    st.integers(0, 500),
)
HITS = st.builds(
    Hit,
    n=st.integers(1, 50),
    location=LOCATIONS,
    trail=st.lists(NAMES, max_size=3).map(tuple),
    score=st.none() | st.floats(-1, 1),
    text=TEXTS,
    also=st.lists(LOCATIONS, max_size=3).map(tuple),
)
NOTES = st.none() | NAMES.map(note_not_updating)

ATTRIBUTE = r'[a-z]+="[^"<\n\r\u2028\u2029]*"'
OPENING = re.compile(rf"<hit(?: {ATTRIBUTE})+>")
TAG = re.compile(r"<\s*/?\s*(?:hit|doc)", re.IGNORECASE)


@pytest.mark.requirement("hit-format")
@pytest.mark.requirement("response-cap")
@given(st.lists(HITS, max_size=40), NOTES)
def test_a_response_is_what_its_lines_say(hits: list[Hit], note: str | None) -> None:
    response = render_hits(hits, note)
    assert len(response.encode()) <= MAX_RESPONSE_BYTES
    lines = response.split("\n")
    if note is not None:
        assert lines.pop() == note
    if not hits:
        assert lines == ["No matching documents."]
        return
    openings = [line for line in lines if OPENING.fullmatch(line)]
    omitted = len(hits) - len(openings)
    if omitted:
        assert lines.pop() == f"[{omitted} more hits omitted: output limit]"
    # Nothing but the opening and the closing lines reads as a tag, and every line is inside of one hit.
    assert len(TAG.findall("\n".join(lines))) == 2 * len(openings)
    assert lines.count("</hit>") == len(openings)
    body = "\n".join(lines)
    for opening in openings:
        assert body.startswith(f"{opening}\n")
        text, _, body = body.removeprefix(f"{opening}\n").partition("\n</hit>")
        assert len(text.encode()) <= MAX_HIT_BYTES
        body = body.removeprefix("\n")
    assert body == ""


@pytest.mark.requirement("path-round-trip")
@given(NAMES)
def test_a_printed_path_leads_back(path: str) -> None:
    assert unescape_path(escape_attribute(path)) == printable(path)


@pytest.mark.requirement("path-round-trip")
@given(NAMES, NAMES)
def test_escapes_never_make_two_paths_one(path: str, other: str) -> None:
    assert (escape_attribute(path) == escape_attribute(other)) == (printable(path) == printable(other))


@pytest.mark.requirement("neutralise-hit")
@given(TEXTS)
def test_neutral_text_has_no_tag_and_can_be_encoded(text: str) -> None:
    neutral = neutralise(text)
    assert not TAG.search(neutral)
    neutral.encode()
    assert neutralise(neutral) == neutral
    assert neutral.count("\n") == text.count("\n")


@pytest.mark.requirement("read-cap")
@given(NAMES, TEXTS, st.integers(1, 80))
def test_a_document_is_one_element(path: str, text: str, times: int) -> None:
    text = text * times
    document = render_document(path, 1, 1 + text.count("\n"), text)
    head, rest = document.split("\n", 1)
    assert re.fullmatch(rf"<doc {ATTRIBUTE} lines=\"1-\d+\">", head)
    assert len(TAG.findall(document)) == 2
    assert len(rest.removesuffix("\n</doc>").encode()) <= MAX_DOCUMENT_BYTES
