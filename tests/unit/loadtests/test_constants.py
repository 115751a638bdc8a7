"""Ranking constants are judged by a collection that they were not chosen on."""

import pytest

from kernel.search.index import Weights
from loadtests.quality import constants
from loadtests.quality.constants import Choice
from loadtests.quality.dataset import Collection, Doc, Query

WORDS = Choice(Weights(1, 0, 0, 0))
MEANING = Choice(Weights(0, 1, 0, 0))
ANSWER = "The car broke down near the bridge"


def collection(name: str, question: str, *others: str) -> Collection:
    docs = [Doc(str(at), text) for at, text in enumerate([ANSWER, *others])]
    return Collection(name, docs, [Query("q", question, ["0"])])


def test_what_ships_is_compared_first() -> None:
    among = constants.choices()
    assert among[0] == Choice()
    assert len({*among}) == len(among)


def test_a_collection_is_judged_by_what_is_best_on_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    by_words = collection("by words", "bridge", "A river crossing", "The viaduct")
    by_meaning = collection("by meaning", "automobile engine failure", "A failure of nerves", "My failure at school")

    constants.leave_one_out([by_words, by_meaning], [WORDS, MEANING])

    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("by ")]
    assert [row[: row.index(",")].rsplit("  ", 1)[1].strip() for row in rows] == ["0/1/0/0", "1/0/0/0"]
