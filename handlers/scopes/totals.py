"""The totals of a page of a list."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from kernel.store.transaction import Tx


class Count(Struct, rename="camel"):
    """How many rows match, how many of them a list returns, and whether more follow."""

    total_count: int
    returned_count: int
    has_more: bool


def count_rows(tx: Tx, statement: str, returned: int, page: Mapping[str, int], /, **filters: Any) -> Count:
    """Return the totals of a page of a list; `statement` counts the rows that match, and runs only if the
    page is full.
    """
    limit, offset = page["limit"], page["offset"]
    last = returned < limit and (returned > 0 or offset == 0)
    total = offset + returned if last else tx.one(statement, int, **filters) or 0
    return Count(total, returned, offset + returned < total)
