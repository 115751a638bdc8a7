"""The buckets of the rate limit in memory that several processes share."""

import hashlib
import struct
from collections.abc import Callable
from contextlib import AbstractContextManager
from mmap import mmap

Bucket = tuple[float, float]  # tokens, and the time at which there were so many

_SLOT = struct.Struct("=16sdd")  # digest of the caller, and its bucket
_SETS, _WAYS = 1024, 8  # twice the buckets of one process; not measured
BYTES = _SETS * _WAYS * _SLOT.size


class SharedBuckets:
    """Buckets by caller. A caller has one set of slots, if the oldest bucket gives way to a new one.

    `key` makes the choice of the set unpredictable. The clock is the same in all processes of a machine.
    """

    def __init__(self, memory: mmap, lock: Callable[[], AbstractContextManager[None]], key: bytes) -> None:
        self._memory = memory
        self._lock = lock
        self._key = key

    def update(self, caller: str, take: Callable[[Bucket | None], tuple[Bucket, float]]) -> float:
        """Return the seconds to wait that `take` says; if they are 0 its bucket is kept."""
        digest = hashlib.blake2b(caller.encode(), key=self._key, digest_size=16).digest()
        start = int.from_bytes(digest[:4]) % _SETS * _WAYS * _SLOT.size
        places = range(start, start + _WAYS * _SLOT.size, _SLOT.size)
        with self._lock():
            slots = {place: _SLOT.unpack_from(self._memory, place) for place in places}
            place = next((place for place, slot in slots.items() if slot[0] == digest), -1)
            bucket, seconds = take(slots[place][1:] if place >= 0 else None)
            if not seconds:
                place = place if place >= 0 else min(slots, key=lambda one: slots[one][2])
                _SLOT.pack_into(self._memory, place, digest, *bucket)
        return seconds
