"""JSON schemas of requests and results."""

from collections.abc import Generator, Iterator, Mapping, Sequence
from types import UnionType
from typing import Any, Union, cast, get_args, get_origin, get_type_hints

import msgspec

from kernel.calls.dialect import Dialect
from kernel.calls.tools import InputRequired, Request, Schema, Tool

_REF = "#/$defs/{name}"
PREFIX = "#/$defs/"
_NULL = {"type": "null"}


def input_schema(tool: Tool) -> Schema:
    """Return the schema of the arguments as one object without references, which some clients refuse; the arms of a
    tagged union are merged, with only the tag required.
    """
    if tool.input:
        return tool.input
    schema = object_schema(tool.request)
    parts: Mapping[str, Schema] = schema.get("$defs", {})
    if any(name in _reachable(part, parts) for name, part in parts.items()):  # it has no end without references
        return schema
    return _without_references({key: part for key, part in schema.items() if key != "$defs"}, parts)


def _without_references(node: Any, parts: Mapping[str, Schema]) -> Any:
    if isinstance(node, list):
        return [_without_references(part, parts) for part in cast("list[object]", node)]
    if not isinstance(node, dict):
        return node
    shape = {key: _without_references(part, parts) for key, part in cast("Schema", node).items()}
    if "$ref" not in shape:
        return shape
    whole = _without_references(parts[str(shape["$ref"]).removeprefix(PREFIX)], parts)
    return {key: part for key, part in {**whole, **shape}.items() if key not in {"$ref", "title"}}


def with_configured_choices(dialect: Dialect, settings: Mapping[str, Any]) -> Dialect:
    """Return the dialect with configured values in the schemas of its tools, if they differ from the defaults, and
    without requiring the parameters that settings supply.
    """
    overrides = [setting for setting in dialect.settings if settings[setting.name] != setting.default]
    choices = {name: settings[setting.name] for setting in overrides for name in setting.lists}
    own = {name for setting in dialect.settings if settings[setting.name] for name in setting.supplies}
    if not choices and not own:
        return dialect
    return dialect._replace(tools=tuple(_optional(_with_choices(tool, choices), own) for tool in dialect.tools))


def _optional(tool: Tool, names: set[str]) -> Tool:
    schema = input_schema(tool)
    required = schema.get("required", [])
    rest = [name for name in required if name not in names]
    return tool if rest == required else tool._replace(input={**schema, "required": rest})


def _with_choices(tool: Tool, choices: Mapping[str, Sequence[str]]) -> Tool:
    schema = input_schema(tool)
    properties = schema.get("properties", {})
    with_values = {name: _with_enum(properties[name], values) for name, values in choices.items() if name in properties}
    return tool._replace(input={**schema, "properties": {**properties, **with_values}}) if with_values else tool


def _with_enum(schema: object, values: Sequence[str]) -> object:
    if isinstance(schema, list):
        return [_with_enum(part, values) for part in cast("list[object]", schema)]
    if not isinstance(schema, dict):
        return schema
    parts = cast("Schema", schema)
    return {key: [*values] if key == "enum" else _with_enum(part, values) for key, part in parts.items()}


def output_schema(tool: Tool) -> Schema | None:
    """Return the schema of structured content, or None if the result is not one object."""
    parts = result_types(tool)
    part = parts[0] if len(parts) == 1 else None
    if not (isinstance(part, type) and issubclass(part, msgspec.Struct)):
        return None
    schema = object_schema(part)
    for name, keys in _required_keys(part).items():
        schema["$defs"][name] = {**schema["$defs"][name], "required": [*keys]}
    return schema


def result_types(tool: Tool) -> tuple[type, ...]:
    """Return the result types of a tool, without `InputRequired` and `Steps`, which never reach structured content."""
    union = get_origin(tool.result) in {Union, UnionType}
    parts = get_args(tool.result) if union else (tool.result,)
    return tuple(part for part in parts if part is not InputRequired and get_origin(part) is not Generator)


def _required_keys(kind: type[msgspec.Struct]) -> dict[str, Sequence[str]]:
    """Return the `required_keys` of the structs in a result, by name: of rows whose other keys a request may
    leave out.
    """
    hints = (part for hint in get_type_hints(kind).values() for part in _parts(hint))
    return {part.__name__: part.required_keys for part in hints if hasattr(part, "required_keys")}


def _parts(kind: Any) -> Iterator[Any]:
    yield kind
    for part in get_args(kind):
        yield from _parts(part)


def object_schema(kind: type[Request]) -> Schema:
    (root,), parts = msgspec.json.schema_components([kind], ref_template=_REF)
    arms = [arm["$ref"].removeprefix(PREFIX) for arm in root.get("anyOf", [])]
    # The arms that take one of several parameters say so.
    needs = {arm.__name__: arm.needs for arm in get_args(kind) if hasattr(arm, "needs")}
    shape = _merge(arms, parts, root, needs) if arms else dict(parts[root["$ref"].removeprefix(PREFIX)])
    shape.pop("title", None)
    reachable = _reachable(shape, parts)
    schema = {**shape, "$defs": {name: parts[name] for name in sorted(reachable)}} if reachable else shape
    _complete(schema)
    return schema


def _complete(node: object) -> None:
    """Complete a schema and all of its parts."""
    if isinstance(node, dict):
        _complete_part(cast("Schema", node))
    if isinstance(node, list | dict):
        for part in node if isinstance(node, list) else [*node.values()]:
            _complete(part)


def _complete_part(shape: Schema) -> None:
    """Give an array of any values its `items`, an object of any keys its `properties`, and an enum of texts its type:
    some clients refuse every call of a server with one that lacks them. Put the description on one line.
    """
    if shape.get("type") == "array":
        shape["items"] = shape.get("items") or {"type": "object"}
    if shape.get("type") == "object" and "properties" not in shape:
        shape |= {"properties": {}, "additionalProperties": shape.get("additionalProperties", True)}
    choices = shape.get("enum")
    if isinstance(choices, list) and all(isinstance(choice, str) for choice in cast("list[object]", choices)):
        shape.setdefault("type", "string")
    if isinstance(about := shape.get("description"), str):
        shape["description"] = " ".join(about.split())


def _merge(arms: list[str], parts: Mapping[str, Schema], root: Schema, alternatives: Mapping[str, str]) -> Schema:
    tag = root["discriminator"]["propertyName"]
    actions: list[str] = []
    by_name: dict[str, list[Schema]] = {}
    needs: list[str] = []
    for arm in arms:
        schema = parts[arm]
        actions.append(schema["properties"][tag]["enum"][0])
        required = [name for name in schema.get("required", []) if name != tag]
        needs.append(f"{actions[-1]}: {alternatives.get(arm) or ', '.join(required) or 'nothing more'}")
        for name, shape in schema["properties"].items():
            if name != tag:
                by_name.setdefault(name, []).append(shape)
    what = {"enum": actions, "description": f"What to do, and what it needs. {'; '.join(needs)}."}
    properties = {tag: what, **{name: _either(shapes) for name, shapes in by_name.items()}}
    strict = all(parts[arm].get("additionalProperties") is False for arm in arms)
    whole: Schema = {"type": "object", "properties": properties, "required": [tag]}
    return {**whole, "additionalProperties": False} if strict else whole


def _either(shapes: list[Schema]) -> Schema:
    """Return a schema that accepts all values of these, with their first description and the default that all share.

    null is left out if there is another choice, since every property of the merged object is optional.
    """
    choices: list[Schema] = []
    for shape in shapes:
        choices += [choice for choice in _choices(shape) if choice not in choices]
    choices = [choice for choice in choices if choice != _NULL] or choices
    forms = [part for shape in shapes for part in (shape, *shape.get("anyOf", ()))]
    descriptions = [part["description"] for part in forms if "description" in part]
    notes: Schema = {"description": descriptions[0]} if descriptions else {}
    default = shapes[0].get("default")
    if default is not None and all(shape.get("default") == default for shape in shapes):
        notes["default"] = default
    return {**(choices[0] if len(choices) == 1 else {"anyOf": choices}), **notes}


def _choices(shape: Schema) -> list[Schema]:
    """Return the choices of a shape without their descriptions, so that equal shapes are one choice."""
    return [
        {key: value for key, value in choice.items() if key not in {"default", "description"}}
        for choice in shape.get("anyOf", [shape])
    ]


def _reachable(schema: Schema, parts: Mapping[str, Schema]) -> set[str]:
    """Return the names of the definitions that a schema refers to, directly or through another definition."""
    names: set[str] = set()
    pending: list[object] = [schema]
    while pending:
        node = pending.pop()
        if isinstance(node, dict):
            shape = cast("Schema", node)
            name = str(shape.get("$ref", "")).removeprefix(PREFIX)
            if name in parts and name not in names:
                names.add(name)
                pending.append(parts[name])
            pending.extend(shape.values())
        elif isinstance(node, list):
            pending.extend(cast("list[object]", node))
    return names
