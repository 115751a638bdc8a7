"""recall leaves out the dialects of a setting, and finds memories of any dialect by their tags."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kernel.calls.dispatch import Dispatch
from kernel.core.config import Config
from kernel.server.app import open_kernel
from tests.conftest import Call, Clock

Found = Callable[..., list[str]]


def decode(reply: Any) -> Any:
    assert reply.fault is None, reply.body
    return msgspec.json.decode(reply.structured or reply.body)


def finder(call: Call) -> Found:
    return lambda **asked: [memory["id"] for memory in decode(call("recall", **asked))["memories"]]


@pytest.fixture
def found(call: Call) -> Found:
    """Return the ids of the hits of recall."""
    return finder(call)


def message(reply: Any) -> str:
    assert reply.fault == "invalid"
    return msgspec.json.decode(reply.body)["error"]["message"]


def test_setting_keeps_databases_and_dialects_out_of_recall(tmp_path: Path, caller: Callable[[Dispatch], Call]) -> None:
    without = {"QUIPU_RECALL_WITHOUT": "brain:therapy, sessions"}
    kernel = open_kernel(Config(data=tmp_path / "data", environment=without))
    call = caller(kernel.dispatch)
    found = finder(call)

    def save(db: str) -> str:
        return decode(call("save_memory", db=db, content=f"tea of {db}", category="fact", tags=["tea"]))["id"]

    core, therapy = f"brain:core/{save('core')}", f"brain:therapy/{save('therapy')}"
    call("remember", content="tea of a session", session_id="s", tags="tea")
    answers = [
        found(query="tea"),
        found(),
        found(query="tea", actor="tester"),
        found(query="tea", tags=["tea"]),
        found(query="tea", dialects=["brain"]),
        found(ids=[therapy, core]),
    ]
    refusals = [call("recall", query="tea", spaces=["brain:therapy"]), call("recall", dialects=["sessions"])]
    own = decode(call("search_memory", query="tea", session_id="s"))
    kernel.store.close()

    assert answers == [[core]] * 6
    assert [message(refusal) for refusal in refusals] == [
        "spaces: QUIPU_RECALL_WITHOUT keeps brain:therapy out of recall",
        "dialects: QUIPU_RECALL_WITHOUT keeps sessions out of recall",
    ]
    assert [memory["content"] for memory in own["result"]] == ["tea of a session"]


@pytest.fixture
def tagged(call: Call, clock: Clock) -> dict[str, str]:
    """A memory with the tag `Infra` of every dialect that has tags, oldest first, and the id that recall shows."""

    def save(tool: str, **values: Any) -> Any:
        clock.move(seconds=1)
        return decode(call(tool, **values))

    text = "Backups run at night"
    guideline = save("memory_guideline", action="add", scopeType="global", name="backups", content=text)["guideline"]
    save("memory_tag", action="attach", entryType="guideline", entryId=guideline["id"], tagName="infra")
    memory = save("save_memory", db="core", content=text, category="fact", tags=["infra", "nightly"])
    resource = save("save_resource", db="dnd", title=text, tags=["Infra"])
    file = save("memory_remember", title="Backups", content=text, memoryType="learning", tags=["infra", "a b"])
    session = save("remember", content=text, session_id="s", tags="ops, Infra")
    for untagged in ({"tags": ["infrared"]}, {}):
        save("save_memory", db="core", content=text, category="fact", **untagged)
    save("remember", content=f"{text}, infra too", session_id="s", tags="infra-red")
    save("memory_remember", title="Infra", content=f"{text}: infra", memoryType="learning")
    return {
        "scopes": f"scopes:guidelines/{guideline['id']}",
        "brain": f"brain:core/{memory['id']}",
        "resource": f"brain:dnd/{resource['id']}",
        "notes": f"notes:default/learning/{Path(file['filePath']).name}",
        "sessions": f"sessions/{session['id']}",
    }


def test_tags_choose_memories_of_every_dialect(found: Found, tagged: dict[str, str]) -> None:
    every = list(tagged.values())

    assert sorted(found(query="backups", tags=["INFRA"])) == sorted(every)
    assert found(tags=["infra"]) == every[::-1]
    assert found(tags=["infra"], ids=[*every, "paths/none"]) == every
    assert found(query="backups", tags=["nightly", "ops"], alike=0, limit=5) in (
        [tagged["brain"], tagged["sessions"]],
        [tagged["sessions"], tagged["brain"]],
    )


@pytest.mark.parametrize(("stored", "asked"), [("Ölfarbe", "ölfarbe"), ("ёлка", "ЁЛКА"), ("Λόγος", "ΛΌΓΟΣ")])
def test_tags_are_taken_in_any_case_of_every_script(call: Call, found: Found, stored: str, asked: str) -> None:
    guideline = decode(call("memory_guideline", action="add", scopeType="global", name="a", content="text"))[
        "guideline"
    ]
    call("memory_tag", action="attach", entryType="guideline", entryId=guideline["id"], tagName=stored)
    memory = decode(call("save_memory", db="core", content="text", category="fact", tags=[stored]))
    call("memory_remember", title="a", content="text", memoryType="learning", tags=[stored])
    call("remember", content="text", session_id="s", tags=f"x, {stored}")

    assert {id_.partition("/")[0] for id_ in found(tags=[asked])} == {
        "scopes:guidelines",
        "brain:core",
        "notes:default",
        "sessions",
    }
    (own,) = decode(call("get_memories", db="core", tags=[asked]))
    assert own["id"] == memory["id"]


def test_tags_are_one_filter_of_several(found: Found, tagged: dict[str, str]) -> None:
    assert found(query="backups", tags=["infra"], dialects=["notes"]) == [tagged["notes"]]
    assert found(query="backups", tags=["a b"]) == [tagged["notes"]]
    assert found(query="backups", tags=["infra"], spaces=["brain:dnd"]) == [tagged["resource"]]
    assert found(query="backups", tags=["infra"], actor="somebody") == []
    first = found(tags=["infra"], limit=2)
    assert first == [tagged["sessions"], tagged["notes"]]


def test_pages_of_a_tag_go_on(call: Call, tagged: dict[str, str]) -> None:
    shown: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        answer = decode(call("recall", query="backups", tags=["infra"], limit=2, cursor=cursor))
        shown += [memory["id"] for memory in answer["memories"]]
        cursor = answer["cursor"]

    assert sorted(shown) == sorted(tagged.values())


def test_many_documents_of_a_tag_are_filtered_after_the_search(
    found: Found, tagged: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("handlers.common.retrieval.MAX_DOCS", 1)
    monkeypatch.setattr("handlers.common.retrieval._MAX_TAGGED", 1)

    assert sorted(found(query="backups", tags=["infra"])) == sorted(tagged.values())
    assert found(tags=["infra"]) == list(tagged.values())[::-1]


def test_tag_that_nothing_has_is_refused(call: Call, tagged: dict[str, str]) -> None:
    assert message(call("recall", query="backups", tags=["infar", "ops2"])) == (
        "tags: nothing that is searched has the tag infar, ops2"
    )
    assert message(call("recall", tags=["ops"], dialects=["paths"])) == "tags: nothing that is searched has the tag ops"


def test_dead_memories_have_no_tags(call: Call, found: Found, tagged: dict[str, str]) -> None:
    decode(call("update_memory", db="core", id=tagged["brain"].partition("/")[2], status="archived"))
    call("delete_memory", db="core", id="none")
    decode(call("memory_guideline", action="deactivate", id=tagged["scopes"].partition("/")[2]))

    assert sorted(found(query="backups", tags=["infra"])) == sorted(
        tagged[name] for name in ("resource", "notes", "sessions")
    )
