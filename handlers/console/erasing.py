"""Erasing: memories about a text are shown, then forgotten with all their traces, and a receipt proves it."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct

from handlers.console import actions
from handlers.console.memory import State, no_memory, place_meant, state_of, version_of
from handlers.console.reading import Place, Site, read, require
from handlers.console.requests import Visit
from handlers.console.search import ask_recall
from kernel.calls.dispatch import Dispatch, catch_faults
from kernel.core.errors import Fault, unless_fault
from kernel.core.lazy_regex import regex
from kernel.core.text import one_line
from kernel.operations import erase as traces
from kernel.operations.erase import Receipt
from kernel.search.fusion import Verdict
from kernel.security.permissions import Permission
from kernel.store import history
from kernel.store.transaction import Tx

_MOST = 100  # memories looked at
_SHOWN_CHARS = 100
_MOST_WORDS = 16  # that are looked for in the texts of deleted memories
_LEAST_WORDS = 3  # of a text that may name more than a subject
_QUERY_CHARS = 4096  # the most that recall takes
_PART = regex(r"[^\W_]+")
_NO_FILE = "To erase rewrites the database file, and these memories are in PostgreSQL: forget them there."


class About(Struct, forbid_unknown_fields=True):
    about: Annotated[str, Meta(min_length=1, max_length=_QUERY_CHARS)]


class Erase(Struct, forbid_unknown_fields=True):
    """Memories to erase for good, with `immutable` even those that are protected, and the text that they are about."""

    ids: Annotated[list[actions.Id], Meta(min_length=1, max_length=_MOST)]
    immutable: bool = False
    about: str = ""


class Erasable(Struct):
    """The memories about a text, with the beginnings of their texts, and how many others are less near."""

    memories: list[actions.Named]
    others: int


class _Hit(Struct):
    id: str
    text: str
    verdict: Verdict = "none"


class _Page(Struct):
    memories: list[_Hit]


async def erasable(dispatch: Dispatch, visit: Visit, request: About) -> Erasable:
    """Return the memories about a text: those that hold each of its words, and the strong hits of a recall; to an admin
    also deleted ones.

    An identifier in the text is asked of every memory. Without one, if a memory holds all of three words or more, a
    strong hit must hold the names of the text and most of its words.
    """
    if not request.about.strip():
        raise Fault("invalid", "about: is empty.")
    asking = {"query": request.about, "limit": _MOST, "detail": "text", "max_tokens": 100_000}
    asking |= {"expired": True, "quarantined": True}
    hits = (await ask_recall(dispatch, visit, asking, _Page)).memories
    is_about = _about(request.about, [hit.text for hit in hits])
    about = [hit for hit in hits if is_about(hit)]
    others = len(hits) - len(about)
    about += filter(is_about, await _deleted_about(dispatch, visit, request.about, _MOST - len(about)))
    return Erasable([actions.Named(hit.id, one_line(hit.text, _SHOWN_CHARS)) for hit in about], others)


async def _deleted_about(dispatch: Dispatch, visit: Visit, about: str, limit: int) -> list[_Hit]:
    """Return memories that are gone, of which the history has the texts; a key that is held to places sees none."""
    grant = visit.caller.grant
    if grant.permission < Permission.admin or grant.reach is not None:
        return []
    words = _words(about)
    hits = await read(
        dispatch, visit, lambda tx: tx.all("kernel.console.deleted_about", _Hit, words=words, limit=limit)
    )
    return [hit for hit in hits if grant.allows_dialect(Place(*hit.id.split("/", 1)).dialect)]


async def _mentions(dispatch: Dispatch, visit: Visit, about: str) -> list[str]:
    """Return the memories of which the history has the text."""
    words = _words(about)
    if not words:
        return []
    return await read(dispatch, visit, lambda tx: tx.all("kernel.console.history_about", str, words=words, limit=_MOST))


def _words(about: str) -> list[str]:
    return about.lower().split()[:_MOST_WORDS]


def _about(asked: str, texts: Sequence[str]) -> Callable[[_Hit], bool]:
    """Return the test for a hit: an address or a code differs from others that are like it, and so does a name."""
    identifiers = [_parts(word) for word in asked.split() if _is_identifier(word)]
    words = [word for word in asked.split() if not _is_identifier(word)]
    names = [word for word in words if word[0].isupper()]

    def held(of: Sequence[str], text: str) -> int:
        folded = text.casefold()
        return sum(word.casefold() in folded for word in of)

    is_said = not identifiers and len(words) >= _LEAST_WORDS
    is_strict = is_said and any(held(words, text) == len(words) for text in texts)

    def is_about(hit: _Hit) -> bool:
        if not _holds_all(identifiers, hit.text):
            return False
        many = held(words, hit.text)
        if is_strict and (2 * many <= len(words) or held(names, hit.text) < len(names)):
            return many == len(words)
        return hit.verdict == "strong" or many == len(words)

    return is_about


def _holds_all(identifiers: Sequence[str], text: str) -> bool:
    """Return whether a text holds all identifiers, in any spelling: `ACME-CORP` and `acme_corp` are the same."""
    parts = _parts(text)
    return all(whole in parts or f" {whole.replace(' ', '')} " in parts for whole in identifiers)


def _is_identifier(word: str) -> bool:
    """Return whether a word is an address or a code, such as `a.b@c.test`, `delta-99`, `ACME-CORP` or `net_id`."""
    is_marked = len(_PART.findall(word)) > 1 and any(map(str.isalpha, word))
    return is_marked and (word.isupper() or not {"@", "_"}.isdisjoint(word) or any(map(str.isdigit, word)))


def _parts(text: str) -> str:
    """Return the letters and digits of a text, in lower case, with a blank at each end and in place of all else."""
    return f" {' '.join(_PART.findall(text.casefold()))} "


async def erase(dispatch: Dispatch, visit: Visit, request: Erase) -> Receipt:
    """Forget memories by the tools of their dialects, erase their traces, and return the receipt; none is forgotten if
    one cannot be. A memory that was forgotten before has its traces erased.
    """
    _require_may_erase(dispatch, visit)
    texts = dict[Place, str]()
    for memory_id in request.ids:
        place = await place_meant(dispatch, visit, memory_id)
        state = await read(dispatch, visit, lambda tx, place=place: state_of(tx, dispatch, place))
        texts[place] = await read(dispatch, visit, lambda tx, place=place, state=state: _last_text(tx, place, state))
        if state is not None:
            await actions.require_forgettable(dispatch, visit, actions.Forget(place.id, request.immutable))
    for place in texts:  # of which one may go with another
        if await read(dispatch, visit, lambda tx, place=place: version_of(tx, dispatch, place)):
            await actions.forget_as_asked(dispatch, visit, actions.Forget(place.id, request.immutable))
    entry = await actions.write(dispatch, visit, lambda tx: traces.drop_traces(tx, dispatch.dialects, texts), "erase")
    grant = visit.caller.grant
    # Whether the file has a text is no answer for a key that does not see all of it.
    about = request.about.strip() if grant.reach is None and not grant.dialects else ""
    rewrite = partial(traces.overwrite, dispatch.store.context, {**texts}, entry, about)
    receipt = unless_fault(await asyncio.to_thread(catch_faults, rewrite))
    with suppress(Fault):  # of a history that is too long to be read in a call; the receipt says `is_in_file` then
        receipt.mentions = await _mentions(dispatch, visit, about)
    if grant.permission < Permission.operator:  # for whom the folders of the machine are none
        receipt.copies = [Path(copy).name for copy in receipt.copies]
    return receipt


async def erase_selected(_site: Site, dispatch: Dispatch, visit: Visit, fields: actions.Fields) -> actions.Done:
    """Show the selected memories, and erase them once the browser sends the form of that page."""
    _require_may_erase(dispatch, visit)
    places = actions.selected(visit, fields)
    if fields.get("sure"):
        request = Erase([place.id for place in places], bool(fields.get("immutable")))
        return actions.Done("", receipt=await erase(dispatch, visit, request))

    def look(tx: Tx) -> list[actions.Named]:
        states = {place: state_of(tx, dispatch, place) for place in places}
        return [
            actions.Named(
                place.id, one_line(_last_text(tx, place, state), _SHOWN_CHARS), state.curation.lock if state else ""
            )
            for place, state in states.items()
        ]

    return actions.Done("", erasable=await read(dispatch, visit, look))


ACTIONS: Mapping[str, actions.Action] = {"erase": erase_selected}


def _require_may_erase(dispatch: Dispatch, visit: Visit) -> None:
    require(visit, "Erase", Permission.admin)
    if dispatch.store.context.connect is not None:
        raise Fault("disabled", _NO_FILE)


def _last_text(tx: Tx, place: Place, state: State | None) -> str:
    """Return the text of a memory, or the last that it had; raises Fault if it never was there."""
    if state is not None:
        return state.curation.text or state.document.text
    past = history.read(tx, *place)
    if not past:
        raise no_memory(place)
    return next((text for event in reversed(past) for text in (event.after, event.before) if text), "")
