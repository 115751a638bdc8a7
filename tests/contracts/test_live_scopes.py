"""Every call in the contract of scopes returns all the keys that the contract shows."""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from handlers import scopes
from tests.conftest import Call
from tests.contracts.seed_texts import HERE, fences, keys, sections

TEXT = (HERE / "scopes.md").read_text(encoding="utf-8")
LOCK = {"action": "checkout", "file_path": "/path/to/file.ts", "agent_id": "claude-code-1"}
# Rows that must be there for a call to be answered as the document shows it, where no earlier call of it is enough.
BEFORE = {
    ("memory_file_lock", "status"): ("memory_file_lock", LOCK),
    ("memory_file_lock", "force_unlock"): ("memory_file_lock", LOCK),
}
# Which answer gives the ids that the document calls by these names.
NAMES = {
    "organization": ("org_abc123",),
    "project": ("proj_xyz789", "proj_abc", "proj_123", "new-proj-id"),
    "session": ("sess_def456", "sess_abc123"),
    "tool": ("tool_abc123",),
    "guideline": ("gl_abc123", "gl_xyz789", "gl_xyz"),
    "knowledge": ("kn_abc123",),
    "relation": ("rel_abc123",),
    "conflict": ("conf_abc123",),
}


class Example(NamedTuple):
    """One call of the document, and its documented result, if any."""

    tool: str
    action: str
    given: str
    answer: str


def examples() -> Iterator[Example]:
    """Every example of the document, in its order."""
    built = {tool.name for tool in scopes.DIALECT.tools}
    for tool, body in sections(TEXT, r"## (memory_\w+)"):
        for action, part in sections(body, r"### Action: (\w+)") if tool in built else ():
            given, _, answered = part.partition("**Response:**")
            answers = fences(answered)
            for call in fences(given):
                yield Example(tool, action, call, answers[0] if answers else "")


def real(text: str, ids: dict[str, str]) -> dict[str, Any]:
    """The arguments of a call with the ids of this store in place of those of the document."""
    for name in sorted(ids, key=len, reverse=True):
        text = text.replace(f'"{name}"', f'"{ids[name]}"')
    return json.loads(text)


def missing_keys(shown: Any, answer: Any, path: str = "") -> Iterator[str]:
    """The paths that a documented result has and ours lacks, or has with another type."""
    if isinstance(shown, dict) and isinstance(answer, dict):
        for name, value in shown.items():
            yield from missing_keys(value, answer[name], f"{path}.{name}") if name in answer else [f"{path}.{name}"]
    elif isinstance(shown, list) and isinstance(answer, list):
        for one in shown if answer else []:
            yield from missing_keys(one, answer[0], f"{path}[]")
    elif isinstance(shown, bool) != isinstance(answer, bool) or type(shown) is not type(answer):
        yield f"{path}: {type(shown).__name__}, not {type(answer).__name__}"


def store_ids(answer: dict[str, Any], ids: dict[str, str]) -> None:
    for key, value in answer.items():
        rows = value if isinstance(value, list) else [value]
        name = key if key in NAMES else key.removesuffix("s")
        if name in NAMES and rows and isinstance(rows[0], dict) and "id" in rows[0]:
            for word in NAMES[name]:
                ids.setdefault(word, rows[0]["id"])


def test_every_documented_call_returns_the_documented_keys(call: Call) -> None:
    ids: dict[str, str] = {}
    missing: dict[str, list[str]] = {}
    made: dict[str, str] = {}
    for example in examples():
        if example.action == "create":
            made[example.tool] = example.given
        elif example.action == "delete":  # the document shows two ways to delete the same
            call(example.tool, **real(made[example.tool], ids))
        if before := BEFORE.get((example.tool, example.action)):
            assert call(before[0], **before[1]).fault is None
        reply = call(example.tool, **real(example.given, ids))
        answer = json.loads(reply.body)
        assert reply.fault is None, (example, answer)
        store_ids(answer, ids)
        if not example.answer:
            continue
        try:
            found = [*missing_keys(json.loads(example.answer), answer)]
        except json.JSONDecodeError:  # a sketch with dots
            found = [name for name in keys(example.answer) if name not in answer]
        if found:
            missing[f"{example.tool} {example.action}"] = found
    assert missing == {}


def test_every_error_has_the_documented_shape(call: Call) -> None:
    shown = json.loads(fences(next(body for _, body in sections(TEXT, r"## (Error Handling)")))[0])
    for example in examples():
        reply = call(example.tool, action="no such action")
        assert reply.fault is not None
        assert [*missing_keys(shown, json.loads(reply.body))] == []


def test_the_comparison_reports_missing_keys() -> None:
    shown = {"a": 1, "b": [{"c": "x", "d": True}], "e": {"f": 1.5}}
    assert [*missing_keys(shown, {"a": 2, "b": [{"c": "y", "d": False}], "e": {"f": 0.5}, "g": None})] == []
    assert [*missing_keys(shown, {"a": "2", "b": [{"d": 1}]})] == [
        ".a: int, not str",
        ".b[].c",
        ".b[].d: bool, not int",
        ".e",
    ]
    assert [*missing_keys(shown, {**shown, "b": []})] == []


@pytest.mark.parametrize("tool", [tool.name for tool in scopes.DIALECT.tools])
def test_every_documented_action_has_an_example(tool: str) -> None:
    (body,) = (body for name, body in sections(TEXT, r"## (memory_\w+)") if name == tool)
    named = {action for action, _ in sections(body, r"### Action: (\w+)")}
    assert named == {example.action for example in examples() if example.tool == tool}
