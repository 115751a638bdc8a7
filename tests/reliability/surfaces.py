"""Valid calls beside the tools, and ways to make them hostile: hooks, `prime`, the commands for memories,
pages and forms of the console, REST, and files for the importers.

`python -m tests.reliability.surfaces SEED COUNT FOLDER` imports so many hostile files and prints the outcome.
"""

import asyncio
import contextlib
import io
import json
import os
import random
import shutil
import sys
import time
import traceback
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote_from_bytes

import apsw

from handlers.common.hooks import CLIENTS
from kernel.cli import commands
from kernel.cli.main import parser
from kernel.core.config import Config
from kernel.core.errors import Fault
from kernel.security.permissions import ANONYMOUS_CALLER
from kernel.server import app
from tests.imports.sources import SOURCES
from tests.reliability import mutations
from tests.reliability.mutations import CORPUS, ODD_BYTES, ODD_VALUES, Call
from tests.security.adversarial_texts import GENERAL
from tests.security.hostile_texts import HOSTILE

KEPT = CORPUS / "surfaces.jsonl"  # calls that once made trouble, one a line: method, target, headers, body
KEPT_FILES = CORPUS / "imports"  # files that did, each in a folder of its kind
EVENTS = ("session-start", "first-prompt", "post-compact", "session-end")
LONGEST = 20_000  # characters of a hostile text, which the hook client lets pass
_HEADERS = (
    ("Host", "localhost"),
    ("Content-Type", "application/json"),
    ("Accept", "application/json, text/event-stream"),
)
_FORM = (
    ("Host", "localhost"),
    ("Origin", "http://localhost"),
    ("Content-Type", "application/x-www-form-urlencoded"),
)
_RAW = "\x02raw\x02"  # stands in JSON for text that no JSON writer writes
_SEEDED = {"MEMORY": "paths/seed/one", "ABSENT": "absent"}
_PAGES = (
    "/ui",
    "/ui/overview.json",
    "/ui/search?q=port&dialect=paths",
    "/ui/search.json?q=port&before=3",
    "/ui/timeline?dialect=paths&actor=anonymous&scope=x&before=9&by=session",
    "/ui/timeline.json?after=2026-01-01&tag=x",
    "/ui/calls?tool=recall&before=9",
    "/ui/calls.json?n=3",
    "/ui/review?before=9",
    "/ui/audit?dialect=paths&actor=x&before=9&chain=all",
    "/ui/audit.json?before=9",
    "/ui/audit.csv?dialect=paths",
    "/ui/connect?client=claude",
    "/ui/keys?done=revoked",
    "/ui/memory?id=MEMORY&done=edited",
    "/ui/memory.json?id=MEMORY&version=x",
    "/ui/login?done=left",
    "/ui/static/console.css",
)
_FORMS: Mapping[str, Mapping[str, str]] = {
    "edit": {"id": "MEMORY", "version": "x", "text": "Port 443.\r\nTLS."},
    "forget": {"id": "MEMORY", "version": "x"},
    "undo": {"number": "1"},
    "release": {"id": "MEMORY"},
    "confirm": {"id": "MEMORY"},
    "create-key": {"scope": "nonsense", "name": "laptop", "dialect": "paths", "expires": "30d"},
    "revoke-key": {"id": "absent"},
    "login": {"key": "quipu_x", "code": "ABCD-EFGH"},
    "logout": {"x": "y"},
}
_COMMANDS: Mapping[str, Mapping[str, Any]] = {
    "recall": {"query": "port", "limit": 3, "dialects": ["paths"], "scope": None, "after": "2026-01-01", "before": ""},
    "list": {"limit": 3, "dialects": ["paths"], "actor": "x", "after": "7d"},
    "show": {"id": "MEMORY"},
    "history": {"id": "MEMORY"},
    "add": {"text": "The API listens on port 8123.", "dialect": "paths", "name": "seed/two"},
    "edit": {"id": "MEMORY", "text": "Port 443.", "version": "x"},
    "forget": {"id": "paths/seed/two"},
    "stats": {},
    "witness": {"project": "web", "seen": [[1, "src/a.py", "parse", 3, "a:b:c:", "moved to b.py"]]},
}
_STORES = "/v1/memory_stores"
_REST: tuple[tuple[str, str, Any], ...] = (
    ("POST", _STORES, {"name": "Notes", "description": "All", "metadata": {"a": "1"}}),
    ("GET", f"{_STORES}?limit=5&page=x&include_archived=true&created_at[gte]=2026-01-01T00:00:00Z", None),
    ("GET", f"{_STORES}/STORE", None),
    ("POST", f"{_STORES}/STORE", {"name": "Notes", "description": None, "metadata": {"a": None, "b": "2"}}),
    ("POST", f"{_STORES}/ABSENT/archive", None),
    ("DELETE", f"{_STORES}/ABSENT", None),
    ("POST", f"{_STORES}/STORE/memories?view=full", {"path": "/a/b", "content": "In May."}),
    ("GET", f"{_STORES}/STORE/memories?path_prefix=/a/&depth=1&limit=5&page=x&view=full", None),
    ("GET", f"{_STORES}/STORE/memories/FILE?view=full", None),
    ("POST", f"{_STORES}/STORE/memories/FILE", {"content": "In June.", "path": "/a/c", "precondition": None}),
    ("DELETE", f"{_STORES}/STORE/memories/ABSENT?expected_content_sha256={'0' * 64}", None),
    ("GET", f"{_STORES}/STORE/memory_versions?memory_id=FILE&operation=created&limit=5&page=x", None),
    ("GET", f"{_STORES}/STORE/memory_versions/VERSION?view=basic", None),
    ("POST", f"{_STORES}/STORE/memory_versions/ABSENT/redact", {}),
)
_HOOK: Mapping[str, Any] = {
    "session_id": "s-1",
    "conversation_id": None,
    "cwd": "/w/web",
    "workspace_roots": ["/w/web"],
    "source": "startup",
    "prompt": "Which port does the API listen on?",
    "compact_summary": "The API moved to another port. " * 8,
    "root": "/w/web",
    "intro": "Read the notes first.",
    "budget": 900,
    "mark": "0123456789abcdef0123456789abcdef",
}


def calls(seeded: Mapping[str, str] = {}) -> list[Call]:
    """The valid calls of every surface, with the seeded ids in place of their names."""
    tools = json.loads((CORPUS / "tools.json").read_text(encoding="utf-8"))
    found = [_post(f"/hook/{client}/{event}", _HOOK) for client in CLIENTS for event in EVENTS]
    found += [_post("/prime", {"root": "/w/web", "query": "port", "budget": 900, "intro": "x"})] * 4
    found += [_post(f"/memories/{name}?as=json", given) for name, given in _COMMANDS.items()]
    found += [_post(f"/memories/{name}?as=colour", given) for name, given in _COMMANDS.items()]
    found += [Call("GET", page, _FORM[:1], b"") for page in _PAGES]
    found += [Call("POST", f"/ui/do/{name}", _FORM, _form([*fields.items()])) for name, fields in _FORMS.items()]
    found += [Call(verb, path, _HEADERS, b"" if body is None else _json(body)) for verb, path, body in _REST]
    found += [_post(f"/tools/{name}", given) for name, examples in tools.items() for given in examples[:1]]
    names = {**_SEEDED, **seeded}
    return [_with_names(call, names) for call in found]


def hostile_calls(seed: int, count: int, seeded: Mapping[str, str] = {}) -> Iterator[Call]:
    """`count` hostile calls, the same for the same seed."""
    chance = random.Random(seed)
    valid = calls(seeded)
    for _ in range(count):
        call = chance.choice(valid)
        for _ in range(chance.choice((1, 1, 1, 2, 3))):
            call = chance.choice(_WAYS)(chance, call)
        yield call


def kept_calls() -> list[Call]:
    """The calls that are replayed each time."""
    lines = KEPT.read_text(encoding="utf-8").splitlines()
    return [
        Call(verb, path, tuple(map(tuple, headers)), body.encode("latin-1"))
        for verb, path, headers, body in map(json.loads, lines)
    ]


def line_of(call: Call) -> str:
    """Return a call as a line of the kept calls."""
    return json.dumps([call.method, call.path, call.headers, call.body.decode("latin-1")])


def text(chance: random.Random) -> str:
    """A text that is hostile to a pattern, a parser, a page, a path or a terminal."""
    kind = chance.randrange(8)
    if kind == 0:
        return chance.choice(HOSTILE)
    if kind == 1:
        return chance.choice(_TEXTS)
    length = int(2 ** chance.uniform(1, LONGEST.bit_length()))
    first, second, end = (chance.choice(GENERAL) for _ in range(3))
    if kind == 2:
        whole = first * length
    elif kind == 3:
        whole = (first + second) * length
    else:
        whole = chance.choice(_STARTS) + first * length + second * length + end
    return whole[: min(length, LONGEST)] + chance.choice(("", end, "\n", "x"))


_STARTS = ("", "Please look at [a", "<quipu-memories>", "---\n", "# ", "```\n", "[[", "- ", "password=", "eyJhbGciOi")
_TEXTS = (
    "Please look at [a" + "/" * 2000 + ", " * 2000,
    "<quipu-memories>" * 1200,
    "%_" * 5000,
    "日" * 6667,
    "\ud83d",
    "a\ud83d b",
    "\0",
    "\x1b]0;x\x07\x9b31m",
    "999999d",
    "-1d",
    "9" * 400,
    "1e400",
    "0000-00-00T99:99:99Z",
    "9999-12-31T23:59:59.999999999+99:99",
    "/proc/self/environ",
    "../../../../etc/passwd",
    "file:///etc/passwd",
    "\\\\host\\share",
    "mem_" + "0" * 40,
    "paths/" + "a/" * 500,
    "sessions/99999999999999999999",
    "brain:core/\u202e",
)
_RAWS = (
    "1e999",
    "-1e999",
    "1" + "0" * 400,
    "5.0",
    "-0.0",
    "18446744073709551616",
    "NaN",
    "[" * 200 + "]" * 200,
    "[" * 4000 + "]" * 4000,
    '{"a":' * 300 + "1" + "}" * 300,
    '"\\ud800"',
    '"\\u0000"',
    "null",
)


def _post(path: str, value: Any) -> Call:
    return Call("POST", path, _HEADERS, _json(value))


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()


def _form(fields: list[tuple[str, str]]) -> bytes:
    return "&".join(f"{_quoted(name)}={_quoted(value)}" for name, value in fields).encode()


def _quoted(value: str) -> str:
    return quote_from_bytes(value.encode("utf-8", "surrogatepass"))


def _with_names(call: Call, names: Mapping[str, str]) -> Call:
    path, body = call.path, call.body
    for name, value in names.items():
        path, body = path.replace(name, value), body.replace(name.encode(), value.encode())
    return call._replace(path=path, body=body)


def _hostile(chance: random.Random, call: Call) -> Call:
    return _with_value(chance, call, text(chance), "")


def _odd(chance: random.Random, call: Call) -> Call:
    return _with_value(chance, call, chance.choice(ODD_VALUES), "")


def _raw(chance: random.Random, call: Call) -> Call:
    return _with_value(chance, call, _RAW, chance.choice(_RAWS))


def _with_value(chance: random.Random, call: Call, value: Any, raw: str) -> Call:
    """The call with one of its values replaced: in JSON, in a form, or in its query."""
    if call.headers == _FORM and call.body:
        fields = parse_qsl(call.body.decode("latin-1"), keep_blank_values=True)
        at = chance.randrange(len(fields)) if fields else 0
        return call._replace(
            body=_form([*fields[:at], (fields[at][0] if fields else "id", raw or str(value)), *fields[at + 1 :]])
        )
    if not call.body:
        return _query(chance, call, raw or str(value))
    try:
        tree = json.loads(call.body)
        places = [*mutations.spots(tree)]
    except (ValueError, RecursionError):
        return call
    if not places:
        return call._replace(body=_json(value).replace(json.dumps(_RAW).encode(), raw.encode()))
    holder, key = chance.choice(places)
    holder[key] = value
    return call._replace(body=_json(tree).replace(json.dumps(_RAW).encode(), raw.encode()))


def _query(chance: random.Random, call: Call, value: str) -> Call:
    path, _, query = call.path.partition("?")
    fields = query.split("&") if query else ["id="]
    at = chance.randrange(len(fields))
    fields[at] = f"{fields[at].partition('=')[0]}={_quoted(value)[:12_000]}"
    return call._replace(path=f"{path}?{'&'.join(fields)}")


def _segment(chance: random.Random, call: Call) -> Call:
    path, mark, query = call.path.partition("?")
    parts = path.split("/")
    parts[chance.randrange(min(1, len(parts) - 1), len(parts))] = _quoted(text(chance))[:8000]
    return call._replace(path=f"{'/'.join(parts)}{mark}{query}")


def _twice(chance: random.Random, call: Call) -> Call:
    """One key of an object, or of a form, given twice."""
    if call.headers == _FORM:
        return call._replace(body=call.body + b"&" + call.body)
    try:
        tree = json.loads(call.body or b"{}")
    except (ValueError, RecursionError):
        return call
    if not isinstance(tree, dict) or not tree:
        return call
    name = chance.choice([*tree])
    value = chance.choice((*_RAWS, '"x"', "5.0", "[]", "{}", "true"))
    extra = f"{json.dumps(name)}:{value}".encode()
    inner = call.body.strip()[1:-1]
    return call._replace(body=b"{%b}" % (b",".join((extra, inner) if chance.random() < 0.5 else (inner, extra))))


def _nulls(chance: random.Random, call: Call) -> Call:
    try:
        tree = json.loads(call.body or b"[]")
    except (ValueError, RecursionError):
        return call
    if isinstance(tree, dict):
        tree = {name: None if chance.random() < 0.5 else value for name, value in tree.items()}
    return call._replace(body=_json(tree))


def _target(chance: random.Random, call: Call) -> Call:
    forms = (
        f"http://evil.example{call.path}",
        f"http://localhost{call.path}",
        f"HTTP://LOCALHOST:1{call.path}",
        f"http://[::1]{call.path}",
        f"http://localhost\\@evil.example{call.path}",
        f"/{call.path}",
        f"{call.path}%00",
        f"{call.path}%ff%fe",
        f"{call.path};a=b",
        f"{call.path}/..%2f..",
        f"{call.path}?{'a=b&' * chance.choice((1, 63, 65, 900))}",
        f"{call.path}#x",
        "*",
        "http://",
    )
    return call._replace(path=chance.choice(forms))


def _bytes(chance: random.Random, call: Call) -> Call:
    body = call.body
    at = chance.randint(0, len(body))
    end = min(len(body), at + chance.choice((0, 0, 1, 5, 40)))
    return call._replace(body=body[:at] + chance.choice(ODD_BYTES) + body[end:])


def _method(chance: random.Random, call: Call) -> Call:
    return call._replace(method=chance.choice(("GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "X")))


_WAYS: tuple[Callable[[random.Random, Call], Call], ...] = (
    *(_hostile, _hostile, _hostile, _hostile, _odd, _odd, _raw, _raw),
    *(_twice, _nulls, _segment, _target, _bytes, _method, mutations.header),
)


def damage(chance: random.Random, path: Path) -> None:
    """Makes a source hostile: a file, one file of a folder, one member of an archive, or one cell of a database."""
    if path.is_dir():
        inner = sorted(file for file in path.rglob("*") if file.is_file())
        damage(chance, chance.choice(inner))
        return
    data = path.read_bytes()
    inside = chance.random() < 0.8
    try:
        if inside and data.startswith(b"SQLite format 3"):
            _cell(chance, path)
        elif inside and data.startswith(b"PK"):
            _member(chance, path)
        else:
            path.write_bytes(_damaged(chance, data))
    except (OSError, zipfile.BadZipFile, zlib.error, NotImplementedError, EOFError, apsw.Error):  # damaged once before
        path.write_bytes(_damaged(chance, data))


def _damaged(chance: random.Random, data: bytes) -> bytes:
    kind = chance.randrange(10)
    if kind == 0:
        return data[: chance.randint(0, len(data))]
    if kind == 1:
        return _bytes(chance, Call("", "", (), data)).body
    if kind == 2:
        at = chance.randrange(max(1, len(data)))
        return data[:at] + bytes([chance.randrange(256)]) + data[at + 1 :]
    lines = data.split(b"\n")
    whole = data[:1] in b"{[" and _is_json(data)
    at = chance.randrange(len(lines))
    piece = data if whole else lines[at]
    if not whole and not _is_json(piece):
        hostile = text(chance).encode("utf-8", "surrogatepass")
        return b"\n".join((*lines[:at], piece[: chance.randint(0, len(piece))] + hostile, *lines[at + 1 :]))
    ways = (_hostile, _odd, _raw, _twice, _nulls)
    piece = chance.choice(ways)(chance, Call("", "", (), piece)).body
    return piece if whole else b"\n".join((*lines[:at], piece, *lines[at + 1 :]))


def sealed(data: bytes) -> bytes:
    """An export whose last line is that of the lines before it."""
    lines = [*data.splitlines(keepends=True)[:-1]]
    return b"".join((*lines, _json({"end": len(lines), "sha256": sha256(b"".join(lines)).hexdigest()}), b"\n"))


def _is_json(data: bytes) -> bool:
    try:
        return isinstance(json.loads(data), dict | list)
    except (ValueError, RecursionError):
        return False


def _member(chance: random.Random, path: Path) -> None:
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    chosen = chance.choice([*members])
    members[chosen] = _damaged(chance, members[chosen])
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)


def _cell(chance: random.Random, path: Path) -> None:
    with contextlib.closing(apsw.Connection(str(path))) as db:
        tables = [name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        table = chance.choice(tables)
        columns = [row[1] for row in db.execute(f'PRAGMA table_info("{table}")')]
        value = chance.choice((text(chance).encode("utf-8", "replace").decode(), None, -1, 2**62, 1e308, b"\xff\0", ""))
        db.execute(f'UPDATE "{table}" SET "{chance.choice(columns)}" = ?', (value,))


def import_files(seed: int, count: int, folder: Path) -> dict[str, Any]:
    """Count the outcomes of `count` hostile imports, the kept imports first: a bug is neither done nor refused."""
    chance = random.Random(seed)
    seen: Counter[str] = Counter()
    bugs: list[str] = []
    slowest, settled = (0.0, ""), 0
    config, made = _new_store(folder, 0), folder / "sources"
    for number, kept in enumerate([*sorted(KEPT_FILES.glob("*/*")), *[None] * count]):
        if kept is not None or number % 200 == 199:  # one that is kept meets nothing of those before
            shutil.rmtree(config.data)
            config = _new_store(folder, number + 1)
        shutil.rmtree(made, ignore_errors=True)
        made.mkdir()
        kind, path = _hostile_source(chance, config, made) if kept is None else _copy(kept, made)
        begun = time.monotonic()
        bug = _outcome(("import", kind, str(path), "--json"), config, seen)
        if kept is not None or number % 10 == 9:
            bug = bug or _outcome(("export", "jsonl", os.devnull), config, seen) or _read(config, seen)
        slowest = max(slowest, (time.monotonic() - begun, f"import {number} of seed {seed}: {kind}"))
        if bug:
            bugs.append(f"import {number} of seed {seed}, {kind} {path.name}: {bug}")
        if number == count // 5:
            settled = _memory()
    return {"seen": dict(seen), "bugs": bugs, "slowest": slowest, "grown": _memory() - settled}


def _copy(kept: Path, folder: Path) -> tuple[str, Path]:
    return kept.parent.name, Path(shutil.copy(kept, folder))


def _hostile_source(chance: random.Random, config: Config, folder: Path) -> tuple[str, Path]:
    kind, path = _source(chance, config, folder)
    for _ in range(chance.choice((1, 1, 2))):
        damage(chance, path)
    if kind == "jsonl" and chance.random() < 0.8:
        path.write_bytes(sealed(path.read_bytes()))
    return kind, path


_READS: Mapping[str, Mapping[str, Any]] = {
    "recall": {"query": "port", "detail": "text"},
    "list_memories": {},
    "memory_query": {"action": "search", "search": "port"},
    "get_memories": {"db": "core"},
    "search": {"db": "core", "query": "port"},
    "get_entities": {"db": "core"},
    "get_notes": {"db": "core"},
    "list_recent": {},
    "search_memory": {"query": "port", "session_id": "s"},
    "read_graph": {},
    "search_nodes": {"query": "port"},
}


def _read(config: Config, seen: Counter[str]) -> str:
    """The name of a tool that can no longer read the imported data."""
    kernel = app.open_kernel(config)
    try:
        for name, given in _READS.items():
            call = kernel.dispatch.call(kernel.dispatch.tools[name], json.dumps(given).encode(), ANONYMOUS_CALLER)
            answer: Any = asyncio.run(call)
            seen["read"] += 1
            if answer.fault in {"internal", "storage"}:
                return f"{name}: {answer.body!r}"
    finally:
        kernel.store.close()
    return ""


def _new_store(folder: Path, number: int) -> Config:
    config = Config(data=folder / f"data{number}")
    app.open_kernel(config).store.close()
    return config


def _source(chance: random.Random, config: Config, folder: Path) -> tuple[str, Path]:
    """One of the sources of the tests, or an export of earlier imports."""
    name = chance.choice((*SOURCES, "jsonl", "jsonl"))
    if name != "jsonl":
        return SOURCES[name].kind, SOURCES[name].make(folder)
    _outcome(("export", "jsonl", str(folder / "export.jsonl")), config, Counter())
    return "jsonl", folder / "export.jsonl"


def _outcome(line: tuple[str, ...], config: Config, seen: Counter[str]) -> str:
    """The traceback of a command that neither succeeds nor says why not."""
    told = io.StringIO()
    try:
        with contextlib.redirect_stdout(told), contextlib.redirect_stderr(told):
            status = commands.run(parser().parse_args(line), config)
        seen["done" if status == 0 else "found"] += 1
    except Fault as fault:
        seen["refused"] += 1
        return f"internal: {told.getvalue()[-1500:]}" if fault.code == "internal" else ""
    except SystemExit:
        seen["refused"] += 1
    except Exception:  # the command line would show it as a traceback
        return traceback.format_exc()[-1500:]
    return ""


def _memory() -> int:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return 1024 * next(int(row.split()[1]) for row in status.splitlines() if row.startswith("RssAnon"))


if __name__ == "__main__":
    os.environ.setdefault("PYTHONFAULTHANDLER", "1")
    print(json.dumps(import_files(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))))
