"""The output of `view`: a directory two levels deep with sizes, or the numbered lines of a file."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from handlers.files.file_paths import shown
from kernel.core.errors import Fault

_LEVELS = 2
_HIDDEN = "node_modules"
_MAX_LINES = 999_999
_MAX_SHOWN = 16_000  # characters
_UNITS = "BKMG"


def directory(path: str, sizes: Mapping[str, int]) -> str:
    listed: defaultdict[tuple[str, ...], int] = defaultdict(int)
    files = set[tuple[str, ...]]()
    for file, size in sizes.items():
        segments = tuple(file[len(path) + 1 :].split("/"))
        files.add(segments)
        for depth in range(min(_LEVELS, len(segments)) + 1):
            listed[segments[:depth]] += size
    top = listed.pop((), 0)
    where = shown(path)
    lines = [
        f"Here're the files and directories up to 2 levels deep in {where}, excluding hidden items and node_modules:",
        f"{readable_size(top)}\t{where}",
    ]
    for segments in sorted(listed):
        if not any(one.startswith(".") or one == _HIDDEN for one in segments):
            end = "" if segments in files else "/"
            lines.append(f"{readable_size(listed[segments])}\t{where}/{'/'.join(segments)}{end}")
    return _cut(lines, "look into one of its directories to see more")


def file(path: str, content: str, view_range: Sequence[int] | None) -> str:
    """Return the lines of a file, or those of a range; raises Fault("invalid") for too many."""
    lines = content.split("\n")
    if len(lines) > _MAX_LINES:
        raise Fault("invalid", f"File {shown(path)} exceeds maximum line limit of 999,999 lines.")
    first, last = 1, len(lines)
    if view_range:
        if len(view_range) != 2:
            allowed = "It should be the first line and the last, such as [1, 20], or -1 for the end"
            raise Fault("invalid", f"Error: Invalid `view_range` parameter: {[*view_range]}. {allowed}")
        first = max(1, view_range[0])
        last = last if view_range[1] == -1 else min(last, view_range[1])
    header = f"Here's the content of {shown(path)} with line numbers:"
    picked = numbered(lines, first, last)
    return _cut([header, *picked], "use view_range to see more") if picked else f"{header}\n"


def numbered(lines: Sequence[str], first: int, last: int) -> list[str]:
    return [f"{number:>6}\t{lines[number - 1]}" for number in range(first, last + 1) if number <= len(lines)]


def readable_size(size: int) -> str:
    """Bytes, K, M or G with at most one decimal."""
    unit = min((size.bit_length() - 1) // 10, len(_UNITS) - 1) if size else 0
    value = size / 1024**unit
    return f"{value:.0f}{_UNITS[unit]}" if value.is_integer() else f"{value:.1f}{_UNITS[unit]}"


def _cut(lines: Sequence[str], hint: str) -> str:
    """Return the lines that fit, at least the header and another, and a hint for the rest."""
    length, kept = 0, list[str]()
    for line in lines:
        length += len(line) + 1
        if length > _MAX_SHOWN and len(kept) > 1:
            kept.append(f"[{len(lines) - len(kept)} more lines: {hint}]")
            break
        kept.append(line)
    return "\n".join(kept)
