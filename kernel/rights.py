"""Who calls and what that allows: three rights, each with what the ones before it allow, and which one a call needs."""

from collections.abc import Callable, Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec

MAIN = "main"


class Right(IntEnum):
    """What a key allows; `admin` is for what concerns everybody at once, and for what tells of the machine."""

    read = 1
    write = 2
    admin = 3


class Caller(NamedTuple):
    """Who calls, as the transport vouches for it: `actor` is what provenance keeps, `key` the id of the key, if any.

    Without `dialects` all are allowed.
    """

    actor: str
    right: Right
    tenant: str = MAIN
    key: str = ""
    dialects: frozenset[str] = frozenset()


LOCAL = Caller("local", Right.admin)


class Denied(Exception):
    """A call that needs a right its caller does not have; the message names the call and the right, nothing else."""

    def __init__(self, needed: Right, call: str) -> None:
        super().__init__(f"{call} needs the scope {needed.name}")
        self.needed = needed


class Needs(NamedTuple):
    """The rights the calls of one tool need: by action where they differ, `most` being the highest of them."""

    most: Right = Right.admin
    actions: Mapping[str, Right] = MappingProxyType({})

    @property
    def least(self) -> Right:
        """The right that opens at least one action."""
        return min(self.actions.values(), default=self.most)


class _Acting(msgspec.Struct):
    action: str = ""


_action = msgspec.json.Decoder(_Acting).decode
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def needs(listed: str | Mapping[str, str] | None) -> Needs:
    """The entry of a table of rights as data: one right, or one by action; what is not listed is for admins."""
    if listed is None:
        return Needs()
    if isinstance(listed, str):
        return Needs(Right[listed])
    actions = {action: Right[name] for action, name in listed.items()}
    return Needs(max(actions.values()), actions)


def permit(name: str, needs: Needs, decode: Callable[[Any], Any], arguments: Any, right: Right) -> None:
    """Raises Denied where this call of the tool needs more than `right`.

    What decides is the action as the tool itself will read it, since JSON may name a key twice; only arguments the tool
    cannot read are judged by the action they claim.
    """
    actions = needs.actions
    if not actions:
        if right < needs.most:
            raise Denied(needs.most, name)
        return
    try:
        action = acts(decode(arguments))
    except _UNREADABLE:
        try:
            action = _action(arguments).action
        except _UNREADABLE:
            return
        if action not in actions:
            return
    needed = actions.get(action, Right.admin)
    if right < needed:
        raise Denied(needed, f"{name} {action}")


def acts(request: Any) -> str:
    """The action of a decoded request: the tag of its arm, or its field of that name."""
    tag = request.__struct_config__.tag
    return tag if isinstance(tag, str) else str(getattr(request, "action", ""))
