"""Answers of the REST methods: results as JSON, and errors with the types that the vendor's SDKs know."""

import msgspec

from kernel.calls.tools import Reply
from kernel.core.errors import Code, Fault
from kernel.core.text import json_bytes

_JSON = "application/json"
_TYPES: dict[Code, str] = {
    "invalid": "invalid_request_error",
    "not_found": "not_found_error",
    "conflict": "invalid_request_error",
    "blocked": "permission_error",
    "disabled": "invalid_request_error",
    "busy": "overloaded_error",
    "storage": "api_error",
    "internal": "api_error",
}


def rest_reply(result: object) -> Reply:
    """Return the result as JSON."""
    body = json_bytes(result)
    return Reply(body, _JSON, None, body)


def rest_fail(fault: Fault) -> Reply:
    """Return `{"type", "message"}`, and what else is known of a conflict; the edge wraps it with the id of
    the request.
    """
    error = {"type": fault.label or _TYPES[fault.code], "message": fault.message, **fault.context}
    return Reply(msgspec.json.encode(error), _JSON, fault.code)
