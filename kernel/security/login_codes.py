"""Codes that stand for a key once, for a minute; several processes may share the memory that holds them."""

import hashlib
import secrets
import struct
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from mmap import mmap
from threading import Lock

SECONDS = 60
_SLOT = struct.Struct("=32s8sd")  # SHA-256 of the code, id of its key, the monotonic time at which it ends
_SLOTS = 64
BYTES = _SLOTS * _SLOT.size
_EMPTY = _SLOT.pack(bytes(32), bytes(8), 0.0)
_RANDOM_BYTES = 24


class LoginCodes:
    """Makes and takes codes. A key has one at a time; of too many the one that ends first gives way."""

    def __init__(
        self,
        memory: "bytearray | mmap | None" = None,
        start: int = 0,
        lock: Callable[[], AbstractContextManager[object]] | None = None,
    ) -> None:
        own = Lock()
        self._memory = bytearray(BYTES) if memory is None else memory
        self._places = range(start, start + BYTES, _SLOT.size)
        self._lock = lock or (lambda: own)

    def make(self, key: str) -> str:
        code, id_ = secrets.token_urlsafe(_RANDOM_BYTES), key.encode()
        slot = _SLOT.pack(_digest(code), id_, time.monotonic() + SECONDS)
        with self._lock():
            slots = {place: _SLOT.unpack_from(self._memory, place) for place in self._places}
            place = min(slots, key=lambda one: (slots[one][1] != id_, slots[one][2]))
            self._memory[place : place + _SLOT.size] = slot
        return code

    def take(self, code: str) -> str | None:
        """Return the id of the key of a code, which is used with it; None if it is unknown, used or too old."""
        digest = _digest(code)
        with self._lock():
            for place in self._places:
                other, id_, ends = _SLOT.unpack_from(self._memory, place)
                if other == digest:
                    self._memory[place : place + _SLOT.size] = _EMPTY
                    return id_.decode() if time.monotonic() < ends else None
        return None


def _digest(code: str) -> bytes:
    return hashlib.sha256(code.encode("utf-8", "replace")).digest()
