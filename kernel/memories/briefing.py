"""A dialect's memories of a project for the start of a session, and its handoff of a session that was compacted."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Collection
from datetime import datetime, timedelta
from typing import Literal, NamedTuple

from kernel.store.transaction import Tx

# A standing rule, a handoff of an earlier session, or a decision.
Part = Literal["rule", "handoff", "decision"]


class Project(NamedTuple):
    """A project: the root folder of its repository as a client sees it, and its name."""

    root: str
    name: str

    @classmethod
    def at(cls, root: str) -> "Project":
        folder = root.rstrip("/\\")
        return cls(folder or root, folder.replace("\\", "/").rpartition("/")[2])


class Remark(NamedTuple):
    """A memory that the start of a session may show: its part, its id, its text; `whole` is not cut to one line."""

    part: Part
    space: str
    key: str
    text: str
    whole: bool = False


def named(name: str, text: str, *, whole: bool = False) -> str:
    """Return a text after its name, which may turn its meaning round, unless it begins with the name.

    The items of lists follow on one line, separated by semicolons, unless it is shown `whole`.
    """
    words = _words(name)
    if not words or _words(text[: 2 * len(name) + 100])[: len(words)] == words:
        return text
    lines = [line for line in map(str.strip, text.split("\n")) if line]
    if whole:
        return f"{name}:\n{text}" if lines and lines[0].startswith(_ITEM_MARKS) else f"{name}: {text}"
    joined = f"{name}:"
    for line in lines:
        is_item = line.startswith(_ITEM_MARKS)
        joined += f"{'' if joined.endswith(':') or not is_item else ';'} {line[2:].lstrip() if is_item else line}"
    return joined


def _words(text: str) -> list[str]:
    return "".join(sign if sign.isalnum() else " " for sign in text.casefold()).split()


class Handoff(NamedTuple):
    """The summary of a session that a client has compacted."""

    session: str
    project: Project
    text: str


# The newest first within a part; for one project, whose name is never empty.
Brief = Callable[[Tx, Project], list[Remark]]
# Stores a handoff in place of the one before of the same session; the id of the new memory.
KeepHandoff = Callable[[Tx, Handoff], str]

_ITEM_MARKS = ("- ", "* ", "+ ")
_KEPT = timedelta(hours=24)
_MOST_SESSIONS = 4096


class HookSession(NamedTuple):
    """A session that hooks have named: when it started, in which folder, and the ids of the memories that it got.

    `prompted` says that a prompt has been searched since it started or was compacted.
    """

    at: str = ""
    root: str = ""
    given: frozenset[str] = frozenset()
    prompted: bool = False


class HookSessions:
    """The sessions that hooks have named, by client and id, for a day and in memory alone."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._found: OrderedDict[str, HookSession] = OrderedDict()

    def get(self, key: str, now: str) -> HookSession:
        """Return a session as it was noted within the last day, else an empty session."""
        with self._lock:
            return self._fresh(key, now)

    def start(self, key: str, now: str, root: str, ids: Collection[str]) -> None:
        """Notes the memories that a session got at its start, or after it was cleared or compacted."""
        with self._lock:
            self._put(key, HookSession(now, root, frozenset(ids)))

    def take_prompt(self, key: str, now: str) -> frozenset[str] | None:
        """Return the memories that the session got if this is its first prompt; None for a later prompt."""
        with self._lock:
            session = self._fresh(key, now)
            self._put(key, session._replace(at=session.at or now, prompted=True))
            return None if session.prompted else session.given

    def compact(self, key: str, now: str) -> None:
        """Forgets the memories that the session got: its next prompt counts as the first again."""
        with self._lock:
            self._put(key, HookSession(now, self._fresh(key, now).root))

    def end(self, key: str) -> None:
        with self._lock:
            self._found.pop(key, None)

    def _fresh(self, key: str, now: str) -> HookSession:
        session = self._found.get(key, HookSession())
        is_expired = session.at and datetime.fromisoformat(now) - datetime.fromisoformat(session.at) > _KEPT
        return HookSession() if is_expired else session

    def _put(self, key: str, session: HookSession) -> None:
        self._found[key] = session
        self._found.move_to_end(key)
        while len(self._found) > _MOST_SESSIONS:
            self._found.popitem(last=False)
