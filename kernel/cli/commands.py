"""The commands that work on a store or on keys; each prints its result and returns an exit status."""

import argparse
import sys
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from typing import TypeVar, TypeVarTuple

import msgspec

from kernel import app, data_dir
from kernel.cli.output import note, show
from kernel.cli.progress_bar import ProgressBar
from kernel.cli.token_cost import tool_list_tokens
from kernel.config import Config
from kernel.dispatch import catch_faults
from kernel.errors import Fault
from kernel.ids import utc_now
from kernel.maintenance import consistency, undo
from kernel.maintenance.compact import Freed, compact
from kernel.search import quarantine
from kernel.security import api_keys
from kernel.store import audit
from kernel.store.context import CallContext, StoreContext
from kernel.store.progress import Progress, with_progress
from kernel.store.sqlite.connection import Connection
from kernel.store.transaction import Tx
from kernel.text import one_line
from kernel.tools import Imported

Args = TypeVarTuple("Args")
Result = TypeVar("Result")
_MAX_NAME_CHARS = 64  # of a key
_PREVIEW_CHARS = 80  # of a quarantined text


def run(arguments: argparse.Namespace, config: Config) -> int:
    """Run the chosen command."""
    if arguments.command == "tools":
        return tools(tokens=arguments.tokens, as_json=arguments.json)
    if arguments.command == "key":
        return _KEY_COMMANDS[arguments.key](arguments, config)
    shared = app.context_of(config)
    app.prepare_data(config, shared)
    if arguments.command in _STORE_COMMANDS:
        return _STORE_COMMANDS[arguments.command](arguments, config, shared)
    if arguments.command == "import":
        return import_data(arguments, config, shared)
    if arguments.command == "check":
        found = _or_raise(partial(consistency.check, config.file, shared, app.DIALECTS, repair=arguments.repair))
        for finding in found:
            show(finding._asdict(), f"{finding.part}: {finding.rows} {finding.what}", as_json=arguments.json)
        state = "repaired" if found and arguments.repair else "differences found" if found else "ok"
        show({"state": state}, state, as_json=arguments.json)
        return 1 if found and not arguments.repair else 0
    if arguments.command == "backup":
        target = arguments.target or config.home / f"quipu-{consistency.backup_time()}.db"
        with closing(ProgressBar("backup", sys.stderr)) as bar:
            _or_raise(consistency.backup, config.file, shared, target, bar)
        show({"file": str(target)}, str(target), as_json=arguments.json)
        return 0
    with closing(ProgressBar("reindex", sys.stderr)) as bar:
        done = _or_raise(consistency.reindex, config.file, shared, bar)
    show({"vectors": done}, f"{done} vectors rebuilt", as_json=arguments.json)
    return 0


def tools(*, tokens: bool, as_json: bool = False) -> int:
    """Print every tool, or for each URL the approximate tokens its tool list takes in a model's context."""
    if tokens:
        if not as_json:
            print(f"{'':25} {'tools':>5} {'tokens':>7} {'with results':>13}")
        for path, dialects in (("/mcp", app.DIALECTS), *((f"/mcp/{one.name}", (one,)) for one in app.DIALECTS)):
            every = [tool for dialect in dialects for tool in dialect.tools]
            for address, listed in ((path, every), (f"{path}?tools=read", [t for t in every if t.mode == "read"])):
                plain, whole = (tool_list_tokens(listed, results=results) for results in (False, True))
                row = {"address": address, "tools": len(listed), "tokens": plain, "with_results": whole}
                show(row, f"{address:25} {len(listed):5} {plain:7} {whole:13}", as_json=as_json)
        return 0
    for dialect in app.DIALECTS:
        for tool in dialect.tools:
            row = {"dialect": dialect.name, "mode": tool.mode, "name": tool.name, "description": tool.description}
            show(row, f"{dialect.name:10} {tool.mode:9} {tool.name:24} {tool.description}", as_json=as_json)
    return 0


def import_data(arguments: argparse.Namespace, config: Config, shared: StoreContext) -> int:
    """Import the data of another memory server in one transaction."""
    known = {found.kind: (dialect, found) for dialect in app.DIALECTS for found in dialect.imports}
    if arguments.kind not in known:
        raise Fault("invalid", f"Cannot import {arguments.kind}: choose from {', '.join(known) or 'nothing'}")
    dialect, chosen = known[arguments.kind]
    secret: str | None = arguments.password_env
    password = config.environment.get(secret) if secret else None
    if secret and not password:
        raise Fault("invalid", f"The variable {secret} is unset or empty")
    origin = CallContext(dialect.name, f"import {chosen.kind}")

    def work(tx: Tx) -> Imported:
        return chosen.run(tx, arguments.path, password)

    with closing(ProgressBar("import", sys.stderr)) as bar:
        done: Imported = _or_raise(_import, config, shared, origin, with_progress(Progress(bar), work))
    if arguments.json:
        show({"counts": done.counts}, "", as_json=True)
    else:
        for name, count in done.counts.items():
            print(f"{name}: {count}")
    for remark in done.remarks:
        print(remark, file=sys.stderr)
    return 0


def compact_store(arguments: argparse.Namespace, config: Config, shared: StoreContext) -> int:
    """Compact the database file; print its size before and after, and each step on standard error."""
    before = _timestamp(arguments.forget) if arguments.forget else None
    freed: Freed = _or_raise(partial(compact, config.file, shared, _print_step, forget=before))
    show(freed._asdict(), f"{freed.before} bytes before, {freed.after} after", as_json=arguments.json)
    return 0


def _timestamp(given: str) -> str:
    try:
        moment = datetime.fromisoformat(given)
    except ValueError:
        raise Fault("invalid", "--forget takes a time such as 2026-01-31 or 2026-01-31T12:00:00Z") from None
    moment = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _print_step(part: str) -> None:
    note(part)


def _import(config: Config, shared: StoreContext, origin: CallContext, work: Callable[[Tx], Imported]) -> Imported:
    db = Connection(config.file, shared, readonly=False)
    try:
        with db.writing(origin) as tx:
            before = db.total_changes()
            done = work(tx)
            # An import that changed nothing leaves no audit entry.
            if db.total_changes() > before:
                audit.record(tx)
            return done
    finally:
        db.close()


def show_calls(arguments: argparse.Namespace, config: Config, shared: StoreContext) -> int:
    """Print the newest audit entries, newest first; return 1 if the hash chain of the audit log is broken."""
    db = Connection(config.file, shared, readonly=True)
    try:
        entries: list[audit.Entry] = _or_raise(db.read, CallContext(), partial(audit.read, limit=arguments.limit))
        wrong: int | None = _or_raise(db.read, CallContext(), audit.first_broken)
    finally:
        db.close()
    for entry in entries:
        show(entry._asdict(), _call_line(entry), as_json=arguments.json)
    if not entries:
        note("no calls have changed anything yet")
    if wrong is not None:
        print(f"audit row {wrong} breaks the hash chain", file=sys.stderr)
    return 0 if wrong is None else 1


def undo_call(arguments: argparse.Namespace, config: Config, shared: StoreContext) -> int:
    """Undo the changes of one call."""
    entry: audit.Entry = _or_raise(undo.undo, config.file, shared, app.DIALECTS, arguments.id)
    show(entry._asdict(), _call_line(entry), as_json=arguments.json)
    print("undone", file=sys.stderr)
    return 0


def show_quarantine(arguments: argparse.Namespace, config: Config, shared: StoreContext) -> int:
    """Print the quarantined memories, or release one."""
    db = Connection(config.file, shared, readonly=False)
    try:
        with db.writing(CallContext("kernel", "quarantine")) as tx:
            chosen = arguments.release
            found = [_or_raise(quarantine.release, tx, chosen)] if chosen else quarantine.flagged(tx)
    finally:
        db.close()
    for one in found:
        preview = one_line(one.text, _PREVIEW_CHARS)
        line = f"{one.id}  {one.at}  {one.rule}  {one.dialect}  {one.tool}  {one.actor}  {preview}"
        show({"id": one.id, **one._asdict()}, line, as_json=arguments.json)
    if not found:
        note("nothing is quarantined")
    return 0


_STORE_COMMANDS = {"audit": show_calls, "undo": undo_call, "compact": compact_store, "quarantine": show_quarantine}


def _call_line(entry: audit.Entry) -> str:
    touched = ", ".join(f"{space} {key} {done}" for space, key, done in audit.targets(entry))
    more = f", {entry.touched - audit.SHOWN} more" if entry.touched > audit.SHOWN else ""
    undo_hint = "  (can be undone)" if entry.undoable else ""
    source = f"{entry.dialect}  {entry.tool}  {entry.actor}"
    return f"{entry.id}  {entry.at}  {source}  {entry.outcome}  {touched}{more}{undo_hint}"


def create_key(arguments: argparse.Namespace, config: Config) -> int:
    """Create a key; print the secret on standard output and its properties on standard error."""
    for name in arguments.dialect:
        if name in app.READING_ALL:
            raise Fault("invalid", f"{name} reads every dialect: create its key without --dialect")
    app.select_dialects(tuple(arguments.dialect))
    now = utc_now()
    end = api_keys.expiry(arguments.expires, now) if arguments.expires else ""
    wanted = api_keys.Key(
        "",
        arguments.scope,
        now,
        tenant=data_dir.tenant_name(arguments.tenant),
        name=_key_name(arguments.name),
        dialects=tuple(sorted(set(arguments.dialect))),
        expires=end,
    )
    made, secret = api_keys.create(config.data, wanted)
    note(f"{_key_line(made, now)}\nThe secret is shown only once:")
    show({"secret": secret, **_key_fields(made, now)}, secret, as_json=arguments.json)
    return 0


def list_keys(arguments: argparse.Namespace, config: Config) -> int:
    """Print every key, including revoked and expired ones, without secrets."""
    now = utc_now()
    known = api_keys.read(config.data)
    for key in known:
        show(_key_fields(key, now), _key_line(key, now), as_json=arguments.json)
    if not known:
        note("there are no keys: local clients need none")
    return 0


def revoke_key(arguments: argparse.Namespace, config: Config) -> int:
    """Revoke a key; a running server stops accepting it within a second."""
    now = utc_now()
    revoked = api_keys.revoke(config.data, arguments.id, now)
    show(_key_fields(revoked, now), _key_line(revoked, now), as_json=arguments.json)
    return 0


_KEY_COMMANDS = {"create": create_key, "list": list_keys, "revoke": revoke_key}


def _key_fields(key: api_keys.Key, now: str) -> dict[str, object]:
    fields: dict[str, object] = msgspec.to_builtins(key)
    return {"state": key.state(now), **{name: value for name, value in fields.items() if name != "hash"}}


def _key_line(key: api_keys.Key, now: str) -> str:
    dialects = ",".join(key.dialects) or "all dialects"
    end = f"revoked {key.revoked}" if key.revoked else f"expires {key.expires}" if key.expires else "never expires"
    line = f"{key.id}  {key.state(now):8}  {key.tenant}  {key.scope}  {dialects}  created {key.created}  {end}"
    return f"{line}  {key.name}" if key.name else line


def _key_name(name: str) -> str:
    if len(name) > _MAX_NAME_CHARS or not name.isprintable():
        raise Fault("invalid", f"A key name has at most {_MAX_NAME_CHARS} printable characters")
    return name


def _or_raise(work: Callable[[*Args], Result], *args: *Args) -> Result:
    """Call `work(*args)`; SQLite errors are raised as Faults."""
    result = catch_faults(work, *args)
    if isinstance(result, Fault):
        raise result
    return result
