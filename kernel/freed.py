"""Gives memory that was freed back to the operating system."""

import ctypes
import sys
from collections.abc import Callable


def _nothing(_keep: int) -> int:
    return 0


def _found() -> Callable[[int], int]:
    """`malloc_trim` where the C library has it: glibc keeps what threads freed between what they still use."""
    if sys.platform != "linux":
        return _nothing
    return getattr(ctypes.CDLL(None), "malloc_trim", _nothing)


_trim = _found()


def give_back() -> bool:
    """Whether anything was given back; other threads wait for a few milliseconds at most when they allocate."""
    return _trim(0) == 1
