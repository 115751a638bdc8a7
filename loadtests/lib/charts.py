"""A chart of times by size as SVG, both scales logarithmic."""

import math
from collections.abc import Sequence

_WIDTH, _HEIGHT = 640, 400
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 150, 24, 48
_SIDES = (("Quipu", "#1b6ca8"), ("naive", "#b5482a"))


def drawn(points: Sequence[tuple[int, float, float]]) -> str:
    """The p50 in milliseconds of two sides by the number of memories."""
    sizes = [size for size, *_ in points]
    times = [time for _, *both in points for time in both]
    low, high = math.floor(math.log10(min(times))), math.ceil(math.log10(max(times)))
    first, last = math.log10(min(sizes)), math.log10(max(sizes))

    def x(size: float) -> float:
        return _LEFT + (math.log10(size) - first) / max(last - first, 1e-9) * (_WIDTH - _LEFT - _RIGHT)

    def y(time: float) -> float:
        return _HEIGHT - _BOTTOM - (math.log10(time) - low) / max(high - low, 1) * (_HEIGHT - _TOP - _BOTTOM)

    parts = [_line(_LEFT, y(10**step), _WIDTH - _RIGHT, y(10**step), "#ddd") for step in range(low, high + 1)]
    parts += [_text(_LEFT - 8, y(10**step) + 4, f"{10**step:g} ms", "end") for step in range(low, high + 1)]
    parts += [_text(x(size), _HEIGHT - _BOTTOM + 20, f"{size:,}", "middle") for size in sizes]
    parts.append(_text((_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - 8, "memories", "middle"))
    for at, (name, colour) in enumerate(_SIDES, start=1):
        dots = [(x(point[0]), y(point[at])) for point in points]
        path = " ".join(f"{'L' if number else 'M'}{one:.1f} {other:.1f}" for number, (one, other) in enumerate(dots))
        parts.append(f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{one:.1f}" cy="{other:.1f}" r="3.5" fill="{colour}"/>' for one, other in dots]
        parts.append(_text(dots[-1][0] + 10, dots[-1][1] + 4, f"{name}, {_told(points[-1][at])} ms", "start", colour))
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif" '
        f'font-size="12">\n<title>p50 of recall by size</title>\n'
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#fff"/>\n{body}\n</svg>\n'
    )


def _told(time: float) -> str:
    return f"{time:,.0f}" if time >= 10 else f"{time:.1f}"


def _line(x1: float, y1: float, x2: float, y2: float, colour: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"/>'


def _text(x: float, y: float, text: str, anchor: str, colour: str = "#333") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">{text}</text>'
