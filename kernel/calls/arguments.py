"""Decodes the arguments of a call, and turns mistakes in them into the errors of its dialect."""

import re
from typing import Any, cast

import msgspec
from msgspec import inspect

from kernel.calls.call import ToolEntry
from kernel.calls.schema import PREFIX, input_schema
from kernel.calls.tools import ArgumentError, Request, Schema, Tool
from kernel.core.errors import Fault
from kernel.core.lazy_regex import regex
from kernel.core.text import json_bytes
from kernel.security.permissions import RawJson

UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_NOT_WHOLE = regex(r"Expected `(?:(?!int[ `])[^` ]++ )*+int(?: [^`]*+)?`, got `float`")
_MAX_WHOLE_NUMBERS = 64  # fields of one call that are integers given as floats; each takes a decoding
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


def argument_fault(entry: ToolEntry, error: Exception) -> Fault:
    """Return the Fault for arguments that could not be decoded."""
    to_fault, found = entry.dialect.argument_fault, argument_error(entry.tool, error)
    return to_fault(found) if to_fault else Fault("invalid", error_message(found))


def decode_again(entry: ToolEntry, arguments: RawJson, error: Exception) -> Request:
    """Decode arguments that a decoder refused: without nulls for optional parameters, and with 5.0 for integers as 5.

    Clients send null for a field they leave out; JSON Schema counts 5.0 among the integers. Raises the Fault if the
    arguments are wrong all the same.
    """
    nulls = b"null" in bytes(arguments)
    if isinstance(error, msgspec.ValidationError) and (nulls or _NOT_WHOLE.match(str(error))):
        try:
            plain = msgspec.json.decode(arguments)
            return _with_whole_numbers(entry, without_nulls(entry.tool.request, plain) if nulls else plain)
        except UNREADABLE as again:
            error = again
    raise argument_fault(entry, error)


def _with_whole_numbers(entry: ToolEntry, arguments: Any) -> Request:
    """Return only the fields that must be integers are changed: what a tool keeps as it is given stays so."""
    for _ in range(_MAX_WHOLE_NUMBERS):
        try:
            return entry.decode(json_bytes(arguments))
        except msgspec.ValidationError as error:
            path, message = error_place(error)
            *parents, last = path_steps(path) or [""]
            if not _NOT_WHOLE.match(message) or "" in (*parents, last):
                raise
            parent: Any = arguments
            for step in parents:
                parent = parent[step]
            value = parent[last]
            if not isinstance(value, float) or not value.is_integer():
                raise
            parent[last] = int(value)
    return entry.decode(json_bytes(arguments))


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
    """Return the types that a value may have, without their descriptions."""
    if isinstance(declared, inspect.Metadata):
        return _alternative_types(declared.type)
    if isinstance(declared, inspect.UnionType):
        return [kind for part in declared.types for kind in _alternative_types(part)]
    return [declared]


def _refuses_null(declared: inspect.Type) -> bool:
    kinds = _alternative_types(declared)
    return not any(isinstance(kind, inspect.NoneType | inspect.AnyType | inspect.RawType) for kind in kinds)


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
        return _alternatives(root["$defs"][str(node["$ref"]).removeprefix(PREFIX)], root)
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
