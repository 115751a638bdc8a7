"""Every caller has its own token bucket."""

import pytest

from kernel.security.rate_limit import RateLimiter, client_address, forwarded_address

KEYS = {b"Bearer one": "1", b"Bearer two": "2"}


class Doorman:
    """Knows two keys."""

    required = True

    def key_id(self, headers: dict[bytes, bytes]) -> str:
        return KEYS.get(headers.get(b"authorization", b""), "")


def bearer(key: bytes) -> list[tuple[bytes, bytes]]:
    return [(b"host", b"localhost"), (b"authorization", key)]


@pytest.fixture
def limiter() -> RateLimiter:
    made = RateLimiter(rate=10, burst=3)
    made.authenticator = Doorman()
    return made


def test_burst_passes_then_the_rate_applies(limiter: RateLimiter) -> None:
    assert [limiter.wait([], "a", 0.0) for _ in range(4)] == [0, 0, 0, 0.1]
    assert [limiter.wait([], "a", 0.05), limiter.wait([], "a", 0.1), limiter.wait([], "a", 0.1)] == [0.05, 0, 0.1]
    assert [limiter.wait([], "a", 100.0) for _ in range(4)] == [0, 0, 0, 0.1]


def test_keys_and_addresses_have_separate_buckets_and_a_wrong_key_counts_by_address(limiter: RateLimiter) -> None:
    for headers, who in ((bearer(b"Bearer one"), "a"), (bearer(b"Bearer two"), "a"), ([], "a"), ([], "b")):
        assert [limiter.wait(headers, who, 0.0) for _ in range(4)] == [0, 0, 0, 0.1]
    assert limiter.wait(bearer(b"Bearer one"), "another address", 0.0) == 0.1
    assert [limiter.wait(bearer(b"Bearer %d" % number), "c", 0.0) for number in range(4)] == [0, 0, 0, 0.1]


def test_buckets_are_bounded_and_empty_ones_are_kept(limiter: RateLimiter) -> None:
    for number in range(20_000):
        limiter.wait([], str(number), number / 10_000)
    assert len(limiter._buckets) <= 4096
    for _ in range(3):
        limiter.wait([], "dry", 2.0)
    for number in range(3000):
        limiter.wait([], f"later {number}", 2.0)
    assert limiter.wait([], "dry", 2.0) == 0.1


@pytest.mark.parametrize(
    ("client", "found"),
    [
        (None, ("", True)),
        (("127.0.0.1", 1), ("127.0.0.1", True)),
        (("127.9.9.9", 1), ("127.9.9.9", True)),
        (("10.0.0.1", 1), ("10.0.0.1", False)),
        (("::1", 1), ("0000000000000000", True)),
        (("::ffff:127.0.0.1", 1), ("127.0.0.1", True)),
        (("::ffff:10.0.0.1", 1), ("10.0.0.1", False)),
        (("2001:db8::1", 1), ("20010db800000000", False)),
        (("2001:db8::ffff:1", 1), ("20010db800000000", False)),
        (("fe80::1%eth0", 1), ("fe80000000000000", False)),
        (("a socket", 1), ("a socket", False)),
    ],
)
def test_client_address_is_the_address_or_the_ipv6_network(
    client: tuple[str, int] | None, found: tuple[str, bool]
) -> None:
    assert client_address(client) == found


@pytest.mark.parametrize(
    ("told", "client"),
    [
        ("9.9.9.9", "9.9.9.9"),
        ("1.1.1.1, 9.9.9.9", "9.9.9.9"),
        ("9.9.9.9, 10.0.0.7", "9.9.9.9"),
        ("9.9.9.9:4711", "9.9.9.9"),
        ("[2001:db8::1]:443", "2001:db8::1"),
        ("2001:db8::1", "2001:db8::1"),
        ("9.9.9.9, ", "10.0.0.1"),
        ("", "10.0.0.1"),
    ],
)
def test_client_is_the_address_next_to_the_proxies(told: str, client: str) -> None:
    proxies, headers = frozenset({"10.0.0.1", "10.0.0.7"}), [(b"x-forwarded-for", told.encode())]
    assert forwarded_address("10.0.0.1", proxies, headers) == client
    assert forwarded_address("8.8.8.8", proxies, headers) == "8.8.8.8"
