"""The output of the commands for memories: lines for people, or JSON, one object a line.

No character of a memory reaches a terminal that would move its cursor, hide or reorder text.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, cast

import msgspec
from msgspec import UNSET

from handlers.console.commands import Changed, Hit, Kept, Result, Shown, Stats, Undone
from handlers.console.erasing import Erasable
from handlers.console.records import Event, rule_words
from handlers.console.search import ANSWERS
from kernel.core.text import count_of_memories, one_line, one_word, visible, yaml_block
from kernel.core.times import stored_time
from kernel.operations.erase import Receipt
from kernel.search.fusion import Verdict

Style = Literal["json", "text", "colour"]
_BOLD, _DIM, _RED, _GREEN, _YELLOW = 1, 2, 31, 32, 33
_COLOURS: Mapping[Verdict, int] = {"strong": _GREEN, "weak": _DIM, "none": _YELLOW}
_SHOWN_LINES = 12  # of the text of a hit; `quipu show` has all of it
_TIME_CHARS = 16  # to the minute
_TIME_MARK = "\x02"  # that of kernel.cli.local_client
_LINE_CHARS = 100
_MEBIBYTE = 1 << 20
# JSON escapes the control characters below the space; these too act on terminals, and stand in texts alone.
_ESCAPED = {
    code: f"\\u{code:04x}"
    for first, last in (
        (0x7F, 0x9F),
        (0x61C, 0x61C),
        (0x200B, 0x200F),
        (0x2028, 0x202E),
        (0x2060, 0x206F),
        (0xFEFF, 0xFEFF),
    )
    for code in range(first, last + 1)
}


def printed(command: str, result: Result, style: Style, *, in_seconds: bool = False) -> str:
    """Return the whole output of a command; empty if nothing was found.

    Times for people are in UTC, or `in_seconds` since 1970 between two marks, for a client who knows its zone.
    """
    rows = result if isinstance(result, list) else [result]
    if style == "json":
        return "".join(f"{msgspec.json.encode(row).decode().translate(_ESCAPED)}\n" for row in rows)
    lines = _Lines(in_colour=style == "colour", in_seconds=in_seconds)
    if command == "list":
        return "".join(f"{line}\n" for line in lines.listed(cast("list[Hit]", rows)))
    return "\n".join("".join(f"{line}\n" for line in lines.of(row)) for row in rows)


class _Lines:
    def __init__(self, *, in_colour: bool, in_seconds: bool) -> None:
        self._in_colour = in_colour
        self._in_seconds = in_seconds

    def of(self, row: Any) -> Iterator[str]:
        lines: Mapping[type, Callable[[Any], Iterator[str]]] = {
            Hit: self._hit,
            Shown: self._shown,
            Event: self._event,
            Changed: self._changed,
            Undone: self._undone,
            Erasable: self._erasable,
            Receipt: self._receipt,
            Stats: self._stats,
            Kept: self._kept,
        }
        return lines[type(row)](row)

    def listed(self, rows: Sequence[Hit]) -> Iterator[str]:
        for row in rows:
            at = self._paint(_DIM, self._minute(row.provenance.updated_at))
            yield f"{at}  {self._id(row.id)}  {self._ended(row)}{_line(row.text)}"

    def _ended(self, row: Hit) -> str:
        return self._paint(_YELLOW, "expired") + "  " if row.expired else ""

    def _hit(self, row: Hit) -> Iterator[str]:
        origin = row.provenance
        about = f"{self._minute(origin.updated_at)}  {one_word(origin.actor)}"
        answers = "" if row.verdict is UNSET else self._paint(_COLOURS[row.verdict], ANSWERS[row.verdict]) + "  "
        yield f"{self._id(row.id)}  {answers}{self._ended(row)}{self._paint(_DIM, about)}{row.witness}"
        if row.flag is not UNSET:
            yield self._paint(_YELLOW, f"  looks written to steer agents: {row.flag}")
        lines = _lines(row.text)
        yield from (f"  {line}" for line in lines[:_SHOWN_LINES])
        if len(lines) > _SHOWN_LINES or not row.complete:
            yield self._paint(_DIM, "  ... `quipu show` with the id has all of it")

    def _shown(self, row: Shown) -> Iterator[str]:
        yield self._id(row.id)
        origin = f"{self._minute(row.created_at)} by {one_word(row.actor)} with {row.tool}"
        yield self._paint(_DIM, f"  written {origin}, last changed {self._minute(row.updated_at)}")
        if row.scope:
            yield self._paint(_DIM, f"  in {_line(row.scope)}")
        if row.quarantined:
            yield self._paint(_YELLOW, f"  quarantined: it {rule_words(row.quarantined)}")
        if row.lock:
            yield self._paint(_DIM, f"  immutable: {_line(row.lock)}")
        if row.until:
            yield self._paint(_DIM, f"  true until {_line(row.until)}")
        for link in row.links:
            end = f"{visible(link.id)} {_line(link.name)}".strip()
            yield self._paint(_DIM, f"  {_line(link.relation)} {'->' if link.outgoing else '<-'} {end}")
        yield ""
        yield from _lines(row.text)
        if row.beside:
            yield from ("", *_lines(yaml_block(row.beside).rstrip("\n")))

    def _event(self, row: Event) -> Iterator[str]:
        why = f"  {_line(row.reason)}" if row.reason else ""
        yield f"{self._paint(_BOLD, row.operation)}  {self._minute(row.at)}  {one_word(row.actor)}  {row.tool}{why}"
        if row.diff:
            for line in row.diff:
                colour = {"+": _GREEN, "-": _RED}.get(line.sign, _DIM)
                yield self._paint(colour, f"  {line.sign} {visible(line.text)}")
            return
        for sign, colour, text in (("-", _RED, row.before), ("+", _GREEN, row.after)):
            for line in _lines(text)[:_SHOWN_LINES] if text else ():
                yield self._paint(colour, f"  {sign} {line}")

    def _changed(self, row: Changed) -> Iterator[str]:
        yield f"{row.done} {self._id(row.id)}"
        if row.call:
            yield self._paint(_DIM, f"  `quipu undo {row.call}` takes it back")

    def _undone(self, row: Undone) -> Iterator[str]:
        yield f"undone call {row.call}, {row.tool} at {self._minute(row.at)}"
        yield from (f"  {self._id(memory_id)}" for memory_id in row.memories)

    def _erasable(self, row: Erasable) -> Iterator[str]:
        yield from (f"{self._id(memory.id)}: {_line(memory.text)}" for memory in row.memories)

    def _receipt(self, row: Receipt) -> Iterator[str]:
        yield from (f"erased {self._id(memory.id)}  sha256 {memory.sha256}" for memory in row.memories)
        yield f"audit row {row.audit} of {row.at}, hash {row.hash}"
        for memory_id in row.left:
            yield self._paint(_RED, f"bytes of {visible(memory_id)} are left in the file: run `quipu compact --full`")
        yield from (self._paint(_YELLOW, f"a copy still holds a text: {visible(copy)}") for copy in row.copies)
        for memory_id in row.mentions:
            yield self._paint(_YELLOW, f"the history of {visible(memory_id)} still has these words")
        if row.is_in_file:
            yield self._paint(_YELLOW, "the words still stand in the file: there, in a key or in the name of a tag")

    def _kept(self, row: Kept) -> Iterator[str]:
        yield f"places kept: {row.kept}"

    def _stats(self, row: Stats) -> Iterator[str]:
        yield f"{count_of_memories(row.memories)}, {row.today} changed today, {row.week} within seven days"
        for space in row.spaces:
            yield f"  {space.memories:>8}  {visible(space.name)}"
        if row.quarantined:
            yield self._paint(_YELLOW, f"{row.quarantined} suspected of prompt injection, see `quipu quarantine`")
        yield f"{row.file_bytes / _MEBIBYTE:.1f} MiB, and {row.log_bytes / _MEBIBYTE:.1f} MiB of log"

    def _minute(self, at: str) -> str:
        if self._in_seconds:
            return f"{_TIME_MARK}{int(stored_time(at).timestamp())}{_TIME_MARK}"
        return f"{at[:_TIME_CHARS].replace('T', ' ')} UTC"

    def _id(self, text: str) -> str:
        return self._paint(_BOLD, visible(text.replace("\n", " ").replace("\t", " ")))

    def _paint(self, code: int, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self._in_colour else text


def _lines(text: str) -> list[str]:
    return visible(text.replace("\r\n", "\n")).split("\n")


def _line(text: str) -> str:
    return visible(one_line(text, _LINE_CHARS))
