"""The documented range of each limit."""

from collections.abc import Mapping

_HOUR = 3600
_MEBIBYTE = 1024 * 1024

RANGES: Mapping[str, tuple[int, int]] = {
    "body": (1024, 1024 * _MEBIBYTE),
    "body_seconds": (1, _HOUR),
    "header_bytes": (1024, _MEBIBYTE),
    "header_count": (10, 10_000),
    "header_seconds": (1, _HOUR),
    "silent_seconds": (1, _HOUR),
    "idle_seconds": (1, 24 * _HOUR),
    "stall_seconds": (1, _HOUR),
    "connections": (1, 1_000_000),
    "address_connections": (0, 1_000_000),
    "depth": (8, 512),
    "values": (1000, 10_000_000),
    "rate": (0, 1_000_000),
    "burst": (1, 1_000_000),
    "store_milliseconds": (10, 1000 * _HOUR),
    "store_value": (32 * _MEBIBYTE, 1_000_000_000),
    "answer": (64 * 1024, 1024 * _MEBIBYTE),
    "unsent": (_MEBIBYTE, 1024 * 1024 * _MEBIBYTE),
    "queued": (_MEBIBYTE, 1024 * 1024 * _MEBIBYTE),
}
