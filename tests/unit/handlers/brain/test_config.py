"""Configuration is set and read by key, by prefix, or all of it."""

import pytest

from tests.conftest import Clock
from tests.support.handlers_brain_memories import LATER, NOW
from tests.unit.handlers.brain.conftest import CallOk


def row(key: str, value: str, description: str | None = None, at: str = NOW) -> dict[str, str | None]:
    return {"key": key, "value": value, "description": description, "updated_at": at}


def test_a_value_is_set_and_read_and_set_again(call_ok: CallOk, clock: Clock) -> None:
    first = call_ok("set_config", key="retrieval.vector_weight", value="0.4", description="Weight of the meaning")
    clock.move(hours=1)
    again = call_ok("set_config", key="retrieval.vector_weight", value="0.7")

    assert first == row("retrieval.vector_weight", "0.4", "Weight of the meaning")
    assert again == row("retrieval.vector_weight", "0.7", "Weight of the meaning", LATER)
    assert call_ok("get_config", key="retrieval.vector_weight") == again


def test_values_are_listed_by_prefix_or_all_by_name(call_ok: CallOk, clock: Clock) -> None:
    for key in ("b.2", "a", "b.1", "B.0", "b%"):
        call_ok("set_config", key=key, value="{}")

    assert call_ok("get_config", prefix="b.") == [row("b.1", "{}"), row("b.2", "{}")]
    assert [found["key"] for found in call_ok("get_config")] == ["B.0", "a", "b%", "b.1", "b.2"]
    assert call_ok("get_config", prefix="b%") == [row("b%", "{}")]
    assert call_ok("get_config", prefix="nothing") == []
    assert call_ok("get_config", key="a", prefix="b.") == row("a", "{}")


@pytest.mark.parametrize("value", ["7", "-0.1", "banana", "", "{}", "nan", "true"])
def test_a_weight_that_search_would_ignore_is_refused(refused: CallOk, value: str) -> None:
    assert refused("set_config", key="retrieval.vector_weight", value=value) == (
        "invalid",
        "Error: Invalid arguments: value of retrieval.vector_weight is a number from 0 to 1",
    )


@pytest.mark.parametrize("key", ["retrieval.vektor_weight", "retrieval.", "retrieval.limit"])
def test_a_key_that_search_would_ignore_is_refused(refused: CallOk, key: str) -> None:
    assert refused("set_config", key=key, value="0.5") == (
        "invalid",
        "Error: Invalid arguments: key under retrieval. is one of retrieval.vector_weight, retrieval.fts_weight, "
        "retrieval.recency_weight, retrieval.importance_weight",
    )


def test_an_unknown_key_is_not_found(refused: CallOk) -> None:
    assert refused("get_config", key="a'b") == ("not_found", "Error: Config key 'a'b' not found")


@pytest.mark.parametrize("key", ["a\0b", " ", "", "k" * 129])
def test_a_key_that_every_engine_can_order_is_asked_for(refused: CallOk, key: str) -> None:
    code, message = refused("set_config", key=key, value="1")
    assert (code, "key" in message) == ("invalid", True)
