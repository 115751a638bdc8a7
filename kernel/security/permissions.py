"""Callers, the grants of their keys with the places that they are held to, and the permission a call needs."""

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from functools import lru_cache
from string import ascii_uppercase
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec

from kernel.core.data_dir import MAIN
from kernel.core.errors import Fault
from kernel.core.text import RawJson, composed

_CACHED = 64
_CACHED_PLACES = 65_536
_LONGEST = 512


class Places:
    """Some places by dialect; no place of a dialect stands for all of it. A place holds all that is below it."""

    def __init__(self, by_dialect: Mapping[str, Sequence[str]]) -> None:
        self._by_dialect = by_dialect
        self.hold = lru_cache(_CACHED_PLACES)(self._hold)

    def whole(self, dialect: str) -> bool:
        """Return whether all of a dialect is held."""
        return self._by_dialect.get(dialect) == ()

    def divide(self, dialects: Iterable[str]) -> bool:
        """Return whether places inside some of these dialects are held, and not all of the dialect."""
        return any(self._by_dialect.get(dialect) for dialect in dialects)

    def enter(self, dialect: str, place: str) -> bool:
        """Return whether anything at a place or below it is held."""
        below = f"{place}/" if place else ""
        return self.hold(dialect, place) or any(
            place_held.startswith(below) for place_held in self._by_dialect.get(dialect, ())
        )

    def _hold(self, dialect: str, place: str | None) -> bool:
        """Return whether a place is held; None for something that belongs to no place."""
        places = self._by_dialect.get(dialect)
        if not places:
            return places is not None
        return place is not None and any(
            place == place_held or place.startswith(f"{place_held}/") for place_held in places
        )


class Reach(msgspec.Struct, frozen=True):
    """The places that a key reads, and those that it reads and writes: `dialect`, or `dialect:place`."""

    read: frozenset[str]
    write: frozenset[str]

    @property
    def readable(self) -> Places:
        return _places(self.read | self.write)

    @property
    def writable(self) -> Places:
        return _places(self.write)


ANONYMOUS = "anonymous"
_CACHED_GRANTS = 4096
_CACHED_CALLERS = 1024


class Permission(IntEnum):
    """The permission of a key; each includes those before it.

    `admin` is for calls that affect all users of a tenant, and for those that reveal details of the machine. `operator`
    is for the affairs of all tenants; no tool needs it.
    """

    read = 1
    write = 2
    admin = 3
    operator = 4


class Grant(msgspec.Struct, frozen=True, eq=False):
    """The grant of a caller: its permission, and the dialects it may call, all of them for none.

    Equal grants are one object, made by `grant`, so that lists of tools can be cached by it. `by_key` says that it
    comes from a key or token, so that other callers may have other grants. `reach` holds it to places in dialects.
    """

    permission: Permission
    dialects: frozenset[str]
    by_key: bool
    reach: Reach | None = None

    def allows_dialect(self, dialect: str) -> bool:
        return not self.dialects or dialect in self.dialects

    def of_all_places(self) -> "Grant":
        """Return the grant that is not held to places: its lists of tools are the same."""
        return self if self.reach is None else grant(self.permission, self.dialects, self.by_key)


_grant = lru_cache(maxsize=_CACHED_GRANTS)(Grant)


def grant(permission: Permission, dialects: frozenset[str], by_key: bool, reach: Reach | None = None) -> Grant:
    """Return the grant of these rights, the same object each time."""
    return _grant(permission, dialects, by_key, reach)


FULL_ACCESS = grant(Permission.operator, frozenset[str](), False)


class Caller(msgspec.Struct, frozen=True, eq=False):
    """The authenticated caller: `actor` is stored as provenance, `key` is the id of the key, empty without one.

    `idempotency_key` is that of the call it makes; None without (see `kernel/calls/dispatch.py`).
    """

    actor: str
    grant: Grant
    tenant: str = MAIN
    key: str = ""
    idempotency_key: str | None = None

    @property
    def audit_identity(self) -> str:
        return self.actor if self.tenant == MAIN else f"{self.tenant}/{self.actor}"


ANONYMOUS_CALLER = Caller(ANONYMOUS, FULL_ACCESS)


def _with_client_name(caller: Caller, client: str) -> Caller:
    if client == ANONYMOUS:
        return caller
    return msgspec.structs.replace(caller, actor=f"{caller.key}/{client}" if caller.key else client)


# A client chooses its own name, so in the actor it stands after the key that was authenticated.
with_client_name = lru_cache(maxsize=_CACHED_CALLERS)(_with_client_name)


class Forbidden(Exception):
    """A call that the caller's grant does not allow; `scope` is the permission that would, None if none would.

    `remedy` says which key would do, if no permission would.
    """

    def __init__(self, call: str, scope: Permission | None, remedy: str = "") -> None:
        why = f"is out of reach{remedy and ': '}{remedy}" if scope is None else f"needs the scope {scope.name}"
        super().__init__(f"{call} {why}")
        self.needed = scope


class RequiredPermission(NamedTuple):
    """The permissions that calls of one tool need: by action if they differ, `most` being the highest."""

    most: Permission = Permission.admin
    actions: Mapping[str, Permission] = MappingProxyType({})

    @property
    def least(self) -> Permission:
        return min(self.actions.values(), default=self.most)


class _Named(msgspec.Struct):
    """The action that arguments name, of any type."""

    action: Any = None
    command: Any = None


_named = msgspec.json.Decoder(_Named).decode
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def required_permission(scopes: str | Mapping[str, str] | None) -> RequiredPermission:
    """Return the permission on a tool's row as names: one, or one by action; without any it is `admin`."""
    if scopes is None:
        return RequiredPermission()
    if isinstance(scopes, str):
        return RequiredPermission(Permission[scopes])
    actions = {action: Permission[name] for action, name in scopes.items()}
    return RequiredPermission(max(actions.values()), actions)


def check_permission(
    name: str, required: RequiredPermission, request: msgspec.Struct | None, arguments: RawJson, permission: Permission
) -> None:
    """Raises Forbidden if this call of a tool needs more than `permission`.

    The action is that of the request which the tool will get, since JSON may name a key twice. Only for arguments that
    cannot be decoded, without a request, the actions that they name count.
    """
    actions = required.actions
    if not actions:
        if permission < required.most:
            raise Forbidden(name, required.most)
        return
    if request is None:
        ours = [action for action in _named_actions(arguments) if action in actions]
        if not ours:
            return  # the call fails with an error in its arguments
        action = max(ours, key=lambda action: actions[action])
    else:
        action = action_of(request)
    scope = actions.get(action, Permission.admin)
    if permission < scope:
        raise Forbidden(f"{name} {action}", scope)


def _named_actions(arguments: RawJson) -> list[str]:
    try:
        texts = _named(arguments)
    except _UNREADABLE:
        return []
    return [name for name in (texts.action, texts.command) if isinstance(name, str)]


def action_of(request: msgspec.Struct) -> str:
    """Return the action of a decoded request: the tag of its arm, or its field of that name."""
    tag = request.__struct_config__.tag
    return tag if isinstance(tag, str) else str(getattr(request, "action", ""))


@lru_cache(_CACHED)
def _places(names: frozenset[str]) -> Places:
    by_dialect: dict[str, tuple[str, ...]] = {}
    for name in sorted(names):  # a whole dialect comes before its places
        dialect, _, place = name.partition(":")
        if by_dialect.get(dialect) != ():
            by_dialect[dialect] = (*by_dialect.get(dialect, ()), place) if place else ()
    return Places(by_dialect)


def parse(names: Iterable[str], forms: Mapping[str, Sequence[str]], option: str) -> tuple[str, ...]:
    """Return places as they are stored; raises Fault("invalid") naming the option, and the places that there can be.

    `forms` are those of the places of each dialect: names, or beginnings with a word in capitals for the rest.
    """
    places: set[str] = set()
    for name in names:
        dialect, colon, place = composed(name).partition(":")
        place = place.rstrip("/")
        if dialect not in forms:
            raise Fault("invalid", f"{option}: {name[:_LONGEST]!r} must begin with one of {', '.join(sorted(forms))}.")
        is_text = len(place) <= _LONGEST and place.isprintable()
        if colon and not (is_text and any(_has_form(place, form) for form in forms[dialect])):
            choices = [dialect, *(f"{dialect}:{form}" for form in forms[dialect])]
            raise Fault("invalid", f"{option}: {name[:_LONGEST]!r} must be {' or '.join(choices)}.")
        places.add(f"{dialect}{colon}{place}")
    return tuple(sorted(places))


def _has_form(place: str, form: str) -> bool:
    beginning = form.rstrip(ascii_uppercase)
    if beginning == form:
        return place == form
    is_relative = not (form.endswith("FOLDER") and place.startswith("/", len(beginning)))
    return place.startswith(beginning) and len(place) > len(beginning) and is_relative
