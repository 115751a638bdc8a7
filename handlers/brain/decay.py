"""What reading does to a memory: it is counted, dated and strengthened."""

from collections.abc import Sequence
from datetime import datetime

from handlers.brain.schemas import Memory
from handlers.brain.settings import HALF_LIFE_DAYS
from kernel.settings import setting
from kernel.store.transaction import Tx

ACCESS_GAIN = 0.1
_SECONDS_PER_DAY = 86_400


def record_access(tx: Tx, db: str, seen: Sequence[Memory]) -> None:
    """Counts one access of each of these memories, in one statement that leaves the index alone."""
    if not seen:
        return
    half_life = half_life_days(tx)
    rows = [(row.id, min(1.0, current_decay(row, tx.now, half_life) + ACCESS_GAIN)) for row in seen]
    tx.run("brain.decay.record_access", db=db, rows=rows, now=tx.now)


def half_life_days(tx: Tx) -> float:
    """After how many days without access a memory counts half."""
    return setting(tx, HALF_LIFE_DAYS)


def current_decay(row: Memory, now: str, half_life: float) -> float:
    """How present a memory is, in [0, 1]: its decay_score, halved with every half-life since it was last accessed."""
    return decayed(row.decay_score, row.last_accessed_at or row.created_at, now, half_life)


def decayed(decay_score: float, since: str, now: str, half_life: float) -> float:
    """What is left, in [0, 1], of a decay score that halves with every half-life since a moment."""
    age = (datetime.fromisoformat(now) - datetime.fromisoformat(since)).total_seconds() / _SECONDS_PER_DAY
    return max(0.0, min(1.0, decay_score)) * 0.5 ** (max(0.0, age) / half_life)
