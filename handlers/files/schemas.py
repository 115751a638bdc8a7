"""Request types of the commands of the tool `memory`; names and types are those of memory_20250818."""

from typing import Annotated

from msgspec import Meta, Struct

Path = Annotated[str, Meta(description="Path of a file or directory, /memories or below it")]
FilePath = Annotated[str, Meta(description="Path of a file below /memories, for example /memories/notes.txt")]


class View(Struct, tag="view", tag_field="command"):
    path: Path
    view_range: Annotated[
        list[int] | None, Meta(description="First and last line to show of a file, from 1; -1 for the end")
    ] = None


class Create(Struct, tag="create", tag_field="command"):
    """Create a file at a free path; its directories come with it."""

    path: FilePath
    file_text: Annotated[str, Meta(description="Content of the file, at most 102,400 bytes")]


class StrReplace(Struct, tag="str_replace", tag_field="command"):
    path: FilePath
    old_str: Annotated[str, Meta(description="Text to replace, verbatim")]
    new_str: Annotated[str, Meta(description="Text to put in its place; nothing if left out")] = ""


class Insert(Struct, tag="insert", tag_field="command"):
    path: FilePath
    insert_line: Annotated[int, Meta(description="Line after which the text goes; 0 for the beginning")]
    insert_text: Annotated[str, Meta(description="Text to insert, as lines of its own")]


class Delete(Struct, tag="delete", tag_field="command"):
    path: Path


class Rename(Struct, tag="rename", tag_field="command"):
    old_path: Annotated[str, Meta(description="Path of the file or directory")]
    new_path: Annotated[str, Meta(description="Its new path, where nothing is; missing directories are made")]


class Answer(Struct):
    """What the tool says to the model."""

    text: str
