"""How many requests a second one caller may make: a bucket of tokens for each key, and for each address without one."""

import ipaddress
from collections.abc import Sequence
from typing import Protocol

Header = tuple[bytes, bytes]
_REMEMBERED = 4096
_NETWORK_BYTES = 8  # whoever has one address of IPv6 has all that begin so


class Authenticator(Protocol):
    """Knows keys."""

    @property
    def required(self) -> bool:
        """Whether nobody gets in without one."""
        ...

    def key_id(self, headers: dict[bytes, bytes]) -> str:
        """The id of the key that came with these headers; empty for none and for a wrong one."""
        ...


class RateLimiter:
    """Counts requests by key, else by address; `doorman` is set once there is one, until then there are no keys.

    Without keys nobody on this machine is counted: it is one user's, who has nobody to be fair to.
    """

    def __init__(self, rate: float, burst: float) -> None:
        self.authenticator: Authenticator | None = None
        self._rate = rate
        self._burst = burst
        self._buckets: dict[str, tuple[float, float]] = {}

    def counts(self, *, local: bool) -> bool:
        """Whether requests are counted, of somebody on this machine or elsewhere."""
        return self._rate > 0 and (not local or (self.authenticator is not None and self.authenticator.required))

    def wait(self, headers: Sequence[Header], address: str, now: float) -> float:
        """The seconds until this caller may ask, 0 for at once; `now` is any clock's, but always the same one's."""
        caller = self._key(headers) or address
        tokens, at = self._buckets.get(caller, (self._burst, now))
        tokens = min(self._burst, tokens + (now - at) * self._rate)
        if tokens < 1:
            return (1 - tokens) / self._rate
        if len(self._buckets) >= _REMEMBERED and caller not in self._buckets:
            self._forget(now)
        self._buckets[caller] = (tokens - 1, now)
        return 0

    def _key(self, headers: Sequence[Header]) -> str:
        if self.authenticator is not None:
            for name, value in headers:
                if name == b"authorization":
                    return self.authenticator.key_id({name: value})
        return ""

    def _forget(self, now: float) -> None:
        """Drops who has as many tokens as a stranger; where nobody has, those who came longest ago."""
        full = now - self._burst / self._rate
        kept = {caller: bucket for caller, bucket in self._buckets.items() if bucket[1] > full}
        spare = max(0, len(kept) - _REMEMBERED // 2) if len(kept) >= _REMEMBERED else 0
        self._buckets = dict([*kept.items()][spare:])


def client_address(client: tuple[str, int] | None) -> tuple[str, bool]:
    """What to count requests of this client by, and whether it is on this machine, as one without an address is."""
    if client is None:
        return "", True
    try:
        found = ipaddress.ip_address(client[0].partition("%")[0])
    except ValueError:
        return client[0], False
    if isinstance(found, ipaddress.IPv6Address):
        if found.ipv4_mapped is None:
            return found.packed[:_NETWORK_BYTES].hex(), found.is_loopback
        found = found.ipv4_mapped
    return str(found), found.is_loopback
