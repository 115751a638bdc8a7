"""Limits on requests as data, and the checks that the HTTP and MCP edges run before they parse."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from kernel.core.lazy_regex import regex

if TYPE_CHECKING:  # the commands import this module, and most of them need no HTTP
    from starlette.types import Message, Receive

Header = tuple[bytes, bytes]
Headers = Mapping[bytes, bytes]

LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
UPLOAD_PATH, UPLOAD_BYTES = b"/ui/do/import", 64 << 20  # the form with a file, which may be longer than other bodies
BYTES_PER_SECOND = 65536  # the slowest transfer of a body or answer, after a fixed time
PREFIX = "QUIPU_LIMIT_"
MISDIRECTED = 421  # the status for a Host header that is not ours
_AUTHORITY = regex(r"(\[[0-9a-f:.]+\]|[^\[\]:@/?#\s]+?)\.?(?::(\d{1,5}))?")
_ORIGIN = regex(r"(https?)://(.+)")
# Headers that RFC 9110 allows once; more than one lets two readers of a request disagree on it.
_SINGLE = (b"host", b"origin", b"content-type", b"content-length", b"content-encoding", b"authorization", b"x-api-key")


class CallLimits(NamedTuple):
    """Limits of one call: milliseconds of processor time, bytes of a value in the store, bytes of an answer."""

    milliseconds: int = 1000
    value: int = 64 * 1024 * 1024
    answer: int = 32 * 1024 * 1024


class Limits(NamedTuple):
    """Sizes in bytes, times in seconds, counts, and the accepted hosts and origins; `BOUNDS` describes each.

    `hosts` and `origins` hold names, with or without a port (a name alone means any port), or "*"; `origins` may
    hold whole origins too, such as `https://app.example`. All others are refused.
    """

    body: int = 4 * 1024 * 1024
    body_seconds: int = 10
    header_bytes: int = 16 * 1024
    header_count: int = 100
    header_seconds: int = 5
    silent_seconds: int = 10
    idle_seconds: int = 75
    stall_seconds: int = 10
    connections: int = 10_000
    address_connections: int = 0
    depth: int = 64
    values: int = 50_000
    rate: int = 100
    burst: int = 200
    store_milliseconds: int = CallLimits().milliseconds
    store_value: int = CallLimits().value
    answer: int = CallLimits().answer
    unsent: int = 64 * 1024 * 1024
    queued: int = 64 * 1024 * 1024
    hosts: frozenset[str] = LOOPBACK
    origins: frozenset[str] = LOOPBACK

    @property
    def engine(self) -> CallLimits:
        return CallLimits(self.store_milliseconds, self.store_value, self.answer)

    @property
    def connections_of_an_address(self) -> int:
        return self.address_connections or max(1, self.connections // 2)


class LimitRange(NamedTuple):
    """The range of a number in `Limits`, the thing that it limits, and the consequence of exceeding it."""

    low: int
    high: int
    about: str
    on_excess: str


BOUNDS: Mapping[str, LimitRange] = {
    "body": LimitRange(1024, 1 << 30, "bytes of a body", "413, before it is parsed"),
    "body_seconds": LimitRange(1, 3600, "seconds a body may take, and one more for each 64 KiB", "408"),
    "header_bytes": LimitRange(1024, 1 << 20, "bytes of names and values of the headers", "431"),
    "header_count": LimitRange(10, 10_000, "headers", "431"),
    "header_seconds": LimitRange(1, 3600, "seconds from the first byte of a request to the end of its headers", "408"),
    "silent_seconds": LimitRange(1, 3600, "seconds a new connection may say nothing", "closed"),
    "idle_seconds": LimitRange(1, 86_400, "seconds a connection stays open after an answer", "closed"),
    "stall_seconds": LimitRange(
        1, 3600, "seconds an answer may wait to be taken, and one more for each 64 KiB", "closed"
    ),
    "connections": LimitRange(1, 1_000_000, "connections at once, less if the system allows less", "503"),
    "address_connections": LimitRange(
        0, 1_000_000, "connections at once of one address; 0 for half of all, which leaves room for others", "503"
    ),
    "depth": LimitRange(8, 512, "levels that JSON may nest", "400"),
    "values": LimitRange(1000, 10_000_000, "values in one JSON text, of 25 digits on average at most", "400"),
    "rate": LimitRange(0, 1_000_000, "requests a second of one key, or of one address without a key; 0 for any", "429"),
    "burst": LimitRange(1, 1_000_000, "requests at once after a quiet time", "429"),
    "store_milliseconds": LimitRange(
        10,
        3_600_000,
        "milliseconds of processor time of a call in the store, 60 times that for an import or a purge",
        "400",
    ),
    "store_value": LimitRange(32 << 20, 1_000_000_000, "bytes of one value in the store", "400"),
    "answer": LimitRange(1 << 16, 1 << 30, "bytes of one answer of a tool", "400"),
    "unsent": LimitRange(
        1 << 20,
        1 << 40,
        "bytes of all answers that wait to be taken, but at least two of the largest",
        "the slowest clients are closed",
    ),
    "queued": LimitRange(
        1 << 20,
        1 << 40,
        "bytes of all calls that wait to write, of those that wait to read, and of bodies that are coming, but at "
        "least two of the largest",
        "503 `busy`, the slowest bodies 408",
    ),
}


class Refusal(NamedTuple):
    """The HTTP status of a refused request, and the reason for the caller."""

    status: int
    reason: str


def refuse(raw: Sequence[Header], headers: Headers, limits: Limits) -> Refusal | None:
    """Return the refusal of a request by its headers, or None; `headers` is `dict(raw)`."""
    if len(raw) > limits.header_count or weight(raw) > limits.header_bytes:
        return Refusal(431, "Headers too large")
    if len(headers) != len(raw) and any(name in _SINGLE for name in repeated(raw)):
        return Refusal(400, "A header that may appear once appears more than once")
    origin = headers.get(b"origin")
    if origin is not None and not origin_allowed(origin, limits.origins):
        return Refusal(403, "Origin not allowed: QUIPU_ALLOWED_ORIGINS adds names")
    if not host_allowed(headers.get(b"host", b""), limits.hosts):
        return Refusal(MISDIRECTED, "Host not allowed: QUIPU_ALLOWED_HOSTS adds names")
    return None


def refuse_body(headers: Headers, limits: Limits) -> Refusal | None:
    """Return the refusal of a body by its headers, or None: it must be JSON, not compressed, and not declared
    too long.
    """
    if not is_json(headers.get(b"content-type", b"")):
        return Refusal(415, "Content-Type must be application/json")
    if headers.get(b"content-encoding", b"identity").strip().lower() != b"identity":
        return Refusal(415, "Content-Encoding is not supported")
    length = headers.get(b"content-length", b"").strip()
    if length.isdigit() and (len(length) > 18 or int(length) > limits.body):
        return Refusal(413, f"Body too large, at most {limits.body} bytes")
    return None


def weight(raw: Iterable[Header]) -> int:
    """Return the bytes of all names and values."""
    return sum([len(name) + len(value) for name, value in raw])


def repeated(raw: Iterable[Header]) -> set[bytes]:
    names: set[bytes] = set()
    twice: set[bytes] = set()
    for name, _ in raw:
        (twice if name in names else names).add(name)
    return twice


def host_allowed(value: bytes, names: frozenset[str]) -> bool:
    return "*" in names or _named(value.strip().decode("latin-1").lower(), names)


def origin_allowed(value: bytes, names: frozenset[str]) -> bool:
    """Return whether an Origin header names an allowed origin; `null` never does."""
    if "*" in names:
        return True
    origin = value.strip().decode("latin-1").lower()
    parts = _ORIGIN.fullmatch(origin)
    whole = "://" in origin and origin in names
    return whole or (parts is not None and _named(parts[2], names))


def is_json(value: bytes) -> bool:
    return value.partition(b";")[0].strip().lower() == b"application/json"


def accepts(headers: Headers, media: bytes) -> bool:
    """Return whether the Accept header, if there is one, accepts a media type."""
    accept = headers.get(b"accept", b"*/*").lower().split(b",")
    types = {part.partition(b";")[0].strip() for part in accept}
    return not types.isdisjoint((media, media.partition(b"/")[0] + b"/*", b"*/*"))


async def read_body(receive: "Receive", limit: int) -> bytes | None:
    """Return the whole body, or None if it exceeds `limit` or the client has disconnected or was too slow."""
    message = await receive()
    if not message.get("more_body", False) and message["type"] == "http.request":
        body: bytes = message.get("body", b"")
        return body if len(body) <= limit else None
    return await read_on(receive, message, limit)


async def read_on(receive: "Receive", message: "Message", limit: int) -> bytes | None:
    """Return `read_body` for a caller that has received the first message; None too if memory does not suffice."""
    parts = await _parts(receive, message, limit)
    with suppress(MemoryError):
        return None if parts is None else bytes(parts)
    return None


async def read_large(receive: "Receive", limit: int) -> bytearray | None:
    """Return `read_body` without a copy."""
    return await _parts(receive, await receive(), limit)


async def _parts(receive: "Receive", message: "Message", limit: int) -> bytearray | None:
    parts = bytearray()
    with suppress(MemoryError):
        while message["type"] == "http.request":
            parts += message.get("body", b"")
            if len(parts) > limit:
                return None
            if not message.get("more_body", False):
                return parts
            message = await receive()
    return None


def _named(authority: str, names: frozenset[str]) -> bool:
    parts = _AUTHORITY.fullmatch(authority)
    if parts is None:
        return False
    name, port = parts[1], parts[2]
    return name in names or (port is not None and f"{name}:{port}" in names)
