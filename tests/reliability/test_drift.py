"""A clock that jumps and a model that fails change nothing that was promised: order, decay, locks, and words found."""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from kernel.calls.dispatch import Dispatch
from kernel.embed.model import Embedder, Embedding
from kernel.operations import consistency
from kernel.server import app
from kernel.server.app import Kernel
from tests.catalogue import Catalogue
from tests.conftest import Call, Clock
from tests.reliability.write_scenario import told
from tests.support.embed_model import bert, save

JUMPS = [
    "2026-01-02T04:04:05.678Z",  # an hour ahead, and back
    "2026-01-02T02:04:05.678Z",
    "1970-01-01T00:00:00.000Z",
    "2038-01-19T03:14:08.000Z",
    "2024-02-29T23:59:59.999Z",
    "2026-03-29T01:00:00.000Z",
    "2026-10-25T01:30:00.000Z",
    "2099-12-31T23:59:59.999Z",
]
FILE = {"file_path": "/src/cart.py"}


def finite(value: object) -> Iterator[float]:
    """Every number in an answer."""
    if isinstance(value, dict):
        for one in value.values():
            yield from finite(one)
    elif isinstance(value, list):
        for one in value:
            yield from finite(one)
    elif isinstance(value, float):
        yield value


def test_a_clock_that_jumps_loses_nothing_and_makes_nothing_negative(
    kernel: Kernel, call: Call, clock: Clock, catalogue: Catalogue
) -> None:
    numbers: list[int] = []
    made: list[str] = []
    for at, moment in enumerate(itertools.chain(*((jump, clock.now) for jump in JUMPS))):
        clock.now = moment
        content = f"the cart number {at} was painted in a colour of its own, {'red green blue'.split()[at % 3]}"
        assert call("add_memory", path=f"cart/{at:02}", content=content).fault is None
        made.append(told(call("save_memory", db="core", content=content, category="fact"))["id"])
        assert call("remember", content=content, session_id="s").fault is None
        lock = call("memory_file_lock", action="checkout", **FILE, agent_id=f"agent {at}", expires_in=1)
        if lock.fault is None:
            numbers.append(told(lock)["lock"]["fencingToken"])
        assert lock.fault in {None, "conflict"}
        found = told(call("hybrid_search", db="core", query="the cart that was painted"))
        shared = told(call("recall", query="the cart that was painted", explain=True))
        listed = told(call("list_recent", session_id="s", limit=5))
        assert found["results"]
        assert shared["memories"]
        assert listed
        signals = [one["signals"] for one in [*found["results"], *shared["memories"]]]
        assert all(math.isfinite(number) and number >= 0 for number in finite([found, shared]))
        assert all(number <= 1 for number in finite(signals))
        assert told(call("memory_knowledge", action="list", scopeType="global")) is not None
    clock.now = "2100-01-02T00:00:00.000Z"
    assert call("memory_file_lock", action="checkout", **FILE, agent_id="last", expires_in=1).fault is None
    assert numbers == sorted(set(numbers))
    kept = [told(call("read_memory", path=f"cart/{at:02}"))["path"] for at in range(len(made))]
    assert len(kept) == len(set(made)) == 2 * len(JUMPS)
    assert consistency.check(kernel.config.file, kernel.store.context, app.DIALECTS) == []
    outcome = f"{len(made)} memories kept, scores >= 0, lock numbers only grow"
    catalogue("R17", injected="clock jumps: hours, 1970, 2038, leap day, DST, 2099", times=len(made), outcome=outcome)


CALLS = [
    ("add_memory", {"path": "b", "content": "the horse pulls the cart"}),
    ("replace_memory", {"path": "a", "content": "the horse eats oats"}),
    ("save_memory", {"db": "core", "content": "the horse is brown", "category": "fact"}),
    ("remember", {"content": "we spoke of the horse", "session_id": "s"}),
    ("memory_guideline", {"action": "add", "scopeType": "global", "name": "horses", "content": "feed the horse"}),
]


@pytest.mark.parametrize("error", [OSError, ValueError])
def test_what_cannot_be_embedded_is_kept_and_found_by_words_until_it_can(
    kernel: Kernel, call: Call, catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    def fail(_embedder: Embedder, _texts: Sequence[str]) -> list[Embedding]:
        raise error("gone")

    world = kernel.store.context
    assert call("add_memory", path="a", content="the cart is red").fault is None
    with monkeypatch.context() as patch:
        patch.setattr(Embedder, "embed", fail)
        assert [call(tool, **given).fault for tool, given in CALLS] == [None] * len(CALLS)
        found = told(call("recall", query="horse", explain=True))["memories"]
        assert len(found) == len(CALLS)
        assert {memory["signals"]["meaning"] for memory in found} == {None}
    lacking = consistency.check(kernel.config.file, world, app.DIALECTS)
    assert [(finding.part, finding.rows) for finding in lacking] == [("documents", len(CALLS))]
    assert consistency.embed_missing(kernel.store, lambda: False) == len(CALLS)
    assert consistency.check(kernel.config.file, world, app.DIALECTS) == []
    catalogue(
        "R24",
        injected=f"model fails: {error.__name__}",
        times=len(CALLS),
        outcome="kept, found by words, then embedded",
    )


def test_a_model_of_numbers_that_are_none_leaves_none_in_the_store_and_another_is_never_mixed_with_it(
    kernel: Kernel, call: Call, tmp_path: Path, caller: Callable[[Dispatch], Call], catalogue: Catalogue
) -> None:
    for number in range(10):
        assert call("add_memory", path=f"old/{number}", content=f"a horse and cart {number}").fault is None
    kernel.store.close()
    strange = np.array([[0, 0], [math.nan, math.inf], [-math.inf, math.nan], [1, 2]], np.float32)
    folder = save(tmp_path / "strange", bert(["[UNK]", "horse", "cart", "oats"]), embeddings=strange)
    other = app.open_kernel(kernel.config._replace(model=folder))
    asked = caller(other.dispatch)
    for number in range(10):
        assert asked("add_memory", path=f"new/{number}", content=f"horse cart oats {number}").fault is None
    found = told(asked("recall", query="horse cart", limit=50))["memories"]
    assert len(found) == 20
    assert all(math.isfinite(number) for number in finite(found))
    consistency.embed_missing(other.store, lambda: False)
    sizes = other.store.read_sync(
        lambda tx: tx.all("kernel.consistency.keys_of_dialect", lambda *row: row, dialect="paths")
    )
    assert len(sizes) == 20
    other.store.close()
    assert consistency.check(other.config.file, app.base_context(folder), app.DIALECTS) == []
    catalogue(
        "R24", injected="NaN and Inf in a model, another model", times=20, outcome="no number that is none, never mixed"
    )
