"""Writers that change note files through a server and remember, from outside, the content that each file must have."""

import hashlib
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from threading import Event, Thread
from typing import Any, NamedTuple

from tests.reliability.server_process import LOST, Client

TYPES = ("issue", "learning", "context")
State = str | None  # the digest of a file; None for none
Files = dict[str, str]


class Step(NamedTuple):
    """One call under way: its change of each file, and the text it is to leave in the files that it writes."""

    tool: str
    arguments: Mapping[str, Any]
    deleted: Sequence[str] = ()
    written: Sequence[str] = ()
    text: str = ""


def digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def on_disk(folder: Path) -> Files:
    """Return the digest of every file that is not hidden, by path."""
    found = (path for path in folder.rglob("*.md") if not path.name.startswith("."))
    return {str(path.relative_to(folder)): digest(path) for path in found}


class Ledger:
    """Return the contents of every file, one state after the other, by path."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.states: dict[str, list[State]] = {path: [state] for path, state in on_disk(folder).items()}

    def expected(self, without: Iterable[str] = ()) -> Files:
        """Return the contents that must be on disk now, except for omitted paths."""
        left_out = set(without)
        states = list(self.states.items())  # a copy, because other writers add to them
        return {path: state for path, (*_, state) in states if state is not None and path not in left_out}

    def is_made(self, step: Step) -> bool:
        """Whether all that a call was to do to files is done."""
        gone = not any((self.folder / path).exists() for path in step.deleted)
        return gone and all((self.folder / path).read_text().endswith(f"\n{step.text}\n") for path in step.written)

    def take(self, step: Step) -> None:
        """Takes in a call that was made."""
        for path in step.deleted:
            self.states[path].append(None)
        for path in step.written:
            self.states.setdefault(path, [None]).append(digest(self.folder / path))

    def settle(self, step: Step) -> bool:
        """Whether a call in doubt was made; AssertionError if it was made by half."""
        made = [not (self.folder / path).exists() for path in step.deleted]
        for path in step.written:
            file = self.folder / path
            text = file.read_text() if file.exists() else ""
            made.append(text.endswith(f"\n{step.text}\n"))
            before = self.states.get(path, [None])[-1]
            assert made[-1] or (digest(file) if file.exists() else None) == before, (step, text)
        assert len(set(made)) == 1, (step, made)
        if made[0]:
            self.take(step)
        return made[0]

    def undo(self, paths: Sequence[str]) -> None:
        """Takes in that the last call on these files was undone."""
        for path in paths:
            self.states[path].pop()


class NotesWriter(Thread):
    """Creates, updates, moves and forgets files of its own, which begin with its name."""

    def __init__(self, port: int, name: str, ledger: Ledger, seed: int, answered: Callable[[], object]) -> None:
        super().__init__(name=name, daemon=True)
        self.doubt: Step | None = None
        self.errors: list[Any] = []
        self.stopping = Event()
        self._port = port
        self._ledger = ledger
        self._random = random.Random(seed)
        self._answered = answered

    def run(self) -> None:
        client = Client(self._port)
        try:
            while not self.stopping.is_set():
                self.doubt = self._step()
                status, answer = client.call(self.doubt.tool, **self.doubt.arguments)
                if status == 200 and not answer.get("errors") and self._ledger.is_made(self.doubt):
                    self._ledger.take(self.doubt)
                    self._answered()
                else:
                    self.errors.append((self.doubt, status, answer))
                self.doubt = None
        except LOST:
            return  # the server is gone: calls under way stay in doubt
        finally:
            client.close()

    def _step(self) -> Step:
        mine = [path for path in self._ledger.expected() if path.rpartition("/")[2].startswith(f"{self.name}-")]
        text = f"words {self._random.random()} " * self._random.choice((1, 10, 2000))
        dice = self._random.random()
        if len(mine) < 20 or dice < 0.25:
            kind, title = self._random.choice(TYPES), f"{self.name}-{self._random.randrange(1 << 40)}"
            given = {"title": title, "content": text.strip(), "memoryType": kind}
            return Step("memory_remember", given, written=[f"{kind}/{title}.md"], text=text.strip())
        if dice < 0.5:
            paths = self._random.sample(mine, self._random.choice((1, 2, 12)))
            return Step("memory_forget", {"filePaths": paths}, deleted=paths)
        path = self._random.choice(mine)
        old, _, name = path.partition("/")
        kind = old if dice < 0.8 else self._random.choice([kind for kind in TYPES if kind != old])
        given = {"title": "x", "content": text.strip(), "memoryType": kind, "filePath": path}
        deleted = [] if kind == old else [path]
        return Step("memory_remember", given, deleted, [f"{kind}/{name}"], text.strip())
