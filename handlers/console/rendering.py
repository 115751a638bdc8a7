"""Templates and static files of the console. Jinja2 is imported with this module, when a page is first asked for."""

import hashlib
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta, tzinfo
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

import msgspec
from jinja2 import Environment, FileSystemLoader, StrictUndefined, nodes, pass_context
from jinja2.compiler import CodeGenerator, Frame
from jinja2.runtime import Context
from markupsafe import Markup, escape

from handlers.console.markdown import markdown
from handlers.console.overview import Day, DayOfDialects
from handlers.console.records import plain, preview, rule_words, without_key
from handlers.console.search import WEIGHTS, Signal
from kernel.core.lazy_regex import regex
from kernel.core.text import one_line, visible, yaml_block
from kernel.core.times import stored_time
from kernel.search.query import STOP_WORDS

_LEVELS = 4  # of colour, by powers of the busiest day
_HERE = Path(__file__).parent
_MEDIA = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
_WORD = regex(r"\w+")
_HARMLESS = regex(r"[ !#-%(-;=?-~]*")  # of ASCII, without control characters and those that HTML reads
_SHORTEST_MARKED = 2  # letters of a word of the query
_AGES = ((86400.0, "day"), (3600.0, "hour"), (60.0, "minute"))
_CELL, _STEP = 5, 6
_TALL = 96  # of the chart of days
_HEAD_CHARS, _TITLE_CHARS = 2000, 90
_PHONE_CHARS = 36  # of an id on a line of a phone
_RADIUS, _MIDDLE_X, _MIDDLE_Y = 90, 160, 120


class Strip(NamedTuple):
    """A strip of weeks: its width, the path of the cells of each level, the lowest first, the sums of the weeks, and
    the places of the months that begin in it.
    """

    width: int
    paths: list[str]
    weeks: list[tuple[str, int]]
    months: list[tuple[int, str]]


class Spot(NamedTuple):
    x: float
    y: float


def strip(days: Sequence[Day]) -> Strip:
    """Return a column for each week of days, from Monday on below each other; the weeks are those with memories."""
    squares, months = _grid(days[0].day, len(days))
    top = max(day.memories for day in days)
    paths = ["".join(squares), *[""] * _LEVELS]
    sums: dict[str, int] = {}
    offset = date.fromisoformat(days[0].day).weekday()
    for number, day in enumerate(days):
        if day.memories:
            paths[_level(day.memories, top)] += squares[number]
            monday = days[max(0, number - (number + offset) % 7)].day
            sums[monday] = sums.get(monday, 0) + day.memories
    return Strip((len(days) + offset + 6) // 7 * _STEP, paths, [*sums.items()], months)


@lru_cache(maxsize=2)
def _grid(first: str, count: int) -> tuple[list[str], list[tuple[int, str]]]:
    """Return a square for each day, as wide as long, and the column in which each month begins."""
    begin = date.fromisoformat(first)
    squares, months = list[str](), list[tuple[int, str]]()
    for number in range(count):
        column, row = divmod(number + begin.weekday(), 7)
        squares.append(f"M{column * _STEP} {row * _STEP + _CELL / 2:g}h{_CELL}")
        day = begin + timedelta(days=number)
        if day.day == 1:
            months.append((column * _STEP, f"{day:%b}"))
    return squares, months


def _level(count: int, top: int) -> int:
    """Return 1 to the number of levels, in equal steps of the logarithm."""
    return min(_LEVELS, 1 + int(_LEVELS * math.log(count) / math.log(top + 1)))


def bars(counts: Sequence[int], step: int = 6, height: int = 32) -> str:
    """Return a path with a bar for each number, as high as its share of the largest; nothing for none."""
    top = max(counts, default=0)
    highs = [(at * step, round(height * count / top, 1) or 0.5) for at, count in enumerate(counts) if count]
    return "".join(f"M{x} {height}v-{high:g}h{step - 1}v{high:g}z" for x, high in highs)


def stacks(days: Sequence[DayOfDialects], names: Sequence[str]) -> list[str]:
    """Return a path for each name: in the column of each day its share on top of those before it."""
    top = max((day.memories for day in days), default=0)
    paths = [""] * len(names)
    for column, day in enumerate(days):
        below = 0
        for number, name in enumerate(names):
            low, below = below, below + day.dialects.get(name, 0)
            if below > low:
                foot, head = round(_TALL * low / top), round(_TALL * below / top)
                paths[number] += f"M{column * 10 + 5} {_TALL - foot}v-{max(head - foot, 1)}"
    return paths


def dialects_of(days: Sequence[DayOfDialects]) -> dict[str, int]:
    """Return the dialects of days with the number of their memories, the first by name."""
    totals = Counter[str]()
    for day in days:
        totals.update(day.dialects)
    return dict(sorted(totals.items()))


def heads(
    columns: Sequence[tuple[str, str, str]], address: str, filters: Mapping[str, str], field: str = "sort"
) -> Markup:
    """Return the headers of columns by name, title and class; those with a name order the list at the address."""
    return _heads(tuple(columns), address, tuple(filters.items()), field)


@lru_cache(maxsize=256)
def _heads(
    columns: tuple[tuple[str, str, str], ...], address: str, filters: tuple[tuple[str, str], ...], field: str
) -> Markup:
    cells, order = list[str](), dict(filters).get(field, "")
    for name, label, kind in columns:
        opening = '<th scope="col"' + (f' class="{kind}"' if kind else "")
        if not name or not address:
            cells.append(f"{opening}>{label}</th>")
            continue
        if order in {name, f"-{name}"}:
            opening += f' aria-sort="{"descending" if order[0] == "-" else "ascending"}"'
        query = urlencode({**dict(filters), field: f"-{name}" if order == name else name}, errors="replace")
        cells.append(f'{opening}><a href="{address}?{escape(query)}">{label}</a></th>')
    return Markup("".join(cells))  # noqa: S704  # names and titles are those of templates


@lru_cache(maxsize=64)
def menu_items(pages: tuple[tuple[str, str], ...], current: str) -> Markup:
    """Return the links of pages by name and title, the current marked."""
    links = list[str]()
    for name, label in pages:
        address, mark = "" if name == "overview" else f"/{name}", ' aria-current="page"' if name == current else ""
        links.append(f'<li><a href="/ui{address}"{mark}>{label}</a></li>')
    return Markup("\n".join(links))  # noqa: S704  # names and titles of our pages


def shares(signals: Sequence[Signal], score: float) -> Markup:
    """Return a bar of the shares that signals have in a score, with a legend that goes on."""
    at, rects, words = 0.0, list[str](), list[str]()
    for signal in signals:
        width = signal.share * 100
        rects.append(f'<rect x="{at:.2f}" y="0" width="{width:.2f}" height="4" class="s{signal.number}"/>')
        words.append(f'<span class="signal s{signal.number}">{signal.name} {signal.share:.2f}</span>')
        at += width
    opening = '<svg viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true" focusable="false">'
    return Markup(f'{opening}{"".join(rects)}</svg><p><span class="dim">Score {score:.2f}:</span> {" ".join(words)}')  # noqa: S704  # numbers


def circle(count: int) -> list[Spot]:
    """Return the places of so many neighbours around the middle."""
    angles = [2 * math.pi * number / count - math.pi / 2 for number in range(count)]
    return [
        Spot(round(_MIDDLE_X + _RADIUS * math.cos(angle), 1), round(_MIDDLE_Y + _RADIUS * math.sin(angle), 1))
        for angle in angles
    ]


class StaticFile(msgspec.Struct, frozen=True):
    """A file that never changes under its name, which holds a part of its hash."""

    name: str
    media: str
    body: bytes


def highlight(text: str, query: str) -> Markup:
    """Return the text, escaped, with the words that begin like a word of the query in <mark>."""
    pattern = _beginning_with(query)
    parts, end = list[str](), 0
    for match in pattern.finditer(text) if pattern else ():
        parts += [escape(visible(text[end : match.start()])), "<mark>", escape(visible(match[0])), "</mark>"]
        end = match.end()
    return Markup("".join([*parts, escape(visible(text[end:]))]))  # noqa: S704  # each part is escaped


@lru_cache(maxsize=16)
def _beginning_with(query: str) -> re.Pattern[str] | None:
    """Return the words that begin like a word of the query, in any case."""
    words = {word for word in _WORD.findall(query) if len(word) >= _SHORTEST_MARKED}
    words = {word for word in words if word.lower() not in STOP_WORDS} or words
    return re.compile(rf"\b(?:{'|'.join(map(re.escape, words))})\w*", re.IGNORECASE) if words else None


def title(text: str) -> str:
    """Return the first line of a text that says something, without the marks of Markdown; empty for none."""
    first = next((line for line in text[:_HEAD_CHARS].splitlines() if line.strip(" #*_`-")), "")
    return one_line(first, _TITLE_CHARS).strip(" #*_`")


def laid_out(text: str) -> str:
    """Return JSON with a line for each of its values; another text, such as one that was cut, as it is."""
    try:
        return msgspec.json.format(text, indent=2)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return text


def ago(at: str, now: str) -> str:
    """Return how long before `now` a time was, in words."""
    try:
        seconds = (datetime.fromisoformat(now) - datetime.fromisoformat(at)).total_seconds()
    except (ValueError, TypeError):
        return at
    for length, unit in _AGES:
        if seconds >= length:
            count = int(seconds // length)
            return f"{count} {unit}{'s' if count > 1 else ''} ago"
    return "just now" if seconds >= 0 else at


@pass_context
def stamp(page: Context, at: str, clock: str = "%H:%M") -> Markup:
    """Return a time as an element: its age is shown when it is pointed at."""
    now = page["now"]
    shown = escape(moment(at, page["zone"], now, clock))
    return Markup(f'<time datetime="{escape(at)}" title="{escape(ago(at, now))}">{shown}</time>')  # noqa: S704  # escaped


def hour(at: str, zone: tzinfo) -> Markup:
    """Return the time of day of a time as an element, below a heading that is the day."""
    return Markup(f'<time datetime="{escape(at)}">{stored_time(at).astimezone(zone):%H:%M}</time>')  # noqa: S704  # escaped


@lru_cache(maxsize=1024)
def named(memory_id: str) -> Markup:
    """Return an id; a phone leaves the scope out of its space if the whole does not fit on a line."""
    space, slash, key = visible(memory_id).partition("/")
    dialect, colon, scope = space.partition(":")
    if len(memory_id) <= _PHONE_CHARS or not colon or not slash:
        return escape(visible(memory_id))
    scope = f'<span class="scope">:{escape(scope)}</span>'
    return Markup(f"{escape(dialect)}{scope}/{escape(key)}")  # noqa: S704  # each part is escaped


@lru_cache(maxsize=1024)
def page_of(memory_id: str) -> Markup:
    return Markup(f"/ui/memory?id={quote(memory_id, safe='', errors='replace')}")  # noqa: S704  # quoted


def memory_of(memory_id: str, text: str) -> Markup:
    """Return the text of a memory as a link to its page, with its id beside it; the id alone is the link of no text."""
    link = f'<a href="{page_of(memory_id)}" dir="auto">{escape(visible(text or memory_id))}</a>'
    return Markup(f'{link} <span class="id dim">{named(memory_id)}</span>' if text else link)  # noqa: S704  # escaped


def moment(at: str, zone: tzinfo, now: str, clock: str = "%H:%M") -> str:
    """Return a time with its day and zone, and its year unless that is the present."""
    return _moment(at, zone, _year(now, zone), clock) if at else ""


@lru_cache(maxsize=4096)
def _moment(at: str, zone: tzinfo, this_year: int, clock: str) -> str:
    there = stored_time(at).astimezone(zone)
    year = "" if there.year == this_year else f" {there.year}"
    return f"{there:%a} {there.day} {there:%b}{year} {there.strftime(clock)} {there.tzname()}"


@lru_cache(maxsize=2)
def _year(now: str, zone: tzinfo) -> int:
    return stored_time(now).astimezone(zone).year


def by_day(events: Sequence[Any], zone: tzinfo) -> list[tuple[str, list[Any]]]:
    """Return the events in groups of a day each in a zone, in the same order."""

    def day(event: Any) -> str:
        return stored_time(event.at).astimezone(zone).date().isoformat()

    return [(name, list(several)) for name, several in groupby(events, key=day)]


def _written(value: Any) -> str:
    """Return the HTML of a value: escaped, invisible characters by their numbers; `Markup` as it is."""
    if type(value) is str:
        return value if _HARMLESS.fullmatch(value) else escape(visible(value))
    return value if isinstance(value, Markup) else escape(visible(str(value)))


class _Generator(CodeGenerator):
    """Lets `_written` escape, too: Jinja's `escape(environment.finalize(value))` makes four calls for each value."""

    def _output_child_pre(self, node: nodes.Expr, frame: Frame, finalize: CodeGenerator._FinalizeInfo) -> None:
        self.write("environment.finalize(")

    def _output_child_post(self, node: nodes.Expr, frame: Frame, finalize: CodeGenerator._FinalizeInfo) -> None:
        self.write(")")


def _static() -> dict[str, StaticFile]:
    files: dict[str, StaticFile] = {}
    for path in sorted((_HERE / "static").iterdir()):
        body = path.read_bytes()
        name = f"{path.stem}.{hashlib.sha256(body).hexdigest()[:12]}{path.suffix}"
        files[path.name] = StaticFile(name, _MEDIA[path.suffix], body)
    return files


class Renderer:
    def __init__(self) -> None:
        by_file = _static()
        self.static = {file.name: file for file in by_file.values()}
        self._templates = Environment(
            loader=FileSystemLoader(_HERE / "templates", encoding="utf-8"),
            autoescape=True,
            undefined=StrictUndefined,
            finalize=_written,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        self._templates.code_generator_class = _Generator
        own: Mapping[str, Any] = {
            "highlight": highlight,
            "ago": ago,
            "markdown": markdown,
            "plain": plain,
            "preview": preview,
            "without_key": without_key,
            "laid_out": laid_out,
            "line": one_line,
            "title": title,
            "moment": moment,
            "named": named,
            "yaml": yaml_block,
            "memory": memory_of,
            "page": page_of,
            "stamp": stamp,
            "hour": hour,
            "rule": rule_words,
            "as_typed": escape,  # for a field that sends the text back
            "by_day": by_day,
            "strip": strip,
            "circle": circle,
            "bars": bars,
            "stacks": stacks,
            "heads": heads,
            "items": menu_items,
            "shares": shares,
            "dialects_of": dialects_of,
        }
        self._templates.filters.update(own)
        self._files = {file: f"/ui/static/{static_file.name}" for file, static_file in by_file.items()}

    def page(self, template: str, values: Mapping[str, Any]) -> bytes:
        return (
            self._templates.get_template(template)
            .render(static=self._files, weights=WEIGHTS, **values)
            .encode("utf-8", "replace")
        )
