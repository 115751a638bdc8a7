"""The command `quipu import`: the data of another program, in slices, beside a server that may be running."""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from kernel.calls.dispatch import catch_faults
from kernel.cli.output import note, show
from kernel.cli.progress_bar import ProgressBar, working
from kernel.core.config import Config, user_folder
from kernel.core.data_dir import MAIN
from kernel.core.errors import Fault
from kernel.core.limits import BOUNDS, UPLOAD_BYTES
from kernel.core.text import count_of_memories, did_you_mean
from kernel.engines.opening import open_reader, open_writer
from kernel.engines.sqlite.connection import Connection
from kernel.engines.sqlite.errors import CONSTRAINTS
from kernel.engines.sqlite.unfinished import temporary_folder
from kernel.engines.yielding import Politeness
from kernel.memories.import_records import DELETED, Ahead, Import, Imported, Remarks, Source, shown
from kernel.operations import portable_import, undo
from kernel.security import api_keys
from kernel.server import app
from kernel.store import audit
from kernel.store.context import CallContext, StoreContext
from kernel.store.long_work import MORE, Progress, Slices, Unfinished, with_progress
from kernel.store.queue import Job, discard
from kernel.store.store import GroupRunner
from kernel.store.transaction import Tx

if TYPE_CHECKING:
    from kernel.embed.model import Embedding

_CUT_OFF = "What came before it is imported: another import goes on from there, and `quipu undo` takes it back."
_IMPORTED_FOR_GOOD = "imported; `quipu undo` cannot take it back, since QUIPU_UNDO_HOURS is 0"
_CUT_OFF_BEFORE = "an import of {} before it was cut off: `quipu undo {}` takes back its {}"
_BEGUN, _LEFT_OUT = "begun", "left out"
_NOT_NEW = ("already there", DELETED, "repeated", _LEFT_OUT)
_TABLES = {".csv", ".tsv", ".xls", ".xlsx", ".ods"}
_INSTEAD_OF_TABLE = "save its rows as JSON, an object with `content` each, and call `quipu import mem0 FILE`."
_MAX_MILLISECONDS = BOUNDS["store_milliseconds"].high  # a whole source takes longer than a call may
_LINE_END = "\n"
_OF_MANY = "holds the data of many programs: name a folder or file in it, of one of these kinds.{}{}"
_MAX_PLACE = 200  # characters of the name of a database, a project or a session
_MOST_OF_EMPTY = 64  # bytes, with blanks
_TRUNCATED = "Input data was truncated"  # says msgspec
_ROWS_SEARCHED = 1000  # of the audit, for the row of an import that failed while others wrote


def import_data(arguments: argparse.Namespace, config: Config, context: StoreContext, alone: bool) -> int:
    """Import the data of another program; an import that was cut off goes on when it is run again.

    Unless it is `alone`, as beside a server, others get their turn from the first slice on.
    """
    path: Path = arguments.path
    if path.exists() and not path.is_file() and not path.is_dir():  # a pipe or a device may never end
        raise Fault("invalid", f"{path} is no ordinary file and no folder. Nothing was imported.")
    secret: str | None = arguments.password_env
    password = config.environment.get(secret) if secret else None
    if secret and not password:
        raise Fault("invalid", f"The variable {secret} is unset or empty")
    with temporary_folder(config.home / "import") as copies:
        ahead = Ahead()
        take = {dialect.name: dialect.memories.take for dialect in app.DIALECTS if dialect.memories.take}
        absent = {dialect.name: find for dialect in app.DIALECTS if (find := dialect.memories.find_absent)}
        place, is_strict = arguments.into, arguments.strict
        source = Source(path, password, context.settings, copies, take, absent, ahead, place, is_strict)
        with working("look"):
            source = app.unpacked(source, arguments.kind)
            kind = _chosen(arguments.kind, source.path, user_folder(config.environment))
        _check_into(arguments.into, kind)
        origin = CallContext(kind.dialect, f"import {kind.kind}")
        work = _preview if arguments.dry_run else partial(_import, alone)
        before = _newest_calls(config.file, context, 1)
        try:
            remarks = Remarks(source.left_out)
            remarks.check(source, 1)
            result = _with_packing(remarks, work(config.file, config.undo_hours, context, origin, kind, source))
        except Fault as fault:
            fault.message = _printable(fault.message)  # names from outside may hold control characters of a terminal
            raise
    after = before[0].id if before else 0
    undoable = _undoable_calls(config.file, context, kind, origin.tool, after)
    own = next((call for call in undoable if call.id > after), None)
    earlier = [call for call in undoable if call.id <= after]
    _report(arguments, kind, result, own, earlier, keeps_undo=config.undo_hours > 0)
    tenant = config.tenant
    if tenant != MAIN and not (arguments.dry_run or api_keys.opens(config.data, tenant)):
        note(f"no key opens the tenant {tenant} yet: `quipu key create --scope write --tenant {tenant}` makes one")
    return 0


def _with_packing(remarks: Remarks, result: Imported) -> Imported:
    """Return a result with the parts of an archive that were left out when it was unpacked."""
    if not remarks.left_out:
        return result
    left_out = result.counts.get(_LEFT_OUT, 0) + remarks.left_out
    return Imported({**result.counts, _LEFT_OUT: left_out}, [*remarks.lines(), *result.remarks])


def _report(
    arguments: argparse.Namespace,
    kind: Import,
    result: Imported,
    call: audit.Entry | None,
    cut_off: Sequence[audit.Entry],
    *,
    keeps_undo: bool,
) -> None:
    """Print the counts of an import, its remarks, and the calls that `quipu undo` takes back: that of the import, and
    those of imports that were cut off before.
    """
    if arguments.json:
        calls = [entry.id for entry in (call, *cut_off) if entry]
        more = {"dry_run": True} if arguments.dry_run else {"undo": calls} if calls else {}
        show({"kind": kind.kind, "counts": result.counts, "remarks": result.remarks, **more}, "", as_json=True)
        return
    if arguments.dry_run:
        print(f"{kind.kind}: nothing is written; an import would find:")
    for name, count in result.counts.items():
        print(f"{name}: {count}")
    for remark in result.remarks:
        note(_printable(remark))
    if call is not None:
        print(f"{_told(call.touched, result.counts) or 'imported no memory'}; `quipu undo {call.id}` takes it back")
    elif not arguments.dry_run:
        is_new = any(count for name, count in result.counts.items() if name not in _NOT_NEW)
        print(_IMPORTED_FOR_GOOD if is_new and not keeps_undo else "nothing new was imported")
    for entry in cut_off:
        rows = count_of_memories(entry.touched) if entry.touched else "rows"
        print(_CUT_OFF_BEFORE.format(kind.kind, entry.id, rows))


def _told(touched: int, counts: Mapping[str, int]) -> str:
    other_counts = {verb: counts.get(verb, 0) for verb in ("updated", "archived")}
    new = sum(count for kind, count in counts.items() if kind not in {*other_counts, *_NOT_NEW})
    import_count = touched - sum(other_counts.values())
    groups = {"imported": min(new, import_count) if any(other_counts.values()) else import_count, **other_counts}
    return ", ".join(f"{verb} {count_of_memories(count)}" for verb, count in groups.items() if count)


def _newest_calls(file: Path, context: StoreContext, limit: int) -> list[audit.Entry]:
    with open_reader(file, context) as db:
        return db.read(CallContext(), partial(audit.read, limit=limit))


def _undoable_calls(file: Path, context: StoreContext, kind: Import, tool: str, after: int) -> list[audit.Entry]:
    """Return the calls of an import that can be undone, newest first, each with the number of its memories: those with
    a greater number, and those that were cut off. The history of an export names memories that were deleted, too.
    """

    def undoable(tx: Tx) -> list[audit.Entry]:
        calls = [call for call in audit.read(tx, _ROWS_SEARCHED) if call.tool == tool and call.undoable]
        own = [call for call in calls if call.id > after or call.outcome == _BEGUN]
        counts = [audit.memories(tx, call.id) for call in own]
        brings_history = kind.trial is not None
        return [
            call._replace(touched=count.indexed if brings_history else count.all)
            for call, count in zip(own, counts, strict=True)
        ]

    with open_reader(file, _patient(context)) as db:
        return db.read(CallContext(), undoable)


def _patient(context: StoreContext) -> StoreContext:
    return context._replace(call_limits=context.call_limits._replace(milliseconds=_MAX_MILLISECONDS))


def _check_into(name: str, kind: Import) -> None:
    """Refuse a place for an import that brings places along, and a name that no place can have."""
    if not name:
        return
    if all(kind.kind != foreign.kind for foreign in app.foreign_imports()):
        raise Fault("invalid", f"--into is not for {kind.kind}, whose memories say where they belong.")
    if len(name) > _MAX_PLACE or not name.isprintable() or name != name.strip():
        raise Fault(
            "invalid", f"--into takes at most {_MAX_PLACE} printable characters, none of them a blank at an end."
        )


def _printable(text: str) -> str:
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in text)


def _chosen(kind: str | None, path: Path, home: Path) -> Import:
    """Return the import of a kind; without a kind, the first that the file or folder looks like.

    The folder of a user, as that of the system, looks like one program by chance, and holds the data of many.
    """
    if path.suffix.lower() in _TABLES:
        name = shown(path.name)
        raise Fault("invalid", f"{name} is a table, which no import reads: {_INSTEAD_OF_TABLE}")
    if kind is None:
        if not path.exists():
            raise Fault("invalid", f"There is no file and no folder {path}.")
        if path.resolve() in {home.resolve(), Path(path.resolve().anchor)} and not (path / ".obsidian").is_dir():
            raise Fault("invalid", f"{path} {_OF_MANY.format(_LINE_END, _listed())}")
        match = next((match for match in _imports() if match.matches and match.matches(path)), None)
        if match is None:
            raise Fault("invalid", f"{shown(path.name or str(path))} {_unknown(path)}")
        note(f"{shown(path.name or str(path))} is taken for {match.kind}: {match.about}")
        return match
    if (match := next((match for match in _imports() if match.kind == kind), None)) is None:
        hint = did_you_mean(kind, kinds())
        raise Fault("invalid", f"Cannot import {kind}{hint or f'; these can be imported:{_LINE_END}{_listed()}'}")
    return match


def _unknown(path: Path) -> str:
    """Return the reason why no import takes a file or folder for its own."""
    if _is_empty(path):
        return "is empty."
    if _is_cut_off(path):
        return "is JSON that ends too early: copy or export it again."
    return f"does not say what it is: name its kind, one of these.{_LINE_END}{_listed()}"


def _is_empty(path: Path) -> bool:
    """Return whether a folder has nothing in it, or a file no more than an empty list or object."""
    if path.is_dir():
        return not any(path.iterdir())
    return path.stat().st_size <= _MOST_OF_EMPTY and path.read_bytes().strip() in {b"", b"[]", b"{}"}


def _is_cut_off(path: Path) -> bool:
    """Return whether a JSON file of a moderate size ends before its value does."""
    if path.suffix.lower() != ".json" or not path.is_file() or path.stat().st_size > UPLOAD_BYTES:
        return False
    try:
        msgspec.json.decode(path.read_bytes(), type=msgspec.Raw)
    except msgspec.DecodeError as error:
        return str(error) == _TRUNCATED
    return False


def _imports() -> list[Import]:
    own = [match._replace(dialect=dialect.name) for dialect in app.DIALECTS for match in dialect.exchange.imports]
    return [_everything(), *own, *app.foreign_imports()]


def kinds() -> list[str]:
    return [match.kind for match in _imports()]


def import_formats() -> list[tuple[str, str]]:
    return [(match.kind, match.about) for match in _imports()]


def print_kinds() -> None:
    print(_listed())


def _listed() -> str:
    width = max(map(len, kinds()))
    return "\n".join(f"  {match.kind:{width}}  {match.about}" for match in _imports())


def _everything() -> Import:
    return Import(
        "jsonl",
        "everything that `quipu export jsonl` has written",
        partial(portable_import.import_steps, app.DIALECTS),
        partial(portable_import.preview, app.DIALECTS),
        portable_import.is_export,
        app.DIALECTS[0].name,
        partial(portable_import.trial_steps, app.DIALECTS),
    )


def _import(
    alone: bool, file: Path, undo_hours: int, context: StoreContext, origin: CallContext, kind: Import, source: Source
) -> Imported:
    """Runs an import to its end, a slice a transaction."""
    with closing(kind.steps(source)) as steps, closing(ProgressBar("import", sys.stderr)) as bar:
        slices = Slices(steps)
        job = Job(with_progress(Progress(bar), _work(source, slices)), origin, discard)
        job.exclusive = job.undoable = True
        runner = GroupRunner(context, catch_faults, undo_hours)
        with open_writer(file, context) as db:
            orphans = db.orphans() if kind.trial else 0  # only rows that are taken as they are may refer to nothing
            politeness = Politeness(db, alone=alone)
            while job.answer in (None, MORE):
                vectors = _embedded(context, source)
                slices.seconds = politeness.seconds
                with politeness, db.writing(origin) as tx:
                    tx.preload(vectors)
                    job.answer = runner.run_audited(db, tx, job)
            astray = kind.trial is not None and not isinstance(job.answer, Fault) and db.orphans() > orphans
    if astray:
        _take_back(file, context, origin, ("done", _BEGUN))
        raise Fault(
            "invalid", f"{source.path.name} holds rows that refer to a row that is not there. Nothing was imported."
        )
    if isinstance(job.answer, Fault):
        raise _failed(job, partial(_take_back, file, context, origin) if kind.matches else None)
    return job.answer


def _embedded(context: StoreContext, source: Source) -> "Mapping[str, Embedding]":
    """Return the embeddings of the first records of the next slice, computed before it holds the lock."""
    prepare, embedder = source.ahead.prepare, context.embedder
    texts = prepare() if prepare is not None else ()
    if embedder is None or not texts:
        return {}
    with suppress(OSError, ValueError):  # a model that cannot be read: the slice works without it, or fails
        return dict(zip(texts, embedder.embed(texts), strict=True))
    return {}


def _failed(job: Job, take_back: Callable[[], None] | None) -> Fault:
    """Return the message of a failure, after earlier slices were taken back, if that can be done."""
    fault = job.answer
    if job.earlier is None or not job.earlier.parts:
        return fault
    if take_back is not None:
        with suppress(Fault):  # something has been changed since
            take_back()
            return fault
    return Fault(fault.code, f"{fault.message} {_CUT_OFF}")


def _take_back(file: Path, context: StoreContext, origin: CallContext, outcomes: Sequence[str] = (_BEGUN,)) -> None:
    with open_writer(file, context) as db, db.writing() as tx:
        rows = audit.read(tx, _ROWS_SEARCHED)
    number = next((row.id for row in rows if row.tool == origin.tool and row.outcome in outcomes), 0)
    undo.undo(file, context, app.DIALECTS, number)


def _preview(
    file: Path, undo_hours: int, context: StoreContext, origin: CallContext, kind: Import, source: Source
) -> Imported:
    """Return the result that an import would have, by a read; if a read does not suffice, by a try on a copy."""
    result: Imported | None = None
    with open_reader(file, _patient(context)) as db, closing(ProgressBar("read", sys.stderr)) as bar:
        if (preview := kind.preview) is not None:

            def work(tx: Tx) -> Imported:
                return preview(tx, source)

            result = db.read(origin, with_progress(Progress(bar), work))
            if kind.trial is None or not isinstance(db, Connection):
                return result
        if not isinstance(db, Connection):
            raise Fault(
                "invalid", f"--dry-run of {kind.kind} needs a store in a file; `quipu undo` takes an import back."
            )
        copy = source.copies / "trial.db"
        db.backup(copy)
    trial = _import(True, copy, undo_hours, context, origin, kind._replace(steps=kind.trial or kind.steps), source)
    return result or trial


def _work(source: Source, slices: Slices[Imported]) -> Callable[[Tx], Imported | Unfinished]:
    def work(tx: Tx) -> Imported | Unfinished:
        try:
            return slices(tx)
        except CONSTRAINTS as error:  # such as two rows of one id
            raise Fault("invalid", f"{source.path.name} cannot be imported: {error}.") from None

    return work
