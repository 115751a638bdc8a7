"""SQLite's tokenizers for an index elsewhere: stems and their places, and trigrams."""

from kernel.engines.sqlite.full_text import Tokenizers

TOKENIZERS = Tokenizers()


def test_words_are_stemmed_without_marks_and_case() -> None:
    assert TOKENIZERS.stems("Running CAFÉS") == ["run", "cafe"]


def test_tokens_have_the_places_of_their_bytes() -> None:
    assert TOKENIZERS.tokens("é mills") == [(0, 2, "e"), (3, 8, "mill")]


def test_trigrams_are_of_every_three_letters() -> None:
    assert TOKENIZERS.stems("mill", trigrams=True) == ["mil", "ill"]


def test_a_text_without_words_or_with_nul_has_no_more_tokens() -> None:
    assert TOKENIZERS.stems("") == []
    assert TOKENIZERS.stems("mill\0wheel") == ["mill", "wheel"]
