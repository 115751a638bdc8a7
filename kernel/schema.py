"""JSON schemas of a tool's request and result, the decoder of its arguments, and what is wrong with them."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import msgspec

from kernel.lazy_regex import regex
from kernel.tools import ArgumentError, Dialect, Schema, Tool, result_types

_REF = "#/$defs/{name}"
_PREFIX = "#/$defs/"
_NULL = {"type": "null"}


def input_schema(tool: Tool) -> Schema:
    """The arguments as one object; the arms of a tagged union are merged, with only the tag required."""
    return tool.input or _object(tool.request)


def with_configured_choices(dialect: Dialect, settings: Mapping[str, Any]) -> Dialect:
    """The dialect with the values its settings list in the schemas of its tools, which already hold the defaults."""
    given = {setting.name: settings[setting.name] for setting in dialect.settings}
    usual = {setting.name: setting.default for setting in dialect.settings}
    choices = {name: given[key] for name, key in dialect.choices.items() if given[key] != usual[key]}
    return dialect._replace(tools=tuple(_limited(tool, choices) for tool in dialect.tools)) if choices else dialect


def _limited(tool: Tool, choices: Mapping[str, Sequence[str]]) -> Tool:
    schema = input_schema(tool)
    properties = schema.get("properties", {})
    listed = {name: _listing(properties[name], values) for name, values in choices.items() if name in properties}
    return tool._replace(input={**schema, "properties": {**properties, **listed}}) if listed else tool


def _listing(shape: Any, values: Sequence[str]) -> Any:
    if isinstance(shape, list):
        return [_listing(part, values) for part in cast("list[Any]", shape)]
    if not isinstance(shape, dict):
        return shape
    parts = cast("Schema", shape)
    return {key: [*values] if key == "enum" else _listing(part, values) for key, part in parts.items()}


def output_schema(tool: Tool) -> Schema | None:
    """The structured content as one object, or None where the result is not one."""
    parts = result_types(tool)
    one = parts[0] if len(parts) == 1 else None
    return _object(one) if isinstance(one, type) and issubclass(one, msgspec.Struct) else None


def _object(kind: Any) -> Schema:
    (root,), parts = msgspec.json.schema_components([kind], ref_template=_REF)
    arms = _arms(root)
    merged = _merge(arms, parts, root) if arms else dict(parts[root["$ref"].removeprefix(_PREFIX)])
    merged.pop("title", None)
    used = _reachable(merged, parts)
    return {**merged, "$defs": {name: parts[name] for name in sorted(used)}} if used else merged


def _arms(root: Schema) -> list[str]:
    return [arm["$ref"].removeprefix(_PREFIX) for arm in root.get("anyOf", [])]


def _merge(arms: list[str], parts: dict[str, Any], root: Schema) -> Schema:
    tag = root["discriminator"]["propertyName"]
    actions: list[str] = []
    found: dict[str, list[Schema]] = {}
    needs: list[str] = []
    for arm in arms:
        schema = parts[arm]
        actions.append(schema["properties"][tag]["enum"][0])
        required = [name for name in schema.get("required", []) if name != tag]
        needs.append(f"{actions[-1]}: {', '.join(required) or 'nothing more'}")
        for name, shape in schema["properties"].items():
            if name != tag:
                found.setdefault(name, []).append(shape)
    what = {"enum": actions, "description": f"What to do, and what it needs. {'; '.join(needs)}."}
    properties = {tag: what, **{name: _either(shapes) for name, shapes in found.items()}}
    strict = all(parts[arm].get("additionalProperties") is False for arm in arms)
    merged: Schema = {"type": "object", "properties": properties, "required": [tag]}
    return {**merged, "additionalProperties": False} if strict else merged


def _either(shapes: list[Schema]) -> Schema:
    """What fits any of the shapes, with their first description and the default that all of them have.

    null is left out where there is another choice, since nothing in this object has to be given.
    """
    choices: list[Schema] = []
    for shape in shapes:
        choices += [choice for choice in _choices(shape) if choice not in choices]
    choices = [choice for choice in choices if choice != _NULL] or choices
    told = [shape["description"] for shape in shapes if "description" in shape]
    words: Schema = {"description": told[0]} if told else {}
    usual = shapes[0].get("default")
    if usual is not None and all(shape.get("default") == usual for shape in shapes):
        words["default"] = usual
    return {**(choices[0] if len(choices) == 1 else {"anyOf": choices}), **words}


def _choices(shape: Schema) -> list[Schema]:
    bare = {key: value for key, value in shape.items() if key not in {"default", "description"}}
    return [*bare.get("anyOf", [bare])]


def _reachable(schema: Any, parts: dict[str, Any]) -> set[str]:
    found: set[str] = set()
    waiting: list[Any] = [schema]
    while waiting:
        here = waiting.pop()
        if isinstance(here, dict):
            shape = cast("Schema", here)
            name = str(shape.get("$ref", "")).removeprefix(_PREFIX)
            if name in parts and name not in found:
                found.add(name)
                waiting.append(parts[name])
            waiting.extend(shape.values())
        elif isinstance(here, list):
            waiting.extend(cast("list[Any]", here))
    return found


_PLACE = regex(r" - at `\$\.?([^`]*)`\Z")
_FIELD = regex(r"Object (missing required|contains unknown) field `(.*)`", re.DOTALL)


def decoder(request: Any) -> Callable[[Any], Any]:
    """Decodes JSON to `request`; made at its first use, since a start would wait for all of them."""
    made: list[Callable[[Any], Any]] = []

    def decode(arguments: Any) -> Any:
        if not made:
            made.append(msgspec.json.Decoder(request).decode)
        return made[0](arguments)

    return decode


def error_message(error: Exception) -> str:
    """What is wrong with the arguments, in words that name the field."""
    if isinstance(error, msgspec.ValidationError):
        text = (
            str(error).replace("`$.", "`").replace("Object missing", "Missing").replace("Object contains", "Contains")
        )
        return f"Invalid arguments: {text[:1].lower()}{text[1:]}"
    return "Invalid arguments: not valid JSON"


def argument_error(tool: Tool, error: Exception) -> ArgumentError:
    """Which field of the arguments does not fit, and in what way."""
    if not isinstance(error, msgspec.ValidationError):
        return ArgumentError(tool, "unreadable", "", error_message(error))
    text = str(error)
    place = _PLACE.search(text)
    path, said = (place[1], text[: place.start()]) if place else ("", text)
    named = _FIELD.fullmatch(said)
    if named is None:
        return ArgumentError(tool, "wrong", path, said)
    field = f"{path}.{named[2]}" if path else named[2]
    return ArgumentError(tool, "missing" if named[1].startswith("missing") else "unknown", field, said)
