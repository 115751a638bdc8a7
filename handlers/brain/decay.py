"""Access tracking: every read of a memory counts, sets its time and raises its decay score."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from handlers.brain.settings import HALF_LIFE_DAYS
from kernel.calls.settings import setting
from kernel.core.times import stored_time
from kernel.store.transaction import Tx

ACCESS_GAIN = 0.1  # added to a decay score by an access
_SECONDS_PER_DAY = 86_400


class _DecayScore(NamedTuple):
    id: str
    decay_score: float
    since: str


def record_access(tx: Tx, db: str, ids: Sequence[str]) -> None:
    """Counts one access of each memory, in one statement that does not touch the index."""
    if not ids:
        return
    half_life = half_life_days(tx)
    scores = tx.all("brain.decay.scores", _DecayScore, db=db, ids=ids)
    rows = [(row.id, min(1.0, decayed(row.decay_score, row.since, tx.now, half_life) + ACCESS_GAIN)) for row in scores]
    tx.run("brain.decay.record_access", db=db, rows=rows, now=tx.now)


def half_life_days(tx: Tx) -> float:
    """Return the days without access after which a decay score halves."""
    return setting(tx, HALF_LIFE_DAYS)


def decayed(decay_score: float, since: str, now: str, half_life: float) -> float:
    """Return a decay score in [0, 1] after halving with every half-life since a time."""
    age = (datetime.fromisoformat(now) - stored_time(since)).total_seconds() / _SECONDS_PER_DAY
    return max(0.0, min(1.0, decay_score)) * 0.5 ** (max(0.0, age) / half_life)
