"""How a person edits and forgets a memory of `paths`."""

from urllib.parse import quote

from handlers.paths.resources import SCHEME
from kernel.core.lazy_regex import regex
from kernel.memories.curation import Curation, ToolCall
from kernel.store.transaction import Tx

_NOT_IN_PATHS = regex(r"[^\w./-]+")


def compose(text: str, name: str) -> ToolCall:
    """Return a new memory at the path that its name makes."""
    words = _NOT_IN_PATHS.sub(" ", name).split()
    return ToolCall("add_memory", {"path": "-".join(words) or "memory", "content": text})


def curate(tx: Tx, _space: str, key: str) -> Curation | None:
    """Return the content at a path, with replace_memory and drop_memory."""
    content = tx.one("paths.memories.content", str, path=key)
    if content is None:
        return None
    place = {"path": key}
    edit, forget = ToolCall("replace_memory", place, "content"), ToolCall("drop_memory", place)
    return Curation(content, edit, forget, uri=SCHEME + quote(key))
