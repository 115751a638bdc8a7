"""The tree of places: spaces, the scopes of a space, the folders of its keys, and the memories in them."""

from collections.abc import Callable, Mapping

from msgspec import Struct

from handlers.console.overview import MOST_COUNTED, spaces_of
from handlers.console.reading import PAGE_ROWS, Place, Site, allowed_dialects, ordered, place_of, read
from handlers.console.records import NEWEST, Leaf, leaves_of
from handlers.console.requests import Visit
from kernel.calls.dispatch import Dispatch
from kernel.store.transaction import Tx

_LAST = "\U0010ffff"
_LEAST = "\x01"
_COLUMNS: Mapping[str, Callable[[Leaf], str]] = {
    "memory": lambda leaf: leaf.text.casefold(),
    "actor": lambda leaf: leaf.actor,
    "written": lambda leaf: leaf.updated_at,
}
_PARAMETERS = ("space", "under", "scope", "first", "before", "sort")


class Branch(Struct):
    """A place below: its name, the parameters of its page, and the number of its memories, `many` for at least so
    many.
    """

    name: str
    query: dict[str, str]
    memories: int
    many: bool = False


class Browse(Struct):
    """A place: the places above it, those directly below it, its memories, and the parameters of the next page.

    `query` are those of this page.
    """

    trail: list[Branch]
    branches: list[Branch]
    memories: list[Leaf]
    next: dict[str, str] | None
    query: dict[str, str] = {}


async def load(_site: Site, dispatch: Dispatch, visit: Visit) -> Browse:
    """Return the contents of a place; raises Forbidden for a dialect that the caller may not call."""
    shown = await _load(dispatch, visit)
    sort = visit.query.get("sort", "")
    shown.memories = ordered(shown.memories, sort, _COLUMNS)
    shown.query = {name: visit.query[name] for name in _PARAMETERS if name in visit.query}
    if shown.next and sort:
        shown.next["sort"] = sort
    return shown


async def _load(dispatch: Dispatch, visit: Visit) -> Browse:
    space, under = visit.query.get("space", ""), visit.query.get("under", "")
    if not space:
        return await read(dispatch, visit, lambda tx: _spaces(tx, allowed_dialects(visit)))
    place_of(visit, f"{space}/")
    if "scope" in visit.query:
        below = visit.number("before", NEWEST)
        return await read(dispatch, visit, lambda tx: _in_scope(tx, space, visit.query["scope"], below))
    return await read(dispatch, visit, lambda tx: _in_space(tx, space, under, visit.query.get("first", under)))


def _spaces(tx: Tx, dialects: list[str] | None) -> Browse:
    spaces = [
        Branch(space.name, {"space": space.name}, space.memories, space.many) for space in spaces_of(tx, dialects)
    ]
    return Browse([], spaces, [], None)


def _in_space(tx: Tx, space: str, under: str, first: str) -> Browse:
    """Return the scopes of a space, or if it has a single scope the folders of its keys."""
    if under or len(_scopes(tx, space, "", 2)) < 2:
        return _in_folder(tx, space, under, first)
    scopes = _scopes(tx, space, first, PAGE_ROWS + 1)
    branches = [
        Branch(scope or "without a scope", {"space": space, "scope": scope}, count)
        for scope, count in scopes[:PAGE_ROWS]
    ]
    return Browse([_root(space)], branches, [], _further({"space": space}, [scope for scope, _ in scopes]))


def _scopes(tx: Tx, space: str, first: str, limit: int) -> list[tuple[str, int]]:
    return tx.rows("kernel.console.scopes", space=space, first=first, limit=limit, most=MOST_COUNTED)


def _in_scope(tx: Tx, space: str, scope: str, below: int) -> Browse:
    rows = tx.rows("kernel.console.in_scope", space=space, scope=scope, below=below, limit=PAGE_ROWS + 1)
    where = {"space": space, "scope": scope}
    more = {**where, "before": str(rows[PAGE_ROWS - 1][0])} if len(rows) > PAGE_ROWS else None
    trail = [_root(space), Branch(scope or "without a scope", where, 0)]
    return Browse(trail, [], leaves_of(tx, [Place(space, key) for _, key in rows[:PAGE_ROWS]]), more)


def _in_folder(tx: Tx, space: str, under: str, first: str) -> Browse:
    where = {"space": space, "first": first, "high": under + _LAST, "from": len(under) + 1, "least": _LEAST}
    rows = tx.rows("kernel.console.children", **where, most=MOST_COUNTED, limit=PAGE_ROWS + 1)
    branches, places = list[Branch](), list[Place]()
    for key, count in rows[:PAGE_ROWS]:
        name, slash, _ = key[len(under) :].partition("/")
        if slash:
            below = {"space": space, "under": f"{under}{name}/"}
            branches.append(Branch(name or "/", below, count, many=count == MOST_COUNTED))
        else:
            places.append(Place(space, key))
    names = under.split("/")[:-1]
    ends = ["/".join(names[: number + 1]) + "/" for number in range(len(names))]
    trail = [Branch(name or "/", {"space": space, "under": end}, 0) for name, end in zip(names, ends, strict=True)]
    more = _further({"space": space, "under": under}, [key for key, _ in rows])
    return Browse([_root(space), *trail], branches, leaves_of(tx, places), more)


def _root(space: str) -> Branch:
    return Branch(space, {"space": space}, 0)


def _further(where: dict[str, str], names: list[str]) -> dict[str, str] | None:
    """Return the parameters of the page that begins with the name after those of this page."""
    return {**where, "first": names[PAGE_ROWS]} if len(names) > PAGE_ROWS else None
