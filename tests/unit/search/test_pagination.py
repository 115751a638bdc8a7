"""A cursor round-trips the shown memories; all pages together hold every memory once, with any writes between them."""

import base64
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from handlers.common.schemas import Recalled
from kernel.core.config import Config
from kernel.core.errors import Fault
from kernel.search import index
from kernel.search.pagination import MAX_CURSOR_LENGTH, MAX_SEEN, SeenPage, cursor_length, decode_cursor, encode_cursor
from kernel.server import app
from kernel.server.app import Kernel
from kernel.store.context import CallContext
from kernel.store.transaction import Tx
from tests.conftest import Call

SINCE = "2026-01-02T03:04:05.678Z"
KEYS = st.lists(st.tuples(st.text(), st.text()), max_size=30)
WORDS = ("roses", "water", "garden", "winter", "prune", "vase", "thorns", "tea")
CALLER = CallContext("other", "save", "tester")
Recall = Callable[..., Recalled]


@pytest.mark.slow
@given(st.integers(0, 2**40 - 1), KEYS, KEYS, st.text())
def test_cursor_round_trips_and_accumulates_pages(
    last: int, first: list[tuple[str, str]], second: list[tuple[str, str]], question: str
) -> None:
    shown = SeenPage(last, SINCE)
    for keys in (first, second):
        cursor = encode_cursor(shown, question, keys)
        assert cursor is not None
        assert cursor.replace("-", "").replace("_", "").isalnum()
        shown = decode_cursor(cursor, question)
        assert len(cursor) == cursor_length(len(shown.digests))

    assert (shown.last, shown.since, len(shown.digests)) == (last, SINCE, len({f"{a}/{b}" for a, b in first + second}))
    assert all(shown.contains(space, key) for space, key in first + second)
    assert not shown.contains("never", "\0 shown")


def test_new_memories_are_distinguished_from_rewritten_ones() -> None:
    shown = SeenPage(7, SINCE)

    assert shown.existed(7, "2026-01-02T03:04:05.999Z")
    assert shown.existed(8, SINCE)
    assert not shown.existed(8, "2026-01-02T03:04:05.679Z")


def test_list_past_the_maximum_has_no_cursor() -> None:
    shown = SeenPage(1, SINCE)
    keys = [("space", str(number)) for number in range(MAX_SEEN)]

    longest = encode_cursor(shown, "q", keys)

    assert longest is not None
    assert len(longest) == cursor_length(MAX_SEEN) <= MAX_CURSOR_LENGTH
    assert encode_cursor(decode_cursor(longest, "q"), "q", [("space", "one more")]) is None


def test_cursor_of_another_query_is_rejected() -> None:
    cursor = encode_cursor(SeenPage(1, SINCE), "which", [("space", "key")])

    with pytest.raises(Fault, match=r"cursor: of another question") as refused:
        decode_cursor(cursor or "", "what")
    assert refused.value.code == "invalid"


@given(st.text() | st.binary().map(lambda data: base64.urlsafe_b64encode(data).decode()))
def test_arbitrary_text_is_rejected_as_a_cursor(text: str) -> None:
    with pytest.raises(Fault, match="cursor") as refused:
        decode_cursor(text, "which")
    assert refused.value.code == "invalid"


@given(st.data())
def test_damaged_cursor_is_rejected_or_decodes_to_one_digest(data: st.DataObject) -> None:
    cursor = encode_cursor(SeenPage(1, SINCE), "which", [("space", "key")]) or ""
    at = data.draw(st.integers(0, len(cursor) - 1))

    with suppress(Fault):
        assert len(decode_cursor(cursor[:at] + data.draw(st.characters()) + cursor[at + 1 :], "which").digests) == 1


@pytest.fixture
def recall(call: Call) -> Recall:
    def call_recall(**arguments: Any) -> Recalled:
        reply = call("recall", floor="none", **arguments)
        assert reply.fault is None, reply.body
        return msgspec.json.decode(reply.body, type=Recalled)

    return call_recall


def text(number: int) -> str:
    """Some texts are alike, some are the same."""
    return " ".join(WORDS[(number * step) % len(WORDS)] for step in range(1, 2 + number % 4))


def put(kernel: Kernel, keys: dict[str, int]) -> None:
    kernel.store.write_sync(lambda tx: [index.put(tx, "notes", key, text(number)) for key, number in keys.items()])


def drop(kernel: Kernel, *keys: str) -> None:
    kernel.store.write_sync(lambda tx: [index.drop(tx, "notes", key) for key in keys])


@contextmanager
def emptied(kernel: Kernel) -> Iterator[None]:
    def clear(tx: Tx) -> None:
        index.drop_scope(tx, "notes", "")

    kernel.store.write_sync(clear)
    yield


def pages(recall: Recall, **arguments: Any) -> Iterator[list[str]]:
    """The keys of each page, until there are no more."""
    cursor: str | None = ""
    for _ in range(200):
        page = recall(query="roses in the garden", cursor=cursor, **arguments)
        yield [memory.id.partition("/")[2] for memory in page.memories]
        cursor = page.cursor
        if cursor is None:
            return
    pytest.fail("the pages do not end")


WRITES = st.lists(
    st.lists(
        st.tuples(st.sampled_from(["add", "rewrite", "delete", "delete and add"]), st.integers(0, 39)), max_size=8
    ),
    max_size=12,
)


@pytest.mark.slow
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 40), st.integers(1, 9), WRITES)
def test_pages_repeat_nothing_and_skip_nothing_that_stays(
    kernel: Kernel, recall: Recall, size: int, limit: int, writes: list[list[tuple[str, int]]]
) -> None:
    with emptied(kernel):
        initial = {f"old {number}": number for number in range(size)}
        put(kernel, initial)
        stays, seen = set(initial), list[str]()
        for turn, page in enumerate(pages(recall, limit=limit)):
            seen += page
            for number, (what, one) in enumerate(writes[turn] if turn < len(writes) else []):
                key = f"old {one}"
                if what == "add":
                    put(kernel, {f"new {turn} {number}": one})
                elif what == "rewrite" and key in stays:
                    put(kernel, {key: one + turn + 1})
                elif key in stays and what != "rewrite":
                    stays.discard(key)
                    drop(kernel, key)
                    if what == "delete and add":
                        put(kernel, {key: one})

        assert len(seen) == len(set(seen))
        assert stays <= set(seen) <= set(initial) | {key for key in seen if key.startswith("new")}


@pytest.mark.slow
def test_memories_created_after_the_first_page_are_not_listed(kernel: Kernel, recall: Recall, clock: Any) -> None:
    put(kernel, {f"old {number}": number for number in range(12)})
    seen: list[str] = []

    for page in pages(recall, limit=5):
        seen += page
        clock.move(seconds=1)
        put(kernel, {f"new {len(seen)}": 0, "old 11": 1})

    assert sorted(seen) == sorted(f"old {number}" for number in range(12))


@pytest.mark.slow
def test_pages_follow_one_ranking(kernel: Kernel, recall: Recall) -> None:
    put(kernel, {str(number): number for number in range(150)})

    first, whole = (
        [
            memory.id.partition("/")[2]
            for memory in recall(query="roses in the garden", limit=limit, max_tokens=100_000).memories
        ]
        for limit in (10, 100)
    )
    seen = [key for page in pages(recall, limit=10) for key in page]

    assert (seen[:10], seen[0]) == (first, whole[0])
    assert sorted(seen) == sorted(str(number) for number in range(150))


def test_memories_over_the_token_budget_are_on_the_next_page(kernel: Kernel, recall: Recall) -> None:
    put(kernel, {str(number): number for number in range(30)})

    found = list(pages(recall, limit=10, max_tokens=300))

    assert {len(page) for page in found[:-1]} <= set(range(1, 10))
    assert sorted(key for page in found for key in page) == sorted(str(number) for number in range(30))


@pytest.mark.slow
def test_pages_respect_filters_and_scopes(kernel: Kernel, recall: Recall) -> None:
    put(kernel, {f"kept {number}": number for number in range(25)})
    kernel.store.write_sync(lambda tx: [index.put(tx, "other", str(one), text(0)) for one in range(900)], CALLER)

    for asked in ({"spaces": ["notes"]}, {"actor": "local", "after": "2020-01-01", "scope": ""}):
        seen = [key for page in pages(recall, limit=7, **asked) for key in page]
        assert sorted(seen) == sorted(f"kept {number}" for number in range(25))


@pytest.mark.slow
def test_list_ends_at_the_maximum(kernel: Kernel, recall: Recall) -> None:
    put(kernel, {str(number): number for number in range(MAX_SEEN + 20)})

    seen = [key for page in pages(recall, limit=100, max_tokens=100_000) for key in page]

    assert MAX_SEEN <= len(seen) == len(set(seen)) < MAX_SEEN + 20 + 1


def test_cursor_is_valid_for_its_query_only(config: Config, caller: Callable[..., Call]) -> None:
    kernel = app.open_kernel(config)
    call = caller(kernel.dispatch)
    put(kernel, {str(number): number for number in range(5)})
    first = msgspec.json.decode(call("recall", query="roses", limit=1, floor="none").body, type=Recalled)

    for other in ({"query": "tea"}, {"query": "roses", "spaces": ["notes"]}, {"query": "roses", "after": "2020-01-01"}):
        reply = call("recall", cursor=first.cursor, **other)
        assert (reply.fault, b"cursor: of another question" in reply.body) == ("invalid", True)
    more = {"limit": 3, "detail": "text", "max_tokens": 900}
    same = call("recall", cursor=first.cursor, query="roses", floor="none", **more)
    assert len(msgspec.json.decode(same.body, type=Recalled).memories) == 3
    kernel.store.close()
