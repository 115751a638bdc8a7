"""An import restores a document completely and merges it by the conflict strategy."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from handlers import scopes
from handlers.scopes.field_types import normal_name
from kernel.core.config import Config
from kernel.operations import consistency
from kernel.search import index
from kernel.server.app import Kernel, open_kernel
from tests.conftest import Call, Clock, everything
from tests.support.handlers_scopes_export import add, names
from tests.support.handlers_scopes_import_merge import HOSTILE, NAME, TEXT, bring, outcome_counts, tool
from tests.unit.handlers.scopes.conftest import Do, ScopeIds, Store, exported, refused


def sound(kernel: Kernel) -> bool:
    """Whether the index matches the rows."""
    return not consistency.check(kernel.config.file, kernel.store.context, [scopes.DIALECT])


@pytest.fixture
def filled(do: Do, scope_ids: ScopeIds, clock: Clock) -> dict[str, str]:
    """A store with rows in every table; ids by name."""
    ids = {
        "t": add(do, "tool", "t", parameters={"a": [1, None, {"b": "x"}]}, category="cli", createdBy="ada"),
        "g": add(do, "guideline", "g", ("org", scope_ids.org), priority=0, examples={"good": ["a"]}),
        "k": add(do, "knowledge", "k", ("session", scope_ids.session), confidence=0.25, validUntil="2030-01-01"),
        "old": add(do, "tool", "t2"),
    }
    clock.move(minutes=1)
    do("memory_tool", "update", id=ids["t"], description="second", changeReason="r", updatedBy="bob")
    do("memory_tool", "update", id=ids["t"], description="third")
    do("memory_tool", "deactivate", id=ids["old"])
    ids["new"] = add(do, "tool", "t2")
    do("memory_tag", "create", name="mine", category="domain", description="d")
    for kind, name, tag in (("tool", "t", "mine"), ("tool", "t", "python"), ("knowledge", "k", "python")):
        do("memory_tag", "attach", entryType=kind, entryId=ids[name], tagName=tag)
    do("memory_tag", "attach", entryType="project", entryId=scope_ids.project, tagName="rust")
    for ends in (
        ("tool", ids["t"], "guideline", ids["g"]),
        ("guideline", ids["g"], "project", scope_ids.project),
        ("tool", ids["t"], "tool", ids["old"]),
        ("project", scope_ids.project, "tool", ids["t"]),
    ):
        do("memory_relation", "create", **dict(zip(ENDS, ends, strict=True)), relationType="related_to")
    clock.move(minutes=1)
    return ids


ENDS = ("sourceType", "sourceId", "targetType", "targetId")


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["json", "yaml"])
def test_an_import_into_an_empty_store_exports_the_same_document(
    do: Do, second_store: Store, filled: dict[str, str], clock: Clock, shape: str
) -> None:
    whole = {"includeVersions": True, "includeInactive": True, "format": shape}
    content = do("memory_export", "export", **whole)["content"]

    assert outcome_counts(bring(second_store.do, content, format=shape)) == (5, 0, 0)

    assert second_store.do("memory_export", "export", **whole)["content"] == content
    assert sound(second_store.kernel)
    (found,) = second_store.kernel.store.read_sync(lambda tx: index.search(tx, "third", semantic=False))
    assert (found.space, found.id) == ("scopes:tools", filled["t"])
    for name, kind in (("t", "tool"), ("g", "guideline"), ("k", "knowledge")):
        for action in ("get", "history"):
            there = second_store.do(f"memory_{kind}", action, id=filled[name])
            assert there == do(f"memory_{kind}", action, id=filled[name])


@pytest.mark.parametrize("given", [{}, {"types": ["guidelines"]}, {"tags": ["mine"]}, {"scopeType": "session"}])
def test_a_filtered_export_is_imported(
    do: Do, second_store: Store, filled: dict[str, str], given: dict[str, Any]
) -> None:
    for entry in (filled["t"], filled["g"]):  # so that no relation goes out of the part
        for link in do("memory_relation", "list", sourceId=entry)["relations"]:
            do("memory_relation", "delete", id=link["id"])
    do("memory_relation", "delete", id=do("memory_relation", "list")["relations"][0]["id"])
    part = exported(do, includeVersions=False, includeInactive=False, **given)

    outcome_counts(bring(second_store.do, part))

    assert exported(second_store.do, includeVersions=False, includeInactive=False, **given) == part


@pytest.mark.parametrize("strategy", ["update", "replace", "skip"])
def test_importing_twice_changes_nothing(
    do: Do, kernel: Kernel, filled: dict[str, str], call: Call, strategy: str
) -> None:
    document = exported(do)

    before = everything(kernel)
    reply = call("memory_import", action="import", content=json.dumps(document), conflictStrategy=strategy)

    assert outcome_counts(json.loads(reply.body)) == (0, 0, 5)
    assert {**everything(kernel), "audit": before["audit"]} == before
    assert sound(kernel)


@pytest.mark.slow
def test_strategy_error_imports_everything_or_nothing(do: Do, second_store: Store, filled: dict[str, str]) -> None:
    document = exported(do)
    second_store.do("memory_tool", "add", scopeType="global", name="t")
    before = everything(second_store.kernel)
    given = {"action": "import", "content": json.dumps(document), "conflictStrategy": "error"}

    assert refused(second_store.call("memory_import", **given)) == (
        "conflict",
        "E2001",
        "Nothing was imported, t: Tool already exists: t in global",
        {"field": "content", "errors": [{"entry": "t", "error": "Tool already exists: t in global"}], "count": 1},
    )
    assert everything(second_store.kernel) == before
    document["entries"]["tools"].append({"name": "odd", "priority": "high"})
    document["entries"]["knowledge"].append({"title": "empty"})
    found = refused(second_store.call("memory_import", **(given | {"content": json.dumps(document)})))
    assert (found[2], found[3]["count"]) == (
        "Nothing was imported, t: Tool already exists: t in global (and 2 more)",
        3,
    )
    document["entries"]["tools"] = document["entries"]["tools"][1:]
    found = refused(second_store.call("memory_import", **(given | {"content": json.dumps(document)})))
    assert found[:2] == ("invalid", "E1000")
    assert everything(second_store.kernel) == before

    do("memory_tool", "deactivate", id=filled["new"])
    document = exported(do, types=["guidelines", "knowledge"])
    for entry in document["entries"]["guidelines"]:
        entry["relations"] = []
    for project in document["scopes"]["projects"]:
        project["relations"] = []
    assert outcome_counts(bring(second_store.do, document, conflictStrategy="error")) == (2, 0, 0)


def test_strategy_update_keeps_fields_missing_in_the_document(do: Do, clock: Clock) -> None:
    number = add(do, "guideline", "g", priority=70, category="style", rationale="why", examples={"good": []})
    do("memory_tag", "attach", entryType="guideline", entryId=number, tagName="old")
    clock.move(seconds=1)
    item = {"name": "g", "tags": ["new"], "currentVersion": {"content": "changed"}}

    assert outcome_counts(bring(do, {"entries": {"guidelines": [item]}}, importedBy="ada")) == (0, 1, 0)

    found = do("memory_guideline", "get", id=number)["guideline"]
    version = found["currentVersion"]
    assert (found["priority"], found["category"]) == (70, "style")
    assert {name: version[name] for name in ("versionNum", "content", "rationale", "examples", "createdBy")} == {
        "versionNum": 2,
        "content": "changed",
        "rationale": "why",
        "examples": {"good": []},
        "createdBy": "ada",
    }
    assert (version["changeReason"], version["conflictFlag"], version["createdAt"]) == (
        "Imported update",
        False,
        clock.now,
    )
    tags = do("memory_tag", "for_entry", entryType="guideline", entryId=number)["tags"]
    assert [tag["name"] for tag in tags] == ["old", "new"]
    assert do("memory_conflict", "list")["conflicts"] == []


def test_strategy_replace_clears_fields_missing_in_the_document(do: Do, kernel: Kernel) -> None:
    number = add(do, "guideline", "g", priority=70, category="style", rationale="why", examples={"good": []})
    other = add(do, "tool", "other")
    do("memory_tag", "attach", entryType="guideline", entryId=number, tagName="old")
    do(
        "memory_relation",
        "create",
        sourceType="guideline",
        sourceId=number,
        targetType="tool",
        targetId=other,
        relationType="depends_on",
    )
    link = {"targetType": "tool", "targetId": other, "relationType": "related_to"}
    item = {"name": "g", "tags": ["new"], "relations": [link], "currentVersion": {"content": "changed"}}

    assert outcome_counts(bring(do, {"entries": {"guidelines": [item]}}, conflictStrategy="replace")) == (0, 1, 0)

    (found,) = exported(do)["entries"]["guidelines"]
    version = found["currentVersion"]
    assert (found["id"], found["priority"], found["category"], found["tags"]) == (number, 50, None, ["new"])
    assert [version[name] for name in ("versionNum", "content", "rationale", "examples")] == [2, "changed", None, None]
    assert [one["relationType"] for one in found["relations"]] == ["related_to"]
    assert [one["content"] for one in found["versions"]] == ["about g", "changed"]
    assert sound(kernel)

    del item["tags"], item["relations"]
    bring(do, {"entries": {"guidelines": [item]}}, conflictStrategy="replace")
    assert exported(do)["entries"]["guidelines"] == [found]


def test_entries_match_in_the_same_scope_only(do: Do, scope_ids: ScopeIds) -> None:
    wide = add(do, "tool", "t", description="global")
    document = tool("t", scopeType="project", scopeId=scope_ids.project, currentVersion={"description": "project"})

    assert outcome_counts(bring(do, document)) == (1, 0, 0)

    assert do("memory_tool", "get", id=wide)["tool"]["currentVersion"]["description"] == "global"
    where = {"scopeType": "project", "scopeId": scope_ids.project}
    assert do("memory_tool", "get", name="t", **where)["tool"]["currentVersion"]["description"] == "project"
    assert outcome_counts(bring(do, document)) == (0, 0, 1)


def test_scope_mapping_moves_entries(do: Do, second_store: Store, filled: dict[str, str]) -> None:
    home = second_store.do("memory_project", "create", name="home")["project"]["id"]
    document = exported(do)
    session = document["scopes"]["sessions"][0]["id"]
    org = document["scopes"]["organizations"][0]["id"]
    for project in document["scopes"]["projects"]:
        project["relations"] = []
    document["entries"]["guidelines"][0]["relations"] = []
    mapping = {
        "global:": {"type": "project", "id": home},
        f"session:{session}": {"type": "global"},
        f"org:{org}": {"type": "project", "id": home},
    }

    assert outcome_counts(bring(second_store.do, document, scopeMapping=mapping)) == (5, 0, 0)

    found = exported(second_store.do)
    where = {
        item.get("name") or item["title"]: (item["scopeType"], item["scopeId"], item["id"])
        for items in found["entries"].values()
        for item in items
        if item["isActive"]
    }
    assert where == {
        "t": ("project", home, filled["t"]),
        "t2": ("project", home, filled["new"]),
        "g": ("project", home, filled["g"]),
        "k": ("global", None, filled["k"]),
    }
    assert [one["id"] for one in found["scopes"]["projects"]] == [home]
    assert found["scopes"]["sessions"] == found["scopes"]["organizations"] == []
    assert outcome_counts(bring(second_store.do, document, scopeMapping=mapping)) == (0, 0, 5)


@pytest.mark.parametrize("new_ids", [False, True])
@pytest.mark.parametrize("strategy", ["update", "replace", "skip"])
def test_scope_mapping_makes_no_second_entry_of_a_name(
    do: Do, second_store: Store, scope_ids: ScopeIds, strategy: str, new_ids: bool
) -> None:
    """The entry of the scope itself stays; that which is mapped to it is reported."""
    add(do, "tool", "t", description="of all")
    add(do, "tool", "t", ("project", scope_ids.project), description="of the project")
    document = exported(do)
    mapping = {"global:": {"type": "project", "id": scope_ids.project}}
    clash = f"Tool already exists: t in project:{scope_ids.project}. "
    left_out = {"entry": "t", "error": clash + 'Suggestion: map "global" to another scope'}
    given = {"scopeMapping": mapping, "generateNewIds": new_ids, "conflictStrategy": strategy}

    def shown(store: Do) -> list[str]:
        return [found["currentVersion"]["description"] for found in store("memory_tool", "list")["tools"]]

    assert bring(do, document, **given)["errors"] == [left_out]
    assert shown(do) == ["of all", "of the project"]
    bring(second_store.do, {**document, "entries": {}})
    answer = bring(second_store.do, document, **given)
    assert (answer["created"], answer["errors"]) == (1, [left_out])
    assert shown(second_store.do) == ["of the project"]


def test_scope_mapping_within_a_store_makes_copies(do: Do, scope_ids: ScopeIds) -> None:
    """`global` names that scope as well as the `global:` of the document does."""
    number = add(do, "tool", "t", description="d")
    where = {"type": "project", "id": scope_ids.project}

    assert outcome_counts(bring(do, exported(do, types=["tools"]), scopeMapping={"global": where})) == (1, 0, 0)

    first, second = exported(do)["entries"]["tools"]
    assert (first["id"], second["scopeId"], second["currentVersion"]["description"]) == (number, scope_ids.project, "d")
    assert {first["id"], first["currentVersionId"]} & {second["id"], second["currentVersionId"]} == set()


@pytest.mark.slow
def test_generate_new_ids_updates_relations(do: Do, second_store: Store, filled: dict[str, str]) -> None:
    document = exported(do)

    assert outcome_counts(bring(second_store.do, document, generateNewIds=True)) == (5, 0, 0)

    found = exported(second_store.do)
    ids = {item["id"] for items in found["entries"].values() for item in items}
    versions = {one["id"] for items in found["entries"].values() for item in items for one in item["versions"]}
    assert ids & set(filled.values()) == set()
    assert (
        versions & {one["id"] for items in document["entries"].values() for i in items for one in i["versions"]}
        == set()
    )
    assert names(found) == names(document)
    (rule,) = found["entries"]["guidelines"]
    links = [(link["targetType"], link["targetId"]) for link in found["entries"]["tools"][0]["relations"]]
    assert links == [("guideline", rule["id"]), ("tool", found["entries"]["tools"][1]["id"])]
    assert outcome_counts(bring(second_store.do, document, generateNewIds=True)) == (0, 0, 5)


@pytest.mark.slow
def test_activity_is_taken_from_the_document(do: Do, kernel: Kernel, filled: dict[str, str]) -> None:
    before = exported(do)
    do("memory_tool", "deactivate", id=filled["t"])
    do("memory_tool", "deactivate", id=filled["new"])
    taken = add(do, "tool", "t")

    assert outcome_counts(bring(do, before)) == (0, 2, 3)

    after = {item["id"]: item["isActive"] for item in exported(do)["entries"]["tools"]}
    assert after == {filled["t"]: False, filled["old"]: False, filled["new"]: True, taken: True}
    assert sound(kernel)
    retired = exported(do)
    retired["entries"]["tools"] = [
        {**item, "isActive": False} for item in retired["entries"]["tools"] if item["id"] == taken
    ]
    bring(do, retired)
    assert do("memory_tool", "get", id=taken)["tool"]["isActive"] is False
    assert sound(kernel)
    unsaid = tool("t2", currentVersion={"description": "x"})
    bring(do, unsaid)
    assert do("memory_tool", "get", id=filled["new"])["tool"]["isActive"] is True


def test_an_inactive_entry_does_not_match_an_active_one(do: Do, second_store: Store, filled: dict[str, str]) -> None:
    second_store.do("memory_tool", "add", scopeType="global", name="t2", description="mine")

    answer = bring(second_store.do, exported(do, types=["tools"], scopeType="global"))

    assert (answer["created"], answer["updated"], answer["skipped"]) == (2, 0, 1)
    found = [(item["name"], item["isActive"]) for item in exported(second_store.do)["entries"]["tools"]]
    assert found == [("t2", True), ("t", True), ("t2", False)]


def test_later_versions_of_the_same_history_are_added_unchanged(do: Do, second_store: Store, clock: Clock) -> None:
    number = add(do, "tool", "t", description="1")
    bring(second_store.do, exported(do))
    for text in "23":
        clock.move(minutes=1)
        do("memory_tool", "update", id=number, description=text, updatedBy="ada")
    whole = exported(do)
    clock.move(minutes=1)

    assert outcome_counts(bring(second_store.do, whole)) == (0, 1, 0)
    assert exported(second_store.do) == whole

    second_store.do("memory_tool", "update", id=number, description="4 second_store")
    do("memory_tool", "update", id=number, description="4 here")
    assert outcome_counts(bring(second_store.do, exported(do))) == (0, 1, 0)
    versions = second_store.do("memory_tool", "history", id=number)["versions"]
    assert [(one["versionNum"], one["description"]) for one in versions][:2] == [(5, "4 here"), (4, "4 second_store")]


def test_entries_of_one_name_in_a_document_stay_separate(do: Do, kernel: Kernel) -> None:
    """The original allowed two entries of one name in global scope, and two projects of one name."""
    twins = [{"id": f"t{number}", "name": "t", "currentVersion": {"description": str(number)}} for number in (1, 2)]
    projects = [{"id": f"p{number}", "name": "P"} for number in (1, 2)]
    document = {"entries": {"tools": twins}, "scopes": {"projects": projects}}

    assert outcome_counts(bring(do, document)) == (2, 0, 0)
    assert outcome_counts(bring(do, document)) == (0, 0, 2)

    found = exported(do)
    assert [(item["id"], item["currentVersion"]["description"]) for item in found["entries"]["tools"]] == [
        ("t1", "1"),
        ("t2", "2"),
    ]
    assert [project["id"] for project in found["scopes"]["projects"]] == ["p1", "p2"]
    assert sound(kernel)
    assert outcome_counts(bring(do, {"entries": {"tools": [{"name": "t"}, {"name": "t"}]}})) == (0, 0, 2)


def test_a_duplicate_name_is_reactivated_beside_the_other(do: Do, kernel: Kernel) -> None:
    first, second = ({"id": number, "name": "t", "isActive": True} for number in ("t1", "t2"))
    bring(do, {"entries": {"tools": [first]}})
    do("memory_tool", "deactivate", id="t1")
    bring(do, {"entries": {"tools": [second]}})

    assert outcome_counts(bring(do, {"entries": {"tools": [first, second]}})) == (0, 1, 1)

    assert [item["isActive"] for item in exported(do)["entries"]["tools"]] == [True, True]
    assert sound(kernel)


def test_existing_scopes_are_not_changed(do: Do, second_store: Store, scope_ids: ScopeIds) -> None:
    add(do, "tool", "t", ("project", scope_ids.project))
    bring(second_store.do, exported(do))
    second_store.do("memory_project", "update", id=scope_ids.project, name="renamed")

    assert outcome_counts(bring(second_store.do, exported(do))) == (0, 0, 1)

    assert second_store.do("memory_project", "get", id=scope_ids.project)["project"]["name"] == "renamed"


def test_a_project_whose_name_is_taken_is_reported_with_a_suggestion(do: Do, second_store: Store) -> None:
    project = do("memory_project", "create", name="Shop")["project"]["id"]
    taken = second_store.do("memory_project", "create", name="shop")["project"]["id"]
    add(do, "tool", "t", ("project", project))

    answer = bring(second_store.do, exported(do))

    assert (answer["success"], answer["created"]) == (False, 0)
    hint = f'map "project:{project}" to project {taken} with scopeMapping'
    ghost = f'Project not found: {project}. Suggestion: create it, or map "project:{project}" with scopeMapping'
    assert answer["errors"] == [
        {"entry": "project Shop", "error": f"Project already exists: Shop. Suggestion: {hint}"},
        {"entry": "t", "error": ghost},
    ]
    mapping = {f"project:{project}": {"type": "project", "id": taken}}
    assert outcome_counts(bring(second_store.do, exported(do), scopeMapping=mapping)) == (1, 0, 0)


BAD: list[tuple[str, Any, str, str]] = [
    ("tools", 7, "tools[0]", "Validation error: entry - expected object, got integer"),
    ("tools", {}, "tools[0]", "Tool name is required"),
    ("tools", {"title": "x"}, "tools[0]", "Tool name is required"),
    ("guidelines", {"name": " ", "content": "c"}, "guidelines[0]", "Guideline name is required"),
    ("guidelines", {"name": "g"}, "g", "Guideline content is required"),
    ("guidelines", {"name": "g", "currentVersion": {"content": ""}}, "g", "Guideline content is required"),
    ("knowledge", {"name": "k", "content": "c"}, "knowledge[0]", "Knowledge title is required"),
    ("knowledge", {"title": "k"}, "k", "Knowledge content is required"),
    ("tools", {"name": "t", "scopeType": "galaxy"}, "t", "Validation error: scopeType - galaxy is not one of global"),
    ("tools", {"name": "t", "scopeType": "org"}, "t", "scopeId is required for non-global scope"),
    ("tools", {"name": "t", "scopeType": "org", "scopeId": "x"}, "t", "Organization not found: x. Suggestion: create"),
    ("tools", {"name": "t", "id": ""}, "t", "Validation error: id - expected string of length >= 1"),
    ("tools", {"name": "t", "createdAt": "soon"}, "t", "Validation error: createdAt - is not an ISO 8601 time"),
    ("tools", {"name": "t", "isActive": "no"}, "t", "Validation error: isActive - expected bool"),
    ("tools", {"name": "t\0"}, "t\0", "Validation error: name - must not hold NUL characters"),
    ("tools", {"name": "t", "tags": ["a\0"]}, "t", "Validation error: tags - must not hold NUL characters"),
    ("tools", {"name": "t", "versions": [{"description": "\0"}]}, "t", "Validation error: versions - must not hold"),
    ("tools", {"name": "t", "tags": [""]}, "t", "Validation error: tags[0] - expected string of length >= 1"),
    ("tools", {"name": "t", "relations": [{}]}, "t", "Validation error: relations[0] - object missing required fie"),
    ("tools", {"name": "t", "currentVersion": {"description": 7}}, "t", "Validation error: currentVersion.description"),
    ("tools", {"name": "t", "versions": [{"versionNum": 0}]}, "t", "Validation error: versions[0].versionNum - ex"),
    (
        "tools",
        {"name": "t", "versions": [{"id": "a", "versionNum": 1}, {"id": "b", "versionNum": 1}]},
        "t",
        "Validation error: versions - two have the same versionNum",
    ),
    ("knowledge", {"title": "k", "content": "c", "confidence": 1e300}, "k", "Validation error: confidence - expected"),
    ("guidelines", {"name": "g", "content": "c", "priority": 2**40}, "g", "Validation error: priority - expected int"),
    ("tools", {"name": "t", "description": "x" * 1_048_577}, "t", "Validation error: description - expected string of"),
]


@pytest.mark.parametrize(("many", "item", "entry", "error"), BAD, ids=lambda value: ascii(value)[:40])
def test_an_invalid_entry_is_reported_and_the_others_are_imported(
    do: Do, many: str, item: Any, entry: str, error: str
) -> None:
    good = {
        "tools": {"name": "good"},
        "guidelines": {"name": "good", "content": "c"},
        "knowledge": {"title": "good", "content": "c"},
    }[many]

    answer = bring(do, {"entries": {many: [item, good]}})

    assert (answer["success"], answer["created"]) == (True, 1)
    (left,) = answer["errors"]
    assert left["entry"] == entry
    assert left["error"].startswith(error)
    assert names(exported(do)) == ["good"]


def test_unknown_relation_types_are_kept_and_unknown_target_types_left_out(do: Do) -> None:
    links = [
        {"targetType": "galaxy", "targetId": "x", "relationType": "depends_on"},
        {"targetType": "tool", "targetId": "b", "relationType": "supersedes"},
    ]
    document = {"entries": {"tools": [{"id": "a", "name": "a", "relations": links}, {"id": "b", "name": "b"}]}}

    answer = bring(do, document)

    unknown = "relations.targetType - galaxy is not one of tool, guideline, knowledge, project"
    assert answer["errors"] == [{"entry": "a", "error": f"Relation depends_on left out: {unknown}"}]
    (link,) = do("memory_relation", "list")["relations"]
    assert (answer["created"], link["targetId"], link["relationType"]) == (2, "b", "supersedes")


@pytest.mark.parametrize(("strategy", "tags"), [("skip", []), ("error", []), ("update", ["x"]), ("replace", ["x"])])
def test_an_existing_project_keeps_its_tags_under_skip_and_error(
    do: Do, scope_ids: ScopeIds, strategy: str, tags: list[str]
) -> None:
    link = {"targetType": "project", "targetId": scope_ids.project, "relationType": "related_to"}
    known = {"id": scope_ids.project, "name": "Project", "orgId": scope_ids.org, "tags": ["x"], "relations": [link]}
    made = {"id": "fresh", "name": "Fresh", "tags": ["x"]}

    bring(do, {"entries": {}, "scopes": {"projects": [known, made]}}, conflictStrategy=strategy)

    for project, borne in ((scope_ids.project, tags), ("fresh", ["x"])):
        found = do("memory_tag", "for_entry", entryType="project", entryId=project)["tags"]
        assert [tag["name"] for tag in found] == borne
    assert len(do("memory_relation", "list")["relations"]) == len(tags)


def test_an_empty_author_is_kept(do: Do, second_store: Store) -> None:
    add(do, "tool", "t", createdBy="")
    document = exported(do)

    bring(second_store.do, document, importedBy="importer")

    assert exported(second_store.do) == document
    assert document["entries"]["tools"][0]["createdBy"] == ""


def test_problems_outside_the_entries_are_reported(do: Do) -> None:
    deep: Any = "x"
    for _ in range(70):
        deep = [deep]
    link = {"targetType": "tool", "targetId": "ghost", "relationType": "depends_on"}
    document = {
        "entries": {"tools": [{"name": "deep", "parameters": {"a": deep}}, {"name": "t", "relations": [link]}]},
        "scopes": {
            "organizations": [{"id": "o"}],
            "projects": [{"id": "p", "name": "P", "orgId": "none"}],
            "sessions": [{"id": "s", "name": "S", "projectId": "none"}, {"id": "x", "startedAt": "soon"}],
        },
        "tags": [{"category": "x"}, {"name": "fine", "createdAt": "soon"}],
    }

    assert bring(do, document)["errors"] == [
        {"entry": "deep", "error": "Validation error: parameters - must not be nested deeper than 64 levels"},
        {"entry": "organizations[0]", "error": "Validation error: entry - object missing required field name"},
        {"entry": "sessions[1]", "error": "Validation error: startedAt - is not an ISO 8601 time"},
        {"entry": "project P", "error": "Organization not found: none"},
        {"entry": "session S", "error": "Project not found: none"},
        {"entry": "tags[0]", "error": "Validation error: entry - object missing required field name"},
        {"entry": "tags[1]", "error": "Validation error: createdAt - is not an ISO 8601 time"},
        {"entry": "t", "error": "Relation depends_on left out: Tool not found: ghost"},
    ]


def test_an_export_of_the_original_is_read(do: Do) -> None:
    """Its JSON has the entry alone, with times in two forms; its YAML has no versions at all."""
    theirs = {
        "version": "1.0",
        "exportedAt": "2025-01-01T00:00:00.000Z",
        "metadata": {"types": ["tools"]},
        "entries": {
            "tools": [
                {
                    "id": "6f1c",
                    "scopeType": "global",
                    "scopeId": None,
                    "name": "t",
                    "category": "cli",
                    "isActive": True,
                    "createdAt": "2024-12-10 10:00:00",
                    "createdBy": None,
                    "currentVersion": {
                        "id": "77aa",
                        "toolId": "6f1c",
                        "versionNum": 3,
                        "description": "d",
                        "parameters": None,
                        "examples": None,
                        "constraints": None,
                        "createdAt": "2024-12-11T10:00:00.000Z",
                        "createdBy": "ada",
                        "changeReason": None,
                        "conflictFlag": False,
                    },
                    "tags": ["python"],
                    "relations": [],
                }
            ],
        },
    }
    shown = (
        '# Agent Memory Export\nversion: "1.0"\nexportedAt: "2025-01-01T00:00:00.000Z"\nmetadata:\n'
        "  types: [guidelines]\nentries:\n  guidelines:\n    - id: abc\n      name: rule\n      scopeType: global\n"
        "      scopeId: null\n      priority: 90\n      category: style\n"
        '      content: "one\\ntwo"\n      tags: [a, b]\n'
    )

    assert outcome_counts(bring(do, theirs)) == (1, 0, 0)
    assert outcome_counts(bring(do, shown, format="yaml")) == (1, 0, 0)

    found = exported(do)
    (item,) = found["entries"]["tools"]
    assert (item["id"], item["createdAt"], item["versions"]) == (
        "6f1c",
        "2024-12-10T10:00:00.000Z",
        [theirs["entries"]["tools"][0]["currentVersion"]],
    )
    (rule,) = found["entries"]["guidelines"]
    assert (rule["id"], rule["priority"], rule["currentVersion"]["content"]) == ("abc", 90, "one\ntwo")
    assert rule["tags"] == ["a", "b"]


NUMBER = st.floats(allow_nan=False, allow_infinity=False)
DATA = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**63), 2**64 - 1), NUMBER, TEXT),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXT, inner, max_size=3)),
    max_leaves=8,
)
ENTRY = st.fixed_dictionaries(
    {
        "name": NAME,
        "description": TEXT,
        "parameters": st.dictionaries(TEXT, DATA, max_size=3),
        "examples": st.lists(DATA, max_size=3),
    },
)


@pytest.mark.slow
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(ENTRY, st.lists(NAME, max_size=3)),
        max_size=4,
        unique_by=lambda pair: normal_name(pair[0]["name"]),  # pyrefly: ignore[bad-argument-type]
    )
)
def test_any_entries_survive_a_round_trip_in_json_and_yaml(call: Call, second_store: Store, entries: Any) -> None:
    def here(tool: str, action: str, **more: Any) -> Any:
        return json.loads(call(tool, action=action, **more).body)

    def there(tool: str, action: str, **more: Any) -> Any:
        return json.loads(second_store.call(tool, action=action, **more).body)

    for store in (here, there):
        assert store("memory_init", "reset", confirm=True)["success"]
    for entry, tags in entries:
        number = here("memory_tool", "add", scopeType="global", **entry)["tool"]["id"]
        for tag in tags:
            assert here("memory_tag", "attach", entryType="tool", entryId=number, tagName=tag)["success"]
    document = exported(here)
    for shape in ("json", "yaml"):
        content = here("memory_export", "export", format=shape, includeVersions=True)["content"]
        outcome_counts(bring(there, content, format=shape))
        assert exported(there) == document
        there("memory_init", "reset", confirm=True)


def many(count: int) -> dict[str, Any]:
    """A document of hostile entries of all kinds, each linked to the one before."""
    entries: dict[str, list[dict[str, Any]]] = {"tools": [], "guidelines": [], "knowledge": []}
    kinds = [("tools", "tool"), ("guidelines", "guideline"), ("knowledge", "knowledge")]
    links: list[dict[str, str]] = []
    for number in range(count):
        plural, kind = kinds[number % 3]
        text = "".join(HOSTILE[(number * step) % len(HOSTILE)] for step in (1, 5, 7))
        answer = {"description": text, "parameters": {text: [text]}} if kind == "tool" else {"content": text}
        item = {
            "id": f"{kind}_{number}",
            "title" if kind == "knowledge" else "name": f"{number} {text}",
            "scopeType": "project" if number % 2 else "global",
            "scopeId": "p" if number % 2 else None,
            "isActive": number % 10 != 9,
            "deactivatedAt": "2026-01-01T00:00:00Z" if number % 10 == 9 else None,
            "createdAt": "2025-01-01T00:00:00Z",
            "tags": [HOSTILE[number % len(HOSTILE)].strip() or "x"],
            "versions": [{"versionNum": 1, **answer}, {"versionNum": 2, **answer, "changeReason": text}],
            "relations": links,
        }
        links = [{"targetType": kind, "targetId": item["id"], "relationType": "related_to"}]  # pyrefly: ignore[bad-assignment]
        entries[plural].append(item)
    return {"entries": entries, "scopes": {"projects": [{"id": "p", "name": "P: # x"}]}}


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["json", "yaml"])
def test_thousands_of_hostile_entries_survive_a_round_trip_byte_for_byte(
    tmp_path: Any, caller: Any, clock: Clock, shape: str
) -> None:
    whole = {"action": "export", "includeVersions": True, "includeInactive": True, "format": shape}
    contents: list[str] = []
    given: dict[str, Any] = {"content": json.dumps(many(1_500)), "format": "json"}
    for name in ("here", "there"):
        kernel = open_kernel(Config(data=tmp_path / name, model=None))
        call = caller(kernel.dispatch)
        answer = json.loads(call("memory_import", action="import", **given).body)
        assert outcome_counts(answer) == (1_500, 0, 0)
        contents.append(json.loads(call("memory_export", **whole).body)["content"])
        given = {"content": contents[-1], "format": shape}
        kernel.store.close()
    assert contents[0] == contents[1]
    assert len(contents[0]) > 1_500_000


def test_imported_by_fills_missing_authors(do: Do) -> None:
    document = {"entries": {"tools": [{"name": "a"}, {"name": "b", "createdBy": "ada", "versions": [{}, {}]}]}}

    bring(do, document, importedBy="bob")

    found = exported(do)["entries"]["tools"]
    assert [(item["createdBy"], [one["createdBy"] for one in item["versions"]]) for item in found] == [
        ("bob", ["bob"]),
        ("ada", ["bob", "bob"]),
    ]
    assert [one["versionNum"] for one in found[1]["versions"]] == [1, 2]


def test_imported_entries_shadow_like_added_ones(do: Do, second_store: Store, scope_ids: ScopeIds) -> None:
    where = ("project", scope_ids.project)
    add(do, "tool", "t", description="global")
    near = add(do, "tool", "t", where, description="near")

    bring(second_store.do, exported(do))

    for store in (do, second_store.do):
        seen = store("memory_query", "context", scopeType=where[0], scopeId=where[1])["tools"]
        assert [item["id"] for item in seen] == [near]
