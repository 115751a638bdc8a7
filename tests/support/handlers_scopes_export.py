"""Calls, values and checks that several tests of export share."""

from typing import Any

from tests.unit.handlers.scopes.conftest import Do


def add(do: Do, kind: str, name: str, scope: tuple[str, str | None] = ("global", None), **more: Any) -> str:
    """The id of a new entry."""
    heading = "title" if kind == "knowledge" else "name"
    content = {} if kind == "tool" else {"content": f"about {name}"}
    where = {"scopeType": scope[0], "scopeId": scope[1]}
    return do(f"memory_{kind}", "add", **where, **{heading: name}, **content, **more)[kind]["id"]


def names(document: dict[str, Any]) -> list[str]:
    """The names of the entries of a document."""
    return [item.get("name") or item["title"] for items in document["entries"].values() for item in items]
