"""Answers of recall say how old each hit is, in few tokens."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from handlers.common.tokens import CURSOR_TOKENS_PER_BYTE, tokens_of
from tests.conftest import Call, Clock

Ask = Callable[..., Any]


@pytest.fixture
def ask(call: Call) -> Ask:
    """The answer of a recall."""

    def answer(**arguments: Any) -> Any:
        return msgspec.json.decode(call("recall", floor="none", **arguments).body)

    return answer


def test_the_days_since_the_last_change_come_in_the_order_of_the_hits(call: Call, ask: Ask, clock: Clock) -> None:
    call("add_memory", path="roses", content="Water the roses every morning")
    call("add_memory", path="tools", content="The shears are sharpened in spring")
    clock.move(days=400)
    call("replace_memory", path="roses", content="Prune the roses in winter")
    then = clock.move(days=3)
    clock.move(days=2)

    for query in ("roses", "shears", ""):
        answer = ask(query=query)
        ages = {"paths/roses": 5, "paths/tools": 405}
        assert answer["days_old"] == [ages[memory["id"]] for memory in answer["memories"]]
    assert sorted(ask(query="roses", as_of=then)["days_old"]) == [3, 403]


def test_hits_of_one_day_share_a_number_and_full_texts_have_their_times(call: Call, ask: Ask, clock: Clock) -> None:
    for number in range(3):
        call("add_memory", path=f"bed {number}", content=f"Bed {number} holds roses")
    clock.move(days=7)

    assert ask(query="roses")["days_old"] == 7
    assert "days_old" not in ask(query="roses", detail="text")
    assert "days_old" not in ask(ids=["paths/bed 1"])
    assert "days_old" not in ask(query="roses", dialects=["notes"])


def test_ten_hits_of_ten_days_cost_at_most_a_twentyfifth_more(call: Call, ask: Ask, clock: Clock) -> None:
    for number in range(12):
        call("add_memory", path=f"facts/{number}", content=f"Contractor {number} sends the invoice for the roses")
        clock.move(days=37)

    answer = ask(query="invoice for the roses")

    ages, cursor = answer.pop("days_old"), answer.pop("cursor")
    assert len(set(ages)) == len(answer["memories"]) == 10
    most = tokens_of(msgspec.json.encode(answer)).likely * 1.04
    longer = 91  # bytes of the cursor when there were no ages
    assert (
        tokens_of(msgspec.json.encode(answer | {"days_old": ages})).likely + len(cursor) * CURSOR_TOKENS_PER_BYTE
        < most + longer * CURSOR_TOKENS_PER_BYTE
    )


@pytest.mark.parametrize("budget", [220, 300, 450])
def test_ages_keep_to_the_budget(call: Call, ask: Ask, clock: Clock, budget: int) -> None:
    for number in range(12):
        call("add_memory", path=f"facts/{number}", content=f"Contractor {number} sends the invoice for the roses")
        clock.move(days=37)

    answer = ask(query="invoice for the roses", max_tokens=budget)

    assert len(answer["days_old"]) == len(answer["memories"]) == 10 - answer["omitted"]
    assert 0.4 * budget < answer["tokens"] <= budget
