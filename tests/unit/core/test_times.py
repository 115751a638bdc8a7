"""Times are stored in one form, and ages such as 90d are read in one place."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from kernel.core.times import EPOCH, coming_time, iso, later, past_time, span, stored_time, utc_time

NOW = "2026-11-21T10:00:00.000Z"


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("2026-11-21", "2026-11-21T00:00:00.000Z"),
        (" 2026-11-21T12:00:00+02:00 ", NOW),
        ("2026-11-21T10:00:00", NOW),
        ("2026-W47-6", "2026-11-21T00:00:00.000Z"),
        ("2026-W47", None),
        ("2026W47T10:00", None),
        ("2026-13-01", None),
        ("10000-01-01", None),
        ("0001-01-01T00:00:00+01:00", None),
        ("tomorrow", None),
        ("", None),
    ],
)
def test_any_iso_time_is_stored_in_utc_with_milliseconds(text: str, stored: str | None) -> None:
    assert utc_time(text) == stored


def test_a_moment_of_any_zone_is_stored_in_utc() -> None:
    moment = datetime(2026, 11, 21, 12, tzinfo=timezone(timedelta(hours=2)))
    assert [iso(moment), iso(moment.astimezone(UTC)), iso(datetime(2026, 11, 21, 10))] == [NOW] * 3  # noqa: DTZ001


def test_a_row_that_holds_no_time_is_of_1970() -> None:
    assert (stored_time("never"), stored_time("2026-11-21"), stored_time(NOW)) == (
        EPOCH,
        datetime(2026, 11, 21, tzinfo=UTC),
        datetime(2026, 11, 21, 10, tzinfo=UTC),
    )


def test_a_time_moves_by_a_span_within_the_calendar() -> None:
    assert later(NOW, timedelta(hours=-10)) == "2026-11-21T00:00:00.000Z"
    with pytest.raises(OverflowError):
        later(NOW, timedelta(days=-999_999))


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("90d", timedelta(days=90)),
        (" 12h ", timedelta(hours=12)),
        ("30m", timedelta(minutes=30)),
        ("10s", timedelta(seconds=10)),
        ("0d", timedelta()),
        ("２d", None),
        ("-1d", None),
        ("1.5h", None),
        ("1w", None),
        ("9999999d", None),
        ("d", None),
        ("", None),
    ],
)
def test_a_span_is_a_number_and_a_unit(text: str, read: timedelta | None) -> None:
    assert span(text) == read


@pytest.mark.parametrize(
    ("wording", "stored"),
    [
        ("now", "2026-11-26T22:20"),
        ("Today", "2026-11-26T05:00"),
        ("yesterday", "2026-11-25T05:00"),
        ("yesterday at 8:30", "2026-11-25T13:30"),
        ("8:30", "2026-11-26T13:30"),
        ("7d", "2026-11-19T22:20"),
        ("1w", "2026-11-19T22:20"),
        ("2 weeks ago", "2026-11-12T22:20"),
        ("an hour ago", "2026-11-26T21:20"),
        ("90 min", "2026-11-26T20:50"),
        ("last week", "2026-11-19T22:20"),
        ("a month", "2026-10-27T22:20"),
        ("999999y", "1970-01-01T00:00"),
        ("this week", "2026-11-23T05:00"),
        ("this month", "2026-11-01T05:00"),
        ("monday", "2026-11-23T05:00"),
        ("last thursday", "2026-11-19T05:00"),
        ("2026-11-20", "2026-11-20T05:00"),
        ("2026-11-20T08:00", "2026-11-20T13:00"),
        ("2026-11-20 08:00:00Z", "2026-11-20T08:00"),
        ("2026-11", "2026-11-01T05:00"),
        ("2026/11/5", "2026-11-05T05:00"),
        ("20.11.2026", "2026-11-20T05:00"),
        ("Nov 20", "2026-11-20T05:00"),
        ("Nov 20, 08:15", "2026-11-20T13:15"),
        ("20th November 2025", "2025-11-20T05:00"),
        ("November 20, 2025", "2025-11-20T05:00"),
        ("3 dec", "2025-12-03T05:00"),
        *((wrong, None) for wrong in ("", "garbage", "tomorrow", "in 3 days", "31 june", "2026-13-01", "20/11/2026")),
        *((wrong, None) for wrong in ("2026-1-1-1", "2026", "5", "1 2 3", "25:00", "²d", "9" * 99, "a" * 10_000)),
        *((f"{'9' * 20}-1-1", None), (f"1-1-{'9' * 20}", None)),
    ],
)
def test_a_past_time_is_understood_in_usual_wordings(wording: str, stored: str | None) -> None:
    now = datetime(2026, 11, 26, 17, 20, tzinfo=timezone(timedelta(hours=-5)))  # a Thursday
    assert past_time(wording, now) == (f"{stored}:00.000Z" if stored else None)


@pytest.mark.parametrize(
    ("wording", "stored"),
    [
        ("now", "2026-11-26T22:20:00.000Z"),
        ("today", "2026-11-27T04:59:59.999Z"),
        ("Tomorrow", "2026-11-28T04:59:59.999Z"),
        ("tomorrow at 8:30", "2026-11-27T13:30:00.000Z"),
        ("yesterday at 8:30", "2026-11-25T13:30:00.000Z"),
        ("7d", "2026-12-03T22:20:00.000Z"),
        ("in 2 weeks", "2026-12-10T22:20:00.000Z"),
        ("2 weeks from now", "2026-12-10T22:20:00.000Z"),
        ("2 weeks ago", "2026-11-12T22:20:00.000Z"),
        ("next week", "2026-12-03T22:20:00.000Z"),
        ("an hour", "2026-11-26T23:20:00.000Z"),
        ("this week", "2026-11-30T04:59:59.999Z"),
        ("this month", "2026-12-01T04:59:59.999Z"),
        ("this year", "2027-01-01T04:59:59.999Z"),
        ("monday", "2026-12-01T04:59:59.999Z"),
        ("next thursday", "2026-12-04T04:59:59.999Z"),
        ("Nov 26", "2026-11-27T04:59:59.999Z"),
        ("20 Nov", "2027-11-21T04:59:59.999Z"),
        ("3 dec", "2026-12-04T04:59:59.999Z"),
        ("November 20, 2025", "2025-11-21T04:59:59.999Z"),
        ("2027-01-31T08:00", "2027-01-31T13:00:00.000Z"),
        ("2027-01-31T08:00Z", "2027-01-31T08:00:00.000Z"),
        ("2027-01-31", "2027-02-01T04:59:59.999Z"),
        *((wrong, None) for wrong in ("", "garbage", "last week", "999999y", "31 june", "2026-13-01", "a" * 10_000)),
    ],
)
def test_a_coming_time_is_understood_in_usual_wordings(wording: str, stored: str | None) -> None:
    now = datetime(2026, 11, 26, 17, 20, tzinfo=timezone(timedelta(hours=-5)))  # a Thursday
    assert coming_time(wording, now) == stored


def test_the_last_day_of_a_month_is_that_of_its_length() -> None:
    days = [datetime(2026, month, 15, tzinfo=UTC) for month in range(1, 13)]
    assert [int(str(coming_time("this month", day))[8:10]) for day in days] == [
        *(31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
    ]
