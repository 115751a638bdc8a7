"""Runs an import of another program's data: the whole source is read before anything is written, then in slices."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import chain, islice
from typing import Any, NamedTuple, cast

from handlers.importers.archives import is_zip
from handlers.importers.records import (
    EMPTY,
    MAX_NAME,
    MAX_TAGS,
    MAX_TEXT,
    Item,
    LeftOut,
    damaged,
    fitting,
    list_in,
    mapping_in,
)
from kernel.memories.import_records import (
    DELETED,
    GONE,
    KEPT,
    PARTS,
    PRIVATE,
    REDACTED,
    SECRET,
    STAYS,
    UPDATED,
    Digests,
    Imported,
    Record,
    Remarks,
    Snapshot,
    Source,
    without_private,
)
from kernel.security.rules.secrets import find_secret, redact
from kernel.store.long_work import Steps, begin_steps, count_step, run_steps
from kernel.store.transaction import Tx

Read = Callable[[], Iterator[Item]]
Open = Callable[[Source, ExitStack], Read]
"""Opens a source and returns how to read it from its beginning; both raise Fault for one that is damaged."""

_BATCH_RECORDS = 8  # of one step: a slice is cut between steps, so that a small one keeps slices short
_BATCH_CHARACTERS = 64 << 10
_LARGE = "larger than a memory may be"
_ALREADY, _ARCHIVED, _REPEATED = "already there", "archived", "repeated"
_LONG_TAG, _ODD_TAG = f"a tag of more than {MAX_NAME:,} characters", "a tag with characters that cannot be printed"
_NO_ROOM, _WITH_TAGS = f"a tag beyond the first {MAX_TAGS}", {"memory", "note"}
_WITHOUT_TEXT = {"entity", "link", "relation", PARTS, GONE}
_WITH_ABSENT = {"memory", "memory block", "note", GONE}
_NOT_HERE, _NO_MORE, _DELETED = "not in this source", "gone at the source", "deleted there"
_GONE_BUT_EDITED = "gone at the source, and edited here since"
_OF_ANOTHER = "kept, since another file brought them"
_OF_DAMAGED = "kept, since parts of the source are damaged"
_OF_OTHERS = "kept, since nothing is in it of an earlier import"
_PLURALS = {"entity": "entities", "memory": "memories", "memory block": "memory blocks"}


class _Tally(NamedTuple):
    """The results of the records, the remarks on others, the digests of all that were read, and their dialects with
    the programs that they come from, of which True are those with a memory that was here before.
    """

    counts: Counter[str]
    remarks: Remarks
    seen: Digests
    programs: dict[tuple[str, str], bool]


def run(open_: Open, source: Source, *, is_export: bool = False, is_apart: bool = False) -> Steps[Imported]:
    """Run an import; of a folder of files, and of a source that `is_export`, which holds all that its program has, or
    `is_apart`, such as a session, memories that earlier ones brought and it does not hold are archived.
    """
    path = source.packed or source.path
    whole = Snapshot(str(path.resolve()), source.into, Digests(), is_apart=not is_export)
    is_whole = is_export or is_apart or source.packed or source.path.is_dir() or is_zip(source.path)
    snapshot = whole if is_whole else None
    with ExitStack() as stack:
        read = partial(_guarded, source, open_(source, stack), snapshot)
        total = _count(source, read)
        tally, batches = _Tally(Counter(), Remarks(), Digests(), {}), _batches(read())
        waiting: list[list[Item]] = []
        source.ahead.prepare = partial(_prepare, batches, waiting)
        tx = yield
        begin_steps(tx, total)
        while True:
            _prepare(batches, waiting)
            if not waiting:
                break
            batch = waiting.pop()
            _take(tx, source, batch, tally)
            for _ in batch:
                count_step(tx)
            tx = yield
        for batch in _batches(iter(_absent(tx, source, snapshot, tally))) if snapshot else ():
            _take(tx, source, batch, tally)
            tx = yield
        return _imported(tally)


def _absent(tx: Tx, source: Source, snapshot: Snapshot, tally: _Tally) -> list[Item]:
    """Return a record for each memory that is gone at the source; others that it does not hold are mentioned."""
    gone: list[Item] = []
    for (dialect, program), is_shared in tally.programs.items():
        find = source.find_absent.get(dialect)
        for row in find(tx, snapshot._replace(is_shared=is_shared), program) if find else ():
            if row.is_own and (is_shared or row.is_certain) and not tally.remarks.damaged:
                details = {"id": row.id}
                gone.append(Record(dialect, GONE, row.id, "", place=source.into, title=row.title, details=details))
            else:
                why = _OF_ANOTHER if not row.is_own else _OF_DAMAGED if tally.remarks.damaged else _OF_OTHERS
                tally.remarks.add(LeftOut(why, row.title), _NOT_HERE)
    return gone


def _prepare(batches: Iterator[list[Item]], waiting: list[list[Item]]) -> Sequence[str]:
    if not waiting:
        waiting.extend(islice(batches, 1))
    return [item.text for batch in waiting for item in batch if isinstance(item, Record) and item.kind == "memory"]


def preview(open_: Open, tx: Tx, source: Source, *, is_export: bool = False, is_apart: bool = False) -> Imported:
    """Return the result that the import would have now; a transaction that only reads writes nothing."""
    return run_steps(tx, run(open_, source, is_export=is_export, is_apart=is_apart))


def _guarded(source: Source, read: Read, snapshot: Snapshot | None) -> Iterator[Item]:
    """Yield the records; a file that is missing, or a folder, is refused as a damaged file is."""
    try:
        for item in read():
            placed = _placed(item, source.into)
            if isinstance(placed, Record):
                placed = placed._replace(snapshot=snapshot)
            yield placed
    except OSError as error:
        raise damaged(source.path.name, f"cannot be read: {error.strerror}") from None


def _placed(item: Item, into: str) -> Item:
    """Return a record in the place that was named; memory blocks keep their paths, which are unique only as
    they are.
    """
    if not into or not isinstance(item, Record) or item.dialect == "paths":
        return item
    return item._replace(place=into, details={**item.details, "may_be_copied": False})


def _count(source: Source, read: Read) -> int:
    total, remarks = 0, Remarks()
    for item in read():
        total += not isinstance(item, Record) or item.kind != PARTS
        if isinstance(item, LeftOut):
            remarks.add(item)
    # If all memories are damaged, other parts that are left out make no import.
    remarks.check(source, total - remarks.left_out if remarks.damaged else total)
    return total


def _take(tx: Tx, source: Source, batch: Sequence[Item], tally: _Tally) -> None:
    """Adds a batch to the dialects of its records, in the order of the source."""
    waiting: dict[str, list[Record]] = {}
    for item in batch:
        if isinstance(item, LeftOut):
            tally.remarks.add(item)
        elif _is_repeated(item, tally):
            tally.counts[_REPEATED] += 1
        else:
            waiting.setdefault(item.dialect, []).append(item)
    for dialect, records in waiting.items():
        for record, outcome in zip(records, source.take[dialect](tx, records), strict=True):
            _count_outcome(record, outcome, tally)


def _count_outcome(record: Record, outcome: int | str, tally: _Tally) -> None:
    is_gone, name = record.kind == GONE, record.title or record.text or str(record.origin.get("id", ""))
    if _may_be_gone(record):
        program = record.dialect, str(record.origin.get("system", ""))
        tally.programs[program] = tally.programs.get(program, False) or outcome is not True
    if outcome == KEPT or (is_gone and not outcome):
        reason = KEPT if not is_gone else _GONE_BUT_EDITED if outcome else record.details.get("why", _DELETED)
        tally.remarks.add(LeftOut(reason, name))
    elif is_gone:
        tally.counts[_ARCHIVED] += int(outcome)
        tally.remarks.add(LeftOut(_NO_MORE, name), _ARCHIVED)
    elif outcome == DELETED:
        tally.counts[DELETED] += 1
        tally.remarks.add(LeftOut(STAYS, name), DELETED)
    elif record.kind == PARTS:
        tally.counts.update({_ARCHIVED: int(outcome)} if outcome else {})
    else:
        kind = UPDATED if outcome == UPDATED else _PLURALS.get(record.kind, f"{record.kind}s")
        tally.counts[kind if outcome else _ALREADY] += 1


def _may_be_gone(record: Record) -> bool:
    """Return whether a record shows that others of its program, which its source does not hold, are gone there."""
    of_folder = {"entity"} if record.snapshot is not None and record.snapshot.is_apart else set[str]()
    return record.kind in _WITH_ABSENT | of_folder and not record.details.get("stands_alone")


def _screened(record: Item) -> Iterator[Item]:
    """Yield a record without private text and secrets, and the places of secrets; or why it is left out."""
    if isinstance(record, LeftOut):
        yield record
        return
    text, title, tags = without_private(record.text), without_private(record.title), record.tags
    name = title or str(record.origin.get("id") or record.origin.get("file", ""))
    if not text.strip() and record.kind not in _WITHOUT_TEXT:
        yield LeftOut(EMPTY, name)
        return
    if len(text) > MAX_TEXT or (record.dialect == "paths" and len(text.encode()) > MAX_TEXT):
        yield LeftOut(_LARGE, name)
        return
    has_secret, metadata = bool(find_secret([text, title, *tags])), mapping_in(record.details.get("metadata"))
    if has_secret:
        text, title = redact(text, REDACTED), redact(title, REDACTED)
        tags = tuple(tag for tag in tags if not find_secret([tag]))
    members: dict[str, Any] = {}
    try:
        members = _public(metadata)
    except RecursionError:
        yield LeftOut("metadata of too many levels", name)
    if record.kind != GONE and (has_secret or REDACTED in str(members)):
        yield LeftOut(SECRET, redact(name, REDACTED))
    kept = fitting(tags)
    if len(kept) < len(tags) and record.kind in _WITH_TAGS:
        yield from _other_tags(tags, kept, redact(name, REDACTED))
    details = record.details if members == metadata else {**record.details, "metadata": members}
    yield record._replace(text=text, title=title, tags=kept, details=details)


def _other_tags(tags: Sequence[str], kept: Sequence[str], name: str) -> Iterator[LeftOut]:
    fits = set(kept)
    for tag in tags:
        if tag not in fits:
            why = _LONG_TAG if len(tag) > MAX_NAME else _NO_ROOM if tag.isprintable() else _ODD_TAG
            yield LeftOut(why, f"{tag} of {name}" if name else tag)


def _public(metadata: dict[str, Any]) -> dict[str, Any]:
    lines = "\n".join(_lines("", metadata))
    return _public_value("", metadata) if PRIVATE in lines or find_secret([lines]) else metadata


def _lines(name: str, value: object) -> Iterator[str]:
    for member, part in mapping_in(value).items():
        yield from _lines(member, part)
    for part in list_in(value):
        yield from _lines(name, part)
    if isinstance(value, str):
        yield f"{name}: {value}"


def _public_value(name: str, value: Any) -> Any:
    """Return a value without secrets; the name of its member may show that it is a secret."""
    if isinstance(value, str):
        label = f"{name}: "
        return redact(f"{label}{without_private(value)}", REDACTED).removeprefix(label)
    if isinstance(value, dict):
        return {member: _public_value(member, part) for member, part in cast("dict[str, Any]", value).items()}
    return [_public_value(name, part) for part in cast("list[Any]", value)] if isinstance(value, list) else value


def _is_repeated(record: Record, tally: _Tally) -> bool:
    """Return whether the source had this record before."""
    place = "" if record.details.get("may_be_copied") else record.place
    digest = hash((record.dialect, record.kind, place, *_identity(record)))
    if digest in tally.seen:
        return True
    tally.seen.add(digest)
    return False


def _identity(record: Record) -> tuple[Hashable, ...]:
    """Return a key by which the dialect takes records for the same; so a dry run counts as the import does."""
    if record.dialect == "sessions" and record.kind != GONE:
        return record.text, record.created_at
    return (record.details["ends"], record.title) if record.kind == "link" else (record.key,)


def _batches(items: Iterator[Item]) -> Iterator[list[Item]]:
    batch, size = list[Item](), 0
    for item in chain.from_iterable(map(_screened, items)):
        own = len(item.text) if isinstance(item, Record) else 0
        if batch and (len(batch) == _BATCH_RECORDS or size + own > _BATCH_CHARACTERS):
            yield batch
            batch, size = [], 0
        batch.append(item)
        size += own
    if batch:
        yield batch


def _imported(tally: _Tally) -> Imported:
    counts = dict(sorted(tally.counts.items()))
    counts[_ALREADY] = counts.pop(_ALREADY, 0)
    counts["left out"] = tally.remarks.left_out
    return Imported(counts, tally.remarks.lines())
