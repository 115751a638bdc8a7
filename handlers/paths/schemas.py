"""Request and result types of `paths` (seed 004)."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

MAX_PATH = 255  # characters
PAGE_SIZE = 100

Path = Annotated[
    str,
    Meta(
        description="Unique identifier of the memory, for example project/todo: letters, digits, spaces and _ - . /, "
        "at most 255 characters, relative, without .. segments"
    ),
]
Text = Annotated[str, Meta(description="Memory content, kept as written; at most 1 MB of UTF-8")]
Contradicted = Annotated[
    list[str] | UnsetType,
    Meta(description="Other memories that seem to say something else about the same thing: read, then replace or drop"),
]
Ok = Literal["ok"]


class AddMemory(Struct, forbid_unknown_fields=True):
    """Where a new memory goes, and what it says."""

    path: Path
    content: Text


class ReplaceMemory(Struct, forbid_unknown_fields=True):
    """The memory to change, and what it says from now on."""

    path: Path
    content: Annotated[str, Meta(description="New memory content, kept as written; at most 1 MB of UTF-8")]


class DropMemory(Struct, forbid_unknown_fields=True):
    """The memory to delete."""

    path: Annotated[str, Meta(description="Path of the memory to delete")]


class MoveMemory(Struct, forbid_unknown_fields=True):
    """The memory to move, and its path from now on."""

    path: Annotated[str, Meta(description="Path of the memory to move")]
    new_path: Path


class ClearMemory(Struct, forbid_unknown_fields=True):
    """Nothing is needed."""


class ReadMemory(Struct, forbid_unknown_fields=True):
    """The memory to read."""

    path: Annotated[str, Meta(description="Path of the memory to read")]


class ListMemories(Struct, forbid_unknown_fields=True):
    """Which memories to list."""

    prefix: Annotated[str, Meta(description="Only paths that begin with this", max_length=MAX_PATH)] = ""
    limit: Annotated[int, Meta(description="Most memories to list", ge=1, le=1000)] = PAGE_SIZE
    after: Annotated[str, Meta(description="Continue after this path", max_length=MAX_PATH)] = ""


class Added(Struct):
    """Answer of add_memory; `content_size` in bytes of UTF-8."""

    status: Ok
    path: str
    content_size: int
    created_at: str
    may_contradict: Contradicted = UNSET


class Replaced(Struct):
    """Answer of replace_memory; `content_size` in bytes of UTF-8."""

    status: Ok
    path: str
    content_size: int
    updated_at: str
    may_contradict: Contradicted = UNSET


class Dropped(Struct):
    """Answer of drop_memory."""

    status: Ok
    path: str
    deleted_at: str


class Moved(Struct):
    """Answer of move_memory."""

    status: Ok
    path: str
    new_path: str
    updated_at: str


class Cleared(Struct):
    """Answer of clear_memory."""

    status: Ok
    cleared_count: int
    cleared_at: str


class Memory(Struct):
    """Answer of read_memory; `content_size` in bytes of UTF-8."""

    status: Ok
    path: str
    content: str
    content_size: int
    created_at: str
    updated_at: str


class ListedMemory(Struct):
    """One memory in a list, without its content."""

    path: str
    content_size: int
    created_at: str
    updated_at: str


class MemoryList(Struct):
    """Answer of list_memories; `next` is the `after` of the next page, empty on the last."""

    status: Ok
    total: int
    memories: list[ListedMemory]
    next: str
