"""The servers of `peer_comparison`: installation and start, and calls that store, search and show."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from kernel.core.config import VERSION
from loadtests.lib.corpus import Memory
from loadtests.lib.stdio_client import ToolCall
from loadtests.scenarios import registry_install
from loadtests.scenarios.registry_install import Installed

QUIPU, GRAPH = "quipu", "quipu, graph"
REFERENCE, LIBSQL, SERVICE = "server-memory", "mcp-memory-libsql", "mcp-memory-service"
IN_FLIGHT = 16
_MANY = 40  # mcp-memory-libsql takes no more than 50 at a time
_NODE, _PYTHON = registry_install.node_package, registry_install.python_package


class Contender(NamedTuple):
    """One server: calls of its tools that store, search and show; `bulk` are the calls that store many fastest.

    `at_once` is how many of these it takes at once without losing one.
    """

    version: str
    install: Callable[[Path], Installed]
    arguments: tuple[str, ...]
    environ: Callable[[Path], Mapping[str, str]]
    store: Callable[[Memory], ToolCall]
    search: Callable[[str], ToolCall]
    show: Callable[[Memory], ToolCall]
    bulk: Callable[[Sequence[Memory]], list[ToolCall]]
    at_once: int = IN_FLIGHT


def word(memory: Memory) -> str:
    """The longest topic word of a memory as it is spelled there, which a substring search finds too."""
    return max((one for one in memory.topic if one in memory.text), key=len)


def _add(memory: Memory) -> ToolCall:
    return ToolCall("add_memory", {"path": memory.path, "content": memory.text}, memory.path)


def _entities(memories: Sequence[Memory], expect: str) -> ToolCall:
    entities = [{"name": one.path, "entityType": "note", "observations": [one.text]} for one in memories]
    return ToolCall("create_entities", {"entities": entities}, expect)


def _entity(memory: Memory) -> ToolCall:
    return _entities([memory], "")


def _batches(memories: Sequence[Memory]) -> list[ToolCall]:
    return [_entities(memories[at : at + _MANY], "") for at in range(0, len(memories), _MANY)]


def _nodes(text: str) -> ToolCall:
    return ToolCall("search_nodes", {"query": text}, text)


def _named(memory: Memory) -> str:
    return f'"name": "{memory.path}"'


def _stored(memory: Memory) -> ToolCall:
    # With a conversation it looks for no similar memory first, which costs it least.
    more = {"conversation_id": "bench", "metadata": {"tags": memory.path.split("/")[1]}}
    return ToolCall("memory_store", {"content": memory.text, **more}, "stored successfully")


def _exactly(memory: Memory) -> ToolCall:
    return ToolCall("memory_search", {"query": memory.text, "mode": "exact", "limit": 3}, memory.text[:80])


def _service(data: Path) -> dict[str, str]:
    # Without a model, which it would fetch: embeddings are hashes of the text, the cheapest it has.
    return {
        "MCP_MEMORY_BASE_DIR": str(data),
        "MCP_MEMORY_STORAGE_BACKEND": "sqlite_vec",
        "MCP_MEMORY_ALLOW_HASH_EMBEDDINGS": "1",
        "HF_HUB_OFFLINE": "1",
    }


CONTENDERS: dict[str, Contender] = {
    QUIPU: Contender(
        VERSION,
        registry_install.ours,
        ("stdio",),
        lambda data: {"QUIPU_DATA": str(data)},
        _add,
        lambda text: ToolCall("recall", {"query": text, "limit": 10}, '"id"'),
        lambda memory: ToolCall("read_memory", {"path": memory.path}, memory.path),
        lambda memories: [_add(memory) for memory in memories],
    ),
    # The tools of server-memory, beside it: the same calls.
    GRAPH: Contender(
        VERSION,
        registry_install.ours,
        ("stdio", "--dialect", "graph"),
        lambda data: {"QUIPU_DATA": str(data)},
        _entity,
        _nodes,
        lambda memory: ToolCall("open_nodes", {"names": [memory.path]}, _named(memory)),
        _batches,
    ),
    REFERENCE: Contender(
        "2026.8.31",
        partial(_NODE, requirement="@modelcontextprotocol/server-memory@2026.8.31", program="mcp-server-memory"),
        (),
        lambda data: {"MEMORY_FILE_PATH": str(data / "memory.jsonl")},
        _entity,
        _nodes,
        lambda memory: ToolCall("open_nodes", {"names": [memory.path]}, _named(memory)),
        _batches,
        at_once=1,
    ),
    LIBSQL: Contender(
        "0.0.17",
        partial(_NODE, requirement="mcp-memory-libsql@0.0.17", program="mcp-memory-libsql"),
        (),
        lambda data: {"LIBSQL_URL": f"file:{data / 'memory.db'}"},
        _entity,
        _nodes,
        lambda memory: _nodes(memory.path)._replace(expect=_named(memory)),
        _batches,
    ),
    SERVICE: Contender(
        "12.2.0",
        partial(_PYTHON, requirement="mcp-memory-service==12.2.0", program="memory"),
        ("server",),
        _service,
        _stored,
        lambda text: ToolCall("memory_search", {"query": text, "limit": 10}, "Hash:"),
        _exactly,
        lambda memories: [_stored(memory) for memory in memories],
    ),
}
