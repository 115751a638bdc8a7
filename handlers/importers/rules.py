"""Rules files of agents in a project and its folders: CLAUDE.md, AGENTS.md, Cursor, Copilot and others, by section."""

import fnmatch
import os
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import pairwise
from pathlib import Path
from posixpath import dirname, join, normpath
from typing import NamedTuple

from handlers.importers import markdown
from handlers.importers.importing import Read
from handlers.importers.records import Item, LeftOut, clean_line, damaged, filled, left_out, tags_of, text_of, texts_in
from handlers.importers.text_files import (
    OTHER_FILE_SYSTEM,
    TextFile,
    device_of,
    files_below,
    is_own_folder,
    names_below,
    read_or_leave_out,
    root_of,
)
from kernel.core.checkout import LINK, SPECIAL, has_controls
from kernel.core.lazy_regex import regex
from kernel.memories.import_records import PARTS, Record, Source

SYSTEM = "rules"
FILES = (
    *("CLAUDE.md", "CLAUDE.local.md", ".claude/CLAUDE.md", "AGENTS.md", "AGENTS.override.md", "GEMINI.md", "QWEN.md"),
    *(".cursorrules", ".windsurfrules", ".clinerules", ".roorules", ".goosehints", ".github/copilot-instructions.md"),
    *(
        "AGENT.md",
        "WARP.md",
        "CRUSH.md",
        "CODEBUDDY.md",
        "replit.md",
        ".rules",
        ".augment-guidelines",
        ".idx/airules.md",
    ),
    *(".cursor/BUGBOT.md", ".gemini/styleguide.md", ".kilocoderules", ".openhands_instructions"),
    *(".gemini/GEMINI.md", ".codex/AGENTS.md", ".github/AGENTS.md"),
)
_OF_MODES = (".roorules-*", ".clinerules-*", ".kilocoderules-*", "*.mdc")  # further files, by mode or by ending
_FOLDERS = (
    *(".claude/rules", ".cursor/rules", ".windsurf/rules", ".clinerules", ".github/instructions", ".kiro/steering"),
    *(".amazonq/rules", ".roo/rules", ".roo/rules-*", ".junie", ".kilocode/rules", ".kilocode/rules-*"),
    *(".continue/rules", ".augment/rules", ".trae/rules", ".aiassistant/rules", ".qoder/rules", ".lingma/rules"),
    *(".codebuddy/rules", ".tabnine/guidelines", ".openhands/microagents", ".agent/rules"),
)
# Folders of the same programs with texts that are no rules: they hold when they are called.
_CALLED = (
    *(".claude/commands", ".claude/agents", ".claude/skills", ".claude/output-styles", ".cursor/commands"),
    *(".github/prompts", ".github/chatmodes", ".github/agents", ".github/skills", ".windsurf/workflows"),
    *(".kiro/specs", ".kiro/hooks", ".roo/commands", ".kilocode/workflows", ".agent/workflows", ".agent/skills"),
    *(".agents/skills", ".gemini/commands", ".codex/prompts", ".opencode/command", ".amazonq/prompts"),
)
# Folders of notes that agents keep in a project, which a vault's importer takes.
_NOTES = ("memory-bank", ".memory-bank", ".cursor/memory-bank", ".serena/memories", ".specstory/history")
_FOLDED = {name.casefold() for name in (*FILES, *_FOLDERS, *_NOTES) if "/" not in name}
# Folders in which a page such as agents.md is about agents; a rules file there is spelled as its program spells it.
_DOCUMENTATION = frozenset({"docs", "doc", "documentation", "wiki", "website", "site", "content"})
_SUFFIXES = (".md", ".mdc", ".txt")
_PROJECT_PRIORITY = 70
_MAX_IMPORTS_DEPTH = 5
_IMPORT = regex(r"(?:^|(?<=\s))@((?:\./)?[\w][\w./-]{0,200}\.(?:md|mdc|txt))\b")
_CODE_SPAN = regex(r"`[^`\n]{1,500}`")
_MOST_HEADING, _MOST_ABOVE = 200, 100  # characters
_NO_IMPORT = "an import from outside the project, or of a file that is not there"
_TITLES = ("title", "name")
_BELOW_OTHERS = "imported below other headings already"
_MOST_FOLDERS, _MOST_LEVELS = 20_000, 12  # of a project that are looked through
_NO_RULES, _IS_CALLED = "is no rules file", "is called by name, and no rule"
_IS_PAGE = "is a page of documentation, and not spelled as a rules file"
_IS_NOTE = "is a note, which `quipu import obsidian FOLDER` takes"
_BEYOND = f"folders beyond the first {_MOST_FOLDERS:,} or below {_MOST_LEVELS} others"
_ANOTHER = "another repository"


class Owner(NamedTuple):
    """The project that rules belong to, by name and root, and how they rank; without a name, that of the user."""

    name: str
    root: str
    priority: int = _PROJECT_PRIORITY
    is_named: bool = False  # by --into, with any root


class _Folder(NamedTuple):
    """A folder of a project: the start of the paths in it, and its entries."""

    prefix: str
    names: frozenset[str] = frozenset()
    spelled: tuple[str, ...] = ()  # those of files and folders of rules, in capitals or not
    pages: tuple[str, ...] = ()  # those of documentation, whose names are of rules but for capitals


class _Waiting(NamedTuple):
    """A file to read: its name below the root, the headings above the import of it, and the depth of imports."""

    name: str
    above: tuple[str, ...] = ()
    depth: int = 0


def is_rules(path: Path) -> bool:
    """Return whether a path is a rules file by its name, or a project that has a rules file."""
    if path.is_file():
        name = path.name.casefold()
        return name in _FOLDED or path.suffix == ".mdc" or any(fnmatch.fnmatch(name, mode) for mode in _OF_MODES)
    if not path.is_dir():
        return False
    folder = _folder("", [entry.name for entry in path.iterdir()])
    return any(_matching(path, folder, name) for name in (*FILES, *_OF_MODES, *_FOLDERS))


def _folder(prefix: str, names: Collection[str]) -> _Folder:
    spelled = [name for name in names if name.casefold() in _FOLDED]
    is_documentation = not _DOCUMENTATION.isdisjoint(prefix.casefold().split("/"))
    pages = [name for name in spelled if is_documentation and name not in (*FILES, *_FOLDERS, *_NOTES)]
    return _Folder(prefix, frozenset(names), tuple(name for name in spelled if name not in pages), tuple(pages))


def open_rules(source: Source, _stack: ExitStack) -> Read:
    """Return the rules of one file, or of a project by its folder."""
    path = source.path.resolve()
    if not path.is_file() and not path.is_dir():
        raise damaged(source.path.name, "is no rules file and no folder")
    folder = path.parent if path.is_file() else path
    root = source.root or root_of(folder)
    owner = Owner(Path(root).name, root, is_named=bool(source.into))
    return partial(file_items, folder, path.name, owner) if path.is_file() else partial(_items, folder, owner)


def _items(root: Path, owner: Owner) -> Iterator[Item]:
    """Yield the rules of a project, and at the end the names of its files: rules of others are gone with these.

    Linked worktrees of a repository have files of their own.
    """
    names, is_whole = list[str](), not Path(owner.root, ".git", "worktrees").exists()
    for folder in _folders(root):
        is_whole = is_whole and (not isinstance(folder, LeftOut) or folder.reason == _ANOTHER)
        for item in [folder] if isinstance(folder, LeftOut) else _rules_in(root, folder, owner):
            if not isinstance(item, LeftOut) or item.reason != _NO_IMPORT:
                names.append(item.name if isinstance(item, LeftOut) else item.origin["file"])
            yield item
    if is_whole:
        details = {"root": owner.root, "is_named": owner.is_named, "files": [*dict.fromkeys(names)]}
        yield Record("scopes", PARTS, f"{SYSTEM}:", "", place=owner.name, origin={"system": SYSTEM}, details=details)


def _folders(root: Path) -> Iterator[_Folder | LeftOut]:
    """Yield a project and the folders in it, each before those in it, without hidden folders and links."""
    waiting, count, device = [_Folder("")], 0, device_of(root)
    while waiting:
        folder = waiting.pop()
        count += 1
        if count > _MOST_FOLDERS or folder.prefix.count("/") > _MOST_LEVELS:
            yield LeftOut(_BEYOND, folder.prefix)
            continue
        try:
            if device_of(root / folder.prefix) != device:
                yield LeftOut(OTHER_FILE_SYSTEM, folder.prefix)
                continue
            with os.scandir(root / folder.prefix) as listing:
                entries = {entry.name: entry for entry in listing}
        except OSError:
            yield LeftOut("a folder that cannot be read", folder.prefix)
            continue
        if folder.prefix and ".git" in entries:
            yield LeftOut(_ANOTHER, folder.prefix)  # its rules are not those of this project
            continue
        yield _folder(folder.prefix, entries)
        below = sorted(name for name, entry in entries.items() if name[0] != "." and is_own_folder(entry))
        waiting += [_Folder(f"{folder.prefix}{name}/") for name in reversed(below)]


def _rules_in(root: Path, folder: _Folder, owner: Owner) -> Iterator[Item]:
    files, folders = (
        [f"{folder.prefix}{name}" for pattern in patterns for name in _matching(root, folder, pattern)]
        for patterns in ((*FILES, *_OF_MODES), _FOLDERS)
    )
    links = dict.fromkeys(link for name in (*files, *folders) if (link := _first_link(root, name)))
    yield from (LeftOut(LINK, name) for name in links)  # such as CLAUDE.md, if it leads to AGENTS.md
    for name in files:
        if not _first_link(root, name):
            yield from file_items(root, name, owner, folder.prefix)
    yield from (LeftOut(_IS_PAGE, f"{folder.prefix}{name}") for name in folder.pages)
    yield from _others(root, folder, _CALLED, _IS_CALLED)
    yield from _others(root, folder, _NOTES, _IS_NOTE)
    for rules in folders:
        if not _first_link(root, rules) and (root / rules).is_dir():
            for name in files_below(root / rules, *_SUFFIXES, others=_NO_RULES):
                if isinstance(name, LeftOut):
                    yield name._replace(name=f"{rules}/{name.name}")
                else:
                    yield from file_items(root, f"{rules}/{name}", owner, folder.prefix)


def _others(root: Path, folder: _Folder, patterns: Sequence[str], reason: str) -> Iterator[LeftOut]:
    names = (f"{folder.prefix}{name}" for pattern in patterns for name in _matching(root, folder, pattern))
    for below in (name for name in names if (root / name).is_dir() and not _first_link(root, name)):
        yield from (LeftOut(reason, f"{below}/{name}") for name in names_below(root / below, ""))


def _matching(root: Path, folder: _Folder, pattern: str) -> list[str]:
    top = pattern.partition("/")[0]
    if "*" in top:
        return sorted(fnmatch.filter(folder.names, pattern))
    if top == pattern:
        return sorted(name for name in folder.spelled if name.casefold() == pattern.casefold())
    if "*" not in pattern or top not in folder.names:
        return [pattern] if top in folder.names else []
    below = root / folder.prefix
    return sorted(path.relative_to(below).as_posix() for path in below.glob(pattern))


def _first_link(root: Path, name: str) -> str:
    """Return the first part of a path below a folder that is a link, empty if there is none."""
    parts = name.split("/")
    paths = ("/".join(parts[: end + 1]) for end in range(len(parts)))
    return next((path for path in paths if (root / path).is_symlink()), "")


def file_items(root: Path, name: str, owner: Owner, prefix: str = "") -> Iterator[Item]:
    """Yield the sections of a rules file below a folder, and of the files that it imports by `@path`, five deep.

    They hold for the folder of that prefix.
    """
    waiting = [_Waiting(name)]
    names = {name: waiting[0]}
    while waiting:
        here = waiting.pop(0)
        file = _read(root, here)
        if not isinstance(file, TextFile):
            yield from [file] if file else []
            continue
        page, secrets = markdown.screened(file.name, file.text)
        yield from secrets
        about = text_of(page.head, "description")
        parts = [*markdown.sections(page.body, empty=True)] or [markdown.Section("", about)] * bool(about)
        sections = [part._replace(above=(*here.above, *part.above)) for part in parts]
        guidelines = [*_guidelines(file, page, sections, owner, prefix)]
        yield from guidelines
        yield _parts(file, owner, guidelines)
        imports = [*_imported(here, sections)] if here.depth < _MAX_IMPORTS_DEPTH else []
        if guidelines or imports:
            yield from _headings_alone(file.name, sections)
        else:
            yield LeftOut("empty", file.name)
        for there in imports:
            if names.setdefault(there.name, there) is there:
                waiting.append(there)
            elif there.name != name and names[there.name].above != there.above:
                yield LeftOut(_BELOW_OTHERS, there.name)


def _headings_alone(name: str, sections: list[markdown.Section]) -> Iterator[LeftOut]:
    """Yield the headings that have no text, and stand above no other."""
    for section, following in pairwise([*sections, markdown.Section("", "")]):
        if not section.text.strip() and section.heading not in following.above:
            yield LeftOut("a heading without text", f"{name}: {clean_line(section.heading, _MOST_HEADING)}")


def _read(root: Path, here: _Waiting) -> TextFile | LeftOut | None:
    """Return a file, or why it is left out; None for a rules file that a project does not have."""
    if here.name.startswith("../"):
        return LeftOut(_NO_IMPORT, here.name)
    file = read_or_leave_out(root, here.name)
    if isinstance(file, TextFile) and has_controls(file.text):
        return LeftOut("a text with control characters", here.name)
    if file == LeftOut(SPECIAL, here.name) and not here.depth:
        return left_out(damaged(here.name, f"is {SPECIAL}"))
    return LeftOut(_NO_IMPORT, here.name) if file is None and here.depth else file


def _imported(here: _Waiting, sections: list[markdown.Section]) -> Iterator[_Waiting]:
    """Yield the files that a rules file imports, outside of code, with the headings that stand above the import."""
    for section in sections:
        for line in (section.heading, *markdown.plain_lines(section.text)):
            for path in _IMPORT.findall(_CODE_SPAN.sub("", line)):
                below = normpath(join(dirname(here.name), path))
                yield _Waiting(below, (*section.above, section.heading), here.depth + 1)


def _guidelines(
    file: TextFile, page: markdown.Page, sections: list[markdown.Section], owner: Owner, prefix: str
) -> Iterator[Record]:
    scopes = {"folder": prefix.rstrip("/")} if prefix else {}
    scopes |= {key: value for key, value in filled(page.head).items() if key not in ("description", *_TITLES)}
    scope = "; ".join(f"{key}: {', '.join(texts_in(value)) or value}" for key, value in scopes.items())
    title = clean_line(text_of(page.head, *_TITLES), _MOST_ABOVE)
    rationale = ". ".join(part for part in (text_of(page.head, "description"), scope) if part)
    keys, titles = Counter[str](), Counter[str]()
    for section in (section for section in sections if section.text.strip()):
        heading = clean_line(section.heading, _MOST_HEADING)
        keys[heading] += 1
        path = _path(file.name, title, section)
        titles[path] += 1
        yield Record(
            "scopes",
            "guideline",
            f"{SYSTEM}:{file.name}#{heading}{_count(keys[heading])}",  # as before there were paths
            section.text,
            place=owner.name,
            title=clean_line(f"{file.name}{f': {path}' if path else ''}{_count(titles[path])}"),
            category="rules",
            tags=tags_of(["imported"]),
            created_at=file.modified,
            origin=filled({"system": SYSTEM, "file": file.name}),
            details={
                "priority": owner.priority,
                "rationale": rationale or None,
                "root": owner.root,
                "is_named": owner.is_named,
            },
        )


def _parts(file: TextFile, owner: Owner, guidelines: list[Record]) -> Record:
    details = {"root": owner.root, "is_named": owner.is_named, "keys": [record.key for record in guidelines]}
    origin = {"system": SYSTEM, "file": file.name}
    return Record("scopes", PARTS, f"{SYSTEM}:{file.name}", "", place=owner.name, origin=origin, details=details)


def _path(name: str, title: str, section: markdown.Section) -> str:
    """Return the headings above a section and its own, which may turn its meaning round: `Never do > Force push`."""
    above = [clean_line(heading, _MOST_ABOVE) for heading in section.above]
    headings = [*above, clean_line(section.heading, _MOST_HEADING)]
    own = name.rpartition("/")[2].casefold()
    whole = headings if title in headings else [title, *headings]
    return " > ".join(heading for heading in whole if heading and heading.casefold() != own)


def _count(number: int) -> str:
    return f" ({number})" if number > 1 else ""
