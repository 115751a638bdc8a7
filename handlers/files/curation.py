"""How a person edits and forgets a file of the tool `memory`."""

from handlers.files import records
from handlers.files.file_paths import ROOT
from handlers.files.memories import STORE
from kernel.memories.curation import Curation, ToolCall
from kernel.store.transaction import Tx


def compose(text: str, name: str) -> ToolCall:
    """Return a new file, with the ending of a text unless its name has an ending."""
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
    return Curation(record.content, edit, ToolCall("memory", {"command": "delete", **place}))


def erase(tx: Tx, _space: str, key: str) -> None:
    """Delete the versions of a deleted file."""
    tx.run("files.versions.erase", memory=key)
