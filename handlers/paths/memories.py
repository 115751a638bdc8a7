"""The tools of `paths`: memories under unique paths, and their answers."""

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

import msgspec
from msgspec import UNSET, Struct, UnsetType

from handlers.paths.schemas import (
    MAX_PATH,
    PAGE_SIZE,
    Added,
    AddMemory,
    Cleared,
    ClearMemory,
    DropMemory,
    Dropped,
    ListedMemory,
    ListMemories,
    Memory,
    MemoryList,
    Moved,
    MoveMemory,
    ReadMemory,
    Replaced,
    ReplaceMemory,
)
from kernel.calls.dialect import Concept, IndexSource, Keys
from kernel.calls.tools import (
    Hints,
    Hooks,
    InputRequired,
    Interaction,
    Reply,
    Resource,
    ResourceContents,
    Resources,
    ResourceTemplate,
    Tool,
    confirmation,
    exclusive,
    read,
    write,
)
from kernel.core.errors import Fault
from kernel.core.lazy_regex import regex
from kernel.core.text import composed, did_you_mean, json_bytes, yaml_block
from kernel.memories.briefing import Project, Remark
from kernel.memories.curation import Curation, ToolCall
from kernel.memories.succession import CHANGE_MARKS, replaced_by
from kernel.search import index
from kernel.store import history
from kernel.store.history import PastSource, PastText
from kernel.store.long_work import STEP_ROWS, Steps
from kernel.store.transaction import SLICE_BYTES, Tx

SPACE = "paths"
SCHEME = "memory://paths/"  # of the URIs of memories
MAX_CONTENT_BYTES = 1_048_576
_MANY = 10  # memories, from which on the user is asked before all are deleted
AFTER_EVERY_PATH = "\U0010ffff"  # the highest code point, which is not allowed in a path
_MOST_REMARKS = 5
_MOST_CONTRADICTED = 2
# Paths, with functions that return the texts, and whether the new text may be of a change.
_Near = tuple[Sequence[tuple[str, Callable[[], list[str]]]], bool]
_MOST_COMPARED = 50  # paths, beside an absent path
_NOT_IN_PATHS = regex(r"[^\w./-]+")
# The common form passes with one match; everything else takes the checks below.
_ASCII_PATH = regex(r"[a-zA-Z0-9_-]+(?:/[a-zA-Z0-9_-]+)*")
# Invisible letters and marks (default-ignorable code points): with them, two paths would look the same.
INVISIBLE = regex("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]")
_LABELS = {
    "not_found": "MEMORY_NOT_FOUND",
    "conflict": "MEMORY_ALREADY_EXISTS",
    "busy": "MEMORY_STORAGE_ERROR",
    "disabled": "MEMORY_STORAGE_ERROR",
    "storage": "MEMORY_STORAGE_ERROR",
    "internal": "MEMORY_STORAGE_ERROR",
}


def reply(tool: Tool, result: Struct) -> Reply:
    """Return the result as a YAML mapping, keys in the contract's order, and the same as JSON."""
    return Reply(yaml_block(msgspec.to_builtins(result)).encode(), "application/yaml", None, json_bytes(result))


def fail(fault: Fault) -> Reply:
    """Return the contract's error mapping: status, error_code, message."""
    label = fault.label or _LABELS.get(fault.code, "INVALID_ARGS")
    pairs = {"status": "error", "error_code": label, "message": fault.message}
    return Reply(yaml_block(pairs).encode(), "application/yaml", fault.code)


class _Content(NamedTuple):
    path: str
    content: str


def add_memory(tx: Tx, request: AddMemory) -> Added:
    """Create a new memory at a path that does not exist yet. Keep few topic memories with flat paths, stable facts
    only, and replace one as soon as it is stale.
    """
    path, size = _checked_path(request.path), checked_size(request.content)
    (near,) = _near(tx, [(path, request.content)])  # asked for in the round trip of the next statement
    if tx.one("paths.memories.add", str, path=path, content=request.content, content_size=size, now=tx.now) is None:
        raise Fault("conflict", f'Path "{path}" already exists, please use replace_memory to update')
    _index_and_append(tx, path, "created", None, request.content)
    return Added("ok", path, size, tx.now, _contradicted(tx, request.content, near))


def add_memories(tx: Tx, requests: Sequence[AddMemory]) -> list[Added | Fault]:
    """Return `add_memory` for several calls; if a path is taken, the batch fails and the queue runs each call by
    itself.
    """
    places = [_path_and_size(request) for request in requests]
    pairs = list(zip(places, requests, strict=True))
    rows = [(place[0], request.content, place[1]) for place, request in pairs if not isinstance(place, Fault)]
    if tx.run("paths.memories.add_many", rows=rows, now=tx.now) < len(rows):
        raise Fault("conflict", "A path is taken.")
    near = iter(_near(tx, [row[:2] for row in rows]))
    answers: list[Added | Fault] = []
    for place, request in pairs:
        if isinstance(place, Fault):
            answers.append(place)
        else:
            _index_and_append(tx, place[0], "created", None, request.content)
            answers.append(Added("ok", *place, tx.now, _contradicted(tx, request.content, next(near))))
    return answers


def replace_memory(tx: Tx, request: ReplaceMemory) -> Replaced:
    """Update the memory at an existing path; the old content goes to its history."""
    path, size = _checked_path(request.path), checked_size(request.content)
    before = tx.one("paths.memories.content", str, path=path)
    if before is None:
        raise _missing(tx, path, "please use add_memory to create first")
    tx.run("paths.memories.replace", path=path, content=request.content, content_size=size, now=tx.now)
    _index_and_append(tx, path, "replaced", before, request.content)
    (near,) = _near(tx, [(path, request.content)], are_new=False)
    return Replaced("ok", path, size, tx.now, _contradicted(tx, request.content, near))


def drop_memory(tx: Tx, request: DropMemory) -> Dropped:
    """Delete the memory at a path."""
    path = _checked_path(request.path)
    before = tx.one("paths.memories.drop", str, path=path)
    if before is None:
        raise _missing(tx, path, "list_memories shows the paths")
    history.append(tx, SPACE, path, "dropped", before=before)
    index.drop(tx, SPACE, path)
    return Dropped("ok", path, tx.now)


def clear_memory(
    tx: Tx, request: ClearMemory, interaction: Interaction | None
) -> Cleared | InputRequired | Steps[Cleared]:
    """Clear all personal memory: every path, also those of the other agents that share this store. This operation is
    irreversible.
    """
    total = tx.one("paths.memories.count", int, low="", high=AFTER_EVERY_PATH) or 0
    what = f"Delete all {total} memories, also those of other agents?"
    question = confirmation(interaction, what) if total > _MANY else None
    if question is not None:
        return question
    return _clear_steps(total)


def _clear_steps(total: int) -> Steps[Cleared]:
    tx = yield
    count = 0
    # As many as there were when the call began, the oldest first: it ends although others add memories meanwhile.
    while left := min(total - count, STEP_ROWS):
        memories = tx.all("paths.memories.clear_slice", _Content, limit=left, bytes=SLICE_BYTES)
        if not memories:
            break
        history.append_deleted(tx, SPACE, "cleared", [(memory.path, memory.content, None) for memory in memories])
        for memory in memories:
            index.drop(tx, SPACE, memory.path)
        count += len(memories)
        tx = yield
    return Cleared("ok", count, tx.now)


def move_memory(tx: Tx, request: MoveMemory) -> Moved:
    """Give the memory at a path another path."""
    path, new_path = _checked_path(request.path), _checked_path(request.new_path)
    content = tx.one("paths.memories.content", str, path=path)
    if content is None:
        raise _missing(tx, path, "list_memories shows the paths")
    if tx.one("paths.memories.content", str, path=new_path) is not None:
        raise Fault("conflict", f'Path "{new_path}" already exists')
    tx.run("paths.memories.move", path=path, new_path=new_path, now=tx.now)
    history.append(tx, SPACE, path, "moved", before=content, reason=f"to {new_path}")
    index.drop(tx, SPACE, path)
    history.append(tx, SPACE, new_path, "moved", after=content, reason=f"from {path}")
    index.put(tx, SPACE, new_path, index_text(new_path, content))
    return Moved("ok", path, new_path, tx.now)


def read_memory(tx: Tx, request: ReadMemory) -> Memory:
    """Read the memory at a path."""
    path = _checked_path(request.path)
    memory = get_memory(tx, path)
    if memory is None:
        raise _missing(tx, path, "list_memories shows the paths")
    return memory


def list_memories(tx: Tx, request: ListMemories) -> MemoryList:
    """List memories by path, without their content."""
    low = composed(request.prefix)
    bounds = {"low": low, "high": low + AFTER_EVERY_PATH}
    entries = tx.all("paths.memories.page", ListedMemory, after=request.after, limit=request.limit + 1, **bounds)
    page = entries[: request.limit]
    more = page[-1].path if len(entries) > request.limit else ""
    return MemoryList("ok", tx.one("paths.memories.count", int, **bounds) or 0, page, more)


def sources(tx: Tx) -> Iterator[IndexSource]:
    for row in tx.each("paths.memories.all_for_index", _Content):
        yield _source(row.path, row.content)


def sources_of(tx: Tx, keys: Keys) -> Iterator[IndexSource]:
    for _, path in keys:
        if (memory := get_memory(tx, path)) is not None:
            yield _source(path, memory.content)


def past_sources(_tx: Tx, texts: Sequence[PastText]) -> list[PastSource | None]:
    return [PastSource("", index_text(text.key, text.text)) for text in texts]


def brief(tx: Tx, project: Project) -> list[Remark]:
    """Return the memories below the name of the project that were changed last, also as a path has that name."""
    names = dict.fromkeys((composed(project.name), composed(_as_path(project.name))))
    bounds = ({"low": f"{name}/", "high": name + chr(ord("/") + 1)} for name in names)
    memories = (tx.all("paths.memories.newest_in", _Content, limit=_MOST_REMARKS, **folder) for folder in bounds)
    return [Remark("decision", SPACE, row.path, f"{row.path}: {row.content}") for row in chain.from_iterable(memories)]


def compose(text: str, name: str) -> ToolCall:
    return ToolCall("add_memory", {"path": _as_path(name) or "memory", "content": text})


def _as_path(name: str) -> str:
    return "-".join(_NOT_IN_PATHS.sub(" ", name).split())


def curate(tx: Tx, _space: str, key: str) -> Curation | None:
    """Return the content at a path, with replace_memory, drop_memory and move_memory."""
    content = tx.one("paths.memories.content", str, path=key)
    if content is None:
        return None
    place = {"path": key}
    edit, forget = ToolCall("replace_memory", place, "content"), ToolCall("drop_memory", place)

    def move(folder: str) -> ToolCall:
        return ToolCall("move_memory", {**place, "new_path": f"{folder}/{key.rpartition('/')[2]}".lstrip("/")})

    return Curation(content, edit, forget, uri=SCHEME + quote(key), move=move)


def get_memory(tx: Tx, path: str) -> Memory | None:
    def row(*values: Any) -> Memory:
        return Memory("ok", *values)

    return tx.one("paths.memories.get", row, path=path)


def _index_and_append(tx: Tx, path: str, operation: str, before: str | None, after: str) -> None:
    history.append(tx, SPACE, path, operation, before=before, after=after)
    index.put(tx, SPACE, path, index_text(path, after))


def _near(tx: Tx, texts: Iterable[tuple[str, str]], *, are_new: bool = True) -> list[_Near]:
    """Return for each path and its content the paths of memories that may be about the same thing, each with a function
    that returns its text.
    """
    near = index.near_subjects(tx, SPACE, texts, are_new=are_new, marks=CHANGE_MARKS)
    return [
        ([(path, tx.ask("paths.memories.content", str, path=path)) for path in paths], is_change)
        for paths, is_change in near
    ]


def _contradicted(tx: Tx, content: str, near: _Near) -> list[str] | UnsetType:
    """Return the paths of memories that seem to say something else about the same thing."""
    pairs, is_change = near
    if not pairs:
        return UNSET
    is_replaced = replaced_by(tx, content) if is_change else None

    def is_contradicted(text: str) -> bool:
        return index.seems_to_contradict(content, text) or (is_replaced is not None and is_replaced(text))

    contradicted = (path for path, texts in pairs if any(map(is_contradicted, texts())))
    return [*islice(contradicted, _MOST_CONTRADICTED)] or UNSET


def index_text(path: str, content: str) -> str:
    return f"{path}\n{content}"


def _source(path: str, content: str) -> IndexSource:
    return IndexSource(SPACE, path, "", index_text(path, content), concept=Concept(path, body=content))


def _texts_to_embed(request: AddMemory | ReplaceMemory) -> list[str]:
    return [index_text(composed(request.path.strip()), request.content)]


def _path_and_size(request: AddMemory) -> tuple[str, int] | Fault:
    try:
        return _checked_path(request.path), checked_size(request.content)
    except Fault as fault:
        return fault


def _missing(tx: Tx, path: str, advice: str) -> Fault:
    """Return the Fault for a path without a memory, with the nearest path of its folder."""
    folder = path.rpartition("/")[0]
    bounds = {"low": folder, "high": folder + AFTER_EVERY_PATH}
    listing = tx.all("paths.memories.page", ListedMemory, after="", limit=_MOST_COMPARED, **bounds)
    near = did_you_mean(path, [memory.path for memory in listing]).rstrip("?")
    return Fault("not_found", f'Path "{path}" does not exist{near}, {advice}')


def _checked_path(text: str) -> str:
    path = composed(text.strip())
    if len(path) <= MAX_PATH and _ASCII_PATH.fullmatch(path):
        return path
    if not path:
        raise Fault("invalid", "Path is required", "MEMORY_PATH_INVALID")
    if len(path) > MAX_PATH:
        raise Fault("invalid", f"Path has {len(path)} characters, more than {MAX_PATH}", "MEMORY_PATH_INVALID")
    if path.startswith("/"):
        raise Fault("invalid", f'Path "{path}" must be relative', "MEMORY_PATH_INVALID")
    for segment in path.split("/"):
        if segment in {"", ".", ".."}:
            raise Fault("invalid", f'Path "{path}" has an empty, "." or ".." segment', "MEMORY_PATH_INVALID")
        odd = (letter for letter in segment if letter not in "_-. " and unicodedata.category(letter)[0] not in "LNM")
        if any(odd) or INVISIBLE.search(segment):
            raise Fault("invalid", f'Path "{path}" contains illegal characters', "MEMORY_PATH_INVALID")
    return path


def checked_size(content: str) -> int:
    """Return the bytes of a content; raises Fault for none and for too many."""
    size = len(content.encode())
    if not size:
        raise Fault("invalid", "Memory content is required (content)")
    if size > MAX_CONTENT_BYTES:
        amount = f"{size / MAX_CONTENT_BYTES:.1f}MB" if size >= MAX_CONTENT_BYTES * 1.05 else f"{size} bytes"
        raise Fault("invalid", f"Content size {amount} exceeds 1MB limit", "MEMORY_CONTENT_TOO_LARGE")
    return size


# For people alone.
CURATING: tuple[Tool, ...] = (write(move_memory, Hints("Move memory", destructive=True), permission="write"),)
TOOLS: tuple[Tool, ...] = (
    write(add_memory, Hints("Add memory"), permission="write", hooks=Hooks(texts=_texts_to_embed, batch=add_memories)),
    write(
        replace_memory,
        Hints("Replace memory", destructive=True, idempotent=True),
        permission="write",
        hooks=Hooks(texts=_texts_to_embed),
    ),
    write(drop_memory, Hints("Drop memory", destructive=True), permission="write"),
    exclusive(
        clear_memory, Hints("Clear all memory", destructive=True, idempotent=True), permission="admin", interactive=True
    ),
    read(read_memory, Hints("Read memory", short=True), permission="read"),
    read(list_memories, Hints("List memories"), permission="read"),
)


def resource_page(tx: Tx, cursor: str | None) -> tuple[list[Resource], str | None]:
    """Return one page of the memories as resources; the cursor is the last path of the page before."""
    entries = tx.all(
        "paths.memories.page", ListedMemory, after=cursor or "", low="", high=AFTER_EVERY_PATH, limit=PAGE_SIZE + 1
    )
    page = [_resource(entry) for entry in entries[:PAGE_SIZE]]
    return page, entries[PAGE_SIZE - 1].path if len(entries) > PAGE_SIZE else None


def resource_read(tx: Tx, uri: str) -> list[ResourceContents] | None:
    memory = get_memory(tx, composed(unquote(uri.removeprefix(SCHEME))))
    return None if memory is None else [ResourceContents(uri, "text/plain", memory.content)]


def complete(tx: Tx, _ref: str, argument: str, value: str, _others: Mapping[str, str]) -> list[str]:
    if argument != "path":
        return []
    low = composed(value)
    bounds = {"low": low, "high": low + AFTER_EVERY_PATH}
    return [entry.path for entry in tx.all("paths.memories.page", ListedMemory, after="", limit=PAGE_SIZE, **bounds)]


def _resource(entry: ListedMemory) -> Resource:
    uri = SCHEME + quote(entry.path)
    return Resource(uri, entry.path, size=entry.content_size, modified=entry.updated_at)


RESOURCES = Resources(
    SCHEME,
    resource_page,
    resource_read,
    (ResourceTemplate(SCHEME + "{+path}", "memory", about="The memory at a path"),),
)
