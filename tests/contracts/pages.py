"""The documentation pages and their code blocks."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
PAGES = (
    ROOT / "README.md",
    *sorted(ROOT.glob("docs/**/*.md")),
    *sorted(ROOT.glob("handlers/**/README.md")),
    *sorted(ROOT.glob("loadtests/**/README.md")),
)
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """A fenced code block, and where it stands as `page:line`."""

    name: str
    language: str
    text: str


def blocks(*languages: str) -> Iterator[Block]:
    """The code blocks of every page, in one of these languages if any are given."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for found in _BLOCK.finditer(text):
            if not languages or found[1] in languages:
                line = text.count("\n", 0, found.start()) + 1
                yield Block(f"{page.relative_to(ROOT)}:{line}", found[1], found[2])
