"""Work under way when memory runs out: the call that holds it is refused, and the others are not lost with it."""

import time
from collections.abc import Callable
from typing import ParamSpec

P = ParamSpec("P")
_SECONDS = 0.01  # in which a call that got no memory ends
_TRIES = 200


def wait_for_memory() -> None:
    """Block the thread for the time in which another gives up its call, and the memory of that."""
    time.sleep(_SECONDS)


def until_memory(work: Callable[P, object], *args: P.args, **options: P.kwargs) -> None:
    """Do a short step that no caller could make up for, again if there is no memory for it.

    The call that holds the memory is refused soon, or answered. Raises MemoryError after two seconds.
    """
    for _ in range(_TRIES):
        try:
            work(*args, **options)
        except MemoryError:
            wait_for_memory()
        else:
            return
    raise MemoryError
