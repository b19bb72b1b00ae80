"""Which language a file name means."""

from __future__ import annotations

import pytest

from scree.scout.languages import CHUNKS_ONLY, DOCS, LANGUAGES, TABLE_BY_NAME, language_of


@pytest.mark.requirement("scout-languages")
@pytest.mark.parametrize(
    ("path", "language"),
    [
        ("a.py", "python"),
        ("src/a.d.ts", "typescript"),
        ("src/A.TSX", "tsx"),
        ("a.b.c.go", "go"),
        ("include/a.h", "c"),
        ("a.hpp", "cpp"),
        ("Rakefile", "ruby"),
        ("x/CMakeLists.txt", "cmake"),
        (".bashrc", "bash"),
        ("README.md", "markdown"),
        ("pyproject.toml", "toml"),
        (".py", None),
        ("py", None),
        ("a.py/b", None),
        ("a.txt", None),
        ("a.unknown", None),
        ("a.", None),
        ("", None),
    ],
)
def test_by_file_name(path: str, language: str | None) -> None:
    assert language_of(path) == language


@pytest.mark.requirement("scout-languages")
def test_prose_and_configuration_have_no_symbols() -> None:
    assert "markdown" in DOCS
    assert {"markdown", "toml", "yaml", "json"} <= CHUNKS_ONLY
    assert not any(TABLE_BY_NAME[name].grammar for name in CHUNKS_ONLY)


@pytest.mark.requirement("scout-languages")
def test_no_suffix_and_no_name_means_two_languages() -> None:
    for known in ("suffixes", "names"):
        all_of_them = [each for row in TABLE_BY_NAME.values() for each in getattr(row, known)]
        assert len(all_of_them) == len(set(all_of_them))
        if known == "suffixes":
            assert all(each.startswith(".") and each == each.lower() for each in all_of_them)
    assert list(LANGUAGES) == sorted(LANGUAGES)
