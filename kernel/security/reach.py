"""Places that a key is held to: whole dialects, and folders, databases, projects or sessions inside them."""

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

import msgspec

from kernel.core.errors import Fault

_CACHED = 64
_CACHED_PLACES = 65_536
_LONGEST = 512


class Places:
    """Some places by dialect; no place of a dialect stands for all of it. A place holds all that is below it."""

    def __init__(self, by_dialect: Mapping[str, Sequence[str]]) -> None:
        self._by_dialect = by_dialect
        self.hold = lru_cache(_CACHED_PLACES)(self._hold)

    def whole(self, dialect: str) -> bool:
        """Return whether all of a dialect is held."""
        return self._by_dialect.get(dialect) == ()

    def divide(self, dialects: Iterable[str]) -> bool:
        """Return whether places inside some of these dialects are held, and not all of the dialect."""
        return any(self._by_dialect.get(dialect) for dialect in dialects)

    def enter(self, dialect: str, place: str) -> bool:
        """Return whether anything at a place or below it is held."""
        below = f"{place}/" if place else ""
        return self.hold(dialect, place) or any(
            place_held.startswith(below) for place_held in self._by_dialect.get(dialect, ())
        )

    def _hold(self, dialect: str, place: str | None) -> bool:
        """Return whether a place is held; None for something that belongs to no place."""
        places = self._by_dialect.get(dialect)
        if not places:
            return places is not None
        return place is not None and any(
            place == place_held or place.startswith(f"{place_held}/") for place_held in places
        )


class Reach(msgspec.Struct, frozen=True):
    """The places that a key reads, and those that it reads and writes: `dialect`, or `dialect:place`."""

    read: frozenset[str]
    write: frozenset[str]

    @property
    def readable(self) -> Places:
        return _places(self.read | self.write)

    @property
    def writable(self) -> Places:
        return _places(self.write)


@lru_cache(_CACHED)
def _places(names: frozenset[str]) -> Places:
    by_dialect: dict[str, tuple[str, ...]] = {}
    for name in sorted(names):  # a whole dialect comes before its places
        dialect, _, place = name.partition(":")
        if by_dialect.get(dialect) != ():
            by_dialect[dialect] = (*by_dialect.get(dialect, ()), place) if place else ()
    return Places(by_dialect)


def parse(names: Iterable[str], forms: Mapping[str, str], option: str) -> tuple[str, ...]:
    """Return places as they are stored; raises Fault("invalid") naming the option.

    `forms` are those of the places of each dialect, empty for a dialect that has none.
    """
    places: set[str] = set()
    for name in names:
        dialect, colon, place = unicodedata.normalize("NFC", name).partition(":")
        place = place.rstrip("/")
        if dialect not in forms:
            raise Fault("invalid", f"{option}: {name[:_LONGEST]!r} must begin with one of {', '.join(sorted(forms))}.")
        if colon and not (forms[dialect] and 0 < len(place) <= _LONGEST and place.isprintable()):
            form = f" or {dialect}:{forms[dialect]}" if forms[dialect] else ""
            raise Fault("invalid", f"{option}: {name[:_LONGEST]!r} must be {dialect}{form}.")
        places.add(f"{dialect}{colon}{place}")
    return tuple(sorted(places))
