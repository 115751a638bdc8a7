"""The OpenAPI document is valid and agrees with the schemas of the tools."""

import re
from typing import Any

import msgspec
import pytest
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError

from handlers import files
from handlers.console.commands import COMMANDS
from kernel.calls.dialect import Dialect
from kernel.calls.tools import Hints, InputRequired, Interaction, Reply, Schema, Tool, read, write
from kernel.core.errors import HTTP_STATUS, Fault
from kernel.http.openapi import document
from kernel.server import app

SHARED = "#/components/schemas/"


class Kin(msgspec.Struct):
    name: str
    children: list["Kin"] = []


class Plant(msgspec.Struct, tag="plant", tag_field="action", forbid_unknown_fields=True):
    kin: Kin


class Fell(msgspec.Struct, tag="fell", tag_field="action", forbid_unknown_fields=True):
    name: str


class Empty(msgspec.Struct):
    pass


class Grown(msgspec.Struct):
    root: Kin


def tend(tx: Any, request: Plant | Fell) -> Grown:
    """Plants or fells."""
    return Grown(Kin("root"))


def look(tx: Any, request: Empty) -> str:
    """Describes the tree."""
    return "a tree"


def wish(tx: Any, request: Empty, turn: Interaction) -> Grown | InputRequired:
    """Asks first."""
    return InputRequired({})


def count(tx: Any, request: Empty) -> Grown:
    """Counts wishes."""
    return Grown(Kin("root"))


def rendered(tool: Tool, result: Any) -> Reply:
    return Reply(b"", "text/plain; charset=utf-8")


def worded(fault: Fault) -> Reply:
    return Reply(f"Error: {fault.message}".encode(), "text/plain; charset=utf-8", fault.code)


def encoded(tool: Tool, result: Any) -> Reply:
    return Reply(msgspec.json.encode(result), "application/json")


def denied(fault: Fault) -> Reply:
    return Reply(msgspec.json.encode({"error": fault.message}), "application/json", fault.code)


TREES = Dialect("trees", "Grows trees.", (write(tend, Hints(title="Tend")), read(look)), rendered, worded)
WISHES = Dialect("wishes", "Grants wishes.", (read(wish, interactive=True), read(count)), encoded, denied)
DOCUMENT = document((TREES, WISHES), "1.2.3")
FILES = document((files.DIALECT,), "1.2.3")
WHOLE = document(app.DIALECTS, "1.2.3", [*COMMANDS.values()])


def closed(needed: list[str], **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": needed, "additionalProperties": False}


def mapping(value: Any, names: str = ".*") -> dict[str, Any]:
    return {"type": "object", "propertyNames": {"pattern": names}, "additionalProperties": value}


TEXT = {"type": "string", "minLength": 1}
REFERENCE = closed(["$ref"], **{"$ref": {"type": "string", "pattern": "^#/components/"}})
SCHEMA = {"$ref": "https://json-schema.org/draft/2020-12/schema"}
MEDIA = mapping(closed(["schema"], schema=SCHEMA, examples=mapping(closed(["value"], value=True))), "^[a-z]+/[a-z.+-]+")
HEADER = closed(["schema"], description=TEXT, schema=SCHEMA)
RESPONSE = closed(["description", "content"], description=TEXT, content=MEDIA, headers=mapping(HEADER))
BODY = closed(["content"], required={"type": "boolean"}, content=MEDIA)
COMPONENT = "^[a-zA-Z0-9._-]+$"
PARAMETER = closed(
    ["name", "in", "required", "schema"],
    name=TEXT,
    description=TEXT,
    required={"type": "boolean"},
    schema=SCHEMA,
    **{"in": {"enum": ["path", "query"]}},
)
OPERATION = closed(
    ["operationId", "tags", "description", "responses"],
    operationId=TEXT,
    tags={"type": "array", "items": TEXT, "minItems": 1},
    summary=TEXT,
    description=TEXT,
    parameters={"type": "array", "items": PARAMETER, "minItems": 1},
    requestBody=BODY,
    responses=mapping({"anyOf": [RESPONSE, REFERENCE]}, "^([2-5][0-9][0-9]|default)$"),
)
# The part of the OpenAPI 3.1 specification that we use, with nothing beyond it allowed.
OPENAPI = closed(
    ["openapi", "info", "paths"],
    openapi={"const": "3.1.0"},
    info=closed(["title", "version"], title=TEXT, version=TEXT, summary=TEXT),
    tags={"type": "array", "items": closed(["name"], name=TEXT, description=TEXT)},
    paths=mapping(closed([], post=OPERATION, get=OPERATION, delete=OPERATION), "^/"),
    components=closed([], schemas=mapping(SCHEMA, COMPONENT), responses=mapping(RESPONSE, COMPONENT)),
)


def references(value: Any) -> list[str]:
    if isinstance(value, list):
        return [found for item in value for found in references(item)]
    if not isinstance(value, dict):
        return []
    own = [value["$ref"]] if isinstance(value.get("$ref"), str) else []
    return own + [found for item in value.values() for found in references(item)]


@pytest.mark.parametrize("made", [DOCUMENT, FILES, WHOLE])
def test_the_document_is_valid_openapi(made: Schema) -> None:
    Draft202012Validator(OPENAPI).validate(made)


@pytest.mark.parametrize("made", [DOCUMENT, FILES, WHOLE])
def test_every_reference_resolves_and_every_component_is_used(made: Schema) -> None:
    components = made["components"]
    named = {f"#/components/{kind}/{name}" for kind in components for name in components[kind]}
    # Only answers before a tool runs have the form "error".
    assert named - set(references(made)) <= {f"{SHARED}error"}
    assert set(references(made)) <= named


def test_every_rest_method_is_an_operation_whose_path_names_its_parameters() -> None:
    served = {
        (path, verb): [one["name"] for one in operation.get("parameters", ()) if one["in"] == "path"]
        for path, methods in FILES["paths"].items()
        for verb, operation in methods.items()
        if path != "/tools/memory"
    }
    assert served == {(one.path, one.verb.lower()): re.findall(r"\{(\w+)\}", one.path) for one in files.DIALECT.rest}


def test_rest_method_shows_its_arguments_result_and_errors() -> None:
    root = FILES["paths"]["/v1/memory_stores/{memory_store_id}/memories/{memory_id}"]
    store = {"name": "memory_store_id", "in": "path", "required": True, "description": "Id of the memory store"}
    memory = {"name": "memory_id", "in": "path", "required": True, "description": "Id of the memory"}
    digest = {"name": "expected_content_sha256", "in": "query", "required": False}
    about = "SHA-256 of the expected content, 64 lower-case hex digits"
    text = {"type": "string"}
    places = [{**store, "schema": text}, {**memory, "schema": text}]
    assert root["delete"] == {
        "operationId": "delete_stored_memory",
        "tags": ["files"],
        "description": "Delete a memory, if its content is still what is expected; its versions stay.",
        "parameters": [*places, {**digest, "schema": {**text, "pattern": "^[0-9a-f]{64}$"}, "description": about}],
        "responses": {
            "200": {
                "description": "The result of the method.",
                "content": {"application/json": {"schema": {"$ref": f"{SHARED}delete_stored_memory.output"}}},
            },
            "default": {"$ref": "#/components/responses/method.error"},
        },
    }
    assert root["post"]["parameters"] == places
    body = FILES["components"]["schemas"]["update_stored_memory.input"]
    assert list(body["properties"]) == ["content", "path", "precondition", "view"]
    assert body["required"] == []


def test_every_command_is_an_operation_with_its_body_and_a_line_of_its_answer() -> None:
    served = {path for path in WHOLE["paths"] if path.startswith("/memories/")}
    assert served == {f"/memories/{name}" for name in COMMANDS}
    operation, schemas = WHOLE["paths"]["/memories/erase"]["post"], WHOLE["components"]["schemas"]
    assert operation["description"].startswith("Forget memories by the tools of their dialects, erase their traces")
    assert schemas["memories.erase.input"]["required"] == ["ids"]
    told = ["memories", "audit", "at", "hash", "left", "copies", "mentions", "is_in_file"]
    assert [*schemas["memories.erase.output"]["properties"]] == told
    assert operation["responses"]["default"] == {"$ref": "#/components/responses/memories.error"}


def test_every_operation_has_an_id_of_its_own() -> None:
    assert [path["post"]["operationId"] for path in DOCUMENT["paths"].values()] == ["tend", "look", "wish", "count"]


def test_operation_shows_the_description_and_schemas_of_the_tool() -> None:
    responses = {str(status): f"#/components/responses/trees.{status}" for status in HTTP_STATUS.values()}
    responses |= {status: f"#/components/responses/edge.{status}" for status in ("413", "415", "421")}
    assert DOCUMENT["paths"]["/tools/tend"]["post"] == {
        "operationId": "tend",
        "tags": ["trees"],
        "summary": "Tend",
        "description": "Plants or fells.",
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": {"$ref": f"{SHARED}tend.input"}}},
        },
        "responses": {
            "200": {
                "description": "The reply of the tool.",
                "content": {
                    "text/plain; charset=utf-8": {"schema": {"type": "string"}},
                    "application/json": {"schema": {"$ref": f"{SHARED}tend.output"}},
                },
            },
            **{status: {"$ref": name} for status, name in responses.items()},
        },
    }


def test_error_response_shows_the_dialects_wording_of_each_code() -> None:
    assert DOCUMENT["components"]["responses"]["trees.503"] == {
        "description": "Too much work is waiting; try again.",
        "headers": {"Retry-After": {"description": "Seconds to wait.", "schema": {"type": "integer"}}},
        "content": {
            "text/plain; charset=utf-8": {
                "schema": {"type": "string"},
                "examples": {"busy": {"value": "Error: Too much work is waiting; try again."}},
            }
        },
    }
    assert DOCUMENT["components"]["responses"]["wishes.409"]["content"] == {
        "application/json": {
            "schema": {},
            "examples": {
                "conflict": {
                    "value": {"error": "It exists already, another caller holds it, or it changed meanwhile."}
                },
                "disabled": {"value": {"error": "This is switched off."}},
            },
        }
    }


def test_interactive_tool_documents_409() -> None:
    assert DOCUMENT["paths"]["/tools/wish"]["post"]["responses"]["409"] == {"$ref": "#/components/responses/edge.409"}


@pytest.mark.parametrize(
    ("name", "fits", "value"),
    [
        ("tend.input", True, {"action": "plant", "kin": {"name": "oak", "children": [{"name": "acorn"}]}}),
        ("tend.input", False, {"action": "plant", "kin": {"name": "oak", "children": [{}]}}),
        ("tend.input", False, {"action": "burn"}),
        ("tend.output", True, {"root": {"name": "oak"}}),
        ("tend.output", False, {}),
        ("error", True, {"error": {"code": "too_large", "message": "Body too large"}}),
    ],
)
def test_schema_accepts_what_the_decoder_accepts(name: str, fits: bool, value: Any) -> None:
    judge = Draft202012Validator({"$ref": f"{SHARED}{name}", "components": DOCUMENT["components"]})
    assert judge.is_valid(value) == fits


def test_validator_refuses_invalid_documents() -> None:
    with pytest.raises(ValidationError):
        Draft202012Validator(OPENAPI).validate({**DOCUMENT, "extra": 1})
