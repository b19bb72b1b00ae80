from __future__ import annotations

import pytest

from scree.core.lexical import MAX_RUN, terms

MARK = "\N{ICE CUBE}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The quick Fox", ["the", "quick", "fox"]),
        ("HTTPServer", ["http", "server", "httpserver"]),
        ("parseURLs", ["parse", "urls", "parseurls"]),
        ("snake_case_name", ["snake", "case", "name", "snakecasename"]),
        ("--frozen-lockfile", ["frozen", "lockfile", "frozenlockfile"]),
        ("import.meta.env", ["import", "meta", "env", "importmetaenv"]),
        ("sha256", ["sha", "256", "sha256"]),
        ("2026.4.10", ["2026", "4", "10", "2026.4.10"]),
        ("v1.10", ["v", "1", "10", "v1.10"]),
        ("docs/api.md", ["docs", "api", "md", "apimd"]),
        ("STRASSE straße", ["strasse", "strasse"]),
        ("naïve", ["naïve"]),
        ("what's the budget?", ["what", "s", "the", "budget"]),
    ],
)
def test_words_and_identifiers(text: str, expected: list[str]) -> None:
    assert terms(text) == expected


def test_one_name_written_four_ways_is_one_term() -> None:
    whole = {tuple(terms(name)) for name in ("frozenLockfile", "frozen_lockfile", "frozen-lockfile", "Frozen.Lockfile")}
    assert whole == {("frozen", "lockfile", "frozenlockfile")}


def test_versions_that_differ_only_in_their_dots_are_different_terms() -> None:
    assert terms("1.10")[-1] != terms("11.0")[-1]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("机器学习", ["机器", "器学", "学习"]),
        ("設定ファイル", ["設定", "定フ", "ファ", "ァイ", "イル"]),
        ("서버에서", ["서버", "버에", "에서"]),
        ("税", ["税"]),
        ("ﾌｧｲﾙ", ["ファ", "ァイ", "イル"]),
        ("ＡＣＣＴ－９９", ["acct", "99", "acct99"]),
        ("配置useEffect函数", ["配置", "use", "effect", "useeffect", "函数"]),
    ],
)
@pytest.mark.requirement("keyword-cjk")
def test_scripts_without_spaces_give_pairs(text: str, expected: list[str]) -> None:
    assert terms(text) == expected


@pytest.mark.parametrize("text", ["", " ", "*", '"', "( ) : ^ -", "\0", "___", "→ ≠ €"])
@pytest.mark.requirement("keyword-plain-text")
def test_signs_alone_are_no_terms(text: str) -> None:
    assert terms(text) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("memory:safe", ["memory", "safe"]),
        ("(x", ["x"]),
        ("AND (", ["and"]),
        ('NEAR("a" b*)', ["near", "a", "b"]),
        (f"{MARK} cold{MARK}", [MARK, "cold", MARK]),
        ("a\ud800b", ["a", "b"]),
    ],
)
@pytest.mark.requirement("keyword-plain-text")
def test_operators_are_words_or_nothing(text: str, expected: list[str]) -> None:
    assert terms(text) == expected


@pytest.mark.parametrize("word", ["a", "aB", "A1", "漢", "é", "a-", "a.", "_", "A"])
@pytest.mark.requirement("keyword-whole-file")
def test_huge_words_neither_swallow_their_neighbour_nor_make_huge_terms(word: str) -> None:
    found = terms(word * 450_000 + " zebra")
    assert found[-1] == "zebra"
    assert max(map(len, found)) <= 16 * (MAX_RUN + 1)
