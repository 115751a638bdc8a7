"""A dialect: its tools, the formats of its replies, and the questions of the kernel about its memories and files."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from kernel.calls.settings import Setting
from kernel.calls.tools import ArgumentError, Precheck, Prompt, Reply, Resources, Result, Skill, Tool
from kernel.core.errors import Fault
from kernel.core.text import begins_with, nested_deeper, stored_object
from kernel.memories.briefing import Brief, KeepHandoff
from kernel.memories.curation import Curation, ToolCall
from kernel.memories.import_records import Export, FindAbsent, Import, Take
from kernel.store.history import Past
from kernel.store.transaction import Tx

_MOST_LEVELS = 32  # of objects and lists, as in other dialects; each is indented further
Keys = Sequence[tuple[str, str]]  # (space, key) of memories


class RestMethod(NamedTuple):
    """A tool at an HTTP method and path of its own, in no list; each `{name}` of the path is an argument.

    `client` is the argument that names the calling program, `body` the most bytes of a request if they are fewer.
    """

    verb: str
    path: str
    tool: Tool
    client: str = ""
    body: int = 0


class Concept(NamedTuple):
    """A memory as a page of its own: its title and summary, if it has them, its text without these, and further texts
    by name, which follow it.

    `points` are short texts beside it that `IndexSource.text` does not hold, and `fields` its other columns by name.
    """

    title: str = ""
    summary: str = ""
    body: str = ""
    tags: Sequence[str] = ()
    points: Sequence[str] = ()
    fields: Mapping[str, object] = MappingProxyType({})
    texts: Mapping[str, str] = MappingProxyType({})

    def columns(self) -> dict[str, Any]:
        """Return the other columns that hold something; metadata of too many levels stay JSON text."""
        text = str(self.fields.get("metadata") or "")
        metadata = stored_object(text)
        return filled({**self.fields, "metadata": text if nested_deeper(metadata, _MOST_LEVELS) else metadata})

    def beside(self, text: str) -> dict[str, Any]:
        """Return by their names all parts of the memory but its body that a text of it does not hold."""
        title = "" if begins_with(text, self.title) else self.title
        texts = {"summary": self.summary, **self.texts}
        missing = {name: part for name, part in texts.items() if part not in text}
        lists = {"tags": [*self.tags], "key_points": [*self.points]}
        return {**filled({"title": title, **missing, **lists}), **self.columns()}


def filled(values: Mapping[str, object]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value not in (None, "", [], {})}


class IndexSource(NamedTuple):
    """The document of a memory in the index.

    `text` is all of it that a person or agent reads: what `recall` searches, judges and returns. Its opening is the
    line of a list, and most of its vector. `words` are found too. `concept` is the same for an export of pages; its
    body is `text` if it is empty.
    """

    space: str
    key: str
    scope: str
    text: str
    words: str = ""
    concept: Concept = Concept()


def beside_of(tx: Tx, texts: Mapping[tuple[str, str], str]) -> dict[tuple[str, str], dict[str, Any]]:
    """Return by (space, key) the parts of memories that these texts of them do not hold."""
    beside: dict[tuple[str, str], dict[str, Any]] = {}
    for name, sources_of in tx.context.sources_of.items():
        keys = [place for place in texts if place[0].partition(":")[0] == name]
        for source in sources_of(tx, keys) if keys else ():
            if (place := (source.space, source.key)) in texts:
                beside[place] = source.concept.beside(texts[place])
    return beside


class Restored(NamedTuple):
    """A memory that an undo takes back: its text from now on, and the text the call left; None for no memory."""

    space: str
    key: str
    text: str | None
    left: str | None


class Outside(NamedTuple):
    """How an export of everything treats a table that follows files outside the database.

    It holds these columns, and `restore(tx, row)` brings a row back and says whether it was not there; a read only says
    so. A table without columns is left out.
    """

    columns: tuple[str, ...] = ()
    restore: Callable[[Tx, dict[str, Any]], bool] | None = None


class Memories(NamedTuple):
    """The memories of a dialect, as index, history, people, imports and hooks use them.

    `sources(tx)` yields all that the index must hold, `sources_of(tx, keys)` the same for some memories; `past` reads
    earlier states from the history. `tagged(tx, tags)` returns the (space, key) of memories with any of the tags, in
    any case, `expired(tx, keys, at)` those of some memories whose validity has ended at a time. `curate(tx, space,
    key)` says how a person edits, forgets and follows a memory, if need be by one of the tools `curating`, which no
    list has; `compose(text, name)` is the call that adds a memory; `named(key, text)` are the keys of the memories of a
    space that the history of another names instead of their texts; `erase(tx, space, key)` deletes what a deleted one
    leaves in tables of the dialect. `take(tx, records)` adds those of other programs,
    and `find_absent(tx, snapshot, program)` returns those that an export of a program no longer holds.
    `brief(tx, project)` is for the start of a session in a project, and `keep_handoff(tx, handoff)` keeps the summary
    of a compacted session. `session_space` is the space whose scopes are sessions. `places` are the forms
    of places inside the dialect that a key can be held to (see `reach` in `sql/schema/tables.json`): a name, a
    beginning with a word in capitals for the rest, or the setting that has the names.
    """

    sources: Callable[[Tx], Iterator[IndexSource]] | None = None
    sources_of: Callable[[Tx, Keys], Iterator[IndexSource]] | None = None
    past: Past | None = None
    tagged: Callable[[Tx, Sequence[str]], list[tuple[str, str]]] | None = None
    expired: Callable[[Tx, Keys, str], list[tuple[str, str]]] | None = None
    curate: Callable[[Tx, str, str], Curation | None] | None = None
    curating: tuple[Tool, ...] = ()
    compose: Callable[[str, str], ToolCall] | None = None
    named: Callable[[str, str], Sequence[str]] | None = None
    erase: Callable[[Tx, str, str], None] | None = None
    take: Take | None = None
    find_absent: FindAbsent | None = None
    brief: Brief | None = None
    keep_handoff: KeepHandoff | None = None
    session_space: str | None = None
    places: tuple[str, ...] = ()


class Files(NamedTuple):
    """The state of a dialect outside the database.

    `folders(settings, data)` lists the folders by name; reads notice changes there by the precheck `follow`.
    `after_undo(tx, restored)` restores the files, and raises a Fault for a memory that cannot be restored;
    `recover(tx)` returns the work that a killed process left, for the writer; None for none. `outside` maps tables to
    their form in an export.
    """

    folders: Callable[[Mapping[str, Any], Path], Sequence[tuple[str, Path]]] | None = None
    follow: Precheck | None = None
    after_undo: Callable[[Tx, Sequence[Restored]], None] | None = None
    recover: Callable[[Tx], Callable[[Tx], None] | None] | None = None
    outside: Mapping[str, Outside] = MappingProxyType({})


class Offers(NamedTuple):
    """The lists of MCP beside tools; `complete(tx, ref, argument, value, others)` returns completions."""

    resources: Resources | None = None
    prompts: tuple[Prompt, ...] = ()
    complete: Callable[[Tx, str, str, str, Mapping[str, str]], list[str]] | None = None
    skills: tuple[Skill, ...] = ()


class Exchange(NamedTuple):
    """The formats of other programs that a dialect imports, and those that it exports."""

    imports: tuple[Import, ...] = ()
    exports: tuple[Export, ...] = ()


class Dialect(NamedTuple):
    """A set of tools with the formats of its replies and errors.

    `reply(tool, result)` and `fail(fault)` make the `Reply`; `argument_fault(error)` words errors in arguments if the
    kernel's words do not fit the contract. `guide` tells a model which tool comes first and what to store. `rest` are
    tools over HTTP alone; `fault.tool` marks their faults. A dialect that `reads_all_dialects` refuses keys and tokens
    for some dialects. An `extra` dialect is served at its own addresses, and beside the others only if QUIPU_DIALECTS
    names it.
    """

    name: str
    about: str
    tools: tuple[Tool, ...]
    reply: Callable[[Tool, Result], Reply]
    fail: Callable[[Fault], Reply]
    guide: str = ""
    argument_fault: Callable[[ArgumentError], Fault] | None = None
    settings: tuple[Setting, ...] = ()
    memories: Memories = Memories()
    files: Files = Files()
    offers: Offers = Offers()
    exchange: Exchange = Exchange()
    rest: tuple[RestMethod, ...] = ()
    reads_all_dialects: bool = False
    extra: bool = False


def place_forms(dialects: Iterable[Dialect], settings: Mapping[str, Any]) -> dict[str, Sequence[str]]:
    """Return the forms of the places of each dialect to which a key can be held."""
    return {
        dialect.name: [name for form in dialect.memories.places for name in settings.get(form, (form,))]
        for dialect in dialects
        if not dialect.reads_all_dialects
    }
