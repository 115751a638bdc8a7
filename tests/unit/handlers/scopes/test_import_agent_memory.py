"""The import of agent-memory databases, old and new, is complete and idempotent."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

from handlers import scopes
from kernel.cli import commands
from kernel.cli.main import parser
from kernel.core.errors import Fault
from kernel.engines import yielding
from kernel.operations import consistency
from kernel.search import index
from kernel.server.app import Kernel
from kernel.store import long_work
from tests.conftest import Call, Clock, everything
from tests.unit.handlers.scopes.conftest import Do, exported, refused

NOW = "2026-01-02T03:04:05.678Z"
OLD = "2024-12-10 10:00:00"
THEN = "2024-12-10T10:00:00.000Z"
ISO = "2024-12-11T11:22:33.444Z"
# The tables of the first release that had them all, and the additions of later ones.
TABLES: dict[str, list[str]] = {
    "organizations": ["id", "name", "created_at", "metadata"],
    "projects": ["id", "org_id", "name", "description", "root_path", "created_at", "updated_at", "metadata"],
    "sessions": ["id", "project_id", "name", "purpose", "agent_id", "status", "started_at", "ended_at", "metadata"],
    "tools": [
        "id",
        "scope_type",
        "scope_id",
        "name",
        "category",
        "current_version_id",
        "is_active",
        "created_at",
        "created_by",
    ],
    "tool_versions": [
        "id",
        "tool_id",
        "version_num",
        "description",
        "parameters",
        "examples",
        "constraints",
        "created_at",
        "created_by",
        "change_reason",
        "conflict_flag",
    ],
    "guidelines": [
        "id",
        "scope_type",
        "scope_id",
        "name",
        "category",
        "priority",
        "current_version_id",
        "is_active",
        "created_at",
        "created_by",
    ],
    "guideline_versions": [
        "id",
        "guideline_id",
        "version_num",
        "content",
        "rationale",
        "examples",
        "created_at",
        "created_by",
        "change_reason",
        "conflict_flag",
    ],
    "knowledge": [
        "id",
        "scope_type",
        "scope_id",
        "title",
        "category",
        "current_version_id",
        "is_active",
        "created_at",
        "created_by",
    ],
    "knowledge_versions": [
        "id",
        "knowledge_id",
        "version_num",
        "content",
        "source",
        "confidence",
        "valid_until",
        "created_at",
        "created_by",
        "change_reason",
        "conflict_flag",
    ],
    "tags": ["id", "name", "category", "is_predefined", "description", "created_at"],
    "entry_tags": ["id", "entry_type", "entry_id", "tag_id", "created_at"],
    "entry_relations": [
        "id",
        "source_type",
        "source_id",
        "target_type",
        "target_id",
        "relation_type",
        "created_at",
        "created_by",
    ],
    "conflict_log": [
        "id",
        "entry_type",
        "entry_id",
        "version_a_id",
        "version_b_id",
        "detected_at",
        "resolved",
        "resolution",
        "resolved_at",
        "resolved_by",
    ],
}
LOCKS = ["id", "file_path", "checked_out_by", "session_id", "project_id", "checked_out_at", "expires_at", "metadata"]
LATER: dict[str, list[str]] = {
    "tools": ["last_accessed_at", "access_count"],
    "guidelines": ["last_accessed_at", "access_count"],
    "knowledge": ["last_accessed_at", "access_count"],
    "guideline_versions": ["verification_rules"],
    "knowledge_versions": ["valid_from", "invalidated_by"],
}
ROWS: dict[str, list[list[Any]]] = {
    "organizations": [["o1", "Org", OLD, '{"plan":"free"}'], ["o2", "Org", OLD, None]],
    "projects": [
        ["p1", "o1", "Shop", "d", "/shop", OLD, ISO, '{"a": [1]}'],
        ["p2", None, "Shop", None, None, OLD, OLD, None],
        ["p3", None, "shop", None, None, OLD, OLD, None],
    ],
    "sessions": [
        ["s1", "p1", "S", "why", "claude", "completed", OLD, ISO, None],
        ["s2", None, None, None, None, "whatever", OLD, None, None],
    ],
    "tools": [
        ["t1", "global", None, "t", "cli", "t1v2", 1, OLD, "ada"],
        ["t2", "global", None, "t", None, "t2v1", 1, OLD, None],
        ["t3", "project", "p1", "gone", None, "t3v1", 0, OLD, None],
        ["t4", "galaxy", "x", "lost", None, None, 1, OLD, None],
    ],
    "tool_versions": [
        ["t1v1", "t1", 1, "one", '{"m":{"type":"string"}}', '[{"m":"x"}]', "only", OLD, "ada", "Initial version", 0],
        ["t1v2", "t1", 2, "two", None, None, None, ISO, "bob", None, 1],
        ["t1v3", "t1", 3, "three", "not json", None, None, ISO, None, None, 0],
        ["t2v1", "t2", 1, "twin", None, None, None, OLD, None, None, 0],
        ["t3v1", "t3", 1, None, None, None, None, ISO, None, None, 0],
    ],
    "guidelines": [["g1", "org", "o1", "rule", "style", 150, "g1v1", 1, OLD, None]],
    "guideline_versions": [["g1v1", "g1", 1, "Be kind", "r", '{"good":["x"],"bad":[]}', OLD, None, None, 0]],
    "knowledge": [["k1", "session", "s1", "Fact", "fact", "missing", 1, OLD, None]],
    "knowledge_versions": [
        ["k1v1", "k1", 1, "old words", None, 1, None, OLD, None, None, 0],
        ["k1v2", "k1", 2, "new words", "docs", 0.25, "2027-01-01", OLD, None, None, 0],
    ],
    "tags": [
        ["tag-py", "python", "language", 1, "Python language", OLD],
        ["tag-x", "Ünïcode", "custom", 0, None, ISO],
    ],
    "entry_tags": [
        ["e1", "tool", "t1", "tag-py", OLD],
        ["e2", "knowledge", "k1", "tag-x", ISO],
        ["e3", "project", "p1", "tag-x", OLD],
        ["e4", "tool", "t1", "no such tag", OLD],
    ],
    "entry_relations": [["r1", "guideline", "g1", "project", "p1", "applies_to", ISO, "ada"]],
    "conflict_log": [
        ["c1", "tool", "t1", "t1v1", "t1v2", OLD, 0, None, None, None],
        ["c2", "tool", "t1", "t1v2", "t1v3", OLD, 1, "kept", ISO, "ada"],
    ],
}
HELD: list[list[Any]] = [
    ["l1", "/a", "ada", "s1", "p1", ISO, "2026-01-02T04:00:00.000Z", '{"why":"x"}'],
    ["l2", "/b", "bob", None, None, ISO, None, None],
    ["l3", "/c", "bob", None, None, OLD, "2024-12-12 00:00:00", None],
]
Make = Callable[..., Path]
Bring = Callable[[Path], tuple[dict[str, int], list[str]]]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Writes a database with the schema of a release of the original."""

    def made(release: str = "0.9", rows: dict[str, list[list[Any]]] = ROWS, name: str = "memory.db") -> Path:
        file = tmp_path / name
        db = apsw.Connection(str(file))
        db.pragma("journal_mode", "wal")
        tables = TABLES if release == "0.2" else TABLES | {"file_locks": LOCKS}
        for table, columns in tables.items():
            more = LATER.get(table, []) if release == "0.9" else []
            db.execute(f'CREATE TABLE "{table}" ({", ".join([*columns, *more])})')
            for row in {**rows, "file_locks": HELD}[table]:
                marks = ", ".join("?" * len(row))
                db.execute(f'INSERT INTO "{table}" ({", ".join(columns)}) VALUES ({marks})', row)
        if release == "0.9":
            db.execute("CREATE TABLE permissions (id, agent_id); INSERT INTO permissions VALUES ('a', 'b')")
            db.execute("CREATE TABLE tasks (id); CREATE TABLE _migrations (id); INSERT INTO _migrations VALUES (1)")
            db.execute("CREATE VIRTUAL TABLE tools_fts USING fts5 (name); INSERT INTO tools_fts VALUES ('t')")
        db.close()
        return file

    return made


@pytest.fixture
def bring(kernel: Kernel, capsys: pytest.CaptureFixture[str]) -> Bring:
    """Runs the command. Its counts and remarks."""

    def brought(file: Path) -> tuple[dict[str, int], list[str]]:
        capsys.readouterr()
        assert commands.run(parser().parse_args(["import", "agent-memory", str(file)]), kernel.config) == 0
        answer, remarks = capsys.readouterr()
        counts = {name: int(count) for name, count in (line.split(": ") for line in answer.splitlines()[:-1])}
        return counts, remarks.splitlines()

    return brought


COUNTS = {
    "organizations": 2,
    "projects": 3,
    "sessions": 2,
    "tools": 4,
    "guidelines": 1,
    "knowledge": 1,
    "tags": 1,
    "marks": 3,
    "relations": 1,
    "conflicts": 2,
    "locks": 2,
}
NO_TAG = "1 marks were left out: their tags are not in the file."
OVER = "1 file locks were left out: their time is over."
GHOST = (
    "1 entries stand in scopes that are not in the file (galaxy:x): "
    "they are kept, and an import of their export leaves them out."
)
LEFT = "Left out, since there is nothing like them here: permissions."


@pytest.mark.slow
@pytest.mark.parametrize(
    ("release", "counts", "remarks"),
    [
        ("0.2", COUNTS | {"locks": 0}, [NO_TAG, GHOST]),
        ("0.3", COUNTS, [NO_TAG, OVER, GHOST]),
        ("0.9", COUNTS, [NO_TAG, OVER, GHOST, LEFT]),
    ],
)
def test_a_second_import_adds_nothing(
    make: Make, bring: Bring, kernel: Kernel, clock: Clock, release: str, counts: dict[str, int], remarks: list[str]
) -> None:
    file = make(release)
    theirs = {path.name: path.read_bytes() for path in file.parent.iterdir() if path.name.startswith("memory")}

    assert bring(file) == (counts, remarks)

    after = everything(kernel)
    clock.move(minutes=1)
    assert bring(file) == (dict.fromkeys(counts, 0), remarks)
    assert everything(kernel) == after
    assert {path.name: path.read_bytes() for path in file.parent.iterdir() if path.name in theirs} == theirs
    assert consistency.check(kernel.config.file, kernel.store.context, [scopes.DIALECT]) == []


def test_scopes_are_imported_completely(make: Make, bring: Bring, do: Do, clock: Clock) -> None:
    bring(make())

    assert do("memory_org", "list")["organizations"] == [
        {"id": "o1", "name": "Org", "createdAt": THEN, "metadata": {"plan": "free"}},
        {"id": "o2", "name": "Org", "createdAt": THEN, "metadata": None},
    ]
    projects = do("memory_project", "list")["projects"]
    assert projects[0] == {
        "id": "p1",
        "orgId": "o1",
        "name": "Shop",
        "description": "d",
        "rootPath": "/shop",
        "createdAt": THEN,
        "updatedAt": ISO,
        "metadata": {"a": [1]},
    }
    assert [(one["id"], one["name"]) for one in projects[1:]] == [("p2", "Shop"), ("p3", "shop")]
    assert do("memory_session", "list")["sessions"] == [
        {
            "id": "s1",
            "projectId": "p1",
            "name": "S",
            "purpose": "why",
            "agentId": "claude",
            "status": "completed",
            "startedAt": THEN,
            "endedAt": ISO,
            "metadata": None,
        },
        {
            "id": "s2",
            "projectId": None,
            "name": None,
            "purpose": None,
            "agentId": None,
            "status": "whatever",
            "startedAt": THEN,
            "endedAt": None,
            "metadata": None,
        },
    ]


def test_entries_are_imported_with_every_version(
    make: Make, bring: Bring, do: Do, kernel: Kernel, clock: Clock
) -> None:
    bring(make())

    first = {
        "id": "t1v1",
        "toolId": "t1",
        "versionNum": 1,
        "description": "one",
        "parameters": {"m": {"type": "string"}},
        "examples": [{"m": "x"}],
        "constraints": "only",
        "createdAt": THEN,
        "createdBy": "ada",
        "changeReason": "Initial version",
        "conflictFlag": False,
    }
    empty = dict.fromkeys(first)
    second = empty | {
        "id": "t1v2",
        "toolId": "t1",
        "versionNum": 2,
        "description": "two",
        "createdAt": ISO,
        "createdBy": "bob",
        "conflictFlag": True,
    }
    third = empty | {
        "id": "t1v3",
        "toolId": "t1",
        "versionNum": 3,
        "description": "three",
        "parameters": "not json",
        "createdAt": ISO,
        "conflictFlag": False,
    }
    assert do("memory_tool", "history", id="t1")["versions"] == [third, second, first]
    assert do("memory_tool", "get", id="t1")["tool"] == {
        "id": "t1",
        "scopeType": "global",
        "scopeId": None,
        "name": "t",
        "category": "cli",
        "currentVersionId": "t1v2",
        "isActive": True,
        "createdAt": THEN,
        "createdBy": "ada",
        "currentVersion": second,
    }
    assert do("memory_tool", "get", name="t", scopeType="global")["tool"]["id"] == "t1"
    assert do("memory_tool", "get", id="t2")["tool"]["currentVersion"]["description"] == "twin"
    gone = do("memory_tool", "get", id="t3")["tool"]
    assert (gone["isActive"], gone["scopeId"]) == (False, "p1")
    lost = do("memory_tool", "get", id="t4")["tool"]
    assert (lost["scopeType"], lost["scopeId"], lost["currentVersion"]["versionNum"]) == ("galaxy", "x", 1)
    rule = do("memory_guideline", "get", id="g1")["guideline"]
    assert (rule["priority"], rule["category"], rule["currentVersion"]["examples"]) == (
        150,
        "style",
        {"good": ["x"], "bad": []},
    )
    fact = do("memory_knowledge", "get", id="k1")["knowledge"]["currentVersion"]
    assert (fact["id"], fact["confidence"], fact["validUntil"]) == ("k1v2", 0.25, "2027-01-01T23:59:59.999Z")
    hits = kernel.store.read_sync(lambda tx: index.search(tx, "kind words twin gone", semantic=False))
    assert {hit.id for hit in hits} == {"g1", "k1", "t2"}


def test_imported_entries_shadow_like_added_ones(make: Make, bring: Bring, do: Do) -> None:
    near = ["t9", "project", "p1", "t", None, None, 1, OLD, None]
    bring(make(rows={**ROWS, "tools": [ROWS["tools"][0], near]}))

    seen = do("memory_query", "context", scopeType="project", scopeId="p1")["tools"]
    assert [item["id"] for item in seen] == ["t9"]


def test_tags_relations_conflicts_and_locks_are_imported(make: Make, bring: Bring, do: Do, clock: Clock) -> None:
    bring(make())

    tags = {
        name: do("memory_tag", "for_entry", entryType=kind, entryId=name)["tags"]
        for kind, name in (("tool", "t1"), ("knowledge", "k1"), ("project", "p1"))
    }
    assert [(tag["id"], tag["isPredefined"]) for tag in tags["t1"]] == [("tag_python", True)]
    assert (
        tags["k1"]
        == tags["p1"]
        == [
            {
                "id": "tag-x",
                "name": "Ünïcode",
                "category": "custom",
                "isPredefined": False,
                "description": None,
                "createdAt": ISO,
            },
        ]
    )
    assert do("memory_relation", "list")["relations"] == [
        {
            "id": "r1",
            "sourceType": "guideline",
            "sourceId": "g1",
            "targetType": "project",
            "targetId": "p1",
            "relationType": "applies_to",
            "createdAt": ISO,
            "createdBy": "ada",
        },
    ]
    assert do("memory_conflict", "list")["conflicts"] == [
        {
            "id": "c1",
            "entryType": "tool",
            "entryId": "t1",
            "versionAId": "t1v1",
            "versionBId": "t1v2",
            "detectedAt": THEN,
            "resolved": False,
            "resolution": None,
            "resolvedAt": None,
            "resolvedBy": None,
        },
    ]
    (done,) = do("memory_conflict", "list", resolved=True)["conflicts"]
    assert (done["resolution"], done["resolvedAt"], done["resolvedBy"]) == ("kept", ISO, "ada")
    locks = do("memory_file_lock", "list")["locks"]
    assert locks[0].pop("fencingToken") < locks[1].pop("fencingToken")
    assert locks == [
        {
            "id": "l1",
            "filePath": "/a",
            "checkedOutBy": "ada",
            "sessionId": "s1",
            "projectId": "p1",
            "checkedOutAt": ISO,
            "expiresAt": "2026-01-02T04:00:00.000Z",
            "metadata": {"why": "x"},
        },
        {
            "id": "l2",
            "filePath": "/b",
            "checkedOutBy": "bob",
            "sessionId": None,
            "projectId": None,
            "checkedOutAt": ISO,
            "expiresAt": None,
            "metadata": None,
        },
    ]


@pytest.mark.slow
def test_existing_rows_stay_and_a_released_lock_is_not_imported_again(
    make: Make, bring: Bring, do: Do, clock: Clock
) -> None:
    held = do("memory_file_lock", "checkout", file_path="/b", agent_id="me")["lock"]
    mine = do("memory_tool", "add", scopeType="global", name="t", description="mine")["tool"]["id"]
    file = make()

    assert bring(file)[0]["locks"] == 1
    do("memory_file_lock", "checkin", file_path="/a", agent_id="ada")
    assert bring(file)[0]["locks"] == 0

    assert do("memory_file_lock", "list")["locks"] == [held]
    assert do("memory_tool", "get", name="t", scopeType="global")["tool"]["id"] == mine
    assert len(do("memory_tool", "list", scopeType="global")["tools"]) == 3


@pytest.mark.slow
def test_a_duplicate_name_is_taken_until_its_last_entry_is_deactivated(
    make: Make, bring: Bring, do: Do, unchanged: Call
) -> None:
    bring(make())
    do("memory_tool", "deactivate", id="t1")
    project = do("memory_project", "update", id="p2", name="Other")["project"]

    code = refused(unchanged("memory_tool", action="add", scopeType="global", name="t"))
    assert (code[1], code[3]["id"]) == ("E2001", "t2")
    for given in ({"action": "create", "name": "SHOP"}, {"action": "update", "id": project["id"], "name": "SHOP"}):
        code = refused(unchanged("memory_project", **given))
        assert (code[1], code[3]["id"]) == ("E2001", "p3")
    assert do("memory_project", "update", id="p3", name="SHOP")["project"]["name"] == "SHOP"
    do("memory_project", "update", id="p3", name="Third")
    assert do("memory_project", "update", id="p2", name="Shop")["project"]["id"] == "p2"
    do("memory_tool", "deactivate", id="t2")
    assert do("memory_tool", "add", scopeType="global", name="t")["tool"]["name"] == "t"


def test_a_lock_that_no_agent_could_release_is_left_out(
    make: Make, bring: Bring, do: Do, monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    rows = [
        ["l1", path, holder, None, None, ISO, None, None]
        for path, holder in (("src/a.ts", "ada"), ("/a/../b", "ada"), ("/c", " "), ("/d", None))
    ]
    monkeypatch.setitem(globals(), "HELD", rows)

    counts, remarks = bring(make())

    assert (counts["locks"], do("memory_file_lock", "list")["locks"]) == (0, [])
    assert "4 file locks were left out: no agent could release them by their path and holder." in remarks


@pytest.mark.slow
def test_deactivation_is_imported_unless_the_entry_was_changed_here(
    make: Make, bring: Bring, do: Do, kernel: Kernel, clock: Clock
) -> None:
    bring(make())
    clock.move(minutes=1)
    do("memory_guideline", "update", id="g1", content="changed here")
    rows = json.loads(json.dumps(ROWS))
    rows["tools"][1][6] = rows["tools"][3][6] = rows["guidelines"][0][7] = rows["knowledge"][0][6] = 0
    rows["knowledge_versions"].append(["k1v3", "k1", 3, "last words", None, 1, None, ISO, None, None, 0])

    remarks = bring(make(rows=rows, name="memory-later.db"))[1]

    assert remarks[0] == "Guideline rule (g1) was changed here, and is left so."
    active = {
        name: do(f"memory_{kind}", "get", id=name)[kind]["isActive"]
        for kind, name in (("tool", "t2"), ("tool", "t4"), ("knowledge", "k1"), ("guideline", "g1"))
    }
    assert active == {"t2": False, "t4": False, "k1": False, "g1": True}
    assert consistency.check(kernel.config.file, kernel.store.context, [scopes.DIALECT]) == []


@pytest.mark.slow
def test_new_versions_are_imported_unless_the_entry_was_changed_here(
    make: Make, bring: Bring, do: Do, kernel: Kernel, clock: Clock
) -> None:
    bring(make())
    clock.move(minutes=1)
    do("memory_guideline", "update", id="g1", content="changed here")
    rows = json.loads(json.dumps(ROWS))
    rows["tool_versions"].append(["t2v2", "t2", 2, "newer there", None, None, None, ISO, None, None, 0])
    rows["tools"][1][5] = "t2v2"
    rows["guideline_versions"].append(["g1v2", "g1", 2, "changed there", None, None, ISO, None, None, 0])
    rows["tools"].append(["t5", "global", None, "new", None, None, 1, OLD, None])

    counts, remarks = bring(make(rows=rows, name="memory-later.db"))

    assert {name: count for name, count in counts.items() if count} == {"tools": 1}
    assert remarks[0] == "Guideline rule (g1) was changed here, and is left so."
    assert do("memory_tool", "get", id="t2")["tool"]["currentVersion"]["description"] == "newer there"
    assert do("memory_guideline", "get", id="g1")["guideline"]["currentVersion"]["content"] == "changed here"
    assert consistency.check(kernel.config.file, kernel.store.context, [scopes.DIALECT]) == []


@pytest.mark.slow
def test_imported_data_survives_export_and_import(
    make: Make, bring: Bring, do: Do, second_store: Any, clock: Clock
) -> None:
    rows = {**ROWS, "tools": ROWS["tools"][:3]}
    bring(make(rows=rows))
    document = exported(do)

    answer = second_store.do("memory_import", "import", content=json.dumps(document))

    assert (answer["errors"], answer["created"]) == ([], 5)
    assert exported(second_store.do) == document


@pytest.mark.slow
def test_values_outside_the_tool_limits_survive_import_and_export(
    make: Make, bring: Bring, do: Do, second_store: Any, clock: Clock
) -> None:
    deep = "[" * 40 + "1" + "]" * 40
    rows = {
        **ROWS,
        "organizations": [["o1", "Org", OLD, "no json"]],
        "projects": ROWS["projects"][:1],
        "tools": ROWS["tools"][:3],
        "tool_versions": [*ROWS["tool_versions"], ["t2v2", "t2", 2, "d", deep, None, None, ISO, None, None, 0]],
        "knowledge_versions": [["k1v1", "k1", 1, "words", None, 1, "when it rains", OLD, None, None, 0]],
        "entry_relations": [["r1", "guideline", "g1", "tool", "t1", "supersedes", ISO, "ada"]],
    }
    bring(make(rows=rows))
    document = exported(do)

    for shape in ("json", "yaml"):
        content = do("memory_export", "export", includeVersions=True, includeInactive=True, format=shape)["content"]
        assert second_store.do("memory_import", "import", content=content, format=shape)["errors"] == []
        assert exported(second_store.do) == document

    fact, rule = document["entries"]["knowledge"][0], document["entries"]["guidelines"][0]
    assert fact["currentVersion"]["validUntil"] == "when it rains"
    assert [link["relationType"] for link in rule["relations"]] == ["supersedes"]
    assert do("memory_tool", "history", id="t2")["versions"][0]["parameters"] == deep


@pytest.mark.parametrize(
    ("damage", "code", "why"),
    [
        ("DROP TABLE tools", "invalid", "memory.db is no database of agent-memory: its tables are not there."),
        (
            "UPDATE tool_versions SET id = 't1v1'",
            "invalid",
            "memory.db cannot be imported: UNIQUE constraint failed: scopes_version.id.",
        ),
    ],
)
def test_an_import_that_fails_in_its_first_slice_changes_nothing(
    make: Make, kernel: Kernel, do: Do, damage: str, code: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(long_work, "SLICE_SECONDS", 600.0)
    monkeypatch.setattr(yielding, "_HELD_SECONDS", 600.0)
    monkeypatch.setattr(yielding, "_PAUSE_SHARE", 0.0)
    do("memory_tool", "add", scopeType="global", name="mine")
    before = everything(kernel)
    file = make()
    db = apsw.Connection(str(file))
    db.execute(damage)
    db.close()

    with pytest.raises(Fault) as found:
        commands.run(parser().parse_args(["import", "agent-memory", str(file)]), kernel.config)

    assert (found.value.code, found.value.message) == (code, why)
    assert everything(kernel) == before


def test_other_files_are_refused(kernel: Kernel, tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("no database")

    with pytest.raises(Fault, match=r"^notes\.txt is not a SQLite database\.$"):
        commands.run(parser().parse_args(["import", "agent-memory", str(file)]), kernel.config)
