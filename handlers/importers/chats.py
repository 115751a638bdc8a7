"""Chats: the exports of ChatGPT and Claude; one memory an exchange."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple
from zipfile import ZipFile

from handlers.importers.archives import UNREADABLE, Part, head_of, is_zip, parts_of, rows_of, unknown_member
from handlers.importers.importing import Read
from handlers.importers.records import (
    Item,
    LeftOut,
    clean_line,
    filled,
    is_deleted,
    list_in,
    mapping_in,
    shown,
    text_of,
    texts_in,
    time_in,
)
from kernel.core.errors import Fault
from kernel.core.lazy_regex import regex
from kernel.memories.import_records import GONE, Digests, Record, Source

CHATGPT, CLAUDE = "chatgpt", "claude"
MAX_EXCHANGE = 2000  # characters of a question, and of its answer
_PRIORITY = 5
_HEAD_BYTES = 1 << 16
_MOST_STEPS = 100_000  # messages of one conversation
_CONVERSATIONS = "conversations*.json"
_MARKS_OF_CLAUDE = ((b'"chat_messages"',), (b'"conversations_memory"',), (b'"prompt_template"', b'"docs"'))
_MEMBERS = {"conversations"}
_SAID = {"", "text", "multimodal_text"}
_NAMES = {"content_type", "language", "response_format_name"}
_TO_ALL = {"", "all"}
_OF_TOOLS = {"tool_use", "tool_result", "thinking", "redacted_thinking"}
KINDS = {"image", "audio", "video", "document", "file"}  # of parts without text
_NO_TEXT, _QUESTION = "(no text)", "Question: "
_REST = f"the rest of a text of more than {MAX_EXCHANGE:,} characters"
_BRANCH, _HIDDEN = "of a branch that was given up", "hidden, or of a tool"
TOOL, _ATTACHMENT = "a call of a tool, or a thought", "the content of an attachment"
_NO_QUESTION = "an answer to no question"
# The texts of the account: their title here, and their members in the content and the metadata of a message.
_OF_ACCOUNT = (
    ("ChatGPT: about the user", "user_profile", "about_user_message"),
    ("ChatGPT: instructions", "user_instructions", "about_model_message"),
    ("Memory of ChatGPT", "model_set_context", ""),
)
_NOTICE = "This block is not supported on your current device yet."  # Claude writes it for uses of tools
# A mark of ChatGPT in an answer: its kind, and its object, such as the source that it cites or the name it explains.
_MARK = regex(r"\ue200(\w{1,40})\ue202([^\ue200\ue201]*)\ue201", 0)
PERSON, AGENT = {"user", "human"}, {"assistant"}
Row = Mapping[str, Any]
_Make = Callable[[str, Row, str], Iterator[Item]]


class Message(NamedTuple):
    role: str
    text: str
    at: str
    is_given_up: bool = False


class _Account(NamedTuple):
    """A text of the settings of the account, or of its memories, as conversations have them."""

    title: str
    text: str
    at: str


def is_chatgpt(path: Path) -> bool:
    """Return whether a ZIP archive or a file holds conversations with a mapping of nodes."""
    return b'"mapping"' in first_bytes(path, _CONVERSATIONS)


def is_claude(path: Path) -> bool:
    """Return whether a ZIP archive, folder or file holds conversations with messages, projects, or memories."""
    head = first_bytes(path, *_FILES[CLAUDE])
    return any(all(mark in head for mark in marks) for marks in _MARKS_OF_CLAUDE)


def first_bytes(path: Path, *patterns: str) -> bytes:
    """Return the beginning of the first file of these names, wherever it is; nothing if there is none."""
    if path.is_file() and not is_zip(path):
        return head_of(path, _HEAD_BYTES, unpacked=True)
    if path.is_dir():
        files = (file for pattern in patterns for file in sorted(path.glob(pattern)))
        return head_of(next(files, path), _HEAD_BYTES)
    try:
        with ZipFile(path) as archive:
            names = sorted(archive.namelist())
            name = next((name for pattern in patterns for name in names if _is_of(pattern, name)), None)
            if name is None:
                return b""
            with archive.open(name) as file:
                return file.read(_HEAD_BYTES)
    except UNREADABLE:
        return b""


def _maker(system: str, name: str) -> "_Make | None":
    """Return the function for the rows of a file, by its name."""
    return next((make for pattern, make in _FILES[system].items() if _is_of(pattern, name)), None)


def _maker_of(row: Row) -> "_Make":
    """Return the function for a row of a file by itself, which may have any name."""
    return _memories if "conversations_memory" in row else _project if "prompt_template" in row else _conversation


def _is_of(pattern: str, name: str) -> bool:
    return PurePosixPath(name).match(pattern)


def open_export(system: str, source: Source, stack: ExitStack) -> Read:
    """Return the conversations of an export, downloaded or unpacked, and the program's own memories."""
    parts = parts_of(source, stack)
    if not any(isinstance(part, Part) and (not part.name or _maker(system, part.name)) for part in parts):
        name = shown(source.path.name)
        raise Fault("invalid", f"{name} holds nothing that can be imported: no conversations.json.")
    return partial(_items, system, parts, source.path.name)


def _items(system: str, parts: Sequence[Part | LeftOut], name: str) -> Iterator[Item]:
    """Yield the items of an export; of the texts of the account, which each conversation has, the newest."""
    newest: dict[str, Record] = {}
    for item in _export_items(system, parts, name):
        if system != CHATGPT or not isinstance(item, Record) or item.kind != "note":
            yield item
            continue
        last = newest.setdefault(item.key, item)
        if item.text != last.text:
            older, newest[item.key] = sorted((last, item), key=lambda note: note.created_at)
            yield LeftOut("an older version", older.title)
    yield from newest.values()


def _export_items(system: str, parts: Sequence[Part | LeftOut], name: str) -> Iterator[Item]:
    for part in parts:
        if isinstance(part, LeftOut):
            yield part
            continue
        make = _maker(system, part.name)
        if make is None and part.name:
            yield LeftOut("is no file with memories", part.name)
            continue
        for element in rows_of(part, _MEMBERS):
            if isinstance(element, LeftOut):
                yield element
            elif element.member not in {"", *_MEMBERS}:
                yield from unknown_member(element)
            else:
                place = f"{name}, {part.name}" if part.name else name
                yield from (make or _maker_of(element.row))(system, element.row, place)


def _conversation(system: str, row: Row, name: str) -> Iterator[Item]:
    number = text_of(row, "uuid", "conversation_id", "id")
    items = [*(_claude_messages(row) if system == CLAUDE else _chatgpt_messages(row))]
    messages = [item for item in items if isinstance(item, Message)]
    at = time_in(row, "create_time", "created_at") or time_in(row, "update_time", "updated_at")
    for account in (item for item in items if isinstance(item, _Account)):
        yield _note(account.title, account.text, account.title, "memory", account.at or at, name, system=system)
    title = clean_line(text_of(row, "title", "name"), 200)
    if is_deleted(row):
        yield LeftOut("deleted there", title)
        return
    updated_at = time_in(row, "update_time", "updated_at")
    began_at = time_in(row, "create_time", "created_at") or earliest(messages)
    for item in exchanges(system, number or title, title, began_at, messages, name):
        if isinstance(item, Record):
            details = {**item.details, "has_no_time": not item.created_at}
            item = item._replace(created_at=item.created_at or at, updated_at=updated_at, details=details)
        yield item
    for item in (item for item in items if isinstance(item, LeftOut)):
        yield item if item.name else item._replace(name=title or number)
    if system == CLAUDE and (summary := text_of(row, "summary")):
        yield _exchange(system, number or title, 0, summary, title, at, name)._replace(
            category="summary", updated_at=updated_at
        )


def exchanges(
    system: str, number: str, title: str, at: str, items: Iterable[Message | LeftOut], name: str
) -> Iterator[Item]:
    """Yield a memory for each message of the person, with the answers to it, and the rest as left out.

    Questions that were given up come last, since the same one may be asked in another branch.
    """
    turns, count, given_up, held = list[Message](), 0, list[Message](), Digests()
    for item in items:
        if isinstance(item, LeftOut):
            yield item
        elif item.is_given_up:
            given_up.append(item._replace(text=_cut(item.text)))
        elif item.role in PERSON:
            yield from _of_turns(system, number, count, turns, title, at, name)
            turns, count = [item], count + 1
            held.add(hash((item.at, _cut(item.text))))
        elif item.role in AGENT and turns:
            turns.append(item)
        else:
            yield LeftOut(_NO_QUESTION if item.role in AGENT else f"of a {clean_line(item.role, 40)}", title)
    yield from _of_turns(system, number, count, turns, title, at, name)
    yield from (_given_up(system, number, title, item, held) for item in given_up)
    if not count:
        yield LeftOut("a conversation without a question", title or number)


def _of_turns(
    system: str, number: str, place: int, turns: Sequence[Message], title: str, at: str, name: str
) -> Iterator[Item]:
    if not turns:
        return
    question, answer = turns[0].text, "\n\n".join(message.text for message in turns[1:])
    text = f"{_QUESTION}{_cut(question)}" + (f"\n\nAnswer: {_cut(answer)}" if answer else "")
    exchange = _exchange(system, number, place, text, title, turns[0].at or at, name)
    yield exchange._replace(details={**exchange.details, "may_be_copied": bool(turns[0].at)})
    for part in (question, answer):
        if len(part.strip()) > MAX_EXCHANGE:
            yield LeftOut(_REST, f"{title or number}, exchange {place}")


def _given_up(system: str, number: str, title: str, item: Message, held: Digests) -> Item:
    """Return a record of a question that is no more, since it may have been imported before, else what is left out."""
    if item.role not in PERSON or not item.at or hash((item.at, item.text)) in held:
        return LeftOut(_BRANCH, title)
    return Record(
        "sessions",
        GONE,
        f"{system}:{number}@{item.at}:{item.text}",
        f"{_QUESTION}{item.text}",
        place=f"{system}:{number}",
        title=title or clean_line(item.text, 200),
        created_at=item.at,
        origin=filled({"system": system, "id": number}),
        details={"why": _BRANCH, "stands_alone": True},
    )


def earliest(messages: Iterable[Message]) -> str:
    return min((message.at for message in messages if message.at), default="")


def _exchange(system: str, number: str, place: int, text: str, title: str, at: str, name: str) -> Record:
    """Return the memory of an exchange; that of the number 0 is the summary of its conversation."""
    return Record(
        "sessions",
        "memory",
        f"{system}:{number}#{place - 1}",
        text,
        place=f"{system}:{number}",
        title=title,
        category="conversation",
        created_at=at,
        origin=filled({"system": system, "id": number, "exchange": place, "file": name}),
        details={"priority": _PRIORITY, "has_own_id": bool(number)},
    )


def _cut(text: str) -> str:
    bare = text.strip()
    return bare if len(bare) <= MAX_EXCHANGE else f"{bare[: MAX_EXCHANGE - 1].rstrip()}\u2026"


def _chatgpt_messages(row: Row) -> Iterator[Message | _Account | LeftOut]:
    """Yield the messages from the root to the current node, oldest first, and what else is said."""
    nodes = _with_parents(mapping_in(row.get("mapping")))
    number = text_of(row, "current_node")
    number = number if number in nodes else _last_leaf(nodes)
    path: dict[str, None] = {}
    while number in nodes and number not in path and len(path) < _MOST_STEPS:
        path[number] = None
        number = text_of(mapping_in(nodes[number]), "parent")
    for number in reversed(path):
        message = mapping_in(mapping_in(nodes[number]).get("message"))
        if accounts := [*_chatgpt_account(message)]:
            yield from accounts
        elif item := _chatgpt_message(message):
            yield item
    for number in nodes.keys() - path.keys():
        if item := _chatgpt_message(mapping_in(mapping_in(nodes[number]).get("message"))):
            yield item._replace(is_given_up=True) if isinstance(item, Message) else LeftOut(_BRANCH)


def _chatgpt_message(message: Row) -> Message | LeftOut | None:
    """Return a message of a person or the agent, or the reason for leaving out another; None without text."""
    metadata, content = mapping_in(message.get("metadata")), mapping_in(message.get("content"))
    role, parts = text_of(mapping_in(message.get("author")), "role"), content.get("parts")
    is_said = text_of(content, "content_type") in _SAID and text_of(message, "recipient") in _TO_ALL
    is_hidden = bool(metadata.get("is_visually_hidden_from_conversation"))
    text = _MARK.sub(_shown_in_mark, texts_in_parts(parts))
    if is_hidden or not is_said or role not in PERSON | AGENT:
        return LeftOut(_HIDDEN) if text or _is_filled(content) else None
    if role in PERSON and not text:
        text = parts_without_text(parts, metadata.get("attachments"))
    if text or not _is_filled(content):
        return Message(role, text, time_in(message, "create_time")) if text else None
    return LeftOut("an answer without text")


def _shown_in_mark(mark: re.Match[str]) -> str:
    """Return the name that a mark explains, which stands in the sentence; nothing for other marks."""
    names = texts_in(mark[2]) if mark[1] == "entity" else []
    return names[1] if len(names) > 1 else ""


def _chatgpt_account(message: Row) -> Iterator[_Account]:
    """Yield the texts of the settings of the account in a message, and the memories that the program keeps."""
    content, at = mapping_in(message.get("content")), time_in(message, "create_time")
    bare_texts = mapping_in(mapping_in(message.get("metadata")).get("user_context_message_data"))
    if "context" in text_of(content, "content_type"):
        for title, whole, bare in _OF_ACCOUNT:
            if text := text_of(bare_texts, bare) or _fenced(text_of(content, whole)):
                yield _Account(title, text, at)


def _fenced(text: str) -> str:
    """Return the text between the marks of code, if it has any: an instruction to the program stands before it."""
    _, mark, rest = text.partition("```")
    return (rest.rpartition("```")[0] or rest).strip() if mark else text


def _is_filled(content: Row) -> bool:
    """Return whether the content of a message has more than its type and names."""
    others = {name: value for name, value in content.items() if name not in _NAMES and value != [""]}
    return bool(filled(others))


def _with_parents(nodes: Row) -> dict[str, Row]:
    """Return the nodes of a conversation, each with the parent that it names, or that names it as a child."""
    rows = {number: mapping_in(node) for number, node in nodes.items()}
    parents = {str(child): number for number, node in rows.items() for child in list_in(node.get("children"))}
    return {number: {"parent": parents.get(number), **filled(node)} for number, node in rows.items()}


def _last_leaf(nodes: Row) -> str:
    parents = {text_of(mapping_in(node), "parent") for node in nodes.values()}
    leaves = (number for number, node in nodes.items() if number not in parents and mapping_in(node).get("message"))
    return max(
        enumerate(leaves),
        key=lambda leaf: (time_in(mapping_in(mapping_in(nodes[leaf[1]]).get("message")), "create_time"), leaf[0]),
        default=(0, ""),
    )[1]


def _claude_messages(row: Row) -> Iterator[Message | LeftOut]:
    messages = [*map(mapping_in, list_in(row.get("chat_messages")))]
    current = _claude_branch(messages, text_of(row, "current_leaf_message_uuid"))
    for number, message in enumerate(messages):
        text = _claude_text(message)
        if text:
            at, is_given_up = time_in(message, "created_at"), number not in current
            yield Message(text_of(message, "sender"), text, at, is_given_up)
        if number not in current:
            continue
        if not text and _NOTICE in text_of(message, "text") and not message.get("content"):
            yield LeftOut(TOOL)
        yield from tools(message.get("content"))
        for file in map(mapping_in, list_in(message.get("attachments"))):
            if text_of(file, "extracted_content"):
                yield LeftOut(_ATTACHMENT, clean_line(text_of(file, "file_name", "name"), 200))


def _claude_branch(messages: Sequence[Row], leaf: str) -> Collection[int]:
    """Return the messages from the root to the last one, by the parents that newer exports name; else all."""
    places = {text_of(message, "uuid"): number for number, message in enumerate(messages)}
    parents = [text_of(message, "parent_message_uuid") for message in messages]
    if len(places) < len(messages) or places.keys().isdisjoint(parents):
        return range(len(messages))
    number: int | None = places.get(leaf, len(messages) - 1)
    branch = set[int]()
    while number is not None and number not in branch:
        branch.add(number)
        number = places.get(parents[number])
    return branch


def tools(content: object) -> list[LeftOut]:
    """Return the parts of a message that are calls of tools, their results, and thoughts."""
    return [LeftOut(TOOL) for part in list_in(content) if text_of(mapping_in(part), "type") in _OF_TOOLS]


def _claude_text(message: Row) -> str:
    """Return the text of the blocks of a message; its own text has a notice for each block that is none."""
    text = texts_in_parts(message.get("content")) or text_of(message, "text").replace(_NOTICE, "").strip("` \n")
    if text or text_of(message, "sender") not in PERSON:
        return text
    return parts_without_text(message.get("content"), message.get("attachments"), message.get("files"))


def texts_in_parts(value: object) -> str:
    parts: list[Any] = list_in(value) or [value]
    texts = (part if isinstance(part, str) else text_of(mapping_in(part), "text") for part in parts)
    return "\n\n".join(text for text in texts if text.strip())


def kind_of_part(part: Row) -> str:
    return text_of(part, "type", "content_type").removeprefix("input_").partition("_")[0]


def parts_without_text(*groups: object) -> str:
    """Return the names of the parts of a message without text, such as an image: it is a question all the same."""
    texts: list[str] = []
    for part in (mapping_in(part) for group in groups for part in list_in(group)):
        name = clean_line(text_of(part, "file_name", "name"), 200)
        kind = kind_of_part(part)
        if name or kind in KINDS:
            texts.append(f"({'attachment' if name else kind}{f': {name}' if name else ''})")
    return "\n".join(dict.fromkeys(texts)) or _NO_TEXT


def _project(system: str, row: Row, name: str) -> Iterator[Item]:
    """Yield a note for the description and the instructions of a project, and for each of its documents."""
    project, title = text_of(row, "uuid"), clean_line(text_of(row, "name"), 200)
    at = time_in(row, "created_at")
    for member, what in (("description", "description"), ("prompt_template", "instructions")):
        if text := text_of(row, member):
            yield _note(f"{project}:{member}", text, f"{title or 'Project'}: {what}", title, at, name)
    for doc in map(mapping_in, list_in(row.get("docs"))):
        number = text_of(doc, "uuid") or f"{project}:{text_of(doc, 'filename')}"
        file = clean_line(text_of(doc, "filename") or "Untitled")
        yield _note(number, text_of(doc, "content"), file, title, time_in(doc, "created_at"), name, "document")


def _memories(system: str, row: Row, name: str) -> Iterator[Item]:
    """Yield a note for each text that Claude remembers, of all conversations or of a project."""
    account = text_of(row, "account_uuid", "uuid")
    at = time_in(row, "updated_at", "created_at")
    for member, value in row.items():
        texts = {"": value} if isinstance(value, str) else mapping_in(value) or dict(enumerate(list_in(value)))
        for number, text in texts.items():
            content = text if isinstance(text, str) else text_of(mapping_in(text), "content", "memory", "text")
            if content and not member.endswith(("uuid", "_id", "_at")):
                title = f"Memory of Claude: {member.replace('_', ' ')}"
                yield _note(f"memory:{account}:{member}:{number}", content, title, "memory", at, name)


def _note(
    number: str, text: str, title: str, category: str, at: str, name: str, kind: str = "note", system: str = CLAUDE
) -> Record:
    return Record(
        "brain",
        "note",
        f"{system}:{number}",
        text,
        title=title,
        category=category,
        created_at=at,
        origin=filled({"system": system, "id": number, "file": name}),
        details={"note_type": kind},
    )


_FILES: Mapping[str, Mapping[str, _Make]] = {
    CHATGPT: {_CONVERSATIONS: _conversation},
    CLAUDE: {
        _CONVERSATIONS: _conversation,
        "projects.json": _project,
        "projects/*.json": _project,
        "memories.json": _memories,
    },
}
