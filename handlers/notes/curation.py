"""How a person edits, tags and forgets a memory of `notes`, which is a file, and the decisions of a project."""

from handlers.notes import files, note_file
from handlers.notes.memory_types import FALLBACK
from handlers.notes.projects import absolute, projects, space
from kernel.memories.briefing import Project, Remark
from kernel.memories.curation import Curation, ToolCall
from kernel.store.transaction import Tx

_MOST = 5


def compose(text: str, name: str) -> ToolCall:
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
    tags = list(memory.tags)
    edit = {"filePath": path, "title": memory.title, "memoryType": memory.memory_type, "tags": tags}

    def tag(name: str) -> ToolCall | None:
        tagged = {**edit, "content": memory.content, "tags": [*tags, name]}
        return None if name in tags else ToolCall("memory_remember", tagged)

    forget = ToolCall("memory_forget", {"filePaths": [path]})
    return Curation(memory.content, ToolCall("memory_remember", edit, "content"), forget, tag=tag)


def brief(tx: Tx, project: Project) -> list[Remark]:
    """Return the newest architectural decisions of the project with this folder."""
    matches = [match for match in projects(tx) if str(match.root.resolve()) == project.root]
    if not matches:
        return []

    def decision(path: str, modified: int, content: str) -> Remark:
        memory = note_file.parse_memory(path, content, modified)
        return Remark("decision", space(matches[0].name), path, f"{memory.title}: {memory.content}")

    return tx.all("notes.curation.decisions", decision, project=matches[0].name, limit=_MOST)
