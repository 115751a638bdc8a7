"""The protocol as tables: versions, eras, methods, error codes and log levels."""

from typing import Literal, NamedTuple, get_args

HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN_VERSIONS = ("2026-07-28",)
# The version that `initialize` answers with if it does not know the requested one.
COUNTER_OFFER = HANDSHAKE_VERSIONS[-1]

VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
CLIENT_KEY = "io.modelcontextprotocol/clientInfo"
LEVEL_KEY = "io.modelcontextprotocol/logLevel"
SERVER_KEY = "io.modelcontextprotocol/serverInfo"

LISTEN = "subscriptions/listen"

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
RESOURCE_NOT_FOUND = -32002
HEADER_MISMATCH = -32020
MISSING_CAPABILITY = -32021
UNSUPPORTED_VERSION = -32022

Level = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
LEVELS: dict[str, int] = {level: number for number, level in enumerate(get_args(Level))}

# No caching fields; the same for all callers; the same for callers with this key; may change at any time.
Cache = Literal["", "static", "own", "fresh"]
CACHES: dict[Cache, dict[str, int | str]] = {
    "": {},
    "static": {"ttlMs": 3_600_000, "cacheScope": "public"},
    "own": {"ttlMs": 3_600_000, "cacheScope": "private"},
    "fresh": {"ttlMs": 0, "cacheScope": "private"},
}


class Era(NamedTuple):
    """A generation of the protocol: its versions, its HTTP status by error code, its code for a missing resource."""

    name: Literal["legacy", "modern"]
    versions: tuple[str, ...]
    http: dict[int, int]
    resource_missing: int


LEGACY = Era(
    "legacy", HANDSHAKE_VERSIONS, {PARSE_ERROR: 400, INVALID_REQUEST: 400, HEADER_MISMATCH: 400}, RESOURCE_NOT_FOUND
)
MODERN = Era(
    "modern",
    MODERN_VERSIONS,
    {
        PARSE_ERROR: 400,
        INVALID_REQUEST: 400,
        METHOD_NOT_FOUND: 404,
        INVALID_PARAMS: 400,
        HEADER_MISMATCH: 400,
        MISSING_CAPABILITY: 400,
        UNSUPPORTED_VERSION: 400,
    },
    INVALID_PARAMS,
)

Capability = Literal["", "tools", "resources", "prompts", "completions", "logging", "skills"]


class Method(NamedTuple):
    """A method: the eras that have it, the capability it belongs to, how its result may be cached.

    `named` is the parameter that the Mcp-Name header repeats.
    """

    name: str
    eras: tuple[Era, ...]
    needs: Capability = ""
    cache: Cache = ""
    named: Literal["", "name", "uri"] = ""


_BOTH = (LEGACY, MODERN)

METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method("tools/call", _BOTH, "tools", named="name"),
        Method("tools/list", _BOTH, "tools", "static"),
        Method("server/discover", (MODERN,), cache="static"),
        Method("initialize", (LEGACY,)),
        Method("ping", (LEGACY,)),
        Method("logging/setLevel", (LEGACY,), "logging"),
        Method("resources/list", _BOTH, "resources", "fresh"),
        Method("resources/templates/list", _BOTH, "resources", "static"),
        Method("resources/read", _BOTH, "resources", "fresh", "uri"),
        Method("resources/subscribe", (LEGACY,), "resources"),
        Method("resources/unsubscribe", (LEGACY,), "resources"),
        Method(LISTEN, (MODERN,), "resources"),
        Method("skills/list", _BOTH, "skills", "static"),
        Method("skills/get", _BOTH, "skills", "static"),
        Method("prompts/list", _BOTH, "prompts", "static"),
        Method("prompts/get", _BOTH, "prompts", named="name"),
        Method("completion/complete", _BOTH, "completions"),
    )
}


def knows(era: Era, method: str) -> bool:
    return method in METHODS and era in METHODS[method].eras
