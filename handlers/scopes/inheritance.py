"""Scopes and the chain a scope inherits from: session, project, org, global, nearest first."""

from collections.abc import Mapping
from typing import Literal

from handlers.scopes import errors
from handlers.scopes.field_types import name_key
from kernel.core.errors import Fault
from kernel.store.transaction import Tx

ScopeType = Literal["global", "org", "project", "session"]
GLOBAL = "global"
LABELS: Mapping[str, str] = {"org": "Organization", "project": "Project", "session": "Session"}


def scope_key(scope_type: str, scope_id: str | None) -> str:
    """Return the scope as one key, as in `scopes_entry.scope` and the index: `global`, `project:ID`."""
    return scope_type if scope_type == GLOBAL or scope_id is None else f"{scope_type}:{scope_id}"


def scope_chain(tx: Tx, scope_type: str, scope_id: str | None, *, inherit: bool = True) -> list[str]:
    """Return the keys of an existing scope and of those it inherits from, nearest first."""
    own = scope_key(scope_type, scope_id)
    if not inherit or own == GLOBAL:
        return [own]
    rows: list[tuple[str | None, str | None]] = []
    if scope_type == "session":
        rows = tx.rows("scopes.inheritance.above_session", id=scope_id)
    elif scope_type == "project":
        rows = tx.rows("scopes.inheritance.above_project", id=scope_id)
    parents = [("project", project) for project, _ in rows] + [("org", org) for _, org in rows]
    return [own, *(scope_key(kind, number) for kind, number in parents if number), GLOBAL]


def required_scope_id(scope_type: ScopeType, scope_id: str | None, field: str = "scopeId") -> str | None:
    """Return the id of a scope, None for global; raises a Fault for an id of global, and for none of another."""
    if scope_type == GLOBAL:
        check_no_global_id(scope_type, scope_id, field)
        return None
    if not scope_id:
        raise errors.required(field, "for non-global scope")
    return scope_id


def check_no_global_id(scope_type: str | None, scope_id: str | None, field: str = "scopeId") -> None:
    """Raises a Fault for an id beside global: one of the two is a mistake."""
    if scope_type == GLOBAL and scope_id is not None:
        problem = f"must not be given for global scope, which has no id: {scope_id}"
        raise errors.invalid(field, problem, "leave it out, or give the scopeType that it is of")


def check_scope_filter(tx: Tx, scope_type: ScopeType | None, scope_id: str | None) -> None:
    """Raises a Fault for an id beside global, and for that of an unknown scope; either argument may be left out."""
    check_no_global_id(scope_type, scope_id)
    if scope_id is not None:
        check_known_scope(tx, scope_type, scope_id)


def scope_to_read(tx: Tx, scope_type: ScopeType, scope_id: str | None, field: str = "scopeId") -> str | None:
    """Return the id of a scope to read: None for global; raises a Fault for an invalid or unknown scope."""
    own_id = required_scope_id(scope_type, scope_id, field)
    if own_id is not None:
        check_known_scope(tx, scope_type, own_id, field)
    return own_id


def check_known_scope(tx: Tx, scope_type: str | None, scope_id: str, field: str = "scopeId") -> None:
    """Raises a Fault for a scope that does not exist and has no entries; None stands for any type of scope.

    An imported database may have entries in scopes that were not in it, which stay readable.
    """
    if not tx.one("scopes.inheritance.known", int, type=scope_type, id=scope_id):
        raise unknown_scope(tx, scope_type, scope_id, field)


def check_scope(tx: Tx, scope_type: str, scope_id: str | None, field: str = "scopeId") -> None:
    """Raises a Fault for a scope that does not exist; `field` is the argument that holds the id."""
    if scope_type != GLOBAL and not scope_exists(tx, scope_type, scope_id):
        raise unknown_scope(tx, scope_type, scope_id or "", field)


def scope_exists(tx: Tx, scope_type: str, scope_id: str | None) -> bool:
    return bool(tx.one("scopes.inheritance.exists", int, type=scope_type, id=scope_id))


def unknown_scope(tx: Tx, scope_type: str | None, scope_id: str, field: str) -> Fault:
    """Return the Fault for a scope that does not exist; many clients send the name of a scope for its id."""
    right = tx.one("scopes.inheritance.id_of_name", str, type=scope_type, **name_key(scope_id))
    label = "Scope" if scope_type is None else LABELS[scope_type]
    fault = errors.not_found(label, scope_id, field)
    return errors.with_suggestion(fault, f"the {field} of {scope_id} is {right}") if right else fault
