"""The paths at which MCP has some of the dialects."""

from collections.abc import Iterator, Sequence
from itertools import combinations

from kernel.calls.dialect import Dialect


def selections(dialects: Sequence[Dialect]) -> Iterator[tuple[Dialect, ...]]:
    """Yield each dialect, and every set of several, in the order given."""
    for count in range(1, len(dialects) + 1):
        yield from combinations(dialects, count)


def address(dialects: Sequence[Dialect]) -> str:
    """Return the path at which MCP has just these dialects, such as /mcp/paths,common."""
    return f"/mcp/{','.join(dialect.name for dialect in dialects)}"


def unsubscribable(dialect: Dialect) -> Dialect:
    """Return the dialect without subscriptions: no process is notified of the writes of another."""
    offers = dialect.offers
    if offers.resources is None:
        return dialect
    return dialect._replace(offers=offers._replace(resources=offers.resources._replace(whole="")))
