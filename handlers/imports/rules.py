"""Rules files of agents: CLAUDE.md, AGENTS.md, Cursor, Windsurf, Copilot and others; a guideline for each section."""

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from handlers.imports import markdown
from handlers.imports.importing import Read
from handlers.imports.records import (
    Item,
    LeftOut,
    clean_line,
    damaged,
    filled,
    tags_of,
    text_of,
    texts_in,
    without_private,
)
from handlers.imports.text_files import TextFile, files_below, read_text
from kernel.lazy_regex import regex
from kernel.store.imports import Record, Source

SYSTEM = "rules"
FILES = (
    "CLAUDE.md",
    "CLAUDE.local.md",
    ".claude/CLAUDE.md",
    "AGENTS.md",
    "AGENTS.override.md",
    "GEMINI.md",
    ".cursorrules",
    ".windsurfrules",
    ".clinerules",
    ".github/copilot-instructions.md",
)
_FOLDERS = (".claude/rules", ".cursor/rules", ".windsurf/rules", ".clinerules", ".github/instructions")
_SUFFIXES = (".md", ".mdc", ".txt")
_PROJECT_PRIORITY = 70
_MAX_IMPORTS_DEPTH = 5
_IMPORT = regex(r"(?:^|(?<=\s))@((?:\./)?[\w][\w./-]{0,200}\.(?:md|mdc|txt))\b")
_CODE_SPAN = regex(r"`[^`\n]{1,500}`")
_SCOPE_KEYS = ("globs", "paths", "applyTo", "trigger", "alwaysApply")


def is_rules(path: Path) -> bool:
    """Whether a path is a rules file by its name, or a project that has one."""
    if path.is_file():
        return path.name in FILES or path.suffix == ".mdc"
    return any((path / name).exists() for name in (*FILES, *_FOLDERS))


def open_rules(given: Source, _stack: ExitStack) -> Read:
    """The rules of one file, or of a project by its folder."""
    if given.path.is_file():
        path = given.path.resolve()
        return partial(_file_of_project, path.parent, path)
    if not given.path.is_dir():
        raise damaged(given.path.name, "is no rules file and no folder")
    return partial(_items, given.path.resolve())


def _file_of_project(root: Path, path: Path) -> Iterator[Item]:
    yield from file_items(root, path, path.name, root.name, _PROJECT_PRIORITY)


def _items(root: Path) -> Iterator[Item]:
    for name in FILES:
        if (root / name).is_symlink():  # such as CLAUDE.md, where it is AGENTS.md
            yield LeftOut("a link")
        elif (root / name).is_file():
            yield from file_items(root, root / name, name, root.name, _PROJECT_PRIORITY)
    for folder in _FOLDERS:
        if (root / folder).is_dir():
            for path, name in files_below(root / folder, *_SUFFIXES):
                yield from file_items(root, path, f"{folder}/{name}", root.name, _PROJECT_PRIORITY)


def file_items(root: Path, path: Path, name: str, project: str, priority: int) -> Iterator[Item]:
    """The sections of a rules file, and of the files that it imports by `@path`, up to five deep."""
    waiting, seen = [(path, name, 0)], {name}
    while waiting:
        here, own, depth = waiting.pop(0)
        file = read_text(here, own)
        yield from _sections(file, project, str(root), priority)
        for target in _imports(file) if depth < _MAX_IMPORTS_DEPTH else ():
            below = _below(root, here.parent / target)
            if below is None:
                yield LeftOut("an import from outside the project, or of a file that is not there")
            elif below not in seen:
                seen.add(below)
                waiting.append((root / below, below, depth + 1))


def _sections(file: TextFile, project: str, root: str, priority: int) -> Iterator[Item]:
    page = markdown.page(without_private(file.text))  # before it is divided: its parts lack the marks
    scope = "; ".join(f"{key}: {', '.join(texts_in(page.head[key])) or page.head[key]}" for key in _scoped(page))
    rationale = ". ".join(part for part in (text_of(page.head, "description"), scope) if part)
    numbers = Counter[str]()
    for section in markdown.sections(page.body):
        heading = clean_line(section.heading, 200)
        numbers[heading] += 1
        count = f" ({numbers[heading]})" if numbers[heading] > 1 else ""
        yield Record(
            "scopes",
            "guideline",
            f"{SYSTEM}:{file.name}#{heading}{count}",
            section.text,
            place=project,
            title=f"{file.name}: {heading}{count}" if heading else f"{file.name}{count}",
            category="rules",
            tags=tags_of(["imported"]),
            created_at=file.modified,
            origin=filled({"system": SYSTEM, "file": file.name}),
            details={"priority": priority, "rationale": rationale or None, "root": root},
        )


def _scoped(page: markdown.Page) -> list[str]:
    return [key for key in _SCOPE_KEYS if page.head.get(key) not in (None, "", [])]


def _imports(file: TextFile) -> list[str]:
    """The files that a rules file imports, outside of code."""
    lines = markdown.plain_lines(file.text)
    return [found for line in lines for found in _IMPORT.findall(_CODE_SPAN.sub("", line))]


def _below(root: Path, path: Path) -> str | None:
    """The path of an ordinary file relative to a folder, None for one that lies elsewhere or is a link."""
    try:
        inside = path.resolve(strict=True).relative_to(root.resolve())
    except (OSError, ValueError, RuntimeError):
        return None
    return inside.as_posix() if path.is_file() and not path.is_symlink() else None
