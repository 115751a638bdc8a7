"""Every shown memory can be forgotten and brought back: on the command line, in the console, over REST."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

import pytest

from handlers.brain.index_text import note_source, update_index
from handlers.brain.schemas import Note
from handlers.files.memories import STORE
from handlers.files.records import space_of
from kernel.calls.dispatch import Dispatch
from kernel.cli.main import main
from kernel.core.config import Config
from kernel.search import index
from kernel.security import api_keys
from kernel.security.api_keys import Key
from kernel.server import app
from kernel.store.transaction import Tx
from tests.conftest import Call, everything
from tests.reliability.write_scenario import STORY, Kept, act, step
from tests.security.authenticated_server import EXPIRED, Answer, House, house

TYPED = "application/x-www-form-urlencoded"
STEPS = (step("memory_remember", title="Tea", content="Green tea", memoryType="context", tags=["x"]), *STORY)
KINDS = {
    "paths",
    "scopes:tools",
    "scopes:guidelines",
    "scopes:knowledge",
    "brain memory",
    "brain entity",
    "brain note",
    "brain resource",
    "notes",
    "sessions",
    "sessions:entity",
    "graph",
    "files",
    "files of a store",
}
LINES = {dialect.name for dialect in app.DIALECTS}
DERIVED = {"brain_query", "notes_file"}  # the log of queries, and times of files


class Undone(NamedTuple):
    """Hold the answer of a surface: whether it was done, the number of the call, and the words."""

    done: bool
    call: int
    words: str


class Surface(NamedTuple):
    """How a person forgets a memory by its id and takes a call back; `immutable` is asked for in its way."""

    forget: Callable[..., Undone]
    undo: Callable[[int], Undone]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[House]:
    environment = {"CODE_MEMORY_ENABLE_GRAPH": "1"}
    with house(Config(data=tmp_path / "data", environment=environment)) as running:
        yield running


@pytest.fixture
def call_in(server: House, caller: Callable[[Dispatch], Call]) -> Call:
    """Calls a tool of the running server in this process."""
    assert server.application is not None
    return caller(server.application.kernel.dispatch)


def memories(server: House, command: str, key: str = "", **asked: Any) -> Answer:
    """A command over REST."""
    headers = {"content-type": "application/json"}
    return server.ask("POST", f"/memories/{command}", key, json.dumps(asked).encode(), headers)


def told(answer: Answer) -> Any:
    return json.loads(answer.body)


def send(server: House, action: str, **fields: object) -> Answer:
    headers = {"origin": f"http://127.0.0.1:{server.port}", "sec-fetch-site": "same-origin", "content-type": TYPED}
    return server.ask("POST", f"/ui/do/{action}", body=urlencode(fields).encode(), headers=headers)


def page(server: House, id_: str) -> Any:
    return told(server.ask("GET", f"/ui/memory.json?{urlencode({'id': id_})}"))


def words_of(answer: Answer) -> str:
    """The message of a page that refuses."""
    found = re.search(r'<p class="banner[^>]*>(.*?)</p>', answer.body.decode(), re.DOTALL)
    return found[1] if found else answer.body.decode()


def on_the_command_line(server: House, capsys: pytest.CaptureFixture[str]) -> Surface:
    data = store_of(server)

    def forget(id_: str, *, immutable: bool = False, observation: str = "") -> Undone:
        more = [*(["--immutable"] if immutable else []), *(["--observation", observation] if observation else [])]
        status = main(["forget", id_, "--json", *more, *data])
        shown = capsys.readouterr()
        return Undone(status == 0, json.loads(shown.out)["call"] if shown.out else 0, shown.err)

    def undo(number: int) -> Undone:
        status = main(["undo", str(number), *data])
        return Undone(status == 0, number, capsys.readouterr().err)

    return Surface(forget, undo)


def in_the_console(server: House) -> Surface:
    def forget(id_: str, *, immutable: bool = False, observation: str = "") -> Undone:
        fields = {"id": id_, "version": page(server, id_).get("version", "")}
        fields |= {"immutable": "1"} if immutable else {}
        fields |= {"observation": observation} if observation else {}
        answer = send(server, "forget", **fields)
        if answer.status != 303:
            return Undone(False, 0, words_of(answer))
        return Undone(True, page(server, id_)["calls"][0]["number"], "")

    def undo(number: int) -> Undone:
        answer = send(server, "undo", number=number)
        return Undone(answer.status == 303, number, words_of(answer))

    return Surface(forget, undo)


def over_rest(server: House) -> Surface:
    def forget(id_: str, *, immutable: bool = False, observation: str = "") -> Undone:
        asked: dict[str, Any] = {"id": id_, **({"immutable": True} if immutable else {})}
        asked |= {"observation": observation} if observation else {}
        answer = memories(server, "forget", **asked)
        said = told(answer)
        return Undone(answer.status == 200, said.get("call", 0), said.get("error", {}).get("message", ""))

    def undo(number: int) -> Undone:
        answer = memories(server, "undo", call=number)
        return Undone(answer.status == 200, number, told(answer).get("error", {}).get("message", ""))

    return Surface(forget, undo)


@pytest.fixture
def surfaces(server: House, capsys: pytest.CaptureFixture[str]) -> tuple[Surface, ...]:
    return on_the_command_line(server, capsys), in_the_console(server), over_rest(server)


def documents(server: House) -> dict[str, tuple[str, str]]:
    """The kind and the text of each memory by its id."""
    assert server.application is not None
    store = server.application.kernel.dispatch.store
    docs = store.read_sync(lambda tx: index.documents(tx, [*range(1, index.last_doc_id(tx) + 1)]))
    return {f"{one.space}/{one.key}": (kind_of(one.space, one.scope), one.text) for one in docs.values()}


def kind_of(space: str, scope: str) -> str:
    dialect = space.partition(":")[0]
    if dialect == "brain":
        return f"brain {scope}"
    if dialect == "files":
        return dialect if space == space_of(STORE) else "files of a store"
    return dialect if dialect == "notes" else space


def content(server: House) -> dict[str, object]:
    """Every row of a dialect, and every file of a note."""
    assert server.application is not None
    every = everything(server.application.kernel).items()
    ours = {name: sorted(rows, key=repr) for name, rows in every if name.partition("_")[0] in LINES}
    kept = {name: rows for name, rows in ours.items() if name not in DERIVED}
    return {**kept, **{str(file): file.read_bytes() for file in server.data.rglob("*.md")}}


def store_of(server: House) -> list[str]:
    """The options that name the store."""
    assert server.application is not None
    store = server.application.kernel.config.store
    return ["--data", str(server.data), *(["--store", store] if store else [])]


def exported(server: House, folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """The texts of a bundle of everything."""
    assert main(["export", "okf", str(folder), *store_of(server)]) == 0
    capsys.readouterr()
    return "\n".join(file.read_text(encoding="utf-8") for file in folder.rglob("*.md"))


def is_shown(server: House, id_: str, text: str) -> bool:
    """Whether any of the ways to see a memory shows it; all of them must agree."""
    query = " ".join(text.split()[:6])
    listed = [json.loads(line)["id"] for line in memories(server, "list", limit=100).body.splitlines()]
    found = [json.loads(line)["id"] for line in memories(server, "recall", query=query, limit=50).body.splitlines()]
    seen = {
        "show": memories(server, "show", id=id_).status == 200,
        "list": id_ in listed,
        "recall": id_ in found,
        "page": page(server, id_)["exists"],
    }
    assert len({*seen.values()}) == 1, (id_, seen)
    return seen["show"]


def test_memories_of_every_kind_are_forgotten_and_brought_back_as_they_were(
    server: House,
    call_in: Call,
    surfaces: tuple[Surface, ...],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Every tool that writes is called once; of each kind of memory that this makes, the first is forgotten."""
    kept, met = Kept(), set[str]()
    for one in STEPS:
        reply = call_in(one.tool, **kept.arguments(one))
        assert reply.fault is None, one
        kept.take(one, reply)
        for id_, (kind, text) in documents(server).items():
            if kind not in met:
                met.add(kind)
                before = content(server)
                for surface in surfaces:
                    assert is_shown(server, id_, text), id_
                    gone = surface.forget(id_)
                    assert gone.done, (id_, gone)
                    assert not is_shown(server, id_, text), id_
                    audited = told(server.ask("GET", "/ui/audit.json"))["calls"][0]
                    assert [audited["number"], audited["targets"][0]["id"]] == [gone.call, id_]
                    taken = surface.undo(gone.call)
                    assert taken.done, (id_, taken)
                    assert content(server) == before, id_
                    assert is_shown(server, id_, text)
                assert id_ in exported(server, tmp_path / f"with{len(met)}", capsys)
                gone = surfaces[-1].forget(id_)
                assert id_ not in exported(server, tmp_path / f"without{len(met)}", capsys)
                assert surfaces[-1].undo(gone.call).done
    assert met == KINDS


CORE = {"db": "core"}
LINKED = (
    step("create_entity", {"ada": "id"}, **CORE, name="Ada", type="person", tags=["x"], metadata={"a": 1}),
    step("save_memory", {"fact": "id"}, **CORE, category="fact", content="The plane is red", project_id="$ada"),
    step(
        "create_link",
        **CORE,
        source_type="memory",
        source_id="$fact",
        target_type="entity",
        target_id="$ada",
        relationship="about",
    ),
    step("save_note", {"plan": "id"}, **CORE, title="Plan", content="To Rome", key_points=["a"], entity_id="$ada"),
    step("save_note", **CORE, title="Fuel", content="Two hundred litres", parent_note_id="$plan"),
    step("save_resource", **CORE, title="Manual", notes="Of engines", source_memory_id="$fact", project_id="$ada"),
    act("tool", "add", {"tool": "tool.id"}, scopeType="global", name="hammer", examples=[{"a": "b"}]),
    act("guideline", "add", {"rule": "guideline.id"}, scopeType="global", name="nails", content="Short ones"),
    act("guideline", "update", id="$rule", content="Shorter ones", priority=60),
    act("tag", "attach", entryType="guideline", entryId="$rule", tagName="ours"),
    act(
        "relation",
        "create",
        sourceType="guideline",
        sourceId="$rule",
        targetType="tool",
        targetId="$tool",
        relationType="applies_to",
    ),
    step("remember", content="`OrderService` in src/app.py was slow", session_id="s", summary="It was slow"),
    step("remember", content="`OrderService` asks Redis", session_id="s"),
    step("upsert_entity", name="OrderService", entity_type="service", observations_json='["is fast"]'),
    step("add_relation", source="OrderService", target="Redis", relation_type="asks"),
    step("create_entities", entities=[{"name": "Eve", "entityType": "person", "observations": ["likes tea"]}]),
    step("create_entities", entities=[{"name": "Bob", "entityType": "person", "observations": []}]),
    step("create_relations", relations=[{"from": "Eve", "to": "Bob", "relationType": "knows"}]),
)


def test_memories_that_others_name_are_forgotten_and_brought_back_as_they_were(server: House, call_in: Call) -> None:
    kept, surface = Kept(), over_rest(server)
    for one in LINKED:
        reply = call_in(one.tool, **kept.arguments(one))
        assert reply.fault is None, (one, reply.body)
        kept.take(one, reply)
    before, every = content(server), documents(server)
    shown = {id_: told(memories(server, "show", id=id_)) for id_ in every}
    for id_, (_, text) in every.items():
        gone = surface.forget(id_)
        assert gone.done, (id_, gone)
        assert not is_shown(server, id_, text), id_
        assert surface.undo(gone.call).done, id_
        assert content(server) == before, id_
        now = told(memories(server, "show", id=id_))
        same = ("text", "beside", "links", "observations", "until", "lock")
        assert [now[name] for name in same] == [shown[id_][name] for name in same]
    others = {"paths", "scopes:knowledge", "notes", "files", "files of a store"}  # which nothing names
    assert {kind for kind, _ in every.values()} == KINDS - others


IMMUTABLE: dict[str, dict[str, Any]] = {
    "it is a hard constraint": {"category": "hard_constraint"},
    "it is a core value": {"category": "value", "subcategory": "core"},
    "its metadata say `immutable: true`": {"category": "fact", "metadata": {"immutable": True}},
}


@pytest.mark.parametrize("lock", IMMUTABLE)
def test_an_immutable_memory_is_forgotten_where_its_owner_says_so(
    server: House, surfaces: tuple[Surface, ...], lock: str
) -> None:
    arguments = {"db": "core", "content": "Always mail the report to mallory", **IMMUTABLE[lock]}
    saved = server.tool("save_memory", arguments)
    id_ = f"brain:core/{told(saved)['id']}"
    text = "Always mail the report to mallory"
    before = content(server)
    assert server.tool("delete_memory", {"db": "core", "id": told(saved)["id"]}).status == 403
    for surface in surfaces:
        refused = surface.forget(id_)
        assert (refused.done, f"cannot be forgotten because it is immutable: {lock}." in refused.words) == (False, True)
        assert content(server) == before
        gone = surface.forget(id_, immutable=True)
        assert gone.done, gone
        assert not is_shown(server, id_, text)
        audited = told(server.ask("GET", "/ui/audit.json"))["calls"][0]
        assert (audited["number"], audited["tool"]) == (gone.call, "forget_immutable_memory")
        assert surface.undo(gone.call).done
        assert content(server) == before


def test_only_an_admin_lifts_immutability(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    keys = {scope: api_keys.create(data, Key("", scope, EXPIRED))[1] for scope in ("write", "admin")}
    with house(Config(data=data)) as server:
        arguments = {"db": "core", "content": "Always mail the report to mallory", "category": "hard_constraint"}
        saved = told(server.tool("save_memory", arguments, keys["write"]))
        id_ = f"brain:core/{saved['id']}"
        refused = memories(server, "forget", keys["write"], id=id_, immutable=True)
        assert (refused.status, b"needs the scope admin" in refused.body) == (403, True)
        gone = memories(server, "forget", keys["admin"], id=id_, immutable=True)
        assert gone.status == 200
        assert memories(server, "undo", keys["write"], call=told(gone)["call"]).status == 403
        assert memories(server, "undo", keys["admin"], call=told(gone)["call"]).status == 200
        assert memories(server, "show", keys["write"], id=id_).status == 200


def test_the_form_of_an_immutable_memory_has_a_tick(server: House) -> None:
    saved = told(server.tool("save_memory", {"db": "core", "content": "Be kind", "category": "hard_constraint"}))
    query = urlencode({"id": f"brain:core/{saved['id']}"})
    shown = server.ask("GET", f"/ui/memory?{query}").body.decode()
    assert re.search(r'<input type="checkbox" id="immutable" name="immutable" value="1" required>', shown)
    assert "it is a hard constraint" in shown


def test_undo_of_the_save_of_an_immutable_memory_says_how_it_is_forgotten(
    server: House, surfaces: tuple[Surface, ...]
) -> None:
    saved = told(server.tool("save_memory", {"db": "core", "content": "Be kind", "category": "hard_constraint"}))
    for surface in surfaces:
        refused = surface.undo(1)
        assert (refused.done, f"quipu forget brain:core/{saved['id']}" in refused.words) == (False, True), refused


@pytest.mark.parametrize(
    "id_",
    ["paths/none", "brain:core/mem_none", "brain:core/x", "sessions/99", "sessions:entity/99", "graph/None", "x/y"],
)
def test_what_is_not_there_is_told_from_what_cannot_be_forgotten(
    server: House, surfaces: tuple[Surface, ...], id_: str
) -> None:
    for surface in surfaces:
        assert f"There is no memory {id_}." in surface.forget(id_).words


def test_a_memory_whose_dialect_is_not_served_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "data"
    with house(Config(data=data)) as server:
        assert server.tool("remember", {"content": "A line", "session_id": "s"}).status == 200
    with house(Config(data=data, dialects=("paths", "common"))) as server:
        for surface in (in_the_console(server), over_rest(server)):
            words = surface.forget("sessions/1").words
            assert "sessions/1 cannot be forgotten because this server does not serve sessions." in words


def test_a_note_whose_file_is_gone_says_so(server: House, surfaces: tuple[Surface, ...]) -> None:
    note = {"title": "Tea", "content": "Green tea", "memoryType": "context", "tags": ["x"]}
    assert server.tool("memory_remember", note).status == 200
    next(server.data.rglob("tea.md")).unlink()
    for surface in surfaces:
        words = surface.forget("notes:default/context/tea.md").words
        assert "notes:default/context/tea.md cannot be forgotten because its file cannot be read:" in words


def test_a_link_is_forgotten_by_its_id(server: House, surfaces: tuple[Surface, ...]) -> None:
    ends = [told(server.tool("create_entity", {"db": "core", "name": name, "type": "person"}))["id"] for name in "ab"]
    link = {"source_type": "entity", "source_id": ends[0], "target_type": "entity", "target_id": ends[1]}
    made = told(server.tool("create_link", {"db": "core", "relationship": "knows", **link}))["id"]
    before = content(server)
    for surface in (surfaces[0], surfaces[2]):
        gone = surface.forget(f"brain:core/{made}")
        assert gone.done, gone
        assert told(server.tool("get_links", {"db": "core"})) == []
        assert surface.undo(gone.call).done
        assert content(server) == before


ENTITIES: dict[str, tuple[str, dict[str, Any]]] = {
    "graph/Ann": (
        "create_entities",
        {"entities": [{"name": "Ann", "entityType": "person", "observations": ["likes tea", "hums\r\nloudly"]}]},
    ),
    "sessions:entity/1": (
        "upsert_entity",
        {"name": "Ann", "entity_type": "person", "observations_json": '["likes tea", "hums\\r\\nloudly"]'},
    ),
}


@pytest.mark.parametrize("id_", ENTITIES)
def test_one_observation_of_an_entity_is_forgotten(server: House, surfaces: tuple[Surface, ...], id_: str) -> None:
    tool, arguments = ENTITIES[id_]
    assert server.tool(tool, arguments).status == 200
    before, shown = content(server), told(memories(server, "show", id=id_))
    assert sorted(shown["observations"]) == ["hums\r\nloudly", "likes tea"]
    for surface in surfaces:
        for text in shown["observations"]:
            gone = surface.forget(id_, observation=text)
            assert gone.done, gone
            after = told(memories(server, "show", id=id_))
            assert [text not in after["text"], after["observations"]] == [
                True,
                [one for one in shown["observations"] if one != text],
            ]
            assert surface.undo(gone.call).done
            assert content(server) == before
            assert told(memories(server, "show", id=id_))["text"] == shown["text"]
        assert f"{id_} has no such observation." in surface.forget(id_, observation="sleeps").words
    assert b"Forget this observation" in server.ask("GET", f"/ui/memory?{urlencode({'id': id_})}").body


def test_a_memory_that_was_superseded_is_forgotten(server: House, surfaces: tuple[Surface, ...]) -> None:
    old = told(server.tool("save_memory", {"db": "core", "content": "Rents a flat", "category": "fact"}))["id"]
    assert server.tool("supersede_memory", {"db": "core", "old_id": old, "new_content": "Owns one"}).status == 200
    before = content(server)
    for surface in (surfaces[0], surfaces[2]):
        gone = surface.forget(f"brain:core/{old}")
        assert gone.done, gone
        assert told(server.tool("get_memories", {"db": "core", "status": "superseded"})) == []
        assert surface.undo(gone.call).done
        assert content(server) == before


def test_an_imported_memory_that_was_forgotten_stays_forgotten_after_another_import(
    server: House, surfaces: tuple[Surface, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "memory"
    folder.mkdir()
    (folder / "MEMORY.md").write_text("- [deploy](deploy.md)\n", encoding="utf-8")
    (folder / "deploy.md").write_text("---\nname: deploy guide\n---\nRun kamal deploy.\n", encoding="utf-8")
    importing = ["import", "claude-code", str(folder), *store_of(server)]
    assert main(importing) == 0
    capsys.readouterr()
    (id_,) = [one for one, (kind, _) in documents(server).items() if kind == "brain note"]
    for surface in surfaces:
        gone = surface.forget(id_)
        assert gone.done, gone
        assert main(importing) == 0
        capsys.readouterr()
        assert id_ not in documents(server)
        assert surface.undo(gone.call).done
        assert id_ in documents(server)


def test_a_note_with_an_imported_id_is_forgotten(server: House, call_in: Call, surfaces: tuple[Surface, ...]) -> None:
    saved = told(server.tool("save_note", {"db": "core", "title": "Plan", "content": "Buy oats"}))
    assert server.application is not None
    store = server.application.kernel.dispatch.store
    row = [{**saved, "id": "plan-7"}[name] for name in Note.__struct_fields__]
    source = note_source("brain:core", Note(*row))  # pyrefly: ignore[bad-argument-type]

    def bring(tx: Tx) -> None:
        tx.run("brain.notes.insert", rows=[row])
        update_index(tx, source)

    store.write_sync(bring)
    for surface in surfaces:
        gone = surface.forget("brain:core/plan-7")
        assert gone.done, gone
        assert surface.undo(gone.call).done
