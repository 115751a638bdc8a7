"""Markdown as HTML, for reading: headings, lists, tables, quotes, code and emphasis; all else stays as it is.

Every piece of the text is escaped, no attribute comes from it but the first number of a list, nothing is loaded and
nothing leads elsewhere: agents write these texts. A line is read once: a mark without its end is looked for once in
a line.
"""

import re
from collections.abc import Callable, Iterator, Sequence

from markupsafe import Markup, escape

from kernel.core.lazy_regex import regex
from kernel.core.text import visible

_MOST_CHARS = 40_000  # of a text and of its HTML; a longer text is shown as it is
_HEADING = regex(r"#{1,6} (.*)")
_ITEM = regex(r"( {0,12})(?:[-*+]|([0-9]{1,4})[.)]) (.*)")
_RULE = regex(r" {0,3}(?:-{3,80}|\*{3,80}|_{3,80}) {0,80}")
_DELIMITERS = regex(r"[ |:-]{3,400}")
_FENCES = ("```", "~~~")
_BEGINNING = regex(r"[`*_\[]")  # of an element within a line
_MARKS = (("`", "code"), ("**", "strong"), ("__", "strong"), ("*", "em"))
_BOXES = {"[ ] ": "\u2610", "[x] ": "\u2611", "[X] ": "\u2611"}  # of a list of tasks
_DEEPEST = 3
_INDENT = 2  # blanks


def markdown(text: str) -> Markup:
    html = _short_html(text) if len(text) <= _MOST_CHARS else None
    return Markup(f"<pre>{_plain(text)}</pre>" if html is None else html)  # noqa: S704  # each part is escaped


def _short_html(text: str) -> str | None:
    blocks, size = list[str](), 0
    for block in _blocks(text.replace("\r\n", "\n").split("\n")):
        blocks.append(block)
        size += len(block)
        if size > _MOST_CHARS:
            return None
    return "".join(blocks)


def _blocks(lines: Sequence[str]) -> Iterator[str]:
    at = 0
    while at < len(lines):
        end = at + 1
        line = lines[at]
        if line.startswith(_FENCES):
            end = next((end for end in range(at + 1, len(lines)) if lines[end].startswith(line[:3])), len(lines))
            yield f"<pre><code>{_plain(chr(10).join(lines[at + 1 : end]))}</code></pre>"
            end += 1
        elif _is_table(lines, at):
            end = _end(lines, at, lambda row: "|" in row)
            yield _table(lines[at], lines[at + 2 : end])
        elif (item := _ITEM.fullmatch(line)) and not _RULE.fullmatch(line):
            end = _end(lines, at, _items_like(item))
            opening, closing = (f'<ol start="{int(item[2])}">', "</ol>") if item[2] else ("<ul>", "</ul>")
            yield f"{opening}{''.join(map(_item, lines[at:end]))}{closing}"
        elif line.startswith(">"):
            end = _end(lines, at, lambda row: row.startswith(">"))
            quotation = "\n".join(row.removeprefix(">").removeprefix(" ") for row in lines[at:end])
            yield f"<blockquote>{_inline(quotation)}</blockquote>"
        elif alone := _alone(line):
            yield alone
        elif line.strip():
            end = _end(lines, at, lambda row: bool(row.strip()) and not _begins_block(row))
            yield f"<p>{chr(10).join(map(_inline, lines[at:end]))}</p>"
        at = end


def _alone(line: str) -> str:
    """Return the HTML of a line that is a block of its own; empty for any other."""
    if _RULE.fullmatch(line):
        return "<hr>"
    heading = _HEADING.fullmatch(line)
    return f'<p class="heading">{_inline(heading[1].strip())}</p>' if heading else ""


def _end(lines: Sequence[str], at: int, goes_on: Callable[[str], bool]) -> int:
    """Return the end of a block that begins at a line: the first line after it that does not go on with it."""
    return next((end for end in range(at + 1, len(lines)) if not goes_on(lines[end])), len(lines))


def _begins_block(line: str) -> bool:
    return line.startswith((*_FENCES, ">", "#", "|")) or _ITEM.fullmatch(line) is not None


def _is_table(lines: Sequence[str], at: int) -> bool:
    after = lines[at + 1] if at + 1 < len(lines) else ""
    return "|" in lines[at] and "|" in after and "-" in after and _DELIMITERS.fullmatch(after) is not None


def _table(head: str, rows: Sequence[str]) -> str:
    titles = "".join(f'<th scope="col">{_inline(cell)}</th>' for cell in _cells(head))
    body = "".join(f"<tr>{''.join(f'<td>{_inline(cell)}</td>' for cell in _cells(row))}</tr>" for row in rows)
    return f"<table><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>"


def _cells(row: str) -> list[str]:
    return [cell.strip() for cell in row.strip().removeprefix("|").removesuffix("|").split("|")]


def _items_like(item: re.Match[str]) -> Callable[[str], bool]:
    """Return a test of items of the same kind: numbered, or not."""
    return lambda row: (other := _ITEM.fullmatch(row)) is not None and bool(other[2]) == bool(item[2])


def _item(line: str) -> str:
    match = _ITEM.fullmatch(line)
    assert match is not None
    depth = min(len(match[1]) // _INDENT, _DEEPEST)
    box = _BOXES.get(match[3][:4], "")
    content = f"{box} {_inline(match[3][4:])}" if box else _inline(match[3])
    return f'<li class="depth{depth}">{content}</li>' if depth else f"<li>{content}</li>"


def _inline(line: str) -> str:
    """Return the HTML of a line: code, emphasis and links."""
    parts, start, at = list[str](), 0, 0
    without_end = set[str]()
    while beginning := _BEGINNING.search(line, at):
        at = beginning.start()
        element = _marked(line, at, without_end) or _link(line, at, without_end)
        if element is None:
            at += 1
            continue
        html, end = element
        parts += [_plain(line[start:at]), html]
        start = at = end
    return "".join([*parts, _plain(line[start:])])


def _marked(line: str, at: int, without_end: set[str]) -> tuple[str, int] | None:
    """Return the HTML of code or emphasis that begins here, and its end."""
    for mark, element in _MARKS:
        if not line.startswith(mark, at) or mark in without_end:
            continue
        begin = at + len(mark)
        end = line.find(mark, begin)
        if end < 0:
            without_end.add(mark)
        elif end > begin and not line[begin].isspace() and not line[end - 1].isspace():
            return f"<{element}>{_plain(line[begin:end])}</{element}>", end + len(mark)
    return None


def _link(line: str, at: int, without_end: set[str]) -> tuple[str, int] | None:
    """Return the name of a link that begins here with its address, which is no link, and its end."""
    if line[at] != "[" or "](" in without_end:
        return None
    begin = at + 1
    next_ = line.find("[", begin)  # a name has none, so that no part of the line is looked through twice
    middle = line.find("](", begin, next_ if next_ >= 0 else len(line))
    if middle <= begin:
        return None
    end = line.find(")", middle)
    if end < 0:
        without_end.add("](")
        return None
    name, address = line[begin:middle], line[middle + 2 : end]
    return f'{_plain(name)} <span class="dim">({_plain(address)})</span>', end + 1


def _plain(text: str) -> str:
    return str(escape(visible(text)))
