"""How well an entry answers a query: the weights of each part, and what a similarity makes of their sum."""

from datetime import datetime, timedelta

RELATION = 5.0
TAG = 3.0
MOST_TAGS = 3
SCOPE = 2.0
TEXT = 1.0
PRIORITY = 1.5
RECENCY = 0.5
FRESH_DAYS = 30.0
_MOST = RELATION + TAG * MOST_TAGS + SCOPE + TEXT + PRIORITY
_BY_RELEVANCE = 0.7
_BY_THE_REST = 0.3
_TOP = 10.0
_DAY = timedelta(days=1)
_DIGITS = 4


def standing(depth: int, levels: int) -> float:
    """What the place of a scope in a chain of `levels` is worth; depth 0 is the nearest."""
    return SCOPE * (levels - depth) / levels


def score(
    place: float,
    age_days: float,
    priority: int | None = None,
    tags: int = 0,
    *,
    related: bool = False,
    relevance: float | None = None,
) -> float:
    """The score of an entry, higher is better: up to 19 without a text, up to 10.5 with one.

    `place` is the `standing` of its scope; `tags` counts the asked-for tags it has; `relevance` in [0, 1] says how well
    it fits a text that was asked for, None where none was.
    """
    rest = place + PRIORITY * (priority or 0) / 100
    if tags:
        rest += TAG * min(tags, MOST_TAGS)
    if related:
        rest += RELATION
    if relevance is not None:
        rest = _TOP * (_BY_RELEVANCE * relevance + _BY_THE_REST * (rest + TEXT) / _MOST)
    return round(rest + recency(age_days), _DIGITS)


def recency(age_days: float) -> float:
    """`RECENCY` for what is new, falling to nothing over `FRESH_DAYS`."""
    if age_days >= FRESH_DAYS:
        return 0.0
    return RECENCY if age_days <= 0 else RECENCY * (1 - age_days / FRESH_DAYS)


def age_days(created_at: str, now: datetime) -> float:
    """Days from a time of the store to another."""
    return (now - datetime.fromisoformat(created_at)) / _DAY


def cosine(similarity: float) -> float:
    """The cosine of two vectors whose similarity in [0, 1] this is: opposite ones have 0, unrelated ones about .5."""
    return 2 * similarity - 1
