"""The accepted output of a hook of each client, as JSON Schema, written from its documentation (see README.md)."""

from typing import Any

Schema = dict[str, Any]
_TEXT: Schema = {"type": "string", "minLength": 1, "maxLength": 10_000}


def _closed(properties: Schema, *required: str) -> Schema:
    return {"type": "object", "properties": properties, "required": [*required], "additionalProperties": False}


def _specific(event: str) -> Schema:
    """The form that Claude Code began and others took over."""
    inner = _closed({"hookEventName": {"const": event}, "additionalContext": _TEXT}, "hookEventName")
    common: Schema = {
        "continue": {"type": "boolean"},
        "stopReason": {"type": "string"},
        "suppressOutput": {"type": "boolean"},
        "systemMessage": {"type": "string"},
    }
    return _closed({**common, "hookSpecificOutput": inner})


OUTPUT: dict[str, dict[str, Schema]] = {
    "claude": {"session-start": _specific("SessionStart"), "first-prompt": _specific("UserPromptSubmit")},
    "codex": {"session-start": _specific("SessionStart"), "first-prompt": _specific("UserPromptSubmit")},
    "gemini": {"session-start": _specific("SessionStart"), "first-prompt": _specific("BeforeAgent")},
    "cursor": {
        "session-start": _closed({"env": {"type": "object"}, "additional_context": _TEXT}),
        "first-prompt": _closed(
            {"continue": {"const": True}, "user_message": {"type": "string"}, "additional_context": _TEXT}, "continue"
        ),
    },
    "opencode": {"session-start": _closed({"text": _TEXT}, "text"), "first-prompt": _closed({"text": _TEXT}, "text")},
}
