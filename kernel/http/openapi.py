"""The tools and REST methods as an OpenAPI 3.1 document, made from the schemas of the tools."""

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

import msgspec

from kernel.calls.dialect import Dialect, RestMethod
from kernel.calls.schema import input_schema, output_schema
from kernel.calls.tools import Schema, Tool
from kernel.core.errors import HTTP_STATUS, Code, Fault

_JSON, _LINES = "application/json", "application/x-ndjson"
_LOCAL = "#/$defs/"
_SHARED = "#/components/schemas/"
_ERROR_REF = f"{_SHARED}error"
_MEANING: dict[Code, str] = {
    "invalid": "The arguments are wrong; the message names the field.",
    "not_found": "What the arguments name does not exist.",
    "conflict": "It exists already, another caller holds it, or it changed meanwhile.",
    "blocked": "The content is refused.",
    "disabled": "This is switched off.",
    "busy": "Too much work is waiting; try again.",
    "storage": "The store cannot be written.",
    "internal": "A bug of the server; the log has the details.",
}
# Errors outside of any dialect, before a tool runs.
_HTTP_MEANING = {
    "409": "The tool requires input that only an MCP client can provide.",
    "413": "The body is over the limit.",
    "415": "The body is not declared as JSON.",
    "421": "The Host header names another server.",
}
_RETRY: Schema = {"Retry-After": {"description": "Seconds to wait.", "schema": {"type": "integer"}}}
_ERROR: Schema = {
    "type": "object",
    "properties": {
        "error": {
            "type": "object",
            "properties": {
                "code": {"type": "string"},
                "message": {"type": "string"},
                "inputs": {"type": "object", "additionalProperties": {"type": "object"}},
            },
            "required": ["code", "message"],
        }
    },
    "required": ["error"],
}

_METHOD_FAILED, _COMMAND_FAILED = "method.error", "memories.error"
_MEMORIES = "memories"
_PARAMETER = re.compile(r"\{(\w+)\}")

_TEXT: Schema = {"type": "string"}
_METHOD_ERROR: Schema = {
    "type": "object",
    "properties": {"type": _TEXT, "message": _TEXT},
    "required": ["type", "message"],
}
_METHOD_FAILURE: Schema = {
    "type": "object",
    "properties": {"type": {"const": "error"}, "error": _METHOD_ERROR, "request_id": _TEXT},
    "required": ["type", "error", "request_id"],
}
_METHOD_ERROR_RESPONSE: Schema = {"description": "The method failed.", "content": {_JSON: {"schema": _METHOD_FAILURE}}}

Share = Callable[[Schema, str], Schema]  # moves a schema among the components under a name, and returns its reference


def document(dialects: Sequence[Dialect], version: str, commands: Sequence[Tool] = ()) -> Schema:
    """Return the whole document: one POST path per tool and command, the REST methods, one set of error responses per
    dialect.
    """
    schemas: Schema = {"error": _ERROR}
    responses: Schema = {
        _METHOD_FAILED: _METHOD_ERROR_RESPONSE,
        **{f"edge.{status}": _http_response(about) for status, about in _HTTP_MEANING.items()},
    }
    paths: Schema = {}
    for dialect in dialects:
        responses.update(_fault_responses(dialect))
        for tool in dialect.tools:
            paths[f"/tools/{tool.name}"] = {"post": _operation(dialect, tool, schemas)}
        paths.update(_method_paths(dialect, partial(_share, schemas=schemas)))
    tags = [{"name": dialect.name, "description": dialect.about} for dialect in dialects]
    if commands:
        tags.append({"name": _MEMORIES, "description": "The commands for memories, as on the command line."})
        responses[_COMMAND_FAILED] = _http_response("The command failed; the message says why.")
        paths.update((f"/memories/{command.name}", {"post": _command(command, schemas)}) for command in commands)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Quipu", "version": version, "summary": "A memory server for AI agents."},
        "tags": tags,
        "paths": paths,
        "components": {"schemas": schemas, "responses": _used(responses, paths)},
    }


def _command(command: Tool, schemas: Schema) -> Schema:
    name = f"{_MEMORIES}.{command.name}"
    arguments, line = input_schema(command), output_schema(command) or {}
    body: Schema = {_JSON: {"schema": _share(arguments, f"{name}.input", schemas)}}
    answer: Schema = {_LINES: {"schema": _share(line, f"{name}.output", schemas)}}
    return {
        "operationId": name,
        "tags": [_MEMORIES],
        "description": command.description,
        "requestBody": {"required": bool(arguments.get("required")), "content": body},
        "responses": {
            "200": {"description": "One object a line.", "content": answer},
            "default": {"$ref": f"#/components/responses/{_COMMAND_FAILED}"},
        },
    }


def _operation(dialect: Dialect, tool: Tool, schemas: Schema) -> Schema:
    arguments = input_schema(tool)
    body = {
        "required": bool(arguments.get("required")),
        "content": {_JSON: {"schema": _share(arguments, f"{tool.name}.input", schemas)}},
    }
    operation = {
        "operationId": tool.name,
        "tags": [dialect.name],
        "description": tool.description,
        "requestBody": body,
        "responses": {"200": _success(dialect, tool, schemas), **_refusals(dialect, tool)},
    }
    return {**operation, "summary": tool.hints.title} if tool.hints.title else operation


def _success(dialect: Dialect, tool: Tool, schemas: Schema) -> Schema:
    result = output_schema(tool)
    media = dialect.fail(Fault("internal", "")).media
    content: Schema = {} if media == _JSON else {media: {"schema": {"type": "string"}}}
    if result is not None:
        content[_JSON] = {"schema": _share(result, f"{tool.name}.output", schemas)}
    return {"description": "The reply of the tool.", "content": content or {_JSON: {"schema": {}}}}


def _share(schema: Schema, name: str, schemas: Schema) -> Schema:
    """Moves a schema and its `$defs` among the components, since `#/$defs` means nothing inside the document."""
    unique = _renamed(schema, name)
    for part, shape in unique.pop("$defs", {}).items():
        schemas[f"{name}.{part}"] = shape
    schemas[name] = unique
    return {"$ref": f"{_SHARED}{name}"}


def _renamed(value: Any, name: str) -> Any:
    if isinstance(value, list):
        return [_renamed(item, name) for item in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    copy: Schema = {key: _renamed(item, name) for key, item in cast("Schema", value).items()}
    target = copy.get("$ref")
    if isinstance(target, str) and target.startswith(_LOCAL):
        copy["$ref"] = f"{_SHARED}{name}.{target.removeprefix(_LOCAL)}"
    return copy


def _refusals(dialect: Dialect, tool: Tool) -> Schema:
    owners = {str(HTTP_STATUS[code]): dialect.name for code in _MEANING}
    owners.update({status: "edge" for status in _HTTP_MEANING if tool.interactive or status not in owners})
    return {status: {"$ref": f"#/components/responses/{owners[status]}.{status}"} for status in sorted(owners)}


def _used(responses: Schema, paths: Schema) -> Schema:
    operations = [operation for path in paths.values() for operation in path.values()]
    names = {answer.get("$ref") for operation in operations for answer in operation["responses"].values()}
    return {name: response for name, response in responses.items() if f"#/components/responses/{name}" in names}


def _fault_responses(dialect: Dialect) -> Schema:
    by_status: dict[int, list[Code]] = {}
    for code in _MEANING:
        by_status.setdefault(HTTP_STATUS[code], []).append(code)
    return {f"{dialect.name}.{status}": _fault_response(dialect, codes) for status, codes in by_status.items()}


def _fault_response(dialect: Dialect, codes: Sequence[Code]) -> Schema:
    content: Schema = {}
    for code in codes:
        reply = dialect.fail(Fault(code, _MEANING[code]))
        plain = reply.media == _JSON
        shape: Schema = {"schema": {} if plain else {"type": "string"}, "examples": {}}
        entry: Schema = content.setdefault(reply.media, shape)
        entry["examples"][code] = {"value": msgspec.json.decode(reply.body) if plain else reply.body.decode()}
    response: Schema = {"description": " ".join(_MEANING[code] for code in codes), "content": content}
    return {**response, "headers": _RETRY} if "busy" in codes else response


def _http_response(about: str) -> Schema:
    return {"description": about, "content": {_JSON: {"schema": {"$ref": _ERROR_REF}}}}


def _method_paths(dialect: Dialect, share: Share) -> Schema:
    """Return one path for each address of `dialect.rest`, with an operation for each of its methods."""
    paths: Schema = {}
    for method in dialect.rest:
        paths.setdefault(method.path, {})[method.verb.lower()] = _method_operation(dialect, method, share)
    return paths


def _method_operation(dialect: Dialect, method: RestMethod, share: Share) -> Schema:
    tool, result = method.tool, output_schema(method.tool)
    operation: Schema = {"operationId": _method_name(method), "tags": [dialect.name], "description": tool.description}
    operation.update(_posted(method, share) if method.verb == "POST" else _queried(method))
    answer: Schema = {"description": "The result of the method.", "content": {_JSON: {"schema": {}}}}
    if result is not None:
        answer["content"] = {_JSON: {"schema": share(result, f"{_method_name(method)}.output")}}
    operation["responses"] = {"200": answer, "default": {"$ref": f"#/components/responses/{_METHOD_FAILED}"}}
    return operation


def _method_name(method: RestMethod) -> str:
    return method.tool.name.replace(" ", "_")


def _queried(method: RestMethod) -> Schema:
    arguments = input_schema(method.tool)
    path, required = _PARAMETER.findall(method.path), arguments["required"]
    return {
        "parameters": [
            _parameter(name, "path" if name in path else "query", schema, required=name in required)
            for name, schema in arguments["properties"].items()
        ]
    }


def _posted(method: RestMethod, share: Share) -> Schema:
    arguments = input_schema(method.tool)
    fields, path = arguments["properties"], _PARAMETER.findall(method.path)
    parts: Schema = {}
    if path:
        parts["parameters"] = [_parameter(name, "path", fields[name], required=True) for name in path]
    if body := {name: schema for name, schema in fields.items() if name not in path}:
        required = [name for name in arguments["required"] if name in body]
        reference = share({**arguments, "properties": body, "required": required}, f"{_method_name(method)}.input")
        parts["requestBody"] = {"required": bool(required), "content": {_JSON: {"schema": reference}}}
    return parts


def _parameter(name: str, place: str, schema: Schema, *, required: bool) -> Schema:
    shape = schema if schema.get("default", "") is not None else schema["anyOf"][0]
    about = shape.get("description")
    parameter: Schema = {"name": name, "in": place, "required": required}
    parameter["schema"] = {key: value for key, value in shape.items() if key != "description"}
    return {**parameter, "description": about} if about else parameter
