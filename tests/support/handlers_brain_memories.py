"""Calls, values and checks that several tests of memories share."""

from typing import Any

from kernel.core.config import MODEL
from kernel.embed.model import Embedder
from kernel.search import index
from kernel.server.app import Kernel
from kernel.store import history

NOW = "2026-01-02T03:04:05.678Z"


LATER = "2026-01-02T04:04:05.678Z"


IDENTITY = Embedder(MODEL).identity


def row(key: str, content: str, category: str = "fact", **changed: Any) -> dict[str, Any]:
    """Return a new memory as the contract wants it, with these changes."""
    return {
        "id": key,
        "content": content,
        "category": category,
        "subcategory": None,
        "tags": None,
        "source": "claude_code",
        "status": "active",
        "superseded_by": None,
        "project_id": None,
        "importance": 3,
        "memory_type": "permanent",
        "last_accessed_at": None,
        "access_count": 0,
        "valid_from": None,
        "valid_until": None,
        "decay_score": 1.0,
        "confidence": 1.0,
        "has_embedding": 1,
        "embedding_model": IDENTITY,
        "metadata": None,
        "created_at": NOW,
        "updated_at": NOW,
        **changed,
    }


def by_words(kernel: Kernel, words: str, db: str = "core") -> set[str]:
    """The ids found by words in one database."""
    return {
        hit.id
        for hit in kernel.store.read_sync(
            lambda tx: index.search(tx, words, within=[(f"brain:{db}", None)], semantic=False)
        )
    }


def events(kernel: Kernel, key: str, db: str = "core") -> list[tuple[Any, ...]]:
    found = kernel.store.read_sync(lambda tx: history.read(tx, f"brain:{db}", key))
    return [(event.operation, event.before, event.after, event.reason) for event in found]
