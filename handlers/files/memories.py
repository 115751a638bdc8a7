"""The tool `memory` of memory_20250818 with its six commands, over files that an agent keeps for itself."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated

from msgspec import Meta, Struct

from handlers.files import records
from handlers.files.records import MAX_BYTES, ROOT, Record, ancestors, below, shown, store_path
from kernel.calls.dialect import Concept, IndexSource, Keys
from kernel.calls.tools import Hints, Hooks, Tool, write
from kernel.core.errors import Fault
from kernel.memories.curation import Curation, ToolCall
from kernel.store.transaction import Tx

NO_PREFIX = "bare"  # label of a fault whose message has no `Error: ` in the contract
_LEVELS = 2
_HIDDEN = "node_modules"
_MAX_LINES = 999_999
_MAX_SHOWN = 16_000  # characters
_UNITS = "BKMG"
_STORE_NAME = "memories"
_AROUND = 2  # lines before and after the change in a snippet
STORE = "memstore_memories"  # the store of the tool, which a migration makes; `_create` makes a deleted one anew

Path = Annotated[str, Meta(description="Path of a file or directory, /memories or below it")]
FilePath = Annotated[str, Meta(description="Path of a file below /memories, for example /memories/notes.txt")]


class View(Struct, tag="view", tag_field="command"):
    path: Path
    view_range: Annotated[
        list[int] | None, Meta(description="First and last line to show of a file, from 1; -1 for the end")
    ] = None


class Create(Struct, tag="create", tag_field="command"):
    """Create a file at a free path; its directories come with it."""

    path: FilePath
    file_text: Annotated[str, Meta(description="Content of the file, at most 102,400 bytes")]


class StrReplace(Struct, tag="str_replace", tag_field="command"):
    path: FilePath
    old_str: Annotated[str, Meta(description="Text to replace, verbatim")]
    new_str: Annotated[str, Meta(description="Text to put in its place; nothing if left out")] = ""


class Insert(Struct, tag="insert", tag_field="command"):
    path: FilePath
    insert_line: Annotated[int, Meta(description="Line after which the text goes; 0 for the beginning")]
    insert_text: Annotated[str, Meta(description="Text to insert, as lines of its own")]


class Delete(Struct, tag="delete", tag_field="command"):
    path: Path


class Rename(Struct, tag="rename", tag_field="command"):
    old_path: Annotated[str, Meta(description="Path of the file or directory")]
    new_path: Annotated[str, Meta(description="Its new path, where nothing is; missing directories are made")]


class Answer(Struct):
    """What the tool says to the model."""

    text: str


def _directory(path: str, sizes: Mapping[str, int]) -> str:
    directory_sizes: defaultdict[tuple[str, ...], int] = defaultdict(int)
    files = set[tuple[str, ...]]()
    for file, size in sizes.items():
        segments = tuple(file[len(path) + 1 :].split("/"))
        files.add(segments)
        for depth in range(min(_LEVELS, len(segments)) + 1):
            directory_sizes[segments[:depth]] += size
    top = directory_sizes.pop((), 0)
    where = shown(path)
    lines = [
        f"Here're the files and directories up to 2 levels deep in {where}, excluding hidden items and node_modules:",
        f"{readable_size(top)}\t{where}",
    ]
    for segments in sorted(directory_sizes):
        if not any(segment.startswith(".") or segment == _HIDDEN for segment in segments):
            end = "" if segments in files else "/"
            lines.append(f"{readable_size(directory_sizes[segments])}\t{where}/{'/'.join(segments)}{end}")
    return _cut(lines, "look into one of its directories to see more")


def _file_lines(path: str, content: str, view_range: Sequence[int] | None) -> str:
    """Return the lines of a file, or those of a range; raises Fault("invalid") for too many."""
    lines = content.split("\n")
    if len(lines) > _MAX_LINES:
        raise Fault("invalid", f"File {shown(path)} exceeds maximum line limit of 999,999 lines.", NO_PREFIX)
    first, last = 1, len(lines)
    if view_range is not None:
        if len(view_range) != 2 or view_range[0] < 1 or -1 != view_range[1] < view_range[0]:
            advice = "It should be the first line, from 1, and the last, such as [1, 20], or -1 for the end"
            raise Fault("invalid", f"Invalid `view_range` parameter: {[*view_range]}. {advice}")
        first = view_range[0]
        last = last if view_range[1] == -1 else min(last, view_range[1])
    header = f"Here's the content of {shown(path)} with line numbers:"
    shown_lines = _numbered(lines, first, last)
    return _cut([header, *shown_lines], "use view_range to see more") if shown_lines else f"{header}\n"


def _numbered(lines: Sequence[str], first: int, last: int) -> list[str]:
    return [f"{number:>6}\t{lines[number - 1]}" for number in range(first, last + 1) if number <= len(lines)]


def readable_size(size: int) -> str:
    """Return bytes, K, M or G with at most one decimal."""
    unit = min((size.bit_length() - 1) // 10, len(_UNITS) - 1) if size else 0
    value = size / 1024**unit
    return f"{value:.0f}{_UNITS[unit]}" if value.is_integer() else f"{value:.1f}{_UNITS[unit]}"


def _cut(lines: Sequence[str], hint: str) -> str:
    """Return the lines that fit, at least the header and another, and a hint for the rest."""
    length, fitting = 0, list[str]()
    for line in lines:
        length += len(line) + 1
        if length > _MAX_SHOWN and len(fitting) > 1:
            fitting.append(f"[{len(lines) - len(fitting)} more lines: {hint}]")
            break
        fitting.append(line)
    return "\n".join(fitting)


def memory(tx: Tx, request: View | Create | StrReplace | Insert | Delete | Rename) -> Answer:
    """Store and look up what must outlive this conversation, in files below /memories. View the directory before
    other work, and keep it tidy: update or delete files that are no longer true.
    """
    match request:
        case View():
            return Answer(_view(tx, request))
        case Create():
            return Answer(_create(tx, request))
        case StrReplace():
            return Answer(_str_replace(tx, request))
        case Insert():
            return Answer(_insert(tx, request))
        case Delete():
            return Answer(_delete(tx, request))
        case Rename():
            return Answer(_rename(tx, request))


def sources(tx: Tx) -> Iterator[IndexSource]:
    yield from tx.each("files.memories.all_for_index", _source)


def sources_of(tx: Tx, keys: Keys) -> Iterator[IndexSource]:
    for space, id_ in keys:
        record = records.by_id(tx, space.partition(":")[2], id_)
        if record is not None:
            yield _source(record.store, id_, record.path, record.content)


def _view(tx: Tx, request: View) -> str:
    path = store_path(request.path)
    record = _file(tx, path)
    if record is not None:
        return _file_lines(path, record.content, request.view_range)
    sizes = dict(tx.rows("files.memories.sizes_below", store=STORE, **below(path)))
    if path and not sizes:
        message = f"The path {shown(path)} does not exist. Please provide a valid path."
        raise Fault("not_found", message, NO_PREFIX)
    return _directory(path, sizes)


def _create(tx: Tx, request: Create) -> str:
    path = store_path(request.path)
    if _exists(tx, path):
        raise Fault("conflict", f"File {shown(path)} already exists")
    if request.path.endswith("/"):
        raise Fault("invalid", f"The path {request.path} names a directory")
    _check_ancestors(tx, path)
    _check_size(request.file_text)
    records.add_store(tx, STORE, _STORE_NAME)
    records.add(tx, STORE, path, request.file_text)
    return f"File created successfully at: {shown(path)}"


def _str_replace(tx: Tx, request: StrReplace) -> str:
    path = store_path(request.path)
    record, old = _file(tx, path), request.old_str
    if record is None:
        raise Fault("not_found", f"The path {shown(path)} does not exist. Please provide a valid path.")
    if not old:
        raise Fault("invalid", "old_str must not be empty")
    before, *rest = record.content.split(old)
    if not rest:
        message = f"No replacement was performed, old_str `{old}` did not appear verbatim in {shown(path)}."
        raise Fault("invalid", message, NO_PREFIX)
    if len(rest) > 1:
        lines = _lines(record, old)
        message = f"No replacement was performed. Multiple occurrences of old_str `{old}` in lines: {lines}."
        raise Fault("invalid", f"{message} Please ensure it is unique", NO_PREFIX)
    content = f"{before}{request.new_str}{rest[0]}"
    _set_content(tx, record, content)
    line = before.count("\n") + 1
    snippet = _numbered(content.split("\n"), max(1, line - _AROUND), line + _AROUND)
    head = "The memory file has been edited. Here is the snippet showing the change (with line numbers):"
    return "\n".join([head, *snippet])


def _insert(tx: Tx, request: Insert) -> str:
    path = store_path(request.path)
    record = _file(tx, path)
    if record is None:
        raise Fault("not_found", f"The path {shown(path)} does not exist")
    lines = record.content.removesuffix("\n").split("\n") if record.content else []
    at = request.insert_line
    if not 0 <= at <= len(lines):
        advice = f"It should be within the range of lines of the file: [0, {len(lines)}]"
        raise Fault("invalid", f"Invalid `insert_line` parameter: {at}. {advice}")
    new_lines = [*lines[:at], request.insert_text.removesuffix("\n"), *lines[at:]]
    _set_content(tx, record, "\n".join(new_lines) + "\n")
    return f"The file {shown(path)} has been edited."


def _delete(tx: Tx, request: Delete) -> str:
    path = store_path(request.path)
    if not path:
        raise Fault("invalid", f"Cannot delete the {ROOT} directory itself")
    if not _exists(tx, path):
        raise Fault("not_found", f"The path {shown(path)} does not exist")
    for part in records.slices(tx, STORE, path):
        for record in part:
            records.remove(tx, record)
    return f"Successfully deleted {shown(path)}"


def _rename(tx: Tx, request: Rename) -> str:
    old, new = store_path(request.old_path), store_path(request.new_path)
    if not old:
        raise Fault("invalid", f"Cannot rename the {ROOT} directory itself")
    if _exists(tx, new):
        raise Fault("conflict", f"The destination {shown(new)} already exists")
    if not _exists(tx, old):
        raise Fault("not_found", f"The path {shown(old)} does not exist")
    if new.startswith(f"{old}/"):
        raise Fault("invalid", f"The path {shown(new)} lies inside {shown(old)}")
    _check_ancestors(tx, new)
    for part in records.slices(tx, STORE, old):
        for record in part:
            new_path = new + record.path[len(old) :]
            store_path(shown(new_path))  # a longer path may leave the limits
            records.change(tx, record, new_path, record.content)
    return f"Successfully renamed {shown(old)} to {shown(new)}"


def _file(tx: Tx, path: str) -> Record | None:
    return tx.one("files.records.at_path", Record, store=STORE, path=path)


def _exists(tx: Tx, path: str) -> bool:
    if not path or _file(tx, path) is not None:
        return True
    return tx.one("files.memories.has_below", int, store=STORE, **below(path)) is not None


def _check_ancestors(tx: Tx, path: str) -> None:
    ancestor = tx.one("files.memories.first_of", str, store=STORE, paths=ancestors(path))
    if ancestor is not None:
        raise Fault("conflict", f"The path {shown(ancestor)} is a file")


def _check_size(content: str) -> None:
    size = len(content.encode())
    if size > MAX_BYTES:
        raise Fault("invalid", f"The file would have {size} bytes, more than {MAX_BYTES}")


def _set_content(tx: Tx, record: Record, content: str) -> None:
    _check_size(content)
    records.change(tx, record, record.path, content)


def _lines(record: Record, part: str) -> str:
    """Return the numbers of the lines in which a text begins, each once."""
    pieces = record.content.split(part)[:-1]
    numbers, line = dict[int, None](), 1
    for piece in pieces:
        line += piece.count("\n")
        numbers[line] = None
        line += part.count("\n")
    return ", ".join(map(str, numbers))


def _texts_to_embed(request: View | Create | StrReplace | Insert | Delete | Rename) -> Sequence[str]:
    if not isinstance(request, Create) or len(request.file_text) > MAX_BYTES:
        return ()
    return [records.document_text(request.path.removeprefix(ROOT), request.file_text)]


def _source(store: str, id_: str, path: str, content: str) -> IndexSource:
    text = records.document_text(path, content)
    concept = Concept(path, body=content)
    return IndexSource(records.space_of(store), id_, records.scope_of(path), text, concept=concept)


def compose(text: str, name: str) -> ToolCall:
    path = f"{ROOT}/{name.replace(' ', '-')}"
    return ToolCall("memory", {"command": "create", "path": path if "." in name else f"{path}.txt", "file_text": text})


def curate(tx: Tx, space: str, key: str) -> Curation | None:
    """Return the content of a file, with the commands of the tool; of other stores with REST methods."""
    store = space.removeprefix("files:")
    record = records.by_id(tx, store, key)
    if record is None:
        return None
    if store != STORE:
        memory_key = {"memory_store_id": store, "memory_id": key}
        edit = ToolCall("update_stored_memory", memory_key, "content")
        return Curation(record.content, edit, ToolCall("delete_stored_memory", memory_key))
    place = {"path": ROOT + record.path}
    whole = {"command": "str_replace", **place, "old_str": record.content}
    edit = ToolCall("memory", whole, "new_str") if record.content else None
    name = record.path.rpartition("/")[2]

    def move(folder: str) -> ToolCall:
        new = "/".join(part for part in (ROOT, folder.strip("/"), name) if part)
        return ToolCall("memory", {"command": "rename", "old_path": place["path"], "new_path": new})

    return Curation(record.content, edit, ToolCall("memory", {"command": "delete", **place}), move=move)


def erase(tx: Tx, _space: str, key: str) -> None:
    tx.run("files.versions.erase", memory=key)


TOOLS: tuple[Tool, ...] = (
    write(
        memory, Hints("Memory", destructive=True, typed=False), hooks=Hooks(texts=_texts_to_embed), read_arms=(View,)
    ),
)
