"""Calls, values and checks that several tests of entry tools share."""

from typing import Any

import pytest

HEADING = {"tool": "name", "guideline": "name", "knowledge": "title"}
CHANGE = {"tool": {"description": "new"}, "guideline": {"content": "new"}, "knowledge": {"content": "new"}}


kinds = pytest.mark.parametrize("kind", ["tool", "guideline", "knowledge"])


def named(kind: str, name: str, **more: Any) -> dict[str, Any]:
    """Adds a small entry of a kind, in global scope by default."""
    content = {} if kind == "tool" else {"content": f"about {name}"}
    return {"scopeType": "global", HEADING[kind]: name, **content, **more}
