"""The dialect that the MCP conformance suite calls: its tools, resources, prompts and completions."""

import re
from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

from kernel.calls.dialect import Dialect, Offers
from kernel.calls.tools import (
    Hints,
    Interaction,
    Prompt,
    PromptArgument,
    PromptMessage,
    Reply,
    Resource,
    ResourceContents,
    Resources,
    ResourceTemplate,
    Tool,
    read,
)
from kernel.core.errors import Fault
from tests.contracts.conformance import asking
from tests.contracts.conformance.content import PNG, Block, Nothing, audio, embedded, image, text

PLAIN = "text/plain"
SHORT = Hints(short=True)
Blocks = list[Block]


class Regional(msgspec.Struct):
    """Arguments of which one travels in a header too."""

    region: Annotated[str, msgspec.Meta(extra_json_schema={"x-mcp-header": "Region"})]


class Person(msgspec.Struct):
    """The type that the hand-written schema below describes, as far as types go."""

    name: str = ""


CONTACT: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


def test_simple_text(tx: Any, request: Nothing) -> Blocks:
    """Answers with one line of text."""
    return [text("This is a simple text response for testing.")]


def test_image_content(tx: Any, request: Nothing) -> Blocks:
    """Answers with a picture of one pixel."""
    return [image()]


def test_audio_content(tx: Any, request: Nothing) -> Blocks:
    """Answers with a sound of one sample."""
    return [audio()]


def test_embedded_resource(tx: Any, request: Nothing) -> Blocks:
    """Answers with a resource in full."""
    return [embedded("test://embedded-resource", PLAIN, "This is an embedded resource content.")]


def test_multiple_content_types(tx: Any, request: Nothing) -> Blocks:
    """Answers with text, a picture and a resource."""
    mixed = embedded("test://mixed-content-resource", "application/json", '{"test":"data","value":123}')
    return [text("Multiple content types test:"), image(), mixed]


def test_error_handling(tx: Any, request: Nothing) -> Blocks:
    """Fails, always."""
    raise Fault("invalid", "This tool intentionally returns an error for testing")


def test_tool_with_progress(tx: Any, request: Nothing, turn: Interaction) -> Blocks:
    """Says three times how far it is."""
    for done in (0, 50, 100):
        turn.progress(done, 100, f"Completed step {done} of 100")
    return [text("Done.")]


def test_tool_with_logging(tx: Any, request: Nothing, turn: Interaction) -> Blocks:
    """Logs three lines while it works."""
    for line in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        turn.log("info", line)
    return [text("Logged.")]


def test_logging_tool(tx: Any, request: Nothing, turn: Interaction) -> Blocks:
    """Logs one line, for those who want to see it."""
    turn.log("info", "A line from the logging tool")
    return [text("Logged.")]


def json_schema_2020_12_tool(tx: Any, request: Person) -> Blocks:
    """Has a schema that uses most of JSON Schema 2020-12."""
    return [text(f"Contact of {request.name}")]


def test_header_tool(tx: Any, request: Regional) -> Blocks:
    """Takes an argument that a client repeats in a header."""
    return [text(f"Region {request.region}")]


def simple_prompt(tx: Any, arguments: Mapping[str, str]) -> list[PromptMessage]:
    return [PromptMessage("user", text("This is a simple prompt for testing."))]


def prompt_with_arguments(tx: Any, arguments: Mapping[str, str]) -> list[PromptMessage]:
    content = f"Prompt with arguments: arg1='{arguments['arg1']}', arg2='{arguments['arg2']}'"
    return [PromptMessage("user", text(content))]


def prompt_with_embedded_resource(tx: Any, arguments: Mapping[str, str]) -> list[PromptMessage]:
    resource = embedded(arguments["resourceUri"], PLAIN, "Embedded resource content for testing.")
    return [PromptMessage("user", resource), PromptMessage("user", text("Please process the embedded resource above."))]


def prompt_with_image(tx: Any, arguments: Mapping[str, str]) -> list[PromptMessage]:
    return [PromptMessage("user", image()), PromptMessage("user", text("Please analyze the image above."))]


PROMPTS = (
    Prompt("test_simple_prompt", "A prompt without arguments.", simple_prompt),
    Prompt(
        "test_prompt_with_arguments",
        "A prompt with two arguments.",
        prompt_with_arguments,
        (PromptArgument("arg1", "The first.", required=True), PromptArgument("arg2", "The second.", required=True)),
    ),
    Prompt(
        "test_prompt_with_embedded_resource",
        "A prompt that carries a resource.",
        prompt_with_embedded_resource,
        (PromptArgument("resourceUri", "The URI that the resource shall have.", required=True),),
    ),
    Prompt("test_prompt_with_image", "A prompt that carries a picture.", prompt_with_image),
    asking.PROMPT,
)

STATIC: dict[str, tuple[Resource, str | bytes]] = {
    resource.uri: (resource, data)
    for resource, data in (
        (
            Resource("test://static-text", "static-text", about="A text that never changes.", media=PLAIN),
            "This is the content of the static text resource.",
        ),
        (Resource("test://static-binary", "static-binary", about="One pixel.", media="image/png"), PNG),
        (Resource("test://watched-resource", "watched-resource", about="Worth watching.", media=PLAIN), "Unchanged."),
    )
}
_TEMPLATED = re.compile(r"test://template/([^/]+)/data")


def page(tx: Any, cursor: str | None) -> tuple[list[Resource], str | None]:
    return [resource for resource, _ in STATIC.values()], None


def resource_contents(tx: Any, uri: str) -> list[ResourceContents] | None:
    if uri in STATIC:
        resource, data = STATIC[uri]
        return [ResourceContents(uri, resource.media, data)]
    match = _TEMPLATED.fullmatch(uri)
    if match is None:
        return None
    value = {"id": match[1], "templateTest": True, "data": f"Data for ID: {match[1]}"}
    return [ResourceContents(uri, "application/json", msgspec.json.encode(value).decode())]


RESOURCES = Resources(
    "test://",
    page,
    resource_contents,
    (ResourceTemplate("test://template/{id}/data", "template-data", about="Data by id.", media="application/json"),),
)


def complete(tx: Any, ref: str, argument: str, value: str, known: Mapping[str, str]) -> list[str]:
    offered = {"arg1": ("testValue1", "test value"), "arg2": ("testValue2",)}
    return [word for word in offered.get(argument, ()) if word.startswith(value)]


def reply(tool: Tool, result: Blocks) -> Reply:
    words = "\n".join(block["text"] for block in result if block["type"] == "text")
    return Reply(words.encode(), PLAIN, content=msgspec.json.encode(result))


def fail(fault: Fault) -> Reply:
    return Reply(fault.message.encode(), PLAIN, fault.code)


# The suite calls the first tool without arguments.
TOOLS: tuple[Tool, ...] = (
    *(
        read(handler, SHORT)
        for handler in (
            test_simple_text,
            test_image_content,
            test_audio_content,
            test_embedded_resource,
            test_multiple_content_types,
            test_error_handling,
            test_header_tool,
        )
    ),
    *(
        read(handler, interactive=True)
        for handler in (test_tool_with_progress, test_tool_with_logging, test_logging_tool)
    ),
    read(json_schema_2020_12_tool, SHORT, input=CONTACT),
    *asking.TOOLS,
)
DIALECT = Dialect(
    "fixture",
    "Answers as the conformance suite expects.",
    TOOLS,
    reply,
    fail,
    offers=Offers(RESOURCES, PROMPTS, complete),
)
