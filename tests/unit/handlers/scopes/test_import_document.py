"""An import moves scopes that the document has, counts what it wrote, and can be tried without writing."""

import json
from typing import Any

import pytest

from kernel.app import Kernel
from tests.conftest import Call, everything
from tests.unit.handlers.scopes.conftest import Add, Do, ScopeIds, exported, refused, relate, result_of, tag
from tests.unit.handlers.scopes.test_import_merge import bring, outcome_counts, tool


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
            {"entry": "tools[0]", "error": "Validation error: name - expected str of length >= 1"},
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
