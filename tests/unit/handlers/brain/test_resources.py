"""Resources are kept with their host, and reading them is counted."""

from collections.abc import Callable
from typing import Any

import pytest

from handlers.brain import sources
from handlers.brain.resources import domain
from kernel.server.app import Kernel
from tests.conftest import Clock, everything
from tests.support.handlers_brain_memories import IDENTITY, LATER, NOW, by_words, events
from tests.unit.handlers.brain.conftest import CallOk


def row(key: str, title: str, **changed: Any) -> dict[str, Any]:
    return {
        "id": key,
        "db": "core",
        "title": title,
        "url": None,
        "resource_type": None,
        "description": None,
        "notes": None,
        "key_takeaways": None,
        "tags": None,
        "category": None,
        "status": "captured",
        "quality_rating": None,
        "project_id": None,
        "source_memory_id": None,
        "domain": None,
        "created_at": NOW,
        "accessed_at": None,
        "access_count": 0,
        "has_embedding": 1,
        "embedding_model": IDENTITY,
        **changed,
    }


def test_save_answers_with_the_whole_row(call_ok: CallOk, kernel: Kernel, clock: Clock) -> None:
    given = {
        "url": "https://GitHub.com/a/b?c#d",
        "resource_type": "repo",
        "description": "Knots",
        "notes": "Cords",
        "category": "c",
        "project_id": "web",
        "source_memory_id": call_ok("save_memory", db="core", content="Origin", category="fact")["id"],
    }

    plain = call_ok("save_resource", db="core", title="Tea")
    full = call_ok("save_resource", db="core", title="Quipu", key_takeaways=["one"], tags=["t"], **given)

    assert plain == row("res_2", "Tea")
    assert full == row("res_3", "Quipu", **given, key_takeaways='["one"]', tags='["t"]', domain="github.com")
    found = [by_words(kernel, words) for words in ("tea", "quipu", "knots", "cords", "t")]
    assert found == [{"res_2"}, *[{"res_3"}] * 4]
    assert events(kernel, "res_3") == [("created", None, "Quipu. Knots. Cords\none\nhttps://GitHub.com/a/b?c#d", None)]


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://github.com/a", "github.com"),
        ("http://user:secret@[::1]:80/", "::1"),
        ("ftp://Example.ORG", "example.org"),
        ("github.com/a", None),
        ("mailto:a@example.org", None),
        ("http://[broken", None),
        ("not an address", None),
        ("", None),
        (None, None),
    ],
)
def test_the_host_of_an_address(url: str | None, host: str | None) -> None:
    assert domain(url) == host


@pytest.mark.parametrize(
    ("filters", "wanted"),
    [
        ({}, [2, 1, 0]),
        ({"resource_type": "repo"}, [1]),
        ({"category": "c"}, [2]),
        ({"tags": ["T"]}, [1, 0]),
        ({"status": "captured"}, [2, 1, 0]),
        ({"status": "archived"}, []),
        ({"project_id": "web"}, [0]),
        ({"domain": "Example.org"}, [2]),
        ({"limit": 2}, [2, 1]),
        ({"offset": 2}, [0]),
    ],
    ids=str,
)
def test_filters_choose_and_the_newest_comes_first(
    call_ok: CallOk, clock: Clock, filters: dict[str, Any], wanted: list[int]
) -> None:
    made = []
    for more in (
        {"tags": ["t"], "project_id": "web"},
        {"tags": ["t"], "resource_type": "repo"},
        {"category": "c", "url": "https://example.org/x"},
    ):
        made.append(call_ok("save_resource", db="core", title="x", **more))
        clock.move(minutes=1)

    assert call_ok("get_resources", db="core", **filters) == [made[at] for at in wanted]


def test_access_is_counted_after_the_answer_without_reindexing(
    call_ok: CallOk, kernel: Kernel, settled: Callable[[], None], clock: Clock
) -> None:
    saved = call_ok("save_resource", db="core", title="x")
    before = everything(kernel)
    clock.move(hours=1)

    assert call_ok("get_resources", db="core") == [saved]
    settled()

    after = everything(kernel)
    assert {name for name in after if after[name] != before[name]} == {"brain_resource"}
    assert call_ok("get_resources", db="core") == [{**saved, "access_count": 1, "accessed_at": LATER}]


def test_archived_resources_are_returned_only_on_request(call_ok: CallOk, kernel: Kernel, clock: Clock) -> None:
    archived = row("res_9", "old", status="archived")
    kernel.store.write_sync(lambda tx: tx.run("brain.resources.insert", rows=[[*archived.values()]]))

    assert call_ok("get_resources", db="core") == []
    assert call_ok("get_resources", db="core", status="archived") == [archived]
    assert kernel.store.read_sync(lambda tx: list(sources(tx))) == []
