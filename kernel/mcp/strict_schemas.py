"""Input schemas in the strict subset of JSON Schema that OpenAI takes for function calls with `strict: true`.

There each object requires all of its properties and takes no others, so null stands for an argument that is not given,
and an object of any keys is its JSON text, as `kernel.calls.arguments` reads both. The keywords of limits and defaults
are refused by some models, so the description states them.
"""

from typing import cast

import msgspec

from kernel.calls.tools import Schema

_KEPT = ("type", "description", "enum", "anyOf", "items")
_STATED = ("default", "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems")
_NULL: Schema = {"type": "null"}
_TEXT = "A JSON object as text."


def strict_schema(schema: Schema) -> Schema:
    """Return the schema of the same arguments in the strict subset; the schema has no references."""
    return _strict({**schema, "additionalProperties": False})


def _strict(schema: Schema) -> Schema:
    if schema.get("type") == "object" and not schema["properties"] and schema.get("additionalProperties") is not False:
        return {"type": "string", "description": " ".join(filter(None, (schema.get("description"), _TEXT)))}
    strict: Schema = {key: schema[key] for key in _KEPT if key in schema}
    if "anyOf" in strict:
        strict["anyOf"] = [_strict(choice) for choice in cast("list[Schema]", strict["anyOf"])]
    if "items" in strict:
        strict["items"] = _strict(strict["items"])
    if strict.get("type") == "object":
        required = schema.get("required", ())
        members = {name: _strict(part) for name, part in schema["properties"].items()}
        strict["properties"] = {n: part if n in required else _or_null(part) for n, part in members.items()}
        strict |= {"required": [*members], "additionalProperties": False}
    limits = [f"{key} {msgspec.json.encode(schema[key]).decode()}" for key in _STATED if schema.get(key) is not None]
    if limits:
        strict["description"] = " ".join(filter(None, (strict.get("description"), f"({', '.join(limits)})")))
    return strict


def _or_null(schema: Schema) -> Schema:
    choices = cast("list[Schema]", schema.get("anyOf", ()))
    if _NULL in choices:
        return schema
    if choices:
        return {**schema, "anyOf": [*choices, _NULL]}
    about: Schema = {key: schema[key] for key in ("description",) if key in schema}
    return {"anyOf": [{key: part for key, part in schema.items() if key not in about}, _NULL], **about}
