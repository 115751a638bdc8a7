"""In no language are unrelated facts duplicates, or does a correction archive a memory that nobody meant."""

import pytest

from loadtests.quality.languages import languages
from tests.unit.handlers.brain.conftest import CallOk

FACTS = {name: [fact for fact, _ in pairs] for name, pairs in languages().items()}
LEAVING = "Nothing of the kind"


def archived(call_ok: CallOk, wrong: str, right: str, db: str = "core") -> str | None:
    """The id of the memory that a correction by content archives."""
    return call_ok("handle_correction", db=db, wrong_content=wrong, correct_content=right)["archived_memory_id"]


@pytest.mark.slow
@pytest.mark.parametrize("name", FACTS)
def test_unrelated_facts_are_no_duplicates(call_ok: CallOk, name: str) -> None:
    answers = [call_ok("smart_save_memory", db="core", content=fact, category="fact") for fact in FACTS[name]]

    assert [(answer["action"], answer["memory"]["content"]) for answer in answers] == [
        ("added", fact) for fact in FACTS[name]
    ]


@pytest.mark.parametrize("name", FACTS)
def test_the_same_fact_is_a_duplicate(call_ok: CallOk, name: str) -> None:
    saved = [call_ok("save_memory", db="core", content=fact, category="fact")["id"] for fact in FACTS[name]]

    answers = [call_ok("smart_save_memory", db="core", content=fact, category="fact") for fact in FACTS[name]]

    assert [[similar["id"] for similar in answer.get("similar", [])] for answer in answers] == [[one] for one in saved]


@pytest.mark.parametrize("name", FACTS)
@pytest.mark.parametrize("half", [0, 1])
def test_a_correction_archives_no_unrelated_memory(call_ok: CallOk, name: str, half: int) -> None:
    for fact in FACTS[name][half::2]:
        call_ok("save_memory", db="core", content=fact, category="fact")

    wrong = FACTS[name][1 - half :: 2]

    assert [archived(call_ok, fact, f"{LEAVING} {number}") for number, fact in enumerate(wrong)] == [None] * 6


@pytest.mark.slow
@pytest.mark.parametrize("name", FACTS)
def test_a_correction_archives_what_it_says(call_ok: CallOk, name: str) -> None:
    saved = [call_ok("save_memory", db="core", content=fact, category="fact")["id"] for fact in FACTS[name]]

    wrong = [fact.rstrip(".。।") for fact in FACTS[name]]

    assert [archived(call_ok, fact, f"{LEAVING} {number}") for number, fact in enumerate(wrong)] == saved


@pytest.mark.parametrize(
    ("stored", "wrong"),
    [
        ("The meeting is at 10.", "The meeting is at 11."),
        ("Backups run every night.", "Backups do not run every night."),
        ("Ada plays the violin.", "Bruno plays the violin."),
        ("The flight to Tokyo was cancelled.", "The flight to Oslo was cancelled."),
        ("The flight to Tokyo was cancelled.", "The flight to Tokyo was not cancelled."),
        ("Рейс в Токио отменили.", "Рейс в Лиму отменили."),
        ("Рейс в Токио отменили.", "Рейс в Токио не отменили."),
        ("Er kommt am 3. Mai.", "Er kommt am 4. Mai."),
        ("He lives in Lyon.", "He never lived in Lyon."),
        ("The tavern burned down in winter", "the"),
        ("飞往东京的航班取消了。", "飞往东京的航班没有取消。"),
    ],
)
def test_a_correction_archives_no_memory_of_another_number_name_or_negation(
    call_ok: CallOk, stored: str, wrong: str
) -> None:
    call_ok("save_memory", db="core", content=stored, category="fact")

    assert archived(call_ok, wrong, "x") is None


def test_a_correction_by_words_of_several_memories_archives_none(call_ok: CallOk) -> None:
    for day in ("Monday", "Tuesday"):
        call_ok("save_memory", db="core", content=f"The garbage of the office is collected on {day}", category="fact")

    assert archived(call_ok, "garbage", "There is none") is None
