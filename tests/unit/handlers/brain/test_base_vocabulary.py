"""Words that would make a memory invisible, or a filter empty, are refused with the words that are known."""

from collections.abc import Callable
from typing import Any

import pytest

from handlers.brain import repository
from handlers.brain.repository import Draft
from kernel.server.app import Kernel
from tests.unit.handlers.brain.conftest import CallOk

Refused = Callable[..., tuple[str | None, str]]
CATEGORIES = (
    "Error: Invalid arguments: category is one of fact, decision, learning, preference, blocker, observation, "
    "personality, value, hard_constraint, pattern, action, correction"
)
TYPES = (
    "Error: Invalid arguments: type is one of project, person, organization, system, module, concept, ai_agent, client"
)
NOTE_TYPES = (
    "Error: Invalid arguments: note_type is one of note, document, gdd, design, retrospective, spec, meeting, journal"
)
STATUSES = "Error: Invalid arguments: status is one of active, superseded, archived"
IMMUTABLE = "Error: Invalid arguments: metadata.immutable is true or false"


@pytest.fixture
def key(call_ok: CallOk) -> str:
    return call_ok("save_memory", db="core", content="tea", category="fact")["id"]


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("update_memory", {"id": "mem_1", "status": "zombie"}, STATUSES),
        ("update_memory", {"id": "mem_1", "category": "gossip"}, CATEGORIES),
        ("handle_correction", {"wrong_memory_id": "mem_1", "correct_content": "x", "category": "gossip"}, CATEGORIES),
        ("handle_correction", {"correct_content": "x", "category": "Fact"}, CATEGORIES),
        ("get_memories", {"status": "zombie"}, STATUSES),
        ("get_memories", {"category": "gossip"}, CATEGORIES),
        ("get_entities", {"type": "gossip"}, TYPES),
        ("get_notes", {"note_type": "gossip"}, NOTE_TYPES),
    ],
)
def test_an_unknown_category_or_status_is_refused_with_those_known(
    refused: Refused, clock: Any, key: str, name: str, arguments: dict[str, Any], message: str
) -> None:
    assert refused(name, db="core", **arguments) == ("invalid", message)


def test_words_of_an_imported_memory_are_kept_and_found(call_ok: CallOk, kernel: Kernel, clock: Any) -> None:
    def plant(tx: Any) -> None:
        imported = repository.new_memory(tx, content="tea", category="gossip", importance=3)
        imported.status = "zombie"
        repository.add(tx, [Draft("core", imported)])

    kernel.store.write_sync(plant)
    changed = call_ok("update_memory", db="core", id="mem_1", content="green tea", category="gossip", status="zombie")

    assert (changed["category"], changed["status"]) == ("gossip", "zombie")
    assert call_ok("get_memories", db="core", category="gossip", status="zombie") == [changed]


@pytest.mark.parametrize("value", ["true", 1, 0, None, []])
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("save_memory", {"content": "x", "category": "fact"}),
        ("bulk_save_memories", {"memories": [{"content": "x", "category": "fact"}]}),
        ("update_memory", {"id": "mem_1"}),
    ],
)
def test_an_immutable_flag_that_would_not_protect_is_refused(
    refused: Refused, clock: Any, key: str, name: str, arguments: dict[str, Any], value: object
) -> None:
    metadata = {"immutable": value}
    if "memories" in arguments:
        given: dict[str, Any] = {"memories": [{**item, "metadata": metadata} for item in arguments["memories"]]}
    else:
        given = {**arguments, "metadata": metadata}

    assert refused(name, db="core", **given) == ("invalid", IMMUTABLE)
