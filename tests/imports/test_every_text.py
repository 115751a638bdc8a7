"""Every text of a memory is shown by `quipu show` and the console, found by its words, read whole by recall, and part
of each export.

The texts are made by the tools that write, called with the arguments that their schemas describe. So a new kind of
memory is among them as soon as a tool makes it, and a new text of a kind as soon as a tool takes it.
"""

import asyncio
import itertools
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast, get_args

import msgspec
import pytest
import yaml

from handlers.console import commands
from handlers.console.memory import load
from handlers.console.requests import Visit
from kernel.calls.dispatch import Dispatch
from kernel.core.config import Config
from kernel.search import index
from kernel.security.permissions import ANONYMOUS_CALLER
from kernel.server import app
from kernel.server.app import Kernel
from tests.conftest import Call, everything
from tests.imports.harness import Shell

# Parameters that are no text of their own; a parameter of another name that takes text gets words of its own.
VALUES: dict[str, Any] = {
    "db": "core",
    "scopeType": "global",
    "session_id": "terminal",
    "agent_id": "tester",
    "file_path": "/srv/locked",
    "memory_store_id": "memstore_memories",
    "memoryType": "context",
    "project": "web",
}
# Places, tags and settings that tools keep, who wrote an entry, and relations, which are links of memories.
OF_NO_MEMORY = {
    f"{request} {name}"
    for requests, names in (
        ("CreateOrg", "name metadata"),
        ("CreateProject", "name description rootPath metadata"),
        ("StartSession", "name purpose metadata"),
        ("CreateTag", "name category description"),
        ("AddTool AddGuideline AddKnowledge", "createdBy"),
        ("SetConfig", "key value description"),
        ("CreateRelations", "from to relationType"),
        ("AddRelation", "relation_type"),
    )
    for request in requests.split()
    for name in names.split()
}
ERASING = {"clear_memory", "maintenance", "memory_init", "archive_memory_store", "delete_memory_store"}
OF_ANOTHER = re.compile(
    r".*(_id|Id|_ids|Ids|_until|Until|_from|_at|At|Version|sha256|since)|id|view|filePath|asOf|valid\w+"
)
FILLER = "It is a plain day in the garden, and the neighbour cooks soup for supper. "
LONG = 20_000  # characters before the words that are looked for, where that many are taken
NAMES = {"name", "title", "url", "entityType", "relationType", "from", "to", "tag"}  # which are short in any dialect
LETTERS = "bdfgklmnprstvz"
OWNERS = {dialect.name for dialect in app.DIALECTS}


@dataclass
class Words:
    """Makes the texts of arguments: each has two words that nothing else has."""

    filler: str = ""
    folder: str = ""
    request: str = ""
    made: dict[str, str] = field(default_factory=dict)  # the request and the parameter of each
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def text(self, name: str, room: int = 0) -> str:
        two = [self._word(name), self._word(name)]
        return f"{self.filler if room > 2 * LONG else ''}{' '.join(two)}"

    def _word(self, name: str) -> str:
        size = len(LETTERS)
        number = next(self._numbers) * 10_007 % size**4  # so that no word is taken for a misspelt other
        digits = [number // size**place % size for place in range(4)]
        word = "".join(LETTERS[digit] + vowel for digit, vowel in zip(digits, "aoiu", strict=True)) + "x"
        self.made[word] = f"{self.request} {name}"
        return word


def calls(dispatch: Dispatch, words: Words) -> Iterator[tuple[str, dict[str, Any]]]:
    """A call of each tool that writes, and of each action of those that have several."""
    for dialect in dispatch.dialects:
        for tool in (*dialect.tools, *(method.tool for method in dialect.rest)):
            if tool.mode == "read" or tool.name in ERASING:
                continue
            for arm in get_args(tool.request) or (tool.request,):
                schema = msgspec.json.schema(arm)
                kinds = schema.get("$defs", {})
                words.folder = "" if dialect.name == "paths" else "/memories/"
                words.request = arm.__name__
                yield tool.name, argument("", schema, kinds, words)


def argument(name: str, schema: dict[str, Any], kinds: dict[str, Any], words: Words) -> Any:
    """A value for a schema; every text in it has its own words."""
    schema = kinds[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
    schema = schema | next((one for one in schema.get("anyOf", ()) if one.get("type") != "null"), {})
    if name in VALUES or "enum" in schema:
        return VALUES[name] if name in VALUES else schema["enum"][0]
    match schema.get("type"):
        case "array":
            return [argument(name.rstrip("s"), schema.get("items", {"type": "string"}), kinds, words)]
        case "object":
            if "properties" not in schema:
                return {words.text(name): [words.text(name)]}
            needed, known = schema.get("required", []), schema["properties"].items()
            given = [(key, value) for key, value in known if key in (*needed, *VALUES) or takes_text(key, value)]
            return {key: argument(key, value, kinds, words) for key, value in given}
        case "integer" | "number":
            return schema.get("minimum", 1)
        case "boolean":
            return False
        case _:
            return text_argument(name, schema.get("maxLength", 10 * LONG), words)


def text_argument(name: str, room: int, words: Words) -> str:
    """A text with words of its own, as JSON or a path where the parameter takes those."""
    if name == "path":
        return f"{words.folder}{words.text(name).replace(' ', '-')}.md"
    if name == "observations_json":
        return json.dumps([words.text(name, room)])
    if name.endswith("_json"):
        return json.dumps({words.text(name): words.text(name)})
    return words.text(name, 0 if name in NAMES else room)


def takes_text(name: str, schema: dict[str, Any]) -> bool:
    """Whether an argument that may be left out is a text, or several."""
    kinds = {one.get("type", "") for one in schema.get("anyOf", [schema])}
    return not OF_ANOTHER.fullmatch(name) and "enum" not in schema and bool(kinds & {"string", "array", "object"})


@pytest.fixture(params=["short", "long"])
def made(
    request: pytest.FixtureRequest,
    config: Config,
    caller: Callable[[Dispatch], Call],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> Iterator["Made"]:
    """A memory of every kind, in a store that other memories share."""
    (tmp_path / "web").mkdir()
    environment = {"CODE_MEMORY_ENABLE_GRAPH": "1", "QUIPU_NOTES_ROOTS": str(tmp_path / "web")}
    kernel = app.open_kernel(config._replace(environment=environment))
    call = caller(kernel.dispatch)
    for number in range(40):
        call("add_memory", path=f"garden/{number}", content=f"The soup of day {number} was cooked by a neighbour.")
    words = Words(FILLER * (LONG // len(FILLER)) if request.param == "long" else "")
    before = documents(kernel)
    for name, arguments in calls(kernel.dispatch, words):
        call(name, **arguments)
    new = documents(kernel) - before
    yield Made(kernel, call, words, sorted(new), Shell(kernel.config, capsys, tmp_path))
    kernel.store.close()


@dataclass
class Made:
    """Make a store with memories of every tool."""

    kernel: Kernel
    call: Call
    words: Words
    memories: list[tuple[str, str, str]]  # space, scope and key
    shell: Shell

    def shown(self, memory: tuple[str, str, str], run: Callable[[Any], Any]) -> list[str]:
        """The texts that `quipu show` prints; the page of the console has the same."""
        space, _, key = memory
        visit = Visit(ANONYMOUS_CALLER, {"id": f"{space}/{key}", "all": "1"})
        shown = run(commands.show(self.kernel.dispatch, visit, commands.One(f"{space}/{key}")))
        page = run(load(cast("Any", None), self.kernel.dispatch, visit))
        assert (page.text, page.beside) == (shown.text, shown.beside)
        return [shown.text, *shown.observations, *leaves([*shown.beside.values()])]

    def kept(self) -> set[str]:
        """The parameters of which a row of a dialect holds the text."""
        rows = "\n".join(
            f"{rows}" for name, rows in everything(self.kernel).items() if name.partition("_")[0] in OWNERS
        )
        return {parameter for word, parameter in self.words.made.items() if word in rows.lower()}

    def recall(self, **arguments: Any) -> dict[str, dict[str, Any]]:
        """The memories of an answer by their ids."""
        body = self.call("recall", max_tokens=100_000, **arguments).body
        return {one["id"]: one for one in json.loads(body)["memories"]}


def leaves(value: Any) -> Iterator[str]:
    """The texts of a JSON value."""
    match value:
        case str():
            yield value
        case list():
            yield from (text for part in value for text in leaves(part))
        case dict():
            yield from (text for pair in value.items() for part in pair for text in leaves(part))
        case _:
            pass


def documents(kernel: Kernel) -> set[tuple[str, str, str]]:
    found = kernel.store.read_sync(lambda tx: index.documents(tx, [*range(index.last_doc_id(tx) + 1)]))
    return {(one.space, one.scope, one.key) for one in found.values()}


def kinds_of(made: Made) -> set[tuple[str, str]]:
    """Space and scope, for dialects that have kinds as scopes."""
    return {(space, scope if space.startswith("brain") else "") for space, scope, _ in made.memories}


def test_every_text_that_is_shown_is_found_and_read_and_exported(made: Made, runner: asyncio.Runner) -> None:
    shown = {memory: made.shown(memory, runner.run) for memory in made.memories}
    missing = {one for memory, texts in shown.items() for one in missing_from_recall(made, memory, texts)}
    made.kernel.store.close()
    pages = {page["sources"][0]["id"]: (page, body) for page, body in map(parsed, pages_of(made.shell.export("okf")))}
    lines = made.shell.export("jsonl").read_text(encoding="utf-8").lower()
    for (space, scope, key), texts in shown.items():
        words = words_of(made, "\n".join(texts))
        head, body = pages[f"{space}/{key}"]
        page = f"{json.dumps(head, default=str)}\n{body}".lower()
        if any(word not in page for word in words):
            missing.add(f"{space} {scope}: not all of it in the bundle")
        if any(word not in lines for word in words):
            missing.add(f"{space} {scope}: not all of it in the export")
    assert missing == set()


def test_every_text_that_a_tool_keeps_is_shown_with_a_memory(made: Made, runner: asyncio.Runner) -> None:
    """A text that is of no memory is named above: a new parameter is either shown or named."""
    shown = {
        made.words.made[word]
        for memory in made.memories
        for word in words_of(made, "\n".join([*memory, *made.shown(memory, runner.run)]))
    }
    assert made.kept() - shown == OF_NO_MEMORY


def missing_from_recall(made: Made, memory: tuple[str, str, str], texts: list[str]) -> Iterator[str]:
    """Return the shown texts that are not found by their words, singly and in pairs, or not read by its id."""
    space, scope, key = memory
    id_, words = f"{space}/{key}", words_of(made, "\n".join(texts))
    assert words, f"{id_}: no text of its own"
    read = made.recall(ids=[id_]).get(id_, {})
    whole = "\n".join([read.get("text", ""), *leaves([*read.get("beside", {}).values()])])
    if any(text not in whole for text in texts):
        yield f"{space} {scope}: not all of it read by its id"
    if any(id_ not in made.recall(query=query) for query in (*words, " ".join(words[:2]))):
        yield f"{space} {scope}: not found by each of its words"


def words_of(made: Made, text: str) -> list[str]:
    """The words of a text that nothing else has, in its order."""
    words = dict.fromkeys(re.findall(r"[a-z]+", text.lower()))
    return [word for word in words if word in made.words.made]


def test_the_tools_make_every_kind_of_memory(made: Made) -> None:
    """A kind that appears here for the first time is looked at by the other test already."""
    assert {(space.partition(":")[0], space, scope) for space, scope in kinds_of(made)} >= {
        ("brain", "brain:core", kind) for kind in ("memory", "entity", "note", "resource")
    }
    assert {space.partition(":")[0] for space, _ in kinds_of(made)} == {
        dialect.name for dialect in app.DIALECTS if dialect.memories.sources is not None
    }
    assert {"scopes:tools", "scopes:guidelines", "scopes:knowledge", "sessions", "sessions:entity"} <= {
        space for space, _ in kinds_of(made)
    }


def pages_of(bundle: Path) -> list[Path]:
    return [file for file in bundle.rglob("*.md") if file.name not in {"index.md", "log.md"}]


def parsed(page: Path) -> tuple[dict[str, Any], str]:
    _, head, body = page.read_text(encoding="utf-8").split("---\n", 2)
    return yaml.safe_load(head), body


def test_metadata_of_many_levels_are_shown_and_exported_as_json(
    shell: Shell, caller: Callable[[Dispatch], Call], runner: asyncio.Runner
) -> None:
    deep: Any = "zebra"
    for _ in range(900):
        deep = {"a": deep}
    kernel = app.open_kernel(shell.config)
    reply = caller(kernel.dispatch)("save_memory", db="core", content="Tea.", category="fact", metadata=deep)
    memory = commands.One(f"brain:core/{json.loads(reply.body)['id']}")
    shown = runner.run(commands.show(kernel.dispatch, Visit(ANONYMOUS_CALLER, {}), memory))
    kernel.store.close()
    ((head, _),) = map(parsed, pages_of(shell.export("okf")))
    assert json.loads(shown.beside["metadata"]) == json.loads(head["metadata"]) == deep


DEPLOY = (
    "---\nname: deploy guide\ndescription: How we deploy\n---\n"
    "Step 1: run kamal deploy. Step 2: watch the zebra dashboard.\n"
)
INVOICES = "---\ndescription: When invoices are made\n---\nThe ostrich job makes invoices at midnight.\n"
# Of each program: its files, the question, and words of the body below the description.
DESCRIBED: dict[str, tuple[dict[str, str], str, str]] = {
    "claude-code": (
        {"memory/MEMORY.md": "- [a list](deploy_guide.md)\n", "memory/deploy_guide.md": DEPLOY},
        "zebra dashboard",
        "kamal",
    ),
    "codex": ({"memory_summary.md": "-", "rollout_summaries/one.md": DEPLOY}, "zebra dashboard", "kamal"),
    "obsidian": ({".obsidian/app.json": "{}", "jobs.md": INVOICES}, "ostrich job", "midnight"),
    "basic-memory": ({"jobs.md": INVOICES.replace("---\n", "---\npermalink: jobs\n", 1)}, "ostrich job", "midnight"),
    "okf": (
        {"index.md": "---\nokf_version: '0.2'\n---\n", "jobs.md": INVOICES.replace("---\n", "---\ntype: note\n", 1)},
        "ostrich job",
        "midnight",
    ),
}


@pytest.mark.parametrize("system", DESCRIBED)
def test_a_note_with_a_description_is_found_and_read_and_exported_by_its_body(
    system: str, shell: Shell, tmp_path: Path, caller: Callable[[Dispatch], Call]
) -> None:
    files, query, rest = DESCRIBED[system]
    for name, text in files.items():
        (tmp_path / "source" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "source" / name).write_text(text)
    source = tmp_path / "source" / "memory" if system == "claude-code" else tmp_path / "source"
    assert shell.bring(source)["kind"] == system
    kernel = app.open_kernel(shell.config)
    call = caller(kernel.dispatch)
    for number in range(20):
        call(
            "add_memory", path=f"jobs/{number}", content=f"The dashboard of job {number} shows when it makes a report."
        )
    hits = json.loads(call("recall", query=query).body)["memories"]
    (id_,) = [one["id"] for one in hits if one["id"].startswith("brain:core/note_")]
    (read,) = json.loads(call("recall", ids=[id_]).body)["memories"]
    kernel.store.close()

    assert hits[0]["id"] == id_
    assert rest in read["text"]
    assert [
        body.strip() for head, body in map(parsed, pages_of(shell.export("okf"))) if head["sources"][0]["id"] == id_
    ] == [next(text for text in files.values() if "description" in text).rpartition("---\n")[2].strip()]


def test_a_bundle_there_and_back_keeps_titles_summaries_and_texts(
    shell: Shell,
    other: Shell,
    config: Config,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    caller: Callable[[Dispatch], Call],
) -> None:
    kernel = app.open_kernel(shell.config)
    call = caller(kernel.dispatch)
    long = "Restart the web server after each deploy, and look at the queue of mails before and after it. Then rest."
    call("add_memory", path="infra/deploy", content="Runbook. Restart the web server after each deploy.")
    call(
        "save_note",
        db="core",
        title="Runbook",
        content="Runbook. Restart.",
        summary="What to do",
        key_points=["one, two"],
        tags=["ops"],
    )
    call("save_note", db="core", title="Plain", content="# Plain\n\nA heading says the same.")
    call("save_memory", db="core", content=long, category="fact", tags=["web"])
    call("create_entity", db="core", name="Kamal", type="system")
    call(
        "save_resource",
        db="core",
        title="Docs",
        url="https://example.org/docs",
        description="Of the tool",
        key_takeaways=["read it"],
    )
    call("remember", session_id="s", content=f"{long}\n\nSecond.", summary="A short one", tags="mail, web")
    call(
        "memory_guideline", action="add", scopeType="global", name="Tabs", content="Use tabs.", rationale="Less typing."
    )
    call("create_entities", entities=[{"name": "Ada", "entityType": "person", "observations": ["Likes tea.", "Rows."]}])
    call("memory", command="create", path="/memories/a.txt", file_text="A file.")
    kernel.store.close()
    third = Shell(config._replace(data=tmp_path / "third"), capsys, tmp_path)

    bundles = [shell.export("okf")]
    for store in (other, third):
        store.bring(bundles[-1])
        bundles.append(store.export("okf"))

    said = [sorted(map(told, pages_of(bundle))) for bundle in bundles]
    assert [page[:-1] for page in said[1]] == [page[:-1] for page in said[2]] == [page[:-1] for page in said[0]]
    beside = [[page[-1] for page in pages] for pages in said]
    for first, *others in zip(*beside, strict=True):
        assert all(first <= other for other in others)
    opened = app.open_kernel(third.config)
    recalled = json.loads(caller(opened.dispatch)("recall", query="restart the web server", detail="text").body)
    opened.store.close()
    counts = [memory["text"].count("Restart the web server after each deploy") for memory in recalled["memories"]]
    assert counts[0] == 1
    assert set(counts) <= {0, 1}, recalled["memories"]  # a weaker hit may stand beside


def test_members_of_cogx_that_become_no_memory_are_named(shell: Shell, tmp_path: Path) -> None:
    folder = tmp_path / "source"
    folder.mkdir()
    (folder / "manifest.json").write_text('{"cogx_version": "0.1"}')
    (folder / "notes.txt").write_text("A note.")
    rows = {
        "memories": {"content": "Tea is green.", "embedding": [0.5], "rating": 3, "comment": "ours", "nothing": None},
        "documents": {"content": "A guide.", "mime_type": "text/plain", "metadata": {"page": 1}},
        "episodes": {"turns": [{"role": "user", "content": "Which tea?", "pictures": [{"name": "a.png"}]}]},
        "memory_blocks": {"label": "persona", "value": "A helper.", "limit": 2000, "history": ["A bot."]},
        "raw_nodes": {"type": "Thing"},
    }
    for name, row in rows.items():
        (folder / f"{name}.jsonl").write_text(json.dumps({"external_id": name, **row}))
    done = shell.bring(folder)
    assert done["counts"] == {"memories": 2, "memory blocks": 1, "notes": 1, "already there": 0, "left out": 8}
    assert sorted(done["remarks"]) == [
        "left out: 1 cogx:episodes#0: of the member pictures",
        "left out: 1 documents.jsonl, line 1: of the member metadata",
        "left out: 1 documents.jsonl, line 1: of the member mime_type",
        "left out: 1 memories.jsonl, line 1: of the member comment",
        "left out: 1 memories.jsonl, line 1: of the member embedding",
        "left out: 1 memory_blocks.jsonl, line 1: of the member history",
        "left out: 1 notes.txt: is no file with memories",
        "left out: 1 of the kind raw_nodes",
    ]


ORIGIN = {"type", "created", "modified", "generated", "sources", "tool", "scope"}


def told(page: Path) -> tuple[str, str, str, list[str], set[str]]:
    """Return the text of a page without its origin, and last the points and other columns beside it."""
    head, body = parsed(page)
    texts = head.pop("title"), head.pop("description", ""), body.strip(), head.pop("tags", [])
    points = {point for point in head.pop("key_points", []) if not point.startswith("source: ")}
    others = {name: value for name, value in head.items() if name not in ORIGIN}
    told_texts = {
        name: value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
        for name, value in others.items()
    }
    return *texts, points | {f"{name}: {text}" for name, text in told_texts.items()}


def test_a_bundle_has_the_columns_tags_and_links_of_each_memory(
    shell: Shell, other: Shell, caller: Callable[[Dispatch], Call]
) -> None:
    kernel = app.open_kernel(shell.config)
    call = caller(kernel.dispatch)

    def made(tool: str, **arguments: Any) -> str:
        reply = call(tool, **arguments)
        assert reply.fault is None, reply.body
        return json.loads(reply.body)["id"]

    until = "2030-01-01T00:00:00.000Z"
    fact = made(
        "save_memory",
        db="core",
        content="The fare is two euros.",
        category="fact",
        importance=5,
        valid_until="2030-01-01T00:00:00Z",
        metadata={"user": "ann"},
    )
    tram = made("create_entity", db="core", name="Tram", type="system", subtype="rail")
    end = {"source_type": "memory", "source_id": fact, "target_type": "entity", "target_id": tram}
    made("create_link", db="core", **end, relationship="tells_of")
    call("remember", session_id="s", content="We chose the tram.", kind="decision", priority=1, metadata_json='{"a":1}')
    fare = {"title": "Fare", "content": "Two.", "validUntil": until, "confidence": 0.5}
    call("memory_knowledge", action="add", scopeType="global", **fare)
    lines = [json.loads(line) for line in shell.export().read_text(encoding="utf-8").splitlines()]
    number = next(line["row"]["id"] for line in lines if line.get("table") == "scopes_entry")
    call("memory_tag", action="attach", entryType="knowledge", entryId=number, tagName="money")
    entities = [{"name": "Ada", "entityType": "person", "observations": ["Rows."]}]
    call("create_entities", entities=entities)
    call("create_relations", relations=[{"from": "Ada", "to": "Acme", "relationType": "works_at"}])
    kernel.store.close()
    bundle = shell.export("okf")
    heads = {head["title"]: head for head, _ in map(parsed, pages_of(bundle))}
    names = {*ORIGIN, "title", "project_id"}
    assert {
        title: {name: value for name, value in head.items() if name not in names} for title, head in heads.items()
    } == {
        "The fare is two euros.": {
            "category": "fact",
            "importance": 5,
            "valid_until": until,
            "metadata": {"user": "ann"},
            "links": ["tells_of [[Tram]]"],
        },
        "Tram": {"entity_type": "system", "subtype": "rail"},
        "We chose the tram.": {"kind": "decision", "priority": 1, "metadata": {"a": 1}},
        "Fare": {"tags": ["money"], "confidence": 0.5, "valid_until": until},
        "Ada": {"links": ["works_at [[Acme]]"]},
    }
    other.bring(bundle)
    rows = [json.loads(line) for line in other.export().read_text(encoding="utf-8").splitlines()]
    notes = {line["row"]["title"]: line["row"] for line in rows if line.get("table") == "brain_note"}
    assert notes["The fare is two euros."]["category"] == "fact"
    assert json.loads(notes["The fare is two euros."]["key_points"])[1:] == [
        "importance: 5",
        f"valid_until: {until}",
        'metadata: {"user":"ann"}',
        'links: ["tells_of [[Tram]]"]',
    ]
