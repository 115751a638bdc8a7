"""The routing headers of the modern era, which must match the body, since proxies route by them."""

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from kernel.calls.tools import Schema
from kernel.core.lazy_regex import regex
from kernel.core.limits import Header, Headers, repeated
from kernel.mcp.messages import Call, HeaderParam, Params, ProtocolError
from kernel.mcp.protocol import HEADER_MISMATCH, METHODS

VERSION = b"mcp-protocol-version"
METHOD = b"mcp-method"
NAME = b"mcp-name"
_PARAM = "mcp-param-"
_ANNOTATION = "x-mcp-header"
_BLANKS = b" \t"
_WRAPPED = regex(r"=\?base64\?(.*)\?=")
_TOKEN = regex(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_DECIMAL = regex(r"(-?[0-9]{1,400})(?:\.0+)?")
_NAMED = {method.name: method.named for method in METHODS.values() if method.named}
_SCALARS = ("string", "integer", "boolean")


def check_single(raw: Sequence[Header], header_params: Sequence[HeaderParam] = ()) -> None:
    """Raises ProtocolError for a repeated routing header: a proxy could read the one copy and the server the other."""
    names = repeated(raw).intersection((VERSION, METHOD, NAME, *(param.header for param in header_params)))
    if names:
        raise _mismatch(min(names).decode(), "appears more than once")


def check(headers: Headers, method: str, params: Params, header_params: Sequence[HeaderParam] = ()) -> None:
    """Raises ProtocolError if Mcp-Method, Mcp-Name or an Mcp-Param header is missing or differs from the body."""
    header = headers.get(METHOD)
    if header != method.encode() and (header is None or header.strip(_BLANKS) != method.encode()):
        raise _mismatch("mcp-method", "does not match the method of the body")
    field = _NAMED.get(method)
    if field is not None:
        name: str | None = getattr(params, field, None)
        header = headers.get(NAME)
        if name is not None and not (header == name.encode() and name.isascii()) and unwrap(header) != name:
            raise _mismatch("mcp-name", f"does not match params.{field} of the body")
    if header_params and isinstance(params, Call):
        _check_arguments(headers, params, header_params)


def header_params(schema: Schema) -> tuple[HeaderParam, ...]:
    """Return the annotated arguments of an input schema; none if an annotation is invalid, since clients reject
    those.
    """
    collected: list[HeaderParam] = []
    waiting: list[tuple[tuple[str, ...], Schema]] = [((), schema)]
    for path, here in waiting:  # grows during the loop
        token = here.get(_ANNOTATION)
        if token is not None:
            if not path or not _valid(token, here):
                return ()
            collected.append(HeaderParam(path, f"{_PARAM}{token}".lower().encode(), here["type"]))
        waiting.extend(((*path, name), part) for name, part in here.get("properties", {}).items())
    return tuple(collected) if len({param.header for param in collected}) == len(collected) else ()


def unwrap(value: bytes | None) -> str | None:
    """Return a header value as text, decoded from =?base64?...?=; None if it is invalid or should have been encoded."""
    if value is None or not value.isascii():
        return None
    text = value.strip(_BLANKS).decode()
    match = _WRAPPED.fullmatch(text)
    if match is None:
        return text
    try:
        data = base64.b64decode(match[1], validate=True)
        # b64decode ignores trailing bits, which would give one name several encodings.
        return data.decode() if base64.b64encode(data).decode() == match[1] else None
    except (binascii.Error, ValueError):
        return None


def _check_arguments(headers: Headers, params: Call, header_params: Sequence[HeaderParam]) -> None:
    arguments = _plain(params)
    for param in header_params:
        value = _at(arguments, param.path)
        header = headers.get(param.header)
        text = _rendered(value)
        label = param.header.decode()
        if text is None:
            if header is not None:
                raise _mismatch(label, f"is present but the argument {'.'.join(param.path)} is not")
        elif header is None:
            raise _mismatch(label, f"is missing but the argument {'.'.join(param.path)} is present")
        elif not _same(unwrap(header), text, value, param.kind):
            raise _mismatch(label, f"does not match the argument {'.'.join(param.path)}")


def _plain(params: Call) -> Mapping[str, Any]:
    try:
        return msgspec.json.decode(params.arguments, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}


def _at(arguments: Any, path: Sequence[str]) -> Any:
    for name in path:
        arguments = arguments.get(name) if hasattr(arguments, "get") else None
    return arguments


def _rendered(value: object) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str | int | float) else None


def _same(header: str | None, text: str, value: Any, kind: str) -> bool:
    if header is None:
        return False
    whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    digits = _DECIMAL.fullmatch(header) if kind == "integer" and whole and not isinstance(value, bool) else None
    return int(digits[1]) == int(value) if digits else header == text


def _valid(token: object, here: Schema) -> bool:
    return isinstance(token, str) and _TOKEN.fullmatch(token) is not None and here.get("type") in _SCALARS


def _mismatch(header: str, what: str) -> ProtocolError:
    return ProtocolError(HEADER_MISMATCH, f"The {header} header {what}")
