"""Reads in the folder of git of a checkout: commits by the start of their hash, and files as they were at a time.

Hooks load this module, so it imports nothing that takes time. It starts no process and reads ordinary files of that
folder alone: what lies in other repositories, or was not fetched, it does not know.
"""

import os
from _bisect import bisect_left, bisect_right

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from io import FileIO

    from kernel.core import checkout
elif __name__ == "quipu_memory.git_history":
    from quipu_memory import checkout
else:
    from kernel.core import checkout

_HASH, _HEX = 20, 40  # SHA-1; a repository with longer hashes has no object of these
_HEADER, _FAN = 8, 1024  # of the index of a pack
_MOST_BYTES = 1 << 20  # of an object, of a part of an index, and of a log
_MOST_DELTAS = 64
_LARGEST_FILE = 1 << 62
_CHUNK = 4096
_OFFSET_DELTA, _REF_DELTA = 6, 7
_NOWHERE = "0" * _HEX


class Unknown(LookupError):
    """Nothing can be said, since git keeps it elsewhere, in another format, or no longer."""


class Folder:
    """The folder of git of a checkout: a place below a root that no link leads out of."""

    def __init__(self, root: str, own: str, common: str, is_over: "Callable[[], bool]") -> None:
        """Take the root of a checkout with its own `.git`, or for a linked one its folder and the common one."""
        self._own, self._common = (own, common) if own else (root, root)
        self._below = "" if own else ".git/"
        self._is_over = is_over
        self._names: dict[str, list[str]] = {}
        self._moves: list[bytes] | None = None
        self._contents: dict[str, bytes] = {}

    def commit(self, start: str) -> str:
        """Return the hash of the object that begins so; empty if there is none. Raises Unknown."""
        try:
            return self._find(start)[0]
        except KeyError:
            outside = ("shallow", "objects/info/alternates")
            if any(os.path.lexists(os.path.join(self._common, self._below + name)) for name in outside):
                raise Unknown from None
            return ""

    def at(self, seconds: float) -> list[str]:
        """Return the commits that the checkout was at before a time and at its first move after it; the one alone if it
        has not moved. Raises Unknown if it is younger, or does not keep its moves for so long.
        """
        if self._moves is None:
            log = checkout.read(self._own, f"{self._below}logs/HEAD", _MOST_BYTES + 1)
            if not 0 < len(log) <= _MOST_BYTES:
                raise Unknown
            self._moves = log.splitlines()
        at = bisect_right(self._moves, seconds, key=_moved_at)
        if at == len(self._moves):
            return [_hash(self._moves[-1], _HEX + 1)]
        before = _hash(self._moves[at], 0)
        if before == _NOWHERE:
            raise Unknown
        return [before, _hash(self._moves[at], _HEX + 1)]

    def blob(self, commit: str, path: str) -> str:
        """Return the hash of a file as of a commit, empty if it was not there."""
        name = _hash(self.content(commit), len("tree "))
        for part in path.split("/"):
            name = _entry(self.content(name), part.encode())
            if not name:
                break
        return name

    def content(self, name: str) -> bytes:
        if name not in self._contents:
            self._contents[name] = self._read(name, 0)
        return self._contents[name]

    def _read(self, name: str, depth: int) -> bytes:
        name, pack, offset = self._find(name)
        if not pack:
            with self._open(f"objects/{name[:2]}/{name[2:]}") as file:
                return _inflated(file, 0, _MOST_BYTES).partition(b"\0")[2]
        deltas: list[bytes] = []
        with self._open(f"objects/pack/{pack}.pack") as file:
            while True:
                if len(deltas) + depth > _MOST_DELTAS:
                    raise Unknown
                if self._is_over():
                    raise TimeoutError
                kind, content, base = _packed(file, offset)
                if kind < _OFFSET_DELTA:
                    break
                deltas.append(content)
                if kind == _REF_DELTA:
                    content = self._read(_read(file, base, _HASH).hex(), depth + len(deltas))
                    break
                offset = base
        for delta in reversed(deltas):
            content = _patched(content, delta, self._is_over)
        return content

    def _find(self, start: str) -> tuple[str, str, int]:
        """Return the hash of the first object that begins so, its pack, empty for none, and its place there; raises
        KeyError.
        """
        for name in self._listed(f"objects/{start[:2]}"):
            if name.startswith(start[2:]) and len(name) == _HEX - 2:
                return start[:2] + name, "", 0
        for name in self._listed("objects/pack"):
            if name.endswith(".idx") and (place := self._indexed(name.removesuffix(".idx"), start)):
                return place
        raise KeyError(start)

    def _listed(self, folder: str) -> list[str]:
        if self._is_over():
            raise TimeoutError
        if folder not in self._names:
            path = os.path.join(self._common, *(self._below + folder).split("/"))
            is_plain = os.path.realpath(path) == path and os.path.isdir(path)
            self._names[folder] = os.listdir(path) if is_plain else []
        return self._names[folder]

    def _indexed(self, pack: str, start: str) -> tuple[str, str, int] | None:
        with self._open(f"objects/pack/{pack}.idx") as index:
            head = _read(index, 0, _HEADER + _FAN)
            if head[:_HEADER] != b"\xfftOc\0\0\0\2":
                raise Unknown
            counts = [int.from_bytes(head[at : at + 4]) for at in range(_HEADER, _HEADER + _FAN, 4)]
            first = int(start[:2], 16)
            low, high = counts[first - 1] if first else 0, counts[first]
            if not 0 <= high - low <= _MOST_BYTES // _HASH:
                raise Unknown
            hashes = _read(index, _HEADER + _FAN + low * _HASH, (high - low) * _HASH)
            key = bytes.fromhex(start.ljust(_HEX, "0"))
            at = bisect_left(range(high - low), key, key=lambda row: hashes[row * _HASH : (row + 1) * _HASH])
            name = hashes[at * _HASH : (at + 1) * _HASH].hex()
            if not name or not name.startswith(start):
                return None
            offsets = _HEADER + _FAN + counts[-1] * (_HASH + 4)
            offset = int.from_bytes(_read(index, offsets + (low + at) * 4, 4))
            if offset >> 31:
                offset = int.from_bytes(_read(index, offsets + counts[-1] * 4 + (offset & 0x7FFFFFFF) * 8, 8))
        return name, pack, offset

    def _open(self, name: str) -> "FileIO":
        if self._is_over():
            raise TimeoutError
        return os.fdopen(checkout.open_file(self._common, self._below + name), "rb", buffering=0)


def _packed(file: "FileIO", offset: int) -> tuple[int, bytes, int]:
    """Return the kind of an object in a pack, its content or its difference to a base, and the place of the base or of
    the hash of that.
    """
    head = _read(file, offset, 64)
    kind, size, at = head[0] >> 4 & 7, head[0] & 15, 1
    while head[at - 1] & 0x80:
        size |= (head[at] & 0x7F) << (7 * at - 3)
        at += 1
    base = 0
    if kind == _OFFSET_DELTA:
        base = head[at] & 0x7F
        while head[at] & 0x80:
            at += 1
            base = ((base + 1) << 7) | (head[at] & 0x7F)
        base, at = offset - base, at + 1
    elif kind == _REF_DELTA:
        base, at = offset + at, at + _HASH
    return kind, _inflated(file, offset + at, size), base


def _moved_at(line: bytes) -> int:
    return int(line.partition(b"\t")[0].rsplit(b" ", 2)[1])


def _hash(line: bytes, at: int) -> str:
    return line[at : at + _HEX].decode("ascii")


def _read(file: "FileIO", at: int, size: int) -> bytes:
    if not 0 <= at < _LARGEST_FILE:  # a damaged index or pack
        raise Unknown
    file.seek(at)
    return file.read(size)


def _inflated(file: "FileIO", at: int, size: int) -> bytes:
    """Return the text of a deflated part of a file, which has at most so many bytes."""
    from zlib import decompressobj, error

    if size > _MOST_BYTES:
        raise Unknown
    file.seek(at)
    stream, content = decompressobj(), b""
    try:
        while not stream.eof and len(content) < size and (part := file.read(_CHUNK + size // 4)):
            content += stream.decompress(part, size - len(content))
    except error:
        raise Unknown from None
    return content


def _entry(tree: bytes, name: bytes) -> str:
    """Return the hash of an entry of a tree, empty without it."""
    sign = b" %b\0" % name
    at = tree.find(sign) + len(sign)
    return tree[at : at + _HASH].hex() if at >= len(sign) else ""


def _patched(base: bytes, delta: bytes, is_over: "Callable[[], bool]") -> bytes:
    """Return the text that a difference makes of another: parts of that, and bytes of its own. Raises TimeoutError."""
    parts: list[bytes] = []
    at, left = _after_sizes(delta), _MOST_BYTES
    while at < len(delta) and left >= 0:
        if len(parts) % 1024 == 1023 and is_over():
            raise TimeoutError
        order = delta[at]
        at += 1
        if order & 0x80:
            start = size = 0
            for bit in range(7):
                if order >> bit & 1:
                    value = delta[at] << (8 * bit if bit < 4 else 8 * (bit - 4))
                    start, size = (start | value, size) if bit < 4 else (start, size | value)
                    at += 1
            parts.append(base[start : start + (size or 0x10000)])
        else:
            parts.append(delta[at : at + order])
            at += order
        left -= len(parts[-1])
    if left < 0:
        raise Unknown
    return b"".join(parts)


def _after_sizes(delta: bytes) -> int:
    """Return where the orders of a difference begin, after the sizes of the texts before and after."""
    at = 0
    for _ in range(2):
        while delta[at] & 0x80:
            at += 1
        at += 1
    return at
