"""The filters of recall: names that must exist, the partitions and the folder they stand for, and what passes them."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from handlers.common.schemas import Recall
from kernel.errors import Fault
from kernel.search import index
from kernel.search.index import Document
from kernel.store.transaction import Tx
from kernel.text import one_line, utc_time

_SHOWN = 20  # names in a message
_FOLDER_SPACE = "paths"  # its keys are paths, and it has no scopes
_FOLDER_DOCS = 3200  # documents of a folder that are searched, as many as recall ever looks at


class Filters(NamedTuple):
    """The filters of a request: times in the format of the index, "" for none; a folder of `paths`, or "".

    `within` is None where every partition may be searched; with a folder it holds the partition of the folder too.
    `places` are the same.
    """

    within: Sequence[tuple[str, str | None]] | None
    places: frozenset[tuple[str, str | None]]
    scope: str | None
    folder: str
    actor: str | None
    after: str
    before: str


def filter_after_search(filters: Filters) -> bool:
    """Whether hits are filtered after the search, so that more candidates are needed."""
    return filters.actor is not None or bool(filters.after or filters.before or filters.folder)


def matches(filters: Filters, document: Document) -> bool:
    """Whether a document passes; what `within` excludes as well, for documents that no search has found."""
    return (
        (filters.within is None or (document.space, document.scope) in filters.places)
        and (not filters.folder or document.scope == filters.scope or document.key.startswith(f"{filters.folder}/"))
        and filters.actor in (None, document.actor)
        and (not filters.after or document.updated_at >= filters.after)
        and (not filters.before or document.updated_at < filters.before)
    )


def filters_of(tx: Tx, request: Recall) -> Filters:
    """The filters of a request; raises Fault("invalid") naming a time, dialect, space or scope that is none."""
    times = (_time("after", request.after), _time("before", request.before))
    if not request.spaces and not request.dialects and request.scope is None:
        return Filters(None, frozenset(), None, "", request.actor, *times)
    _check_dialects(tx, request)
    within = index.partitions_of(tx, request.spaces or None, request.dialects or None, request.scope)
    _check_spaces(tx, request, {space for space, _ in within})
    folder = _folder(tx, request)
    if folder:
        within.append((_FOLDER_SPACE, ""))
    elif request.scope and not within:
        _check_scope(tx, request, request.scope)
    return Filters(within, frozenset(within), request.scope, folder, request.actor, *times)


def _folder(tx: Tx, request: Recall) -> str:
    """The scope as a folder of `paths`, if it is searched and has such a folder."""
    folder = (request.scope or "").rstrip("/")
    searched = all(not names or _FOLDER_SPACE in names for names in (request.spaces, request.dialects))
    return folder if folder and searched and index.in_folder(tx, [_FOLDER_SPACE], folder, 1) else ""


def folder_documents(tx: Tx, filters: Filters) -> list[int] | None:
    """The documents of the folder, if nothing else is searched."""
    alone = filters.folder and filters.within == [(_FOLDER_SPACE, "")]
    return index.in_folder(tx, [_FOLDER_SPACE], filters.folder, _FOLDER_DOCS) if alone else None


def _check_dialects(tx: Tx, request: Recall) -> None:
    for name in request.dialects:
        if name not in tx.context.dialects:
            raise _unknown("dialects", name, tx.context.dialects)


def _check_spaces(tx: Tx, request: Recall, found: set[str]) -> None:
    """Refuses a space that is none; one of a dialect that has no space yet may become one."""
    if found.issuperset(request.spaces):
        return
    known = {space for space, _ in index.partitions_of(tx, None, None, None)}
    dialects = {space.partition(":")[0] for space in known}
    for name in request.spaces:
        dialect = name.partition(":")[0]
        if name not in known and (dialect in dialects or dialect not in tx.context.dialects):
            raise _unknown("spaces", name, sorted(known) or tx.context.dialects)


def _check_scope(tx: Tx, request: Recall, scope: str) -> None:
    """Refuses a scope that no space has; the message lists those of the spaces that are searched."""
    known = {known for _, known in index.partitions_of(tx, None, None, None) if known}
    if known and scope not in known:
        chosen = index.partitions_of(tx, request.spaces or None, request.dialects or None, None)
        raise _unknown("scope", scope, [*sorted({known for _, known in chosen if known}), "a folder of paths"])


def _unknown(field: str, given: str, known: Iterable[str]) -> Fault:
    names = [*known]
    shown = ", ".join(one_line(name, 80) for name in names[:_SHOWN])
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return Fault("invalid", f"{field}: there is no {one_line(given, 80)}, but {shown}{more}")


def _time(name: str, given: str) -> str:
    moment = utc_time(given) if given else ""
    if moment is None:
        raise Fault("invalid", f"{name} is not an ISO 8601 time")
    return moment
