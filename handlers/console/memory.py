"""A memory: its text, its source, its versions, and the actions it allows."""

import hashlib
from collections.abc import Sequence
from itertools import islice
from typing import Any, NamedTuple
from urllib.parse import quote_plus

from msgspec import Struct

from handlers.console.reading import SHOWN_CHARS, Place, Site, allowed_dialects, place_of, read
from handlers.console.records import Call, DiffLine, Event, calls_of, compare, events, with_texts
from handlers.console.requests import CRLF, FORM_BYTES, TEXT_BYTES, Visit, as_shown
from kernel.calls.dialect import beside_of
from kernel.calls.dispatch import Dispatch
from kernel.core.errors import Fault
from kernel.core.text import did_you_mean, json_text
from kernel.memories.as_of import is_unrecorded
from kernel.memories.curation import Curation, Neighbour, ToolCall
from kernel.search import index
from kernel.store import history
from kernel.store.transaction import Tx

_WHOLE_CHARS = 4_000_000
_SHOWN_OBSERVATIONS, _OBSERVATION_CHARS = 100, 200  # with a form each
_NAME_CHARS = 80  # of a linked memory
_TYPED = "paths"  # the space with keys that people type without it
_LEAST_TYPED = 4  # characters of an id that names a memory by its beginning
_MEANT = 3  # memories that a refusal names
_LOOKED_AT = 20  # memories with the same beginning
_NEIGHBOURS = 10  # before a misspelt key, and as many after it
_FORM_ROOM = FORM_BYTES - TEXT_BYTES // 2  # for the text of a form as it is sent, next to its other fields


class Document(NamedTuple):
    scope: str = ""
    text: str = ""
    dialect: str = ""
    tool: str = ""
    actor: str = ""
    created_at: str = ""
    updated_at: str = ""
    rule: str | None = None


class State(NamedTuple):
    """A memory as it is: its document, the actions it allows a person, and a digest of both."""

    document: Document
    curation: Curation
    version: str


class Linked(Struct):
    relation: str
    outgoing: bool
    id: str
    name: str


class Memory(Struct):
    """A memory; `version` names its present state, without which nothing is changed.

    `lock` says why no tool may change it: forgetting it then takes a caller who may lift that. The `observations` of an
    entity can be forgotten singly.

    A memory that is gone has its events, and no text. `editable` is the text as it is edited, None if the dialect
    has no tool for it, the caller no right to it, or a form no room; `until` is the end of its validity, None if that
    cannot be edited. `uri` is its resource of MCP, and `then` the text
    as it was at the time `at`: None if it was not there, or no time is asked for, empty if the text was removed.
    Only if `at_known` does the history hold whole texts. `problem` says why the requested time is none, and
    `compared` how two requested versions differ: empty if they are equal, or too long for that. `beside` are the parts
    that the text does not hold.
    """

    id: str
    exists: bool
    scope: str
    text: str
    complete: bool
    dialect: str
    tool: str
    actor: str
    created_at: str
    updated_at: str
    rule: str | None
    version: str
    editable: str | None
    until: str | None
    forgettable: bool
    lock: str
    observations: list[str]
    events: list[Event]
    calls: list[Call]
    links: list[Linked]
    uri: str
    at: str
    at_known: bool
    then: str | None
    beside: dict[str, Any]
    problem: str = ""
    compared: list[DiffLine] | None = None


async def load(_site: Site, dispatch: Dispatch, visit: Visit) -> Memory:
    """Return the memory of the id; raises Fault("not_found") if there is none and never was."""
    place = place_of(visit, visit.query.get("id", ""))
    chars = _WHOLE_CHARS if visit.query.get("all") else SHOWN_CHARS
    return await read(dispatch, visit, lambda tx: _memory(tx, dispatch, visit, place, chars))


def _memory(tx: Tx, dispatch: Dispatch, visit: Visit, place: Place, chars: int) -> Memory:
    state, past = state_of(tx, dispatch, place), events(tx, place)
    if state is None and not past:
        raise no_memory(place)
    document, curation, version = state or State(Document(dialect=place.dialect), Curation(""), "")
    text = curation.text or document.text
    parts = parts_beside(tx, place, text) if state else {}
    are_short = len(json_text(parts)) <= chars
    try:
        at, problem = visit.moment("at"), ""
    except Fault as fault:
        at, problem = "", fault.message
    at_known = not is_unrecorded(tx, place.space)
    then = history.as_of(tx, place.space, place.key, at) if at and at_known else None
    editable = _may_call(dispatch, visit, curation.edit) and _fits_form(curation.text)
    return Memory(
        place.id,
        state is not None,
        document.scope,
        text[:chars],
        len(text) <= chars and are_short,
        *document[2:],
        version=version,
        editable=curation.text if editable else None,
        until=curation.until if editable and curation.edit and curation.edit.until else None,
        forgettable=_may_call(dispatch, visit, curation.forget_locked if curation.lock else curation.forget),
        lock=curation.lock,
        observations=_short_observations(curation),
        events=past,
        calls=with_texts(tx, dispatch, calls_of(tx, place), allowed_dialects(visit)),
        links=links_of(tx, visit, curation),
        uri=curation.uri,
        at=at,
        at_known=at_known,
        then=then[:chars] if then else then,
        beside=parts if are_short else {},
        problem=problem,
        compared=_compared(past, visit.number("from", -1), visit.number("to", -1)),
    )


def _compared(past: Sequence[Event], from_: int, to: int) -> list[DiffLine] | None:
    texts = {event.number: event.after for event in past}
    if from_ not in texts or to not in texts:
        return None
    return compare(texts[from_] or "", texts[to] or "")


def _short_observations(curation: Curation) -> list[str]:
    """Return the first observations, without those for which a form would be long."""
    short = (text for text in curation.observations if len(text) <= _OBSERVATION_CHARS)
    return list(islice(short, _SHOWN_OBSERVATIONS))


def links_of(tx: Tx, visit: Visit, curation: Curation) -> list[Linked]:
    return [_linked(tx, visit, link) for link in curation.links]


def _linked(tx: Tx, visit: Visit, link: Neighbour) -> Linked:
    place = Place(link.space, link.key)
    document = link.space and visit.caller.grant.allows_dialect(place.dialect) and find_document(tx, place, _NAME_CHARS)
    name = document.text.partition("\n")[0] if document else link.key
    return Linked(link.relation, link.outgoing, place.id if document else "", name or link.key)


def parts_beside(tx: Tx, place: Place, text: str) -> dict[str, Any]:
    """Return the parts of a memory that neither its id nor this text of it holds."""
    parts = beside_of(tx, {place: text}).get(place, {})
    return {name: part for name, part in parts.items() if part != place.key}


def find_document(tx: Tx, place: Place, chars: int) -> Document | None:
    return tx.one("kernel.console.document", Document, space=place.space, key=place.key, chars=chars)


def curation_of(tx: Tx, dispatch: Dispatch, place: Place) -> Curation | None:
    """Return the actions that a memory allows a person, as its dialect says."""
    dialect = next((dialect for dialect in dispatch.dialects if dialect.name == place.dialect), None)
    if dialect is None or dialect.memories.curate is None:
        return None
    try:
        return dialect.memories.curate(tx, place.space, place.key)
    except Fault as fault:
        if fault.code != "not_found":
            raise
        return None


def state_of(tx: Tx, dispatch: Dispatch, place: Place) -> State | None:
    """Return the present state of a memory; None if there is no such memory."""
    tx.flush_deferred()
    document = find_document(tx, place, _WHOLE_CHARS + 1)
    if document is None:
        return None
    curation = curation_of(tx, dispatch, place) or Curation("")
    parts = (document.updated_at, document.text[:_WHOLE_CHARS], curation.text)
    version = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return State(document, curation, version)


def version_of(tx: Tx, dispatch: Dispatch, place: Place) -> str:
    """Return the version of a memory; empty if there is no such memory."""
    state = state_of(tx, dispatch, place)
    return state.version if state else ""


def no_memory(place: Place) -> Fault:
    return Fault("not_found", f"There is no memory {place.id[:200]}.")


async def place_meant(dispatch: Dispatch, visit: Visit, text: str) -> Place:
    """Return the place of the only memory whose id or key is, or begins with, the typed text.

    Raises Fault that names the memories near it, if they are several or it is misspelt, and Forbidden.
    """
    space, slash, _ = text.partition("/")
    if slash and any(space.partition(":")[0] == dialect.name for dialect in dispatch.dialects):
        place_of(visit, text)
    return await read(dispatch, visit, lambda tx: _place_meant(tx, visit, text))


async def place_of_name(dispatch: Dispatch, visit: Visit, dialect: str, name: str) -> Place | None:
    places = await read(dispatch, visit, lambda tx: _alike(tx, visit, name)) if name else []
    return next((place for place in places if place.dialect == dialect and place.key == name), None)


def _place_meant(tx: Tx, visit: Visit, text: str) -> Place:
    space, slash, key = text.partition("/")
    place = Place(space, key)
    if slash and _allowed(visit, [place]) and (find_document(tx, place, 1) or events(tx, place)):
        return place
    matches = [*_alike(tx, visit, key, space), *_alike(tx, visit, text)] if slash else _alike(tx, visit, text)
    whole = [place for place in matches if text in (place.key, place.id)]
    places = [*dict.fromkeys(whole or matches)]
    if len(places) == 1 and (whole or (len(text) >= _LEAST_TYPED and (key or not slash))):  # not a space alone
        return places[0]
    message = f"There is no memory {text[:200]}" if len(places) < 2 else f"{text[:200]} may be several memories"
    if places:
        raise Fault("not_found", f"{message}: did you mean {' or '.join(place.id[:200] for place in places[:_MEANT])}?")
    ids = [place.id for place in _alike(tx, visit, key)] if slash else []
    hint = did_you_mean(text, ids) or (slash and _hint(tx, visit, place)) or _hint(tx, visit, Place(_TYPED, text))
    named = [] if hint else _named(tx, visit, key or text)
    hint = f": did you mean {' or '.join(place.id[:200] for place in named)}?" if named else hint
    raise Fault("not_found", f"{message}{hint or '.'}")


def _hint(tx: Tx, visit: Visit, place: Place) -> str:
    """Return a question for a misspelt key; its space, which all near it have, would make each of them near."""
    return did_you_mean(place.key, [near.key for near in _neighbours(tx, visit, place)], f"{place.space}/")


def _named(tx: Tx, visit: Visit, name: str) -> list[Place]:
    """Return the memories that begin with this name or text, or whose keys end with it."""
    hits, letters = index.search(tx, name[:_NAME_CHARS], limit=_MEANT, semantic=False), _folded(name)
    documents = {Place(hit.space, hit.id): find_document(tx, Place(hit.space, hit.id), _NAME_CHARS) for hit in hits}
    return _allowed(
        visit,
        [
            place
            for place, document in documents.items()
            if document and (_folded(document.text).startswith(letters) or _folded(place.key).endswith(letters))
        ],
    )


def _folded(text: str) -> str:
    return "".join(filter(str.isalnum, text.casefold()))


def _alike(tx: Tx, visit: Visit, key: str, space: str | None = None) -> list[Place]:
    """Return the first memories whose keys begin so, of those that the caller may see."""
    rows = tx.all("kernel.console.alike", Place, space=space, low=key, high=f"{key}\U0010ffff", limit=_LOOKED_AT)
    return _allowed(visit, rows)


def _neighbours(tx: Tx, visit: Visit, place: Place) -> list[Place]:
    where = {"space": place.space, "key": place.key}
    return _allowed(visit, tx.all("kernel.console.neighbours", Place, **where, limit=_NEIGHBOURS))


def _allowed(visit: Visit, places: list[Place]) -> list[Place]:
    return [place for place in places if visit.caller.grant.allows_dialect(place.dialect)]


def _may_call(dispatch: Dispatch, visit: Visit, call: ToolCall | None) -> bool:
    entry = dispatch.entry(call.tool) if call else None
    if entry is None or call is None:
        return False
    actions = entry.required.actions
    least = actions.get(str(call.arguments.get("action", "")), entry.required.most)
    return visit.caller.grant.allows_dialect(entry.dialect.name) and least <= visit.caller.grant.permission


def _fits_form(text: str) -> bool:
    """Return whether a form can hold the text and send it back as it is: a page has no NUL, a line end is
    sent as CRLF.
    """
    if len(text) > TEXT_BYTES or "\0" in text:
        return False
    form_text = as_shown(text).replace("\n", CRLF)
    return len(quote_plus(form_text, errors="replace")) <= _FORM_ROOM
