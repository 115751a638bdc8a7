"""Decodes the arguments of a call, and turns mistakes in them into the errors of its dialect."""

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from typing import Any, cast, get_args

import msgspec
from msgspec import inspect

from kernel.calls.schema import PREFIX, input_schema, object_schema
from kernel.calls.tools import ArgumentError, Request, Schema, Tool
from kernel.core.errors import Fault
from kernel.core.lazy_regex import regex
from kernel.core.limits import Limits
from kernel.core.text import RawJson, excess, json_bytes, whole_characters

UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_LIMITS = Limits()
# The types that take a number with a fraction, or a text, as it is.
_FLOATS = (inspect.FloatType, inspect.AnyType, inspect.RawType, inspect.CustomType)
_TEXTS = (inspect.StrType, inspect.LiteralType, inspect.AnyType, inspect.RawType, inspect.CustomType)
# The end of msgspec's message, its two messages about the presence of a field, and those about values.
_PLACE = regex(r" - at `(key` in `)?\$\.?([^`]*)`\Z")
_FIELD = regex(r"Object (missing required|contains unknown) field `(.*)`", re.DOTALL)
_REFUSED = regex(r"Invalid (?:enum )?value '(.*)'", re.DOTALL)
_FORM = regex(r"Expected `str` matching regex '(.*)'", re.DOTALL)
_FORMS = {r"\\S": "Must not be blank", r"^\\s*[^\\0\\s][^\\0]*$": "Must not be blank and must not contain NUL"}
_JSON_TYPES = {"int": "integer", "float": "number", "str": "string", "bool": "boolean"}
_TYPES = regex(r"(?<=[` ])(?:int|float|str|bool)(?=[` ])")
_WHOLE = regex(r"(\d)\.0\b")
_SENTENCE_END = regex(r"(?<=\S)\. ")  # a dot after a blank is a word of its own
_SHOWN_CHARS = 160  # of the description of a parameter, and of a wrong value
_LONGEST_NAME = 64  # of a client's; the nearest name is looked for in time that grows with the square
# Names that other memory servers give to the same parameters.
_SYNONYMS = (
    ("query", "q", "question", "search", "searchquery", "term"),
    ("content", "text", "body", "memory", "value", "data", "message"),
    ("limit", "k", "topk", "max", "maxresults", "count", "n", "size", "perpage"),
    ("path", "filepath", "file", "filename", "filepath", "uri"),
    ("id", "memoryid", "uuid", "key", "entryid"),
    ("name", "title", "label"),
    ("category", "type", "kind", "memorytype"),
)
_STEP = regex(r"([^.\[\]]+)|\[([^\[\]]*)\]")
_type_info = cache(inspect.type_info)  # a millisecond for each call of a client that sends null for all it leaves out


def decode_again(
    tool: Tool,
    decode: Callable[[RawJson], Request],
    arguments: RawJson,
    error: Exception,
    to_fault: Callable[[ArgumentError], Fault] | None = None,
) -> Request:
    """Decode arguments that a decoder refused: without nulls for optional parameters, with 5.0 for integers as 5, with
    the object for its JSON text if its keys are free, and with U+FFFD for half an emoji.

    Clients send null for a field they leave out; JSON Schema counts 5.0 among the integers; OpenAI's strict mode has no
    objects of free keys. Raises the Fault if the arguments are wrong all the same, and a MemoryError as it is.
    """
    if isinstance(error, MemoryError):
        raise error
    text = bytes(arguments)
    with suppress(*UNREADABLE):
        text, values = _read(text)
        mended = json_bytes(_mended(values, _type_info(tool.request)))
        try:
            if not excess(mended, _LIMITS):  # objects in many texts may be more than a request has
                return decode(mended)
        except UNREADABLE as again:
            error = again
    wrong = argument_error(tool, error, text)
    raise to_fault(wrong) if to_fault else Fault("invalid", error_message(wrong))


def _read(text: bytes) -> tuple[bytes, Any]:
    """Return JSON text, with whole characters if it has others, and its value."""
    try:
        return text, msgspec.json.decode(text)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        text = whole_characters(text)
        return text, msgspec.json.decode(text)


def _mended(value: Any, type_: inspect.Type) -> Any:
    """Return decoded arguments without each null that says that an optional parameter is not given, and in the form
    that the decoder takes; other values stay, as in free JSON.

    Such a null is for a parameter with a default, of a type without null, or that only other actions of the tool have;
    the same in objects that are parameters. Other nulls stay: those that a request takes, such as for a key of
    `metadata` that an update removes, in free JSON, for required parameters and under unknown names.
    """
    kinds = _alternative_types(type_)
    if isinstance(value, float):
        return int(value) if value.is_integer() and _takes(kinds, inspect.IntType, _FLOATS) else value
    if isinstance(value, str):
        return _object_in(value) if _takes(kinds, inspect.DictType, _TEXTS) else value
    lists = [kind for kind in kinds if isinstance(kind, inspect.ListType)]
    if isinstance(value, list) and lists:
        return [_mended(part, lists[0].item_type) for part in cast("list[Any]", value)]
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
        name: _mended(part, fields[name].type) if name in fields else part
        for name, part in members.items()
        if part is not None or name not in droppable
    }


def _takes(kinds: Sequence[inspect.Type], kind: type[inspect.Type], others: tuple[type[inspect.Type], ...]) -> bool:
    return any(isinstance(one, kind) for one in kinds) and not any(isinstance(one, others) for one in kinds)


def _object_in(text: str) -> msgspec.Raw | str:
    """Return the object of which this is the JSON text, as it is; the text if it is none."""
    if text.lstrip()[:1] == "{":
        with suppress(*UNREADABLE):
            return msgspec.json.decode(text, type=msgspec.Raw)
    return text


def _alternative_types(type_: inspect.Type) -> list[inspect.Type]:
    """Return the types that a value may have, without their descriptions."""
    if isinstance(type_, inspect.Metadata):
        return _alternative_types(type_.type)
    if isinstance(type_, inspect.UnionType):
        return [kind for part in type_.types for kind in _alternative_types(part)]
    return [type_]


def _refuses_null(type_: inspect.Type) -> bool:
    kinds = _alternative_types(type_)
    return not any(isinstance(kind, inspect.NoneType | inspect.AnyType | inspect.RawType) for kind in kinds)


def argument_error(tool: Tool, error: Exception, arguments: RawJson = b"") -> ArgumentError:
    """Return which field of the arguments is wrong, and how, in the terms of JSON."""
    if not isinstance(error, msgspec.ValidationError):
        return ArgumentError(tool, "unreadable", "", "not valid JSON", tool.request)
    path, message = error_place(error)
    request = _called_request(tool, arguments)
    schemas = [input_schema(tool) if request is tool.request else object_schema(request), input_schema(tool)]
    match = _FIELD.fullmatch(message)
    if match is not None:
        name = _cut(match[2])
        field = f"{path}.{name}" if path else name
        if match[1].startswith("missing"):
            return ArgumentError(tool, "missing", field, message, request, hint=_description(schemas, field))
        hint = _names_hint(tool, request, path, name)
        return ArgumentError(tool, "unknown", field, f"Object {match[1]} field `{name}`", request, hint=hint)
    if (refusal := _REFUSED.fullmatch(message)) is None:
        reason = json_terms(message)
        # A wrong type of an action has no ", got".
        is_type = ", got `" in message or message == "Expected `str`"
        hint = _description(schemas, path) if is_type or _FORM.fullmatch(message) else ""
        repeats = f"`{hint.removeprefix('expects ')}" in reason
        return ArgumentError(tool, "wrong", path, reason, request, hint="" if repeats else hint)
    value, choice = _cut(refusal[1]), _choices(schemas[0], path)
    return ArgumentError(tool, "wrong", path, f"Invalid enum value '{value}'{choice}", request, value)


def _cut(text: str) -> str:
    """Return the beginning of a text of a client, which may have megabytes, for a refusal that quotes it."""
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…"


def _called_request(tool: Tool, arguments: RawJson) -> type[Request]:
    """Return the type of the arguments: that of the action, if they name one of the tool."""
    members: dict[str, Any] = {}
    arms = get_args(tool.request)
    if arms:
        with suppress(*UNREADABLE):
            members = msgspec.json.decode(arguments, type=dict[str, Any])
    configs = ((arm, arm.__struct_config__) for arm in arms)
    return next((arm for arm, config in configs if members.get(config.tag_field) == config.tag), tool.request)


def _names_hint(tool: Tool, request: type[Request], path: str, name: str) -> str:
    structs = [kind for kind in _types_at(request, path) if isinstance(kind, inspect.StructType)]
    names = list(dict.fromkeys(field.encode_name for kind in structs for field in kind.fields))
    tags = [str(kind.tag) for kind in structs if len(structs) == 1 and kind.tag]
    owner = f"`{path}`" if path else " ".join([tool.name, *tags])
    near = nearest_name(name, names)
    return f"{near and f'did you mean `{near}`? '}{owner} takes {', '.join(names) or 'no parameters'}"


def _types_at(request: type[Request], path: str) -> list[inspect.Type]:
    kinds = [_type_info(request)]
    for step in path_steps(path):
        kinds = [part for kind in kinds for part in _parts(kind, step)]
    return [kind for part in kinds for kind in _alternative_types(part)]


def _parts(type_: inspect.Type, step: str | int) -> list[inspect.Type]:
    parts: list[inspect.Type] = []
    for kind in _alternative_types(type_):
        if isinstance(kind, inspect.StructType):
            parts += [field.type for field in kind.fields if field.encode_name == step]
        elif isinstance(kind, inspect.DictType):
            parts.append(kind.value_type)
        elif isinstance(kind, inspect.ListType):
            parts.append(kind.item_type)
    return parts


def nearest_name(word: str, names: Sequence[str]) -> str:
    """Return the name that a client most likely meant by another word; empty if none is near."""
    from difflib import get_close_matches  # only errors need it

    plain = _plain(word[:_LONGEST_NAME])
    by_plain = {_plain(name): name for name in names}
    for likely in (plain, *(candidate for group in _SYNONYMS if plain in group for candidate in group)):
        if likely in by_plain:
            return by_plain[likely]
    parts = [
        name for candidate, name in by_plain.items() if len(plain) > 1 and (plain in candidate or candidate in plain)
    ]
    return parts[0] if len(parts) == 1 else "".join(get_close_matches(word[:_LONGEST_NAME], names, 1))


def _plain(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()


def error_message(error: ArgumentError) -> str:
    """Return the message for arguments that cannot be decoded: the name of the field, and how to mend the call."""
    message, place = error.message.removeprefix("Object "), error.field
    if error.problem in {"missing", "unknown"}:
        place = error.field.rpartition(".")[0]
    at, hint = place and f" - at `{place}`", error.hint and f"; {error.hint}"
    return f"Invalid arguments: {message[:1].lower()}{message[1:]}{at}{hint}"


def error_place(error: msgspec.ValidationError) -> tuple[str, str]:
    """Return the path of the field that an error names, such as `scope.ids[0]`, and the message without it."""
    text = str(error)
    place = _PLACE.search(text)
    if place is None:
        return "", text
    return place[2], text[: place.start()] + (" as a key" if place[1] else "")


def allowed_values(schema: Schema, path: str) -> list[str]:
    values = [value for node in _nodes_at(schema, path) for value in node.get("enum", ())]
    return [str(value) for value in dict.fromkeys(values)]


def _choices(schema: Schema, path: str) -> str:
    """Return the end of a sentence that names the allowed values of a parameter; empty if it may be any text."""
    values = ", ".join(allowed_values(schema, path))
    others = [
        f", or a {kind}" for node in _nodes_at(schema, path) if (kind := node.get("type")) in {"number", "integer"}
    ]
    return f", choose from {values}{''.join(others)}" if values else ""


def _nodes_at(schema: Schema, path: str) -> list[Schema]:
    nodes = _alternatives(schema, schema)
    for step in path_steps(path):
        children = [child for node in nodes for child in _children(node, step)]
        nodes = [node for child in children for node in _alternatives(child, schema)]
    return nodes


def _description(schemas: Sequence[Schema], path: str) -> str:
    """Return the shape of a parameter in the first of some schemas, and its first description in any of them."""
    nodes, *others = (_nodes_at(schema, path) for schema in schemas)
    with_type = [node for node in nodes if "enum" in node or node.get("type", "null") != "null"]
    shape = " or ".join(dict.fromkeys(map(_shape, with_type)))
    described = [node for part in (nodes, *others) for node in part if "description" in node]
    about = str(described[0]["description"]) if described else ""
    sentence = _SENTENCE_END.split(about, 1)[0].removesuffix(".")[:_SHOWN_CHARS]
    return shape and f"expects {shape}{sentence and f' ({sentence})'}"


def _shape(node: Schema) -> str:
    if "enum" in node:
        return f"one of {', '.join(map(str, node['enum']))}"
    if node["type"] == "array":
        items = node.get("items", {})
        # `_complete` calls any values objects, for clients that want a type.
        is_any = items.get("type") == "object" and not items.get("properties")
        return "array" if is_any else f"array of {items.get('type', 'object')}"
    return f"object with {', '.join(node['properties'])}" if node.get("properties") else str(node["type"])


def path_steps(path: str) -> list[str | int]:
    """Return the names and positions of a path; the key of an object whose names are free is an empty name."""
    return [name or (int(at) if at.isdigit() else "") for name, at in _STEP.findall(path)]


def _alternatives(node: Schema, root: Schema) -> list[Schema]:
    """Return a schema without references, as the list of what may be there."""
    if "$ref" in node:
        return _alternatives(root["$defs"][str(node["$ref"]).removeprefix(PREFIX)], root)
    return [node, *(part for alternative in node.get("anyOf", ()) for part in _alternatives(alternative, root))]


def _children(node: Schema, step: str | int) -> list[Schema]:
    if isinstance(step, int):
        child = node.get("items")
    else:
        child = node.get("properties", {}).get(step) or node.get("additionalProperties")
    return [cast("Schema", child)] if isinstance(child, dict) else []


def json_terms(message: str) -> str:
    """Return a message of msgspec in the terms of JSON instead of those of Python and of regular expressions."""
    if (form := _FORM.fullmatch(message)) is not None:
        return _FORMS.get(form[1], "Expected `string` of another form")
    words = _TYPES.sub(lambda found: _JSON_TYPES[found[0]], message)
    return _WHOLE.sub(r"\1", words)
