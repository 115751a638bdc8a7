"""A page shows every entry under its own heading, and no text can add another."""

import json
import re
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from handlers.scopes.field_types import normal_name
from tests.conftest import Call, Clock
from tests.support.handlers_scopes_export import add
from tests.support.handlers_scopes_import_merge import HOSTILE, NAME, TEXT
from tests.unit.handlers.scopes.conftest import Do, ScopeIds

NOW = "2026-01-02T03:04:05.678Z"


def page(do: Do, **given: Any) -> str:
    """The page of an export."""
    return do("memory_export", "export", format="markdown", **given)["content"]


def test_a_page_shows_every_property(do: Do, clock: Clock, scope_ids: ScopeIds) -> None:
    where = ("project", scope_ids.project)
    rule = add(
        do,
        "guideline",
        "no_force *push*",
        where,
        priority=80,
        category="git",
        rationale="It hurts",
        examples={"bad": ["git push -f"]},
    )
    fact = add(
        do, "knowledge", "limits", where, confidence=0.5, validUntil="2027-01-01", source="docs", category="fact"
    )
    do("memory_knowledge", "update", id=fact, content="one\n\ntwo", changeReason="more", updatedBy="ada")
    do("memory_knowledge", "deactivate", id=fact)
    do("memory_tag", "attach", entryType="guideline", entryId=rule, tagName="a `b`")
    do("memory_tag", "attach", entryType="guideline", entryId=rule, tagName="git")
    do(
        "memory_relation",
        "create",
        sourceType="guideline",
        sourceId=rule,
        targetType="knowledge",
        targetId=fact,
        relationType="related_to",
    )

    shown = page(do, includeInactive=True, includeVersions=True, scopeType="project", scopeId=scope_ids.project)

    assert (
        shown
        == f"""\
# Agent Memory Export

**Exported:** {NOW}
**Entries:** 2
**Scope:** project / {scope_ids.project}

## Guidelines (1)

### no_force \\*push\\*

- **ID:** `{rule}`
- **Scope:** project / {scope_ids.project}
- **Priority:** 80
- **Category:** git
- **Tags:** `` a `b` ``, `git`
- **Relation:** related_to knowledge `{fact}`

**Content:**

> about no_force *push*

**Rationale:**

> It hurts

**Examples:**

```json
{{
  "bad": [
    "git push -f"
  ]
}}
```

**Versions:**

- 1, {NOW}, Initial version

## Knowledge (1)

### limits

- **ID:** `{fact}`
- **Scope:** project / {scope_ids.project}
- **Inactive since:** {NOW}
- **Category:** fact
- **Confidence:** 0.5
- **Valid until:** 2027-01-01T23:59:59.999Z

**Content:**

> one
>
> two

**Source:**

> docs

**Versions:**

- 1, {NOW}, Initial version
- 2, {NOW}, ada, more
"""
    )


def test_an_empty_page_has_no_chapters(do: Do, clock: Clock) -> None:
    assert page(do) == f"# Agent Memory Export\n\n**Exported:** {NOW}\n**Entries:** 0\n"


def skeleton(text: str) -> list[str]:
    """The lines of a page that are neither quoted nor fenced, without the text of entries."""
    kept: list[str] = []
    fence = ""
    for line in text.split("\n"):
        opened = re.match(r"`{3,}", line)
        if fence:
            fence = "" if line == fence else fence
        elif opened:
            fence = opened[0]
        elif not line.startswith(">"):
            kept.append(line)
    assert fence == ""
    return kept


def unmarked(line: str) -> str:
    """A line of plain words as it is shown, without the backslashes."""
    return re.sub(r"\\(.)", r"\1", line)


def check(do: Do, name: str, text: str) -> None:
    add(do, "tool", name, description=text, constraints=text, parameters={text: text}, createdBy=text[:1000])
    lines = skeleton(page(do, includeVersions=True))
    headings = [line for line in lines if line.startswith("#")]
    assert [line for line in headings if not line.startswith("### ")] == ["# Agent Memory Export", "## Tools (1)"]
    (title,) = [line[4:] for line in headings if line.startswith("### ")]
    assert unmarked(title) == re.sub(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+", " ", normal_name(name)).strip()
    assert not re.search(r"(?<!\\)(?:\\\\)*[*`<>\[\]#|]", title)
    allowed = r"\*\*[A-Z]\w+:\*\*( .*)?|- \*\*[A-Z]\w*( \w+)?:\*\* .+|- \d+, .*|#{1,3} .*|"
    assert [line for line in lines if not re.fullmatch(allowed, line)] == []
    quoted = [line[2:] for line in page(do).split("\n") if line.startswith(">")]
    assert quoted == (re.split(r"\r\n|\r|\n", text) if text else []) * 2


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: ascii(text)[:24])
def test_hostile_texts_cannot_change_the_structure(do: Do, text: str) -> None:
    check(do, text if text.strip() else "x", text)


@pytest.mark.slow
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(NAME.filter(lambda name: re.sub(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]", "", name).strip() != ""), TEXT)
def test_no_text_can_change_the_structure(call: Call, name: str, text: str) -> None:
    def do(tool: str, action: str, **more: Any) -> Any:
        return json.loads(call(tool, action=action, **more).body)

    do("memory_init", "reset", confirm=True)
    check(do, name, text)
