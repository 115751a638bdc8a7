"""The commands that are not servers: each prints what it did and returns an exit status."""

import argparse
import sys
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from typing import Any

import msgspec

from kernel import app, data_dir
from kernel.cli.progress_bar import Bar
from kernel.cli.token_cost import price
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

_LONGEST_NAME = 64
_LINE = 80


def run(arguments: argparse.Namespace, config: Config) -> int:
    """Runs the command that was asked for."""
    if arguments.command == "tools":
        return tools(tokens=arguments.tokens)
    if arguments.command == "key":
        return _KEYS[arguments.key](arguments, config)
    shared = app.context_of(config)
    app.prepare_data(config, shared)
    if arguments.command in _CALLS:
        return _CALLS[arguments.command](arguments, config, shared)
    if arguments.command == "import":
        return import_data(arguments, config, shared)
    if arguments.command == "check":
        found = _sure(partial(consistency.check, config.file, shared, app.DIALECTS, repair=arguments.repair))
        for finding in found:
            print(f"{finding.part}: {finding.rows} {finding.what}")
        print("repaired" if found and arguments.repair else "differences found" if found else "ok")
        return 1 if found and not arguments.repair else 0
    if arguments.command == "backup":
        target = arguments.target or config.home / f"quipu-{consistency.backup_time()}.db"
        with closing(Bar("backup", sys.stderr)) as bar:
            _sure(consistency.backup, config.file, shared, target, bar)
        print(target)
        return 0
    with closing(Bar("reindex", sys.stderr)) as bar:
        done = _sure(consistency.reindex, config.file, shared, bar)
    print(f"{done} vectors rebuilt")
    return 0


def tools(*, tokens: bool) -> int:
    """Lists every tool, or about what the list at each address costs a model's context."""
    if tokens:
        print(f"{'':25} {'tools':>5} {'tokens':>7} {'with results':>13}")
        for path, dialects in (("/mcp", app.DIALECTS), *((f"/mcp/{one.name}", (one,)) for one in app.DIALECTS)):
            every = [tool for dialect in dialects for tool in dialect.tools]
            for address, listed in ((path, every), (f"{path}?tools=read", [t for t in every if t.mode == "read"])):
                plain, whole = (price(listed, results=results) for results in (False, True))
                print(f"{address:25} {len(listed):5} {plain:7} {whole:13}")
        return 0
    for dialect in app.DIALECTS:
        for tool in dialect.tools:
            print(f"{dialect.name:10} {tool.mode:9} {tool.name:24} {tool.description}")
    return 0


def import_data(arguments: argparse.Namespace, config: Config, shared: StoreContext) -> int:
    """Imports another program's data: all of it, or nothing where something is wrong."""
    known = {found.kind: (dialect, found) for dialect in app.DIALECTS for found in dialect.imports}
    if arguments.kind not in known:
        raise Fault("invalid", f"Cannot import {arguments.kind}: choose from {', '.join(known) or 'nothing'}")
    dialect, chosen = known[arguments.kind]
    secret: str | None = arguments.password_env
    password = config.environment.get(secret) if secret else None
    if secret and not password:
        raise Fault("invalid", f"The variable {secret} holds no password")
    origin = CallContext(dialect.name, f"import {chosen.kind}")

    def work(tx: Tx) -> Imported:
        return chosen.run(tx, arguments.path, password)

    with closing(Bar("import", sys.stderr)) as bar:
        done: Imported = _sure(_import, config, shared, origin, with_progress(Progress(bar), work))
    for name, count in done.counts.items():
        print(f"{name}: {count}")
    for remark in done.remarks:
        print(remark, file=sys.stderr)
    return 0


def compact_store(arguments: argparse.Namespace, config: Config, shared: StoreContext) -> int:
    """Gives room back, saying what is done, and prints the size of the file before and after."""
    before = _moment(arguments.forget) if arguments.forget else None
    freed: Freed = _sure(partial(compact, config.file, shared, _say, forget=before))
    print(f"{freed.before} bytes before, {freed.after} after")
    return 0


def _moment(given: str) -> str:
    try:
        moment = datetime.fromisoformat(given)
    except ValueError:
        raise Fault("invalid", "--forget takes a time such as 2026-01-31 or 2026-01-31T12:00:00Z") from None
    moment = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _say(part: str) -> None:
    print(part, file=sys.stderr, flush=True)


def _import(config: Config, shared: StoreContext, origin: CallContext, work: Callable[[Tx], Imported]) -> Imported:
    db = Connection(config.file, shared, readonly=False)
    try:
        db.load_vectors()
        with db.writing(origin) as tx:
            before = db.total_changes
            done = work(tx)
            if db.total_changes > before:
                audit.record(tx)
            return done
    finally:
        db.close()


def show_calls(arguments: argparse.Namespace, config: Config, shared: StoreContext) -> int:
    """Prints the newest calls that changed something, newest first; 1 if the chain of all of them is broken."""
    db = Connection(config.file, shared, readonly=True)
    try:
        entries: list[audit.Entry] = _sure(db.read, CallContext(), partial(audit.read, limit=arguments.limit))
        wrong: int | None = _sure(db.read, CallContext(), audit.first_broken)
    finally:
        db.close()
    for entry in entries:
        print(msgspec.json.encode(entry._asdict()).decode() if arguments.json else _call(entry))
    if wrong is not None:
        print(f"row {wrong} does not follow from the one before it", file=sys.stderr)
    return 0 if wrong is None else 1


def undo_call(arguments: argparse.Namespace, config: Config, shared: StoreContext) -> int:
    """Takes back what one call changed."""
    print(_call(_sure(undo.undo, config.file, shared, app.DIALECTS, arguments.id)))
    print("undone", file=sys.stderr)
    return 0


def suspects(arguments: argparse.Namespace, config: Config, shared: StoreContext) -> int:
    """Prints the memories that are kept apart, or lets one of them go."""
    db = Connection(config.file, shared, readonly=False)
    try:
        with db.writing(CallContext("kernel", "quarantine")) as tx:
            chosen = arguments.release
            found = [_sure(quarantine.release, tx, chosen)] if chosen else quarantine.flagged(tx)
    finally:
        db.close()
    for one in found:
        print(f"{one.id}  {one.at}  {one.rule}  {one.dialect}  {one.tool}  {one.actor}  {one_line(one.text, _LINE)}")
    return 0


_CALLS = {"audit": show_calls, "undo": undo_call, "compact": compact_store, "quarantine": suspects}


def _call(entry: audit.Entry) -> str:
    touched = ", ".join(f"{space} {key} {done}" for space, key, done in audit.targets(entry))
    more = f", {entry.touched - audit.SHOWN} more" if entry.touched > audit.SHOWN else ""
    kept = "  (can be undone)" if entry.undoable else ""
    who = f"{entry.dialect}  {entry.tool}  {entry.actor}"
    return f"{entry.id}  {entry.at}  {who}  {entry.outcome}  {touched}{more}{kept}"


def make_key(arguments: argparse.Namespace, config: Config) -> int:
    """Prints a new key, once, and beside it what it opens."""
    for name in arguments.dialect:
        if name in app.READING_ALL:
            raise Fault("invalid", f"{name} reads every dialect: a key for it is one without --dialect")
    app.select_dialects(tuple(arguments.dialect))
    now = utc_now()
    end = api_keys.expiry(arguments.expires, now) if arguments.expires else ""
    wanted = api_keys.Key(
        "",
        arguments.scope,
        now,
        tenant=data_dir.tenant_name(arguments.tenant),
        name=_line(arguments.name),
        dialects=tuple(sorted(set(arguments.dialect))),
        expires=end,
    )
    made, secret = api_keys.create(config.data, wanted)
    print(f"{_told(made, now)}\nIt is shown this once:", file=sys.stderr)
    print(secret)
    return 0


def list_keys(_arguments: argparse.Namespace, config: Config) -> int:
    """Prints every key ever made, without what would let anybody use it."""
    now = utc_now()
    for key in api_keys.read(config.data):
        print(_told(key, now))
    return 0


def revoke_key(arguments: argparse.Namespace, config: Config) -> int:
    """Takes a key back; a running server knows within a second."""
    now = utc_now()
    print(_told(api_keys.revoke(config.data, arguments.id, now), now))
    return 0


_KEYS = {"create": make_key, "list": list_keys, "revoke": revoke_key}


def _told(key: api_keys.Key, now: str) -> str:
    reach = ",".join(key.dialects) or "all dialects"
    end = f"revoked {key.revoked}" if key.revoked else f"expires {key.expires}" if key.expires else "never expires"
    words = f"{key.id}  {key.state(now):8}  {key.tenant}  {key.scope}  {reach}  created {key.created}  {end}"
    return f"{words}  {key.name}" if key.name else words


def _line(name: str) -> str:
    if len(name) > _LONGEST_NAME or not name.isprintable():
        raise Fault("invalid", f"A key has a name of at most {_LONGEST_NAME} printable characters")
    return name


def _sure(work: Callable[..., Any], *args: Any) -> Any:
    """`work(*args)`, where the engine's errors are Faults too."""
    answer = catch_faults(work, *args)
    if isinstance(answer, Fault):
        raise answer
    return answer
