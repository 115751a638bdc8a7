"""The output of hooks in the form that each client reads."""

from collections.abc import Mapping
from typing import Literal, get_args

import msgspec

Client = Literal["claude", "codex", "cursor", "gemini", "opencode"]
Event = Literal["session-start", "first-prompt", "post-compact", "session-end"]
CLIENTS: tuple[Client, ...] = get_args(Client)

# The client's own names of the events that add to a conversation.
_NAMES: Mapping[Client, Mapping[Event, str]] = {
    "claude": {"session-start": "SessionStart", "first-prompt": "UserPromptSubmit"},
    "codex": {"session-start": "SessionStart", "first-prompt": "UserPromptSubmit"},
    "gemini": {"session-start": "SessionStart", "first-prompt": "BeforeAgent"},
}


def output(client: Client, event: Event, text: str) -> bytes:
    """Return the output of the hook; empty without a text, which every client takes as success."""
    if not text:
        return b""
    if client == "cursor":
        go_on = {"continue": True} if event == "first-prompt" else {}
        return msgspec.json.encode({**go_on, "additional_context": text})
    if client == "opencode":
        return msgspec.json.encode({"text": text})
    specific = {"hookEventName": _NAMES[client][event], "additionalContext": text}
    return msgspec.json.encode({"hookSpecificOutput": specific})
