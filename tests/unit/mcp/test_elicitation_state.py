"""State on its way through a client: accepted unchanged, in time and for the same request alone."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel.mcp.elicitation import InvalidState, purpose, seal, unseal

KEY = b"key"
NOW = "2026-01-02T03:04:05.678Z"
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@pytest.mark.slow
@given(json_values, st.binary(), st.text())
def test_sealed_state_round_trips(state: Any, key: bytes, belongs: str) -> None:
    belongs = purpose(belongs, "tools/call", "ask", b"{}")
    assert unseal(key, seal(key, state, belongs, NOW), belongs, NOW) == state


@pytest.mark.parametrize(
    ("now", "valid"),
    [
        ("2026-01-02T03:14:05.678Z", True),
        ("2026-01-02T03:14:05.679Z", False),
        ("2026-01-02T03:03:05.678Z", True),
        ("2026-01-02T03:03:05.677Z", False),
        ("2027-01-02T03:04:05.678Z", False),
    ],
)
def test_state_expires_after_ten_minutes(now: str, valid: bool) -> None:
    token = seal(KEY, 1, "p", NOW)
    if valid:
        assert unseal(KEY, token, "p", now) == 1
    else:
        with pytest.raises(InvalidState, match="age"):
            unseal(KEY, token, "p", now)


@given(st.integers(0), st.characters(codec="ascii"))
def test_modified_state_is_refused(place: int, letter: str) -> None:
    token = seal(KEY, {"name": "Ada"}, "p", NOW)
    place %= len(token)
    if token[place] != letter:
        with pytest.raises(InvalidState):
            unseal(KEY, token[:place] + letter + token[place + 1 :], "p", NOW)


@given(st.text())
def test_unsigned_token_is_refused(token: str) -> None:
    with pytest.raises(InvalidState):
        unseal(KEY, token, "p", NOW)


def test_state_that_was_signed_without_a_time_is_refused() -> None:
    with pytest.raises(InvalidState, match="payload"):
        unseal(KEY, seal(KEY, 1, "p", "today"), "p", NOW)


def test_state_sealed_for_one_purpose_is_refused_for_another() -> None:
    with pytest.raises(InvalidState, match="purpose"):
        unseal(KEY, seal(KEY, 1, "p", NOW), "q", NOW)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (b'{"a":1,"b":2}', b'{ "b": 2, "a": 1 }', True),
        (b'{"a":1}', b'{"a":2}', False),
        (b'{"a":1}', b"{}", False),
        (b'{"a":"\\u0041"}', b'{"a":"A"}', True),
        (b"{broken", b"{broken", True),
        (b'{"a":%d}' % 10**30, b'{"a":%d}' % 10**30, True),
    ],
)
def test_arguments_are_compared_as_values(one: bytes, other: bytes, same: bool) -> None:
    made = [purpose("a", "m", "n", arguments) for arguments in (one, other)]
    assert (made[0] == made[1]) is same


def test_parts_of_a_fingerprint_are_delimited() -> None:
    assert purpose("ab", "c", "n", b"{}") != purpose("a", "bc", "n", b"{}")
