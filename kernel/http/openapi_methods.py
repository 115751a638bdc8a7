"""The REST methods of a dialect as paths of the OpenAPI document."""

import re
from collections.abc import Callable

from kernel.calls.dialect import Dialect, RestMethod
from kernel.calls.schema import input_schema, output_schema
from kernel.calls.tools import Schema

ERROR = "method.error"
_JSON = "application/json"
_PARAMETER = re.compile(r"\{(\w+)\}")

_TEXT: Schema = {"type": "string"}
_INNER: Schema = {
    "type": "object",
    "properties": {"type": _TEXT, "message": _TEXT},
    "required": ["type", "message"],
}
_WHOLE: Schema = {
    "type": "object",
    "properties": {"type": {"const": "error"}, "error": _INNER, "request_id": _TEXT},
    "required": ["type", "error", "request_id"],
}
ERROR_RESPONSE: Schema = {"description": "The method failed.", "content": {_JSON: {"schema": _WHOLE}}}

Share = Callable[[Schema, str], Schema]  # moves a schema among the components under a name, and returns its reference


def method_paths(dialect: Dialect, share: Share) -> Schema:
    """Return one path for each address of `dialect.rest`, with an operation for each of its methods."""
    paths: Schema = {}
    for method in dialect.rest:
        paths.setdefault(method.path, {})[method.verb.lower()] = _operation(dialect, method, share)
    return paths


def _operation(dialect: Dialect, method: RestMethod, share: Share) -> Schema:
    tool, result = method.tool, output_schema(method.tool)
    operation: Schema = {"operationId": _name(method), "tags": [dialect.name], "description": tool.description}
    operation.update(_posted(method, share) if method.verb == "POST" else _queried(method))
    answer: Schema = {"description": "The result of the method.", "content": {_JSON: {"schema": {}}}}
    if result is not None:
        answer["content"] = {_JSON: {"schema": share(result, f"{_name(method)}.output")}}
    operation["responses"] = {"200": answer, "default": {"$ref": f"#/components/responses/{ERROR}"}}
    return operation


def _name(method: RestMethod) -> str:
    """Return the name of its tool, as the names of components allow it."""
    return method.tool.name.replace(" ", "_")


def _queried(method: RestMethod) -> Schema:
    """Return the arguments of a method without a body."""
    arguments = input_schema(method.tool)
    path, required = _PARAMETER.findall(method.path), arguments["required"]
    return {
        "parameters": [
            _parameter(name, "path" if name in path else "query", schema, required=name in required)
            for name, schema in arguments["properties"].items()
        ]
    }


def _posted(method: RestMethod, share: Share) -> Schema:
    """Return the arguments of a method with a body."""
    arguments = input_schema(method.tool)
    fields, path = arguments["properties"], _PARAMETER.findall(method.path)
    posted: Schema = {}
    if path:
        posted["parameters"] = [_parameter(name, "path", fields[name], required=True) for name in path]
    if body := {name: schema for name, schema in fields.items() if name not in path}:
        required = [name for name in arguments["required"] if name in body]
        shared = share({**arguments, "properties": body, "required": required}, f"{_name(method)}.input")
        posted["requestBody"] = {"required": bool(required), "content": {_JSON: {"schema": shared}}}
    return posted


def _parameter(name: str, place: str, schema: Schema, *, required: bool) -> Schema:
    """Return a parameter of the path or the query, if an absent value is null."""
    shape = schema if schema.get("default", "") is not None else schema["anyOf"][0]
    about = shape.get("description")
    parameter: Schema = {"name": name, "in": place, "required": required}
    parameter["schema"] = {key: value for key, value in shape.items() if key != "description"}
    return {**parameter, "description": about} if about else parameter
