"""Nine questions of ten find their text among the first three, by names, emoji, Thai and misspelt words."""

from itertools import groupby

import msgspec
import pytest

from loadtests.quality import probes
from loadtests.quality.languages import languages
from tests.conftest import Call


def shares(call: Call, asked: list[probes.Probe]) -> dict[str, float]:
    """The share of the questions of each probe whose text is among the first three; all have the same texts."""
    for at, text in enumerate(asked[0].texts):
        call("add_memory", path=f"p{at}", content=text)
    found: dict[str, float] = {}
    for probe in asked:
        answers = [call("recall", query=question, limit=3).structured or b"{}" for question, _ in probe.questions]
        ids = [{memory["id"] for memory in msgspec.json.decode(answer)["memories"]} for answer in answers]
        hits = sum(f"paths/p{at}" in found for (_, at), found in zip(probe.questions, ids, strict=True))
        found[probe.name] = hits / len(probe.questions)
    return found


def grouped() -> list[list[probes.Probe]]:
    return [list(same) for _, same in groupby(probes.probes(), key=lambda probe: probe.texts)]


@pytest.mark.slow
def test_names_are_found_by_their_parts(call: Call) -> None:
    assert shares(call, grouped()[0])["camelCase and snake_case"] >= 0.9


def test_emoji_are_found(call: Call) -> None:
    assert shares(call, grouped()[1]) == {"emoji": 1.0}


@pytest.mark.slow
def test_thai_is_found_by_its_words(call: Call) -> None:
    assert shares(call, grouped()[2]) == {"Thai": 1.0}


@pytest.mark.slow
def test_misspelt_words_are_found(call: Call) -> None:
    assert shares(call, grouped()[3])["typos"] >= 0.9


@pytest.mark.slow
def test_questions_are_answered_in_every_language(call: Call) -> None:
    found = shares(call, grouped()[4])

    assert found.keys() == languages().keys()
    assert {name: share for name, share in found.items() if share < 0.9} == {}
