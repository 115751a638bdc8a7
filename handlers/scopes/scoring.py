"""The score of an entry for a query: points for relations, tags, scope, priority and recency, and text relevance."""

import math
from datetime import datetime, timedelta

from kernel.core.times import stored_time

# The points and the days are those of the original.
RELATION_POINTS = 5.0
POINTS_PER_TAG = 3.0
MAX_TAGS_COUNTED = 3
SCOPE_POINTS = 2.0
TEXT_POINTS = 1.0
PRIORITY_POINTS = 1.5
RECENCY_POINTS = 0.5
FRESH_DAYS = 30.0
_MAX_POINTS = RELATION_POINTS + POINTS_PER_TAG * MAX_TAGS_COUNTED + SCOPE_POINTS + TEXT_POINTS + PRIORITY_POINTS
# With a text, relevance counts 70 % and all points but recency 30 %, on a scale of 10.
_RELEVANCE_SHARE = 0.7
_POINTS_SHARE = 0.3
_MAX_TEXT_SCORE = 10.0
_DAY = timedelta(days=1)
_SCORE_DIGITS = 4
# The cosine whose similarity is .5, and the scale of the logistic: at .7, a cosine of .2, 17 of 20 questions find what
# answers them in other words; at a cosine of .4 it was 8.
_EVEN_COSINE, _COSINE_SCALE = 0.12, 0.094


def scope_points(depth: int, levels: int) -> float:
    """Return the points for a scope in a chain of `levels`; depth 0 is the nearest."""
    return SCOPE_POINTS * (levels - depth) / levels


def score(
    scope: float,
    age_days: float,
    priority: int | None = None,
    tags: int = 0,
    *,
    related: bool = False,
    relevance: float | None = None,
) -> float:
    """Return the score of an entry, higher is better: up to 19 without a text, up to 10.5 with one.

    `scope` are the `scope_points` of its scope; `tags` is the number of requested tags it has; `relevance` in [0, 1] is
    the fused evidence of the text, None without a text.
    """
    rest = scope + PRIORITY_POINTS * (priority or 0) / 100
    if tags:
        rest += POINTS_PER_TAG * min(tags, MAX_TAGS_COUNTED)
    if related:
        rest += RELATION_POINTS
    if relevance is not None:
        rest = _MAX_TEXT_SCORE * (_RELEVANCE_SHARE * relevance + _POINTS_SHARE * (rest + TEXT_POINTS) / _MAX_POINTS)
    return round(rest + recency_points(age_days), _SCORE_DIGITS)


def recency_points(age_days: float) -> float:
    """Return `RECENCY_POINTS` for a new entry, falling linearly to 0 over `FRESH_DAYS`."""
    if age_days >= FRESH_DAYS:
        return 0.0
    return RECENCY_POINTS if age_days <= 0 else RECENCY_POINTS * (1 - age_days / FRESH_DAYS)


def age_days(created_at: str, now: datetime) -> float:
    """Days from a stored time to `now`."""
    return (now - stored_time(created_at)) / _DAY


def cosine(similarity: float) -> float:
    """Return the cosine for a similarity in [0, 1]: .5 is between related and unrelated texts, a logistic
    elsewhere.
    """
    if not 0 < similarity < 1:
        return 2 * similarity - 1
    return _EVEN_COSINE + _COSINE_SCALE * math.log(similarity / (1 - similarity))
