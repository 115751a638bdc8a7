"""The rate limit: a token bucket for each key, and for each address without one, in memory that several
processes may share."""

import hashlib
import ipaddress
import struct
from collections.abc import Callable, Sequence, Set
from contextlib import AbstractContextManager
from functools import partial
from mmap import mmap
from typing import Protocol

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


Header = tuple[bytes, bytes]
_MAX_BUCKETS = 4096
_FORWARDED = b"x-forwarded-for"
_MOST_FORWARDED = 200  # bytes of it
_NETWORK_BYTES = 8  # an IPv6 client usually has a whole /64 network


class Authenticator(Protocol):
    """The part of `kernel.security.auth.Auth` that the rate limit needs."""

    required: bool  # whether requests need a key

    def key_id(self, headers: dict[bytes, bytes], /) -> str:
        """Return the id of the key of a request, however it comes; empty for a missing or invalid key."""
        ...


class _NoKeys:
    """The authenticator until the kernel is open."""

    required = False

    def key_id(self, _headers: dict[bytes, bytes], /) -> str:
        return ""


class RateLimiter:
    """Counts requests by key, else by address: `rate` a second after a burst, any number if it is 0.

    With `shared` several processes count together.
    """

    def __init__(self, rate: float, burst: float, shared: SharedBuckets | None = None) -> None:
        self.authenticator: Authenticator = _NoKeys()
        self.rate = rate
        self._burst = burst
        self._buckets: dict[str, Bucket] = {}
        self._shared = shared

    def wait(self, headers: Sequence[Header], address: str, now: float) -> float:
        """Return seconds until this caller may send a request, 0 for now; `now` is the time of any monotonic clock."""
        caller = self.authenticator.key_id(dict(headers)) or address
        if self._shared is not None:
            return self._shared.update(caller, partial(self.take, now=now))
        before = self._buckets.get(caller)
        bucket, seconds = self.take(before, now)
        if not seconds:
            if before is None and len(self._buckets) >= _MAX_BUCKETS:
                self._drop_buckets(now)
            self._buckets[caller] = bucket
        return seconds

    def take(self, bucket: Bucket | None, now: float) -> tuple[Bucket, float]:
        """Return a bucket, None for a full one, after a request; and the seconds to wait if it has no token for it."""
        tokens, at = bucket or (self._burst, now)
        tokens = min(self._burst, tokens + (now - at) * self.rate)
        return ((tokens, now), (1 - tokens) / self.rate) if tokens < 1 else ((tokens - 1, now), 0)

    def _drop_buckets(self, now: float) -> None:
        """Drops full buckets, which equal new ones; if there are none, the oldest half."""
        full = now - self._burst / self.rate
        buckets = {caller: bucket for caller, bucket in self._buckets.items() if bucket[1] > full}
        spare = max(0, len(buckets) - _MAX_BUCKETS // 2) if len(buckets) >= _MAX_BUCKETS else 0
        self._buckets = dict([*buckets.items()][spare:])


def forwarded_address(peer: str, proxies: Set[str], headers: Sequence[Header]) -> str:
    """Return the address next to the trusted proxies, which they tell: any before it was written by someone else."""
    addresses = dict(headers).get(_FORWARDED, b"") if peer in proxies else b""
    for address in reversed(addresses[-_MOST_FORWARDED:].decode("latin-1").split(",")):
        if peer not in proxies or not address.strip():
            break
        peer = _without_port(address.strip())
    return peer


def _without_port(address: str) -> str:
    if address.startswith("["):
        return address[1:].partition("]")[0]
    return address.partition(":")[0] if address.count(":") == 1 else address


def client_address(client: tuple[str, int] | None) -> tuple[str, bool]:
    """Return the address to count requests of a client by, and whether it is on this machine, as one without an address
    is.
    """
    if client is None:
        return "", True
    try:
        ip = ipaddress.ip_address(client[0].partition("%")[0])
    except ValueError:
        return client[0], False
    if isinstance(ip, ipaddress.IPv6Address):
        if ip.ipv4_mapped is None:
            return ip.packed[:_NETWORK_BYTES].hex(), ip.is_loopback
        ip = ip.ipv4_mapped
    return str(ip), ip.is_loopback
