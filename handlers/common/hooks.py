"""Answer the hooks of clients: POST /hook/{client}/{event} with the client's fields of the event.

A prompt is searched for and dropped; of a session nothing is stored but the summary that its client made of it.
"""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Annotated, Literal, get_args

import msgspec
from msgspec import Meta, Struct

from handlers.common import fence, prime
from kernel.calls.dialect import RestMethod
from kernel.calls.settings import Setting, flag, setting
from kernel.calls.tools import Hints, Hooks, Tool, read, write
from kernel.core.errors import Fault
from kernel.core.times import later
from kernel.memories import witness
from kernel.memories.briefing import Handoff, HookSessions, Project
from kernel.security.rules.secrets import find_secret
from kernel.store.transaction import Tx

Client = Literal["claude", "codex", "cursor", "gemini", "opencode"]
Event = Literal["session-start", "first-prompt", "post-compact", "session-end"]
CLIENTS: tuple[Client, ...] = get_args(Client)

# The client's own names of the events that add to a conversation.
_NAMES: Mapping[Client, Mapping[Event, str]] = {
    "claude": {"session-start": "SessionStart", "first-prompt": "UserPromptSubmit"},
    "codex": {"session-start": "SessionStart", "first-prompt": "UserPromptSubmit"},
    "gemini": {"session-start": "SessionStart", "first-prompt": "BeforeAgent"},
}

RECORD_SHOWN = "QUIPU_RECORD_SHOWN"
SETTINGS = (Setting(RECORD_SHOWN, True, flag, "record which memories hooks add to a session, by id"),)
MOST_BODY_BYTES = 65_536
_PROMPT_TOKENS = 400
_LEAST_PROMPT_CHARS = 15
_COMMAND_SIGNS = ("/", "!")  # of commands of the client and of the shell
_PRIMED_AGAIN_AFTER = timedelta(hours=4)
_HANDOFF_CHARS = 20_000
_LEAST_HANDOFF_CHARS = 40
_ABOUT_PROMPT = f"{fence.ABOUT_PROMPT}; recall with an id reads all of it."

Text = Annotated[str, Meta(max_length=MOST_BODY_BYTES)] | None


class HookInput(Struct):
    """The fields of an event, under the clients' own names; all others are dropped at once.

    `root`, `intro` and `mark` are added by `quipu hook`: the root of the repository, the text of its `.quipu/prime.md`,
    and digits between which it gets the places to compare.
    """

    client: Client
    session_id: Text = None
    conversation_id: Text = None
    cwd: Text = None
    workspace_roots: list[str] | None = None
    source: Text = None
    prompt: Text = None
    compact_summary: Text = None
    root: Text = None
    intro: Text = None
    mark: prime.Mark = ""
    budget: Annotated[int, Meta(ge=prime.LEAST_TOKENS, le=prime.DEFAULT_TOKENS)] = prime.DEFAULT_TOKENS


class HookOutput(Struct):
    """An addition to the conversation, empty for nothing, and the ids of the memories in it."""

    client: Client
    event: Event
    text: str = ""
    ids: list[str] = []


def session_start(tx: Tx, request: HookInput) -> HookOutput:
    """What an agent should know at the start of a session in this folder; nothing for a session that goes on and has
    been told within the last hours.
    """
    sessions, session, answer = _sessions(tx), _session(request), HookOutput(request.client, "session-start")
    last = sessions.get(session, tx.now).at if session else ""
    if request.source == "resume" and last and later(last, _PRIMED_AGAIN_AFTER) > tx.now:
        return answer
    # A session that was compacted has the summary in its context.
    left_out = ("handoff",) if request.source == "compact" else ()
    prime_request = prime.Prime(_folder(request), budget=request.budget, intro=request.intro or "", mark=request.mark)
    lines = prime.primed(tx, prime_request, left_out)
    if session:
        sessions.start(session, tx.now, prime_request.root, lines.ids)
    answer.text, answer.ids = lines.text, lines.ids
    return answer


def first_prompt(tx: Tx, request: HookInput) -> HookOutput:
    """Memories that answer the first prompt of a session, or the first after a compaction; none without strong
    evidence, and none that the session has been given.
    """
    session, answer = _session(request), HookOutput(request.client, "first-prompt")
    prompt = fence.without_fenced(fence.without_private(request.prompt or "")).strip()
    if not session or len(prompt) < _LEAST_PROMPT_CHARS or prompt.startswith(_COMMAND_SIGNS):
        return answer
    ids = _sessions(tx).take_prompt(session, tx.now)
    if ids is None:
        return answer
    hits = prime.hits_above(tx, prompt, prime.PROMPT_FLOOR, prime.MOST_HITS, ids)
    lines = prime.compose(_ABOUT_PROMPT, prime.marked(tx, prime.hit_lines(hits), request.mark), _PROMPT_TOKENS)
    answer.text, answer.ids = lines.text, lines.ids
    return answer


def _record_shown(tx: Tx, request: HookInput, answer: HookOutput) -> None:
    session = _session(request)
    if session and answer.ids and setting(tx, RECORD_SHOWN):
        witness.record_shown(tx, session, answer.event, answer.ids)


def post_compact(tx: Tx, request: HookInput) -> HookOutput:
    """Keep the summary that a client made when it compacted a session, in place of the one before; what holds keys or
    passwords is not kept.
    """
    sessions, session, answer = _sessions(tx), _session(request), HookOutput(request.client, "post-compact")
    text, keep = _handoff_text(request), tx.context.keep_handoff
    if not session or not text:
        return answer
    root = request.root or sessions.get(session, tx.now).root or _folder(request)
    sessions.compact(session, tx.now)
    if keep is None:
        raise Fault("disabled", "The dialect sessions is not served: nothing keeps a handoff.")
    keep(tx, Handoff(session, Project.at(root), text))
    return answer


def session_end(tx: Tx, request: HookInput) -> HookOutput:
    """Forget what a session has been given."""
    _sessions(tx).end(_session(request))
    return HookOutput(request.client, "session-end")


def _session(request: HookInput) -> str:
    session = request.session_id or request.conversation_id or ""
    return f"{request.client}:{session[:128]}" if session and session.isprintable() else ""


def _folder(request: HookInput) -> str:
    return (request.root or request.cwd or next(iter(request.workspace_roots or ()), ""))[:4096]


def _sessions(tx: Tx) -> HookSessions:
    sessions = tx.context.hook_sessions
    assert sessions is not None, "every open store has one"
    return sessions


def _handoff_text(request: HookInput) -> str:
    """Return the summary as it may be kept; empty if nothing of it may."""
    text = fence.without_fenced(fence.without_private(request.compact_summary or "")).strip()[:_HANDOFF_CHARS]
    return "" if len(text) < _LEAST_HANDOFF_CHARS or find_secret([text]) else text


def _texts_to_embed(request: HookInput) -> Sequence[str]:
    text = _handoff_text(request)
    return [text] if text else []


def _method(event: Event, tool: Tool) -> RestMethod:
    hook_tool = tool._replace(name=f"hook {event}", result=dict)  # the form of each client, see `_output`
    return RestMethod("POST", f"/hook/{{client}}/{event}", hook_tool, client="client", body=MOST_BODY_BYTES)


_SHOWN = Hooks(after_read=_record_shown)
METHODS: tuple[RestMethod, ...] = (
    _method("session-start", read(session_start, permission="read", hooks=_SHOWN)),
    _method("first-prompt", read(first_prompt, permission="read", hooks=_SHOWN)),
    _method(
        "post-compact",
        write(post_compact, Hints(destructive=True), permission="write", hooks=Hooks(texts=_texts_to_embed)),
    ),
    _method("session-end", read(session_end, permission="read")),
    RestMethod("POST", "/prime", read(prime.prime, permission="read")),
)


def shaped(result: HookOutput) -> bytes:
    return _output(result.client, result.event, result.text)


def _output(client: Client, event: Event, text: str) -> bytes:
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
