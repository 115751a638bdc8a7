"""No pattern of ours, and no tool, takes more than a time in proportion to any input."""

import heapq
import os
import re
import time
from collections import deque
from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from kernel.calls.dispatch import Dispatch
from kernel.core.config import Config
from kernel.core.limits import CallLimits, Limits
from kernel.server.app import open_kernel
from tests.catalogue import Catalogue
from tests.conftest import Call
from tests.security.adversarial_texts import Shape, shapes
from tests.security.growth import KIB, SIZES, growth, spent
from tests.security.product_patterns import Found, left_out, patterns
from tests.support.security_patterns import PIECES

LONG = int(os.environ.get("PATTERN_BYTES", "12000"))
EVERY = 1 if LONG > 100_000 else 6  # of the pieces
TIMES = 4
MOST = 2.5 * TIMES  # the most for four times the text, beside the text itself; the square would be sixteen times


SCREENED = 2 * KIB  # characters at which the slowest shapes of a pattern are looked for
SLOWEST = 6  # of these are measured at all sizes
SCREEN_SECONDS = 0.05  # after which a shape is slow enough to be measured
PATTERNS = patterns()


def uses(found: Found) -> Mapping[str, Callable[[Any], object]]:
    """Hold the use of a pattern in the product."""
    one = found.pattern
    every: Mapping[str, Callable[[Any], object]] = {
        "search": one.search,
        "match": one.match,
        "fullmatch": one.fullmatch,
        "finditer": lambda text: deque(one.finditer(text), maxlen=0),
    }
    return {use: every[use] for use in found.uses}


def slow_shapes(found: Found) -> list[str]:
    """The uses and shapes of texts whose time grows faster than the text, with their times."""
    as_given: Callable[[str], Any] = str.encode if isinstance(found.pattern.pattern, bytes) else str
    slow = list[str]()
    for use, work in uses(found).items():

        def took(shape: Shape, work: Callable[[Any], object] = work) -> float:
            text = as_given(shape.text(SCREENED))
            return spent(lambda: work(text), SCREEN_SECONDS)

        timed = list[tuple[float, int, Shape]]()
        for number, shape in enumerate(shapes(found.pattern)):
            timed.append((took(shape), number, shape))
            if sum(seconds >= SCREEN_SECONDS for seconds, _, _ in timed) == SLOWEST:
                break
        for _, _, shape in heapq.nlargest(SLOWEST, timed):
            grown = growth(work, lambda size, shape=shape: as_given(shape.text(size)))
            if not grown.linear:
                slow.append(f"{use} of {shape}: {grown}")
                break
    return slow


def test_no_pattern_is_left_out() -> None:
    assert left_out() == []
    assert len(PATTERNS) > 200
    assert {"kernel.core.limits._AUTHORITY", "kernel.core.text._PLAIN", "handlers.common.fence._BACKTICKS"} <= set(
        PATTERNS
    )


@pytest.mark.parametrize("name", PATTERNS)
def test_a_pattern_takes_time_in_proportion_to_the_text(name: str, catalogue: Catalogue) -> None:
    assert slow_shapes(PATTERNS[name]) == []
    catalogue("S11", injected=f"long texts through {name}", times=len(SIZES), outcome="in proportion")


@pytest.mark.parametrize(
    ("pattern", "use"),
    [
        (r"^.*\[[^\[\]\n]+/[^\[\]\n]+, [^\[\]\n]*, \d{4}-\d\d-\d\d\].*$\n?", "finditer"),
        (r"(?s)(?:<|&lt;)tag(?:>|&gt;).*?(?:<|&lt;)/tag(?:>|&gt;)", "finditer"),
        (r"\s+$", "search"),
        (r"(a+)+$", "match"),
        (r"(?:a|a)*b", "match"),
        (r"x*y", "search"),
        (r".*x", "finditer"),
        (r"(?<!b)a*c", "search"),
        (r"\[([^\]]*)\]\(([^)]*)\)", "finditer"),
        (r"(?s)<!--.*?-->", "finditer"),
        (r"(?s)/\*.*?\*/|//[^\n]*", "finditer"),
        (r"(?ms)^---\n.*?\n---x$", "search"),
        (r"[ \t]+\n", "search"),
        (r"^(?:\s*\w*)*$", "match"),
        (r"(?m)^\s*(?:-|$)\s*x", "search"),
        (r"\w+\s*\(", "search"),
        (r"\d+\.\d+-", "search"),
        (r'"(?:[^"\\]|\\.)*"', "finditer"),
        (r"(?i)key\s*=\s*(\S+)\s*;", "finditer"),
    ],
)
def test_the_shapes_find_a_pattern_that_takes_longer(pattern: str, use: str) -> None:
    assert slow_shapes(Found("slow", re.compile(pattern), frozenset({use})))


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
    begun = time.thread_time()
    work()
    return time.thread_time() - begun
