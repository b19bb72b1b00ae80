from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from scree.core.lexical import terms

any_text = st.text(st.characters(exclude_categories=[]), max_size=200)


@given(any_text)
def test_any_text_has_terms_without_white_space(text: str) -> None:
    assert all(term and not any(letter.isspace() for letter in term) for term in terms(text))


@given(any_text, any_text)
def test_lines_do_not_influence_each_other(first: str, second: str) -> None:
    assert terms(f"{first}\n{second}") == terms(first) + terms(second)


@given(st.text(st.characters(categories=["Lu", "Ll"], max_codepoint=0xFF), min_size=1, max_size=30))
def test_a_word_is_found_in_any_case(word: str) -> None:
    assert terms(word.upper())[-1] == terms(word.lower())[-1]
