"""The refusals of `scopes`, in the words and with the codes its users know."""

import re
from collections.abc import Mapping
from typing import Any, get_args, get_type_hints

from kernel.errors import Fault
from kernel.lazy_regex import regex
from kernel.tools import ArgumentError

MISSING = "E1000"
BAD_SCOPE = "E1001"
UNKNOWN_ACTION = "E5001"
NOT_FOUND = "E2000"
EXISTS = "E2001"
CONFLICT = "E2002"
LOCKED = "E3000"
NOT_LOCKED = "E3001"
EXPIRED = "E3002"
LABELS: Mapping[str, str] = {
    "invalid": MISSING,
    "not_found": NOT_FOUND,
    "conflict": CONFLICT,
    "busy": "E4000",
    "storage": "E4000",
    "internal": "E5001",
}
_SCOPE_FIELDS = {"scopeType", "scope.type"}
_EMPTY = "Expected `str` of length >= 1"
_NULL = regex(r"Expected `.+`, got `null`")


def required(field: str, condition: str = "") -> Fault:
    """`name is required`; the condition says when, as in `for non-global scope`."""
    return Fault("invalid", f"{field} is required{condition and ' '}{condition}", MISSING, {"field": field})


def invalid(field: str, problem: str, suggestion: str = "") -> Fault:
    """`Validation error: field - problem`, with the field and the suggestion in the context."""
    more = {"suggestion": suggestion} if suggestion else {}
    hint = f". Suggestion: {suggestion}" if suggestion else ""
    return Fault("invalid", f"Validation error: {field} - {problem}{hint}", MISSING, {"field": field, **more})


def not_found(resource: str, identifier: str, field: str = "id") -> Fault:
    """`Project not found: x`; `field` is the argument that named it."""
    context = {"resource": resource.lower(), "identifier": identifier, "field": field}
    return Fault("not_found", f"{resource} not found: {identifier}", NOT_FOUND, context)


def exists(resource: str, identifier: str, where: str, field: str, holder: str | None) -> Fault:
    """`Tool already exists: x in project:y`; the holder of the name is in the context as `id`."""
    context = {"resource": resource.lower(), "identifier": identifier, "field": field, "id": holder}
    return Fault("conflict", f"{resource} already exists: {identifier} in {where}", EXISTS, context)


def conflict(message: str, label: str = CONFLICT, **context: Any) -> Fault:
    """A refusal because of what is there, with what is there in the context."""
    return Fault("conflict", message, label, context)


def misread(found: ArgumentError) -> Fault:
    """Arguments that do not fit, in the contract's words."""
    if found.field == "action" and found.problem != "unknown":
        return _action(found)
    if not found.field:
        return Fault("invalid", f"Validation error: arguments - {found.message}", MISSING, {"field": "arguments"})
    if found.problem == "unknown":
        return invalid(found.field, f"{found.tool.name} has no such parameter for this action")
    empty = found.message.startswith(_EMPTY)
    if found.problem == "missing" or _NULL.match(found.message) or (empty and found.field in _needed(found)):
        return required(found.field)
    fault = invalid(found.field, "must not be empty" if empty else _plain(found.message))
    return Fault("invalid", fault.message, BAD_SCOPE, fault.context) if found.field in _SCOPE_FIELDS else fault


def _needed(found: ArgumentError) -> set[str]:
    """The arguments that some action of the tool cannot do without."""
    arms = get_args(found.tool.request) or (found.tool.request,)
    needed = [arm.__struct_encode_fields__[: -len(arm.__struct_defaults__) or None] for arm in arms]
    return {field for fields in needed for field in fields}


def _action(found: ArgumentError) -> Fault:
    given = re.fullmatch(r"Invalid (?:enum )?value '(.*)'", found.message, re.DOTALL)
    name = given[1] if given else "undefined"
    arms = get_args(found.tool.request)
    only = () if arms else get_args(get_type_hints(found.tool.request)["action"])
    actions = [*only, *(arm.__struct_config__.tag for arm in arms)]
    context = {"tool": found.tool.name, "field": "action", "action": name, "validActions": actions}
    return Fault("invalid", f"Unknown action for {found.tool.name}: {name}", UNKNOWN_ACTION, context)


def _plain(message: str) -> str:
    plain = message.replace("`", "").replace(" | null", "")
    return plain[:1].lower() + plain[1:]
