"""A deletion or forced call is refused without word or right, may come twice, and leaves a row and a way back."""

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from kernel.calls.tools import Reply
from kernel.security.permissions import Caller, Forbidden, Permission, grant
from kernel.server.app import Kernel
from kernel.store import audit
from tests.catalogue import Catalogue
from tests.conftest import Call, everything
from tests.security.calls import CALLS

CONFIRMED = {call for call, given in CALLS.items() if "confirm" in given}
FORCED: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "clear_memory": ("clear_memory", {}),
    "purge_all": ("maintenance", {"action": "purge_all", "confirm": True}),
    "purge_session": ("maintenance", {"action": "purge_session", "confirm": True, "session_id": "s"}),
    "force_unlock": ("memory_file_lock", {"action": "force_unlock", "file_path": "/a.py", "agent_id": "bob"}),
    "drop_memory": ("drop_memory", {"path": "a"}),
    "reset": ("memory_init", {"action": "reset", "confirm": True}),
    "delete_entities": ("delete_entities", {"entityNames": ["cart"]}),
    "delete a directory": ("memory", {"command": "delete", "path": "/memories/d"}),
}


@pytest.fixture
def filled(kernel: Kernel, call: Call) -> Kernel:
    """A store with something to destroy in it."""
    call("add_memory", path="a", content="The cart is blue.")
    call("remember", content="The horse eats oats.", session_id="s")
    call("memory_knowledge", action="add", scopeType="global", title="sea", content="It is deep.")
    call("memory_file_lock", action="checkout", file_path="/a.py", agent_id="ada")
    call("create_entities", entities=[{"name": "cart", "entityType": "thing", "observations": ["blue"]}])
    call("memory", command="create", path="/memories/d/cart", file_text="It is blue.")
    return kernel


def memories(kernel: Kernel) -> dict[str, Any]:
    """Every row but those of the audit."""
    return {name: rows for name, rows in everything(kernel).items() if name not in ("audit", "undo")}


def test_every_call_with_a_word_of_consent_is_tried() -> None:
    acts = {action for _, action in CONFIRMED}
    assert acts == {"reset", "prune_older_than", "purge_all", "purge_session"}


@pytest.mark.parametrize("word", [None, False])
@pytest.mark.parametrize("made", sorted(CONFIRMED), ids=lambda made: made[1])
def test_without_consent_nothing_is_destroyed(
    filled: Kernel, call: Call, made: tuple[str, str], word: bool | None, catalogue: Catalogue
) -> None:
    given = {name: value for name, value in CALLS[made].items() if name != "confirm"}
    before = memories(filled)
    reply = call(made[0], **given, **({} if word is None else {"confirm": word}))
    assert isinstance(reply, Reply)
    assert memories(filled) == before
    assert b"confirm" in reply.body
    catalogue("S23", injected=f"{made[1]}, confirm {word}", times=1, outcome="refused, nothing changed")


@pytest.mark.parametrize("name", FORCED)
def test_a_key_that_reads_destroys_nothing(filled: Kernel, runner: Any, name: str, catalogue: Catalogue) -> None:
    tool, given = FORCED[name]
    before = memories(filled)
    reader = Caller("mallory", grant(Permission.read, frozenset(), True))
    with pytest.raises(Forbidden):
        runner.run(filled.dispatch.call(filled.dispatch.tools[tool], msgspec.json.encode(given), reader))
    filled.store.write_sync(lambda _tx: None)  # the denial is written beside the call
    assert memories(filled) == before
    newest = filled.store.read_sync(lambda tx: audit.read(tx, 1))[0]
    assert (newest.tool, newest.actor, newest.outcome) == (tool, "mallory", "denied")
    catalogue("S23", injected=f"{name} by a key that reads", times=1, outcome="denied, with a row of the audit")


@pytest.mark.parametrize("name", FORCED)
def test_a_second_time_destroys_no_more_and_both_stand_in_the_audit(
    filled: Kernel, call: Call, name: str, catalogue: Catalogue
) -> None:
    tool, given = FORCED[name]
    assert call(tool, **given).fault is None
    first = filled.store.read_sync(lambda tx: audit.read(tx, 1))[0]
    assert (first.tool, first.outcome, first.undoable) == (tool, "done", True)
    again = call(tool, **given)
    assert again.fault in {None, "not_found", "conflict"}
    assert filled.store.read_sync(audit.first_broken) is None
    catalogue("S23", injected=f"{name}, twice", times=2, outcome="done once, audited, can be undone")
