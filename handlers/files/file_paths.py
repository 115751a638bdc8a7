"""The paths of the tool `memory`: below /memories, in one form, and never outside."""

import unicodedata
from collections.abc import Sequence
from urllib.parse import unquote

from kernel.core.errors import Fault

ROOT = "/memories"
_MAX_SEGMENTS = 20
_MAX_BYTES = 1024
_DOTS = {".", ".."}
# Control and format characters, and the separators of lines and paragraphs.
_INVISIBLE = {"Cc", "Cf", "Zl", "Zp"}


def store_path(path: str) -> str:
    """Return the path in the store: NFC, without empty and `.` segments; empty for the root; or raises Fault."""
    if path != ROOT and not path.startswith(f"{ROOT}/"):
        raise Fault("invalid", f"Path must start with /memories, got: {path}")
    segments = [
        segment for segment in unicodedata.normalize("NFC", path[len(ROOT) :]).split("/") if segment not in {"", "."}
    ]
    if any(_DOTS.intersection(unquote(segment).split("/")) for segment in segments):
        raise Fault("invalid", f"Path {path} would escape /memories directory")
    _check(path, segments)
    return "".join(f"/{segment}" for segment in segments)


def shown(path: str) -> str:
    """Return a path of the store as the model knows it."""
    return f"{ROOT}{path}"


def ancestors(path: str) -> list[str]:
    """Return the directories above a path, without the root."""
    segments = path.split("/")
    return ["/".join(segments[:end]) for end in range(2, len(segments))]


def below(path: str) -> dict[str, str]:
    """Return the bounds of the paths below a directory: those that begin with it and a slash."""
    return {"low": f"{path}/", "high": f"{path}0"}


def check_path(path: str) -> None:
    """Raise Fault("invalid") for a text that is no path in a store."""
    segments = path.split("/")[1:]
    if not path.startswith("/") or not all(segments) or _DOTS.intersection(segments):
        raise Fault("invalid", f"path: {path!r} must start with / and have no empty segment, and none of . and ..")
    if unicodedata.normalize("NFC", path) != path:
        raise Fault("invalid", f"path: {path!r} is not in Unicode Normalization Form C")
    _check(path, segments)


def listed_prefix(prefix: str) -> tuple[str, str]:
    """Return the bounds of the paths that begin with a prefix of whole segments; raises Fault("invalid")."""
    if not (prefix.startswith("/") and prefix.endswith("/")):
        raise Fault("invalid", f"path_prefix: {prefix!r} must begin and end with /")
    bounds = below(prefix[:-1])
    return bounds["low"], bounds["high"]


def _check(path: str, segments: Sequence[str]) -> None:
    if len(segments) > _MAX_SEGMENTS:
        raise Fault("invalid", f"Path {path} has {len(segments)} segments, more than {_MAX_SEGMENTS}")
    if len("".join(segments).encode()) + len(segments) > _MAX_BYTES:
        raise Fault("invalid", f"The path has more than {_MAX_BYTES} bytes")
    if any(unicodedata.category(letter) in _INVISIBLE for segment in segments for letter in segment):
        raise Fault("invalid", f"Path {path!r} has control or format characters")
