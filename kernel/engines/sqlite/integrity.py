"""SQLite's integrity check, as lines that each name one error."""

import apsw

from kernel.engines.sqlite.errors import DAMAGED

MALFORMED = "database disk image is malformed"  # SQLite's words if a read meets damage


def integrity_errors(db: apsw.Connection, *, quick: bool = False) -> list[str]:
    """Return at most a hundred errors; a `quick` check does not compare indexes with their tables."""
    errors: list[str] = []
    try:
        for (text,) in db.execute(f"PRAGMA {'quick' if quick else 'integrity'}_check"):
            errors += [" ".join(line.split()) for line in str(text).splitlines()]
    except DAMAGED as error:
        errors.append(str(error))
    return [text for text in errors if text != "ok" and not text.startswith("***")]
