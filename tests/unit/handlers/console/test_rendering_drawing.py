"""The paths of charts, titles, ids on a phone, and JSON with a line for each value."""

import pytest

from handlers.console.overview import Day
from handlers.console.rendering import Spot, bars, circle, laid_out, named, strip, title


def days(names: list[str], counts: list[int]) -> list[Day]:
    return [Day(name, count) for name, count in zip(names, counts, strict=True)]


def test_strip_has_a_column_for_each_week_from_monday_on() -> None:
    names = [f"2026-01-{day:02}" for day in range(1, 13)]  # the first is a Thursday
    drawn = strip(days(names, [0, 1, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0]))
    assert drawn.width == 18
    assert drawn.months == [(0, "Jan")]
    assert strip(days(["2026-01-31", "2026-02-01", "2026-02-02"], [0, 0, 0])).months == [(0, "Feb")]
    assert drawn.weeks == [("2026-01-01", 1), ("2026-01-05", 9)]
    assert drawn.paths[4] == "M6 2.5h5"
    assert drawn.paths[1] == "M0 26.5h5"
    assert [path.count("M") for path in drawn.paths] == [12, 1, 0, 0, 1]


def test_strip_of_an_empty_store_is_of_the_lowest_level() -> None:
    drawn = strip(days(["2026-01-01", "2026-01-02"], [0, 0]))
    assert drawn.paths[1:] == [""] * 4
    assert drawn.paths[0].count("M") == 2


@pytest.mark.parametrize("count", [0, 1, 4, 24])
def test_neighbours_are_around_the_middle(count: int) -> None:
    places = circle(count)
    assert len(set(places)) == count
    assert {round(((spot.x - 160) ** 2 + (spot.y - 120) ** 2) ** 0.5) for spot in places} <= {90}
    assert places[:1] == [Spot(160.0, 30.0)][:count]


def test_bars_are_as_high_as_their_share_of_the_highest() -> None:
    assert bars([0, 1, 4, 0, 1000], 6, 32) == "M6 32v-0.5h5v0.5zM12 32v-0.1h5v0.1zM24 32v-32h5v32z"
    assert (bars([]), bars([0, 0])) == ("", "")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("# Ports\n\n1. Take 8080.", "Ports"),
        ("\n---\n**Bold** first", "Bold** first"),
        ("One\u202eline", "Oneline"),
        (" \n ", ""),
    ],
)
def test_title_is_the_first_line_that_says_something(text: str, shown: str) -> None:
    assert title(text) == shown


@pytest.mark.parametrize(
    ("memory_id", "shown"),
    [
        ("paths/infrastructure/notification/097/a/b/c", "paths/infrastructure/notification/097/a/b/c"),
        ("brain:core/mem_1m8k5f4zf360qdd69v3se", "brain:core/mem_1m8k5f4zf360qdd69v3se"),
        (
            "files:memstore_memories/mem_01m8k5f7x0mb88tghqgrhw",
            'files<span class="scope">:memstore_memories</span>/mem_01m8k5f7x0mb88tghqgrhw',
        ),
        (
            "graph:<b>\u202e/a name that is longer than a line of a phone",
            'graph<span class="scope">:&lt;b&gt;⟨U+202E⟩</span>/a name that is longer than a line of a phone',
        ),
    ],
)
def test_the_scope_of_a_long_id_can_be_left_out(memory_id: str, shown: str) -> None:
    assert str(named(memory_id)) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('{"a":[1,"b"]}', '{\n  "a": [\n    1,\n    "b"\n  ]\n}'),
        ('{"a":[1,', '{"a":[1,'),
        ("status: ok", "status: ok"),
        ("", ""),
    ],
)
def test_json_has_a_line_for_each_value_and_other_texts_stay(text: str, shown: str) -> None:
    assert laid_out(text) == shown
