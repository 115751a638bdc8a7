"""What reading does to a memory: it is counted, dated and strengthened."""

from collections.abc import Sequence
from datetime import datetime

from handlers.brain.schemas import Memory
from handlers.brain.settings import HALF_LIFE_DAYS
from kernel.settings import setting
from kernel.store.transaction import Tx

STEP = 0.1
_DAY = 86_400


def touch(tx: Tx, db: str, seen: Sequence[Memory]) -> None:
    """Counts one access of each of these memories, in one statement that leaves the index alone."""
    if not seen:
        return
    half_life = half_life_days(tx)
    rows = [(row.id, min(1.0, strength(row, tx.now, half_life) + STEP)) for row in seen]
    tx.run("brain.decay.record_access", db=db, rows=rows, now=tx.now)


def half_life_days(tx: Tx) -> float:
    """After how many days without access a memory counts half."""
    return setting(tx, HALF_LIFE_DAYS)


def strength(row: Memory, now: str, half_life: float) -> float:
    """How present a memory is, in [0, 1]: its decay_score, halved with every half-life since it was last accessed."""
    return faded(row.decay_score, row.last_accessed_at or row.created_at, now, half_life)


def faded(decay_score: float, since: str, now: str, half_life: float) -> float:
    """What is left, in [0, 1], of a decay score that halves with every half-life since a moment."""
    age = (datetime.fromisoformat(now) - datetime.fromisoformat(since)).total_seconds() / _DAY
    return max(0.0, min(1.0, decay_score)) * 0.5 ** (max(0.0, age) / half_life)
