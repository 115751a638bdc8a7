"""JSON schemas of requests and results, the decoder of arguments, and the errors in them."""

import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from types import UnionType
from typing import Any, Union, cast, get_args, get_origin, get_type_hints

import msgspec
from msgspec import inspect

from kernel.calls.dialect import Dialect
from kernel.calls.tools import ArgumentError, InputRequired, Request, Schema, Tool
from kernel.core.lazy_regex import regex

_REF = "#/$defs/{name}"
_PREFIX = "#/$defs/"
_NULL = {"type": "null"}


def input_schema(tool: Tool) -> Schema:
    """Return the schema of the arguments as one object; the arms of a tagged union are merged, with only the tag
    required.
    """
    return tool.input or _object(tool.request)


def with_configured_choices(dialect: Dialect, settings: Mapping[str, Any]) -> Dialect:
    """Return the dialect with configured values in the schemas of its tools, if they differ from the defaults, and
    without requiring the parameters that settings supply.
    """
    configured = [setting for setting in dialect.settings if settings[setting.name] != setting.default]
    choices = {name: settings[setting.name] for setting in configured for name in setting.lists}
    supplied = {name for setting in dialect.settings if settings[setting.name] for name in setting.supplies}
    if not choices and not supplied:
        return dialect
    return dialect._replace(tools=tuple(_optional(_with_choices(tool, choices), supplied) for tool in dialect.tools))


def _optional(tool: Tool, names: set[str]) -> Tool:
    """Return the tool without these names among its required parameters."""
    schema = input_schema(tool)
    required = schema.get("required", [])
    rest = [name for name in required if name not in names]
    return tool if rest == required else tool._replace(input={**schema, "required": rest})


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
    """Return the schema of structured content, or None if the result is not one object."""
    parts = result_types(tool)
    one = parts[0] if len(parts) == 1 else None
    if not (isinstance(one, type) and issubclass(one, msgspec.Struct)):
        return None
    schema = _object(one)
    for name, keys in _required_keys(one).items():
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
    found = (part for hint in get_type_hints(kind).values() for part in _parts(hint))
    return {part.__name__: part.required_keys for part in found if hasattr(part, "required_keys")}


def _parts(kind: Any) -> Iterator[Any]:
    yield kind
    for part in get_args(kind):
        yield from _parts(part)


def _object(kind: type[Request]) -> Schema:
    (root,), parts = msgspec.json.schema_components([kind], ref_template=_REF)
    arms = _arms(root)
    merged = _merge(arms, parts, root, _needs(kind)) if arms else dict(parts[root["$ref"].removeprefix(_PREFIX)])
    merged.pop("title", None)
    used = _reachable(merged, parts)
    schema = {**merged, "$defs": {name: parts[name] for name in sorted(used)}} if used else merged
    _name_items(schema)
    return schema


def _name_items(node: object) -> None:
    """Give each array of any values its `items`: some clients refuse every call of a server with one that has none."""
    if isinstance(node, list):
        for part in cast("list[object]", node):
            _name_items(part)
    elif isinstance(node, dict):
        shape = cast("Schema", node)
        if shape.get("type") == "array":
            shape.setdefault("items", {})
        for part in shape.values():
            _name_items(part)


def _arms(root: Schema) -> list[str]:
    return [arm["$ref"].removeprefix(_PREFIX) for arm in root.get("anyOf", [])]


def _needs(kind: type[Request]) -> dict[str, str]:
    """Return what the arms of a union that have a `needs` say there: for arms that take one of several parameters."""
    return {arm.__name__: arm.needs for arm in get_args(kind) if hasattr(arm, "needs")}


def _merge(arms: list[str], parts: Mapping[str, Schema], root: Schema, alternatives: Mapping[str, str]) -> Schema:
    tag = root["discriminator"]["propertyName"]
    actions: list[str] = []
    found: dict[str, list[Schema]] = {}
    needs: list[str] = []
    for arm in arms:
        schema = parts[arm]
        actions.append(schema["properties"][tag]["enum"][0])
        required = [name for name in schema.get("required", []) if name != tag]
        needs.append(f"{actions[-1]}: {alternatives.get(arm) or ', '.join(required) or 'nothing more'}")
        for name, shape in schema["properties"].items():
            if name != tag:
                found.setdefault(name, []).append(shape)
    what = {"enum": actions, "description": f"What to do, and what it needs. {'; '.join(needs)}."}
    properties = {tag: what, **{name: _either(shapes) for name, shapes in found.items()}}
    strict = all(parts[arm].get("additionalProperties") is False for arm in arms)
    merged: Schema = {"type": "object", "properties": properties, "required": [tag]}
    return {**merged, "additionalProperties": False} if strict else merged


def _either(shapes: list[Schema]) -> Schema:
    """Return a schema that accepts what any of these does, with their first description and the default that all share.

    null is left out if there is another choice, since every property of the merged object is optional.
    """
    choices: list[Schema] = []
    for shape in shapes:
        choices += [choice for choice in _choices(shape) if choice not in choices]
    choices = [choice for choice in choices if choice != _NULL] or choices
    described = [part for shape in shapes for part in (shape, *shape.get("anyOf", ()))]
    descriptions = [part["description"] for part in described if "description" in part]
    notes: Schema = {"description": descriptions[0]} if descriptions else {}
    default = shapes[0].get("default")
    if default is not None and all(shape.get("default") == default for shape in shapes):
        notes["default"] = default
    return {**(choices[0] if len(choices) == 1 else {"anyOf": choices}), **notes}


def _choices(shape: Schema) -> list[Schema]:
    """Return the choices of a shape without what only describes them, so that equal ones are one choice."""
    return [
        {key: value for key, value in choice.items() if key not in {"default", "description"}}
        for choice in shape.get("anyOf", [shape])
    ]


def _reachable(schema: Schema, parts: Mapping[str, Schema]) -> set[str]:
    """Return the names of the definitions that a schema refers to, directly or through another one."""
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


def without_nulls(request: type[Request], arguments: Any) -> Any:
    """Return decoded arguments without each null that says that an optional parameter is not given.

    That is a null for a parameter with a default, of a type without null, or for one that only other actions of the
    tool have; the same in objects that are parameters. Other nulls stay: those that a request takes, such as for a key
    of `metadata` that an update removes, in free JSON, for required parameters and under unknown names.
    """
    return _without_nulls(arguments, inspect.type_info(request))


def _without_nulls(value: Any, declared: inspect.Type) -> Any:
    kinds = _alternative_types(declared)
    lists = [kind for kind in kinds if isinstance(kind, inspect.ListType)]
    if isinstance(value, list) and lists:
        return [_without_nulls(part, lists[0].item_type) for part in cast("list[Any]", value)]
    structs = [kind for kind in kinds if isinstance(kind, inspect.StructType)]
    if not isinstance(value, dict) or not structs:
        return cast("Any", value)
    members = cast("dict[str, Any]", value)
    arm = next((kind for kind in structs if kind.tag_field is None or members.get(kind.tag_field) == kind.tag), None)
    if arm is None:
        return members
    fields = {field.encode_name: field for field in arm.fields}
    droppable = {field.encode_name for kind in structs for field in kind.fields} - fields.keys()
    droppable |= {name for name, field in fields.items() if not field.required and _refuses_null(field.type)}
    return {
        name: _without_nulls(part, fields[name].type) if name in fields else part
        for name, part in members.items()
        if part is not None or name not in droppable
    }


def _alternative_types(declared: inspect.Type) -> list[inspect.Type]:
    """Return the types that a value may have, without what only describes them."""
    if isinstance(declared, inspect.Metadata):
        return _alternative_types(declared.type)
    if isinstance(declared, inspect.UnionType):
        return [kind for part in declared.types for kind in _alternative_types(part)]
    return [declared]


def _refuses_null(declared: inspect.Type) -> bool:
    kinds = _alternative_types(declared)
    return not any(isinstance(kind, inspect.NoneType | inspect.AnyType | inspect.RawType) for kind in kinds)


# The end of msgspec's message, its two messages about the presence of a field, and those about values.
_PLACE = regex(r" - at `\$\.?([^`]*)`\Z")
_FIELD = regex(r"Object (missing required|contains unknown) field `(.*)`", re.DOTALL)
_REFUSED = regex(r"Invalid (?:enum )?value '(.*)'", re.DOTALL)
_FORM = regex(r"Expected `str` matching regex '(.*)'", re.DOTALL)
_FORMS = {r"\\S": "Must not be blank", r"^\\s*[^\\0\\s][^\\0]*$": "Must not be blank and must not contain NUL"}
_JSON_TYPES = {"int": "integer", "float": "number", "str": "string", "bool": "boolean"}
_TYPES = regex(r"(?<=[` ])(?:int|float|str|bool)(?=[` ])")
_WHOLE = regex(r"(\d)\.0\b")
_STEP = regex(r"([^.\[\]]+)|\[([^\[\]]*)\]")


def argument_error(tool: Tool, error: Exception) -> ArgumentError:
    """Return which field of the arguments is wrong, and how, in the terms of JSON."""
    if not isinstance(error, msgspec.ValidationError):
        return ArgumentError(tool, "unreadable", "", "not valid JSON")
    path, message = error_place(error)
    named = _FIELD.fullmatch(message)
    if named is not None:
        field = f"{path}.{named[2]}" if path else named[2]
        return ArgumentError(tool, "missing" if named[1].startswith("missing") else "unknown", field, message)
    if (refused := _REFUSED.fullmatch(message)) is None:
        return ArgumentError(tool, "wrong", path, json_terms(message))
    allowed = allowed_values(input_schema(tool), path)
    choice = f", choose from {', '.join(allowed)}" if allowed else ""
    return ArgumentError(tool, "wrong", path, f"Invalid enum value '{refused[1]}'{choice}", refused[1])


def error_message(error: ArgumentError) -> str:
    """Return the message for arguments that cannot be decoded, with the name of the field."""
    message, place = error.message.removeprefix("Object "), error.field
    if error.problem in {"missing", "unknown"}:
        place = error.field.rpartition(".")[0]
    return f"Invalid arguments: {message[:1].lower()}{message[1:]}{place and f' - at `{place}`'}"


def error_place(error: msgspec.ValidationError) -> tuple[str, str]:
    """Return the path of the field that an error names, such as `scope.ids[0]`, and the message without it."""
    text = str(error)
    place = _PLACE.search(text)
    return (place[1], text[: place.start()]) if place else ("", text)


def allowed_values(schema: Schema, path: str) -> list[str]:
    """Return the values of the enum at a path of a schema; none if there is no enum."""
    nodes = _alternatives(schema, schema)
    for step in path_steps(path):
        found = [child for node in nodes for child in _children(node, step)]
        nodes = [node for child in found for node in _alternatives(child, schema)]
    values = [value for node in nodes for value in node.get("enum", ())]
    return [str(value) for value in dict.fromkeys(values)]


def path_steps(path: str) -> list[str | int]:
    """Return the names and positions of a path; the key of an object whose names are free is an empty name."""
    return [name or (int(at) if at.isdigit() else "") for name, at in _STEP.findall(path)]


def _alternatives(node: Schema, root: Schema) -> list[Schema]:
    """Return a schema without references, as the list of what may be there."""
    if "$ref" in node:
        return _alternatives(root["$defs"][str(node["$ref"]).removeprefix(_PREFIX)], root)
    return [node, *(part for one in node.get("anyOf", ()) for part in _alternatives(one, root))]


def _children(node: Schema, step: str | int) -> list[Schema]:
    if isinstance(step, int):
        found = node.get("items")
    else:
        found = node.get("properties", {}).get(step) or node.get("additionalProperties")
    return [cast("Schema", found)] if isinstance(found, dict) else []


def json_terms(message: str) -> str:
    """Return a message of msgspec in the terms of JSON instead of those of Python and of regular expressions."""
    if (form := _FORM.fullmatch(message)) is not None:
        return _FORMS.get(form[1], "Expected `string` of another form")
    words = _TYPES.sub(lambda found: _JSON_TYPES[found[0]], message)
    return _WHOLE.sub(r"\1", words)
