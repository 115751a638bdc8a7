"""Standing instructions: recognised when they are written, and lifted for requests on which they bear."""

from pathlib import Path

import pytest

from kernel.search import index
from kernel.search.extra_terms import is_instruction
from kernel.search.fusion import WEAK
from kernel.search.index import ranked
from kernel.search.query import asks_for_work
from kernel.store.transaction import Tx
from tests.unit.index_fixtures import CALLER, open_indexed_store


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Always show type hints.", True),
        ("I moved to Porto. Please never call me before ten.", True),
        ("From now on, answer in German.", True),
        ("Add the sources when I ask about medicine.", True),
        ("In future, keep it short.", True),
        ("Don't ever push to main.", True),
        ("We always wanted to see Oslo.", False),
        ("Never the twain shall meet.", False),
        ("He asked whether the task was done.", False),
        ("Tasks are in the tracker.", False),
        ("", False),
    ],
)
def test_instructions_are_told_from_statements(text: str, expected: bool) -> None:
    assert is_instruction(text) is expected


@pytest.mark.parametrize(
    ("last", "expected"),
    [("from now on", True), ("from now onward", False), ("always answer in German", True), ("always we sing", False)],
)
def test_an_instruction_anywhere_in_a_long_text_is_one(last: str, expected: bool) -> None:
    long = "Lisbon has seven hills, and trams on all. " * 60
    texts = [f"{long[:length]}. {last} {long}" for length in range(1900, 2200)]
    assert {is_instruction(text) for text in texts} == {expected}


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Write a letter to the landlord", True),
        ("Which laptop should I buy?", True),
        ("how do I install the package", True),
        ("Explain tenancy rights to me.", True),
        ("pick something from the Thai menu", True),
        ("What's the story behind the brand?", False),
        ("who maintains the web app?", False),
        ("when do we fly to Lisbon?", False),
        ("postgres port", False),
    ],
)
def test_requests_are_told_from_questions_about_facts(question: str, expected: bool) -> None:
    assert asks_for_work(question) is expected


def test_an_instruction_is_in_the_answer_to_a_request_on_which_it_bears_and_in_no_other(tmp_path: Path) -> None:
    texts = {
        "rule": "Whenever I ask for a recipe, leave out coriander.",
        "other": "From now on, use metric units.",
        "fact": "Omar liked the pumpkin soup best.",
        "beside": "The soup kitchen opens at noon.",
    }

    def keys(question: str) -> list[str]:
        def work(tx: Tx) -> list[str]:
            hits = ranked(tx, question, within=[("docs", "")], limit=10)
            return [scored.hit.id for scored in hits if scored.strength >= WEAK]

        return store.reader.read(CALLER, work)

    with open_indexed_store(tmp_path) as store:
        store.write(lambda tx: [index.put(tx, "docs", key, text) for key, text in texts.items()])
        assert keys("Suggest a soup for tonight.") == ["beside", "fact", "rule"]
        assert keys("which soup did Omar like best?") == ["fact", "beside"]
