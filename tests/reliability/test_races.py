"""Many callers want the same thing at once: one gets it, the others are told, and what each was told can be put into
one order that a single caller could have seen.
"""

import itertools
import os
import random
import threading
import time
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.catalogue import Catalogue
from tests.reliability.server_process import Client, Server, serving

MANY = 100
CALLERS = 8
ENTRIES = int(os.environ.get("RACED_ENTRIES", "12"))
GLOBAL = {"scopeType": "global"}
Answer = tuple[int, Any]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A server with every dialect."""
    with serving(tmp_path_factory.mktemp("races") / "data", CODE_MEMORY_ENABLE_GRAPH="true") as running:
        yield running


def together(server: Server, works: Sequence[Callable[[Client], Answer]]) -> list[Answer]:
    """Does everything at once over a few connections; the answers."""
    found: list[Answer] = []
    ready = threading.Barrier(CALLERS)

    def run(mine: Sequence[Callable[[Client], Answer]]) -> None:
        client = Client(server.port)
        ready.wait()
        found.extend([work(client) for work in mine])
        client.close()

    threads = [threading.Thread(target=run, args=(works[number::CALLERS],)) for number in range(CALLERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def same(server: Server, tool: str, **arguments: Any) -> list[Answer]:
    """The same call many times at once."""
    return together(server, [lambda client: client.call(tool, **arguments)] * MANY)


def done(server: Server, tool: str, **arguments: Any) -> Any:
    """Return the answer of a call that succeeds."""
    client = Client(server.port)
    status, said = client.call(tool, **arguments)
    client.close()
    assert status == 200, said
    return said


def one_of(answers: list[Answer], status: int) -> None:
    """One call did it, and all others were refused in the same way."""
    assert sorted(found for found, _ in answers) == [200, *[status] * (MANY - 1)]


def test_of_many_who_make_the_same_thing_one_does_and_nobody_meets_a_bug(server: Server, catalogue: Catalogue) -> None:
    def told(what: str, outcome: str) -> None:
        catalogue("R21", injected=f"the same at once: {what}", times=MANY, outcome=outcome)

    one_of(same(server, "add_memory", path="same", content="x"), 409)
    told("a path", "1 made, 99 conflicts")
    for kind, named in (("tool", "name"), ("guideline", "name"), ("knowledge", "title")):
        more = {"category": "cli"} if kind == "tool" else {"content": "x"}
        one_of(same(server, f"memory_{kind}", action="add", **GLOBAL, **{named: "same"}, **more), 409)
        told(f"a {kind}", "1 made, 99 conflicts")
    tags = same(server, "memory_tag", action="create", name="same")
    assert len({said["tag"]["id"] for _, said in tags}) == 1
    assert sorted(said["existed"] for _, said in tags) == [False, *[True] * (MANY - 1)]
    told("a tag", "1 made, 99 existed")
    smart = same(server, "smart_save_memory", db="core", content="The horse eats oats in the morning", category="fact")
    assert sorted(said["action"] for _, said in smart) == ["added", *["needs_decision"] * (MANY - 1)]
    told("a memory of brain", "1 made, 99 asked first")
    words = same(server, "remember", content="the same words", session_id="s")
    assert [said.get("status") for _, said in words].count("skipped") == MANY - 1
    told("a memory of sessions", "1 made, 99 skipped")
    files = same(server, "memory_remember", title="Same", content="the same words", memoryType="context")
    assert {status for status, _ in files} == {200}
    assert len({said["filePath"] for _, said in files}) == 1
    told("a note", "1 file")


def test_of_many_who_link_the_same_things_one_link_comes(server: Server, catalogue: Catalogue) -> None:
    for name in ("first", "second"):
        done(server, "memory_guideline", action="add", **GLOBAL, name=name, content="x")
    rules = done(server, "memory_guideline", action="list", **GLOBAL)["guidelines"]
    first, second = (rule["id"] for rule in rules if rule["name"] in {"first", "second"})
    ends = {"sourceType": "guideline", "sourceId": first, "targetType": "guideline", "targetId": second}
    links = same(server, "memory_relation", action="create", **ends, relationType="related_to")
    assert len({said["relation"]["id"] for _, said in links}) == 1
    tagged = same(server, "memory_tag", action="attach", entryType="guideline", entryId=first, tagName="fresh")
    assert len({said["entryTag"]["id"] for _, said in tagged}) == 1
    left, right = (done(server, "create_entity", db="core", name=name, type="system")["id"] for name in ("a", "b"))
    more = {"source_type": "entity", "source_id": left, "target_type": "entity", "target_id": right}
    one_of(same(server, "create_link", db="core", **more, relationship="related_to"), 409)
    named = same(server, "upsert_entity", name="Cart", entity_type="thing")
    assert len({said["entity_id"] for _, said in named}) == 1
    catalogue(
        "R21", injected="the same at once: relations, tags, links, entities", times=4 * MANY, outcome="one of each"
    )


class Event(NamedTuple):
    """One call on one entry: from when to when, its request and its outcome."""

    begun: float
    ended: float
    what: str
    expected: int | None
    content: str
    answer: tuple[Any, ...]


State = tuple[int, str, bool]  # version, content, whether it is active


def step(state: State, event: Event) -> State | None:
    """The state after the event, or None where an entry in this state would have answered something else."""
    version, content, active = state
    if event.what == "get":
        return state if event.answer == state else None
    if event.what == "deactivate":
        return (version, content, False) if event.answer == (200,) else None
    if event.expected is not None and event.expected != version:
        return state if event.answer == (409,) else None
    return (version + 1, event.content, active) if event.answer == (200, version + 1) else None


def linear(events: Sequence[Event], start: State) -> bool:
    """Whether some order of the events, with none before one that had ended when it began, explains every answer.

    Wing and Gong's search (1993), with the dead ends remembered.
    """
    everything = frozenset(range(len(events)))
    dead: set[Hashable] = set()
    stack: list[tuple[frozenset[int], State]] = [(everything, start)]
    while stack:
        left, state = stack.pop()
        if not left:
            return True
        first_end = min(events[number].ended for number in left)
        for number in left:
            after = step(state, events[number]) if events[number].begun <= first_end else None
            key = (left - {number}, after)
            if after is not None and key not in dead:
                dead.add(key)
                stack.append((left - {number}, after))
    return False


def test_the_checker_knows_a_lost_update_a_stale_read_and_a_version_given_twice() -> None:
    def event(
        begun: float, ended: float, what: str, *answer: Any, content: str = "", expected: int | None = None
    ) -> Event:
        return Event(begun, ended, what, expected, content, answer)

    start: State = (1, "a", True)
    write = event(0, 1, "update", 200, 2, content="b")
    assert linear([write, event(2, 3, "get", 2, "b", True)], start)
    assert linear([write, event(0, 3, "get", 1, "a", True)], start)
    assert not linear([write, event(2, 3, "get", 1, "a", True)], start)
    assert not linear([write, event(0, 1, "update", 200, 2, content="c")], start)
    taken = event(0, 1, "update", 200, 2, content="c", expected=1)
    assert linear([taken, event(0, 1, "update", 409, content="d", expected=1)], start)
    assert not linear([taken, event(0, 1, "update", 200, 3, content="d", expected=1)], start)
    assert not linear([event(0, 1, "deactivate", 200), event(2, 3, "get", 1, "a", True)], start)


def do(client: Client, entry: str, chance: random.Random, version: int) -> tuple[Event, int]:
    """One random call on the entry, as the caller knows it; the version it has seen last."""
    what = chance.choices(["get", "update", "expect", "deactivate"], [5, 3, 4, 1])[0]
    expected = version if what == "expect" else None
    content = f"{chance.random()}"
    action = "update" if what == "expect" else what
    change = {"content": content} if action == "update" else {}
    given = {"action": action, "id": entry, **change, **({} if expected is None else {"expectedVersion": expected})}
    begun = time.monotonic()
    status, said = client.call("memory_guideline", **given)
    ended = time.monotonic()
    answer: tuple[Any, ...] = (status,)
    if status == 200 and action != "deactivate":
        current = said["guideline"]["currentVersion"]
        version = current["versionNum"]
        read = (version, current["content"], bool(said["guideline"]["isActive"]))
        answer = read if action == "get" else (200, version)
    return Event(begun, ended, action, expected, content, answer), version


def test_what_callers_see_of_one_entry_has_an_order(server: Server, catalogue: Catalogue) -> None:
    chance = random.Random()
    total = refused = 0
    for number in range(ENTRIES):
        added = done(server, "memory_guideline", action="add", **GLOBAL, name=f"raced {number}", content="a")
        entry, history = added["guideline"]["id"], list[Event]()
        seeds = [chance.randrange(1 << 30) for _ in range(CALLERS)]
        ready = threading.Barrier(CALLERS)

        def run(seed: int, entry: str = entry, history: list[Event] = history, ready: Any = ready) -> None:
            client, mine, version = Client(server.port), random.Random(seed), 1
            ready.wait()
            for _ in range(10):
                event, version = do(client, entry, mine, version)
                history.append(event)
            client.close()

        threads = [threading.Thread(target=run, args=(seed,)) for seed in seeds]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(history) == 10 * CALLERS
        assert linear(history, (1, "a", True)), (seeds, sorted(history))
        versions = done(server, "memory_guideline", action="history", id=entry)["versions"]
        assert [version["versionNum"] for version in versions] == [*range(len(versions), 0, -1)]
        total += len(history)
        refused += sum(event.answer == (409,) for event in history)
    outcome = f"{ENTRIES} histories, each in one order; {refused} late updates refused, versions dense"
    catalogue("R22", injected=f"{CALLERS} callers on one entry", times=total, outcome=outcome)


def test_a_hundred_agents_take_a_file_in_turn_and_who_held_it_too_long_is_refused(
    server: Server, tmp_path: Path, catalogue: Catalogue
) -> None:
    file = {"file_path": str(tmp_path / "cart.py")}
    numbers: list[int] = []
    last = ""
    for turn in range(5):
        checkouts = [
            lambda client, agent=f"{turn}-{number}": client.call(
                "memory_file_lock", action="checkout", **file, agent_id=agent, expires_in=0.2
            )
            for number in range(MANY)
        ]
        answers = together(server, checkouts)
        taken = [said["lock"] for status, said in answers if status == 200]
        assert {status for status, _ in answers} == {200, 409}
        spans = sorted((lock["fencingToken"], lock["checkedOutAt"], lock["expiresAt"]) for lock in taken)
        for (_, _, end), (_, begin, _) in itertools.pairwise(spans):
            assert begin >= end  # nobody while another holds it
        numbers += [token for token, _, _ in spans]
        last = taken[-1]["checkedOutBy"]
        time.sleep(0.25)
    assert numbers == sorted(set(numbers))
    client = Client(server.port)
    status, said = client.call("memory_file_lock", action="checkout", **file, agent_id="new", expires_in=60)
    late, _ = client.call("memory_file_lock", action="checkin", **file, agent_id=last)
    held = client.call("memory_file_lock", action="status", **file)[1]["lock"]
    client.close()
    assert (status, late, held["checkedOutBy"]) == (200, 409, "new")
    assert said["lock"]["fencingToken"] > numbers[-1]
    catalogue(
        "R23", injected="checkouts of one file", times=5 * MANY, outcome="one holder at a time, numbers only grow"
    )
    catalogue("R23", injected="checkin after the lock has expired", times=1, outcome="refused, the new holder stays")
