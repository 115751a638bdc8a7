"""The commands that work on a store or on keys; each prints its result and returns an exit status."""

import argparse
import sys
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from functools import partial

import msgspec

from kernel import app
from kernel.cli import backup_commands
from kernel.cli.faults import or_raise
from kernel.cli.key_commands import KEY_COMMANDS
from kernel.cli.progress_bar import ProgressBar
from kernel.cli.token_cost import tool_list_tokens
from kernel.config import Config
from kernel.errors import Fault
from kernel.maintenance import consistency, undo
from kernel.maintenance.compact import Freed, compact
from kernel.search import quarantine
from kernel.store import audit
from kernel.store.context import CallContext, StoreContext
from kernel.store.progress import Progress, with_progress
from kernel.store.sqlite.connection import Connection
from kernel.store.sqlite.errors import CONSTRAINTS
from kernel.store.transaction import TARGETS_SHOWN, Tx
from kernel.text import one_line, one_word
from kernel.tools import Imported

_SHOWN_DIFFERENCES = 100  # memories that `check` names
_PREVIEW_CHARS = 80  # of a quarantined text


def run(arguments: argparse.Namespace, config: Config) -> int:
    """Run the chosen command."""
    if arguments.command == "tools":
        return tools(tokens=arguments.tokens)
    if arguments.command == "key":
        return KEY_COMMANDS[arguments.key](arguments, config)
    if arguments.command in backup_commands.COMMANDS:
        return backup_commands.COMMANDS[arguments.command](arguments, config)
    shared = app.context_of(config)
    if arguments.command != "import":
        app.require_database(config)
    access, *_ = app.open_data(config, shared)
    with closing(access):
        return _STORE_COMMANDS[arguments.command](arguments, config, shared)


def check(arguments: argparse.Namespace, config: Config, shared: StoreContext) -> int:
    """Print what differs between rows, full text and vectors; return 1 if anything does and was not repaired."""
    lines: list[str] = []
    found = or_raise(
        partial(consistency.check, config.file, shared, app.DIALECTS, repair=arguments.repair, report=lines.append)
    )
    for finding in found:
        print(f"{finding.part}: {finding.rows} {finding.what}")
    for line in lines[:_SHOWN_DIFFERENCES]:
        print(f"  {line}")
    left = [finding for finding in found if finding.kept] if arguments.repair else found
    print("differences found" if left else "repaired" if found else "ok")
    return 1 if left else 0


def reindex(_arguments: argparse.Namespace, config: Config, shared: StoreContext) -> int:
    """Rebuild the full-text index and the vectors from the rows."""
    with closing(ProgressBar("reindex", sys.stderr)) as bar:
        done = or_raise(consistency.reindex, config.file, shared, bar)
    print(f"{done} vectors rebuilt")
    return 0


def tools(*, tokens: bool) -> int:
    """Print every tool, or for each URL the approximate tokens its tool list takes in a model's context."""
    if tokens:
        print(f"{'':25} {'tools':>5} {'tokens':>7} {'with results':>13}")
        for path, dialects in (("/mcp", app.DIALECTS), *((f"/mcp/{one.name}", (one,)) for one in app.DIALECTS)):
            every = [tool for dialect in dialects for tool in dialect.tools]
            for address, listed in ((path, every), (f"{path}?tools=read", [t for t in every if t.mode == "read"])):
                plain, whole = (tool_list_tokens(listed, results=results) for results in (False, True))
                print(f"{address:25} {len(listed):5} {plain:7} {whole:13}")
        return 0
    for dialect in app.DIALECTS:
        for tool in dialect.tools:
            print(f"{dialect.name:10} {tool.mode:9} {tool.name:24} {tool.description}")
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
        try:
            return chosen.run(tx, arguments.path, password)
        except CONSTRAINTS as error:  # such as two rows of one id
            raise Fault("invalid", f"{arguments.path.name} cannot be imported: {error}.") from None

    with closing(ProgressBar("import", sys.stderr)) as bar:
        done: Imported = or_raise(_import, config, shared, origin, with_progress(Progress(bar), work))
    for name, count in done.counts.items():
        print(f"{name}: {count}")
    for remark in done.remarks:
        print(remark, file=sys.stderr)
    return 0


def compact_store(arguments: argparse.Namespace, config: Config, shared: StoreContext) -> int:
    """Compact the database file; print its size before and after, and each step on standard error."""
    before = _timestamp(arguments.forget) if arguments.forget else None
    freed: Freed = or_raise(partial(compact, config.file, shared, _print_step, forget=before))
    print(f"{freed.before} bytes before, {freed.after} after")
    return 0


def _timestamp(given: str) -> str:
    try:
        moment = datetime.fromisoformat(given)
    except ValueError:
        raise Fault("invalid", "--forget takes a time such as 2026-01-31 or 2026-01-31T12:00:00Z") from None
    moment = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _print_step(part: str) -> None:
    print(part, file=sys.stderr, flush=True)


def _import(config: Config, shared: StoreContext, origin: CallContext, work: Callable[[Tx], Imported]) -> Imported:
    db = Connection(config.file, shared, readonly=False)
    try:
        db.load_vectors()
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
        entries: list[audit.Entry] = or_raise(db.read, CallContext(), partial(audit.read, limit=arguments.limit))
        wrong: int | None = or_raise(db.read, CallContext(), audit.first_broken)
    finally:
        db.close()
    for entry in entries:
        print(msgspec.json.encode(entry._asdict()).decode() if arguments.json else _call_line(entry))
    if wrong is not None:
        print(f"audit row {wrong} breaks the hash chain", file=sys.stderr)
    return 0 if wrong is None else 1


def undo_call(arguments: argparse.Namespace, config: Config, shared: StoreContext) -> int:
    """Undo the changes of one call."""
    print(_call_line(or_raise(undo.undo, config.file, shared, app.DIALECTS, arguments.id)))
    print("undone", file=sys.stderr)
    return 0


def show_quarantine(arguments: argparse.Namespace, config: Config, shared: StoreContext) -> int:
    """Print the quarantined memories, or release one."""
    db = Connection(config.file, shared, readonly=False)
    try:
        with db.writing(CallContext("kernel", "quarantine")) as tx:
            chosen = arguments.release
            found = [or_raise(quarantine.release, tx, chosen)] if chosen else quarantine.flagged(tx)
    finally:
        db.close()
    for one in found:
        preview = one_line(one.text, _PREVIEW_CHARS)
        origin = f"{one.dialect}  {one.tool}  {one_word(one.actor)}"
        print(f"{one_word(one.id)}  {one.at}  {one.rule}  {origin}  {preview}")
    return 0


_STORE_COMMANDS = {
    "audit": show_calls,
    "check": check,
    "compact": compact_store,
    "import": import_data,
    "quarantine": show_quarantine,
    "reindex": reindex,
    "undo": undo_call,
}


def _call_line(entry: audit.Entry) -> str:
    touched = ", ".join(f"{space} {one_word(key)} {done}" for space, key, done in audit.targets(entry))
    more = f", {entry.touched - TARGETS_SHOWN} more" if entry.touched > TARGETS_SHOWN else ""
    undo_hint = "  (can be undone)" if entry.undoable else ""
    source = f"{entry.dialect}  {entry.tool}  {one_word(entry.actor)}"
    return f"{entry.id}  {entry.at}  {source}  {entry.outcome}  {touched}{more}{undo_hint}"
