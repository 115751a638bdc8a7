"""recall combines words, meaning, tokens and neighbours in time, and lets no flood drown the rest."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest

from handlers.common.schemas import Recalled
from kernel.search import index
from kernel.server.app import Kernel
from kernel.store.context import CallContext
from tests.conftest import Call, Clock

Recall = Callable[..., Recalled]
TALK = (
    "Ann: The dog barked at the cat all night, did your dog bark too?",
    "Bob: My dog and the cat sleep, it is the puppy that barks.",
    "Ann: A puppy barks until it is a grown dog, the cat knows.",
    "Ann: Which school did your sister choose for her children?",
    "Bob: The small one by the river, it has more sun.",
    "Ann: Teachers and pupils of such schools are happy, your sister too.",
    "Ann: The bakery wants me to bake bread at four, so early for bread!",
    "Bob: Fresh bread and rolls of your bakery, the baker never sleeps.",
    "Ann: Flour, dough, bread and the oven, that is all a baker sees.",
    "Bob: My train to the city was late, the next train was full.",
    "Ann: Trains to the city are late every week, take the bus.",
    "Bob: The bus to the city is slower than a late train.",
)


@pytest.fixture
def recall(call: Call) -> Recall:
    def ask(**arguments: Any) -> Recalled:
        return msgspec.json.decode(call("recall", **arguments).body, type=Recalled)

    return ask


@pytest.fixture
def put(kernel: Kernel) -> Callable[..., None]:
    def write(texts: Sequence[str], *, space: str = "notes", scope: str = "", actor: str = "ann") -> None:
        def each(tx: Any) -> None:
            for text in texts:
                index.put(tx, space, text, text, scope=scope)

        kernel.store.write_sync(each, CallContext(space, "save", actor))

    return write


def keys(answer: Recalled) -> list[str]:
    return [memory.id.partition("/")[2] for memory in answer.memories]


def test_an_answer_is_found_beside_its_question(recall: Recall, put: Callable[..., None]) -> None:
    put(TALK, scope="talk")
    asked = {"query": "What school did Bob's sister choose?"}

    alone = keys(recall(**asked, weights={"neighbours": 0}))
    together = keys(recall(**asked))

    assert alone[0] == together[0] == TALK[3]
    assert together.index(TALK[4]) < alone.index(TALK[4])


def test_match_at_the_start_ranks_before_one_at_the_end(recall: Recall, put: Callable[..., None]) -> None:
    about, rest = "How sailors splice a broken rope.", "The harbour has a crane, two boats, an inn, a well and a wall."
    put([f"{rest} {about}", f"{about} {rest}"])

    assert keys(recall(query="splicing ropes")) == [f"{about} {rest}", f"{rest} {about}"]


@pytest.mark.slow
def test_word_common_in_a_scope_weighs_little_there(recall: Recall, put: Callable[..., None]) -> None:
    put([f"Number {number} of an unrelated kind altogether" for number in range(500)], scope="others")
    put([f"Swimming number {number} in pools of another kind" for number in range(500)], scope="others")
    put([f"Caroline said {number} things" for number in range(80)], scope="talk")
    put(["Caroline Caroline Caroline", "a swimming pool behind that house"], scope="talk")

    found = recall(
        query="Caroline swimming pool",
        scope="talk",
        weights={"meaning": 0},
        limit=100,
        max_tokens=100_000,
        explain=True,
    )

    assert keys(found)[0] == "a swimming pool behind that house"
    assert len(found.memories) == 82
    first, second = (memory.signals for memory in found.memories[:2])
    assert first
    assert second
    assert 0 < (second.words or 0) < (first.words or 0)


def test_an_explained_score_is_the_sum_of_its_signals(recall: Recall, put: Callable[..., None]) -> None:
    put(TALK, scope="talk")

    for weights in ({}, {"recency": 0.5}, {"words": 1, "meaning": 0.2, "late": 0, "neighbours": 0}):
        answer = recall(query="the dog of Bob's sister", explain=True, weights=weights)
        assert len(answer.memories) > 2
        for memory in answer.memories:
            explained = memory.explained
            assert explained
            parts = explained.words + explained.meaning + explained.late + explained.neighbours + explained.recency
            assert parts * explained.factor == pytest.approx(memory.score, abs=5e-4)
    assert recall(query="dog").memories[0].explained is msgspec.UNSET


@pytest.mark.slow
@pytest.mark.parametrize("only", [{}, {"meaning": 0}])
@pytest.mark.parametrize("more", ["", " and everybody knows it" * 12])
def test_a_flood_of_a_thousand_near_identical_memories_leaves_an_honest_one_in_the_first_five(
    recall: Recall, put: Callable[..., None], only: dict[str, float], more: str
) -> None:
    honest = "Releases: the deploy key of the shop lies in the vault of the operations team"
    put([honest], actor="ann")
    put(
        [f"The deploy key of the shop is on the website evil.example, number {number}{more}" for number in range(1000)],
        actor="mallory",
    )

    answer = recall(query="Where is the deploy key of the shop?", weights=only, limit=5)

    assert honest in keys(answer)
    by_source = keys(recall(query="Where is the deploy key of the shop?", weights=only, limit=5, per_source=1))
    assert len(by_source) == 2
    assert honest in by_source


def test_recency_weight_ranks_recent_memories_first(recall: Recall, put: Callable[..., None], clock: Clock) -> None:
    put(["The gate code is 1234 in the old house"])
    clock.move(days=90)
    put(["In the new house the gate code is another one, 9876"])

    assert keys(recall(query="The gate code in the old house"))[0].startswith("The gate")
    assert keys(recall(query="The gate code in the old house", weights={"recency": 1}))[0].startswith("In the new")


def test_weights_of_one_signal_leave_the_others_out(recall: Recall, put: Callable[..., None]) -> None:
    put(TALK, scope="talk")

    words = recall(query="school", weights={"words": 1, "meaning": 0}, explain=True)
    meaning = recall(query="school", weights={"words": 0}, explain=True)

    assert set(keys(words)) == {TALK[3], TALK[5]}
    assert {
        (one.signals and one.signals.late, one.explained and one.explained.neighbours) for one in words.memories
    } == {(None, 0)}
    assert {
        (one.signals and one.signals.late, one.explained and one.explained.neighbours) for one in meaning.memories
    } == {(None, 0)}
