"""The memories that agents keep in files of their own: the auto memory of Claude Code, and the memories of Codex."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from itertools import chain
from pathlib import Path

from handlers.importers import rules
from handlers.importers.agent_sessions import CLAUDE_CODE, CODEX, is_rollout, is_session, open_session, rollout_items
from handlers.importers.chats import first_bytes
from handlers.importers.importing import Read
from handlers.importers.markdown_folders import Vault, note_items, pages
from handlers.importers.note_names import names_of
from handlers.importers.records import Item, LeftOut, damaged, left_out
from handlers.importers.text_files import TextFile, files_below, names_below, read_or_name, root_of
from kernel.core.errors import Fault
from kernel.core.lazy_regex import regex
from kernel.memories.import_records import Source

_INDEX = "MEMORY.md"
_MEMORY_FOLDER, _PROJECTS = "memory", "projects"
_OF_PROJECTS = f"{_PROJECTS}/*/*.jsonl"
_SUMMARIES, _MEMORIES = "rollout_summaries", "memories"
_HISTORY = "history.jsonl"
_PROMPT_OF_CLAUDE_CODE, _PROMPT_OF_CODEX = (b'"display"', b'"project"'), (b'"session_id"', b'"ts"', b'"text"')
_NUMBER = "[0-9][0-9]*/"
# The folders of years, months and days, by themselves and below the folder of a user.
_OF_DAYS = tuple(f"{folder}{_NUMBER * level}" for folder in ("", "*sessions/") for level in range(4))
_USER_PRIORITY = 50
_DERIVED = "derived from other files"
_OF_LIST = regex(r"#|[-*+]?$|[-*+]\s.*(?:\.md\)|\]\])")  # headings, and items with a link


def is_claude_code(path: Path) -> bool:
    """Return whether a path is the auto memory of a project, the folder of a user, a session, or a folder of them."""
    if path.is_file():
        return is_session(path) or _is_history(path, _PROMPT_OF_CLAUDE_CODE)
    return _has_memories(path) or _has_sessions(path) or any(map(is_session, path.glob(_OF_PROJECTS)))


def _has_sessions(path: Path) -> bool:
    """Return whether a folder has the sessions of a project, of several or of a user, and neither rules nor notes."""
    sessions = chain.from_iterable(map(path.glob, ("*.jsonl", "*/*.jsonl", _OF_PROJECTS)))
    return any(map(is_session, sessions)) and not any(path.glob("*.md"))


def _has_memories(path: Path) -> bool:
    in_project = path.name == _MEMORY_FOLDER and (path / _INDEX).is_file()
    return in_project or (path / _MEMORY_FOLDER / _INDEX).is_file() or any(path.glob(f"{_PROJECTS}/*/{_MEMORY_FOLDER}"))


def is_codex(path: Path) -> bool:
    """Return whether a path is the folder with the memories, a session, or a folder of sessions."""
    if path.is_file():
        return is_rollout(path) or _is_history(path, _PROMPT_OF_CODEX)
    return _memories_of_codex(path) is not None or _has_rollouts(path)


def _memories_of_codex(path: Path) -> Path | None:
    """Return the folder with the memories of Codex: a path itself, or that in the folder of a user."""
    folder = path / _MEMORIES if path.name == ".codex" else path
    has_list = folder.name == _MEMORIES and (folder / _INDEX).is_file()
    has_summaries = (folder / _SUMMARIES).is_dir() or (folder / "memory_summary.md").is_file()
    return folder if has_list or has_summaries else None


def _is_history(path: Path, members: tuple[bytes, ...]) -> bool:
    """Return whether a file has the prompts of all sessions, with these members, without an answer."""
    if path.name != _HISTORY:
        return False
    line = first_bytes(path).partition(b"\n")[0]
    return all(member in line for member in members)


def _no_history(path: Path, folder: str) -> Fault:
    return damaged(path.name, f"holds prompts without their answers: import the sessions, `{folder}`")


def _has_rollouts(path: Path) -> bool:
    return any(True for place in _OF_DAYS for _ in path.glob(f"{place}rollout-*.jsonl"))


def open_claude_code(source: Source, _stack: ExitStack) -> Read:
    """Return the memories below a folder and the rules of the user; of a session file its exchanges."""
    if _is_history(source.path, _PROMPT_OF_CLAUDE_CODE):
        raise _no_history(source.path, "~/.claude/projects")
    if source.path.is_file():
        return open_session(source.path)
    if not source.path.is_dir():
        raise damaged(source.path.name, "is no folder and no session")
    if not _has_memories(source.path) and _has_sessions(source.path):
        return partial(_sessions, source.path, lambda path: open_session(path)())
    return partial(_claude_code_items, source.path)


def open_codex(source: Source, _stack: ExitStack) -> Read:
    """Return the handbook and the summaries of sessions; of a session file its exchanges."""
    if _is_history(source.path, _PROMPT_OF_CODEX):
        raise _no_history(source.path, "~/.codex/sessions")
    if source.path.is_file():
        return partial(rollout_items, source.path)
    if not source.path.is_dir():
        raise damaged(source.path.name, "is no folder and no session")
    if _has_rollouts(source.path):
        return partial(_rollouts, source.path)
    return partial(_codex_items, _memories_of_codex(source.path) or source.path)


def _sessions(folder: Path, items: Callable[[Path], Iterator[Item]]) -> Iterator[Item]:
    for name in files_below(folder, ".jsonl"):
        if isinstance(name, LeftOut):
            yield name
            continue
        try:
            for item in items(folder / name):
                if isinstance(item, LeftOut) and item.is_damage:
                    yield item._replace(name=f"{name}, {item.name}")
                else:
                    yield item
        except OSError as error:
            yield left_out(damaged(name, f"cannot be read: {error.strerror}"))


def _rollouts(folder: Path) -> Iterator[Item]:
    yield from _sessions(folder, rollout_items)
    for name in names_below(folder / _MEMORIES, ".md"):
        yield LeftOut("a memory, which is imported with its folder", f"{_MEMORIES}/{name}")


def _claude_code_items(folder: Path) -> Iterator[Item]:
    labels, projects = dict[str, tuple[str, Path]](), dict[Path, list[tuple[str, str]]]()
    for name, project in _memories(folder):
        label = f"{project.name}/{name if folder.name == _MEMORY_FOLDER else name.rpartition('/')[2]}"
        labels[name] = label, project
        projects.setdefault(project, []).append((name, label))
    vaults = {
        project: Vault(names_of(CLAUDE_CODE, pages(folder, own)), _root(project)) for project, own in projects.items()
    }
    for name in files_below(folder, ".md", ".jsonl"):
        if isinstance(name, LeftOut):
            yield name
        elif name.endswith(".jsonl"):
            yield LeftOut("a session, which is imported by its own path", name)
        elif name in labels:
            label, project = labels[name]
            yield from note_items(CLAUDE_CODE, read_or_name(folder, name, label), vaults[project])
        elif name.rpartition("/")[2] == _INDEX:
            yield LeftOut("a list of other memories", name)
        elif name == "CLAUDE.md":
            yield from rules.file_items(folder, name, rules.Owner("", root_of(folder), _USER_PRIORITY))
        else:
            yield LeftOut("is no memory", name)


def _memories(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield the names of memories, each with the folder of its project."""
    is_memory = folder.name == _MEMORY_FOLDER
    for name in names_below(folder, ".md"):
        path = folder / name
        if (is_memory or path.parent.name == _MEMORY_FOLDER) and (path.name != _INDEX or _has_own_text(folder, name)):
            yield name, (folder if is_memory else path.parent).resolve().parent


def _root(project: Path) -> str:
    """Return the root of a project that keeps its memories in itself; none if the name of the folder is its path."""
    return "" if project.parent.name == _PROJECTS else root_of(project)


def _has_own_text(folder: Path, name: str) -> bool:
    """Return whether a list of memories has lines that lead to none, as agents write some facts into the list alone."""
    file = read_or_name(folder, name)
    return isinstance(file, TextFile) and not all(_OF_LIST.match(line.strip()) for line in file.text.splitlines())


def _codex_items(folder: Path) -> Iterator[Item]:
    own = [name for name in names_below(folder, ".md") if _is_of_codex(name)]
    vault = Vault(names_of(CODEX, pages(folder, zip(own, own, strict=True))), root_of(folder))
    for name in files_below(folder, ".md", others=_DERIVED if own else ""):
        if isinstance(name, LeftOut):
            yield name
        elif _is_of_codex(name):
            yield from note_items(CODEX, read_or_name(folder, name), vault)
        else:
            yield LeftOut(_DERIVED, name)


def _is_of_codex(name: str) -> bool:
    return name == _INDEX or name.startswith(f"{_SUMMARIES}/")
