"""Charts as SVG paths: a year of days as a strip of weeks, and the neighbours of a memory in a circle."""

import math
from collections.abc import Sequence
from datetime import date
from itertools import groupby
from typing import NamedTuple

_LEVELS = 4  # of colour, by powers of the busiest day
_CELL, _STEP = 5, 6
_RADIUS, _MIDDLE_X, _MIDDLE_Y = 90, 160, 120


class Strip(NamedTuple):
    """A strip of weeks: its width, the path of the cells of each level, the lowest first, and the sums of the weeks."""

    width: int
    paths: list[str]
    weeks: list[tuple[str, int]]


class Spot(NamedTuple):
    x: float
    y: float


def strip(names: Sequence[str], counts: Sequence[int]) -> Strip:
    """Return a column for each week of days, by their names and their numbers, from Monday on below each other."""
    days = list(zip(names, counts, strict=True))
    top = max((count for _, count in days), default=0)
    first = date.fromisoformat(days[0][0]).toordinal()
    offset = date.fromordinal(first).weekday()
    paths = [""] * (_LEVELS + 1)
    for number, (_, count) in enumerate(days, offset):
        column, row = divmod(number, 7)
        paths[_level(count, top)] += f"M{column * _STEP} {row * _STEP + _CELL / 2:g}h{_CELL}"  # as wide as long
    by_week = ((number // 7, day) for number, day in enumerate(days, offset))
    weeks = [[day for _, day in several] for _, several in groupby(by_week, key=lambda pair: pair[0])]
    return Strip(len(weeks) * _STEP, paths, [(week[0][0], sum(count for _, count in week)) for week in weeks])


def _level(count: int, top: int) -> int:
    """Return 0 for none, else 1 to the number of levels, in equal steps of the logarithm."""
    return min(_LEVELS, 1 + int(_LEVELS * math.log(count) / math.log(top + 1))) if count else 0


def bars(counts: Sequence[int], step: int = 6, height: int = 32) -> str:
    """Return a path with a bar for each number, as high as its share of the largest; nothing for none."""
    top = max(counts, default=0)
    highs = [(at * step, round(height * count / top, 1) or 0.5) for at, count in enumerate(counts) if count]
    return "".join(f"M{x} {height}v-{high:g}h{step - 1}v{high:g}z" for x, high in highs)


def circle(count: int) -> list[Spot]:
    """Return the places of so many neighbours around the middle."""
    angles = [2 * math.pi * number / count - math.pi / 2 for number in range(count)]
    return [
        Spot(round(_MIDDLE_X + _RADIUS * math.cos(angle), 1), round(_MIDDLE_Y + _RADIUS * math.sin(angle), 1))
        for angle in angles
    ]
