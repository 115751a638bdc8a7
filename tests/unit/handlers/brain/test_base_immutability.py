"""Nothing a tool can do changes an immutable memory, whichever way it came to be one."""

import itertools
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handlers.brain import DIALECT, repository
from handlers.brain.base import is_marked_immutable
from handlers.brain.schemas import Memory
from kernel.server.app import Kernel
from kernel.store.context import CallContext
from tests.catalogue import Catalogue
from tests.conftest import Call, Clock, everything
from tests.unit.handlers.brain.conftest import CallOk, read

KINDS: dict[str, dict[str, Any]] = {
    "founding": {"source": "founding"},
    "hard constraint": {"category": "hard_constraint"},
    "core value": {"category": "value", "subcategory": "core"},
    "marked": {"metadata": '{"immutable":true}'},
    "marked among others": {"metadata": '{"a":[{"immutable":false}],"immutable":true,"z":null}'},
    "founding and archived": {"source": "founding", "status": "archived"},
}
FREE: dict[str, dict[str, Any]] = {
    "value of another kind": {"category": "value", "subcategory": "work"},
    "core of another kind": {"category": "fact", "subcategory": "core"},
    "marked as mutable": {"metadata": '{"immutable":false}'},
    "marked by a word": {"metadata": '{"immutable":"true"}'},
    "marked by a number": {"metadata": '{"immutable":1}'},
    "marked deeper": {"metadata": '{"x":{"immutable":true}}'},
    "no object": {"metadata": '["immutable",true]'},
    "no JSON": {"metadata": "immutable: true"},
}
CONTENT = "Honesty comes before comfort."
PERMANENT = "Founding values and hard constraints are permanent."
ATTEMPTS: dict[str, tuple[str, dict[str, Any], str]] = {
    "content": ("update_memory", {"id": "val_001", "content": "Comfort comes first."}, "modify"),
    "tags": ("update_memory", {"id": "val_001", "tags": []}, "modify"),
    "status": ("update_memory", {"id": "val_001", "status": "archived"}, "modify"),
    "category": ("update_memory", {"id": "val_001", "category": "fact"}, "modify"),
    "metadata": ("update_memory", {"id": "val_001", "metadata": {}}, "modify"),
    "importance": ("update_memory", {"id": "val_001", "importance": 1}, "modify"),
    "nothing": ("update_memory", {"id": "val_001"}, "modify"),
    "supersede": ("supersede_memory", {"old_id": "val_001", "new_content": "x", "reason": "y"}, "supersede"),
    "delete": ("delete_memory", {"id": "val_001"}, "delete"),
    "correct by id": ("handle_correction", {"wrong_memory_id": "val_001", "correct_content": "x"}, "correct"),
    "correct by content": ("handle_correction", {"wrong_content": CONTENT, "correct_content": "x"}, "correct"),
}
CHANGERS = {"update_memory", "supersede_memory", "delete_memory", "handle_correction"}


@pytest.fixture
def plant(kernel: Kernel) -> Callable[..., Memory]:
    """Writes one memory of any kind, as an import would."""

    def write(**kind: Any) -> Memory:
        def work(tx: Any) -> Memory:
            row = repository.new_memory(tx, content=CONTENT, category="fact", importance=5)
            for name, value in {"id": "val_001", **kind}.items():
                setattr(row, name, value)
            repository.add(tx, [repository.Draft("core", row)])
            return row

        return kernel.store.write_sync(work, CallContext("brain", "import", "tester"))

    return write


@pytest.mark.parametrize(("kind", "attempt"), list(itertools.product(KINDS, ATTEMPTS)))
def test_no_tool_changes_an_immutable_memory(
    kernel: Kernel, call: Call, plant: Callable[..., Memory], kind: str, attempt: str, catalogue: Catalogue
) -> None:
    plant(**KINDS[kind])
    name, arguments, verb = ATTEMPTS[attempt]
    before = everything(kernel)

    reply = call(name, db="core", **arguments)

    assert everything(kernel) == before
    founding = verb == "correct" and KINDS[kind].get("source") == "founding"
    answer = (
        "BLOCKED: Cannot correct founding memories. These are immutable."
        if founding
        else f"BLOCKED: Cannot {verb} immutable memory 'val_001'. {PERMANENT}"
    )
    assert (reply.fault, read(reply)) == ("blocked", answer)
    catalogue("S22", injected=f"{attempt} of {kind}", times=1, outcome="blocked, nothing changed")


@pytest.mark.parametrize("kind", KINDS)
def test_saving_a_duplicate_leaves_immutable_memory_unchanged(
    call: Call, call_ok: CallOk, plant: Callable[..., Memory], kind: str
) -> None:
    plant(**KINDS[kind])
    status = KINDS[kind].get("status", "active")
    (there,) = call_ok("get_memories", db="core", status=status)
    item = {"content": CONTENT, "category": "fact"}

    call_ok("save_memory", db="core", **item)
    call_ok("bulk_save_memories", db="core", memories=[item])
    call_ok("smart_save_memory", db="core", **item)
    call_ok("smart_save_memory", db="core", **item, force_add=True, is_correction=True)
    assert call("bulk_save_memories", db="core", memories=[{**item, "id": "val_001"}]).fault == "invalid"
    assert call("save_memory", db="core", **item, id="val_001").fault == "invalid"

    (still,) = [row for row in call_ok("get_memories", db="core", status=status) if row["id"] == "val_001"]
    seen = {"access_count": 1, "last_accessed_at": still["last_accessed_at"]}
    assert {**still, **seen} == {**there, **seen}


def test_memory_can_become_immutable_but_not_mutable_again(call_ok: CallOk, refused: CallOk) -> None:
    key = call_ok("save_memory", db="core", content=CONTENT, category="fact", metadata={"immutable": True})["id"]
    assert refused("update_memory", db="core", id=key, metadata={})[0] == "blocked"

    other = call_ok("save_memory", db="core", content="x", category="fact")["id"]
    call_ok("update_memory", db="core", id=other, category="hard_constraint")
    assert refused("update_memory", db="core", id=other, category="fact")[0] == "blocked"


@pytest.mark.parametrize("kind", FREE)
def test_every_other_memory_can_be_changed(call_ok: CallOk, plant: Callable[..., Memory], kind: str) -> None:
    plant(**FREE[kind])

    assert call_ok("update_memory", db="core", id="val_001", content="changed")["content"] == "changed"
    assert call_ok("supersede_memory", db="core", old_id="val_001", new_content="new")["old_memory"]["id"] == "val_001"
    assert call_ok("delete_memory", db="core", id="val_001") == "Deleted memory 'val_001'"


def test_matrix_covers_every_tool_that_changes_a_memory_by_id() -> None:
    changing = {
        tool.name
        for tool in DIALECT.tools
        if (tool.mode != "read" and "memory" in tool.name) or tool.name == "handle_correction"
    }
    assert changing - {"save_memory", "smart_save_memory"} == CHANGERS
    assert {name for name, _, _ in ATTEMPTS.values()} == CHANGERS


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.slow
@given(st.dictionaries(st.sampled_from(["immutable", "a", "Immutable"]), json_values))
def test_only_the_value_true_marks_as_immutable(metadata: dict[str, Any]) -> None:
    assert is_marked_immutable(json.dumps(metadata)) is (metadata.get("immutable") is True)


@given(st.text())
def test_invalid_json_does_not_mark_as_immutable(text: str) -> None:
    assert is_marked_immutable(text) is False


def test_superseded_memory_cannot_be_superseded_until_active_again(
    call_ok: CallOk, refused: CallOk, clock: Clock
) -> None:
    for number in (1, 2):
        call_ok("save_memory", db="core", content=f"Port {number}", category="fact")
    call_ok("supersede_memory", db="core", old_id="mem_1", new_content="Port 443")
    call_ok("handle_correction", db="core", wrong_memory_id="mem_2", correct_content="Port 444")
    successors = {
        row["id"]: row["superseded_by"]
        for status in ("superseded", "archived")
        for row in call_ok("get_memories", db="core", status=status)
    }
    assert list(successors) == ["mem_1", "mem_2"]

    for key, successor in successors.items():
        answer = ("conflict", f"Error: Memory '{key}' is already superseded by '{successor}'")
        assert refused("supersede_memory", db="core", old_id=key, new_content="Port 80") == answer

    call_ok("update_memory", db="core", id="mem_1", status="active")
    answer = call_ok("supersede_memory", db="core", old_id="mem_1", new_content="Port 80")
    assert answer["old_memory"]["superseded_by"] == answer["new_memory"]["id"]
