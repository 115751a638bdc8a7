"""Dialect `brain` (seed 003): atomic memories with importance, entities, links, and search with visible signals."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from handlers.brain import (
    config,
    curation,
    entities,
    hybrid_search,
    links,
    memories,
    notes,
    querylog,
    resources,
    search,
    smart,
    vectors,
)
from handlers.brain.base import DATABASES, NO_PREFIX, SETTINGS
from handlers.brain.index_text import KINDS, Kind, is_indexed, past_sources
from kernel.calls.dialect import Dialect, Exchange, IndexSource, Keys, Memories
from kernel.calls.tools import Reply, Tool, lazily
from kernel.core.errors import Fault
from kernel.core.text import json_bytes
from kernel.memories.import_records import Import
from kernel.store.history import Past
from kernel.store.transaction import Tx

_TEXT = "text/plain; charset=utf-8"
_JSON = "application/json"


def reply(tool: Tool, result: Any) -> Reply:
    """Return JSON without blanks, or plain text if the result is a sentence."""
    if isinstance(result, str):
        return Reply(result.encode(), _TEXT)
    return Reply(json_bytes(result), _JSON)


def fail(fault: Fault) -> Reply:
    """Return one line: `Error: ...`, or `BLOCKED: ...` for an immutable memory; a few messages have no prefix."""
    prefix = "" if fault.label == NO_PREFIX else "BLOCKED: " if fault.code == "blocked" else "Error: "
    return Reply(f"{prefix}{fault.message}".encode(), _TEXT, fault.code)


def sources(tx: Tx) -> Iterator[IndexSource]:
    for kind in KINDS.values():
        yield from tx.each(kind.each, partial(_source, kind))


def sources_of(tx: Tx, keys: Keys) -> Iterator[IndexSource]:
    """Yield the index content of some rows; the id of an imported row does not tell its kind."""
    for space, id_ in keys:
        key = {"db": space.partition(":")[2], "id": id_}
        for kind in KINDS.values():
            row = tx.one(kind.get, kind.row, **key)
            if row is not None and is_indexed(row):
                yield kind.source(space, row)


def tagged(tx: Tx, tags: Sequence[str]) -> list[tuple[str, str]]:
    return tx.all("brain.tagged", _place, tags=tags)


def expired(tx: Tx, keys: Keys, at: str) -> list[tuple[str, str]]:
    return tx.all("brain.expired", _place, keys=[(space.partition(":")[2], key) for space, key in keys], at=at)


def _place(db: str, key: str) -> tuple[str, str]:
    return (f"brain:{db}", key)


def _source(kind: Kind, db: str, *columns: Any) -> IndexSource:
    return kind.source(f"brain:{db}", kind.row(*columns))


TOOLS: tuple[Tool, ...] = (
    *memories.TOOLS,
    *smart.TOOLS,
    *entities.TOOLS,
    *links.TOOLS,
    *search.TOOLS,
    *hybrid_search.TOOLS,
    *vectors.TOOLS,
    *querylog.TOOLS,
    *notes.TOOLS,
    *resources.TOOLS,
    *config.TOOLS,
)

DIALECT = Dialect(
    name="brain",
    about="Atomic memories with importance, immutability and history; entities, links, notes and resources; search "
    "by words, by meaning and by both, with the signals behind each score.",
    guide="Call hybrid_search first. save_memory takes one fact with a category, such as decision, preference "
    "or learning; supersede_memory when a fact changes, so that its history stays.",
    # Answers are text alone, as in the original, so output schemas in the tool list would only cost tokens.
    tools=tuple(tool._replace(hints=tool.hints._replace(typed=False)) for tool in TOOLS),
    reply=reply,
    fail=fail,
    memories=Memories(
        places=(DATABASES,),
        sources=sources,
        sources_of=sources_of,
        curate=curation.curate,
        curating=curation.TOOLS,
        compose=curation.compose,
        erase=curation.erase,
        named=links.ends,
        brief=curation.brief,
        tagged=tagged,
        expired=expired,
        past=Past(past_sources, keeps_scope=True),
        take=lazily("handlers.brain.intake:take"),
        find_absent=lazily("handlers.brain.intake:find_absent"),
    ),
    settings=SETTINGS,
    exchange=Exchange(
        imports=(
            Import(
                "project-brain",
                "the folder with core.db and its kin, plain or encrypted",
                lazily("handlers.brain.import_project_brain:import_files"),
            ),
        )
    ),
)
