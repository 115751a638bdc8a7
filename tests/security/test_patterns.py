"""No pattern of ours, and no tool, takes more than a time in proportion to what it is given, whatever that is."""

import importlib
import os
import pkgutil
import re
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import handlers
import kernel
from kernel.app import open_kernel
from kernel.config import Config
from kernel.dispatch import Dispatch
from kernel.lazy_regex import LazyPattern
from kernel.limits import CallLimits, Limits
from tests.catalogue import Catalogue
from tests.conftest import Call

LONG = int(os.environ.get("PATTERN_BYTES", "12000"))
EVERY = 1 if LONG > 100_000 else 6  # of the pieces
TIMES = 4
MOST = 2.5 * TIMES  # what four times the text may take, beside the text itself; the square would be sixteen times
FLOOR = 0.004  # seconds below which a time says nothing
BLANKS = (" ", "\n", "\t")  # most patterns that took the square of the time took it over these
PIECES = (
    "a",
    "A",
    " ",
    "\n",
    "\t",
    "0",
    ".",
    "-",
    "_",
    "/",
    ":",
    "=",
    "'",
    '"',
    "\\",
    "(",
    "[",
    "{",
    "<",
    "*",
    "`",
    "#",
    "a.",
    "a@",
    "a ",
    " a",
    "a:",
    "a_",
    "a-",
    "aA",
    "a/",
    "./",
    "()",
    "[]",
    "[a](",
    "![",
    "{}",
    "<a>",
    "''",
    "```",
    "--",
    "- ",
    "0.",
    "0x",
    "é",
    "日",
    "\u200b",
    "a\n",
    "\n\n",
    "a=",
    "key=",
    "http://",
    "a\\",
    "\\n",
    "x1",
    "A1b2",
    "@",
    "eyJ",
    "password ",
    "secret: ",
    "def a(",
    "function ",
    "class A ",
    "JIRA-1 ",
    "$A",
    "${",
    "--a ",
    "Error: ",
)


def patterns() -> Mapping[str, re.Pattern[Any]]:
    """Every pattern that a module of ours holds, also within a tuple, a table or another object."""
    found: dict[str, re.Pattern[Any]] = {}
    for package in (kernel, handlers):
        for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if info.name.endswith(("__main__", "launcher")):
                continue
            module = importlib.import_module(info.name)
            for name, value in vars(module).items():
                found |= {f"{info.name}.{name}{at}": one for at, one in _within(value, 0)}
    unique: dict[tuple[Any, int], str] = {}
    for name, one in found.items():
        unique.setdefault((one.pattern, one.flags), name)
    return {name: found[name] for name in unique.values()}


def _within(value: Any, depth: int) -> Iterator[tuple[str, re.Pattern[Any]]]:
    if isinstance(value, LazyPattern):
        yield "", re.compile(value.pattern, value.flags)
    elif isinstance(value, re.Pattern):
        yield "", value
    elif depth < 4 and isinstance(value, dict):
        for key, one in value.items():
            yield from ((f".{key}{at}", pattern) for at, pattern in _within(one, depth + 1))
    elif depth < 4 and isinstance(value, list | tuple | set | frozenset):
        for number, one in enumerate(value):
            yield from ((f"[{number}]{at}", pattern) for at, pattern in _within(one, depth + 1))


def spent(work: Callable[[], object]) -> float:
    """Seconds of processor time."""
    begun = time.thread_time()
    work()
    return time.thread_time() - begun


def through(pattern: re.Pattern[Any], text: Any) -> None:
    """Everything a pattern may be used for."""
    pattern.search(text)
    pattern.fullmatch(text)
    for _ in pattern.finditer(text):
        pass


PATTERNS = patterns()


def test_the_patterns_are_found() -> None:
    assert len(PATTERNS) > 40
    assert {"kernel.limits._AUTHORITY", "kernel.text._PLAIN"} <= set(PATTERNS)


@pytest.mark.parametrize("name", PATTERNS)
def test_a_pattern_takes_time_in_proportion_to_the_text(name: str, catalogue: Catalogue) -> None:
    pattern, slow = PATTERNS[name], []
    for piece in dict.fromkeys((*BLANKS, *PIECES[len(name) % EVERY :: EVERY])):
        for end in ("", "!"):
            texts: list[Any] = [(piece * (size // len(piece))) + end for size in (LONG // TIMES, LONG)]
            if isinstance(pattern.pattern, bytes):
                texts = [text.encode() for text in texts]
            few, many = (spent(lambda text=text: through(pattern, text)) for text in texts)
            if many > max(FLOOR, MOST * few):
                few, many = (min(spent(lambda text=text: through(pattern, text)) for _ in range(3)) for text in texts)
                if many > max(FLOOR, MOST * few):
                    slow.append((piece, end, few, many))
    assert slow == []
    catalogue("S11", injected=f"long texts through {name}", times=2 * len(PIECES) // EVERY, outcome="in proportion")


TEXTS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "add_memory": ("content", {"path": "long"}),
    "remember": ("content", {"session_id": "s"}),
    "save_memory": ("content", {"db": "core", "category": "fact"}),
    "memory_remember": ("content", {"title": "long", "memoryType": "context"}),
    "memory_knowledge": ("content", {"action": "add", "scopeType": "global", "title": "long"}),
    "recall": ("query", {}),
    "search_memory": ("query", {"session_id": "s"}),
    "search": ("query", {"db": "core"}),
}


@pytest.mark.parametrize("name", TEXTS)
def test_a_tool_takes_time_in_proportion_to_the_text(
    tmp_path: Path, caller: Callable[[Dispatch], Call], name: str, catalogue: Catalogue
) -> None:
    limits = Limits(store_milliseconds=CallLimits().milliseconds * 100)
    running = open_kernel(Config(data=tmp_path / "data", limits=limits, readers=1))
    call, slow, numbers = caller(running.dispatch), [], count()
    field, more = TEXTS[name]
    call(name, **more, **{field: "warm"})
    try:
        for piece in PIECES[::EVERY]:

            def took(size: int, piece: str = piece) -> float:
                text = f"{next(numbers)} " + piece * (size // len(piece))  # never the same text twice
                return in_all(lambda: call(name, **{**more, field: text}))

            few, many = took(LONG // TIMES), took(LONG)
            if many > max(0.05, MOST * few):
                few, many = (min(took(size) for _ in range(3)) for size in (LONG // TIMES, LONG))
                if many > max(0.05, MOST * few):
                    slow.append((piece, few, many))
    finally:
        running.store.close()
    assert slow == []
    catalogue("S11", injected=f"long texts to {name}", times=len(PIECES) // EVERY, outcome="in proportion")


def in_all(work: Callable[[], object]) -> float:
    """Seconds of processor time of all threads."""
    begun = time.process_time()
    work()
    return time.process_time() - begun
