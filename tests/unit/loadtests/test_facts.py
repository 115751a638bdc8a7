"""Forty facts in each language: the files say the same line by line, and their answers are counted."""

import pytest

from loadtests.quality import facts
from loadtests.quality.facts import Answer


@pytest.mark.parametrize("kind", facts.KINDS)
def test_each_language_has_forty_facts_and_as_many_questions(kind: str) -> None:
    counts = {name: {len({*column}) for column in zip(*facts.facts(name, kind), strict=True)} for name in facts.names()}

    assert counts == {name: {40} for name in facts.names()}


def test_an_english_question_shares_few_words_with_its_fact_and_a_hard_question_only_names_and_kin() -> None:
    shared = {
        kind: [
            (words(fact.text) & words(fact.question)) - {"where", "which", "what", "when", "does"}
            for fact in facts.facts("english", kind)
        ]
        for kind in facts.KINDS
    }

    assert {word for row in shared["hard"] for word in row} == {"marta", "brother"}
    assert max(map(len, shared["natural"])) <= 2


def words(text: str) -> set[str]:
    return {word.strip(".?,").lower() for word in text.split() if len(word) > 3}


def test_answers_are_counted() -> None:
    answers = [
        Answer(0, "german", "german", [(0, 0.99)], []),
        Answer(1, "german", "german", [(3, 0.99), (1, 0.5)], [(3, 0.99)]),
        Answer(0, "german", "english", [], []),
        Answer(0, "english", "german", [(0, 0.3)], [(1, 0.1)]),
        Answer(0, "english", "english", [(1, 1.0)], [(1, 1.0)]),
    ]

    assert facts.figures(answers, "german") == (0.5, 1.0, 0.0, 0.0, 1.0, 0.5, 0.5, 0.5, 2)
