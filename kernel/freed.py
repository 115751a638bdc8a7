"""Gives memory that was freed back to the operating system."""

from collections.abc import Callable
from functools import cache


def give_back() -> bool:
    """Whether anything was given back; False too where the C library keeps nothing, or cannot be asked."""
    return _trim()(0) == 1


@cache
def _trim() -> Callable[[int], int]:
    """`malloc_trim` of glibc, which keeps what was freed between what is still used; looked for at the first use."""
    try:
        import ctypes

        return ctypes.CDLL(None).malloc_trim
    except (ImportError, OSError, TypeError, AttributeError):
        return _nothing


def _nothing(_keep: int) -> int:
    return 0
