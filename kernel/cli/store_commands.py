"""The commands that work on the rows of a store; each prints its result and returns an exit status."""

import argparse
import math
import sys
from collections.abc import Callable
from contextlib import closing
from functools import partial

from kernel.cli import hook_client, witness
from kernel.cli.output import confirm, local_time, moment, note, show
from kernel.cli.progress_bar import ProgressBar, working
from kernel.core.config import Config
from kernel.core.errors import Fault
from kernel.core.text import counted, one_line, one_word
from kernel.engines.opening import open_reader, open_writer
from kernel.engines.sqlite.errors import SQLITE_ERRORS, as_fault
from kernel.memories import witness as stored
from kernel.operations import consistency, undo
from kernel.operations.compact import Choice, compact
from kernel.operations.replica import refuse_replica
from kernel.operations.shared_store import changing_keys
from kernel.search import quarantine
from kernel.server import app
from kernel.store import audit
from kernel.store.context import CallContext, StoreContext
from kernel.store.transaction import TARGETS_SHOWN

_SHOWN_DIFFERENCES = 100  # memories that `check` names
_CALLS_SEARCHED = 1000  # for the last that can be undone
_PREVIEW_CHARS = 80  # of a quarantined text


def run_on_data(work: Callable[..., int], opens: str, arguments: argparse.Namespace, config: Config) -> int:
    """Run the function of a command with the data that it needs; raises the errors of the engine as Faults."""
    try:
        return _run_on_data(work, opens, arguments, config)
    except (*SQLITE_ERRORS, OSError) as error:
        if (fault := as_fault(error)) is not None:
            raise fault from error
        raise


def _run_on_data(work: Callable[..., int], opens: str, arguments: argparse.Namespace, config: Config) -> int:
    refuse_replica(config.data)
    if opens == "keys":
        with changing_keys(config):
            return work(arguments, config)
    if config.store and (opens == "files" or arguments.command == "compact"):
        raise Fault("invalid", "QUIPU_STORE names a database, and this command works on files: see docs/scaling.md.")
    if opens in {"data", "files"}:
        return work(arguments, config)
    context = app.context_of(config)
    if opens == "store":
        app.require_database(config)
    access, *_ = app.open_data(config, context)
    with closing(access):
        return work(arguments, config, context, access.alone)


def check(arguments: argparse.Namespace, config: Config, context: StoreContext, alone: bool) -> int:
    """Print the differences between rows, full text and vectors, and notes; return 1 if a difference is left."""
    if arguments.project is not None:
        return _check_project(arguments, config, context)
    lines: list[str] = []
    repair: bool = arguments.repair
    try:
        with working("check"):
            findings = consistency.check(
                config.file, context, app.DIALECTS, repair=repair, report=lines.append, alone=alone
            )
        for finding in findings:
            show(finding._asdict(), f"{finding.part}: {finding.rows} {finding.what}", as_json=arguments.json)
    finally:
        for line in lines[:_SHOWN_DIFFERENCES]:
            show({"difference": line}, f"  {line}", as_json=arguments.json)
    mistakes = [finding for finding in findings if not finding.note]
    left = [finding for finding in mistakes if finding.kept] if repair else mistakes
    state = "differences found" if left else "repaired" if mistakes else "ok"
    show({"state": state}, state, as_json=arguments.json)
    return 1 if left else 0


def _check_project(arguments: argparse.Namespace, config: Config, context: StoreContext) -> int:
    """Print the memories that name changed places of a checkout; return 1 if there are any."""
    root = witness.checkout_root(str(arguments.project))
    if not root:
        raise Fault("invalid", f"--project: {arguments.project} is in no checkout of git")
    project = witness.project_of(root)
    with open_reader(config.file, context) as db:
        memories = db.read(CallContext(), lambda tx: stored.in_project(tx, project))
        citations = db.read(CallContext(), lambda tx: stored.cited(tx, memories))
    tree = witness.Tree(root, project, math.inf, sys.maxsize)
    words = {doc: tree.words(doc, written_at, places) for doc, written_at, places in citations}
    with open_writer(config.file, context) as db, db.writing(CallContext("kernel", "check")) as tx:
        stored.keep(tx, project, tree.news)
    stale = [(memory, words[memory.doc]) for memory in memories if words.get(memory.doc, "") not in ("", witness.FRESH)]
    for memory, why in stale:
        id_ = f"{memory.space}/{memory.key}"
        line = f"{one_word(id_)}  {why}  {one_line(memory.text, _PREVIEW_CHARS)}"
        show({"id": id_, "stale": why}, line, as_json=arguments.json)
    note(f"{len(stale)} of {len(memories)} memories that name files of {project} are stale")
    return 1 if stale else 0


def reindex(arguments: argparse.Namespace, config: Config, context: StoreContext, alone: bool) -> int:
    with closing(ProgressBar("reindex", sys.stderr)) as bar:
        count = consistency.reindex(config.file, context, app.DIALECTS, bar, alone=alone)
    show({"vectors": count}, f"{count} vector{'s' * (count != 1)} rebuilt", as_json=arguments.json)
    return 0


def compact_store(arguments: argparse.Namespace, config: Config, context: StoreContext, alone: bool) -> int:
    """Compact the database file; print its size before and after, and each step on standard error."""
    before = moment("--forget", arguments.forget or "") or None
    if arguments.forget_undo:
        _confirm_end_of_undo(config, context, yes=arguments.yes)
    elif arguments.yes:
        raise Fault("invalid", "--yes goes with --forget-undo only.")
    if arguments.full and not alone:
        note("Writes of the servers wait until the file is rewritten.")
    choice = Choice(arguments.full, before, arguments.forget_undo, config.undo_hours)
    with working("compact"):
        result = compact(config.file, context, note, choice, alone=alone)
    show(result._asdict(), f"{result.before} bytes before, {result.after} after", as_json=arguments.json)
    if result.undoable:
        note(f"{counted(result.undoable, 'call')} can still be undone: --forget-undo frees what is kept for it")
    if not (alone or arguments.full):
        note(
            f"{result.free} bytes of it are free for what is written next; to give them back, stop the servers and run "
            "`quipu compact` again, or let their writes wait while `quipu compact --full` rewrites the file"
        )
    return 0


def _confirm_end_of_undo(config: Config, context: StoreContext, *, yes: bool) -> None:
    """Tell which calls can no longer be undone, and ask; raises Fault if nobody can be asked, or the answer is no."""
    with open_reader(config.file, context) as db:
        undo_data = db.read(CallContext(), audit.kept_undo)
    if not undo_data.calls:
        return
    lost = f"{counted(undo_data.calls, 'call')} can no longer be undone"
    loss = f"{lost}, the newest is {undo_data.newest}, {one_word(undo_data.tool)}"
    note(f"{loss}; {undo_data.bytes} bytes are kept for it")
    if not yes:
        confirm("End their undo?", "--forget-undo")


def show_calls(arguments: argparse.Namespace, config: Config, context: StoreContext, _alone: bool) -> int:
    """Print the newest audit entries, newest first; return 1 if the hash chain of the audit log is broken."""
    if arguments.session is not None:
        return _show_session(arguments, config, context)
    with open_reader(config.file, context) as db:
        entries = db.read(CallContext(), partial(audit.read, limit=arguments.limit))
        wrong = db.read(CallContext(), audit.first_broken)
    for entry in entries:
        show(entry._asdict(), _call_line(entry), as_json=arguments.json)
    if not entries:
        note("no calls have changed anything yet")
    if wrong is not None:
        note(f"audit row {wrong} breaks the hash chain")
    return 0 if wrong is None else 1


def _show_session(arguments: argparse.Namespace, config: Config, context: StoreContext) -> int:
    """Print the memories that hooks have added to a session, each as it was then; return 1 if there are none."""
    session = arguments.session
    names = [session, *(f"{client}:{session}" for client in hook_client.CLIENTS)]
    with open_reader(config.file, context) as db:
        rows = db.read(CallContext(), lambda tx: stored.shown_in(tx, names))
    for row in rows:
        for id_, version in row.memories:
            line = f"{local_time(row.at)}  {row.tool}  {one_word(id_)}  as of {version}"
            show({**row._asdict(), "memories": [[id_, version]]}, line, as_json=arguments.json)
    if not rows:
        note(f"nothing is recorded of a session {one_word(session)}")
    return 0 if rows else 1


def undo_call(arguments: argparse.Namespace, config: Config, context: StoreContext, alone: bool) -> int:
    if not arguments.id:
        raise Fault("invalid", _last_undoable(config, context))
    for number in arguments.id:
        with working("undo"):
            entry = undo.undo(config.file, context, app.DIALECTS, number, config.undo_hours, alone=alone)
        show(entry._asdict(), _call_line(entry), as_json=arguments.json)
        note("undone")
    return 0


def _last_undoable(config: Config, context: StoreContext) -> str:
    with open_reader(config.file, context) as db:
        entries = db.read(CallContext(), partial(audit.read, limit=_CALLS_SEARCHED))
    last = next((entry for entry in entries if entry.undoable), None)
    if last is None:
        return "No recent call can be undone."
    return f"Which call? `quipu undo {last.id}` takes back the last: {_call_line(last)}"


def show_quarantine(arguments: argparse.Namespace, config: Config, context: StoreContext, _alone: bool) -> int:
    from handlers.console.records import rule_words  # as the console says it; no other command here needs its code

    with open_writer(config.file, context) as db, db.writing(CallContext("kernel", "quarantine")) as tx:
        id_ = arguments.release
        memories = [quarantine.release(tx, id_)] if id_ else quarantine.flagged(tx)
    for memory in memories:
        preview = one_line(memory.text, _PREVIEW_CHARS)
        origin = f"{memory.dialect}  {memory.tool}  {one_word(memory.actor)}"
        seen = f"{local_time(memory.at or '')}  {rule_words(memory.rule or '')}"
        line = f"{one_word(memory.id)}  {seen}  {origin}  {preview}"
        show({"id": memory.id, **memory._asdict()}, line, as_json=arguments.json)
    if not memories:
        note("nothing is quarantined")
    return 0


def _call_line(entry: audit.Entry) -> str:
    targets = ", ".join(f"{space} {one_word(key)} {operation}" for space, key, operation in audit.targets(entry))
    more = f", {entry.touched - TARGETS_SHOWN} more" if entry.touched > TARGETS_SHOWN else ""
    undo_hint = "  (can be undone)" if entry.undoable else ""
    source = f"{entry.dialect}  {entry.tool}  {one_word(entry.actor)}"
    return f"{entry.id}  {local_time(entry.at)}  {source}  {entry.outcome}  {targets}{more}{undo_hint}"
