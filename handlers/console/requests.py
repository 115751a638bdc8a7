"""The fields that the console reads of a request, and the headers of every answer."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from io import StringIO
from itertools import islice, takewhile
from typing import NamedTuple
from urllib.parse import parse_qsl
from zoneinfo import ZoneInfo

from starlette.types import Receive

from kernel.core.errors import Fault
from kernel.core.ids import utc_now
from kernel.core.lazy_regex import regex
from kernel.core.limits import Headers
from kernel.core.times import COMING_WORDINGS, WORDINGS, coming_time, past_time
from kernel.security.permissions import Caller

TEXT_BYTES = 65536  # of a text that a form holds
FORM_BYTES = 4 * TEXT_BYTES  # a browser sends a byte of Chinese or Arabic as three, and fields come beside the text
CONSOLE = "console"  # the name of the client, after the key, in the actor of these calls
_HTML = "text/html; charset=utf-8"
_FORM = b"application/x-www-form-urlencoded"
_MOST_FIELDS = 64
_HEAD_BYTES = 1024  # of a part of a form
_FIELD_NAME, _FILE_NAME = regex(r'; name="([^"]{1,80})"'), regex(r'; filename="([^"]{1,400})"')
ZONE_COOKIE = "quipu_zone"
CRLF = "\r\n"  # as which a browser sends every line end
# `same-origin` as referrer: with `no-referrer` Chromium sends `Origin: null` with our own forms.
SECURITY = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


class Answer(NamedTuple):
    """An answer; `headers` come on top of those of every answer."""

    status: int
    body: bytes
    media: str = _HTML
    headers: Mapping[str, str] = {}


class Request(NamedTuple):
    """A request as far as it has been read."""

    method: str
    path: str
    headers: Headers
    query: Mapping[str, str]
    receive: Receive


class Visit(NamedTuple):
    """One request for a page: its caller, the parameters of its URL, whether a cookie has named the caller, and the
    zone of the browser.
    """

    caller: Caller
    query: Mapping[str, str]
    by_cookie: bool = False
    zone: tzinfo = UTC

    def number(self, name: str, default: int) -> int:
        return whole_number(self.query.get(name, ""), default)

    def moment(self, name: str) -> str:
        """Return a parameter that is a time in the words of a person; raises Fault("invalid")."""
        text = self.query.get(name, "").strip()
        at = past_time(text, self._now())
        if text and at is None:
            raise Fault("invalid", f"{name.capitalize()} must be {WORDINGS}.")
        return at or ""

    def end(self, text: str) -> str:
        """Return the end of a validity that a person has typed, as it is stored; raises Fault("invalid")."""
        at = coming_time(text, self._now())
        if text.strip() and at is None:
            raise Fault("invalid", f"True until must be {COMING_WORDINGS}.")
        return at or ""

    def _now(self) -> datetime:
        return datetime.fromisoformat(utc_now()).astimezone(self.zone)


class Upload(NamedTuple):
    """A file that a form sent, and its other fields; the name is empty without a file."""

    name: str
    content: bytes | memoryview
    fields: Mapping[str, str]


def upload_of(content_type: bytes, body: bytes | bytearray) -> Upload | None:
    """Return the file of a form of the type multipart/form-data, a part of the body; None for another body."""
    media, _, boundary = content_type.partition(b"boundary=")
    if not media.strip().lower().startswith(b"multipart/form-data") or not boundary:
        return None
    name, content, fields = "", memoryview(b""), dict[str, str]()
    for begin, end in islice(_parts(body, b"--" + boundary.strip(b'"')), _MOST_FIELDS):
        middle = body.find(b"\r\n\r\n", begin, end)
        head_end = end if middle < 0 else middle
        disposition = body[begin : min(head_end, begin + _HEAD_BYTES)].decode("utf-8", "replace")
        last = end - 2 if body.endswith(b"\r\n", begin, end) else end
        value = memoryview(body)[head_end + 4 : max(last, head_end + 4)]
        field, file = (pattern.search(disposition) for pattern in (_FIELD_NAME, _FILE_NAME))
        if file is not None:
            name, content = file[1], value
        elif field is not None:
            fields[field[1]] = bytes(value).decode("utf-8", "replace")
    return Upload(name, content, fields)


def _parts(body: bytes | bytearray, cut: bytes) -> Iterator[tuple[int, int]]:
    """Yield the begin and the end of each part between the cuts."""
    at = body.find(cut)
    while at >= 0:
        begin = at + len(cut)
        at = body.find(cut, begin)
        yield begin, at if at >= 0 else len(body)


def whole_number(text: str, default: int) -> int:
    """Return a text of digits as a number of 64 bits; `default` for any other."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else default


def zone_of(headers: Headers) -> tzinfo:
    """Return the zone of a browser, which the script of the console writes into a cookie; UTC without it."""
    for pair in headers.get(b"cookie", b"").decode("latin-1").split(";"):
        name, _, value = pair.strip().partition("=")
        if name == ZONE_COOKIE:
            try:
                return ZoneInfo(value)
            except (LookupError, ValueError, OSError):  # no zone of this machine
                return UTC
    return UTC


def is_same_origin(headers: Headers, public: str) -> bool:
    """Return whether a form was sent by a page of ours: browsers say so, and `Origin` names this host or the public
    address.

    The caller has checked that the Host header is allowed.
    """
    site = headers.get(b"sec-fetch-site")
    origin = headers.get(b"origin", b"").strip().lower().decode("latin-1")
    scheme, _, authority = origin.partition("://")
    if (site is not None and site.strip().lower() != b"same-origin") or scheme not in {"http", "https"}:
        return False
    ours = headers.get(b"host", b"").strip().lower().decode("latin-1")
    return authority == ours or (bool(public) and f"{public.lower()}/".startswith(f"{origin}/"))


def is_secure(headers: Headers) -> bool:
    """Return whether the page that sent a form came over TLS, perhaps through a proxy."""
    return headers.get(b"origin", b"").lower().startswith(b"https://")


def is_form(headers: Headers) -> bool:
    return headers.get(b"content-type", b"").partition(b";")[0].strip().lower() == _FORM


def parameters(raw: bytes) -> dict[str, str]:
    """Return the parameters of a URL or a form, the last of a name; raises Fault("invalid") if they are not UTF-8."""
    try:
        pairs = parse_qsl(
            raw.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=_MOST_FIELDS, separator="&"
        )
    except ValueError:
        raise Fault("invalid", "The parameters are not UTF-8, or too many.") from None
    return {name: value.replace(CRLF, "\n") for name, value in pairs}


def with_line_ends_of(before: str, text: str) -> str:
    """Return a text from a form with the line ends of the text that the form showed, since a browser makes all of them
    equal.

    If lines were added or removed, the changed lines end as most lines of the text before.
    """
    old, new = _lines(before), _lines(text)
    old_as_shown = _lines(as_shown(before))
    start = _equal(old_as_shown, new)
    rest = _equal(old_as_shown[start:][::-1], new[start:][::-1])
    old_lines, new_lines = old[start : len(old) - rest], new[start : len(new) - rest]
    counts = Counter(end for line in old if (end := _end(line)))
    usual = max(counts, key=lambda end: counts[end], default="\n")
    ends = [_end(line) or usual for line in old_lines] if len(old_lines) == len(new_lines) else [usual] * len(new_lines)
    new_lines = [line.replace("\n", end) for line, end in zip(new_lines, ends, strict=True)]
    result = "".join((*old[:start], *new_lines, *old[len(old) - rest :]))
    return result if as_shown(result) == text else text  # a CR before an LF would be one end of two


def as_shown(text: str) -> str:
    """Return a text as a browser has it: each line end is an LF."""
    return text.replace(CRLF, "\n").replace("\r", "\n")


def _end(line: str) -> str:
    return line[len(line.rstrip("\r\n")) :]


def _lines(text: str) -> list[str]:
    """Return the lines with their ends: LF, CRLF or CR, which are those that a form knows."""
    return list(StringIO(text, newline=""))


def _equal(left: Sequence[str], right: Sequence[str]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(left, right, strict=False)))
