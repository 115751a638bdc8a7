"""Copies a database with SQLite's backup API while it is read and written."""

from collections.abc import Callable
from pathlib import Path

import apsw

_PAGES = 256  # 1 MB a step, after which progress is reported


def copy_database(db: apsw.Connection, target: Path, progress: Callable[[int, int], None] | None) -> None:
    target.touch(mode=0o600)
    copy = apsw.Connection(str(target))
    try:
        with copy.backup("main", db, "main") as job:
            while not job.done:
                job.step(_PAGES)
                if progress:
                    progress(job.page_count - job.remaining, job.page_count)
        copy.pragma("journal_mode", "delete")  # so no log belongs to it, see log_file.py
    finally:
        copy.close()
