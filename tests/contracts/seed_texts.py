"""The five contract documents, read into tools, parameters, actions and returned keys."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent / "seeds"


class Param(NamedTuple):
    """One parameter as its document words it; `closed` means that no value outside `values` is meant to pass."""

    name: str
    type: str = ""
    required: bool = False
    default: str = ""
    values: tuple[str, ...] = ()
    closed: bool = False
    about: str = ""


class Action(NamedTuple):
    """One action of a bundled tool."""

    name: str
    params: tuple[Param, ...]
    returns: tuple[str, ...] = ()


class Contract(NamedTuple):
    """Hold a tool; a bundled tool has actions, and its parameters are those of all its actions merged."""

    dialect: str
    name: str
    params: tuple[Param, ...]
    returns: tuple[str, ...] = ()
    actions: tuple[Action, ...] = ()


def contracts() -> dict[str, tuple[Contract, ...]]:
    """Every tool of every document, by dialect."""
    return {name: tuple(read((HERE / f"{name}.md").read_text(encoding="utf-8"))) for name, read in READERS.items()}


def read_paths(text: str) -> Iterator[Contract]:
    for name, body in sections(text, r"### \d+\. (\w+)"):
        given, returned = body.split("**Returns:**")
        params = [
            Param(found[1], required=found[2] == "required", about=found[3])
            for found in re.finditer(r"^- `(\w+)` \((\w+)\): (.+)$", given, re.MULTILINE)
        ]
        yield Contract("paths", name, tuple(params), keys(fences(returned)[0]))


def read_notes(text: str) -> Iterator[Contract]:
    for name, body in sections(text, r"## (memory_\w+)"):
        params: list[Param] = []
        for row in rows(body, "Parameter"):
            about, values, default = reading(row["Description"], "'")
            required = row["Required"] == "Yes"
            params.append(Param(bare(row["Parameter"]), "", required, default, values, bool(values), about))
        returned = body.split("**Returns:**")[1]
        yield Contract("notes", name, tuple(params), keys((fences(returned) or spans(returned))[0]))


def read_sessions(text: str) -> Iterator[Contract]:
    tools = list(sections(text, r"#{2,3} `(\w+)`"))
    names = {name for name, _ in tools}
    for name, body in tools:
        given, returned = re.split(r"^Returns.*:$", body, maxsplit=1, flags=re.MULTILINE)
        returned = re.split(r"^(?:Example|Notes):$", returned, maxsplit=1, flags=re.MULTILINE)[0]
        found = [key for span in spans(returned) for key in (keys(span) if span.startswith("{") else (span,))]
        plain = (key for key in found if re.fullmatch(r"[a-z_]+", key) and key not in names)
        yield Contract("sessions", name, tuple(bullets(given)), tuple(dict.fromkeys(plain)))


def bullets(text: str) -> Iterator[Param]:
    for found in re.finditer(
        r"^- `(\w+)` \((\w+), (\w+)(?:, default `(\w+)`)?\)(?:: (.+))?\n((?:  - .+\n)*)", text, re.MULTILINE
    ):
        name, kind, required, default, about, nested = found.groups("")
        values = tuple(re.findall(r"^  - `(\w+)`", nested, re.MULTILINE))
        stated = re.search(r"\bdefault:? `?(\w+)", about)
        default = default or (stated[1] if stated else "")
        yield Param(name, kind, required == "required", default, values, bool(values), about)


def read_brain(text: str) -> Iterator[Contract]:
    known: dict[str, Param] = {}
    for name, body in sections(text, r"### `(\w+)`"):
        params: list[Param] = []
        for row in rows(body, "Param"):
            about, values, _ = reading(dash(row["Description"]), "`")
            kind = row["Type"]
            param = Param(
                bare(row["Param"]), kind, row["Required"] == "yes", dash(row["Default"]), values, kind == "enum", about
            )
            if param.closed and not values:  # listed once, at the first tool that takes it
                param = param._replace(values=known[param.name].values)
            known.setdefault(param.name, param)
            params.append(param)
        returned = re.split(r"^\*\*(?!Returns)", body.split("**Returns**:")[-1], maxsplit=1, flags=re.MULTILINE)[0]
        shapes = fences(returned) or [span for span in spans(returned) if span.startswith("{")]
        found = dict.fromkeys(key for shape in shapes for key in keys(shape)) if "**Returns**" in body else {}
        yield Contract("brain", name, tuple(params), tuple(found))


def read_scopes(text: str) -> Iterator[Contract]:
    for name, body in sections(text, r"## (memory_\w+)"):
        actions = tuple(Action(action, *read_action(part)) for action, part in sections(body, r"### Action: (\w+)"))
        stated = re.search(r"^\*\*Actions:\*\* (.+)$", body, re.MULTILINE)
        assert [action.name for action in actions] == (spans(stated[1]) if stated else []), name
        returned = () if actions else read_action(body)[1]
        yield Contract("scopes", name, merged(actions), returned, actions)


def read_action(body: str) -> tuple[tuple[Param, ...], tuple[str, ...]]:
    """Return the parameters and results of an action, from its examples if it has no table."""
    given, _, returned = body.partition("**Response:**")
    params = {param.name: param for param in tabled(given)}
    for example in fences(given) if not params else []:
        for name, value in json.loads(example).items():
            tag = name == "action"
            params[name] = Param(name, JSON_TYPES[type(value)], tag, values=(value,) if tag else (), closed=tag)
    related = re.search(r"^\*\*Relation Types:\*\*\n((?:- .+\n)+)", given, re.MULTILINE)
    if related:
        params["relationType"] = params["relationType"]._replace(values=tuple(spans(related[1])), closed=True)
    return tuple(params.values()), keys(fences(returned)[0]) if returned else ()


def tabled(text: str) -> Iterator[Param]:
    for row in rows(text, "Name"):
        about, values, default = reading(row["Description"], "`")
        closed = bool(values) and "etc." not in about
        yield Param(bare(row["Name"]), row["Type"], row["Required"] == "Yes", default, values, closed, about)


JSON_TYPES = {str: "string", bool: "boolean", int: "number", float: "number", list: "array", dict: "object"}


def merged(actions: tuple[Action, ...]) -> tuple[Param, ...]:
    """The parameters of all actions as one set, of which only the action itself is required and none has a default."""
    if len(actions) == 1:
        return actions[0].params
    found: dict[str, list[Param]] = {}
    for param in (param for action in actions for param in action.params):
        found.setdefault(param.name, []).append(param)
    return tuple(merge(same) for same in found.values())


def merge(same: list[Param]) -> Param:
    first = max(same, key=lambda param: bool(param.about))  # a table says more than an example
    values = tuple(dict.fromkeys(value for param in same for value in param.values))
    return Param(first.name, first.type, first.name == "action", "", values, any(param.closed for param in same))


def sections(text: str, heading: str) -> Iterator[tuple[str, str]]:
    """Name and body under each heading that matches, up to the next heading of that level or above."""
    for found in re.finditer(rf"^{heading}.*$", text, re.MULTILINE):
        level = len(found[0]) - len(found[0].lstrip("#"))
        rest = text[found.end() :]
        end = re.search(rf"^#{{1,{level}}} ", rest, re.MULTILINE)
        yield found[1], rest[: end.start()] if end else rest


def rows(text: str, first: str) -> Iterator[dict[str, str]]:
    """The rows of the tables whose first column has the given heading."""
    for table in re.findall(rf"^\| {first} \|.*\n(?:\|.*\n?)+", text, re.MULTILINE):
        head, _, *body = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in table.splitlines()]
        yield from (dict(zip(head, row, strict=True)) for row in body)


def reading(text: str, quote: str) -> tuple[str, tuple[str, ...], str]:
    """A description, the values it lists if a list is all it is, and the default it states."""
    default = re.search(r" ?\(default: ([^)]*)\)", text)
    listed = text.replace(default[0], "") if default else text
    one = rf"{quote}\w+{quote}"
    whole = re.fullmatch(rf"(?:[^{quote}]*: )?{one}(?:(?:, or |, | or ){one})*(?:, etc\.)?", listed)
    values = tuple(re.findall(rf"{quote}(\w+){quote}", listed)) if whole else ()
    return text, values, default[1].strip(quote) if default else ""


def fences(text: str) -> list[str]:
    return re.findall(r"^```\w*\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def spans(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


def keys(shape: str) -> tuple[str, ...]:
    """The outermost keys of an object written as JSON, as a sketch of it, or as YAML."""
    flat = re.sub(r'(?<=: )"[^"]*"|/\*.*?\*/', "", shape)
    flat = flat.strip().removeprefix("{").removesuffix("}")
    while (inner := re.sub(r"\{[^{}]*\}|\[[^\[\]]*\]", "", flat)) != flat:
        flat = inner
    return tuple(re.findall(r'(?:^|[,\n])\s*"?(\w+)"?\??(?=\s*(?:[:,\n]|$))', flat))


def bare(cell: str) -> str:
    return cell.strip("`*")


def dash(cell: str) -> str:
    return "" if cell == "—" else cell


READERS: dict[str, Callable[[str], Iterator[Contract]]] = {
    "paths": read_paths,
    "notes": read_notes,
    "sessions": read_sessions,
    "brain": read_brain,
    "scopes": read_scopes,
}
