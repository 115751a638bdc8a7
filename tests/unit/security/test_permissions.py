"""The action that a tool decodes decides which permission a call needs."""

from typing import Any, Literal

import msgspec
import pytest
from msgspec import Struct

from kernel.security.permissions import (
    Forbidden,
    Permission,
    RequiredPermission,
    action_of,
    check_permission,
    required_permission,
)

READ, WRITE, ADMIN = Permission.read, Permission.write, Permission.admin
MIXED = required_permission({"look": "read", "put": "write", "wipe": "admin"})


class Look(Struct, tag="look", tag_field="action", forbid_unknown_fields=True):
    id: int


class Put(Struct, tag="put", tag_field="action", forbid_unknown_fields=True):
    id: int


class Plain(Struct):
    action: Literal["look", "put", "wipe", "odd"]


UNION = msgspec.json.Decoder(Look | Put).decode
PLAIN = msgspec.json.Decoder(Plain).decode


def refused(permission: Permission, listed: RequiredPermission, decode: Any, arguments: bytes) -> str:
    try:
        request = decode(arguments)
    except msgspec.DecodeError:
        request = None
    try:
        check_permission("box", listed, request, arguments, permission)
    except Forbidden as denied:
        return str(denied)
    return ""


def test_required_permission_is_one_or_one_by_action_and_admin_by_default() -> None:
    assert required_permission("read") == RequiredPermission(READ)
    assert (MIXED.most, MIXED.least) == (ADMIN, READ)
    assert dict(MIXED.actions) == {"look": READ, "put": WRITE, "wipe": ADMIN}
    assert (required_permission(None).most, required_permission(None).least) == (ADMIN, ADMIN)
    with pytest.raises(KeyError):
        required_permission("owner")


def test_an_action_is_the_tag_of_an_arm_or_a_field() -> None:
    assert action_of(UNION(b'{"action":"put","id":1}')) == "put"
    assert action_of(PLAIN(b'{"action":"wipe"}')) == "wipe"


@pytest.mark.parametrize(
    ("permission", "listed", "refusal"),
    [(READ, "read", ""), (READ, "write", "box needs the scope write"), (WRITE, "admin", "box needs the scope admin")],
)
def test_tool_without_actions_needs_one_permission(permission: Permission, listed: str, refusal: str) -> None:
    assert refused(permission, required_permission(listed), PLAIN, b"not even JSON") == refusal


@pytest.mark.parametrize(
    ("permission", "arguments", "refusal"),
    [
        (READ, b'{"action":"look","id":1}', ""),
        (READ, b'{"action":"put","id":1}', "box put needs the scope write"),
        (WRITE, b'{"action":"put","id":1}', ""),
        (READ, b'{"action":"put"}', "box put needs the scope write"),  # incomplete, and still not for readers
        (READ, b'{"action":"look"}', ""),  # incomplete: the tool says so
        (READ, b'{"action":"none"}', ""),  # no such action: the tool says so
        (READ, b'{"action":1}', ""),
        (READ, b"{", ""),
    ],
)
def test_each_action_needs_its_own_permission(permission: Permission, arguments: bytes, refusal: str) -> None:
    assert refused(permission, MIXED, UNION, arguments) == refusal


@pytest.mark.parametrize("first", ["look", "put"])
@pytest.mark.parametrize("second", ["look", "put"])
def test_duplicate_action_key_is_judged_as_decoded(first: str, second: str) -> None:
    arguments = f'{{"action":"{first}","action":"{second}","id":1}}'.encode()
    for decode in (UNION, PLAIN):
        try:
            read = action_of(decode(arguments))
        except msgspec.ValidationError:
            continue  # the tool will not run
        assert bool(refused(READ, MIXED, decode, arguments)) == (read == "put")


def test_unlisted_action_needs_admin() -> None:
    assert refused(WRITE, MIXED, PLAIN, b'{"action":"odd"}') == "box odd needs the scope admin"
    assert refused(ADMIN, MIXED, PLAIN, b'{"action":"odd"}') == ""
