"""Compare the tools of a dialect with its contract, and the differences with the deviations of its README."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, get_args

import msgspec

from kernel.calls.schema import input_schema
from kernel.calls.tools import Tool
from tests.contracts.deviation_tables import Deviation
from tests.contracts.seed_texts import Contract, Param

KINDS = {"tool", "parameter", "required", "default", "values", "type"}
TYPES = {
    "string": {"string"},
    "enum": {"string"},
    "int": {"integer"},
    "float": {"number"},
    "number": {"integer", "number"},  # the document in question calls every number that, whole or not
    "bool": {"boolean"},
    "boolean": {"boolean"},
    "object": {"object"},
    "array": {"array"},
    "string[]": {"array"},
}
NOTHING = (None, False, "", [], {}, 0)


class Difference(NamedTuple):
    """One way in which a tool differs from its contract."""

    dialect: str
    tool: str
    what: str
    contract: str
    ours: str


class Shape(NamedTuple):
    """One parameter as a JSON schema has it."""

    types: frozenset[str]
    values: frozenset[str]
    required: bool
    default: Any


def declared_differences(dialect: str, rows: Iterable[Deviation]) -> set[Difference]:
    """Return the rows of the kinds that are compared, one for each tool they concern."""
    return {
        Difference(dialect, tool, *(cell.replace("`", "") for cell in (row.what, row.contract, row.ours)))
        for row in rows
        if row.what.partition(" ")[0] in KINDS
        for tool in row.tools.split(", ")
    }


def without_reason(rows: Iterable[Deviation]) -> list[str]:
    """Return the rows that give no reason."""
    return [f"{row.tools}: {row.what}" for row in rows if not row.reason.strip("-? ")]


def differences(contracts: tuple[Contract, ...], tools: tuple[Tool, ...]) -> set[Difference]:
    """Every difference between the tools of a dialect and those of its contract."""
    dialect = contracts[0].dialect
    ours = {tool.name: tool for tool in tools}
    theirs = {contract.name for contract in contracts}
    found = {Difference(dialect, name, "tool", "yes", "no") for name in theirs - set(ours)}
    found |= {Difference(dialect, name, "tool", "no", "yes") for name in set(ours) - theirs}
    for contract in contracts:
        if contract.name in ours:
            rows = compare(contract, ours[contract.name])
            found |= {Difference(dialect, contract.name, *row) for row in rows}
    return found


def compare(contract: Contract, tool: Tool) -> Iterator[tuple[str, str, str]]:
    theirs = {param.name: param for param in contract.params}
    ours = shapes(input_schema(tool), set(theirs))
    for name in theirs.keys() ^ ours.keys():
        yield f"parameter {name}", answer(name in theirs), answer(name in ours)
    bundled = len(contract.actions) > 1  # its defaults are compared action by action
    for name in theirs.keys() & ours.keys():
        yield from compare_kind(theirs[name], ours[name])
        yield from compare_required(theirs[name], ours[name], name)
        yield from () if bundled else compare_default(theirs[name], ours[name], name)
    if bundled:
        yield from compare_actions(contract, tool)


def compare_actions(contract: Contract, tool: Tool) -> Iterator[tuple[str, str, str]]:
    """The required parameters and defaults of each action of a bundled tool, which its merged schema does not show."""
    arms = {arm.__struct_config__.tag: msgspec.json.schema(arm) for arm in get_args(tool.request)}
    for action in contract.actions:
        stated = {param.name: param for param in action.params if param.about}  # examples omit required ones
        ours = shapes(arms[action.name], set(stated)) if action.name in arms else {}
        for name in stated.keys() & ours.keys():
            yield from compare_required(stated[name], ours[name], f"{action.name}.{name}")
            yield from compare_default(stated[name], ours[name], f"{action.name}.{name}")


def compare_kind(theirs: Param, ours: Shape) -> Iterator[tuple[str, str, str]]:
    expected = TYPES.get(theirs.type.split(" ")[0], set())
    if expected and not (expected & ours.types if theirs.type == "number" else expected <= ours.types):
        yield f"type {theirs.name}", theirs.type, listed(ours.types)
    values = set(theirs.values)
    exact = theirs.closed or not values  # values that are only examples may be left open or added to
    if not (ours.values == values if exact else not ours.values or ours.values >= values):
        yield f"values {theirs.name}", listed(values), listed(ours.values)


def compare_required(theirs: Param, ours: Shape, name: str) -> Iterator[tuple[str, str, str]]:
    if theirs.required != ours.required:
        yield f"required {name}", answer(theirs.required), answer(ours.required)


def compare_default(theirs: Param, ours: Shape, name: str) -> Iterator[tuple[str, str, str]]:
    stated, default = literal(theirs)
    if stated:
        same = type(default) is type(ours.default) and default == ours.default
    else:  # a contract that is silent leaves room for a default that stands for nothing
        same = bool(theirs.default) or ours.default in NOTHING
    if not same:
        yield f"default {name}", json.dumps(default) if stated else "none", json.dumps(ours.default)


def literal(param: Param) -> tuple[bool, Any]:
    """The default a contract states, unless it states it in prose, which fixes no value."""
    text = param.default
    if text in param.values or (param.type == "string" and re.fullmatch(r"\w+", text)):
        return True, text
    if re.fullmatch(r"true|false|-?\d+(?:\.\d+)?", text):
        return True, whole(json.loads(text))
    return False, None


def shapes(schema: dict[str, Any], names: set[str]) -> dict[str, Shape]:
    """The parameters of a schema; an object whose fields the contract lists is split into them."""
    parts = schema.get("$defs", {})
    root = resolve(schema, parts)[0]
    found: dict[str, Shape] = {}
    for name, node in root.get("properties", {}).items():
        arms = resolve(node, parts)
        if any(other.startswith(f"{name}.") for other in names):
            inner = {f"{name}.{part}": value for arm in arms for part, value in arm.get("properties", {}).items()}
            found |= {path: shape(resolve(value, parts), value, False) for path, value in inner.items()}
        else:
            found[name] = shape(arms, node, name in root.get("required", []))
    return found


def resolve(node: Mapping[str, Any], parts: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A schema as the list of its alternatives, references followed and null left out."""
    if "$ref" in node:
        return resolve(parts[node["$ref"].rpartition("/")[2]], parts)
    if "anyOf" in node:
        return [arm for inner in node["anyOf"] for arm in resolve(inner, parts)]
    return [] if node.get("type") == "null" else [dict(node)]


def shape(arms: list[dict[str, Any]], node: Mapping[str, Any], required: bool) -> Shape:
    values = {
        value for arm in arms for value in arm.get("enum", arm.get("items", {}).get("enum", ())) if value is not None
    }
    types = {arm.get("type", "string" if "enum" in arm else "anything") for arm in arms}
    return Shape(frozenset(types), frozenset(map(str, values)), required, whole(node.get("default")))


def whole(value: Any) -> Any:
    """1.0 as 1, which are the same in JSON; true stays true."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def answer(yes: bool) -> str:
    return "yes" if yes else "no"


def listed(words: set[str] | frozenset[str]) -> str:
    return ", ".join(sorted(words)) or "any"
