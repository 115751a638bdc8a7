"""The actions of the console's forms: tools are called as agents call them, so that rights, audit and undo apply."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Annotated, Any, NamedTuple, TypeVar
from urllib.parse import urlencode

import msgspec

from handlers.console.administration import Health, check_health, manages
from handlers.console.connect import base
from handlers.console.guide import NOT_ADMIN, ClientSetup
from handlers.console.memory import curation_of, find_document, no_memory, state_of, version_of
from handlers.console.reading import Place, Site, console_context, place_of, read, require
from handlers.console.records import calls_of, events, newest_call
from handlers.console.requests import Visit, as_shown, with_line_ends_of
from kernel.calls.dispatch import Call, Dispatch, ToolEntry, reporting
from kernel.calls.tools import Reply, Tool
from kernel.core.errors import Fault, unless_fault
from kernel.core.ids import utc_now
from kernel.core.times import utc_time
from kernel.memories import witness
from kernel.memories.curation import Curation, ToolCall
from kernel.operations.erase import Receipt
from kernel.operations.shared_store import changing_keys
from kernel.operations.undo import called, changed_since, whole_undo
from kernel.search import quarantine
from kernel.security import api_keys
from kernel.security.api_keys import Key
from kernel.security.permissions import Forbidden, Permission
from kernel.store import audit
from kernel.store.long_work import Slices, is_steps, run_steps
from kernel.store.transaction import Tx

R = TypeVar("R")
Fields = Mapping[str, str]
Id = Annotated[str, msgspec.Meta(min_length=1, max_length=4096)]
_CHANGED = "It has changed since it was opened. Nothing was written: look at it again."
_LIFTING = "An admin can forget it all the same: `quipu forget --immutable`, or the tick in the form of the console."
_REPLY_CHARS = 2000  # of a dialect's words for a failure
_SLICE_SECONDS = 0.005  # of an undo: other writes wait for so long


class Done(NamedTuple):
    """The next page of the browser, or a text shown once: a secret, or the state of the server.

    `file` is a download, `erasable` are memories to erase after another look, and `receipt` is that of an erasure.
    After the first key the browser goes on with a session of the key `begins`, and lists the `clients` that need a
    key.
    """

    location: str
    secret: str = ""
    health: Health | None = None
    begins: str = ""
    clients: Sequence[ClientSetup] = ()
    file: bytes = b""
    erasable: Sequence["Named"] = ()
    receipt: Receipt | None = None

    @classmethod
    def at_memory(cls, memory_id: str, notice: str) -> "Done":
        return cls(f"/ui/memory?{urlencode({'id': memory_id, 'done': notice})}")


class Named(msgspec.Struct):
    """A memory that would be erased, and why no tool may change it, if so."""

    id: str
    text: str
    lock: str = ""


Action = Callable[[Site, Dispatch, Visit, Fields], Awaitable[Done]]


async def edit(_site: Site, dispatch: Dispatch, visit: Visit, fields: Fields) -> Done:
    """Writes another text, or end of validity, by the editing tool of the dialect, unless the memory has changed."""
    place, curation, call = await editing(dispatch, visit, fields.get("id", ""))
    if "text" not in fields:
        raise Fault("invalid", f"text: is missing, the new {call.text}")
    text = with_line_ends_of(curation.text, fields["text"])
    typed = fields.get("until", curation.until)
    until = typed if typed == curation.until else visit.end(typed)
    changed = edited(call, curation, text, until)
    if changed is not None:
        await call_tool(dispatch, visit, place, fields.get("version", ""), changed)
    return Done.at_memory(place.id, "edited")


async def forget(_site: Site, dispatch: Dispatch, visit: Visit, fields: Fields) -> Done:
    """Deletes a memory with the tool of its dialect, unless the memory has changed meanwhile.

    An immutable memory takes the field `immutable` and the right to lift that; with the field `observation` only that
    of an entity is deleted.
    """
    request = Forget(fields.get("id", ""), bool(fields.get("immutable")), fields.get("observation", ""))
    place = await forget_as_asked(dispatch, visit, request, fields.get("version", ""))
    return Done.at_memory(place.id, "forgotten")


async def forget_selected(_site: Site, dispatch: Dispatch, visit: Visit, fields: Fields) -> Done:
    """Deletes several memories, each with the tool of its dialect; if one cannot be deleted, none is."""
    require(visit, "Forget", Permission.write)
    places = selected(visit, fields)
    for place in places:
        await require_forgettable(dispatch, visit, Forget(place.id))
    last = await read(dispatch, visit, newest_call)
    for place in places:
        await forget_as_asked(dispatch, visit, Forget(place.id))
    return await _done_together(dispatch, visit, places, last, "forgotten")


async def change_selected(_site: Site, dispatch: Dispatch, visit: Visit, fields: Fields) -> Done:
    """Tags several memories, or moves them to a folder; if one cannot be, none is."""
    require(visit, "Change", Permission.write)
    tag, folder = (fields.get(name, "").strip() for name in ("tag", "folder"))
    if not tag and not folder:
        raise Fault("invalid", "Type a tag or a folder.")
    changes = [
        (place, call)
        for place in selected(visit, fields)
        for call in await _changes(dispatch, visit, place, tag, folder)
    ]
    if not changes:
        return Done("/ui/audit?done=unchanged")
    last = await read(dispatch, visit, newest_call)
    for place, call in changes:
        version = await read(dispatch, visit, lambda tx, place=place: version_of(tx, dispatch, place))
        await call_tool(dispatch, visit, place, version, call)
    return await _done_together(dispatch, visit, [place for place, _ in changes], last, "changed")


async def _changes(dispatch: Dispatch, visit: Visit, place: Place, tag: str, folder: str) -> list[ToolCall]:
    curation = await _curation(dispatch, visit, place, "changed")
    for asked, offered, verb, does in (
        (tag, curation.tag, "tagged", "tags"),
        (folder, curation.move, "moved", "moves"),
    ):
        if asked and offered is None:
            raise Fault("conflict", f"{_named(place)} cannot be {verb} because {_without_tool(place, does)}.")
    calls = [curation.tag(tag)] if tag and curation.tag else []
    if folder and curation.move:
        calls.append(curation.move(folder.strip("/")))
    return [call for call in calls if call is not None]


async def _done_together(dispatch: Dispatch, visit: Visit, places: Sequence[Place], last: int, notice: str) -> Done:
    """Return the page with the calls after `last` that touched the places, which undoes all of them."""
    numbers = list[str]()
    for place in places:
        newest = await read(dispatch, visit, lambda tx, place=place: calls_of(tx, place))
        numbers += [str(call.number) for call in newest[:1] if call.number > last]
    return Done(f"/ui/audit?{urlencode({'calls': ' '.join(numbers), 'done': notice})}")


async def export_selected(_site: Site, dispatch: Dispatch, visit: Visit, fields: Fields) -> Done:
    places = selected(visit, fields)

    def lines(tx: Tx) -> list[bytes]:
        states = ((place, state_of(tx, dispatch, place)) for place in places)
        return [
            msgspec.json.encode(
                {"id": place.id, **state.document._asdict(), "text": state.curation.text or state.document.text}
            )
            for place, state in states
            if state is not None
        ]

    return Done("", file=b"\n".join([*await read(dispatch, visit, lines), b""]))


def selected(visit: Visit, fields: Fields) -> list[Place]:
    return [place_of(visit, value) for value in _picked(fields)]


def _picked(fields: Fields) -> list[str]:
    """Return the values of the ticked boxes of a list, or the id of a page; raises Fault if there are none."""
    values = [value for name, value in fields.items() if name == "id" or name.startswith("pick")]
    if not values:
        raise Fault("invalid", "Nothing is selected.")
    return values


async def undo_several(_site: Site, dispatch: Dispatch, visit: Visit, fields: Fields) -> Done:
    require(visit, "Undo", Permission.write)
    numbers = fields["numbers"].split() if "numbers" in fields else _picked(fields)
    for number in sorted({_number(text) for text in numbers}, reverse=True):
        await take_back(dispatch, visit, number)
    return Done("/ui/audit?done=undone")


async def undo(_site: Site, dispatch: Dispatch, visit: Visit, fields: Fields) -> Done:
    """Undoes a call; it takes the permission that the call took."""
    entry = await take_back(dispatch, visit, _number(fields.get("number", "")))
    targets = audit.targets(entry)
    if len(targets) == 1:
        place = Place(*targets[0][:2])
        if await read(dispatch, visit, lambda tx: find_document(tx, place, 1) or events(tx, place)):  # else it is gone
            return Done.at_memory(place.id, "undone")
    return Done("/ui/audit?done=undone")


async def release(_site: Site, dispatch: Dispatch, visit: Visit, fields: Fields) -> Done:
    """Releases quarantined memories until their texts change."""
    require(visit, "Release", Permission.admin)
    places = selected(visit, fields)
    await write(dispatch, visit, lambda tx: [quarantine.release(tx, place.id) for place in places], "quarantine")
    return Done("/ui/review?done=released")


async def confirm(_site: Site, dispatch: Dispatch, visit: Visit, fields: Fields) -> Done:
    """Takes the files that memories name as they are now."""
    require(visit, "Confirm", Permission.write)
    places = selected(visit, fields)
    await write(dispatch, visit, lambda tx: witness.confirm(tx, places), "witness")
    return Done("/ui/review?done=confirmed")


async def create_key(site: Site, dispatch: Dispatch, visit: Visit, fields: Fields) -> Done:
    """Creates a key of the caller's tenant that may do no more than the caller; its secret is shown once."""
    scope, expires = fields.get("scope", ""), fields.get("expires", "").strip()
    scopes = [permission.name for permission in Permission if permission <= visit.caller.grant.permission]
    require(visit, "Keys", Permission.admin)
    if scope not in scopes:
        raise Fault("invalid", f"scope: choose from {', '.join(scopes)}")
    dialect_name = fields.get("dialect", "")
    dialect_names = [dialect.name for dialect in dispatch.dialects]
    if dialect_name and dialect_name not in dialect_names:
        raise Fault("invalid", f"dialect: choose from {', '.join(dialect_names)}")
    now = utc_now()
    draft = Key(
        "",
        Permission[scope].name,  # pyrefly: ignore[bad-argument-type]  # the names of the permissions
        now,
        tenant=visit.caller.tenant,
        name=fields.get("name", "")[:80],
        dialects=(dialect_name,) if dialect_name else (),
        expires=api_keys.expiry(expires, now) if expires else "",
    )
    if not manages(visit, draft):
        raise Forbidden("A key for other dialects", None)
    first = not (site.config.open or await asyncio.to_thread(api_keys.read, site.config.data))
    if first and (Permission[scope] < Permission.admin or dialect_name) and fields.get("sure") != "yes":
        raise Fault("invalid", f"This is the first key. {NOT_ADMIN} Choose admin and all dialects, or tick the box.")
    key, secret = await asyncio.to_thread(_change, site, api_keys.create, draft)
    if not first:
        return Done("/ui/keys", secret)
    clients = await asyncio.to_thread(site.guide.clients, f"{base(site)}/mcp", "KEY")
    return Done("/ui/keys", secret, begins=key.id, clients=[client for client in clients if client.rekey])


def _change(site: Site, change: Callable[..., R], *given: Any) -> R:
    with changing_keys(site.config):
        return change(site.config.data, *given)


async def revoke_key(site: Site, _dispatch: Dispatch, visit: Visit, fields: Fields) -> Done:
    require(visit, "Keys", Permission.admin)
    key_id = fields.get("id", "")
    keys = {key.id: key for key in await asyncio.to_thread(api_keys.read, site.config.data)}
    key = keys.get(key_id)
    if key is None or not manages(visit, key):
        raise Fault("not_found", "There is no key of this id.")
    if Permission[key.scope] > visit.caller.grant.permission:
        raise Forbidden("This key", Permission[key.scope])
    await asyncio.to_thread(_change, site, api_keys.revoke, key_id, utc_now())
    return Done("/ui/keys?done=revoked")


async def check(site: Site, dispatch: Dispatch, visit: Visit, _fields: Fields) -> Done:
    """Runs all checks of the installation: an action, since they read every database."""
    return Done("/ui/health", health=await check_health(site, dispatch, visit))


ACTIONS: Mapping[str, Action] = {
    "edit": edit,
    "forget": forget,
    "undo": undo,
    "forget-selected": forget_selected,
    "change-selected": change_selected,
    "export-selected": export_selected,
    "undo-several": undo_several,
    "release": release,
    "confirm": confirm,
    "create-key": create_key,
    "revoke-key": revoke_key,
    "check": check,
}


async def take_back(dispatch: Dispatch, visit: Visit, number: int) -> audit.Entry:
    """Undoes a call, and returns its entry; raises Fault, and Forbidden for a caller who could not make the call."""
    require(visit, "Undo", Permission.write)
    entry = await read(dispatch, visit, lambda tx: called(tx, number))
    _check_may_undo(dispatch, visit, entry)
    await _check_unchanged(dispatch, visit, number)
    work = Slices(whole_undo(dispatch.dialects, number, dispatch.store.undo_hours))
    work.seconds = _SLICE_SECONDS
    await write(dispatch, visit, work, "undo")
    _tell_observers(dispatch, visit, entry)
    return entry


async def editing(dispatch: Dispatch, visit: Visit, memory_id: str) -> tuple[Place, Curation, ToolCall]:
    """Return the place of a memory, its actions, and the call that edits it; raises Fault."""
    place = place_of(visit, memory_id)
    curation = await _curation(dispatch, visit, place, "edited")
    if curation.edit is None:
        raise Fault("conflict", f"{_named(place)} cannot be edited because {_without_tool(place, 'edits')}.")
    return place, curation, curation.edit


def edited(call: ToolCall, curation: Curation, text: str | None, until: str | None) -> ToolCall | None:
    """Return the call that writes a text, an end of validity or both; None if the memory has them, or neither is
    asked for.
    """
    changed = call
    if text is not None and text != curation.text:
        changed = call._replace(arguments={**call.arguments, call.text: text})
    if until is not None and until != curation.until:
        changed = with_until(changed, until)
    return None if changed is call else changed


def with_until(call: ToolCall, until: str) -> ToolCall:
    """Return the call with an end of validity; raises Fault if its tool knows none."""
    if not call.until:
        raise Fault(
            "invalid", f"until: {call.tool} knows no end of a memory; those of brain and knowledge of scopes have one."
        )
    if until and utc_time(until) is None:
        raise Fault("invalid", "until: must be a date or a time in ISO 8601, such as 2026-01-31.")
    return call._replace(arguments={**call.arguments, call.until: until})


class Forget(msgspec.Struct, forbid_unknown_fields=True):
    """A memory to delete, with `immutable` even if it is protected, or only an observation of an entity by its text."""

    id: Id
    immutable: bool = False
    observation: str = ""


async def require_forgettable(dispatch: Dispatch, visit: Visit, request: Forget) -> None:
    """Raise the Fault with which `forget_as_asked` would refuse."""
    place = place_of(visit, request.id)
    _call_to_forget(place, await _curation(dispatch, visit, place, "forgotten"), request)


async def forget_as_asked(dispatch: Dispatch, visit: Visit, request: Forget, version: str | None = None) -> Place:
    """Forgets a memory, if it is of this version. Return its place; raises Fault, also if it is still there."""
    place = place_of(visit, request.id)
    curation = await _curation(dispatch, visit, place, "forgotten")
    call = _call_to_forget(place, curation, request)
    if version is None:
        version = await read(dispatch, visit, lambda tx: version_of(tx, dispatch, place))
    reply = await call_tool(dispatch, visit, place, version, call)
    if not request.observation and await read(dispatch, visit, lambda tx: version_of(tx, dispatch, place)):
        raise Fault("conflict", f"It is still there: {_words(reply)}")
    return place


def _call_to_forget(place: Place, curation: Curation, request: Forget) -> ToolCall:
    if request.observation:
        same = (call for text, call in curation.observations.items() if request.observation in {text, as_shown(text)})
        observation = next(same, None)
        if observation is None:
            raise Fault("not_found", f"{_named(place)} has no such observation.")
        return observation
    if curation.lock and not request.immutable:
        message = f"{_named(place)} cannot be forgotten because it is immutable: {curation.lock}. {_LIFTING}"
        raise Fault("blocked", message if curation.forget_locked else f"{message.removesuffix(_LIFTING).rstrip()}")
    call = curation.forget_locked if curation.lock else curation.forget
    if call is None:
        why = curation.obstacle or _without_tool(place, "deletes")
        raise Fault("conflict", f"{_named(place)} cannot be forgotten because {why}.")
    return call


async def _curation(dispatch: Dispatch, visit: Visit, place: Place, verb: str) -> Curation:
    """Return the actions that a memory allows a person; raises Fault if it is gone, or its dialect has none."""

    def look(tx: Tx) -> tuple[Curation | None, bool]:
        return curation_of(tx, dispatch, place), find_document(tx, place, 1) is not None

    curation, is_there = await read(dispatch, visit, look)
    if curation is None and not is_there:
        raise no_memory(place)
    if curation is None:
        is_served = any(dialect.name == place.dialect for dialect in dispatch.dialects)
        why = "it is not there any more" if is_served else f"this server does not serve {place.dialect}"
        raise Fault("conflict", f"{_named(place)} cannot be {verb} because {why}.")
    return curation


def _named(place: Place) -> str:
    return place.id[:200]


def _without_tool(place: Place, does: str) -> str:
    return f"no tool of {place.dialect} {does} this kind of memory"


async def call_tool(dispatch: Dispatch, visit: Visit, place: Place, version: str, call: ToolCall) -> Reply:
    def check(tx: Tx) -> None:
        if version_of(tx, dispatch, place) != version:
            raise Fault("conflict", _CHANGED)

    return await call_for_person(dispatch, visit, call, before=check)


async def call_for_person(
    dispatch: Dispatch,
    visit: Visit,
    call: ToolCall,
    before: Callable[[Tx], None] = lambda _tx: None,
    after: Callable[[Tx], None] = lambda _tx: None,
) -> Reply:
    """Calls a tool with steps around it in its transaction; raises the Fault.

    The changes of a person can be undone, with every tool.
    """
    entry = dispatch.entry(call.tool)
    if entry is None:
        raise Fault("disabled", f"{call.tool} is not served.")
    tool, handler = entry.tool, entry.tool.handler

    def handle(tx: Tx, request: Any) -> Any:
        before(tx)
        result = handler(tx, request)
        if is_steps(result):
            result = run_steps(tx, result)
        after(tx)
        return result

    faults: list[Fault] = []

    def fail(fault: Fault) -> Reply:
        faults.append(fault)
        return entry.dialect.fail(fault)

    once = ToolEntry(entry.dialect._replace(fail=fail), _undoable(tool._replace(handler=handle)))
    once.observers = entry.observers
    reply = await dispatch.call(once, msgspec.json.encode(call.arguments), visit.caller)
    if not isinstance(reply, Reply):
        raise Fault("disabled", f"{call.tool} asks back, which only an MCP client can answer.")
    if reply.fault is not None:
        raise Fault(reply.fault, faults[0].message if faults else _words(reply))
    return reply


def _undoable(tool: Tool) -> Tool:
    """Return the tool as one call in one transaction, whose changes are kept for undo."""
    hooks, hints = tool.hooks._replace(batch=None), tool.hints._replace(destructive=True)
    return tool._replace(hooks=hooks, hints=hints)


def _tell_observers(dispatch: Dispatch, visit: Visit, undone: audit.Entry) -> None:
    """Notifies the observers of a tool, such as subscribers of a resource, of the changes of a call."""
    entry = dispatch.entry(undone.tool)
    if entry is not None:
        reporting(entry.observers, Call(entry, b"{}", visit.caller))("ok")


def _check_may_undo(dispatch: Dispatch, visit: Visit, entry: audit.Entry) -> None:
    grant, tool = visit.caller.grant, dispatch.entry(entry.tool)
    if not grant.allows_dialect(entry.dialect):
        raise Forbidden(f"Call {entry.id}", None)
    least = max(Permission.write, tool.required.most) if tool else Permission.admin
    require(visit, f"Undo of {entry.tool}", least)


async def _check_unchanged(dispatch: Dispatch, visit: Visit, number: int) -> None:
    """Raises the Fault for a call of which something has changed again, if a read has the time to see it."""
    try:
        conflict = await read(dispatch, visit, partial(changed_since, number=number))
    except Fault as fault:
        if fault.code != "invalid":
            raise
        return
    if conflict is not None:
        raise conflict


async def write(dispatch: Dispatch, visit: Visit, work: Callable[[Tx], R], tool: str) -> R:
    _, future = dispatch.store.write(work, console_context(visit, tool), exclusive=True)
    return unless_fault(await future)


def _words(reply: Reply) -> str:
    return reply.body[:_REPLY_CHARS].decode("utf-8", "replace")


def _number(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise Fault("invalid", "number: is the id of a call in the audit")
    return int(text)
