"""Ids sort by time and never meet; the clock says UTC with milliseconds."""

import os
import re
import subprocess
import sys
from datetime import UTC, datetime

import pytest

from kernel.core import ids
from kernel.core.ids import new_call_id, new_id, utc_now


def test_id_is_its_prefix_and_22_letters() -> None:
    assert re.fullmatch(r"mem_[0-9a-hjkmnp-tv-z]{22}", new_id("mem"))


def test_ids_are_unique() -> None:
    assert len({new_id("mem") for _ in range(10_000)}) == 10_000


def test_ids_sort_by_nanosecond(monkeypatch: pytest.MonkeyPatch) -> None:
    moments = [0, 1, 31, 32, 1_000, 1_700_000_000_000, 1_700_000_000_001, 4_000_000_000_000]
    made: list[str] = []
    for moment in moments:
        for nanoseconds in (0, 1, 31, 32, 999_999):
            monkeypatch.setattr(ids.time, "time_ns", lambda now=moment * 1_000_000 + nanoseconds: now)
            made.append(new_id("mem"))
    assert made == sorted(made)


def test_the_random_part_fills_its_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ids.time, "time_ns", lambda: 0)
    monkeypatch.setattr(ids.os, "urandom", lambda size: b"\xff" * size)
    assert new_id("mem") == "mem_00000000000000zzzzzzzz"
    monkeypatch.setattr(ids.os, "urandom", bytes)
    assert new_id("mem") == "mem_0000000000000000000000"


def test_now_is_utc_with_milliseconds_and_a_z() -> None:
    before = datetime.now(UTC)
    now = utc_now()
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", now)
    assert abs((datetime.fromisoformat(now) - before).total_seconds()) < 5


def test_another_clock_may_tell_the_time() -> None:
    moment = datetime(2031, 5, 6, 7, 8, 9, 123_999, UTC)
    nanoseconds = int(moment.timestamp()) * 1_000_000_000 + 123_999_999

    assert utc_now(nanoseconds) == "2031-05-06T07:08:09.123Z"
    assert new_id("mem") < new_id("mem", nanoseconds) < new_id("mem", nanoseconds + 1_000_000)


@pytest.mark.slow
def test_call_ids_are_unique_even_of_processes_with_the_same_number() -> None:
    command = "import os; os.getpid = lambda: 1; from kernel.core.ids import call_id; print(call_id(), call_id())"
    starts = [subprocess.check_output([sys.executable, "-c", command], text=True).split() for _ in range(2)]
    ids = {id_ for start in starts for id_ in start}
    assert len(ids) == 4
    assert all(re.fullmatch(r"[0-9a-f]{12}-1-[01]", id_) for id_ in ids)


def test_a_call_id_names_its_process_and_counts_on() -> None:
    first, second = new_call_id().split("-"), new_call_id().split("-")
    assert re.fullmatch(r"[0-9a-f]{12}", first[0])
    assert first[1] == f"{os.getpid():x}"
    assert second == [*first[:2], f"{int(first[2], 16) + 1:x}"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no process is forked here")
def test_call_ids_of_a_forked_process_are_its_own() -> None:
    command = (
        "import os; from kernel.core.ids import call_id; call_id(); child = os.fork(); "
        "os.write(1, f'{call_id()}\\n'.encode()); child and os.waitpid(child, 0)"
    )
    made = subprocess.check_output([sys.executable, "-c", command], text=True).split()
    assert len({id_.rpartition("-")[0] for id_ in made}) == 2
