"""A session is one through all its cookies, and of one key only the newest go on."""

import pytest

from handlers.console import sessions
from handlers.console.sessions import MOST_OF_KEY, Session, Sessions

KEY, OTHER = "k" * 8, "o" * 8


def found(made: Sessions, cookie: str) -> Session:
    session = made.find(cookie)
    assert session is not None
    return session


@pytest.mark.parametrize("secure", [True, False])
def test_renewed_cookie_is_that_of_the_same_session(secure: bool) -> None:
    made = Sessions(b"secret")
    session = found(made, made.begin(KEY, secure=secure))
    again = found(made, made.cookie(session))
    assert again._replace(age=session.age) == session
    assert (again.key, again.secure) == (KEY, secure)


def test_end_of_a_session_ends_all_its_cookies_and_no_others() -> None:
    made = Sessions(b"secret")
    first, other = made.begin(KEY, secure=False), made.begin(KEY, secure=False)
    renewed = made.cookie(found(made, first))
    made.end(found(made, renewed))
    assert [made.find(cookie) for cookie in (first, renewed)] == [None, None]
    assert made.find(other) is not None


def test_of_too_many_sessions_of_a_key_the_oldest_end() -> None:
    made = Sessions(b"secret")
    kept = made.begin(OTHER, secure=False)
    cookies = [made.begin(KEY, secure=False) for _ in range(MOST_OF_KEY + 3)]
    assert [made.find(cookie) is not None for cookie in cookies] == [False] * 3 + [True] * MOST_OF_KEY
    assert made.find(kept) is not None


def test_session_that_ended_stays_so_whatever_begins_and_ends_after_it() -> None:
    made = Sessions(b"secret")
    ended = made.begin(KEY, secure=False)
    made.end(found(made, ended))
    for _ in range(MOST_OF_KEY * 2):
        cookie = made.begin(KEY, secure=False)
        made.end(found(made, cookie))
        assert [made.find(one) for one in (ended, cookie)] == [None, None]


def test_session_of_another_worker_goes_on_until_it_ends_here() -> None:
    one, other = Sessions(b"secret"), Sessions(b"secret")
    cookie = one.begin(KEY, secure=False)
    other.end(found(other, cookie))
    assert (other.find(cookie), one.find(cookie) is None) == (None, False)
    assert Sessions(b"another").find(cookie) is None


def test_cookie_expires_without_being_renewed(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Sessions(b"secret")
    cookie = made.begin(KEY, secure=False)
    monkeypatch.setattr(sessions, "_SECONDS", 0)
    assert made.find(cookie) is None
