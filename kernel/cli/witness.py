"""Compares the places that memories name with a checkout: whether they are as they were when the memory was written.

Hooks start with this module, so it imports nothing that takes time. It reads ordinary files inside the checkout alone.
"""

import os
from _blake2 import blake2b  # hashlib loads OpenSSL, which takes longer than the rest
from binascii import Error, a2b_base64, crc32
from time import monotonic, process_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from hashlib import sha1

    from kernel.cli import git_history, local_client
    from kernel.core import checkout
elif __name__ == "quipu_memory.witness":
    from quipu_memory import checkout, git_history, local_client
else:
    from kernel.cli import git_history, local_client
    from kernel.core import checkout
if not TYPE_CHECKING:
    from _sha1 import sha1

FRESH, CHANGED, MOVED, GONE = "still fresh", "changed since", "moved to ", "gone now"
SECONDS, MOST_FILES = 0.01, 64  # of processor time, since a busy machine or a slow disk should not take the words away
_SEARCH_SHARE = 0.6  # of the time, since a search of a large index cannot be ended
_WAITING = 5  # times as long at most, by the clock
_ROOM = 48  # bytes for each mark, which a server leaves in its budget
_MOST_BYTES = 1 << 20  # of a file that is looked at
_MOST_INDEX = 64 << 20
_MOST_CANDIDATES, _MOST_ENTRIES = 32, 256
_LONGEST_LINE = 400  # that is searched for a symbol: of minified code the rest defines nothing that a person names
_LONGEST_PATH = 4096  # in an index, as in Linux
_DIGITS = 16  # of a digest
_SKETCH_BYTES, _SKETCH_LINES, _LEAST_LINE = 1 << 16, 16, 6
_ALIKE = 0.25  # of the lines of two files, from which on one counts as the other under a new name
_MOST_COMPARED = 8
# Files that may hold secrets are not looked at: the digest of a short line gives its text away.
_SECRET_STARTS, _SECRET_ENDS = (".git", ".env", "id_rsa", "id_ed25519"), (".pem", ".key", ".pfx", ".p12", ".env")
_SIGNS = "_@.+~/-"
_KEYWORDS = frozenset(
    (
        "actor async class const constructor def defp defmodule enum extension fn fun func function get impl interface "
        "let macro macro_rules! mod module namespace object override proc protocol record set struct sub trait type "
        "typedef union val var"
    ).split()
)
_NO_TYPES = frozenset(("await", "case", "else", "in", "new", "not", "return", "raise", "throw", "yield"))
_BRACKETS = ("}", ")", "]", "{", "end", "end;")
_ENTRY_PATH, _ENTRY_HASH = 62, 40  # of an entry of git's index, from its start

# A place: path, symbol, line, and the digest, state and project that the server knows of it.
Place = tuple[str, str, int, str, str, str]
News = list[tuple[int, str, str, int, str, str]]  # document, path, symbol, line, digest, state
_Sight = tuple[str, str, float]  # digest, state, time of the last change


def checkout_root(folder: str) -> str:
    """Return the root of the checkout that holds a folder, linked or not; empty outside of one."""
    try:
        here = os.path.realpath(folder)
    except OSError:  # the folder of this process may be gone
        return ""
    while not os.path.lexists(os.path.join(here, ".git")):
        here, below = os.path.dirname(here), here
        if here == below:
            return ""
    return here


def project_of(root: str) -> str:
    """Return the name of a project, which is that of the folder of its main worktree."""
    is_main = os.path.isdir(os.path.join(root, ".git"))
    return os.path.basename(root if is_main else checkout.main_worktree(root) or root)


def judged(answer: bytes, mark: str, folder: str, seconds: float = SECONDS) -> tuple[bytes, bytes]:
    """Return an answer with two words in the place of each mark, and the body that tells a server the news, if any.

    A mark stands between two copies of a random text that the client has sent, so that no memory can forge it.
    """
    parts = answer.split(mark.encode())
    if len(parts) < 3 or len(parts) % 2 == 0:
        return answer, b""
    root = checkout_root(folder)
    project = project_of(root)
    tree, room = Tree(root, project, seconds), len(parts) // 2 * _ROOM
    for at in range(1, len(parts), 2):
        try:
            before, after, *memory = local_client.read_json(a2b_base64(parts[at]))
            words = tree.words(*memory) if root else ""
        except (Error, ValueError, TypeError):
            words = before = after = ""
        parts[at] = f"{before}{words[: room - len(before + after)]}{after}".encode() if words else b""
        room -= len(parts[at])
    if not tree.news:
        return b"".join(parts), b""
    import json

    return b"".join(parts), json.dumps({"project": project, "seen": tree.news}).encode()


class Tree:
    """A checkout as it is, as far as there is time to look."""

    def __init__(self, root: str, project: str, seconds: float = SECONDS, most_files: int = MOST_FILES) -> None:
        self.news: News = []
        self._root = root
        self._project = project
        self._seconds, self._begun, self._end = seconds, process_time(), monotonic() + _WAITING * seconds
        self._left = most_files
        self._index: bytes | None = None
        self._history: git_history.Folder | None = None

    def words(self, doc: int, written_at: float, places: "Sequence[Place]") -> str:
        """Return the words for a memory; empty if nothing is to be said."""
        stale: list[str] = []
        fresh: list[bool] = []
        for path, name, line, digest, state, project in places:
            if project and project != self._project:
                continue
            try:
                now = self._judge(path, name, line, digest, written_at)
            except (checkout.Refused, OSError, ValueError, LookupError):
                continue
            if now is None:
                continue
            new_digest, new_state, changed_at = now
            if (new_digest, new_state, self._project) != (digest, state, project):
                self.news.append((doc, path, name, line, new_digest, new_state))
            if new_state:
                stale.append(f"{new_state}: {' '.join(filter(None, (path.rpartition('/')[2], name)))}")
            else:
                fresh.append(bool(digest) or changed_at <= written_at)
        return "; ".join(stale) or FRESH * (bool(fresh) and all(fresh))

    def _judge(self, path: str, name: str, line: int, digest: str, written_at: float) -> "_Sight | None":
        """Return digest, state, and the time of the last change of a place; None if nothing can be said of it."""
        if not path:
            commit = self._git().commit(digest.partition(":")[0] or name)
            return (f"{commit[:_DIGITS]}:::", "", 0.0) if commit else (digest, GONE, 0.0) if digest else None
        inside = path.removeprefix(self._root.replace("\\", "/") + "/")
        if not inside or inside[0] == "/" or inside[1:2] == ":":
            return None  # a file elsewhere
        return self._compared(inside, name, line, digest) if digest else self._first(inside, name, line, written_at)

    def _compared(self, inside: str, name: str, line: int, digest: str) -> "_Sight":
        """Return the same for a place by its digest of before."""
        blob, lines, sketch, elsewhere = digest.split(":", 3)
        inside = elsewhere or inside
        file = self._file(inside)
        if file is None:
            try:
                new_path = self._moved(inside, blob, sketch)
            except TimeoutError:
                new_path = ""
            return digest, f"{MOVED}{new_path}" if new_path else GONE, 0.0
        content, changed_at = file
        if _blob(content) == blob:
            return digest, "", changed_at
        new_lines = _digest_of(content, name, line, lines, self._is_over) if name or line else ""
        is_same = bool(lines) and new_lines == lines
        return digest, "" if is_same else GONE if name and not new_lines else CHANGED, changed_at

    def _first(self, path: str, name: str, line: int, written_at: float) -> "_Sight | None":
        """Return the same for a place that nothing is known of."""
        file, elsewhere, sight = self._file(path), "", None
        if file is None and not (sight := self._since(path, name, line, "", written_at, is_there=False)):
            paths = self._paths(path.encode())
            if len(paths) == 1:
                elsewhere = paths[0]
                file = self._file(elsewhere)
        if file and file[1] > written_at:
            sight = self._since(path, name, line, elsewhere, written_at, is_there=True)
        if sight:
            return sight
        if file is None:
            first, slash, _ = path.partition("/")
            return ("", GONE, 0.0) if slash and os.path.isdir(os.path.join(self._root, first)) else None
        digest = _digest_of_file(file[0], name, line, elsewhere, self._is_over)
        return (digest, "", file[1]) if digest else None

    def _since(
        self, path: str, name: str, line: int, elsewhere: str, written_at: float, *, is_there: bool
    ) -> "_Sight | None":
        """Return the same by the file as git had it when the memory was written; None if that is not certain.

        A memory may be about a change that was committed after it: the file has changed since only if it is neither as
        it was before nor as it was after the next move of the checkout.
        """
        try:
            commits, digests = self._digests_then(name, line, elsewhere or path, elsewhere, written_at, is_there)
        except TimeoutError:
            if self.news:  # there is more time for it the next time
                raise
            return None
        except (checkout.Refused, OSError, ValueError, LookupError):  # git does not know it
            return None
        if not all(digests):
            return None
        *others, last = (self._compared(path, name, line, digest) for digest in digests)
        is_stale = bool(last[1])
        if any(bool(other[1]) != is_stale for other in others) or (is_stale and is_there and commits == 1):
            return None
        return (*last[:2], 0.0)

    def _digests_then(
        self, name: str, line: int, path: str, elsewhere: str, written_at: float, is_there: bool
    ) -> tuple[int, list[str]]:
        """Return the number of the commits around a time, and the digests of a place as of these; of a file that is
        gone as of the first, since it has changed in any case.
        """
        history = self._git()
        commits = history.at(written_at)
        blobs = dict.fromkeys(history.blob(commit, path) for commit in commits[: 2 if is_there else 1])
        if not all(blobs):
            raise FileNotFoundError
        contents = [history.content(blob) for blob in blobs]
        return len(commits), [_digest_of_file(content, name, line, elsewhere, self._is_over) for content in contents]

    def _git(self) -> "git_history.Folder":
        if self._history is None:
            own = self._linked()
            common = os.path.dirname(os.path.dirname(own))
            self._history = git_history.Folder(self._root, own, common, lambda: self._is_over(_SEARCH_SHARE))
        return self._history

    def _is_over(self, share: float = 1) -> bool:
        return process_time() > self._begun + share * self._seconds or monotonic() > self._end

    def _linked(self) -> str:
        return "" if os.path.isdir(os.path.join(self._root, ".git")) else checkout.linked_git(self._root)

    def _file(self, path: str) -> tuple[bytes, float] | None:
        """Return content and time of a file; None if it is missing. Raises OSError if it is not to be looked at."""
        parts = path.lower().split("/")
        if any(part.startswith(_SECRET_STARTS) or part.endswith(_SECRET_ENDS) for part in parts) and not (
            parts[0] == ".github" or parts[-1] in (".gitignore", ".gitattributes", ".gitmodules")
        ):
            raise PermissionError(path)
        if self._left <= 0 or self._is_over():
            raise TimeoutError
        self._left -= 1
        try:
            with os.fdopen(checkout.open_file(self._root, path), "rb") as file:
                content = file.read(_MOST_BYTES + 1)
                changed_at = os.fstat(file.fileno()).st_mtime
        except (FileNotFoundError, NotADirectoryError):
            return None
        if len(content) > _MOST_BYTES:
            raise ValueError(path)
        return content, changed_at

    def _moved(self, path: str, blob: str, sketch: str) -> str:
        """Return where a file is now: the nearest of the same content, or else the likest of those of its name or
        folder; empty if there is none.
        """
        index, key = self._entries(), bytes.fromhex(blob)
        same: list[str] = []
        for at in self._places(key):
            start = at + _ENTRY_PATH - _ENTRY_HASH
            same.append(_text(index[start : index.find(b"\0", start)]))
        if same := [
            path_there for path_there in same if path_there and os.path.lexists(os.path.join(self._root, path_there))
        ]:
            return max(same, key=lambda path_there: _near(path, path_there))
        paths = {*self._paths(path.rpartition("/")[2].encode()), *self._beside(path)} - {path}
        likeness: dict[str, float] = {}
        for path_there in sorted(paths, key=lambda path_there: _near(path, path_there), reverse=True)[:_MOST_COMPARED]:
            try:
                file = self._file(path_there)
            except (checkout.Refused, OSError, ValueError):
                continue
            likeness[path_there] = _alike(sketch, _sketch(file[0])) if file else 0.0
        best = max(likeness, key=lambda path_there: likeness[path_there], default="")
        return best if best and likeness[best] >= _ALIKE else ""

    def _beside(self, path: str) -> "Iterator[str]":
        """Yield the files of a folder with the stem or the extension of a file that was there, and those of a folder
        of its stem.
        """
        folder, slash, name = path.rpartition("/")
        stem, _, extension = name.partition(".")
        for below in (folder, f"{folder}{slash}{stem}"):
            here = os.path.join(self._root, below) if below else self._root
            if os.path.realpath(here) != here or not os.path.isdir(here):
                continue
            with os.scandir(here) as entries:
                for _, entry in zip(range(_MOST_ENTRIES), entries):  # noqa: B905
                    other_stem, _, other_extension = entry.name.partition(".")
                    if other_stem == stem or other_extension == extension:
                        yield _text(f"{below}/{entry.name}".removeprefix("/").encode("utf-8", "replace"))

    def _paths(self, name: bytes) -> list[str]:
        index = self._entries()
        paths = (_path_ending(index, at, at + len(name)) for at in self._places(name + b"\0"))
        texts = [_text(path) for path in paths if path == name or path.endswith(b"/" + name)]
        return [path for path in texts if path]

    def _places(self, part: bytes) -> "Iterator[int]":
        """Yield where git's index has some bytes, so often at most."""
        index, at = self._entries(), -1
        for _ in range(_MOST_CANDIDATES):
            if self._is_over(_SEARCH_SHARE):
                raise TimeoutError
            at = index.find(part, at + 1)
            if at < 0:
                return
            yield at

    def _entries(self) -> bytes:
        """Return git's index with whole paths in its entries; empty without one."""
        if self._index is None:
            self._index = b""
            if self._is_over(_SEARCH_SHARE):
                raise TimeoutError
            own = self._linked()
            try:
                index = _whole(own, "index") if own else _whole(self._root, ".git/index")
                if index[:8] == b"DIRC\0\0\0\4":
                    index = _expanded(index, lambda: self._is_over(_SEARCH_SHARE))
            except TimeoutError:
                raise
            except (OSError, checkout.Refused, ValueError, IndexError):
                index = b""
            if index[:8] in (b"DIRC\0\0\0\2", b"DIRC\0\0\0\3"):
                self._index = index
        return self._index


def _expanded(index: bytes, is_over: "Callable[[], bool]") -> bytes:
    """Return an index of version 4, whose paths leave out what they share with the one before, as one of version 2."""
    parts = [b"DIRC\0\0\0\2", index[8:12]]
    at, path = 12, b""
    for number in range(int.from_bytes(index[8:12])):
        if number % 512 == 0 and is_over():
            raise TimeoutError
        start = at + _ENTRY_PATH + (index[at + _ENTRY_PATH - 2] >> 5 & 2)  # more flags
        less = index[start] & 0x7F
        while index[start] & 0x80:
            start += 1
            less = ((less + 1) << 7) | (index[start] & 0x7F)
        stop = index.index(b"\0", start + 1)
        path = path[: len(path) - less] + index[start + 1 : stop]
        if len(path) > _LONGEST_PATH:
            raise ValueError
        entry = index[at : at + _ENTRY_PATH] + path
        parts += (entry, b"\0" * (8 - len(entry) % 8))
        at = stop + 1
    return b"".join(parts)


def _whole(root: str, name: str) -> bytes:
    """Return a file at once, which for a large one takes a third of the time."""
    descriptor = checkout.open_file(root, name)
    try:
        size = os.fstat(descriptor).st_size
        return os.read(descriptor, size) if size <= _MOST_INDEX else b""
    finally:
        os.close(descriptor)


def _digest_of_file(content: bytes, name: str, line: int, elsewhere: str, is_over: "Callable[[], bool]") -> str:
    lines = _digest_of(content, name, line, "", is_over) if name or line else ""
    if (name or line) and not lines:
        return ""
    return ":".join((_blob(content), lines, "".join(_sketch(content)), elsewhere))


def _blob(content: bytes) -> str:
    return sha1(b"blob %d\0%b" % (len(content), content)).hexdigest()[:_DIGITS]


def _path_ending(index: bytes, within: int, end: int) -> bytes:
    """Return the path that ends there, by the length that the entry has before it; empty if none does."""
    for start in range(within - within % 2, max(within - 4096, 0), -2):
        length = int.from_bytes(index[start - 2 : start]) & 0xFFF
        if start % 8 in (2, 4) and length == end - start:
            path = index[start:end]
            return b"" if b"\0" in path else path
    return b""


def _text(path: bytes) -> str:
    text = path.decode("utf-8", "replace")
    return text if len(text) < 300 and all(sign.isalnum() or sign in _SIGNS for sign in text) else ""


def _near(path: str, other: str) -> tuple[int, int]:
    parts, paths = path.split("/"), other.split("/")
    return _common(parts[::-1], paths[::-1]), _common(parts, paths)


def _common(left: "Sequence[str]", right: "Sequence[str]") -> int:
    return next((at for at, pair in enumerate(zip(left, right)) if pair[0] != pair[1]), min(len(left), len(right)))  # noqa: B905


def _sketch(content: bytes) -> list[str]:
    """Return some of the lines of a file by number, always the same of the same lines."""
    lines = {line.strip() for line in content[:_SKETCH_BYTES].splitlines()}
    return sorted({f"{crc32(line) & 0xFFFF:04x}" for line in lines if len(line) >= _LEAST_LINE})[:_SKETCH_LINES]


def _alike(before: str, now: "Sequence[str]") -> float:
    """Return the share of the lines of two files that both have, by their sketches."""
    lines_of_both = {before[at : at + 4] for at in range(0, len(before), 4)}
    least = sorted(lines_of_both.union(now))[:_SKETCH_LINES]
    return len(lines_of_both.intersection(now, least)) / max(1, len(least))


def _digest_of(content: bytes, name: str, line: int, before: str, is_over: "Callable[[], bool]") -> str:
    """Return the digest of the lines of a symbol, or of a line, which counts as the same at another place; empty if
    there are none. Raises TimeoutError.
    """
    lines = content.decode("utf-8", "replace").splitlines()
    if not name:
        here = _digest(lines[line - 1 : line])
        return before if here != before and before and _holds(lines, before, is_over) else here
    if name.isdigit():
        return _digest([text for text in lines if name in text])
    start, end = 0, len(lines)
    for part in name.split("."):
        block = _block(lines, part, start, end, is_over) or _block(lines, part, 0, len(lines), is_over)
        if block is None:
            return ""
        start, end = block
    return _digest(lines[start:end])


def _holds(lines: "Sequence[str]", digest: str, is_over: "Callable[[], bool]") -> bool:
    """Return whether a line has this digest. Raises TimeoutError."""
    for number, line in enumerate(lines):
        if number % 256 == 0 and is_over():
            raise TimeoutError
        if _digest([line]) == digest:
            return True
    return False


def _digest(lines: "Sequence[str]") -> str:
    if not lines:
        return ""
    indent = _indent(lines[0])
    text = "\n".join(line.rstrip()[min(indent, _indent(line)) :] for line in lines)
    return blake2b(text.encode(), digest_size=_DIGITS // 2).hexdigest()


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _block(
    lines: "Sequence[str]", name: str, start: int, end: int, is_over: "Callable[[], bool]"
) -> tuple[int, int] | None:
    """Return the range of the lines that define a symbol: the likeliest of those that name it. Raises TimeoutError."""
    best, best_at = 0, -1
    for at in range(start, end):
        if name not in lines[at]:
            continue
        if is_over():
            raise TimeoutError
        line = lines[at][:_LONGEST_LINE]
        rank = max((_rank(line, place, name) for place in _words(line, name)), default=0)
        if rank > best:
            best, best_at = rank, at
    if not best:
        return None
    indent, stop = _indent(lines[best_at]), best_at + 1
    last = stop
    while stop < end:
        text = lines[stop].strip()
        if text and _indent(lines[stop]) <= indent and not text.startswith(_BRACKETS):
            break
        stop += 1
        last = stop if text else last
    return best_at, last


def _words(line: str, name: str) -> "Iterator[int]":
    at = line.find(name)
    while at >= 0:
        sides = line[at - 1 : at] + line[at + len(name) : at + len(name) + 1]
        if not any(sign.isalnum() or sign == "_" for sign in sides):
            yield at
        at = line.find(name, at + 1)


def _rank(line: str, at: int, name: str) -> int:
    """Return how likely a line defines a symbol that it names at a place; 0 if it does not."""
    before, after = line[:at].strip(), line[at + len(name) :].strip()
    words = before.split()
    if words and (words[-1] in _KEYWORDS or words[0] == "func"):
        return 3
    if before in ("", '"', "'") and after.lstrip("\"'").startswith((":", "=")) and after[:2] not in ("==", "=>"):
        return 2
    is_head = after.startswith("(") and not after.endswith((";", ","))
    if is_head and not any(sign in before for sign in "=.(,;\"'#|&!?+/") and not _NO_TYPES.intersection(words):
        return 2 if words or after.endswith("{") else 1 if not line[:at] else 0
    return 0
