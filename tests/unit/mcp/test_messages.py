"""Headers that repeat the body are checked as by the official server."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.shared.inbound import (
    decode_header_value,
    encode_header_value,
    find_invalid_x_mcp_header,
    validate_mcp_param_headers,
    x_mcp_header_map,
)

from kernel.mcp.messages import Call, Meta, ProtocolError, check, check_single, header_params, unwrap

ascii_text = st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), max_size=12)
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([42, 42.0, 4.2, 10**30, "42", "true", "é", "=?base64?YQ==?="]),
)
SCHEMA = {
    "type": "object",
    "properties": {
        "word": {"type": "string", "x-mcp-header": "Word"},
        "count": {"type": "integer", "x-mcp-header": "Count"},
        "inner": {"type": "object", "properties": {"flag": {"type": "boolean", "x-mcp-header": "Flag"}}},
    },
}


@given(
    st.one_of(
        ascii_text, st.text(max_size=8).map(encode_header_value), st.from_regex(r"=\?base64\?[A-Za-z0-9+/=]{0,8}\?=")
    )
)
def test_header_values_are_decoded_as_by_the_official_server(value: str) -> None:
    if value.isascii():
        assert unwrap(value.encode()) == decode_header_value(value.strip(" \t"))


def test_unencoded_non_ascii_value_is_refused() -> None:
    assert unwrap("é".encode("latin-1")) is None
    assert unwrap("é".encode()) is None
    assert unwrap(None) is None


@pytest.mark.parametrize(
    "schema",
    [
        SCHEMA,
        {"type": "object", "properties": {}},
        {"type": "object", "x-mcp-header": "Root"},
        {"properties": {"a": {"type": "number", "x-mcp-header": "A"}}},
        {"properties": {"a": {"type": ["string", "null"], "x-mcp-header": "A"}}},
        {"properties": {"a": {"x-mcp-header": "A"}}},
        {"properties": {"a": {"type": "string", "x-mcp-header": ""}}},
        {"properties": {"a": {"type": "string", "x-mcp-header": "A B"}}},
        {"properties": {"a": {"type": "string", "x-mcp-header": 1}}},
        {"properties": {"a": {"type": "string", "x-mcp-header": "A"}, "b": {"type": "string", "x-mcp-header": "a"}}},
    ],
)
def test_annotated_arguments_equal_those_of_the_official_server(schema: dict[str, Any]) -> None:
    found = {one.path: one.header for one in header_params(schema)}
    theirs = {} if find_invalid_x_mcp_header(schema) else x_mcp_header_map(schema)
    assert found == {path: f"mcp-param-{token}".lower().encode() for path, token in theirs.items()}


@st.composite
def headers_for(draw: st.DrawFn, arguments: dict[str, Any]) -> dict[str, str]:
    """Headers that say the truth, something near it, or nothing."""
    values = {"word": arguments.get("word"), "count": arguments.get("count"), "flag": arguments["inner"].get("flag")}
    found: dict[str, str] = {}
    for name, value in values.items():
        sent = draw(st.sampled_from([value, None, "42.0", "042", "42", "true", "True", "YQ=="]))
        if sent is not None:
            text = ("true" if sent else "false") if isinstance(sent, bool) else str(sent)
            found[f"mcp-param-{name}"] = encode_header_value(text)
    return found


@given(st.data())
def test_arguments_are_compared_as_the_official_server_compares_them(data: st.DataObject) -> None:
    some = st.fixed_dictionaries(
        {"inner": st.fixed_dictionaries({}, optional={"flag": scalars})}, optional={"word": scalars, "count": scalars}
    )
    arguments = data.draw(some)
    headers = data.draw(headers_for(arguments))
    call = Call(name="t", arguments=msgspec.Raw(json.dumps(arguments).encode()), meta=Meta())
    sent = {name.encode(): value.encode() for name, value in headers.items()}
    try:
        check({b"mcp-method": b"tools/call", b"mcp-name": b"t", **sent}, "tools/call", call, header_params(SCHEMA))
        ours = None
    except ProtocolError as refused:
        ours = refused.code
    theirs = validate_mcp_param_headers(SCHEMA, arguments, headers)
    assert ours == (None if theirs is None else theirs.code)


def test_arguments_that_cannot_be_read_are_left_to_the_tool_unless_a_header_claims_to_repeat_them() -> None:
    call = Call(name="t", arguments=msgspec.Raw(b'{"word":"\\ud800"}'), meta=Meta())
    plain = {b"mcp-method": b"tools/call", b"mcp-name": b"t"}
    check(plain, "tools/call", call, header_params(SCHEMA))
    with pytest.raises(ProtocolError, match="is present but the argument word is not"):
        check({**plain, b"mcp-param-word": b"x"}, "tools/call", call, header_params(SCHEMA))


def test_only_header_parameters_of_the_tool_must_be_single() -> None:
    doubled = [(b"mcp-param-word", b"a"), (b"mcp-param-word", b"b")]
    check_single(doubled)
    with pytest.raises(ProtocolError, match="more than once"):
        check_single(doubled, header_params(SCHEMA))
