"""Times are stored in one form, and ages such as 90d are read in one place."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from kernel.core.times import EPOCH, iso, later, span, stored_time, utc_time

NOW = "2026-11-21T10:00:00.000Z"


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("2026-11-21", "2026-11-21T00:00:00.000Z"),
        (" 2026-11-21T12:00:00+02:00 ", NOW),
        ("2026-11-21T10:00:00", NOW),
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
