"""The filters of recall: names that must exist, their partitions and folder, and the match of a document."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from handlers.common.schemas import Recall
from kernel.calls.settings import Setting, names, setting
from kernel.core.errors import Fault
from kernel.core.text import composed, one_line, spellings
from kernel.core.times import utc_time
from kernel.memories import as_of
from kernel.search import index
from kernel.search.index import Document
from kernel.store.transaction import Tx

WITHOUT = "QUIPU_RECALL_WITHOUT"
SETTINGS = (Setting(WITHOUT, (), names, "dialects and spaces that recall leaves out, such as brain:therapy"),)
MAX_DOCS = 3200  # documents of a folder or of tags that are searched singly, as many as recall ever looks at
_SHOWN = 20  # names in a message
_FOLDER_SPACE = "paths"  # its keys are paths, and it has no scopes


class Filters(NamedTuple):
    """The filters of a request: times in the format of the index, "" for none; a folder of `paths`, or "".

    `within` is None if every partition may be searched; with a folder it holds the partition of the folder too.
    `places` are the same, `spaces` theirs. `tagged` are the (space, key) of the memories with any of the tags, None
    without tags. `at` is the time as of which is searched, "" for now.
    """

    within: Sequence[tuple[str, str | None]] | None
    places: frozenset[tuple[str, str | None]]
    spaces: frozenset[str]
    scopes: Sequence[str] | None
    folder: str
    tagged: frozenset[tuple[str, str]] | None
    actor: str | None
    after: str
    before: str
    at: str = ""


def filter_after_search(filters: Filters) -> bool:
    """Return whether hits are filtered after the search, so that more candidates are needed."""
    named = filters.actor is not None or filters.tagged is not None
    return named or bool(filters.after or filters.before or filters.folder)


def matches(filters: Filters, document: Document) -> bool:
    """Return whether a document passes, `within` included, for documents that no search has returned."""
    return (
        (filters.within is None or _is_within(filters, document))
        and _is_in_folder(filters, document)
        and (filters.tagged is None or (document.space, document.key) in filters.tagged)
        and filters.actor in (None, document.actor)
        and (not filters.after or document.updated_at >= filters.after)
        and (not filters.before or document.updated_at < filters.before)
    )


def _is_within(filters: Filters, document: Document) -> bool:
    # Without a scope the space decides: the scope of a memory deleted long ago may be unknown.
    if filters.scopes is None:
        return document.space in filters.spaces
    return (document.space, document.scope) in filters.places


def _is_in_folder(filters: Filters, document: Document) -> bool:
    scopes, folder = filters.scopes or (), f"{filters.folder}/"
    return not filters.folder or document.scope in scopes or document.key.startswith(folder)


def filters_of(tx: Tx, request: Recall) -> Filters:
    """Return the filters of a request; raises Fault("invalid") naming a time, dialect, space or scope that is none.

    As of a time, later changes are filtered out: of the memories that it has not, the history knows the rest.
    """
    filters, at = _filters_of(tx, request), _time("as_of", request.as_of)
    if not at:
        return filters
    return filters._replace(at=at, before=min(filters.before or as_of.END_OF_TIME, f"{at}{as_of.END_OF_TIME}"))


def _filters_of(tx: Tx, request: Recall) -> Filters:
    times = (_time("after", request.after), _time("before", request.before))
    if all(times) and times[0] >= times[1]:
        raise Fault("invalid", "after: is not earlier than before")
    if not request.spaces and not request.dialects and request.scope is None and not setting(tx, WITHOUT):
        return Filters(None, frozenset(), frozenset(), None, "", _tagged(tx, request), request.actor, *times)
    _check_dialects(tx, request)
    _check_left_out(tx, request)
    scopes = None if request.scope is None else spellings([request.scope])
    partitions = index.partitions_of(tx, request.spaces or None, request.dialects or None, scopes)
    _check_spaces(tx, request, {space for space, _ in partitions})
    within = [place for place in partitions if not is_left_out(tx, place[0])]
    folder = _folder(tx, request)
    if folder:
        within.append((_FOLDER_SPACE, ""))
    elif request.scope and not within:
        _check_scope(tx, request, scopes or ())
    tagged_places = _tagged(tx, request)
    spaces = frozenset(space for space, _ in within)
    return Filters(within, frozenset(within), spaces, scopes, folder, tagged_places, request.actor, *times)


def is_left_out(tx: Tx, space: str) -> bool:
    """Return whether the configuration keeps a space, or all spaces of its dialect, out of recall."""
    return any(space == name or space.startswith(f"{name}:") for name in setting(tx, WITHOUT))


def _check_left_out(tx: Tx, request: Recall) -> None:
    for field, own_names in (("dialects", request.dialects), ("spaces", request.spaces)):
        for name in own_names:
            if is_left_out(tx, name):
                raise Fault("invalid", f"{field}: {WITHOUT} keeps {one_line(name, 80)} out of recall")


def _tagged(tx: Tx, request: Recall) -> frozenset[tuple[str, str]] | None:
    """Return the memories with any of the tags, in the searched dialects; raises Fault("invalid") if there are none."""
    if not request.tags:
        return None
    of_spaces = {space.partition(":")[0] for space in request.spaces}
    name_sets = [{*names} for names in (request.dialects, of_spaces) if names]
    finders = [find for name, find in tx.context.tagged.items() if all(name in names for names in name_sets)]
    places = frozenset(place for find in finders for place in find(tx, spellings(request.tags)))
    if not places:
        tags = ", ".join(one_line(tag, 80) for tag in request.tags[:_SHOWN])
        raise Fault("invalid", f"tags: nothing that is searched has the tag {tags}")
    return places


def _folder(tx: Tx, request: Recall) -> str:
    """Return the scope as a folder of `paths`, if it is searched and has such a folder."""
    folder = composed(request.scope or "").rstrip("/")
    is_searched = all(not names or _FOLDER_SPACE in names for names in (request.spaces, request.dialects))
    is_searched = is_searched and not is_left_out(tx, _FOLDER_SPACE)
    return folder if folder and is_searched and index.in_folder(tx, [_FOLDER_SPACE], folder, 1) else ""


def folder_documents(tx: Tx, filters: Filters) -> list[int] | None:
    alone = filters.folder and filters.within == [(_FOLDER_SPACE, "")]
    return index.in_folder(tx, [_FOLDER_SPACE], filters.folder, MAX_DOCS) if alone else None


def _check_dialects(tx: Tx, request: Recall) -> None:
    for name in request.dialects:
        if name not in tx.context.dialects:
            raise _unknown("dialects", name, tx.context.dialects)


def _check_spaces(tx: Tx, request: Recall, spaces: set[str]) -> None:
    """Refuses a space that is none, unless its dialect has no space yet."""
    if spaces.issuperset(request.spaces):
        return
    names = {space for space, _ in index.partitions_of(tx, None, None, None)}
    dialects = {space.partition(":")[0] for space in names}
    for name in request.spaces:
        dialect = name.partition(":")[0]
        if name not in names and (dialect in dialects or dialect not in tx.context.dialects):
            raise _unknown("spaces", name, sorted(names) or tx.context.dialects)


def _check_scope(tx: Tx, request: Recall, scopes: Sequence[str]) -> None:
    """Refuses a scope that no space has; the message lists those of the spaces that are searched."""
    every = index.partitions_of(tx, None, None, None)
    if every and not {*scopes} & {name for _, name in every}:
        partitions = index.partitions_of(tx, request.spaces or None, request.dialects or None, None)
        raise _unknown("scope", scopes[0], [*sorted({name for _, name in partitions if name}), "a folder of paths"])


def _unknown(field: str, value: str, choices: Iterable[str]) -> Fault:
    names = [*choices]
    listed_names = ", ".join(one_line(name, 80) for name in names[:_SHOWN])
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return Fault("invalid", f"{field}: there is no {one_line(value, 80)}, but {listed_names}{more}")


def _time(name: str, value: str) -> str:
    moment = utc_time(value) if value else ""
    if moment is None:
        raise Fault("invalid", f"{name} is not an ISO 8601 time, such as 2026-01-31 or 2026-01-31T08:00:00Z")
    return moment
