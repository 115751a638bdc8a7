"""The errors of `scopes`: messages and codes of the original."""

from collections.abc import Mapping, Sequence
from typing import Any, get_args, get_type_hints

from msgspec import Struct

from kernel.calls.tools import ArgumentError
from kernel.core.errors import Fault
from kernel.core.lazy_regex import regex

MISSING = "E1000"
BAD_SCOPE = "E1001"
UNKNOWN_ACTION = "E5001"
NOT_FOUND = "E2000"
EXISTS = "E2001"
CONFLICT = "E2002"
LOCKED = "E3000"
NOT_LOCKED = "E3001"
EXPIRED = "E3002"
ROLLED_BACK = "rolled back"  # no code of the contract: `fail` returns the result of such a fault
LABELS: Mapping[str, str] = {
    "invalid": MISSING,
    "not_found": NOT_FOUND,
    "conflict": CONFLICT,
    "busy": "E4000",
    "storage": "E4000",
    "internal": "E5001",
}
_SCOPE_FIELDS = {"scopeType", "scope.type"}
_ELSEWHERE = {"tags": "; tags are attached by memory_tag"}
_NAMES = {"name", "title"}
_EMPTY_STRING = "Expected `string` of length >= 1"
_GOT_NULL = regex(r"Expected `.+`, got `null`")


def rolled_back(result: Any, message: str) -> Fault:
    """Return a fault that returns a result of which nothing was written: raising it rolls the call back."""
    return Fault("invalid", message, ROLLED_BACK, {"result": result})


def required(field: str, condition: str = "") -> Fault:
    """Return `name is required`, followed by the condition, such as `for non-global scope`."""
    return Fault("invalid", f"{field} is required{condition and ' '}{condition}", MISSING, {"field": field})


def invalid(field: str, problem: str, suggestion: str = "") -> Fault:
    """Return `Validation error: field - problem`; the context holds the field and the suggestion."""
    fault = Fault("invalid", f"Validation error: {field} - {problem}", MISSING, {"field": field})
    return with_suggestion(fault, suggestion) if suggestion else fault


def not_found(resource: str, identifier: str, field: str = "id") -> Fault:
    """Return `Project not found: x`; `field` is the argument that holds the identifier."""
    context = {"resource": resource.lower(), "identifier": identifier, "field": field}
    return Fault("not_found", f"{resource} not found: {identifier}", NOT_FOUND, context)


def with_suggestion(fault: Fault, suggestion: str) -> Fault:
    context = {**(fault.context or {}), "suggestion": suggestion}
    return Fault(fault.code, f"{fault.message}. Suggestion: {suggestion}", fault.label, context)


def exists(resource: str, identifier: str, where: str, field: str, holder: str | None) -> Fault:
    """Return `Tool already exists: x in project:y`; the context holds the id of the entry that has the name."""
    context = {"resource": resource.lower(), "identifier": identifier, "field": field, "id": holder}
    return Fault("conflict", f"{resource} already exists: {identifier} in {where}", EXISTS, context)


def conflict(message: str, label: str = CONFLICT, **context: Any) -> Fault:
    return Fault("conflict", message, label, context)


def argument_fault(error: ArgumentError) -> Fault:
    """Return the fault for arguments that do not match the request type, worded as in the contract."""
    if error.field == "action" and error.problem != "unknown":
        return _unknown_action(error)
    if not error.field:
        return Fault("invalid", f"Validation error: arguments - {error.message}", MISSING, {"field": "arguments"})
    if error.problem == "unknown":
        more = _ELSEWHERE.get(error.field, "")
        if error.field in _NAMES and " update takes " in error.hint:
            more = f"; get with {error.field} and scopeType tells the id"
        return invalid(error.field, f"{error.tool.name} has no such parameter for this action", error.hint + more)
    # The contract reports null and the empty string for a required argument as missing.
    empty = error.message.startswith(_EMPTY_STRING)
    missing = error.problem == "missing" or _GOT_NULL.match(error.message)
    if missing or (empty and error.field in required_fields(error.request)):
        return required(error.field)
    plain = error.message.replace("`", "").replace(" | null", "")
    fault = invalid(error.field, "must not be empty" if empty else plain[:1].lower() + plain[1:], error.hint)
    return Fault("invalid", fault.message, BAD_SCOPE, fault.context) if error.field in _SCOPE_FIELDS else fault


def required_fields(request: type[Struct]) -> Sequence[str]:
    """Return the fields that a request must have: none of those of a tool of which the action cannot be read."""
    if get_args(request):
        return ()
    return request.__struct_encode_fields__[: -len(request.__struct_defaults__) or None]


def _unknown_action(error: ArgumentError) -> Fault:
    name = "undefined" if error.given is None else error.given
    arms = get_args(error.tool.request)
    only = () if arms else get_args(get_type_hints(error.tool.request)["action"])
    actions = [*only, *(arm.__struct_config__.tag for arm in arms)]
    context = {"tool": error.tool.name, "field": "action", "action": name, "validActions": actions}
    return Fault("invalid", f"Unknown action for {error.tool.name}: {name}", UNKNOWN_ACTION, context)
