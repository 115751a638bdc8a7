"""A key that is held to places sees nothing of any other: other places do not exist for it."""

import json
import os
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

import pytest

from kernel.core.config import Config
from kernel.server import app
from tests.catalogue import Catalogue
from tests.security.authenticated_server import Answer, House, house
from tests.security.calls import CALLS, REST_CALLS

AREAS = (  # databases of brain, and names of places elsewhere
    "core",
    "therapy",
    "dnd",
    "hlg",
)
PAGES = ("overview", "browse", "search?q=plan", "timeline", "calls", "review", "audit", "connect", "health", "keys")
URIS = ("memory://paths/{area}/plan", "memory://paths", "memory://brain/{area}", "quipu://recall", "{id}")
IDS = re.compile(r'"(?:id|\w+_id|\w+Id)": ?"?([\w-]+)')
LONG_CALLS = int(os.environ.get("PLACE_CALLS", "2000"))
RUNS = [
    pytest.param(1, 400, id="some"),
    *(pytest.param(seed, LONG_CALLS, id=f"many-{seed}", marks=pytest.mark.slow) for seed in range(2, 12)),
]


def canary(area: str) -> str:
    """A word that the memories of an area hold, and no others."""
    return f"canary{area}bird"


class Town(NamedTuple):
    """A server with memories of four areas in each dialect, their ids, and four keys."""

    house: House
    admin: str
    ids: Mapping[str, Sequence[str]]
    keys: Mapping[str, tuple[str, frozenset[str]]]  # by name the secret, and the areas whose words it may see


class Held(NamedTuple):
    """A key as the tests describe it: the areas that it reads, and those that it writes, by dialect."""

    read: Mapping[str, Sequence[str]]
    write: Mapping[str, Sequence[str]]


FORMS = {
    "paths": "{}",
    "files": "/memories/{}",
    "brain": "{}",
    "sessions": "{}",
    "scopes": "project:{project}",
    "notes": "{}",
}
KEYS: Mapping[str, Held] = {
    "reads all of core": Held({dialect: ["core"] for dialect in FORMS}, {}),
    "writes all of therapy": Held({}, {dialect: ["therapy"] for dialect in FORMS}),
    "reads dnd and writes a folder": Held({"brain": ["dnd"], "scopes": ["dnd"]}, {"paths": ["dnd"]}),
    "reads two": Held(
        {"paths": ["core", "hlg"], "sessions": ["hlg"], "notes": ["core"]}, {"brain": ["hlg"], "files": ["hlg"]}
    ),
}


def text(answer: Answer) -> str:
    assert answer.status < 300, answer.body
    return answer.body.decode()


def filled(house: House, key: str, area: str) -> list[str]:
    """Stores memories of an area in every dialect; their ids, the project first."""
    word = canary(area)

    def tool(name: str, /, **arguments: Any) -> str:
        return text(house.tool(name, arguments, key))

    made = [tool("memory_project", action="create", name=area)]
    project = IDS.findall(made[0])[0]
    scope = {"scopeType": "project", "scopeId": project}
    tool("add_memory", path=f"{area}/plan", content=f"The plan is {word}.")
    tool("add_memory", path=f"{area}/inner/plan", content=f"The inner plan is {word}.")
    tool("memory", command="create", path=f"/memories/{area}/plan.txt", file_text=f"The plan is {word}.")
    made += [
        tool("save_memory", db=area, content=f"The plan is {word}.", category="decision", tags=[word]),
        tool("create_entity", db=area, name=f"Plan {word}", type="system"),
        tool("save_note", db=area, title=f"Plan {word}", content=f"At ten {word}."),
        tool("save_resource", db=area, title=f"Plan {word}"),
        tool("remember", content=f"The plan `{word}.py` is {word}.", session_id=area, tags=word),
        tool("memory_tool", action="add", name=f"plan-{word}", description=word, **scope),
        tool("memory_guideline", action="add", name=f"plan-{word}", content=f"Plan {word}", **scope),
        tool("memory_knowledge", action="add", title=f"plan {word}", content=f"Plan {word}", **scope),
    ]
    entry = IDS.findall(made[-1])[0]
    tool("memory_remember", title="Plan", content=f"The plan is {word}.", memoryType="context", project=area)
    tool("memory_tag", action="attach", entryType="knowledge", entryId=entry, tagName=f"tag-{word}")
    return list(dict.fromkeys(IDS.findall("".join(made))))


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    folder = tmp_path_factory.mktemp("town")
    for area in AREAS:
        (folder / area).mkdir()
    roots = {"QUIPU_NOTES_ROOTS": os.pathsep.join(str(folder / area) for area in AREAS)}
    with house(Config(data=folder / "data", environment=roots)) as running:
        admin = running.key()
        running.told()
        ids = {area: filled(running, admin, area) for area in AREAS}
        running.tool("remember", {"content": "`canaryplainbird` of none", "session_id": "none"}, admin)
        keys = {name: (key(running, held, ids), areas(held)) for name, held in KEYS.items()}
        running.told()
        yield Town(running, admin, ids, keys)


def areas(held: Held) -> frozenset[str]:
    return frozenset(area for side in held for each in side.values() for area in each)


def key(running: House, held: Held, ids: Mapping[str, Sequence[str]]) -> str:
    """Makes a key of these places; its secret."""

    def places(side: Mapping[str, Sequence[str]]) -> list[str]:
        return [
            f"{dialect}:{FORMS[dialect].format(area, project=ids[area][0])}"
            for dialect, each in side.items()
            for area in each
        ]

    found = app.places(places(held.read), places(held.write))
    return running.key("write" if held.write else "read", **found._asdict())


def changed(value: Any, pool: Sequence[Any], by: random.Random) -> Any:
    """The same arguments with some of their texts from the pool."""
    if isinstance(value, dict):
        return {
            name: changed(each, pool, by) if name not in {"action", "command"} else each for name, each in value.items()
        }
    if isinstance(value, list):
        return [changed(each, pool, by) for each in value]
    return by.choice(pool) if isinstance(value, str) and by.random() < 0.6 else value


COMMANDS: Mapping[str, Mapping[str, Any]] = {
    "recall": {"query": "plan", "limit": 50},
    "list": {"limit": 50},
    "show": {"id": "ID"},
    "history": {"id": "ID"},
    "add": {"text": "The plan is new.", "dialect": "DIALECT", "name": "AREA/new"},
    "edit": {"id": "ID", "text": "The plan is edited."},
    "forget": {"id": "ID"},
    "erasable": {"about": "plan"},
    "erase": {"ids": ["ID"]},
    "undo": {"call": 3},
    "witness": {"project": "AREA", "seen": []},
    "stats": {},
}
FORMS_OF_PAGES = ("edit", "forget", "undo", "export", "export-selected", "release", "confirm", "erase", "add", "backup")
SHOWN = (
    "ui/audit.csv",
    "openapi.json",
    "tools",
    "metrics",
    "ui/new",
    "ui/import",
    "ui/overview.json",
    "ui/review.json",
)


def filled_in(value: Any, words: Mapping[str, str]) -> Any:
    """The same arguments with words for their names in capitals."""
    if isinstance(value, dict):
        return {name: filled_in(each, words) for name, each in value.items()}
    if isinstance(value, list):
        return [filled_in(each, words) for each in value]
    for name, word in words.items():
        value = value.replace(name, word) if isinstance(value, str) else value
    return value


def asked_elsewhere(town: Town, secret: str, allowed: frozenset[str], by: random.Random) -> tuple[str, bytes]:
    """One random request beside the tools: a command for memories, a form, or another page."""
    area = by.choice(sorted({*AREAS} - allowed))  # nothing of its own is deleted: other calls look for it
    ids = (f"paths/{area}/plan", f"brain:{area}/{by.choice(town.ids[area])}", f"sessions/{by.choice(town.ids[area])}")
    words = {"ID": by.choice(ids), "AREA": area, "DIALECT": by.choice(list(FORMS))}
    match by.randrange(3):
        case 0:
            name = by.choice(list(COMMANDS))
            body = json.dumps(filled_in(COMMANDS[name], words)).encode()
            headers = {"content-type": "application/json", "idempotency-key": f"k{by.randrange(9)}"}
            path = f"/memories/{name}?as={by.choice(['json', 'text'])}"
            return f"{path} {body!r}", town.house.ask("POST", path, secret, body, headers).body
        case 1:
            name = by.choice(FORMS_OF_PAGES)
            fields = {"id": words["ID"], "ids": words["ID"], "text": "x", "call": "3", "about": "plan", "space": area}
            headers = {
                "content-type": "application/x-www-form-urlencoded",
                "origin": f"http://127.0.0.1:{town.house.port}",
            }
            path = f"/ui/do/{name}"
            return f"{path} {fields}", town.house.ask("POST", path, secret, urlencode(fields).encode(), headers).body
        case _:
            tree = ("space=paths", f"space=paths&under={area}/", f"space=brain:{area}", f"space=sessions&scope={area}")
            lists = ("ui/search.json?q=plan", "ui/timeline.json", f"ui/browse.json?{by.choice(tree)}")
            path = by.choice((*SHOWN, f"ui/memory.json?id={words['ID']}", *lists))
            return f"/{path}", town.house.ask("GET", f"/{path}", secret).body


def asked(town: Town, secret: str, by: random.Random) -> tuple[str, bytes]:
    """One random request of a key: its description and the answer."""
    area = by.choice(AREAS)
    pool = [
        area,
        f"{area}/plan",
        f"/memories/{area}",
        f"/memories/{area}/plan.txt",
        "plan",
        str(town.house.data.parent / area / ".mnemonics" / "context" / "plan.md"),
        *town.ids[area],
        "/memories",
    ]
    match by.randrange(10):
        case 0:
            page = by.choice((*PAGES, f"memory?id=paths/{area}/plan", f"memory?id=brain:{area}/{by.choice(pool)}"))
            return f"/ui/{page}", town.house.ask("GET", f"/ui/{page}", secret, headers={"accept": "text/html"}).body
        case 1:
            verb, path = by.choice(list(REST_CALLS))
            body = changed(REST_CALLS[verb, path], pool, by)
            path = path.replace("absent", by.choice(["memstore_memories", *pool]).strip("/"))
            raw = None if body is None else json.dumps(body).encode()
            headers = {"content-type": "application/json"}
            return f"{verb} {path} {body}", town.house.ask(verb, path, secret, raw, headers).body
        case 2:
            method, params = by.choice(
                [
                    ("resources/list", {}),
                    ("resources/read", {"uri": by.choice(URIS).format(area=area, id=by.choice(pool))}),
                    ("prompts/list", {}),
                    ("prompts/get", {"name": "recall", "arguments": {"query": "plan"}}),
                    (
                        "completion/complete",
                        {
                            "ref": {"type": "ref/resource", "uri": "memory://paths/{path}"},
                            "argument": {"name": "path", "value": by.choice(["", area, area[:2]])},
                        },
                    ),
                    (
                        "completion/complete",
                        {
                            "ref": {"type": "ref/prompt", "name": "recall"},
                            "argument": {"name": "scope", "value": by.choice(["", area])},
                        },
                    ),
                ]
            )
            return f"{method} {params}", town.house.mcp(method, params, secret).body
        case 3:
            more = by.choice(
                [
                    {},
                    {"as_of": "2100-01-01T00:00:00Z"},
                    {"dialects": ["paths"]},
                    {"detail": "text"},
                    {"quarantined": True},
                ]
            )
            arguments = {"query": by.choice(["plan", "the plan is", "inner plan ten", "bird", area]), **more}
            return f"recall {arguments}", town.house.call("recall", arguments, secret).body
        case _:
            (tool, action), given = by.choice(list(CALLS.items()))
            arguments = changed(given, pool, by)
            return f"{tool} {action} {arguments}", town.house.call(tool, arguments, secret).body


@pytest.mark.parametrize(("seed", "times"), RUNS)
def test_no_answer_holds_a_word_of_a_place_that_was_not_granted(
    town: Town, seed: int, times: int, catalogue: Catalogue
) -> None:
    by = random.Random(seed)
    everything = {*map(canary, AREAS), "canaryplainbird"}
    leaks, seen = list[str](), dict.fromkeys(town.keys, 0)
    for _ in range(times):
        name = by.choice(list(town.keys))
        secret, allowed = town.keys[name]
        if by.randrange(4):
            request, body = asked(town, secret, by)
        else:
            request, body = asked_elsewhere(town, secret, allowed, by)
        words = {word for word in everything if word.encode() in body}
        seen[name] += bool(words)
        if words - set(map(canary, allowed)):
            leaks.append(f"{name}: {request}: {body[:300]!r}")
        assert b"Internal error" not in body, (request, body)
    assert leaks == []
    assert min(seen.values()) > times // 100
    catalogue("S30", injected="calls of keys held to places", times=times, outcome="no word of another place")


def test_a_key_for_most_of_a_store_finds_what_anyone_finds_there(tmp_path: Path) -> None:
    with house(Config(data=tmp_path / "data")) as running:
        admin, keys = running.key(), {}
        for place in ("paths:most", "paths", "brain:core"):
            keys[place] = running.key("read", **app.places([place], [])._asdict())
        running.told()
        for number in range(40):
            folder = "few" if number % 8 == 0 else "most"
            text(
                running.tool(
                    "add_memory", {"path": f"{folder}/{number}", "content": f"Plan {number} of {folder}."}, admin
                )
            )
        given = {"db": "core", "content": "Plan of core.", "category": "decision"}
        text(running.tool("save_memory", given, admin))

        def hits(secret: str, **more: Any) -> list[str]:
            answer = running.tool("recall", {"query": "plan few", "limit": 100, "alike": 0, **more}, secret)
            return re.findall(r"(?:paths|brain:core)/[\w/]+", text(answer))

        everything = hits(admin)
        assert hits(keys["paths"]) == [hit for hit in everything if hit.startswith("paths/")]
        assert len(hits(keys["paths:most"])) == 35  # though texts elsewhere alone hold the rarer word
        assert hits(keys["brain:core"]) == hits(admin, dialects=["brain"])


@pytest.mark.parametrize("model", [True, False], ids=["with vectors", "without"])
def test_a_search_follows_what_comes_into_a_place_and_leaves_it(tmp_path: Path, model: bool) -> None:
    config = Config(data=tmp_path / "data")
    with house(config if model else config._replace(model=None)) as running:
        admin, held = running.key(), running.key("read", **app.places(["files:/memories/core"], [])._asdict())
        running.told()

        def did(command: str, **arguments: str) -> None:
            text(running.tool("memory", {"command": command, **arguments}, admin))

        def hits() -> set[str]:
            return set(re.findall(r"plan (\d)", text(running.tool("recall", {"query": "plan", "limit": 50}, held))))

        for number, folder in enumerate(("core", "dnd", "dnd")):
            did("create", path=f"/memories/{folder}/{number}.txt", file_text=f"plan {number}")
        assert hits() == {"0"}
        did("rename", old_path="/memories/dnd/1.txt", new_path="/memories/core/1.txt")
        assert hits() == {"0", "1"}
        did("rename", old_path="/memories/core/0.txt", new_path="/memories/dnd/0.txt")
        did("create", path="/memories/core/3.txt", file_text="plan 3")
        assert hits() == {"1", "3"}
        did("delete", path="/memories/core/1.txt")
        assert hits() == {"3"}


def told(town: Town, name: str, tool: str, /, **arguments: Any) -> tuple[int, str]:
    """Calls a tool with a key: status and body."""
    answer = town.house.tool(tool, arguments, town.keys[name][0])
    return answer.status, answer.body.decode()


WRITER = "writes all of therapy"
WRITES: Sequence[tuple[str, Mapping[str, Any]]] = (
    ("add_memory", {"path": "{}/new", "content": "new"}),
    ("replace_memory", {"path": "{}/new", "content": "newer"}),
    ("drop_memory", {"path": "{}/new"}),
    ("memory", {"command": "create", "path": "/memories/{}/new.txt", "file_text": "new"}),
    ("memory", {"command": "delete", "path": "/memories/{}/new.txt"}),
    ("save_memory", {"db": "{}", "content": "new", "category": "decision"}),
    ("create_entity", {"db": "{}", "name": "new", "type": "system"}),
    ("save_note", {"db": "{}", "title": "new", "content": "new"}),
    ("remember", {"content": "The `new.py` is new.", "session_id": "{}"}),
    ("memory_guideline", {"action": "add", "name": "new", "content": "new", "scopeType": "project", "scopeId": "{id}"}),
)


def at(arguments: Mapping[str, Any], town: Town, area: str) -> dict[str, Any]:
    return {name: value.format(area, id=town.ids[area][0]) for name, value in arguments.items()}


def test_a_key_writes_to_its_places_and_is_refused_elsewhere(town: Town) -> None:
    for tool, arguments in WRITES:  # in order: some change or delete the rows of those before them
        assert (tool, told(town, WRITER, tool, **at(arguments, town, "therapy"))[0]) == (tool, 200)
        status, body = told(town, WRITER, tool, **at(arguments, town, "dnd"))
        assert (tool, status in {403, 404}) == (tool, True)
        assert "This key may not write to" in body or "not" in body.lower()


def test_a_write_outside_is_refused_by_name(town: Town) -> None:
    status, body = told(town, WRITER, "add_memory", path="dnd/secret", content="x")
    assert (status, "message: This key may not write to paths:dnd/secret." in body) == (403, True)
    status, body = told(town, "reads all of core", "read_memory", path="core/plan")
    assert status == 200
    assert told(town, "reads dnd and writes a folder", "save_memory", db="dnd", content="x", category="decision") == (
        403,
        "BLOCKED: This key may not write to brain:dnd.",
    )


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("read_memory", {"path": "{}"}),
        ("replace_memory", {"path": "{}", "content": "x"}),
        ("drop_memory", {"path": "{}"}),
        ("delete_memory", {"db": "therapy", "id": "{}"}),
        ("get_memory_history", {"memory_id": "{}"}),
        ("memory_knowledge", {"action": "get", "id": "{}"}),
        ("memory_knowledge", {"action": "deactivate", "id": "{}"}),
        ("memory_project", {"action": "get", "id": "{}"}),
        ("memory", {"command": "view", "path": "/memories/{}"}),
        ("memory", {"command": "delete", "path": "/memories/{}"}),
    ],
)
def test_a_memory_elsewhere_is_as_one_that_never_was(town: Town, tool: str, arguments: Mapping[str, str]) -> None:
    def answers(key: str) -> tuple[int, str]:
        given = {name: value.format(key) for name, value in arguments.items()}
        status, body = told(town, WRITER, tool, **given)
        return status, body.replace(key, "KEY")

    for key in ("dnd/plan", "dnd", *town.ids["dnd"]):
        assert answers(key) == answers(key + "absent"), key  # the beginning of an id tells its kind


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("save_memory", {"db": "{}", "content": "x", "category": "decision"}),
        ("recall", {"query": "plan", "spaces": ["brain:{}"]}),
        ("recall", {"query": "plan", "scope": "{}"}),
        ("read_memory", {"path": "{}/plan"}),
        ("memory", {"command": "view", "path": "/memories/{}/plan.txt"}),
        ("remember", {"content": "x", "session_id": "{}"}),
        ("memory_project", {"action": "get", "id": "{}"}),
        ("memory_tag", {"action": "attach", "entryType": "knowledge", "entryId": "{}", "tagName": "x"}),
    ],
)
def test_a_misspelt_name_proposes_none_of_another_place(town: Town, tool: str, arguments: Mapping[str, Any]) -> None:
    for misspelt, name in (("therap", "therapy"), ("hlgg", "'hlg'"), ("dndd", "'dnd'")):
        given = json.loads(json.dumps(arguments).replace("{}", misspelt))
        _, body = told(town, "reads all of core", tool, **given)
        assert name not in body.replace(misspelt, "")


def test_a_recall_sees_its_places_alone_and_those_in_full(town: Town) -> None:
    def hits(key: str) -> set[str]:
        answer = town.house.tool("recall", {"query": "plan", "limit": 50}, key)
        return set(re.findall(r"canary(\w+)bird", answer.body.decode()))

    seen = {name: hits(secret) for name, (secret, _) in town.keys.items()}
    assert seen == {name: set(allowed) for name, (_, allowed) in town.keys.items()}
    assert hits(town.admin) >= set(AREAS)


def test_the_files_of_notes_are_those_of_the_projects_of_a_key(tmp_path: Path) -> None:
    for name in ("web", "blog", "diary"):
        (tmp_path / name).mkdir()
    roots = {"QUIPU_NOTES_ROOTS": os.pathsep.join(str(tmp_path / name) for name in ("web", "blog", "diary"))}
    with house(Config(data=tmp_path / "data", model=None, environment=roots)) as running:
        admin = running.key()
        held = running.key("write", **app.places(["notes:blog"], ["notes:web"])._asdict())
        running.told()

        def asked(tool: str, secret: str = held, /, **arguments: Any) -> tuple[int, Any]:
            answer = running.tool(tool, arguments, secret)
            body = answer.body.decode()
            return answer.status, json.loads(body) if answer.status == 200 else body

        def noted(project: str, secret: str = held, title: str = "New") -> tuple[int, Any]:
            note = {"title": title, "content": f"The plan of {project}.", "memoryType": "context"}
            return asked("memory_remember", secret, **note, project=project)

        def seen() -> list[str]:
            listed, found = (
                [memory["content"] for memory in asked("memory_recall", **arguments)[1]["memories"]]
                for arguments in ({"isAll": True}, {"query": "plan"})
            )
            assert sorted(listed) == sorted(found)
            return sorted(listed)

        paths = {name: noted(name, admin, "Plan")[1]["filePath"] for name in ("web", "blog", "diary")}
        assert seen() == ["The plan of blog.", "The plan of web."]
        assert asked("memory_list_types")[1]["projects"] == ["web", "blog"]
        assert noted("blog") == (403, "This key may not write to notes:blog.")
        assert noted("diary") == (400, 'Invalid project: "diary". Must be one of: web, blog.')
        assert asked("memory_forget", filePaths=[paths["diary"]])[1]["errors"] == [
            f"Skipped {paths['diary']}: not within .mnemonics/"
        ]
        assert asked("memory_forget", filePaths=[paths["blog"]]) == (403, "This key may not write to notes:blog.")
        assert {name: Path(path).exists() for name, path in paths.items()} == dict.fromkeys(paths, True)
        assert asked("memory_lint")[1]["summary"]["totalMemories"] == 2
        # Files of a person are taken in, in the places of the key.
        for name in ("blog", "diary"):
            Path(paths[name]).write_text(Path(paths[name]).read_text().replace("The plan", "The new plan"))
        assert seen() == ["The new plan of blog.", "The plan of web."]
        assert asked("memory_sync")[0] == 200
        assert asked("memory_forget", filePaths=[paths["web"]])[1]["deletedFiles"] == [paths["web"]]
        assert not Path(paths["web"]).exists()
