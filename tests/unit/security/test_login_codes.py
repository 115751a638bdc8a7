"""Codes of a minute: each stands for its key once, in every process that shares the memory."""

import mmap
import time
from contextlib import nullcontext

import pytest

from kernel.security import login_codes
from kernel.security.login_codes import BYTES, SECONDS, LoginCodes

KEY, OTHER = "k" * 8, "o" * 8


def test_code_is_taken_once() -> None:
    codes = LoginCodes()
    code, other = codes.make(KEY), codes.make(OTHER)
    assert [codes.take(given) for given in (code, code, other, other)] == [KEY, None, OTHER, None]


@pytest.mark.parametrize("given", ["", "x", "\ud800", "0" * 100_000])
def test_other_texts_are_no_codes(given: str) -> None:
    codes = LoginCodes()
    codes.make(KEY)
    assert codes.take(given) is None


def test_code_ends_after_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    codes, begun = LoginCodes(), time.monotonic()
    monkeypatch.setattr(login_codes.time, "monotonic", lambda: begun)
    first, second = codes.make(KEY), codes.make(OTHER)
    monkeypatch.setattr(login_codes.time, "monotonic", lambda: begun + SECONDS - 0.001)
    assert codes.take(first) == KEY
    monkeypatch.setattr(login_codes.time, "monotonic", lambda: begun + SECONDS)
    assert codes.take(second) is None


def test_new_code_of_a_key_takes_the_place_of_its_last_and_of_no_others() -> None:
    codes = LoginCodes()
    kept = codes.make(OTHER)
    made = [codes.make(KEY) for _ in range(1000)]
    assert [codes.take(code) for code in made[:-1]] == [None] * 999
    assert (codes.take(made[-1]), codes.take(kept)) == (KEY, OTHER)


def test_of_too_many_keys_the_oldest_code_gives_way() -> None:
    codes = LoginCodes()
    made = {f"{number:08}": codes.make(f"{number:08}") for number in range(65)}
    taken = {key: codes.take(code) for key, code in made.items()}
    assert taken == {key: key if key != "00000000" else None for key in made}


def test_processes_that_share_the_memory_know_each_others_codes() -> None:
    memory = mmap.mmap(-1, 100 + BYTES + 100)
    one, other = (LoginCodes(memory, 100, nullcontext) for _ in range(2))
    code = one.make(KEY)
    assert [given.take(code) for given in (other, one, other)] == [KEY, None, None]
    one.make(OTHER)
    assert (memory[:100], memory[100 + BYTES :]) == (bytes(100), bytes(100))
