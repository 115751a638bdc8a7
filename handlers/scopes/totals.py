"""Pages of lists, and their totals."""

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from msgspec import Struct

from kernel.store.transaction import Tx

MAX_PAGE_ROWS = 100  # the cap of the contract
R = TypeVar("R")


class _Paged(Protocol):
    limit: int | None
    offset: int | None


class Count(Struct, rename="camel"):
    total_count: int
    returned_count: int
    has_more: bool


def read_page(
    tx: Tx, rows: str, count: str, row: Callable[..., R], request: _Paged, default: int = 20, /, **filters: Any
) -> tuple[list[R], Count]:
    """Return a page of the rows of a statement, `default` if the request has no limit, and its totals.

    The statement `count` counts the rows that match, and runs only if the page is full.
    """
    limit, offset = min(default if request.limit is None else request.limit, MAX_PAGE_ROWS), request.offset or 0
    page = tx.all(rows, row, limit=limit, offset=offset, **filters)
    end = offset + len(page)
    is_last = len(page) < limit and (page or offset == 0)
    total = end if is_last else tx.one(count, int, **filters) or 0
    return page, Count(total, len(page), end < total)
