"""An import moves scopes that the document has, counts its writes, and can be tried without writing."""

import json
from typing import Any

import pytest

from kernel.server.app import Kernel
from tests.conftest import Call, everything
from tests.support.handlers_scopes_import_merge import bring, outcome_counts, tool
from tests.unit.handlers.scopes.conftest import Add, Do, ScopeIds, exported, refused, relate, result_of, tag


def counts(created: int = 0, updated: int = 0, skipped: int = 0) -> dict[str, int]:
    return {"created": created, "updated": updated, "skipped": skipped}


def other_project(do: Do) -> str:
    return do("memory_project", "create", name="Other")["project"]["id"]


@pytest.mark.parametrize("key", ["proj:{project}", "project:{other}", "{project}", "org:{project}", "project:", "x"])
def test_a_mapping_key_that_is_no_scope_of_the_document_is_refused(
    do: Do, add: Add, unchanged: Call, scope_ids: ScopeIds, key: str
) -> None:
    add("guideline", "g", scopeType="project", scopeId=scope_ids.project)
    document = exported(do, scopeType="project", scopeId=scope_ids.project)
    document["entries"]["guidelines"][0]["currentVersion"]["content"] = "edited"
    other = other_project(do)
    key = key.format(project=scope_ids.project, other=other)
    reply = unchanged(
        "memory_import",
        action="import",
        content=json.dumps(document),
        scopeMapping={key: {"type": "project", "id": other}},
    )
    shown = f"org:{scope_ids.org}, project:{scope_ids.project}"
    hint = f"write it as type:id; the document has {shown}"
    assert refused(reply) == (
        "invalid",
        "E1000",
        f"Validation error: scopeMapping.{key} - is no scope of the document. Suggestion: {hint}",
        {"field": f"scopeMapping.{key}", "suggestion": hint},
    )


def test_a_relation_to_a_mapped_project_goes_to_its_target(do: Do, add: Add, scope_ids: ScopeIds) -> None:
    rule = add("guideline", "g", scopeType="project", scopeId=scope_ids.project)
    relate(do, ("guideline", rule), ("project", scope_ids.project), "applies_to")
    document = exported(do, scopeType="project", scopeId=scope_ids.project)
    other = other_project(do)
    mapping = {f"project:{scope_ids.project}": {"type": "project", "id": other}}
    assert outcome_counts(bring(do, document, scopeMapping=mapping)) == (1, 0, 0)

    (copy,) = do("memory_guideline", "list", scopeType="project", scopeId=other)["guidelines"]
    (link,) = do("memory_relation", "list", sourceId=copy["id"])["relations"]
    assert (link["targetType"], link["targetId"], link["relationType"]) == ("project", other, "applies_to")
    related = {"type": "project", "id": other}
    found = do("memory_query", "search", scope={"type": "project", "id": other}, relatedTo=related)["results"]
    assert [one["id"] for one in found] == [copy["id"]]


def test_updated_counts_entries_that_changed_and_skipped_the_others(do: Do, add: Add) -> None:
    for name in ("same", "edited", "tagged"):
        add("tool", name, "text")
    document = exported(do, includeVersions=False)
    document["entries"]["tools"][1]["currentVersion"]["description"] = "other text"
    document["entries"]["tools"][2]["tags"] = ["python"]

    assert outcome_counts(bring(do, document)) == (0, 2, 1)
    assert outcome_counts(bring(do, document)) == (0, 0, 3)


def test_an_import_that_no_entry_fits_fails_and_writes_nothing(unchanged: Call) -> None:
    document = {
        "entries": {"tools": [{"name": ""}], "guidelines": [{"name": "g"}]},
        "scopes": {"organizations": [{"id": "o", "name": "O"}]},
        "tags": [{"name": "fresh"}],
    }
    answer = result_of(unchanged("memory_import", action="import", content=json.dumps(document)))
    assert answer == {
        "success": False,
        **counts(),
        "errors": [
            {"entry": "tools[0]", "error": "Validation error: name - expected string of length >= 1"},
            {"entry": "g", "error": "Guideline content is required"},
        ],
        "details": dict.fromkeys(("tools", "guidelines", "knowledge"), counts()),
    }


def test_a_dry_run_reports_what_an_import_does_and_writes_nothing(
    do: Do, add: Add, kernel: Kernel, unchanged: Call
) -> None:
    changed = add("tool", "changed", "before")
    tag(do, "tool", changed, "python")
    add("tool", "same", "text")
    tools: list[dict[str, Any]] = [
        {"name": "changed", "description": "after"},
        {"name": "same", "description": "text"},
        {"name": "new", "tags": ["fresh"]},
        {"name": "lost", "scopeType": "project", "scopeId": "ghost"},
    ]
    document = {"entries": {"tools": tools}, "scopes": {"organizations": [{"id": "o", "name": "O"}]}}
    tried = result_of(unchanged("memory_import", action="import", content=json.dumps(document), dryRun=True))
    hint = 'create it, or map "project:ghost" with scopeMapping'
    assert tried == {
        "success": True,
        **counts(1, 1, 1),
        "errors": [{"entry": "lost", "error": f"Project not found: ghost. Suggestion: {hint}"}],
        "details": {"tools": counts(1, 1, 1), "guidelines": counts(), "knowledge": counts()},
        "dryRun": True,
    }
    before = everything(kernel)
    done = bring(do, document)
    assert done == {key: value for key, value in tried.items() if key != "dryRun"}
    assert everything(kernel) != before


def test_a_dry_run_of_a_strict_import_is_refused_like_the_import(do: Do, add: Add, unchanged: Call) -> None:
    add("tool", "t")
    given = {"content": json.dumps(tool("t")), "conflictStrategy": "error"}
    tried, done = (unchanged("memory_import", action="import", **given, dryRun=dry) for dry in (True, False))
    assert refused(tried) == refused(done)
    assert refused(tried)[1] == "E2001"


def test_names_and_tags_of_an_import_have_the_normal_form_of_those_of_calls(do: Do, add: Add) -> None:
    known = add("tool", "caf\u00e9", "before")
    tag(do, "tool", known, "python")
    tags = [" Python", "PYTHON ", "Cafe\u0301 "]
    document: dict[str, Any] = {
        "entries": {
            "tools": [{"name": " cafe\u0301", "description": "after", "tags": tags}, {"name": "na\u00adming\n"}],
            "knowledge": [{"title": "a\ufeff", "content": "c", "tags": ["CAFE\u0301"]}],
        },
        "scopes": {"organizations": [{"id": "o", "name": " Org"}], "projects": [{"id": "p", "name": "P "}]},
        "tags": [{"name": "caf\u00e9 ", "category": "domain"}],
    }

    assert outcome_counts(bring(do, document)) == (2, 1, 0)
    assert [one["name"] for one in do("memory_tool", "list")["tools"]] == ["caf\u00e9", "naming"]
    (fact,) = do("memory_knowledge", "list")["knowledge"]
    assert fact["title"] == "a"
    assert [one["name"] for one in do("memory_tag", "list", limit=100)["tags"]][26:] == ["caf\u00e9"]
    for kind, number, expected in (("tool", known, ["python", "caf\u00e9"]), ("knowledge", fact["id"], ["caf\u00e9"])):
        found = do("memory_tag", "for_entry", entryType=kind, entryId=number)["tags"]
        assert [one["name"] for one in found] == expected
    assert do("memory_org", "list")["organizations"][0]["name"] == "Org"
    assert do("memory_project", "get", name="p")["project"]["name"] == "P"


@pytest.mark.parametrize("strategy", ["update", "replace"])
def test_tags_and_relations_of_a_mapped_project_go_to_its_target(
    do: Do, add: Add, scope_ids: ScopeIds, strategy: str
) -> None:
    rule = add("guideline", "g", scopeType="project", scopeId=scope_ids.project)
    relate(do, ("project", scope_ids.project), ("guideline", rule), "depends_on")
    tag(do, "project", scope_ids.project, "rust")
    document = exported(do, scopeType="project", scopeId=scope_ids.project)
    other = other_project(do)
    mapping = {f"project:{scope_ids.project}": {"type": "project", "id": other}}
    bring(do, document, scopeMapping=mapping, conflictStrategy=strategy)

    (copy,) = do("memory_guideline", "list", scopeType="project", scopeId=other)["guidelines"]
    (link,) = do("memory_relation", "list", sourceType="project", sourceId=other)["relations"]
    assert (link["targetId"], link["relationType"]) == (copy["id"], "depends_on")
    (label,) = do("memory_tag", "for_entry", entryType="project", entryId=other)["tags"]
    assert label["name"] == "rust"
    (before,) = do("memory_relation", "list", sourceId=scope_ids.project)["relations"]
    assert before["targetId"] == rule


@pytest.mark.parametrize("strategy", ["skip", "error"])
def test_an_existing_project_that_another_is_mapped_to_keeps_its_tags_under_skip_and_error(
    do: Do, add: Add, scope_ids: ScopeIds, strategy: str
) -> None:
    add("guideline", "g", scopeType="project", scopeId=scope_ids.project)
    tag(do, "project", scope_ids.project, "rust")
    document = exported(do, scopeType="project", scopeId=scope_ids.project)
    other = other_project(do)
    mapping = {f"project:{scope_ids.project}": {"type": "project", "id": other}}
    bring(do, document, scopeMapping=mapping, conflictStrategy=strategy)

    assert do("memory_tag", "for_entry", entryType="project", entryId=other)["tags"] == []


@pytest.mark.parametrize("edited", ["currentVersion", "versions"])
def test_a_version_that_the_document_holds_twice_and_differently_is_reported(
    do: Do, add: Add, unchanged: Call, edited: str
) -> None:
    add("guideline", "g", "before")
    document = exported(do)
    (entry,) = document["entries"]["guidelines"]
    for version in [entry["currentVersion"]] if edited == "currentVersion" else entry["versions"]:
        version["content"] = "after"
    add("tool", "t")  # a write after the export, whose audit row is written after its answer
    answer = result_of(unchanged("memory_import", action="import", content=json.dumps(document)))
    assert (answer["success"], answer["errors"]) == (
        False,
        [
            {
                "entry": "g",
                "error": "Validation error: currentVersion.content - differs from this version in versions",
            }
        ],
    )

    entry["currentVersion"]["content"] = entry["versions"][0]["content"] = "after"
    assert outcome_counts(bring(do, document)) == (0, 1, 0)
    (found,) = do("memory_guideline", "list")["guidelines"]
    assert found["currentVersion"]["content"] == "after"


def test_blank_tags_of_an_import_are_refused_like_those_of_calls(do: Do) -> None:
    document = {"entries": {"tools": [{"name": "t"}, {"name": "u", "tags": ["\u200b "]}]}, "tags": [{"name": " "}]}
    answer = bring(do, document)
    assert (answer["created"], answer["errors"]) == (
        1,
        [
            {"entry": "u", "error": "Validation error: tags - must not be blank"},
            {"entry": "tags[0]", "error": "Validation error: name - must not be blank"},
        ],
    )


def test_a_version_takes_from_current_version_what_versions_leave_out(do: Do) -> None:
    entry = {
        "name": "g",
        "currentVersion": {"versionNum": 2, "content": "now", "rationale": "why"},
        "versions": [{"versionNum": 2, "content": "now"}, {"versionNum": 1, "content": "then"}],
    }
    assert outcome_counts(bring(do, {"entries": {"guidelines": [entry]}})) == (1, 0, 0)

    (found,) = do("memory_guideline", "list")["guidelines"]
    versions = do("memory_guideline", "history", id=found["id"])["versions"]
    assert [(one["content"], one["rationale"]) for one in versions] == [("now", "why"), ("then", None)]
