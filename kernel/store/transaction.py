"""The transaction a handler gets: rows by named statement, the time, new ids, embeddings, deferred work."""

import math
import time
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from kernel.core.errors import Fault
from kernel.core.ids import new_id, utc_now
from kernel.core.text import encode_json_into
from kernel.security.permissions import Reach
from kernel.store.context import TOO_LONG, CallContext, Engine, Params, Tables, Token
from kernel.store.statements import table_facts

if TYPE_CHECKING:
    from kernel.embed.model import Embedding
    from kernel.store.long_work import Progress

R = TypeVar("R")
Item = TypeVar("Item")
Row = Callable[..., R]
Flush = Callable[["Tx", list[Any]], Iterator[None] | None]  # a step ends where it needs what it has asked for
Deferred = tuple[Flush, Any]
Target = tuple[str, str, str]  # space, key, operation
_END = object()
TARGETS_SHOWN = 50  # of a call, in its row of the audit
# Of texts that one statement or one changeset takes; large work goes on in slices of it. With a memory more, and as
# JSON that escapes each character, a slice stays under the smallest QUIPU_LIMIT_STORE_VALUE.
SLICE_BYTES = 2 << 20


class Tx:
    """One transaction: a consistent view of the store, and everything that a handler may use of it.

    A parameter that is a list or a tuple reaches SQL as JSON text, for `json_each`; bytes in it become base64.
    """

    __slots__ = (
        "_after_commit",
        "_before_call",
        "_begin_pending",
        "_budget",
        "_call_start",
        "_deadline",
        "_deferred",
        "_deferred_bytes",
        "_derived",
        "_engine",
        "_first_targets",
        "_last_moment",
        "_now",
        "_on_rollback",
        "_reach",
        "_rollback_start",
        "_run",
        "_statements",
        "_targets",
        "_touched",
        "_vectors",
        "after_slice",
        "call_context",
        "context",
        "progress",
        "readonly",
        "vacuum_after_commit",
        "writer",
    )

    def __init__(self, engine: Engine, call_context: CallContext, *, readonly: bool) -> None:
        self._engine = engine
        self._run = engine.execute
        self._budget = engine.budget
        self.context = engine.context
        self._statements = self.context.statements
        self._reach: Reach | None = None
        self.call_context = call_context  # tool and actor of the current call, for provenance
        self.writer = call_context[:3]
        self.readonly = readonly  # a snapshot of the committed state, on a connection that cannot write
        self.progress: Progress | None = None  # set for long work if the caller wants progress
        self.vacuum_after_commit = False
        self._now = ""
        self._begin_pending = readonly  # a read begins with its first statement, which takes the snapshot
        self._deferred: list[Deferred] = []
        self._deferred_bytes = 0
        self._call_start = 0
        self._before_call: list[Deferred] | None = None  # deferred by earlier calls of the group, flushed by this call
        self._touched = 0  # targets of the call that were taken
        self._first_targets: list[Target] = []
        self._targets: list[Target] = []
        self.after_slice: Callable[[], None] | None = None
        self._on_rollback: list[Callable[[], None]] = []
        self._rollback_start = 0
        self._after_commit: dict[tuple[Callable[..., object], tuple[Hashable, ...]], None] = {}
        self._vectors: dict[str, Embedding] = {}
        self._derived: dict[tuple[Callable[[str], object], str], Any] = {}
        self._deadline = self._last_moment = math.inf

    def within(self, seconds: float, work: Callable[["Tx"], R]) -> R:
        """Return `work(tx)`, which this thread may spend so many seconds of processor time on.

        Raises Fault("invalid") at the first statement or `check_time` after that: SQL and Python count alike.
        """
        self._deadline, self._last_moment = time.monotonic() + seconds, time.thread_time() + seconds
        try:
            if self.call_context.reach is None:
                return work(self)
            with self.held_to(self.call_context.reach):
                return work(self)
        finally:
            self._deadline = math.inf

    @contextmanager
    def held_to(self, reach: Reach | None) -> Generator[None]:
        """Hold the statements of the block to the rows of some places; None ends that for work of the kernel."""
        before, self._reach = self._reach, reach
        if before is reach:
            yield
            return
        try:
            self._statements = self._engine.limit(reach)
            yield
        finally:
            self._reach = before
            self._statements = self._engine.limit(before)

    @property
    def is_limited(self) -> bool:
        """Return whether the call sees some places alone."""
        return self._reach is not None

    @property
    def reach(self) -> Reach | None:
        """Return the places that the call is held to, None for all."""
        return self._reach

    @property
    def sees_parts(self) -> bool:
        """Return whether the call may see some documents of a partition and not others."""
        return self._reach is not None and self._reach.readable.divide(table_facts().divided)

    def may_read(self, dialect: str, place: str) -> bool:
        """Return whether the call sees a place; for what lies outside the database."""
        return self._reach is None or self._reach.readable.hold(dialect, place)

    def may_write_all_of(self, dialect: str) -> bool:
        return self._reach is None or self._reach.writable.whole(dialect)

    def _check_unlimited(self) -> None:
        if self._reach is not None:
            raise Fault("blocked", "This key is held to places: whole tables are out of its reach.")

    def check_time(self) -> None:
        """Raise Fault("invalid") if the call has used up its processor time; for loops that run no statement."""
        # The first clock costs a tenth of the second, which is never ahead of it.
        if time.monotonic() > self._deadline and time.thread_time() > self._last_moment:
            raise Fault("invalid", TOO_LONG)

    @property
    def now(self) -> str:
        """Return the time of this transaction, always the same: ISO 8601 UTC with milliseconds and Z."""
        if not self._now:
            self._take_snapshot()
            self._now = utc_now(self._engine.clock())
        return self._now

    @property
    def file(self) -> str:
        return self._engine.filename

    @property
    def tables(self) -> Tables:
        """Return whole rows of any table, for an export of everything and its import."""
        self._check_unlimited()
        self._take_snapshot()
        return self._engine.tables

    def new_id(self, prefix: str) -> str:
        """Return a fresh id that sorts by time, `prefix_` first."""
        self._take_snapshot()
        return new_id(prefix, self._engine.clock())

    def one(self, query: str, row: Row[R], /, **params: object) -> R | None:
        rows = self._execute(query, params, self._run).fetchall()
        return row(*rows[0]) if rows else None

    def all(self, query: str, row: Row[R], /, **params: object) -> list[R]:
        return [row(*values) for values in self._execute(query, params, self._run).fetchall()]

    def rows(self, query: str, /, **params: object) -> list[tuple[Any, ...]]:
        return self._execute(query, params, self._run).fetchall()

    def ask(self, query: str, row: Row[R], /, **params: object) -> Callable[[], list[R]]:
        """Return a function that returns every row of `query`, as it is now: the next statements may go with it."""
        rows = self._execute(query, params, self._engine.ahead)
        return lambda: [row(*values) for values in rows]

    def send(self, query: str, /, **params: object) -> None:
        """Runs `query` for its effect, before the next statement or with it."""
        self._execute(query, params, self._engine.run_ahead)

    def each(self, query: str, row: Row[R], /, **params: object) -> Iterator[R]:
        """Yield the rows of `query` as they are read; these rows must not be changed meanwhile."""
        self._budget.streamed = True
        for values in self._execute(query, params, self._run):
            self.check_time()
            yield row(*values)

    def run(self, query: str, /, **params: object) -> int:
        self._execute(query, params, self._run).fetchall()
        return self._engine.changes()

    def tokenize(self, text: str) -> list[Token]:
        return self._engine.tokenize(text)

    def can_revert(self, parts: Callable[[], Iterable[bytes]]) -> bool:
        """Return whether the undo data of a call, the last part first, can be reverted, as far as a read can see."""
        self._check_unlimited()
        self._take_snapshot()
        return self._engine.can_revert(parts)

    def revert_changes(self, changes: bytes) -> bool:
        """Reverts the undo data of a call; False, with nothing changed, if a row has changed since."""
        self._check_unlimited()
        self.flush_deferred()
        return self._engine.revert_changes(changes)

    def backup_committed(self, target: Path, progress: Callable[[int, int], None] | None = None) -> None:
        """Copies the committed state to a file, without the writes of this transaction."""
        self._check_unlimited()
        self._engine.backup_committed(target, progress)

    @property
    def embedding_model(self) -> tuple[str, int] | None:
        """Return identity and dimensions of the configured model; None without a model, or if it cannot be read."""
        embedder = self.context.embedder
        try:
            return (embedder.identity, embedder.dimensions) if embedder else None
        except (OSError, ValueError):
            return None

    def preload(
        self,
        vectors: "Mapping[str, Embedding]",
        derived: Mapping[tuple[Callable[[str], object], str], object] = MappingProxyType({}),
    ) -> None:
        """Adds embeddings, and results of functions of a text, computed before the transaction began."""
        self._vectors.update(vectors)
        self._derived.update(derived)

    def derived(self, function: Callable[[str], R], text: str) -> R:
        """Return `function(text)`; a preloaded result is not computed again."""
        if not self._derived:
            return function(text)
        key = (function, text)
        return self._derived[key] if key in self._derived else function(text)

    def drop_embeddings(self, texts: Sequence[str]) -> None:
        """Frees the embeddings of texts that are not needed again."""
        for text in texts:
            self._vectors.pop(text, None)

    def embed(self, texts: Sequence[str]) -> "list[Embedding]":
        """Return the embedding of each text; preloaded embeddings are not computed again."""
        vectors, embedder = self._vectors, self.context.embedder
        missing = [text for text in texts if text not in vectors]
        if missing:
            if embedder is None:
                raise Fault("disabled", "No embedding model is configured.")
            try:
                vectors.update(zip(missing, embedder.embed(missing), strict=True))
            except (OSError, ValueError) as error:
                raise Fault("disabled", "The embedding model cannot be read.") from error
        return [vectors[text] for text in texts]

    def defer(self, flush: Callable[["Tx", list[Item]], Iterator[None] | None], item: Item, size: int = 0) -> None:
        """Keeps `item`, of about `size` bytes, for `flush(tx, items)`: once for all calls of the group before they
        commit, and earlier if much is kept, since a call may write more than fits into memory, or into one value.
        """
        self._deferred.append((flush, item))
        self._deferred_bytes += size
        if self._deferred_bytes > SLICE_BYTES:
            self.flush_deferred()
            if self.after_slice is not None:
                with self.held_to(None):
                    self.after_slice()

    def flush_deferred(self) -> None:
        """Runs deferred work now, so that later statements of the transaction see it."""
        pending = self._deferred
        if not pending:
            return
        if self._before_call is None:
            self._before_call = pending[: self._call_start]
        self._deferred = []
        self._deferred_bytes = self._call_start = 0
        by_flush: dict[Flush, list[Any]] = {}
        for flush, item in pending:
            by_flush.setdefault(flush, []).append(item)
        if self._reach is not None:
            with self.held_to(None):
                self._flush(by_flush)
        else:
            self._flush(by_flush)

    def _flush(self, by_flush: Mapping[Flush, list[Any]]) -> None:
        steps = [step for flush, items in by_flush.items() if (step := flush(self, items)) is not None]
        while steps:  # each in turn, so that what they ask for comes together
            steps = [step for step in steps if next(step, _END) is not _END]

    def on_rollback(self, undo: Callable[[], None]) -> None:
        """Runs `undo()` if this call, or the transaction, is rolled back: for effects outside the database."""
        self._on_rollback.append(undo)

    def after_commit(self, work: Callable[..., object], *args: Hashable) -> None:
        """Runs `work(tx, *args)` once, in a new transaction, after this is on disk and before its calls are
        answered.

        A process killed in between has committed this transaction and not run the work: the database must hold all that
        is needed to run it later, as often as it takes. Slices that it returns go on after the answers, in a server.
        """
        self._after_commit[work, args] = None

    def is_after_commit(self, work: Callable[..., object], *args: Hashable) -> bool:
        """Return whether `after_commit` was given this work in this transaction."""
        return (work, args) in self._after_commit

    @property
    def work_after_commit(self) -> list[Callable[["Tx"], object]]:
        """Return the work given to `after_commit`, as functions of the transaction."""
        return [lambda tx, work=work, args=args: work(tx, *args) for work, args in self._after_commit]

    def rolled_back(self) -> None:
        """Undoes effects outside the database, after the transaction was rolled back."""
        self._undo_outside(0)

    def _undo_outside(self, start: int) -> None:
        while len(self._on_rollback) > start:
            self._on_rollback.pop()()

    def begin_call(self, call_context: CallContext) -> None:
        """Starts the next call of the group: provenance and deferred work belong to it from here on."""
        self.call_context = call_context
        self.writer = call_context[:3]
        self._call_start = len(self._deferred)
        self._before_call = None
        self._touched = 0
        self._first_targets = []
        self._targets = []
        self._rollback_start = len(self._on_rollback)
        self.progress = None

    def discard_call(self) -> None:
        """Drops the deferred work of the current call and undoes its effects outside, after a rollback."""
        self._undo_outside(self._rollback_start)
        earlier = self._before_call
        self._deferred = self._deferred[: self._call_start] if earlier is None else earlier
        self._deferred_bytes = 0

    def add_target(self, target: Target) -> None:
        """Notes a memory that the call touches, for the audit; without a recorder of undo only the first are kept."""
        if self.after_slice is None and len(self._targets) >= TARGETS_SHOWN:
            self._touched += 1
        else:
            self._targets.append(target)

    def take_targets(self) -> list[Target]:
        """Return the memories that the call has touched since the last time."""
        targets = self._targets
        self._first_targets = self._first_targets or targets
        self._touched += len(targets)
        self._targets = []
        return targets

    @property
    def touched(self) -> tuple[int, list[Target]]:
        """Return how many memories the call has touched, and the first of them."""
        return self._touched + len(self._targets), self._first_targets or self._targets

    @property
    def has_deferred(self) -> bool:
        return self._before_call is not None or len(self._deferred) > self._call_start

    def _execute(self, query: str, params: dict[str, object], run: Callable[[str, Params], R]) -> R:
        for name, value in params.items():
            if isinstance(value, (list, tuple)):
                buffer = bytearray()  # here and not in a function: a call has a dozen statements with lists
                encode_json_into(value, buffer)
                params[name] = buffer.decode()
        if self._begin_pending:
            self._take_snapshot()
        self.check_time()
        self._budget.new_statement = True
        if self._reach is not None and query in table_facts().whole:
            with self.held_to(None):
                return run(self._statements[query], params)
        return run(self._statements[query], params)

    def _take_snapshot(self) -> None:
        if self._begin_pending:
            self._begin_pending = False
            self._run("BEGIN", None)
