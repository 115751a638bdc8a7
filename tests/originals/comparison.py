"""The answers of two programs to the same call, difference by difference."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
IDENTIFYING = ("id", "name", "title", "path", "content")
NEAR = 1e-4  # scores depend on the age of a recent row
NUMBERED = re.compile(r"(?:\w+_)?id")  # ids that a database counts
BARE_TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d")


class Answer(NamedTuple):
    """Hold an answer: whether it is an error, its layout, its structured content and its text."""

    refused: bool
    layout: str
    structured: str
    body: Any


class Difference(NamedTuple):
    """One place in which two answers differ, as a path such as `tools[].name`."""

    at: str
    kind: str
    original: str
    ours: str


class Names:
    """The names under which a caller keeps ids, in both directions."""

    def __init__(self, ids: str, data: str, folder: str) -> None:
        self._ids = re.compile(ids)
        self._data = data
        self._folders = {data: "<data>", folder: "<folder>"}
        self._values: dict[str, Any] = {}

    def keep(self, paths: Mapping[str, str], body: Any) -> None:
        for name, path in paths.items():
            value = found(body, path)
            if value is not None:
                self._values[name] = value

    def filled(self, node: Any) -> Any:
        """Arguments with the values in place of `$name`; a name that was not kept stays, as an id that nothing has."""
        if isinstance(node, dict):
            return {key: self.filled(value) for key, value in node.items()}
        if isinstance(node, list):
            return [self.filled(value) for value in node]
        if isinstance(node, str):
            return self._values.get(node[1:], node) if node.startswith("$") else node.replace("<data>", self._data)
        return node

    def neutral(self, node: Any, key: str = "") -> Any:
        """An answer with names in place of ids, and placeholders for the ids without a name and for times."""
        if isinstance(node, dict):
            return {self._text(key): self.neutral(value, key) for key, value in node.items()}
        if isinstance(node, list):
            return [self.neutral(value) for value in node]
        if isinstance(node, int) and not isinstance(node, bool) and NUMBERED.fullmatch(key) and node > 0:
            return "<number>"
        if key.endswith("_time_ms") and node is not None:
            return "<milliseconds>"
        return self._text(node) if isinstance(node, str) else node

    def _text(self, text: str) -> str:
        for name, value in self._values.items():
            if isinstance(value, str):
                text = text.replace(value, f"${name}")
        for folder, name in self._folders.items():
            text = text.replace(folder, name)
        return self._ids.sub("<id>", BARE_TIME.sub("<time without zone>", TIME.sub("<time>", text)))


def found(body: Any, path: str) -> Any:
    """The value at a path such as `tags.0.id`, or at the first of several between `|` that has one; else None."""
    if "|" in path:
        return next((value for one in path.split("|") if (value := found(body, one)) is not None), None)
    for step in path.split("."):
        if isinstance(body, list) and step.isdigit() and int(step) < len(body):
            body = body[int(step)]
        elif isinstance(body, dict):
            body = body.get(step)
        else:
            return None
    return body


def decoded(texts: Sequence[str]) -> Any:
    """The one text, decoded where it is JSON; a list of several texts."""
    if len(texts) != 1:
        return list(texts)
    try:
        return json.loads(texts[0])
    except ValueError:
        return texts[0]


def layout(texts: Sequence[str]) -> str:
    """How the texts are written."""
    if len(texts) != 1:
        return f"{len(texts)} texts"
    if not isinstance(decoded(texts), (dict, list)):
        return "a text"
    compact = json.dumps(decoded(texts), ensure_ascii=False, separators=(",", ":"))
    return "JSON, indented" if "\n" in texts[0] else f"JSON, {'without' if texts[0] == compact else 'with'} blanks"


def differences(original: Answer, ours: Answer) -> Iterator[Difference]:
    """Every difference between two answers whose ids and times are placeholders already."""
    if original.refused != ours.refused:
        yield Difference("outcome", "refused" if ours.refused else "answered", short(original.body), short(ours.body))
        if not failed(original.body) or not failed(ours.body):
            return
    for at in ("structured", "layout"):
        if getattr(original, at) != getattr(ours, at):
            yield Difference(at, "value", getattr(original, at), getattr(ours, at))
    yield from compared(original.body, ours.body, "")


def failed(body: Any) -> bool:
    """Whether it says that it is an error, despite the protocol."""
    return isinstance(body, dict) and "error" in body


def compared(original: Any, ours: Any, at: str) -> Iterator[Difference]:
    if kind(original) != kind(ours):
        yield Difference(at or "body", "type", short(original), short(ours))
    elif isinstance(original, dict):
        yield from compared_objects(original, ours, at)
    elif isinstance(original, list):
        yield from compared_lists(original, ours, f"{at}[]")
    elif isinstance(original, float) and abs(original - ours) < NEAR:
        return
    elif original != ours:
        inner = [decoded([one]) for one in (original, ours) if isinstance(one, str)]
        if len(inner) == 2 and all(isinstance(one, dict) for one in inner):
            yield from compared_objects(inner[0], inner[1], f"{at}: ")
        else:
            yield Difference(at or "body", "value", short(original), short(ours))


def compared_lists(original: Sequence[Any], ours: Sequence[Any], at: str) -> Iterator[Difference]:
    """The items by position, or, where the same items are in another order, the order and the items by their names
    them."""
    if len(original) != len(ours):
        yield Difference(at, "length", short(original), short(ours))
        return
    for key in ("", *IDENTIFYING):
        theirs, mine = (
            [one if not key else one.get(key) if isinstance(one, dict) else None for one in items]
            for items in (original, ours)
        )
        known = len(set(map(str, theirs))) == len(theirs) and sorted(map(str, theirs)) == sorted(map(str, mine))
        if known and theirs != mine:
            yield Difference(at, "order", short(theirs), short(mine))
            ours = [ours[mine.index(one)] for one in theirs]
        if known:
            break
    for one, other in zip(original, ours, strict=True):
        yield from compared(one, other, at)


def compared_objects(original: Mapping[str, Any], ours: Mapping[str, Any], at: str) -> Iterator[Difference]:
    dot = f"{at}." if at and not at.endswith(": ") else at
    for key in original.keys() - ours.keys():
        yield Difference(f"{dot}{key}", "missing", short(original[key]), "")
    for key in ours.keys() - original.keys():
        yield Difference(f"{dot}{key}", "added", "", short(ours[key]))
    both = [key for key in original if key in ours]
    if both != [key for key in ours if key in original]:
        yield Difference(at or "body", "order", short(both), short([key for key in ours if key in original]))
    for key in both:
        yield from compared(original[key], ours[key], f"{dot}{key}")


def kind(value: Any) -> str:
    """The type in JSON; 1 and 1.0 are one number."""
    if isinstance(value, bool):
        return "boolean"
    return "number" if isinstance(value, (int, float)) else type(value).__name__


def short(value: Any, most: int = 300) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= most else f"{text[:most]}..."


def withheld(body: Any, key: str, beside: str) -> Any:
    """An answer without the values of one key, in the objects that have another key beside it."""
    if isinstance(body, list):
        return [withheld(one, key, beside) for one in body]
    if not isinstance(body, dict):
        return body
    hidden = {key: f"<{key}>"} if key in body and body.get(beside) else {}
    return {name: withheld(value, key, beside) for name, value in {**body, **hidden}.items()}
