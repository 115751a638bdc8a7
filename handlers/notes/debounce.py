"""Spares a scan of a large folder where the last one is recent: recalls close together share it."""

import time
from pathlib import Path

_SHARED_FROM = 0.02  # seconds a scan takes; a shorter one costs less than the recall around it
_SHARE = 10  # times as long as a scan took it is shared, so that scans take at most a tenth of the time
_SHARED_MOST = 1.0  # seconds after which an edit by hand is seen in any case

_clean_until: dict[tuple[str, Path], float] = {}  # by database and project folder
clock = time.monotonic


def is_recent(database: str, root: Path) -> bool:
    """Return whether a scan of this folder that found no change may stand for another one."""
    return clock() < _clean_until.get((database, root), 0.0)


def found_no_change(database: str, root: Path, begun: float) -> None:
    """Lets a scan that began at this time of `clock` stand for the next ones."""
    taken = clock() - begun
    if taken >= _SHARED_FROM:
        _clean_until[database, root] = begun + min(_SHARED_MOST, _SHARE * taken)
