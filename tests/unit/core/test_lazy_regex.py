"""A pattern is compiled when it is first used, and then equals that of `re.compile`."""

import re

import pytest

from kernel.core.lazy_regex import regex


def test_lazy_pattern_matches_like_the_compiled_one() -> None:
    late, known = regex(r"(a+)B", re.IGNORECASE), re.compile(r"(a+)B", re.IGNORECASE)

    assert [match.span(1) for match in late.finditer("aab Ab b")] == [(0, 2), (4, 5)]
    assert late.sub("-", "aab Ab b") == known.sub("-", "aab Ab b")
    assert (late.pattern, late.flags, late.groups) == (known.pattern, known.flags, known.groups)


def test_unused_pattern_is_not_compiled() -> None:
    wrong = regex("(")

    with pytest.raises(re.error):
        wrong.search("anything")
