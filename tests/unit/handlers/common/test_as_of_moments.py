"""recall as of every moment gives the answer of that moment."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from handlers.common.schemas import Recalled
from kernel.calls.dispatch import Dispatch
from kernel.core.config import Config
from kernel.server.app import Kernel, open_kernel
from tests.conftest import Call, Clock

QUERY = "which truck would not start"
TRUCK = "Rates rose and the truck is dear"
START, DINNER = "The truck would not start", "Dinner was noodles"
TEXTS = st.sampled_from([START, DINNER, TRUCK, "She plays the violin"])
STEPS = st.lists(
    st.tuples(st.sampled_from(["paths", "brain", "scopes", "sessions", "notes"]), st.integers(0, 5), TEXTS),
    min_size=3,
    max_size=14,
)


class Writer:
    """Writes, changes and deletes through the tools of the dialects; it changes only its own rows."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self.known: dict[str, list[str]] = {}
        self.count = 0

    def done(self, name: str, /, **arguments: Any) -> Any:
        reply = self.call(name, **arguments)
        assert reply.fault is None, reply.body
        return msgspec.json.decode(reply.structured or reply.body) if reply.body[:1] in b"{[" else None

    def step(self, dialect: str, number: int, text: str) -> None:
        """Creates for a number of 0 or 1, or where nothing is known; else changes, or deletes for 4 and 5."""
        self.count += 1
        known = self.known.setdefault(dialect, [])
        if number < 2 or not known:
            known.append(getattr(self, f"create_{dialect}")(text))
        elif number < 4:
            getattr(self, f"change_{dialect}")(known[number % len(known)], text)
        else:
            getattr(self, f"delete_{dialect}")(known.pop(number % len(known)))

    def create_paths(self, text: str) -> str:
        self.done("add_memory", path=f"p{self.count}", content=text)
        return f"p{self.count}"

    def change_paths(self, key: str, text: str) -> None:
        self.done("replace_memory", path=key, content=text)

    def delete_paths(self, key: str) -> None:
        self.done("drop_memory", path=key)

    def create_brain(self, text: str) -> str:
        return self.done("save_memory", db="core", content=text, category="fact")["id"]

    def change_brain(self, key: str, text: str) -> None:
        self.done("update_memory", db="core", id=key, content=f"{text} {self.count}", status="active")

    def delete_brain(self, key: str) -> None:
        if self.count % 2:
            self.done("delete_memory", db="core", id=key)
        else:
            self.known["brain"].append(key)
            self.done("update_memory", db="core", id=key, content=f"{DINNER} {self.count}", status="archived")

    def create_scopes(self, text: str) -> str:
        given = {"scopeType": "global", "name": f"g{self.count}", "content": text}
        return self.done("memory_guideline", action="add", **given)["guideline"]["id"]

    def change_scopes(self, key: str, text: str) -> None:
        self.done("memory_guideline", action="update", id=key, content=text)

    def delete_scopes(self, key: str) -> None:
        self.known["scopes"].append(key)
        self.done("memory_guideline", action="deactivate", id=key)

    def create_sessions(self, text: str) -> str:
        self.done("remember", content=text, session_id=f"s{self.count}")
        return f"s{self.count}"

    def change_sessions(self, key: str, text: str) -> None:
        self.done("remember", content=f"{text} {self.count}", session_id=key)

    def delete_sessions(self, key: str) -> None:
        self.done("maintenance", action="purge_session", session_id=key, confirm=True)

    def create_notes(self, text: str) -> str:
        given = {"title": f"n{self.count}", "content": text, "memoryType": "learning"}
        return self.done("memory_remember", **given)["filePath"]

    def change_notes(self, key: str, text: str) -> None:
        self.done("memory_remember", title="n", content=text, memoryType="learning", filePath=key)

    def delete_notes(self, key: str) -> None:
        self.done("memory_forget", filePaths=[key])


def newest(call: Call, **asked: Any) -> list[Any]:
    answer = msgspec.json.decode(call("recall", detail="text", limit=100, **asked).body, type=Recalled)
    assert answer.omitted == 0
    return answer.memories


def found(call: Call, **asked: Any) -> list[tuple[Any, ...]]:
    """Return the hits of the query: everything in so small a store, so that texts and provenance tell."""
    memories = newest(call, query=QUERY, max_tokens=100_000, alike=0, **asked)
    return sorted((memory.id, memory.text, memory.scope, str(memory.provenance)) for memory in memories)


def test_what_has_changed_since_does_not_make_the_hits_of_then_weak(call: Call, clock: Clock) -> None:
    """A neighbour in time that a filter excludes is no candidate, however well it answers."""
    writer = Writer(call)
    for step in (("paths", "Dinner was noodles"), ("paths", "She plays the violin"), ("sessions", TRUCK)):
        clock.move(seconds=7)
        writer.step(step[0], 0, step[1])
    then, before = clock.now, found(call)
    clock.move(seconds=7)
    writer.change_sessions("s3", "The truck would not start")
    assert [text for _, text, *_ in before] == [TRUCK]
    assert found(call, as_of=then) == before
    assert found(call, before=clock.now) == before


@pytest.mark.slow
@example(steps=[*[("paths", 0, START)] * 3, *[("paths", 0, DINNER)] * 4, ("paths", 3, START)])
@given(steps=STEPS)
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_recall_as_of_a_moment_is_the_recall_of_that_moment(
    steps: list[tuple[str, int, str]], tmp_path_factory: Any, caller: Callable[[Dispatch], Call], clock: Clock
) -> None:
    folder: Path = tmp_path_factory.mktemp("moments")
    kernel: Kernel = open_kernel(Config(data=folder / "data"))
    call = caller(kernel.dispatch)
    writer = Writer(call)
    moments: list[tuple[str, list[Any], list[Any]]] = []
    try:
        for step in steps:
            clock.move(seconds=7)
            writer.step(*step)
            moments.append((clock.now, newest(call, max_tokens=100_000), found(call)))
        for at, listed, searched in moments:
            assert newest(call, as_of=at, max_tokens=100_000) == listed
            assert found(call, as_of=at) == searched
    finally:
        kernel.store.close()
