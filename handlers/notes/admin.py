"""Two tools beside the contract: read all files again, and report their faults."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence, Set
from typing import Literal, NamedTuple

from handlers.notes import front_matter as front
from handlers.notes import memory_types, note_file, sync
from handlers.notes.note_file import ParsedMemory
from handlers.notes.projects import Project, projects, select_projects
from handlers.notes.schemas import Issue, Lint, Linted, Summary, Sync, Synced
from handlers.notes.slug import SUFFIX, slug
from kernel.calls.settings import setting
from kernel.calls.tools import Hints, Hooks, Precheck, Tool, read
from kernel.core.errors import Fault
from kernel.core.lazy_regex import regex
from kernel.store.transaction import Tx

_STALE_AFTER_MS = 90 * 86_400_000  # 90 days
_REQUIRED_KEYS = ("memory_type", "created", "modified")
_SEVERITIES = ("error", "warning", "info")
# Links in code are examples.
_CODE = regex(r"^(?:```|~~~).*?^(?:```|~~~)|`[^`\n]*`", re.MULTILINE | re.DOTALL)
# If git could not merge; `=======` alone may underline a heading.
_CONFLICT = regex(r"^(?:<{7}|>{7})(?: .*)?$", re.MULTILINE)
_WIKI_LINK = regex(r"\[\[([^\[\]|#\n]+)")


class _MemoryPage(NamedTuple):
    path: str
    front: front.Page
    memory: ParsedMemory
    links: Set[str]
    conflict: bool


def memory_sync(tx: Tx, request: Sync) -> Synced:
    """Read every memory file again and make the index say what they say. Rarely needed: every recall notices files
    that were changed, added, renamed or deleted by hand.
    """
    for project in projects(tx):  # the precheck skips a project that cannot be read; here it must raise
        sync.scan_project(project)
    return Synced(True, "Index and embeddings updated successfully")


def memory_lint(tx: Tx, request: Lint) -> Linted:
    """Check every memory file: front matter, types, empty or stale content, equal titles, broken [[links]], conflicts
    of version control, and files that cannot be read. Changes nothing.
    """
    every = projects(tx)
    selection = select_projects(every, request.project)
    types, pairs = _all_types(tx, every)
    pairs = [pair for pair in pairs if pair[0] in selection]
    now, total = sync.nanoseconds(tx.now) // 1_000_000, 0
    for project in selection:
        here = _pages(tx, project)
        total += len(here)
        pairs += [(project, issue) for issue in (*_unreadable_issues(project), *_issues(here, types, now))]
    # An unreadable file is not among the memories.
    spoiling = [pair for pair in pairs if pair[1].type != "unreadable" and pair[1].severity != "info"]
    unhealthy = {(project.name, issue.file) for project, issue in spoiling}
    health = round(100 * (total - len(unhealthy)) / total) if total else 100
    if len(every) > 1:
        for project, issue in pairs:
            issue.project = project.name
    issues = [issue for _, issue in pairs]
    issues.sort(key=lambda issue: (_SEVERITIES.index(issue.severity), issue.project or "", issue.file, issue.type))
    summary = Summary(total, len(issues), health, dict(Counter(issue.type for issue in issues)))
    return Linted(not issues, summary, issues[: request.limit])


def _all_types(tx: Tx, every: Sequence[Project]) -> tuple[Set[str], list[tuple[Project, Issue]]]:
    """Return the names of all types; a project with an unreadable configuration becomes an issue."""
    types = set(memory_types.load_types(setting(tx, "QUIPU_NOTES_CONFIG"), ()))
    issues: list[tuple[Project, Issue]] = []
    for project in every:
        try:
            types.update(kind.name for kind in memory_types.project_types(project.root))
        except Fault as fault:
            issues.append((project, _project_issue(project, fault)))
    return types, issues


def _unreadable_issues(project: Project) -> list[Issue]:
    try:
        scan = sync.scan_project(project)
    except Fault as fault:
        return [_project_issue(project, fault)]
    return [_unreadable_issue(*entry) for entry in scan.unreadable] if scan else []


def _pages(tx: Tx, project: Project) -> list[_MemoryPage]:
    def read_page(path: str, mtime: int, content: str) -> _MemoryPage:
        page = front.parse(content)
        memory = note_file.memory_of(path, page, mtime)
        links = frozenset(link.strip() for link in _WIKI_LINK.findall(_CODE.sub("", memory.content)))
        return _MemoryPage(path, page, memory, links, _CONFLICT.search(content) is not None)

    return tx.all("notes.admin.list", read_page, project=project.name)


def _issues(pages: Sequence[_MemoryPage], types: Set[str], now: int) -> Iterator[Issue]:
    titles = Counter(page.memory.title.casefold() for page in pages)
    targets = {name for page in pages for name in _link_names(page)}
    linking_names = {_normalized_name(link) for page in pages for link in page.links}
    linking = any(page.links or front.value(page.front, "related") for page in pages)
    for page in pages:
        yield from _front_matter_issues(page, types)
        yield from _content_issues(page, now)
        for link in sorted(page.links):
            if _normalized_name(link) not in targets:
                yield _issue(page, "broken-wikilink", f"[[{link}]] is the name of no memory", "Correct or remove it")
        if titles[page.memory.title.casefold()] > 1:
            yield _issue(page, "duplicate-title", "Another memory has this title", "Merge them, or rename one")
        if (
            linking
            and not page.links
            and not _link_names(page) & linking_names
            and not front.value(page.front, "related")
        ):
            yield _issue(page, "orphan", "Nothing links here, and this links to nothing", "Add related memories")


def _front_matter_issues(page: _MemoryPage, types: Set[str]) -> Iterator[Issue]:
    missing = [key for key in _REQUIRED_KEYS if not front.value(page.front, key)]
    if missing:
        yield _issue(page, "missing-frontmatter", f"Front matter lacks {', '.join(missing)}", "Add it, or update it")
    wrong = [key for key in ("created", "modified") if key not in missing and not note_file.time_of(page.front, key)]
    if wrong:
        message = f"What stands for {' and '.join(wrong)} is no time"
        yield _issue(page, "invalid-time", message, "Write it as 2026-01-31T10:00:00Z")
    if page.memory.memory_type not in types:
        message = f'"{page.memory.memory_type}" is no type'
        yield _issue(page, "invalid-type", message, "Use a type of memory_list_types, or configure this one")


def _content_issues(page: _MemoryPage, now: int) -> Iterator[Issue]:
    if page.conflict:
        yield _issue(page, "conflict-marker", "Two versions stand in the file, as git left them", "Keep one of them")
    if not page.memory.content.strip():
        yield _issue(page, "empty-content", "There is no content", "Write some, or delete the file")
    if "\ufffd" in page.memory.content:
        yield _issue(page, "invalid-text", "Not all of the content is UTF-8", "Save the file as UTF-8")
    if sync.nanoseconds(page.memory.modified) // 1_000_000 < now - _STALE_AFTER_MS:
        yield _issue(page, "stale", "Not changed for more than 90 days", "See whether it is still true")


_SEVERITY: dict[str, Literal["error", "warning", "info"]] = {
    "missing-frontmatter": "error",
    "invalid-type": "error",
    "conflict-marker": "error",
    "orphan": "info",
}


def _issue(page: _MemoryPage, kind: str, message: str, suggestion: str) -> Issue:
    return Issue(kind, _SEVERITY.get(kind, "warning"), page.path, message, suggestion)


def _unreadable_issue(path: str, why: str) -> Issue:
    name = path.encode("utf-8", "replace").decode()
    return Issue("unreadable", "error", name, f"Not taken for a memory: {why}", "Move or mend it")


def _project_issue(project: Project, fault: Fault) -> Issue:
    return Issue("unreadable", "error", str(project.root), fault.message, "Mend it, or serve the project no more")


def _link_names(page: _MemoryPage) -> Set[str]:
    stem = page.path.removesuffix(SUFFIX)
    return {_normalized_name(name) for name in (stem, stem.rpartition("/")[2], page.memory.title)}


def _normalized_name(link: str) -> str:
    return "/".join(slug(part) for part in link.strip().removesuffix(SUFFIX).split("/"))


TOOLS: tuple[Tool, ...] = (
    read(
        memory_sync,
        Hints("Sync"),
        permission="read",
        hooks=Hooks(precheck=Precheck(sync.check_all, sync.write, sync.texts, required=True)),
        long=True,
    ),
    read(
        memory_lint,
        Hints("Lint"),
        permission="read",
        hooks=Hooks(precheck=Precheck(sync.check, sync.write, sync.texts)),
    ),
)
