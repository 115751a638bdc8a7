"""Statements of a key that is held to places: each table stands for its rows there, and writes elsewhere are refused.

A statement reads the tables that it names through common table expressions of the same names, and changes rows of these
alone. Triggers of the writer's connection check each row before it is written, whatever the statement.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import apsw

from kernel.core.errors import Fault
from kernel.security.permissions import Reach
from kernel.store.statements import table_facts

_INDEXED = re.compile(r" INDEXED BY \w+")
_NAME = re.compile(r"(?<![.:'\w])[a-z_]+\b")
_WITH = re.compile(r"WITH\s+(?:RECURSIVE\s+)?")
_TARGET = re.compile(r"(?:UPDATE|DELETE FROM) (\w+)(?: AS (\w+))?")
_TOKEN = re.compile(r"'[^']*'|[()]|\b(?:WHERE|RETURNING|FROM)\b")
_ROWS = "{name} AS (SELECT {rowid}held.* FROM main.{name} AS held WHERE {rule})"
_GUARD = (
    "CREATE TEMP TRIGGER held_{name}_{event} BEFORE {event} ON main.{name} "
    "WHEN is_held() AND NOT ({rule}) BEGIN SELECT may_write('{dialect}', NULL); END"
)
# Their rows follow those of the dialects, or hold ids alone.
_DERIVED = frozenset({"doc", "doc_day", "doc_place", "doc_witness", "history", "audit_shown"})
_GUARDS = "SELECT count(*) FROM temp.sqlite_schema WHERE type = 'trigger'"
_EVENTS: Mapping[str, tuple[str, ...]] = {"INSERT": ("NEW",), "UPDATE": ("OLD", "NEW"), "DELETE": ("OLD",)}
_UNWRITABLE = "This key may not write to {}."
_OUT_OF_REACH = "This key is held to places: {} cannot be limited to them."


def _nothing(_dialect: str, _place: str | None) -> bool:
    return False


class LimitedStatements(dict[str, str]):
    """The statements of a store for keys that are held to places, each made at its first use."""

    def __init__(self, statements: Mapping[str, str]) -> None:
        self._statements = statements

    def __missing__(self, name: str) -> str:
        text = self[name] = limited(self._statements[name])
        return text


class Limits:
    """The reach of one connection, None for all rows, as its SQL functions ask for it."""

    def __init__(self, db: apsw.Connection, statements: Mapping[str, str]) -> None:
        self.statements = LimitedStatements(statements)
        self.reach = None
        self._db = db
        functions: Mapping[str, Any] = {  # the driver's values have no types
            "is_held": self.is_held,
            "may_read": self.may_read,
            "may_enter": self.may_enter,
            "may_write": self.may_write,
            "may_write_below": self.may_write_below,
        }
        for name, function in functions.items():
            db.create_scalar_function(name, function, 2 if name != "is_held" else 0, flags=apsw.SQLITE_INNOCUOUS)

    @property
    def reach(self) -> Reach | None:
        return self._reach

    @reach.setter
    def reach(self, reach: Reach | None) -> None:
        self._reach = reach
        # A statement asks for every row that it may read: two thousand times in a recall.
        self._may_read = _nothing if reach is None else reach.readable.hold

    def guard(self) -> None:
        """Add the triggers that check writes, unless they are there: a rollback takes them back."""
        if self._db.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, -1) != 1:
            raise Fault("disabled", "The database has triggers of another program: keys held to places cannot write.")
        facts = table_facts()
        guards = [
            _GUARD.format(name=name, event=event, dialect=name.partition("_")[0], rule=_written(rule_of_writes, rows))
            for name, rule in facts.reach.items()
            if rule and name not in _DERIVED
            for event, rows in _EVENTS.items()
            if (rule_of_writes := facts.guard.get(f"{event} {name}") or facts.guard.get(name) or rule)
        ]
        if self._db.execute(_GUARDS).fetchall() != [(len(guards),)]:
            for guard in guards:
                self._db.execute(guard)

    def is_held(self) -> bool:
        """Return whether the statement is one of a call that is held to places."""
        return self.reach is not None

    def may_read(self, dialect: str, place: str | None) -> bool:
        """Return whether the call sees a place, None for something of no place."""
        return self._may_read(dialect, place)

    def may_enter(self, dialect: str, place: str) -> bool:
        """Return whether the call sees something at a place or below it."""
        return self.reach is not None and self.reach.readable.enter(dialect, place)

    def may_write(self, dialect: str, place: str | None) -> bool:
        """Return whether the call may write to a place; raises Fault("blocked") with its name if not."""
        if self.reach is not None and not self.reach.writable.hold(dialect, place):
            raise Fault("blocked", _UNWRITABLE.format(dialect if place is None else f"{dialect}:{place}"))
        return True

    def may_write_below(self, dialect: str, place: str) -> bool:
        """Return whether the call may write to something at a place or below it; raises Fault("blocked") if not."""
        if self.reach is not None and not self.reach.writable.enter(dialect, place):
            raise Fault("blocked", _UNWRITABLE.format(f"{dialect}:{place}"))
        return True


def limited(text: str) -> str:
    """Return a statement that reads and changes the rows of a reach alone; raises Fault("blocked") for a table that has
    no such rows.
    """
    rules = table_facts().reach
    text = _INDEXED.sub("", text)
    names = sorted(set(_NAME.findall(text)) & rules.keys())
    name_out_of_reach = [name for name in names if rules[name] is None]
    if name_out_of_reach:
        raise Fault("blocked", _OUT_OF_REACH.format(name_out_of_reach[0]))
    tables = {name: rule for name in names if (rule := rules[name])}
    if (target := _TARGET.match(text)) and (rule := tables.get(target[1])):
        text = _filtered(text, rule.format(t=target[2] or target[1]))
    if not tables:
        return text
    rowid = "held.rowid AS rowid, " if "rowid" in text else ""
    rows = ", ".join(_ROWS.format(name=name, rowid=rowid, rule=rule.format(t="held")) for name, rule in tables.items())
    own = _WITH.match(text)
    return f"{own[0]}{rows}, {text[own.end() :]}" if own else f"WITH {rows} {text}"


def _filtered(text: str, rule: str) -> str:
    """Return an UPDATE or a DELETE that changes no other rows than those of the rule."""
    depth, where, end = 0, None, len(text)
    for token in _TOKEN.finditer(text):
        depth += {"(": 1, ")": -1}.get(token[0], 0)
        if depth == 0 and token[0] == "WHERE":
            where = where or token
        elif depth == 0 and token[0] == "RETURNING":
            end = token.start()
    if where is None:
        return f"{text[:end]} WHERE {rule} {text[end:]}"
    return f"{text[: where.start()]}WHERE ({rule}) AND ({text[where.end() : end]}) {text[end:]}"


def _written(rule: str, rows: Sequence[str]) -> str:
    """Return the condition for a write of these rows of a trigger."""
    return " AND ".join(f"({rule.format(t=row)})" for row in rows).replace("may_read", "may_write")
