"""The rows of a tenant that differ between two databases, by digests that the databases make themselves."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from heapq import merge
from itertools import count, groupby, islice
from operator import itemgetter
from typing import Any, NamedTuple

from kernel.engines.postgres.statements import run

_BUCKET_DIGITS = 2  # hexadecimal, of the digest of a key: 256 buckets a table
_PAGE = 2000  # digests of rows that are fetched at once
_MOST_ROWS = 100_000  # that are looked for by their digests, which then take 8 MB


class Table(NamedTuple):
    """A table, and as SQL its columns and those of its primary key, each without the tenant."""

    name: str
    columns: str
    key: str

    def rows(self, number: int) -> str:
        """Return the digests of the key and of the whole of each row of a tenant."""
        return (
            f'SELECT md5(ROW({self.key})::text) COLLATE "C" AS k, md5(ROW({self.columns})::text) AS d '
            f'FROM quipu_data."{self.name}" WHERE tenant = {number}'
        )

    def buckets(self, number: int) -> str:
        return (
            f"SELECT '{self.name}' AS name, left(k, {_BUCKET_DIGITS}) AS bucket, md5(string_agg(d, '' ORDER BY k)) "
            f"FROM ({self.rows(number)}) AS r GROUP BY 2"
        )


class Difference:
    """The writes that make a tenant of the target equal to that of the source.

    Both are connections in a transaction, and come with the number of the tenant there.
    """

    def __init__(self, source: Any, target: Any, sent: int, arriving: int) -> None:
        self._source = source
        self._target = target
        self._sent = sent
        self._arriving = arriving
        self._streams = count()
        self._buckets: dict[str, list[str]] = {}

    def tables(self, among: Sequence[Table] = ()) -> list[Table]:
        tables = among or _tables(self._source)
        with ThreadPoolExecutor(1) as beside:
            digests = beside.submit(_digests, self._source, tables, self._sent)
            here = _digests(self._target, tables, self._arriving)
            there = digests.result()
        self._buckets = {}
        for name, bucket in sorted(at for at in there.keys() | here.keys() if there.get(at) != here.get(at)):
            self._buckets.setdefault(name, []).append(bucket)
        return [table for table in tables if table.name in self._buckets]

    def copy(self, table: Table) -> int:
        """Write the differences of such a table; return the number of rows sent."""
        self._target.execute(f"SET LOCAL quipu.tenant = '{self._arriving}'")
        there = f'SELECT EXISTS (SELECT FROM quipu_data."{table.name}" WHERE tenant = {self._arriving})'
        if not self._target.execute(there).fetchone()[0]:
            return self._send(table, "")
        keys = list(islice(self._differing(table), _MOST_ROWS + 1))
        # All at once: a unique value may have gone from one row to another.
        return self._replace(table, f"AND {_chosen(table, keys)}" if len(keys) <= _MOST_ROWS else "")

    def _differing(self, table: Table) -> Iterator[str]:
        sides = (
            self._stream(self._source, table.rows(self._sent), self._buckets[table.name]),
            self._stream(self._target, table.rows(self._arriving), self._buckets[table.name]),
        )
        for key, group in groupby(merge(*sides), key=itemgetter(0)):
            digests = [digest for _, digest in group]
            if len(digests) != len(sides) or digests[0] != digests[1]:
                yield key

    def _stream(self, db: Any, rows: str, buckets: list[str]) -> Iterator[tuple[str, str]]:
        query = f"SELECT k, d FROM ({rows}) AS r WHERE left(k, {_BUCKET_DIGITS}) = ANY ({_listed(buckets)}) ORDER BY k"
        cursor = f"difference_{next(self._streams)}"  # those that are not read to their end stay open
        db.execute(f"DECLARE {cursor} NO SCROLL CURSOR FOR {query}", prepare=False)
        while page := db.execute(f"FETCH {_PAGE} FROM {cursor}", prepare=False).fetchall():
            yield from page
        db.execute(f"CLOSE {cursor}", prepare=False)

    def _replace(self, table: Table, condition: str) -> int:
        self._target.execute(f'DELETE FROM quipu_data."{table.name}" WHERE tenant = {self._arriving} {condition}')
        return self._send(table, condition)

    def _send(self, table: Table, condition: str) -> int:
        query = f'SELECT {table.columns} FROM quipu_data."{table.name}" WHERE tenant = {self._sent} {condition}'
        arriving = f'COPY quipu_data."{table.name}" ({table.columns}) FROM STDIN'
        with self._source.cursor() as reader, self._target.cursor() as writer:
            with reader.copy(f"COPY ({query}) TO STDOUT") as output, writer.copy(arriving) as target:
                for block in output:
                    target.write(block)
            return int(writer.rowcount)


def forget_rows(db: Any, number: int) -> int:
    return sum(
        db.execute(f'DELETE FROM quipu_data."{table.name}" WHERE tenant = {number}').rowcount for table in _tables(db)
    )


def _tables(db: Any) -> list[Table]:
    return [Table(*row) for row in run(db, "engine.moving.tables").fetchall()]


def _digests(db: Any, tables: Sequence[Table], number: int) -> dict[tuple[str, str], str]:
    rows = db.execute(" UNION ALL ".join(table.buckets(number) for table in tables)).fetchall()
    return {(name, bucket): digest for name, bucket, digest in rows}


def _chosen(table: Table, keys: Sequence[str]) -> str:
    return f"md5(ROW({table.key})::text) = ANY ({_listed(keys)})"


def _listed(digests: Sequence[str]) -> str:
    return f"CAST('{{{','.join(digests)}}}' AS text [])"
