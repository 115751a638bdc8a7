"""How a person edits and forgets a memory of `notes`, which is a file."""

from handlers.notes import files, note_file
from handlers.notes.memory_types import FALLBACK
from handlers.notes.projects import absolute, projects, space
from kernel.memories.curation import Curation, ToolCall
from kernel.store.transaction import Tx


def compose(text: str, name: str) -> ToolCall:
    """Return a new file of the fallback type."""
    return ToolCall("memory_remember", {"title": name, "content": text, "memoryType": FALLBACK})


def curate(tx: Tx, where: str, key: str) -> Curation | None:
    """Return the content of the file without its front matter, with memory_remember and memory_forget."""
    project = next((project for project in projects(tx) if space(project.name) == where), None)
    if project is None:
        return Curation("", obstacle="its project is not among those of this server")
    try:
        memory = note_file.parse_file(key, files.read(project.root, key))
    except OSError as error:
        return Curation("", obstacle=f"its file cannot be read: {error.strerror or error}")
    path = absolute(project, key)
    edit = {"filePath": path, "title": memory.title, "memoryType": memory.memory_type, "tags": list(memory.tags)}
    return Curation(
        memory.content, ToolCall("memory_remember", edit, "content"), ToolCall("memory_forget", {"filePaths": [path]})
    )
