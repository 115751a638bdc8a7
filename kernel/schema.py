"""JSON schemas of requests and results, the decoder of arguments, and the errors in them."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec

from kernel.lazy_regex import regex
from kernel.tools import ArgumentError, Dialect, Request, Schema, Tool, result_types

_REF = "#/$defs/{name}"
_PREFIX = "#/$defs/"
_NULL = {"type": "null"}


def input_schema(tool: Tool) -> Schema:
    """The schema of the arguments as one object; the arms of a tagged union are merged, with only the tag required."""
    return tool.input or _object(tool.request)


def with_configured_choices(dialect: Dialect, settings: Mapping[str, Any]) -> Dialect:
    """The dialect with configured values in the schemas of its tools, where they differ from the defaults."""
    given = {setting.name: settings[setting.name] for setting in dialect.settings}
    defaults = {setting.name: setting.default for setting in dialect.settings}
    choices = {name: given[key] for name, key in dialect.choices.items() if given[key] != defaults[key]}
    if not choices:
        return dialect
    return dialect._replace(tools=tuple(_with_choices(tool, choices) for tool in dialect.tools))


def _with_choices(tool: Tool, choices: Mapping[str, Sequence[str]]) -> Tool:
    schema = input_schema(tool)
    properties = schema.get("properties", {})
    listed = {name: _with_enum(properties[name], values) for name, values in choices.items() if name in properties}
    return tool._replace(input={**schema, "properties": {**properties, **listed}}) if listed else tool


def _with_enum(schema: object, values: Sequence[str]) -> object:
    if isinstance(schema, list):
        return [_with_enum(part, values) for part in cast("list[object]", schema)]
    if not isinstance(schema, dict):
        return schema
    parts = cast("Schema", schema)
    return {key: [*values] if key == "enum" else _with_enum(part, values) for key, part in parts.items()}


def output_schema(tool: Tool) -> Schema | None:
    """The schema of structured content, or None where the result is not one object."""
    parts = result_types(tool)
    one = parts[0] if len(parts) == 1 else None
    return _object(one) if isinstance(one, type) and issubclass(one, msgspec.Struct) else None


def _object(kind: type[Request]) -> Schema:
    (root,), parts = msgspec.json.schema_components([kind], ref_template=_REF)
    arms = _arms(root)
    merged = _merge(arms, parts, root) if arms else dict(parts[root["$ref"].removeprefix(_PREFIX)])
    merged.pop("title", None)
    used = _reachable(merged, parts)
    return {**merged, "$defs": {name: parts[name] for name in sorted(used)}} if used else merged


def _arms(root: Schema) -> list[str]:
    return [arm["$ref"].removeprefix(_PREFIX) for arm in root.get("anyOf", [])]


def _merge(arms: list[str], parts: Mapping[str, Schema], root: Schema) -> Schema:
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
    """A schema that accepts what any of these does, with their first description and the default that all share.

    null is left out where there is another choice, since every property of the merged object is optional.
    """
    choices: list[Schema] = []
    for shape in shapes:
        choices += [choice for choice in _choices(shape) if choice not in choices]
    choices = [choice for choice in choices if choice != _NULL] or choices
    descriptions = [shape["description"] for shape in shapes if "description" in shape]
    notes: Schema = {"description": descriptions[0]} if descriptions else {}
    default = shapes[0].get("default")
    if default is not None and all(shape.get("default") == default for shape in shapes):
        notes["default"] = default
    return {**(choices[0] if len(choices) == 1 else {"anyOf": choices}), **notes}


def _choices(shape: Schema) -> list[Schema]:
    bare = {key: value for key, value in shape.items() if key not in {"default", "description"}}
    return [*bare.get("anyOf", [bare])]


def _reachable(schema: Schema, parts: Mapping[str, Schema]) -> set[str]:
    """The names of the definitions that a schema refers to, directly or through another one."""
    found: set[str] = set()
    pending: list[object] = [schema]
    while pending:
        node = pending.pop()
        if isinstance(node, dict):
            shape = cast("Schema", node)
            name = str(shape.get("$ref", "")).removeprefix(_PREFIX)
            if name in parts and name not in found:
                found.add(name)
                pending.append(parts[name])
            pending.extend(shape.values())
        elif isinstance(node, list):
            pending.extend(cast("list[object]", node))
    return found


# The end of msgspec's message, and its two messages about the presence of a field.
_PLACE = regex(r" - at `\$\.?([^`]*)`\Z")
_FIELD = regex(r"Object (missing required|contains unknown) field `(.*)`", re.DOTALL)


def error_message(error: Exception) -> str:
    """The message for arguments that cannot be decoded, with the name of the field."""
    if isinstance(error, msgspec.ValidationError):
        text = (
            str(error).replace("`$.", "`").replace("Object missing", "Missing").replace("Object contains", "Contains")
        )
        return f"Invalid arguments: {text[:1].lower()}{text[1:]}"
    return "Invalid arguments: not valid JSON"


def argument_error(tool: Tool, error: Exception) -> ArgumentError:
    """Which field of the arguments is wrong, and how."""
    if not isinstance(error, msgspec.ValidationError):
        return ArgumentError(tool, "unreadable", "", error_message(error))
    text = str(error)
    place = _PLACE.search(text)
    path, message = (place[1], text[: place.start()]) if place else ("", text)
    named = _FIELD.fullmatch(message)
    if named is None:
        return ArgumentError(tool, "wrong", path, message)
    field = f"{path}.{named[2]}" if path else named[2]
    return ArgumentError(tool, "missing" if named[1].startswith("missing") else "unknown", field, message)
