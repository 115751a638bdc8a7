"""Settings of `brain`."""

from handlers.brain.schemas import DATABASE_NAMES
from kernel.calls.settings import Setting, fraction, names
from kernel.core.lazy_regex import regex

DATABASES = "QUIPU_BRAIN_DATABASES"
HALF_LIFE_DAYS = "QUIPU_BRAIN_HALF_LIFE_DAYS"
DUPLICATE_DISTANCE = "QUIPU_BRAIN_DUPLICATE_DISTANCE"
_NAME = regex(r"[a-z0-9][a-z0-9_-]{0,63}")


def databases(value: str) -> tuple[str, ...]:
    """Return the database names without duplicates; raises ValueError for an invalid name."""
    databases = tuple(dict.fromkeys(names(value)))
    if not all(_NAME.fullmatch(name) for name in databases):
        raise ValueError("names of lower-case letters, digits, - and _, separated by commas")
    return databases


SETTINGS = (
    Setting(DATABASES, DATABASE_NAMES, databases, "the databases of brain, separated by commas", lists=("db", "dbs")),
    Setting(HALF_LIFE_DAYS, 30.0, fraction(0.001, 100_000), "days after which an unused memory counts half"),
    Setting(DUPLICATE_DISTANCE, 0.9, fraction(0, 2), "L2 distance below which smart_save_memory asks first"),
)
