"""The projects: the folders with memories, and the files that a path may refer to."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any, NamedTuple

from handlers.notes.safe_fs import FOLDER
from kernel.calls.settings import Setting, data_folder, text
from kernel.core.errors import Fault
from kernel.store.transaction import Tx

DEFAULT = "default"
SPACE = "notes"
ABSOLUTE_PATH_HINT = "give the absolute path that memory_recall answers with"
_QMD_SCHEME = "qmd://"


class Project(NamedTuple):
    """A folder that contains `.mnemonics`; `managed` is that in the data directory, created when needed."""

    name: str
    root: Path
    managed: bool = False


def parse_roots(value: str) -> tuple[Project, ...]:
    """Return the projects of `name=/path`, or `/path` for a project named after its folder, split as PATH."""
    projects = [_project(part.strip()) for part in value.split(os.pathsep) if part.strip()]
    if len({project.name for project in projects}) < len(projects):
        raise ValueError("folders with names of their own, such as web=/home/ada/web")
    if not projects or not all(project.root.is_absolute() for project in projects):
        raise ValueError("absolute folders, such as /home/ada/web")
    return tuple(projects)


def _project(entry: str) -> Project:
    name, mark, path = (part.strip() for part in entry.partition("="))
    has_name = mark and not any(sign in name for sign in ("~", os.sep, os.altsep) if sign)
    root = Path(os.path.normpath(Path(path if has_name else entry).expanduser()))
    return Project((name if has_name else root.name) or DEFAULT, root)


SETTINGS = (
    Setting(
        "QUIPU_NOTES_ROOTS",
        (),
        parse_roots,
        "the projects: folders, or name=folder, separated as in PATH",
        personal=True,
    ),
    Setting("QUIPU_NOTES_CONFIG", "", text, "a file with memoryTypes of your own, as opencode-historian has it"),
)


def folders(settings: Mapping[str, Any], data: Path) -> list[tuple[str, Path]]:
    return [(project.name, project.root / FOLDER) for project in _configured(settings, data)]


def _configured(settings: Mapping[str, Any], data: Path) -> tuple[Project, ...]:
    return settings["QUIPU_NOTES_ROOTS"] or (Project(DEFAULT, data / "notes", managed=True),)


def projects(tx: Tx) -> tuple[Project, ...]:
    """Return the projects that the call sees, of those configured, or that in the data directory."""
    every = _configured(tx.context.settings, data_folder(tx))
    return tuple([project for project in every if tx.may_read(SPACE, project.name)]) if tx.is_limited else every


def select_projects(every: Sequence[Project], name: str) -> Sequence[Project]:
    """Return the project of a name, or all of them for an empty name; raises Fault("invalid") for an unknown name."""
    selection = [project for project in every if project.name == name] if name else every
    if not selection:
        names = ", ".join(project.name for project in every)
        raise Fault("invalid", f'Invalid project: "{name}". Must be one of: {names}.')
    return selection


def space(project: str) -> str:
    return f"{SPACE}:{project}"


def candidate_files(every: Sequence[Project], name: str) -> list[tuple[Project, str]]:
    """Return the files below `.mnemonics` that a path may refer to, the likeliest first; empty if it leads elsewhere.

    A path is absolute, or with one project also relative to it or to its `.mnemonics`, or `qmd://type/file.md`. This
    does not touch the file system; links are refused when the file is opened.
    """
    if "\0" in name:
        return []
    virtual = name.startswith(_QMD_SCHEME)
    plain = PurePath(os.path.normpath(name.removeprefix(_QMD_SCHEME)))
    if plain.is_absolute() and not virtual:
        spots = ((project, _below(plain, project.root)) for project in every)
        return [(project, path) for project, path in spots if path is not None]
    if len(every) > 1:
        return []
    parts = plain.parts[1:] if plain.parts[:1] == (FOLDER,) else plain.parts
    if (virtual and plain.is_absolute()) or ".." in parts:
        return []
    return [(project, "/".join(parts)) for project in every]


def is_ambiguous(every: Sequence[Project], name: str) -> bool:
    """Return whether a path could refer to a file of any of several projects."""
    return len(every) > 1 and (name.startswith(_QMD_SCHEME) or not PurePath(name).is_absolute())


def _below(path: PurePath, root: Path) -> str | None:
    for base in (root, Path(os.path.realpath(root))):
        if path.is_relative_to(base / FOLDER):
            return "/".join(path.relative_to(base / FOLDER).parts)
    return None


def absolute(project: Project, path: str) -> str:
    return str(project.root.joinpath(FOLDER, *path.split("/")))
