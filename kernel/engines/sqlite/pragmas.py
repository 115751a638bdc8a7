"""The settings of every connection."""

from collections.abc import Mapping

_MMAP_BYTES = (1 << 31) - (1 << 16)  # SQLITE_MAX_MMAP_SIZE, the most that SQLite maps
_WRITER_CACHE_KIB = 16384
_READER_CACHE_KIB = 4096  # for pages beyond the mapped part of a large file; 16,384 took 24 MB more at 1M


def settings(*, readonly: bool, durable: bool) -> Mapping[str, str | int]:
    """Return the pragmas of a connection, by name."""
    return {
        "cache_size": -(_READER_CACHE_KIB if readonly else _WRITER_CACHE_KIB),
        "temp_store": "memory",
        "query_only": int(readonly),
        "mmap_size": _MMAP_BYTES if readonly else 0,
        "synchronous": "FULL" if durable else "NORMAL",
        # On macOS fsync leaves data in the cache of the drive; elsewhere SQLite ignores these two.
        "fullfsync": int(durable),
        "checkpoint_fullfsync": 1,
    }
