"""The commands for memories, `quipu recall` and its like: they run in a server, or on the file."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, cast, get_args, get_origin, get_type_hints

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from handlers.console import actions, overview
from handlers.console.erasing import erasable, erase
from handlers.console.memory import (
    Linked,
    links_of,
    no_memory,
    parts_beside,
    place_meant,
    place_of_name,
    state_of,
    version_of,
)
from handlers.console.overview import WEEK, Stats, days_until_now
from handlers.console.reading import PAGE_ROWS, Place, allowed_dialects, read, require
from handlers.console.records import Event, calls_of, events
from handlers.console.requests import Visit
from handlers.console.search import ask_recall
from kernel.calls.arguments import UNREADABLE, decode_again
from kernel.calls.dialect import Dialect
from kernel.calls.dispatch import Dispatch, first_targets
from kernel.calls.tools import Access, Hints, Tool
from kernel.core.data_dir import MAIN, other_tenants
from kernel.core.errors import Fault
from kernel.core.lazy_regex import regex
from kernel.core.text import json_decoder, one_line
from kernel.memories import witness
from kernel.search import index
from kernel.search.fusion import Verdict
from kernel.security import api_keys
from kernel.security.permissions import FULL_ACCESS, Caller, Forbidden, Permission
from kernel.store import audit
from kernel.store.transaction import Target, Tx

TERMINAL = "terminal"  # the name of the client in the actor of these calls
_PAGE = 100  # the most that recall answers at once
_LIMIT = {"max_tokens": 100_000}
_NAME_CHARS = 60
_UNCHANGED = "unchanged"
_MARK = regex("[0-9a-f]{32}")
Limit = Annotated[int, Meta(ge=1, le=10_000)]
Number = Annotated[int, Meta(ge=0, le=2**53)]
Part = Annotated[str, Meta(max_length=320)]
State = Annotated[str, Meta(pattern=r"^(changed since|gone now|moved to [\w@.+~/-]{1,300})?$")]
Seen = tuple[Number, Part, Part, Number, Part, State]


class Recall(Struct, forbid_unknown_fields=True, omit_defaults=True):
    query: Annotated[str, Meta(min_length=1)]
    limit: int = 10
    dialects: list[str] = []
    scope: str | None = None
    tags: list[str] = []
    actor: str | None = None
    after: str = ""
    before: str = ""
    as_of: str = ""
    expired: bool = False


class List(Struct, forbid_unknown_fields=True, omit_defaults=True):
    limit: Limit = 50
    dialects: list[str] = []
    actor: str | None = None
    after: str = ""


class Add(Struct, forbid_unknown_fields=True):
    """A new memory; the first line of the text is its name if the dialect needs a name and `name` is empty."""

    text: Annotated[str, Meta(min_length=1)]
    dialect: str = ""
    name: str = ""
    until: str = ""


class _Skipped(Struct):
    reason: str = ""


class Edit(Struct, forbid_unknown_fields=True):
    """Another text for a memory, or another end of its validity (empty: none); it must still be of this version."""

    id: actions.Id
    version: str
    text: str | None = None
    until: str | None = None


class One(Struct, forbid_unknown_fields=True):
    id: actions.Id


class Witness(Struct, forbid_unknown_fields=True):
    """The places in a project that a client has seen: document, path, symbol, line, digest and state of each."""

    project: Annotated[str, Meta(min_length=1, max_length=256)]
    seen: Annotated[list[Seen], Meta(max_length=1024)]


class Undo(Struct, forbid_unknown_fields=True):
    call: Annotated[int, Meta(ge=1, le=2**53)]


class Nothing(Struct, forbid_unknown_fields=True):
    """No arguments."""


class Origin(Struct):
    """Where a memory comes from; `created_at` is left out if nothing has changed since."""

    dialect: str = ""
    tool: str = ""
    actor: str = ""
    created_at: str | UnsetType = UNSET
    updated_at: str = ""


class Hit(Struct, omit_defaults=True):
    id: str
    text: str
    score: float | UnsetType = UNSET
    strength: float | UnsetType = UNSET
    verdict: Verdict | UnsetType = UNSET
    complete: bool = True
    scope: str | UnsetType = UNSET
    provenance: Origin = msgspec.field(default_factory=Origin)
    flag: str | UnsetType = UNSET
    stale: str | UnsetType = UNSET
    expired: bool = False
    witness: str = ""


class _Page(Struct):
    memories: list[Hit]
    cursor: str | None = None


class Shown(Struct):
    """A memory as it is; `version` names its state, and `edit` and `forget` say whether a tool does that.

    `lock` says why it is immutable, and is empty if it is not; `until` is when it stops being true. `beside` are its
    parts that the text does not hold, and `observations` can be forgotten alone.
    """

    id: str
    text: str
    version: str
    scope: str
    dialect: str
    tool: str
    actor: str
    created_at: str
    updated_at: str
    quarantined: str | None
    edit: bool
    forget: bool
    lock: str
    until: str
    observations: list[str]
    links: list[Linked]
    beside: dict[str, Any]


class Changed(Struct):
    """The change of a memory, and the call that `quipu undo` takes; 0 if nothing was changed."""

    id: str
    done: str
    call: int
    version: str


class Kept(Struct):
    kept: int


class Undone(Struct):
    """The call that was undone, and the first memories that it had touched."""

    call: int
    tool: str
    at: str
    touched: int
    memories: list[str]


async def recall(dispatch: Dispatch, visit: Visit, request: Recall) -> list[Hit]:
    """Return the memories that the tool of this name finds, with their texts."""
    page = await ask_recall(dispatch, visit, {**_LIMIT, **_fields(request), "detail": "text"}, _Page)
    return page.memories


async def list_memories(dispatch: Dispatch, visit: Visit, request: List) -> list[Hit]:
    """Return the newest memories, a line of each."""
    hits, cursor, filters = list[Hit](), "", _fields(request)
    while len(hits) < request.limit:
        size = min(_PAGE, request.limit - len(hits))
        asking = {**_LIMIT, **filters, "limit": size, "cursor": cursor, "explain": True, "expired": True}
        page = await ask_recall(dispatch, visit, asking, _Page)
        hits += page.memories
        cursor = page.cursor or ""
        if not cursor:
            break
    return hits


async def show(dispatch: Dispatch, visit: Visit, request: One) -> Shown:
    """Return one memory; raises Fault("not_found")."""
    place = await place_meant(dispatch, visit, request.id)
    return await read(dispatch, visit, lambda tx: _shown(tx, dispatch, visit, place))


async def history(dispatch: Dispatch, visit: Visit, request: One) -> list[Event]:
    """Return the newest events of a memory, which may be gone; raises Fault("not_found") if there are none."""
    place = await place_meant(dispatch, visit, request.id)
    past = await read(dispatch, visit, lambda tx: events(tx, place))
    if not past:
        raise no_memory(place)
    return past[:PAGE_ROWS]


async def add(dispatch: Dispatch, visit: Visit, request: Add) -> Changed:
    """Adds a memory with the tool of a dialect."""
    dialect = _adding(dispatch, visit, request.dialect)
    assert dialect.memories.compose is not None
    compose, typed = dialect.memories.compose, request.name.strip()
    if typed and compose(request.text, "a") == compose(request.text, "b"):
        raise Fault("invalid", f"name: a new memory of {dialect.name} has none; leave it out.")
    name = typed or _name_of(request.text)
    call = compose(request.text, name)
    if request.until:
        call = actions.with_until(call, request.until)
    targets: list[Target] = []
    try:
        reply = await actions.call_for_person(dispatch, visit, call, after=lambda tx: targets.extend(tx.touched[1]))
    except Fault as fault:
        place = await place_of_name(dispatch, visit, dialect.name, name)
        if place is None or fault.code != "conflict":
            raise
        raise Fault("conflict", f"There is {place.id} already: `quipu edit {place.id}` changes it.") from None
    if not targets and visit.caller.idempotency_key is not None:
        targets = await read(dispatch, visit, lambda tx: first_targets(tx, visit.caller))
    if not targets:
        place = await place_of_name(dispatch, visit, dialect.name, name)
        there = f"{place.id if place else 'a memory with this name and text'} is there already"
        raise Fault("conflict", f"Nothing was added: {_reason_in(reply.body) or there}.")
    return await _changed(dispatch, visit, Place(*targets[0][:2]), "added")


async def edit(dispatch: Dispatch, visit: Visit, request: Edit) -> Changed:
    """Writes another text or end of validity, unless the memory has changed since the version."""
    memory_id = (await place_meant(dispatch, visit, request.id)).id
    place, curation, call = await actions.editing(dispatch, visit, memory_id)
    changed = actions.edited(call, curation, request.text, request.until)
    if changed is None:
        return Changed(place.id, _UNCHANGED, 0, request.version)
    await actions.call_tool(dispatch, visit, place, request.version, changed)
    return await _changed(dispatch, visit, place, "edited")


async def forget(dispatch: Dispatch, visit: Visit, request: actions.Forget) -> Changed:
    """Delete a memory, or an observation of it; an immutable memory only if an admin asks for that."""
    request.id = (await place_meant(dispatch, visit, request.id)).id
    place = await actions.forget_as_asked(dispatch, visit, request)
    return await _changed(dispatch, visit, place, "forgotten")


async def undo(dispatch: Dispatch, visit: Visit, request: Undo) -> Undone:
    """Undo the changes of a call; raises Fault with the reason if that cannot be done."""
    entry = await actions.take_back(dispatch, visit, request.call)
    memories = [Place(space, key).id for space, key, _ in audit.targets(entry)]
    return Undone(entry.id, entry.tool, entry.at, entry.touched, memories)


async def keep_seen(dispatch: Dispatch, visit: Visit, request: Witness) -> Kept:
    """Keeps the sight that a client had of the places that memories name."""
    require(visit, "witness", Permission.write)
    if allowed_dialects(visit) is not None:
        raise Forbidden("witness", None)
    kept = await actions.write(dispatch, visit, lambda tx: witness.keep(tx, request.project, request.seen), "witness")
    return Kept(kept)


async def mark_places(dispatch: Dispatch, visit: Visit, hits: Sequence[Hit], mark: str, *, plain: bool) -> None:
    """Adds to hits the places that their client compares with its checkout, between two copies of its mark."""

    def marks(tx: Tx) -> dict[str, str]:
        keys = [(space, key) for space, _, key in (hit.id.partition("/") for hit in hits)]
        memories = index.documents(tx, index.doc_ids(tx, keys))
        by_doc = witness.marks(tx, memories.values(), mark, plain=plain)
        return {f"{memories[doc].space}/{memories[doc].key}": text for doc, text in by_doc.items()}

    by_id = await read(dispatch, visit, marks)
    for hit in hits:
        hit.witness = by_id.get(hit.id, "")


async def stats(dispatch: Dispatch, visit: Visit, _request: Nothing) -> Stats:
    """Return the counts of the memories the caller may see."""
    dialects, sizes = allowed_dialects(visit), dispatch.store.load()
    return await read(
        dispatch, visit, lambda tx: overview.stats(tx, dialects, sizes, days_until_now(tx, WEEK, dialects))
    )


Result = Struct | list[Any]
Command = Callable[[Dispatch, Visit, Any], Awaitable[Result]]


def _as_tool(name: str, permission: Access, command: Command) -> Tool:
    """Return a command with its schemas; its result is a line of its answer."""
    _, _, request, result = get_type_hints(command).values()
    line = get_args(result)[0] if get_origin(result) is list else result
    about = " ".join((command.__doc__ or "").split())
    return Tool(name, about, request, line, command, "exclusive", Hints(), permission)


COMMANDS: Mapping[str, Tool] = {
    command.name: command
    for command in (
        _as_tool("recall", "read", recall),
        _as_tool("list", "read", list_memories),
        _as_tool("show", "read", show),
        _as_tool("history", "read", history),
        _as_tool("add", "write", add),
        _as_tool("edit", "write", edit),
        _as_tool("forget", "write", forget),
        _as_tool("erasable", "read", erasable),
        _as_tool("erase", "admin", erase),
        _as_tool("undo", "write", undo),
        _as_tool("witness", "write", keep_seen),
        _as_tool("stats", "read", stats),
    )
}


def local_caller(data: Path, tenant: str) -> Caller:
    """Return the caller that may do everything with a tenant that has a folder or a key; raises Fault("not_found")."""
    if tenant != MAIN and tenant not in other_tenants(data) and not api_keys.opens(data, tenant):
        raise Fault("not_found", f"There is no tenant {tenant[:63]}: `quipu tenant list` shows all.")
    return Caller(TERMINAL, FULL_ACCESS, tenant)


async def run_command(
    dispatch: Dispatch, caller: Caller, name: str, arguments: bytes, mark: str = "", *, plain: bool = False
) -> Result:
    """Return the result of a command, that of recall with the marks of its client; raises Fault, and Forbidden."""
    tool = COMMANDS[name]
    decode = json_decoder(tool.request)
    try:
        request = decode(arguments)
    except UNREADABLE as error:
        request = decode_again(tool, decode, arguments, error)
    result = await tool.handler(dispatch, Visit(caller, {}), request)
    if isinstance(request, Recall) and not request.as_of and _MARK.fullmatch(mark):
        await mark_places(dispatch, Visit(caller, {}), cast("list[Hit]", result), mark, plain=plain)
    return result


def _fields(request: Struct) -> dict[str, Any]:
    """Return the fields that were sent, which leaves the defaults to the tool."""
    return msgspec.to_builtins(request)


def _shown(tx: Tx, dispatch: Dispatch, visit: Visit, place: Place) -> Shown:
    state = state_of(tx, dispatch, place)
    if state is None:
        raise no_memory(place)
    document, curation, version = state
    text = curation.text or document.text
    return Shown(
        place.id,
        text,
        version,
        document.scope,
        *document[2:],
        edit=curation.edit is not None,
        forget=curation.forget is not None,
        lock=curation.lock,
        until=curation.until,
        observations=[*curation.observations],
        links=links_of(tx, visit, curation),
        beside=parts_beside(tx, place, text),
    )


def _adding(dispatch: Dispatch, visit: Visit, name: str) -> Dialect:
    able = {dialect.name: dialect for dialect in dispatch.dialects if dialect.memories.compose is not None}
    if not able:
        raise Fault("disabled", "No dialect that is served can add a memory.")
    if name and name not in able:
        raise Fault("invalid", f"dialect: choose from {', '.join(able)}")
    dialect = able[name] if name else next(iter(able.values()))
    if not visit.caller.grant.allows_dialect(dialect.name):
        raise Forbidden(dialect.name, None)
    return dialect


def _reason_in(body: bytes) -> str:
    """Return why a tool that has answered has added nothing, if its answer says so."""
    try:
        return msgspec.json.decode(body, type=_Skipped).reason
    except msgspec.DecodeError:
        return ""


def _name_of(text: str) -> str:
    first = next((line for line in text.splitlines() if line.strip()), "")
    return one_line(first.replace("/", " "), _NAME_CHARS).strip(" #*-.…") or "memory"


async def _changed(dispatch: Dispatch, visit: Visit, place: Place, verb: str) -> Changed:
    def after(tx: Tx) -> Changed:
        newest = calls_of(tx, place)
        return Changed(place.id, verb, newest[0].number if newest else 0, version_of(tx, dispatch, place))

    return await read(dispatch, visit, after)
