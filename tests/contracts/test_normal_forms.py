"""A name is the same in both normal forms of Unicode: macOS writes `é` as two characters, other systems as one."""

import unicodedata
from typing import Any

import msgspec
import pytest

from tests.conftest import Call

NAMES = ("café", "й.md", "Öl Å", "서울", "ế", "plain")


def other(text: str) -> str:
    """The text in the other normal form."""
    return unicodedata.normalize("NFD" if unicodedata.is_normalized("NFC", text) else "NFC", text)


def entity(name: str, *observations: str) -> dict[str, Any]:
    return {"name": name, "entityType": "place", "observations": [*observations]}


def relation(source: str, target: str, kind: str) -> dict[str, str]:
    return {"from": source, "to": target, "relationType": kind}


@pytest.fixture(params=[form for name in NAMES for form in dict.fromkeys((name, unicodedata.normalize("NFD", name)))])
def name(request: pytest.FixtureRequest) -> str:
    return request.param


def assert_done(reply: Any) -> None:
    assert reply.fault is None, reply.body


def answered(reply: Any) -> Any:
    assert reply.fault is None, reply.body
    return msgspec.json.decode(reply.body)


def test_an_entity_of_graph_is_one_in_both_forms(call: Call, name: str) -> None:
    as_written = {"entities": [entity(name, f"{name} opens")], "relations": [relation(name, "Bern", name)]}
    twin = entity(other(name), "closes")
    assert answered(call("create_entities", entities=[*as_written["entities"], twin])) == as_written["entities"]
    assert answered(call("create_entities", entities=[twin])) == []
    assert answered(call("create_relations", relations=as_written["relations"])) == as_written["relations"]
    twins = [relation(other(name), "Bern", other(name)), relation(name, "Bern", other(name))]
    assert answered(call("create_relations", relations=twins)) == []
    added = call("add_observations", observations=[{"entityName": other(name), "contents": [f"{other(name)} opens"]}])
    assert answered(added) == [{"entityName": other(name), "addedObservations": []}]

    for form in (name, other(name)):
        assert answered(call("open_nodes", names=[form])) == as_written
        assert answered(call("search_nodes", query=f"{form} op")) == as_written
    assert answered(call("read_graph")) == as_written

    gone = {"entityName": other(name), "observations": [f"{other(name)} opens"]}
    assert_done(call("delete_observations", deletions=[gone]))
    assert answered(call("open_nodes", names=[name]))["entities"] == [entity(name)]
    assert_done(call("delete_relations", relations=[relation(other(name), "Bern", other(name))]))
    assert answered(call("read_graph")) == {"entities": [entity(name)], "relations": []}
    assert_done(call("delete_entities", entityNames=[other(name)]))
    assert answered(call("read_graph")) == {"entities": [], "relations": []}


def test_observations_and_relations_take_the_name_that_is_there(call: Call, name: str) -> None:
    call("create_relations", relations=[relation("Bern", name, "has")])
    call("create_entities", entities=[entity(other(name), "opens")])
    call("create_relations", relations=[relation(other(name), "Bern", "in")])
    call("add_observations", observations=[{"entityName": other(name), "contents": ["closes", "closes"]}])

    relations = [relation("Bern", name, "has"), relation(name, "Bern", "in")]
    assert answered(call("open_nodes", names=[other(name)])) == {
        "entities": [entity(name, "opens", "closes")],
        "relations": relations,
    }


def test_a_session_is_one_in_both_forms(call: Call, name: str) -> None:
    stored = answered(call("remember", session_id=name, content=f"{name} opens at eight"))
    again = call("remember", session_id=other(name), content=f"{name} opens at eight")
    assert answered(again) == {"status": "skipped", "reason": f"duplicate of {stored['id']}"}
    for form in (name, other(name)):
        (found,) = answered(call("search_memory", session_id=form, query="opens"))
        assert found["session_id"] == name
    purge = {"action": "purge_session", "session_id": other(name), "confirm": True}
    assert answered(call("maintenance", **purge))["deleted"] == 1


@pytest.mark.parametrize("as_of", [None, "2100-01-01T00:00:00Z"])
def test_recall_finds_a_scope_in_both_forms(call: Call, name: str, as_of: str | None) -> None:
    answered(call("remember", session_id=name, content="The gate opens at eight"))
    assert_done(call("add_memory", path=f"{name}/gate", content="The gate closes at nine"))
    for form in (name, other(name)):
        found = answered(call("recall", query="when does the gate open", scope=form, as_of=as_of))["memories"]
        assert {memory["id"].partition("/")[0] for memory in found} == {"sessions", "paths"}, form


def test_projects_and_categories_of_brain_are_found_in_both_forms(call: Call, name: str) -> None:
    answered(call("save_memory", db="core", content="Tea", category="fact", project_id=name))
    answered(call("save_note", db="core", title="Tea", content="Green", category=name, project_id=name))
    answered(call("save_resource", db="core", title="Tea", category=name, project_id=name))
    for form in (name, other(name)):
        for tool, filters in (
            ("get_memories", {}),
            ("get_notes", {"category": form}),
            ("get_resources", {"category": form}),
        ):
            (found,) = answered(call(tool, db="core", project_id=form, **filters))
            assert found["project_id"] == name
