"""Calls, values and checks that several tests of import merge share."""

import json
from typing import Any

from hypothesis import strategies as st

from handlers.scopes.field_types import normal_name
from tests.unit.handlers.scopes.conftest import Do

HOSTILE = [
    "- a\n- b",
    "key: value # c",
    "# Heading\n## Tools (9)\n### t\n",
    "```\nfence\n````",
    "> quote\n\n---\n***",
    "'single' \"double\" \\ back\\slash",
    "null",
    "yes",
    "12:34:56",
    "2026-01-02",
    "|\n  block",
    "!!python/none",
    "&anchor *alias",
    "{a: [b]}",
    "%YAML 1.1",
    "--- \n...",
    "\ttab\n\ttab",
    "trailing \n  \n\n",
    " lead",
    "\r\n",
    "日本語 ünïcode e\u0301",
    "👩‍👩‍👧 \u202eright",
    "line\u2028par\u2029next\x85",
    "zero\u200bwidth\ufeff",
    "\x1b[31m\x07",
    "<script>alert(1)</script>",
    "![x](http://e/x.png)",
    "[a]: http://e",
    "<!-- -->",
    "a\\\nb",
    "| a | b |\n|---|---|",
]


def bring(do: Do, document: dict[str, Any] | str, **given: Any) -> dict[str, Any]:
    """The result of importing a document."""
    content = document if isinstance(document, str) else json.dumps(document)
    return do("memory_import", "import", content=content, **given)


def outcome_counts(answer: dict[str, Any]) -> tuple[int, int, int]:
    """The numbers of created, updated and skipped entries of an import without errors."""
    assert (answer["success"], answer["errors"]) == (True, [])
    for name in ("created", "updated", "skipped"):
        assert answer[name] == sum(counts[name] for counts in answer["details"].values())
    return answer["created"], answer["updated"], answer["skipped"]


def tool(name: str, **more: Any) -> dict[str, Any]:
    """A document with one tool."""
    return {"entries": {"tools": [{"name": name, **more}]}}


TEXT = st.one_of(st.sampled_from(HOSTILE), st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")))


NAME = TEXT.filter(lambda text: bool(normal_name(text)))
