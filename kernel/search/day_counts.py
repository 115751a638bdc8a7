"""How many documents of each space were last changed on each day: kept with every change, for the console."""

from collections import Counter
from collections.abc import Iterable

from kernel.store.transaction import Tx

_DAY_CHARS = len("2026-01-31")


def add(tx: Tx, documents: Iterable[tuple[str, str]], sign: int = 1) -> None:
    """Counts documents, given by space and time of the last change; with -1 they are taken away."""
    counts = Counter((space, at[:_DAY_CHARS]) for space, at in documents)
    if counts:
        tx.send("kernel.day_counts.add", rows=[(*key, sign * count) for key, count in counts.items()])


def count_mismatches(tx: Tx) -> int:
    """Return the number of wrong counts."""
    return tx.one("kernel.day_counts.differing", int) or 0


def total(tx: Tx) -> int:
    """Return the number of documents."""
    return tx.one("kernel.day_counts.total", int) or 0


def rebuild(tx: Tx) -> None:
    """Counts the documents anew."""
    tx.run("kernel.day_counts.clear")
    tx.run("kernel.day_counts.rebuild")
