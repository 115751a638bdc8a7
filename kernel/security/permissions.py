"""Who calls and what that allows: three rights, each with what the ones before it allow, and which one a call needs."""

from collections.abc import Callable, Mapping
from enum import IntEnum
from functools import lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec

from kernel.data_dir import MAIN

ANONYMOUS = "anonymous"


class Permission(IntEnum):
    """What a key allows; `admin` is for what concerns everybody at once, and for what tells of the machine."""

    read = 1
    write = 2
    admin = 3


class Grant(msgspec.Struct, frozen=True, eq=False):
    """How far a caller comes, one object for each: see `reach`.

    Without `dialects` it is to all of them; `keyed` says that another caller may come less far.
    """

    permission: Permission
    dialects: frozenset[str]
    by_key: bool

    def allows_dialect(self, dialect: str) -> bool:
        """Whether a dialect is there for this caller."""
        return not self.dialects or dialect in self.dialects


grant = lru_cache(maxsize=4096)(Grant)
_ALL: frozenset[str] = frozenset()
FULL_ACCESS = grant(Permission.admin, _ALL, False)


class Caller(msgspec.Struct, frozen=True, eq=False):
    """Who calls, as the transport vouches for it: `actor` is what provenance keeps, `key` the id of the key, if any."""

    actor: str
    grant: Grant
    tenant: str = MAIN
    key: str = ""

    @property
    def audit_identity(self) -> str:
        """What nobody else is called, in any tenant."""
        return self.actor if self.tenant == MAIN else f"{self.tenant}/{self.actor}"


ANONYMOUS_CALLER = Caller(ANONYMOUS, FULL_ACCESS)


def _with_client_name(caller: Caller, client: str) -> Caller:
    if client == ANONYMOUS:
        return caller
    return msgspec.structs.replace(caller, actor=f"{caller.key}/{client}" if caller.key else client)


# A caller with what its client says of itself, for which no key vouches, after what the key does.
with_client_name = lru_cache(maxsize=1024)(_with_client_name)


class Forbidden(Exception):
    """A call out of its caller's reach; `needed` is the right that would do, None where no right does."""

    def __init__(self, call: str, needed: Permission | None) -> None:
        why = "is out of reach" if needed is None else f"needs the scope {needed.name}"
        super().__init__(f"{call} {why}")
        self.needed = needed


class RequiredPermission(NamedTuple):
    """The rights the calls of one tool need: by action where they differ, `most` being the highest of them."""

    most: Permission = Permission.admin
    actions: Mapping[str, Permission] = MappingProxyType({})

    @property
    def least(self) -> Permission:
        """The right that opens at least one action."""
        return min(self.actions.values(), default=self.most)


class _Action(msgspec.Struct):
    action: str = ""


_action = msgspec.json.Decoder(_Action).decode
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def required_permission(listed: str | Mapping[str, str] | None) -> RequiredPermission:
    """The entry of a table of rights as data: one right, or one by action; what is not listed is for admins."""
    if listed is None:
        return RequiredPermission()
    if isinstance(listed, str):
        return RequiredPermission(Permission[listed])
    actions = {action: Permission[name] for action, name in listed.items()}
    return RequiredPermission(max(actions.values()), actions)


def check_permission(
    name: str, needs: RequiredPermission, decode: Callable[[Any], Any], arguments: Any, right: Permission
) -> None:
    """Raises Denied where this call of a tool needs more than `right`.

    What decides is the action as the tool itself will read it, since JSON may name a key twice; only arguments the tool
    cannot read are judged by the action they claim.
    """
    actions = needs.actions
    if not actions:
        if right < needs.most:
            raise Forbidden(name, needs.most)
        return
    try:
        action = action_of(decode(arguments))
    except _UNREADABLE:
        action = _claimed(arguments)
        if action not in actions:
            return  # the tool will say what is wrong
    needed = actions.get(action, Permission.admin)
    if right < needed:
        raise Forbidden(f"{name} {action}", needed)


def _claimed(arguments: Any) -> str:
    try:
        return _action(arguments).action
    except _UNREADABLE:
        return ""


def action_of(request: Any) -> str:
    """The action of a decoded request: the tag of its arm, or its field of that name."""
    tag = request.__struct_config__.tag
    return tag if isinstance(tag, str) else str(getattr(request, "action", ""))
