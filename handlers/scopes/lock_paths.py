"""The paths of file locks: which are accepted, and the one form that every spelling of a path has."""

import unicodedata

from handlers.scopes import errors
from kernel.core.lazy_regex import regex

MAX_PATH_LENGTH = 4096  # PATH_MAX of Linux
MAX_AGENT_LENGTH = 1024
_ABSOLUTE_PATH = regex(r"/|[A-Za-z]:[\\/]|\\\\")
_PARENT_SEGMENT = regex(r"(?:^|[\\/])\.\.(?:[\\/]|$)")


def normal_path(path: str) -> str:
    """Return a valid path in NFC, without empty segments, `.` segments and a separator at its end.

    A drive is in upper case with slashes, `C:/src/a.py`; a network path has backslashes, `\\\\host\\share`.
    """
    composed = unicodedata.normalize("NFC", path)
    if composed.startswith("/"):
        return "/" + "/".join(_segments(composed, "/"))
    segments = _segments(composed.replace("\\", "/"), "/")
    if composed.startswith("\\"):
        return "\\\\" + "\\".join(segments)
    drive, *rest = segments
    return f"{drive.upper()}/{'/'.join(rest)}"


def check_path(path: str) -> None:
    """Raises a Fault for a path that is relative, or that has `..` segments or line breaks."""
    if not _ABSOLUTE_PATH.match(path):
        raise errors.invalid("file_path", "must be absolute", "give the full path from the root")
    if _PARENT_SEGMENT.search(path):
        raise errors.invalid("file_path", "must not hold .. segments", "give the path it stands for")
    if "\r" in path or "\n" in path:
        raise errors.invalid("file_path", "must not hold line breaks")


def accepts(path: str, agent: str) -> bool:
    """Return whether these tools would accept a lock of this path and holder; a lock they reject could not be
    released.
    """
    fits = len(path) <= MAX_PATH_LENGTH and len(agent) <= MAX_AGENT_LENGTH and bool(agent.strip())
    plain = not any(letter in path for letter in "\0\r\n") and "\0" not in agent
    return fits and plain and bool(_ABSOLUTE_PATH.match(path)) and not _PARENT_SEGMENT.search(path)


def _segments(path: str, separator: str) -> list[str]:
    return [segment for segment in path.split(separator) if segment not in {"", "."}]
