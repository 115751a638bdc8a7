"""Memories are saved, found, changed and replaced as their contract says, with their history and place in search."""

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from handlers.brain.schemas import Memory
from kernel.calls.schema import input_schema
from kernel.core.config import Config
from kernel.search import index
from kernel.server.app import Kernel, open_kernel
from tests.conftest import TESTER, Clock, everything
from tests.support.handlers_brain_memories import IDENTITY, LATER, by_words, events, row
from tests.unit.handlers.brain.conftest import CallOk, read


def test_save_answers_with_the_whole_row(call_ok: CallOk, clock: Clock) -> None:
    assert call_ok("save_memory", db="core", content="Tea is steeped at 70 °C.", category="fact") == row(
        "mem_1", "Tea is steeped at 70 °C."
    )


def test_save_keeps_all_fields_and_returns_json_as_string(call_ok: CallOk, clock: Clock) -> None:
    given = {
        "db": "therapy",
        "content": "x",
        "category": "value",
        "subcategory": "work",
        "tags": ["A b", "é"],
        "project_id": "web",
        "importance": 5,
        "metadata": {"immutable": False, "deep": [1, {"a": None}]},
    }

    answer = call_ok("save_memory", **given)

    assert answer == row(
        "mem_1",
        "x",
        "value",
        subcategory="work",
        tags='["A b","é"]',
        project_id="web",
        importance=5,
        metadata='{"immutable":false,"deep":[1,{"a":null}]}',
    )
    assert call_ok("get_memories", db="therapy") == [answer]
    assert call_ok("get_memories", db="core") == []


def test_an_id_is_its_prefix_and_21_characters(call_ok: CallOk) -> None:
    keys = [call_ok("save_memory", db="core", content="x", category="fact")["id"] for _ in range(20)]

    assert all(len(key) == 25 and key.startswith("mem_") and key[4:].isalnum() for key in keys)
    assert len(set(keys)) == 20


def test_a_saved_memory_is_found_at_once_by_content_category_and_tag_in_its_own_database(
    call_ok: CallOk, kernel: Kernel
) -> None:
    key = call_ok("save_memory", db="core", content="descale the kettle", category="learning", tags=["kitchen"])["id"]

    assert [by_words(kernel, words) for words in ("kettle", "learning", "kitchen")] == [{key}] * 3
    assert by_words(kernel, "kettle", "therapy") == set()


def test_batched_saves_return_individual_results(kernel: Kernel, runner: asyncio.Runner, call_ok: CallOk) -> None:
    bound = kernel.dispatch.tools["save_memory"]
    asked = [("core", "a", {}), ("nowhere", "b", {}), ("dnd", "c", {"tags": ["t"]})]

    async def storm() -> list[Any]:
        raws = [
            msgspec.json.encode({"db": db, "content": text, "category": "fact", **more}) for db, text, more in asked
        ]
        return await asyncio.gather(*(kernel.dispatch.call(bound, raw, TESTER) for raw in raws))

    replies = runner.run(storm())

    assert [reply.fault for reply in replies] == [None, "invalid", None]
    saved = [msgspec.json.decode(reply.body, type=Memory) for reply in replies[::2]]
    assert [call_ok("get_memories", db=db) for db in ("core", "dnd")] == [
        [msgspec.to_builtins(memory)] for memory in saved
    ]
    assert by_words(kernel, "t", "dnd") == {saved[1].id}


def test_texts_hook_returns_the_indexed_text(kernel: Kernel, call_ok: CallOk) -> None:
    call_ok("save_memory", db="core", content="one", category="fact", tags=["tag"])
    found = kernel.dispatch.tools["save_memory"].tool
    request = msgspec.convert({"db": "core", "content": "one", "category": "fact"}, found.request)
    texts = kernel.store.read_sync(lambda tx: [doc.text for doc in index.documents(tx, [1]).values()])

    assert found.hooks.texts is not None
    assert list(found.hooks.texts(request)) == texts == ["one"]


@pytest.fixture
def several(call_ok: CallOk, clock: Clock) -> list[str]:
    """Four memories a minute apart: ids by number."""
    keys: list[str] = []
    for content, category, importance, tags in (
        ("zero", "fact", 3, ["red", "100%"]),
        ("one", "decision", 5, ["Blue"]),
        ("two", "fact", 3, None),
        ("three", "fact", 1, ["redder", 'quo"te']),
    ):
        given: dict[str, Any] = {"tags": tags} if tags else {}
        saved = call_ok("save_memory", db="core", content=content, category=category, importance=importance, **given)
        keys.append(saved["id"])
        clock.move(minutes=1)
    return keys


@pytest.mark.parametrize(
    ("filters", "wanted"),
    [
        ({}, [1, 2, 0, 3]),
        ({"category": "fact"}, [2, 0, 3]),
        ({"tags": ["red"]}, [0]),
        ({"tags": ["RED", "blue"]}, [1, 0]),
        ({"tags": ["%"]}, []),
        ({"tags": ["re_"]}, []),
        ({"tags": ["100%"]}, [0]),
        ({"tags": ['quo"te']}, [3]),
        ({"tags": []}, [1, 2, 0, 3]),
        ({"min_importance": 3}, [1, 2, 0]),
        ({"min_importance": 5}, [1]),
        ({"status": "active"}, [1, 2, 0, 3]),
        ({"status": "superseded"}, []),
        ({"project_id": "no such project"}, []),
        ({"limit": 2}, [1, 2]),
        ({"limit": 2, "offset": 1}, [2, 0]),
        ({"offset": 4}, []),
        ({"category": "fact", "min_importance": 3, "tags": ["red"]}, [0]),
    ],
    ids=str,
)
def test_filters_choose_and_the_most_important_and_newest_come_first(
    call_ok: CallOk, several: list[str], filters: dict[str, Any], wanted: list[int]
) -> None:
    assert [memory["id"] for memory in call_ok("get_memories", db="core", **filters)] == [several[at] for at in wanted]


@pytest.mark.parametrize(
    ("filters", "wanted"),
    [
        ({"created_after": "2026-01-02"}, [0, 1, 2, 3]),
        ({"created_after": "2026-01-02T03:05"}, [1, 2, 3]),
        ({"created_after": "2026-01-02 03:05:05.678"}, [1, 2, 3]),
        ({"created_after": "2026-01-02T03:05:05.678Z"}, [1, 2, 3]),
        ({"created_after": "2026-01-02T05:05:05.678+02:00"}, [1, 2, 3]),
        ({"created_after": "20260102T030506Z"}, [2, 3]),
        ({"created_before": "2026-01-02 03:05:05.678"}, [0, 1]),
        ({"created_before": "2026-01-02T03:05:05.677Z"}, [0]),
        ({"created_before": "2026-01-02"}, []),
        ({"created_after": "2026-01-02T03:05:00", "created_before": "2026-01-02T03:06:59Z"}, [1, 2]),
    ],
    ids=str,
)
def test_dates_are_compared_as_times_however_they_are_written(
    call_ok: CallOk, several: list[str], filters: dict[str, Any], wanted: list[int]
) -> None:
    found = {memory["id"] for memory in call_ok("get_memories", db="core", **filters)}

    assert found == {several[at] for at in wanted}


def test_access_is_counted_after_the_answer_without_reindexing(
    call_ok: CallOk, kernel: Kernel, settled: Callable[[], None], clock: Clock
) -> None:
    saved = call_ok("save_memory", db="core", content="kettle", category="fact")
    call_ok("save_memory", db="core", content="other", category="blocker")
    before = everything(kernel)
    clock.move(hours=1)

    assert call_ok("get_memories", db="core", category="fact") == [saved]
    settled()

    after = everything(kernel)
    changed = {name for name in after if after[name] != before[name]}
    assert changed == {"brain_memory"}
    seen = {"access_count": 1, "last_accessed_at": LATER, "decay_score": 1.0}
    assert call_ok("get_memories", db="core", category="fact") == [{**saved, **seen}]
    settled()
    assert call_ok("get_memories", db="core", category="fact")[0]["access_count"] == 2
    assert call_ok("get_memories", db="core", category="blocker")[0]["access_count"] == 0


def test_access_raises_a_decayed_score(call_ok: CallOk, settled: Callable[[], None], clock: Clock) -> None:
    call_ok("save_memory", db="core", content="kettle", category="fact")

    clock.move(days=60)
    call_ok("get_memories", db="core")
    settled()
    assert call_ok("get_memories", db="core")[0]["decay_score"] == pytest.approx(0.35)
    settled()
    assert call_ok("get_memories", db="core")[0]["decay_score"] == pytest.approx(0.45)


def test_update_changes_what_is_given_and_leaves_the_rest(call_ok: CallOk, kernel: Kernel, clock: Clock) -> None:
    saved = call_ok("save_memory", db="core", content="old kettle", category="fact", tags=["a"], metadata={"x": 1})
    clock.move(hours=1)

    changed = call_ok("update_memory", db="core", id=saved["id"], content="new pot", importance=4)

    assert changed == {**saved, "content": "new pot", "importance": 4, "updated_at": LATER}
    assert call_ok("get_memories", db="core") == [changed]
    assert [by_words(kernel, words) for words in ("kettle", "pot")] == [set(), {saved["id"]}]
    assert events(kernel, saved["id"]) == [
        ("created", None, "old kettle", None),
        ("updated", "old kettle", "new pot", "Changed content, importance"),
    ]


def test_every_field_can_be_updated(call_ok: CallOk, clock: Clock) -> None:
    saved = call_ok("save_memory", db="core", content="x", category="fact", tags=["a"], metadata={"x": 1})
    given = {"category": "decision", "subcategory": "s", "tags": [], "status": "archived", "metadata": {}}

    changed = call_ok("update_memory", db="core", id=saved["id"], **given)

    assert changed == {**saved, **given, "tags": "[]", "metadata": "{}"}
    assert call_ok("get_memories", db="core") == []
    assert call_ok("get_memories", db="core", status="archived") == [changed]


def test_an_update_embeds_new_content_again(call_ok: CallOk, kernel: Kernel) -> None:
    key = call_ok("save_memory", db="core", content="The automobile is in the garage", category="fact")["id"]

    def distance() -> float:
        (hit,) = kernel.store.read_sync(lambda tx: index.search(tx, "vehicle repairs", lexical=False))
        return hit.distance or 0.0

    before = distance()
    call_ok("update_memory", db="core", id=key, content="Roses want water every morning")
    assert distance() > before + 0.1


def test_a_new_tag_or_category_is_found_and_the_old_no_longer(call_ok: CallOk, kernel: Kernel) -> None:
    key = call_ok("save_memory", db="core", content="x", category="fact", tags=["red"])["id"]

    call_ok("update_memory", db="core", id=key, tags=["blue"], category="pattern")

    found = [by_words(kernel, words) for words in ("red", "fact", "blue", "pattern")]
    assert found == [set(), set(), {key}, {key}]


def test_only_active_memories_are_found(call_ok: CallOk, kernel: Kernel) -> None:
    key = call_ok("save_memory", db="core", content="kettle", category="fact")["id"]

    call_ok("update_memory", db="core", id=key, status="archived")
    assert by_words(kernel, "kettle") == set()
    call_ok("update_memory", db="core", id=key, status="active")
    assert by_words(kernel, "kettle") == {key}


def test_supersede_makes_a_new_memory_of_the_old_and_links_them(call_ok: CallOk, kernel: Kernel, clock: Clock) -> None:
    old = call_ok(
        "save_memory",
        db="core",
        content="Port 80",
        category="decision",
        subcategory="net",
        tags=["ops"],
        project_id="web",
        importance=4,
        metadata={"x": 1},
    )
    clock.move(hours=1)

    answer = call_ok("supersede_memory", db="core", old_id=old["id"], new_content="Port 443", reason="TLS")

    new = {
        **old,
        "id": "mem_2",
        "content": "Port 443",
        "metadata": '{"x":1,"supersede_reason":"TLS"}',
        "created_at": LATER,
        "updated_at": LATER,
    }
    gone = {**old, "status": "superseded", "superseded_by": "mem_2", "updated_at": LATER}
    assert answer == {"old_memory": gone, "new_memory": new, "link_id": "lnk_3"}
    assert list(answer) == ["old_memory", "new_memory", "link_id"]
    assert call_ok("get_memories", db="core", status="superseded") == [gone]
    assert call_ok("get_memories", db="core") == [new]
    assert call_ok("get_links", db="core") == [
        {
            "id": "lnk_3",
            "source_type": "memory",
            "source_id": "mem_2",
            "target_type": "memory",
            "target_id": "mem_1",
            "relationship": "supersedes",
            "strength": 1.0,
            "context": None,
            "bidirectional": 0,
            "metadata": '{"reason":"TLS"}',
            "created_at": LATER,
        }
    ]
    assert by_words(kernel, "port") == {"mem_2"}
    assert events(kernel, "mem_1") == [("created", None, "Port 80", None), ("superseded", "Port 80", None, "TLS")]
    assert events(kernel, "mem_2") == [("created", "Port 80", "Port 443", "TLS")]


def test_without_a_reason_the_metadata_is_inherited(call_ok: CallOk, clock: Clock) -> None:
    call_ok("save_memory", db="core", content="Port 80", category="decision", metadata={"x": 1})

    answer = call_ok("supersede_memory", db="core", old_id="mem_1", new_content="Port 443")

    assert answer["new_memory"]["metadata"] == '{"x":1}'
    assert call_ok("get_links", db="core")[0]["metadata"] is None


def test_a_bulk_save_saves_all_in_order(call_ok: CallOk, kernel: Kernel, clock: Clock) -> None:
    items = [{"content": f"kettle {number}", "category": "fact"} for number in range(99)]
    items.append({"content": "last", "category": "value", "tags": ["t"], "importance": 1, "metadata": {"a": 1}})  # pyrefly: ignore[bad-assignment]

    answer = call_ok("bulk_save_memories", db="hlg", memories=items)

    assert answer == {"saved": 100, "ids": [f"mem_{number}" for number in range(1, 101)]}
    assert len(by_words(kernel, "kettle", "hlg")) == 99
    assert call_ok("get_memories", db="hlg", tags=["t"]) == [
        row("mem_100", "last", "value", tags='["t"]', importance=1, metadata='{"a":1}')
    ]
    assert events(kernel, "mem_7", "hlg") == [("created", None, "kettle 6", None)]


def test_a_bulk_save_with_one_bad_memory_saves_none(refused: CallOk) -> None:
    items = [{"content": "a", "category": "fact"}, {"content": "b", "category": "nonsense"}]

    code, message = refused("bulk_save_memories", db="core", memories=items)

    assert (code, "memories[1].category" in message) == ("invalid", True)


@pytest.mark.parametrize("count", [0, 101])
def test_a_bulk_save_takes_from_1_to_100_memories(refused: CallOk, count: int) -> None:
    code, message = refused("bulk_save_memories", db="core", memories=[{"content": "a", "category": "fact"}] * count)

    assert (code, "`memories`" in message) == ("invalid", True)


def test_metadata_keeps_numbers_of_any_size(call_ok: CallOk) -> None:
    saved = call_ok("save_memory", db="core", content="x", category="fact", metadata={"n": 2**70, "f": 1e-300})

    assert saved["metadata"] == '{"n":1180591620717411303424,"f":1e-300}'
    assert call_ok("get_memories", db="core") == [saved]


def test_delete_removes_row_links_and_index_entry_but_keeps_history(
    call_ok: CallOk, kernel: Kernel, clock: Clock
) -> None:
    for content in ("kettle", "pot", "pan"):
        call_ok("save_memory", db="core", content=content, category="fact")
    for source, target in (("mem_1", "mem_2"), ("mem_3", "mem_1"), ("mem_2", "mem_3")):
        call_ok(
            "create_link",
            db="core",
            source_type="memory",
            source_id=source,
            target_type="memory",
            target_id=target,
            relationship="relates_to",
        )

    assert call_ok("delete_memory", db="core", id="mem_1") == "Deleted memory 'mem_1'"

    assert [memory["id"] for memory in call_ok("get_memories", db="core")] == ["mem_2", "mem_3"]
    assert [link["source_id"] for link in call_ok("get_links", db="core")] == ["mem_2"]
    assert by_words(kernel, "kettle") == set()
    assert events(kernel, "mem_1") == [("created", None, "kettle", None), ("deleted", "kettle", None, None)]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("update_memory", {"id": "mem_x", "content": "y"}),
        ("supersede_memory", {"old_id": "mem_x", "new_content": "y"}),
        ("delete_memory", {"id": "mem_x"}),
        ("handle_correction", {"wrong_memory_id": "mem_x", "correct_content": "y"}),
    ],
)
def test_an_unknown_id_is_not_found(call_ok: CallOk, refused: CallOk, name: str, arguments: dict[str, str]) -> None:
    call_ok("save_memory", db="therapy", content="elsewhere", category="fact")

    assert refused(name, db="core", **arguments) == ("not_found", "Error: Memory 'mem_x' not found")


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("brain:core/mem_x", ": its id is mem_x, its db core"),
        ("ent_x", "; ids of entities begin with ent_"),
        ("note_x", "; ids of notes begin with note_"),
        ("ent", ""),
        ("gl_x", ""),
    ],
)
def test_an_id_of_another_kind_or_of_recall_is_told(refused: CallOk, key: str, hint: str) -> None:
    assert refused("delete_memory", db="core", id=key) == ("not_found", f"Error: Memory '{key}' not found{hint}")


def test_a_refusal_names_the_database_that_has_the_row(call_ok: CallOk, refused: CallOk) -> None:
    memory = call_ok("save_memory", db="therapy", content="elsewhere", category="fact")["id"]
    entity = call_ok("create_entity", db="dnd", name="Ada", type="person")["id"]
    ends = {"source_type": "memory", "source_id": memory, "target_type": "entity", "target_id": entity}
    link = call_ok("create_link", db="hlg", relationship="knows", **ends)["id"]

    for tool, arguments, kind, key, place in (
        ("delete_memory", {"id": memory}, "Memory", memory, "therapy"),
        ("supersede_memory", {"old_id": memory, "new_content": "here"}, "Memory", memory, "therapy"),
        ("get_entity_full", {"id": entity}, "Entity", entity, "dnd"),
        ("delete_link", {"id": link}, "Link", link, "hlg"),
    ):
        answer = refused(tool, db="core", **arguments)
        assert answer == ("not_found", f"Error: {kind} '{key}' not found; it is in {place}")


def test_an_update_of_nothing_is_refused_in_the_contracts_words(call_ok: CallOk, refused: CallOk) -> None:
    key = call_ok("save_memory", db="core", content="x", category="fact")["id"]

    assert refused("update_memory", db="core", id=key) == ("invalid", "No fields to update")


@pytest.mark.parametrize("name", ["created_after", "created_before"])
@pytest.mark.parametrize(
    "given", ["yesterday", "2026-13-01", "1", "2026-01-02T25:00", "0000-00-00", "\0", "٢٠٢٦-01-01"]
)
def test_invalid_time_is_refused_by_name(refused: CallOk, name: str, given: str) -> None:
    code, message = refused("get_memories", db="core", **{name: given})

    assert (code, message) == (
        "invalid",
        f"Error: Invalid arguments: {name} is no time or date, such as 2026-01-31 or 2026-01-31T08:00:00Z",
    )


def test_any_text_round_trips(call_ok: CallOk) -> None:
    for content in (
        '{"a": 1}',
        "[]",
        "null",
        "'; DROP TABLE brain_memory; --",
        "日本語 🦙",
        "\u202e\u200b",
        "\\u0000",
    ):
        saved = call_ok(
            "save_memory", db="core", content=content, category="fact", tags=[content], metadata={content: content}
        )
        assert saved["content"] == content
        assert msgspec.json.decode(saved["tags"]) == [content]
        assert call_ok("get_memories", db="core", tags=[content]) == [saved]
        call_ok("delete_memory", db="core", id=saved["id"])


def test_has_embedding_is_0_without_a_model(config: Config, caller: Any) -> None:
    running = open_kernel(config._replace(model=None))
    try:
        call = caller(running.dispatch)
        saved = read(call("save_memory", db="core", content="x", category="fact"))
        assert (saved["has_embedding"], saved["embedding_model"]) == (0, None)
        assert read(call("smart_save_memory", db="core", content="x", category="fact"))["similar"] == [
            {**saved, "similarity": 1.0}
        ]
        changed = read(call("update_memory", db="core", id=saved["id"], content="y"))
        assert (changed["has_embedding"], changed["embedding_model"]) == (0, None)
    finally:
        running.store.close()

    running = open_kernel(config)
    try:
        call = caller(running.dispatch)
        tagged = read(call("update_memory", db="core", id=saved["id"], importance=4))
        assert (tagged["has_embedding"], tagged["embedding_model"]) == (0, None)
        changed = read(call("update_memory", db="core", id=saved["id"], content="z"))
        assert (changed["has_embedding"], changed["embedding_model"]) == (1, IDENTITY)
    finally:
        running.store.close()


def test_the_databases_are_those_that_are_configured(config: Config, caller: Any) -> None:
    running = open_kernel(config._replace(environment={"QUIPU_BRAIN_DATABASES": "work, home"}))
    try:
        call = caller(running.dispatch)
        saved = read(call("save_memory", db="home", content="x", category="fact"))
        assert read(call("get_memories", db="home")) == [saved]
        refusal = call("save_memory", db="core", content="x", category="fact")
        assert read(refusal) == "Error: Invalid arguments: db is one of work, home"
        shown = input_schema(running.dispatch.tools["save_memory"].tool)["properties"]["db"]["enum"]
        assert shown == ["work", "home"]
        assert read(call("get_memory_history", memory_id=saved["id"]))["db"] == "home"
    finally:
        running.store.close()
