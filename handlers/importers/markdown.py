"""Reads Markdown files of other programs: front matter, sections, observations and links."""

import re
import tomllib
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from handlers.importers.records import clean_line, list_in
from kernel.core import yaml
from kernel.core.lazy_regex import regex
from kernel.memories.import_records import REDACTED, SECRET, LeftOut, without_private
from kernel.security.rules.secrets import redact

MAX_FRONT_MATTER = 64 << 10  # characters
_MAX_NODES = 2000
_MAX_DEPTH = 50
_MAX_DOTS = 200  # in a line of TOML: the reader copies a key once for each dot in it
_MOST_NAMED = 100  # characters of a heading in a remark
_FENCE = regex(r"[ ]{0,3}(`{3,}|~{3,})")
_HEADING = regex(r"[ ]{0,3}(#{1,6})[ \t]+(\S.*)")
_COMMENT = regex(r"[ ]{0,3}<!--")
_OPEN = regex(r"[ ]{0,3}<([A-Za-z][\w.-]{0,60})((?:[ \t][^<>\n]{0,200})?)>[ \t]*")
_CLOSE = regex(r"[ ]{0,3}</([A-Za-z][\w.-]{0,60})>[ \t]*")
# A heading in HTML, the line that shows what is folded below it, and the tags within either.
_HTML_HEADING = regex(r"[ ]{0,3}<h([1-6])(?:[ \t][^<>\n]{0,200})?>([^\n]{1,300})</h[1-6]>[ \t]*", re.IGNORECASE)
_FOLDED = regex(
    r"[ \t]{0,8}(?:<details[^<>\n]{0,100}>[ \t]*)?<summary[^<>\n]{0,100}>([^\n]{1,300})</summary>[ \t]*", re.IGNORECASE
)
_INLINE_TAG = regex(r"</?[A-Za-z][^<>\n]{0,200}>")
_OF_LAYOUT = {"a", "center", "code", "div", "li", "ol", "p", "pre", "span", "table", "td", "tr", "ul"}
_MOST_ELEMENTS = 20
_DETAILS = "details"
_DEEPEST = 7  # more than a heading has marks
_MOST_LEAD = 100  # characters of a line that leads to the headings below it
_FORBIDS = regex(
    r"[\u274c\u26d4\U0001f6ab\U0001f6d1]|\u7981\u6b62|\u4e0d(?:\u8981|\u5f97|\u53ef)|\uae08\uc9c0|"
    r"\b(?:never|not|don['\u2019]?t|avoid|forbidden|prohibited|banned|deprecated|"
    r"disallowed|wrong|bad|anti-?patterns?|nie|niemals|nicht|verboten|jamais|interdite?s?|nunca|prohibido|proibido|"
    r"\u043d\u0435|\u043d\u0435\u043b\u044c\u0437\u044f|\u043d\u0438\u043a\u043e\u0433\u0434\u0430|"
    r"\u0437\u0430\u043f\u0440\u0435\u0449\u0435\u043d\u043e)\b",
    re.IGNORECASE,
)
_BOLD = regex(r"(\*\*|__)[^*_\n]{1,200}\1")
_UNDERLINE = regex(r"[ ]{0,3}(?:=+|-+)[ \t]*")
_MOST_UNDERLINED = 4  # lines of a paragraph that an underline makes a heading
_ITEM = regex(r"(?<![ \t])[ \t]*+[-*+][ \t]++(.*+)")  # no blank is read twice
_CATEGORY = regex(r"\[([^\[\]()]{2,80})\][ \t]+(\S.*)")
_CLOCK = regex(r"\d{1,2}:\d\d(?::\d\d)?(?:[ \t]*[-\u2013][ \t]*\d{1,2}:\d\d)?")
_OF_TAG = r"""[^\s!-,.:-@\[-^`{-~\u2000-\u206f\u2e00-\u2e7f'"]"""  # letters, digits, / - _ and pictures
_TAGS = regex(r"[ \t]{0,8}(?:- )?tags::[ \t]([^\n]{1,1000})")
_TAG = regex(rf"(?:^|(?<=[ \t]))#(?:\[\[([^\[\]\n]{{1,80}})\]\]|(?!\d+(?!{_OF_TAG}))({_OF_TAG}+))")
_CONTEXT = regex(r"\(([^()]{1,500})\)[ \t]*+")
# A span of code, or the start of a comment.
_HIDDEN = regex(r"(`{1,3})[^`\n]{1,500}\1|%%|<!--")
_LINK = regex(r"(?<!\\)\[\[([^\[\]\n]{1,500})\]\]")
_INLINE = regex(r"(?<!!)\[[^\[\]\n]{0,500}\]\((?:<([^<>\n]{1,500})>|([^()\s<>]{1,500}))(?:[ \t]+\"[^\"\n]{0,500}\")?\)")
_RELATION = regex(r"(?:\"([^\"\n]{1,100})\"|([^\s\[\]\"{]{1,100}))[ \t]+\[\[([^\[\]\n]{1,500})\]\](.*)")
_SPAN = regex(r"[@](effective|occurred)(\[[^\])\n]{1,60}[\])]|:[^\s]{1,40}|\"[^\"\n]{1,60}\")")
_OF_YAML = regex(r"\A(?:[!&][\w!.-]{0,60}[ \t]+){1,4}")  # tags and anchors before a value


class Page(NamedTuple):
    """A file: its front matter, the text after it, and whether it had front matter that could not be read."""

    head: dict[str, Any]
    body: str
    malformed: bool = False


class Section(NamedTuple):
    """The text below a heading, and the headings above that; the heading is empty before the first heading."""

    heading: str
    text: str
    above: tuple[str, ...] = ()


class Observation(NamedTuple):
    """An item that says something; `text` is without category and context."""

    category: str
    text: str
    tags: tuple[str, ...]
    context: str


class Link(NamedTuple):
    relation: str
    target: str
    context: str


def screened(name: str, text: str) -> tuple[Page, list[LeftOut]]:
    """Return a file in its parts without private text and secrets, and the headings of secrets.

    Both are taken out before it is divided: its parts lack the marks, and the name before a value.
    """
    public = without_private(text)
    safe = redact(public, REDACTED)
    whole = page(safe)
    if safe == public:
        return whole, []
    headings = [part.heading for part in sections(whole.body) if REDACTED in f"{part.heading}{part.text}"]
    places = [f"{name}: {heading[:_MOST_NAMED]}" if heading else name for heading in headings or [""]]
    return whole, [LeftOut(SECRET, clean_line(place)) for place in places]


def page(text: str) -> Page:
    """Return a file in its parts; front matter that is no YAML is read as lines of key and text."""
    lines = text.split("\n")
    mark = lines[0].rstrip()
    ends, read = _FRONT_MATTER.get(mark, ((), yaml.read))
    close = next((at for at, line in enumerate(lines[1:], 1) if line.rstrip() in ends), 0) if ends else 0
    is_json = mark == "{"  # with its brackets
    head, body = "\n".join(lines[not is_json : close + is_json]), "\n".join(lines[close + 1 :]).lstrip("\n")
    if not close or len(head) > MAX_FRONT_MATTER:
        return Page({}, text, malformed=bool(close))
    try:
        values = read(head, _MAX_NODES, _MAX_DEPTH)
    except (ValueError, OverflowError, RecursionError, msgspec.MsgspecError):
        return Page({}, text) if is_json else Page(_loose(lines[1:close]), body, malformed=True)
    return Page(values, body) if isinstance(values, dict) else Page({}, text if values else body)


def _json(text: str, *_: int) -> Any:
    return msgspec.json.decode(text)


def _toml(text: str, *_: int) -> Any:
    if any(line.count(".") > _MAX_DOTS for line in text.split("\n")):
        raise ValueError("has a key of too many parts")
    return _json(msgspec.json.encode(tomllib.loads(text)).decode())  # with times as texts


def _loose(lines: list[str]) -> dict[str, Any]:
    """Return the keys of front matter that is no YAML, each with its text, or the texts of its list.

    Of equal keys the last counts, as in the programs of vaults; earlier values are kept under names of their own.
    """
    pairs: list[tuple[str, list[str], bool]] = []
    for line in lines:
        name, colon, value = line.partition(":")
        text = _OF_YAML.sub("", value.strip())
        if colon and line[:1].isalpha():
            is_set = text.startswith("{") and text.endswith("}") and ":" not in text
            is_list = is_set or (text.startswith("[") and text.endswith("]") and not text.startswith("[["))
            texts = [*filter(None, map(_bare, text[1:-1].split(",") if is_list else [text]))]
            pairs.append((name.strip(), texts or [""], is_list))
        elif bare := line.strip():
            key, texts, is_list = pairs.pop() if pairs else ("front matter", [""], False)
            is_item = bare.startswith("- ") and (is_list or texts == [""])
            if not texts[-1]:
                texts.pop()  # each before it has a text
            texts.append(_bare(bare[2:]) if is_item else bare)
            pairs.append((key, texts, is_list or is_item))
    values: dict[str, Any] = {}
    counts = Counter[str]()
    for key, texts, is_list in reversed(pairs):
        counts[key] += 1
        name = f"{key} ({counts[key]})" if counts[key] > 1 else key
        values[name] = texts if is_list else "\n".join(texts)
    return values


def _bare(text: str) -> str:
    return text.strip().strip("\"'")


def sections(text: str, *, empty: bool = False) -> Iterator[Section]:
    """Yield the sections of a page, a heading each, those that hold nothing only if asked to.

    Some lines begin no section, and stand above the headings that follow them: a heading that is underlined or in HTML,
    the tag of an element and the summary of a fold until their end, and a line such as `Never do this:` above deeper
    headings.
    """
    path: list[tuple[float, str]] = []
    above: tuple[str, ...] = ()
    heading, lines, elements = "", list[str](), list[tuple[str, str]]()
    closed = {match[1] for match in map(_CLOSE.fullmatch, text.split("\n")) if match} - _OF_LAYOUT
    for line, is_code in _lines(text):
        match = None if is_code else _HEADING.fullmatch(line)
        if match is None:
            if not is_code and not _descend_to(path, lines, line):
                _enter_or_leave(elements, line, closed)
            lines.append(line)
            continue
        if any(map(str.strip, lines)) or (empty and heading):
            yield Section(heading, "\n".join(lines).strip("\n"), above)
        level = len(match[1])
        if (lead := _lead(lines)) and level > (path[-1][0] if path else 0):
            path.append((level - 0.5, lead))
        elif (heading_lead := _lead(lines, is_plain=False)) and any(depth == level - 0.5 for depth, _ in path):
            _descend(path, level - 0.5, heading_lead)
        heading, lines = _title(match[2]), []
        _descend(path, level, heading)
        above = (*(title for _, title in path[:-1]), *(shown for _, shown in elements if shown))
    if any(map(str.strip, lines)) or (empty and heading):
        yield Section(heading, "\n".join(lines).strip("\n"), above)


def _enter_or_leave(elements: list[tuple[str, str]], line: str, closed: Collection[str]) -> None:
    """Keep the elements that are open, each with the text that it shows: after a tag that is the whole of a line, and
    until that of its end. A tag shows its attributes, and a fold its summary.
    """
    if (tag := _OPEN.fullmatch(line)) and tag[1] in closed and len(elements) < _MOST_ELEMENTS:
        elements.append((tag[1], "" if tag[1] == _DETAILS else f"{tag[1]}{tag[2].rstrip()}"))
    elif _DETAILS in closed and (summary := _FOLDED.fullmatch(line)) and len(elements) < _MOST_ELEMENTS:
        if elements and elements[-1] == (_DETAILS, ""):
            elements.pop()
        elements.append((_DETAILS, _INLINE_TAG.sub("", summary[1]).strip()))
    elif tag := _CLOSE.fullmatch(line):
        last = next((at for at in reversed(range(len(elements))) if elements[at][0] == tag[1]), len(elements))
        del elements[last:]


def _lead(lines: Sequence[str], *, is_plain: bool = True) -> str:
    """Return the last line above a heading if it leads to that: by a colon at its end, or bold letters throughout, or
    since it is short and forbids, if it may be such a plain line; else no sentence leads.
    """
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    if item := _ITEM.fullmatch(last):
        is_lead = item[1].rstrip("*_ ").endswith(":") and _FORBIDS.search(item[1])
        return item[1].strip("*_ ") if is_lead else ""
    if last.startswith((">", "|", "<")):
        return ""
    is_lead = last.rstrip("*_ ").endswith(":") or _BOLD.fullmatch(last)
    text = last.strip("*_ ")
    if not is_plain:  # it takes the place of another, which leads to the headings before it
        return text if is_lead and not text.endswith((".", "!", "?")) else ""
    return text if is_lead or (len(last) <= _MOST_LEAD and _FORBIDS.search(last)) else ""


def _descend_to(path: list[tuple[float, str]], lines: list[str], line: str) -> bool:
    """Put a heading that begins no section in its place; return whether this line is or ends one."""
    if _UNDERLINE.fullmatch(line):
        level, title = 1 if "=" in line else 2, _underlined(lines, line)
    else:
        match = _HTML_HEADING.fullmatch(line)
        level, title = (int(match[1]), _INLINE_TAG.sub("", match[2]).strip()) if match else (0, "")
    if title:
        _descend(path, level, title)
    return bool(title)


def _descend(path: list[tuple[float, str]], level: float, title: str) -> None:
    """Put a heading in the place of those of its level and of deeper levels."""
    while path and path[-1][0] >= level:
        path.pop()
    path.append((level, title))


def _underlined(lines: list[str], underline: str) -> str:
    """Return the paragraph that an underline makes a heading; empty if there is none.

    Below several lines a line of hyphens is more often meant as a rule, unless they are short and no sentence.
    """
    paragraph: list[str] = []
    for line in reversed(lines[-_MOST_UNDERLINED - 1 :]):
        if not line.strip() or _UNDERLINE.fullmatch(line):
            break
        paragraph.insert(0, line.strip())
    last, whole = paragraph[-1] if paragraph else "", " ".join(paragraph)
    if not last or any(
        _ITEM.fullmatch(line) or line.startswith(("|", "<", "=", "---", ">", "```")) for line in paragraph
    ):
        return ""
    if len(paragraph) > _MOST_UNDERLINED or len(whole) > _MOST_LEAD:
        return last if "=" in underline or len(paragraph) == 1 else ""
    return "" if "-" in underline and len(paragraph) > 1 and last.endswith((".", ":", ";", ",")) else whole


def first_heading(text: str) -> str:
    """Return the first heading outside of code, comments and quotations; empty if there is none."""
    headings = (_HEADING.fullmatch(line) for line, _ in _shown_lines(text))
    return next((_title(match[2]) for match in headings if match), "")


def _title(text: str) -> str:
    """Return the text of a heading without the marks that may close it."""
    return text.rstrip().rstrip("#").rstrip() or text.strip()


def observations(text: str) -> Iterator[Observation]:
    """Yield the items with a category in brackets, or with a tag; tasks, links, times of a clock and struck-out text
    are none.

    The heading, line or item above an item stays before it if that forbids: `Never: push to main`.
    """
    above: list[tuple[float, str]] = []
    for line, visible in _shown_lines(text):
        item, heading = _ITEM.fullmatch(line), _HEADING.fullmatch(line)
        if heading:
            _descend(above, len(heading[1]) - _DEEPEST, _title(heading[2]))
        elif item is not None:
            own, depth = item[1].strip(), item.start(1)
            while above and above[-1][0] >= depth:
                above.pop()
            observation = None if _is_struck_out(own) else _observation(own, visible[item.start(1) :])
            if observation is not None:
                forbids = next((lead for _, lead in reversed(above) if _FORBIDS.search(lead)), "")[:_MOST_LEAD]
                yield observation._replace(text=f"{forbids}: {observation.text}") if forbids else observation
            _descend(above, depth, own.strip("*_: "))
        elif bare := line.strip("*_ \t"):
            _descend(above, 0, bare.rstrip(":") if bare.endswith(":") else "")


def _is_struck_out(text: str) -> bool:
    """Return whether all of an item is struck out, but for its category, tags and context."""
    match = _CATEGORY.fullmatch(text)
    start, _, rest = (match[2] if match else text).partition("~~")
    inside, end, after = rest.partition("~~")
    return bool(end and inside) and not start and all(word[0] in "#(" for word in after.split())


def _observation(text: str, visible: str) -> Observation | None:
    match = _CATEGORY.fullmatch(text)
    if match is not None and _CLOCK.fullmatch(match[1]):
        return None
    tags = tuple(dict.fromkeys(_tags(visible)))
    if match is None and (not tags or text.startswith("[")):
        return None
    body, context = (match[2] if match else text), ""
    open_ = body.rfind("(")  # found from the end: a search for blanks before it takes quadratic time
    if open_ > 0 and body[open_ - 1] in " \t" and (last := _CONTEXT.fullmatch(body, open_)):
        body, context = body[:open_].rstrip(), last[1]
    return Observation(match[1].strip() if match else "", body, tags, context)


def links_in(value: object, relation: str) -> Iterator[Link]:
    """Yield the links in the texts of a value of front matter."""
    texts = list_in(value) or [value]
    for text in (text for text in texts if isinstance(text, str)):
        yield from (Link(relation, target(match[1]), "") for match in _LINK.finditer(text))


def tags(text: str) -> Iterator[str]:
    """Yield the tags in a text, and those of its line `tags:: one, [[two]]`."""
    for _, visible in _shown_lines(text, quoted=True):
        if line := _TAGS.match(visible):
            yield from (tag.strip().strip("[]#") for tag in line[1].split(","))
        else:
            yield from _tags(visible)


def _tags(line: str) -> Iterator[str]:
    return (phrase or word for phrase, word in _TAG.findall(line))


def links(text: str) -> Iterator[Link]:
    """Yield the links of a page: items of a word and a link are relations, another link has the relation `links_to`."""
    for _, line in _shown_lines(text, quoted=True):
        item = _ITEM.fullmatch(line)
        relation = _RELATION.fullmatch(item[1].strip()) if item else None
        rest = line
        if relation is not None:
            rest = relation[4]
            context = _CONTEXT.match(rest.lstrip(" \t")) if rest[:1] in (" ", "\t") else None
            yield Link(relation[1] or relation[2], target(relation[3]), context[1] if context else "")
        for match in _LINK.finditer(rest):
            yield Link("links_to", target(match[1]), "")
        for match in _INLINE.finditer(rest):
            path = (match[1] or match[2]).partition("#")[0]
            if ":" not in path and path.endswith(".md"):
                yield Link("links_to", path.removesuffix(".md").removeprefix("./"), "")


def target(link: str) -> str:
    """Return the target of a link in double brackets, without alias, heading and block."""
    name = link.partition("|")[0].partition("#")[0].partition("^")[0]
    return name.rstrip("\\").strip()  # in a table the alias follows a backslash


def span(text: str) -> tuple[str, str]:
    """Return the two ends of the time qualifier of an observation; empty if it has none, or only one moment."""
    match = _SPAN.search(text)
    if match is None or match[1] != "effective" or not match[2].startswith("["):
        return "", ""
    start, _, end = match[2][1:-1].partition(",")
    return start.strip(), end.strip()


def _lines(text: str, *, quoted: bool = False) -> Iterator[tuple[str, bool]]:
    """Yield the lines, and whether each is in a block of code, a comment over several lines, or a quotation.

    `quoted` lines of a quotation are as others.
    """
    fence, is_comment = "", False
    for line in text.split("\n"):
        match: re.Match[str] | None = _FENCE.match(line)
        if is_comment:
            yield line, True
            is_comment = "-->" not in line
        elif fence:
            yield line, True
            if match is not None and match[1].startswith(fence) and not line.strip(" `~"):
                fence = ""
        elif match is not None:
            fence = match[1]
            yield line, True
        else:
            yield line, not quoted and line.lstrip().startswith(">")
            is_comment = bool(_COMMENT.match(line)) and "-->" not in line


def _shown_lines(text: str, *, quoted: bool = False) -> Iterator[tuple[str, str]]:
    """Yield the lines outside of code, comments and, unless `quoted`, quotations; of each also a form without code."""
    ends = {"<!--": "-->", **({"%%": "%%"} if text.count("%%") > 1 else {})}
    end = ""
    for line, is_code in _lines(text, quoted=quoted):
        if is_code and not end:
            continue
        parts, at = list[tuple[str, str]](), 0
        while at < len(line):
            if end:
                close = line.find(end, at)
                at, end = (len(line), end) if close < 0 else (close + len(end), "")
                continue
            match = _HIDDEN.search(line, at)
            stop = match.start() if match else len(line)
            parts.append((line[at:stop], line[at:stop]))
            at = match.end() if match else stop
            end = ends.get(match[0], "") if match else ""
            if match and not end:
                parts.append((match[0], "`" * len(match[0]) if match[1] else match[0]))
        yield "".join(plain for plain, _ in parts), "".join(shown_text for _, shown_text in parts)


# The ends of front matter and its reader, by its first line: YAML, the TOML and JSON of makers of web sites.
_FRONT_MATTER: Mapping[str, tuple[tuple[str, ...], Callable[[str, int, int], Any]]] = {
    "---": (("---", "..."), yaml.read),
    "+++": (("+++",), _toml),
    "{": (("}",), _json),
}


def plain_lines(text: str) -> list[str]:
    """Return the lines outside of blocks of code and quotations."""
    return [line for line, is_code in _lines(text) if not is_code]
