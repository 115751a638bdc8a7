"""Forty facts in each language: the files say the same line by line, and their answers are counted."""

from loadtests.quality import facts
from loadtests.quality.facts import Answer


def test_each_language_has_forty_facts_and_as_many_questions() -> None:
    counts = {name: {len({*column}) for column in zip(*facts.facts(name), strict=True)} for name in facts.names()}

    assert counts == {name: {40} for name in facts.names()}


def test_an_english_question_shares_with_its_fact_no_noun_but_a_name_or_kin() -> None:
    long = [
        [{word.lower() for word in text.split() if len(word) > 3} for text in fact] for fact in facts.facts("english")
    ]

    assert {word for fact, question in long for word in fact & question} == {"marta", "brother"}


def test_answers_are_counted() -> None:
    answers = [
        Answer(0, "german", "german", [(0, 0.99)], []),
        Answer(1, "german", "german", [(3, 0.99), (1, 0.5)], [(3, 0.99)]),
        Answer(0, "german", "english", [], []),
        Answer(0, "english", "german", [(0, 0.3)], [(1, 0.1)]),
        Answer(0, "english", "english", [(1, 1.0)], [(1, 1.0)]),
    ]

    assert facts.figures(answers, "german") == (0.5, 1.0, 0.0, 0.0, 1.0, 0.5, 0.5, 0.5, 2)
