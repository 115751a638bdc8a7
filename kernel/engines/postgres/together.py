"""Statements that are sent together: those whose rows are not waited for go with the next whose rows are."""

from collections.abc import Iterator, Sequence
from typing import Any

from kernel.engines.postgres.driver import load_driver, run_together, timed
from kernel.engines.postgres.session import Session

Row = tuple[Any, ...]
_CHANGES = ("INSERT", "UPDATE", "DELETE", "WITH")


class Sent:
    """A statement, and its rows once it has `left` and run: who reads them sends it, with all before it."""

    __slots__ = ("_together", "left", "prepare", "rows", "status", "text", "values")

    def __init__(self, together: "Together", text: str, values: Sequence[Any], *, prepare: bool) -> None:
        self._together = together
        self.text = text
        self.values = values
        self.prepare = prepare
        self.left = False
        self.rows: list[Row] = []
        self.status = ""

    def __iter__(self) -> Iterator[Row]:
        return iter(self.fetchall())

    def fetchall(self) -> list[Row]:
        if not self.left:
            self._together.run()
        return self.rows


class Together:
    """The statements of one session that wait to be sent. `count` is how many rows the last statement changed, and
    `total` how many all have.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._psycopg = load_driver()
        self._waiting: list[Sent] = []
        self.count = 0
        self.total = 0

    def add(self, text: str, values: Sequence[Any] = (), *, prepare: bool = True) -> Sent:
        """Return a statement that is sent with the next that is run."""
        sent = Sent(self, text, values, prepare=prepare)
        self._waiting.append(sent)
        return sent

    def run(self) -> None:
        """Runs everything that waits, in one round trip; raises Fault."""
        try:
            self.run_or_raise()
        except self._psycopg.Error as error:
            self._session.fail(error)

    def run_or_raise(self) -> None:
        """Runs everything that waits; psycopg's errors are its own."""
        waiting, self._waiting = self._waiting, []
        if not waiting:
            return
        for sent in waiting:
            sent.left = True
        with timed(self._session.held):
            outcomes = run_together(self._session.held, [(sent.text, sent.values, sent.prepare) for sent in waiting])
        for sent, (rows, status, count) in zip(waiting, outcomes, strict=True):
            sent.rows, sent.status = rows, status
            self.count = 0 if status.startswith("SELECT") else count
            self.total += self.count

    def has_changes(self) -> bool:
        return any(sent.text.startswith(_CHANGES) for sent in self._waiting)

    def waits_after(self, sent: Sent) -> bool:
        return bool(self._waiting) and self._waiting[-1] is not sent

    def drop(self, since: Sent | None = None) -> None:
        """Forgets what waits: all, or this statement and those after it."""
        del self._waiting[self._waiting.index(since) if since is not None else 0 :]
