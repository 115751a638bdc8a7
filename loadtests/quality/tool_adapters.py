"""The judged tools: how each stores texts, how it is queried, and by which signals."""

import os
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from loadtests.lib.servers import served
from loadtests.quality.dataset import Collection, Query, scope_names
from loadtests.quality.mcp_client import Caller
from loadtests.quality.metrics import CUT

LEXICAL, STATIC, FUSED, LATE = "words only", "static only", "fused", "fused + late"
USUAL = "as it is"
ORDER = "without a floor"
_BATCH = 100
_ROOM = 20_000


class Filled(NamedTuple):
    """The result of storing: the document of each server id, and the server's name of each scope."""

    docs: dict[str, str]
    scopes: dict[str, str]


class Mode(NamedTuple):
    """One query mode: the signals, and the arguments and server settings that select them."""

    name: str
    arguments: Mapping[str, Any] = {}
    settings: Mapping[str, str] = {}


class JudgedTool(NamedTuple):
    """A tool: `asked(query, scope)` returns its arguments, `found(answer)` the ids of the answer."""

    tool: str
    modes: Sequence[Mode]
    asked: Callable[[Query, str], dict[str, Any]]
    found: Callable[[Any], list[str]]


class DialectAdapter(NamedTuple):
    """A dialect: `fill` stores a collection; `settings` are the server settings it needs."""

    name: str
    settings: Callable[[Collection, Path], Mapping[str, str]]
    fill: Callable[[Caller, Collection], Filled]
    tools: Sequence[JudgedTool]


def adapters(names: Sequence[str]) -> list[DialectAdapter]:
    """The dialects with the tools of these names, or with all tools."""
    wanted = [shelf._replace(tools=[tool for tool in shelf.tools if not names or tool.tool in names]) for shelf in _ALL]
    return [shelf for shelf in wanted if shelf.tools]


@contextmanager
def serving(data: Path, settings: Mapping[str, str]) -> Generator[Caller]:
    """A client of a server over this data, once the model is loaded."""
    with served("kernel", "serve", "--data", str(data), environ=settings) as server:
        server.wait("/readyz", b'"model":"ready"')
        caller = Caller(server.port)
        yield caller
        caller.close()


def _sessions(caller: Caller, collection: Collection) -> Filled:
    docs: dict[str, str] = {}
    for doc in collection.docs:
        answer = caller.call("remember", content=doc.text, session_id=_session(doc.scope))
        if "id" in answer:
            docs[str(answer["id"])] = doc.id
    return Filled(docs, {scope: _session(scope) for scope in collection.scopes})


def _session(scope: str) -> str:
    return scope or "all"


def _brain(caller: Caller, collection: Collection) -> Filled:
    docs: dict[str, str] = {}
    names = scope_names([*collection.scopes])
    for scope, held in collection.scopes.items():
        for at in range(0, len(held), _BATCH):
            batch = held[at : at + _BATCH]
            memories = [{"content": doc.text, "category": "fact"} for doc in batch]
            answer = caller.call("bulk_save_memories", db=names[scope], memories=memories)
            docs.update(zip(answer["ids"], (doc.id for doc in batch), strict=True))
    return Filled(docs, names)


def _scopes(caller: Caller, collection: Collection) -> Filled:
    filled = Filled({}, {})
    for scope, held in collection.scopes.items():
        project = caller.call("memory_project", action="create", name=_session(scope))["project"]["id"]
        filled.scopes[scope] = project
        here = {"action": "add", "scopeType": "project", "scopeId": project}
        for number, doc in enumerate(held):
            answer = caller.call("memory_knowledge", **here, title=_title(number), content=doc.text)
            filled.docs[answer["knowledge"]["id"]] = doc.id
    return filled


def _notes(caller: Caller, collection: Collection) -> Filled:
    docs: dict[str, str] = {}
    names = scope_names([*collection.scopes])
    for scope, held in collection.scopes.items():
        here = {"memoryType": "context", "project": names[scope]}
        for number, doc in enumerate(held):
            answer = caller.call("memory_remember", **here, title=_title(number), content=doc.text)
            docs[answer["filePath"]] = doc.id
    return Filled(docs, names)


def _title(number: int) -> str:
    """A title that says nothing about the text."""
    return f"note {number}"


def _nothing(_collection: Collection, _data: Path) -> Mapping[str, str]:
    return {}


def _databases(collection: Collection, _data: Path) -> Mapping[str, str]:
    return {"QUIPU_BRAIN_DATABASES": ",".join(scope_names([*collection.scopes]).values())}


def _roots(collection: Collection, data: Path) -> Mapping[str, str]:
    folders = {name: data / "projects" / name for name in scope_names([*collection.scopes]).values()}
    for folder in folders.values():
        folder.mkdir(parents=True, exist_ok=True)
    return {"QUIPU_NOTES_ROOTS": os.pathsep.join(f"{name}={folder}" for name, folder in folders.items())}


def _ids(part: str, name: str = "id") -> Callable[[Any], list[str]]:
    return lambda answer: [str(row[name]) for row in answer[part]]


def _recalled_keys(answer: Any) -> list[str]:
    """What follows the space in each id, which holds no slash."""
    return [row["id"].partition("/")[2] for row in answer["memories"]]


_ALL: tuple[DialectAdapter, ...] = (
    DialectAdapter(
        "sessions",
        _nothing,
        _sessions,
        (
            JudgedTool(
                "recall",
                (
                    Mode(LEXICAL, {"weights": {"meaning": 0}}),
                    Mode(STATIC, {"weights": {"words": 0}}),
                    Mode(FUSED, {"weights": {"late": 0, "neighbours": 0}}),
                    Mode(LATE, {"weights": {"neighbours": 0}}),
                    Mode(USUAL),
                    Mode(ORDER, {"floor": "none"}),
                ),
                lambda query, session: {
                    "query": query.text,
                    "spaces": ["sessions"],
                    "scope": session,
                    "limit": CUT,
                    "max_tokens": _ROOM,
                },
                _recalled_keys,
            ),
            JudgedTool(
                "search_memory",
                (
                    Mode(LEXICAL, settings={"CODE_MEMORY_ENABLE_VEC": "0"}),
                    Mode(STATIC, settings={"CODE_MEMORY_ENABLE_FTS": "0"}),
                    Mode(FUSED),
                ),
                lambda query, session: {"query": query.text, "session_id": session, "limit": CUT},
                _ids("result"),
            ),
        ),
    ),
    DialectAdapter(
        "brain",
        _databases,
        _brain,
        (
            JudgedTool(
                "hybrid_search",
                (
                    Mode(LEXICAL, {"weights": {"fts": 1, "vector": 0, "recency": 0, "importance": 0}}),
                    Mode(STATIC, {"weights": {"fts": 0, "vector": 1, "recency": 0, "importance": 0}}),
                    Mode(FUSED, {"weights": {"recency": 0, "importance": 0}}),
                    Mode(USUAL),
                ),
                lambda query, name: {"query": query.text, "db": name, "limit": CUT},
                _ids("results"),
            ),
        ),
    ),
    DialectAdapter(
        "scopes",
        _nothing,
        _scopes,
        (
            JudgedTool(
                "memory_query",
                (Mode(LEXICAL, {"semanticSearch": False}), Mode(FUSED)),
                lambda query, project: {
                    "action": "search",
                    "search": query.text,
                    "limit": CUT,
                    "compact": True,
                    "scope": {"type": "project", "id": project, "inherit": False},
                },
                _ids("results"),
            ),
        ),
    ),
    DialectAdapter(
        "notes",
        _roots,
        _notes,
        (
            JudgedTool(
                "memory_recall",
                (Mode(LEXICAL, {"type": "search"}), Mode(STATIC, {"type": "vsearch"}), Mode(FUSED, {"type": "query"})),
                lambda query, name: {"query": query.text, "project": name, "limit": CUT},
                _ids("memories", "path"),
            ),
        ),
    ),
)
