"""Line charts as SVG, for light and dark pages: logarithmic or plain axes, one line and one name for each series."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple
from xml.sax.saxutils import escape

_WIDTH, _HEIGHT = 720, 400
_LEFT, _TOP, _RIGHT, _BOTTOM = 70, 40, 150, 50
_COLOURS = (
    "#0072b2",
    "#d55e00",
    "#009e73",
    "#cc79a7",
    "#56b4e9",
    "#e69f00",
    "#999999",
)  # Okabe and Ito: distinct to colour-blind readers
_INK = "#777777"


class Axis(NamedTuple):
    """What an axis shows; on a logarithmic one values must be above zero."""

    label: str
    log: bool = True


def chart(title: str, x: Axis, y: Axis, series: Mapping[str, Sequence[tuple[float, float]]]) -> str:
    """The document: each series is drawn as a line through its points and named at its end."""
    points = [point for line in series.values() for point in line]
    across = _scale(x, [at for at, _ in points], _LEFT, _WIDTH - _RIGHT)
    up = _scale(y, [at for _, at in points], _HEIGHT - _BOTTOM, _TOP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif"'
        f' font-size="12" fill="{_INK}" role="img" aria-label="{escape(title)}">',
        _text(_LEFT, 22, title, size=15),
        _text((_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - 12, x.label, anchor="middle"),
        f'<g transform="rotate(-90 16 {_HEIGHT / 2})">{_text(16, _HEIGHT / 2, y.label, anchor="middle")}</g>',
    ]
    for at in across.ticks:
        place = across.place(at)
        parts.append(_line([(place, _TOP), (place, _HEIGHT - _BOTTOM)], _INK, 0.3))
        parts.append(_text(place, _HEIGHT - _BOTTOM + 18, _short(at), anchor="middle"))
    for at in up.ticks:
        place = up.place(at)
        parts.append(_line([(_LEFT, place), (_WIDTH - _RIGHT, place)], _INK, 0.3))
        parts.append(_text(_LEFT - 8, place + 4, _short(at), anchor="end"))
    ends = _apart([up.place(line[-1][1]) for line in series.values()])
    for number, ((name, line), end) in enumerate(zip(series.items(), ends, strict=True)):
        colour = _COLOURS[number % len(_COLOURS)]
        drawn = [(across.place(at), up.place(value)) for at, value in line]
        parts.append(_line(drawn, colour, 2))
        parts += [f'<circle cx="{left:.1f}" cy="{top:.1f}" r="3" fill="{colour}"/>' for left, top in drawn]
        parts.append(_text(_WIDTH - _RIGHT + 10, end + 4, name, colour=colour))
    return "\n".join([*parts, "</svg>", ""])


class _Scale(NamedTuple):
    place: Callable[[float], float]
    ticks: list[float]


def _scale(axis: Axis, values: Sequence[float], start: float, end: float) -> _Scale:
    """Where a value stands between two edges, and the values to mark."""
    if axis.log:
        low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
        high = max(high, low + 1)
        return _Scale(
            lambda value: start + (math.log10(value) - low) / (high - low) * (end - start),
            [10.0**power for power in range(low, high + 1)],
        )
    step = 10 ** math.floor(math.log10(max(values) or 1))
    step = next(step * part for part in (0.2, 0.5, 1, 2) if max(values) <= 6 * step * part)
    top = math.ceil(max(values) / step) * step or 1
    return _Scale(
        lambda value: start + value / top * (end - start), [step * number for number in range(round(top / step) + 1)]
    )


def _apart(places: Sequence[float], least: float = 15) -> list[float]:
    """The same places, moved down where they would cover each other."""
    moved: dict[int, float] = {}
    last = -math.inf
    for number in sorted(range(len(places)), key=lambda at: places[at]):
        last = moved[number] = max(places[number], last + least)
    return [moved[number] for number in range(len(places))]


def _short(value: float) -> str:
    for unit, name in ((1e6, "M"), (1e3, "k")):
        if value >= unit:
            return f"{value / unit:g}{name}"
    return f"{value:g}"


def _text(left: float, top: float, text: str, *, anchor: str = "start", size: int = 12, colour: str = _INK) -> str:
    where = f'x="{left:.1f}" y="{top:.1f}" text-anchor="{anchor}" font-size="{size}" fill="{colour}"'
    return f"<text {where}>{escape(text)}</text>"


def _line(points: Sequence[tuple[float, float]], colour: str, width: float) -> str:
    drawn = " ".join(f"{left:.1f},{top:.1f}" for left, top in points)
    return f'<polyline points="{drawn}" fill="none" stroke="{colour}" stroke-width="{width}"/>'
