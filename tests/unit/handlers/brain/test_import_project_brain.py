"""The data of project-brain is found here afterwards, plain or encrypted: all of it, or nothing where it cannot be."""

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from handlers import brain
from kernel.cli import commands
from kernel.cli.main import parser
from kernel.core.config import Config
from kernel.core.errors import Fault
from kernel.operations import consistency
from kernel.server.app import Kernel, context_of, open_kernel
from tests.conftest import Call, Clock, everything
from tests.support.handlers_brain_memories import IDENTITY, row
from tests.unit.handlers.brain import original
from tests.unit.handlers.brain.conftest import read

SEALED = Path(__file__).parent / "sealed"
OLD = "2025-03-01T10:00:00.000Z"
Bring = Callable[..., list[str]]


@pytest.fixture
def bring(config: Config, capsys: pytest.CaptureFixture[str]) -> Bring:
    """Runs the command; return its lines, the most important last."""

    def run(folder: Path, password: str | None = None) -> list[str]:
        arguments = ["import", "project-brain", str(folder), *(["--password-env", "SECRET"] if password else [])]
        environment = {"SECRET": password} if password else {}
        capsys.readouterr()
        assert commands.run(parser().parse_args(arguments), config._replace(environment=environment)) == 0
        printed = capsys.readouterr()
        return [*printed.out.splitlines(), *printed.err.splitlines()]

    return run


@pytest.fixture
def opened(config: Config, caller: Callable[..., Call]) -> Iterator[Callable[..., Any]]:
    """Return the answer of a tool in the store after the import."""
    kernels: list[Kernel] = []

    def ask(name: str, **arguments: Any) -> Any:
        if not kernels:
            kernels.append(open_kernel(config))
        reply = caller(kernels[0].dispatch)(name, **arguments)
        assert reply.fault is None, reply.body
        return read(reply)

    yield ask
    for kernel in kernels:
        kernel.store.close()


def copied(folder: Path, name: str = "core") -> Path:
    """The encrypted file and its log under the names they have at home."""
    folder.mkdir()
    shutil.copyfile(SEALED / "core.sealed", folder / f"{name}.db")
    shutil.copyfile(SEALED / "core.sealed-wal", folder / f"{name}.db-wal")
    return folder


def test_import_reports_imported_and_skipped_rows(bring: Bring, tmp_path: Path) -> None:
    lines = [re.sub(r"undo \d+", "undo N", line) for line in bring(original.plain(tmp_path / "theirs"))]
    assert lines == [  # the number is that of the last row: a slow import has a row for its beginning too
        "memories: 5",
        "entities: 1",
        "links: 2",
        "memory_history: 3",
        "notes: 1",
        "resources: 1",
        "config: 1",
        "query_log: 1",
        "imported 6 memories; `quipu undo N` takes it back",
        "core-copy.db: left out, as it is none of the databases core, therapy, dnd, hlg",
        "core: 2 rows of daily_logs were left out, as nothing here holds them",
        "core: link lnk_b was kept, though there is no entity ent_gone",
    ]


def test_rows_keep_ids_and_times_and_are_embedded_again(
    bring: Bring, opened: Callable[..., Any], tmp_path: Path, clock: Clock
) -> None:
    bring(original.plain(tmp_path / "theirs"))
    old = {"created_at": OLD, "updated_at": OLD}
    mem_a = row("mem_a", "The staging server is in Frankfurt", tags='["infra"]', importance=4, decay_score=0.5, **old)

    assert opened("get_memories", db="core") == [
        row("mem_b", "Never push on Fridays", "hard_constraint", importance=5, metadata='{"immutable":true}', **old),
        mem_a,
        row("val_000", "Be honest", "value", source="founding", **old),
    ]
    assert opened("get_memories", db="core", status="superseded") == [
        row(
            "mem_c",
            "The staging server is in Dublin",
            status="superseded",
            superseded_by="mem_a",
            has_embedding=0,
            embedding_model=None,
            **old,
        ),
    ]
    assert [memory["id"] for memory in opened("get_memories", db="dnd")] == ["mem_d"]
    assert opened("get_config", key="retrieval.vector_weight")["value"] == "0.6"
    assert [link["id"] for link in opened("get_links", db="core")] == ["lnk_b", "lnk_a"]
    assert opened("get_notes", db="core")[0]["embedding_model"] == IDENTITY
    assert opened("get_resources", db="core")[0]["quality_rating"] == 5


@pytest.mark.slow
def test_imported_rows_are_found_by_words_and_meaning(bring: Bring, opened: Callable[..., Any], tmp_path: Path) -> None:
    bring(original.plain(tmp_path / "theirs"))

    found = {
        query: opened("hybrid_search", db="core", query=query, limit=1)["results"][0]["id"]
        for query in ("where does staging run", "payments", "backup at night", "pushing on a Friday")
    }

    assert found == {
        "where does staging run": "mem_a",
        "payments": "ent_a",
        "backup at night": "note_a",
        "pushing on a Friday": "mem_b",
    }
    assert opened("search", db="core", query="Dublin")["memories"] == []


def test_history_keeps_times_and_missing_history_starts_at_creation(
    bring: Bring, opened: Callable[..., Any], tmp_path: Path
) -> None:
    bring(original.plain(tmp_path / "theirs"))

    def call_ok(key: str) -> list[tuple[Any, ...]]:
        events = opened("get_memory_history", memory_id=key)["history"]
        return [(event["operation"], event["content_after"], event["reason"], event["changed_at"]) for event in events]

    assert call_ok("mem_a") == [
        ("created", "It is in Dublin", "Proactive save", OLD),
        ("corrected", "The staging server is in Frankfurt", "moved", "2025-03-02T10:00:00.000Z"),
    ]
    assert call_ok("mem_gone") == [("created", "Something deleted since", None, OLD)]
    assert call_ok("mem_d") == [("created", "The dragon sleeps under the tower", "Imported", OLD)]
    as_of = opened("get_memory_history", memory_id="mem_a", as_of="2025-03-01T12:00:00")
    assert as_of["content"] == "It is in Dublin"


def test_history_with_gaps_is_completed_for_as_of(bring: Bring, opened: Callable[..., Any], tmp_path: Path) -> None:
    folder = original.plain(tmp_path / "theirs")
    db = apsw.Connection(str(folder / "core.db"))
    db.execute("DELETE FROM memory_history WHERE id = 'mhist_1'")
    db.execute("UPDATE memories SET content = 'It is in Paris', updated_at = '2025-03-04 10:00:00' WHERE id = 'mem_a'")
    db.execute(
        "INSERT INTO memory_history VALUES ('mhist_4', 'core', 'mem_c', 'superseded',"
        " 'The staging server is in Dublin', NULL, 'moved', '2025-03-02 10:00:00')"
    )
    db.close()

    answer = bring(folder)

    assert "memory_history: 3" in answer
    events = opened("get_memory_history", memory_id="mem_a")["history"]
    assert [
        (event["operation"], event["content_before"], event["content_after"], event["changed_at"]) for event in events
    ] == [
        ("created", None, "It is in Dublin", OLD),
        ("corrected", "It is in Dublin", "The staging server is in Frankfurt", "2025-03-02T10:00:00.000Z"),
        ("updated", "The staging server is in Frankfurt", "It is in Paris", "2025-03-04T10:00:00.000Z"),
    ]
    stood = {
        (key, day): opened("get_memory_history", memory_id=key, as_of=f"2025-03-0{day}T12:00:00")["content"]
        for key in ("mem_a", "mem_c")
        for day in (1, 3, 5)
    }
    assert stood == {
        ("mem_a", 1): "It is in Dublin",
        ("mem_a", 3): "The staging server is in Frankfurt",
        ("mem_a", 5): "It is in Paris",
        ("mem_c", 1): "The staging server is in Dublin",
        ("mem_c", 3): None,
        ("mem_c", 5): None,
    }


def test_query_log_is_imported_without_secrets(
    config: Config, bring: Bring, opened: Callable[..., Any], tmp_path: Path, clock: Clock
) -> None:
    bring(original.plain(tmp_path / "theirs"))

    stats = opened("get_query_stats", group_by="query")

    assert stats["totals"]["tools_used"] == {"hybrid": 1, "semantic": 0, "fts": 0}
    assert stats["data"][0]["query_text"] == "password: [redacted]"
    assert b"hunter2" not in config.file.read_bytes()


def test_imported_immutable_memories_stay_immutable(
    bring: Bring, opened: Callable[..., Any], config: Config, tmp_path: Path
) -> None:
    bring(original.plain(tmp_path / "theirs"))
    opened("get_config")
    for key in ("mem_b", "val_000"):
        with pytest.raises(AssertionError, match="BLOCKED: Cannot delete immutable memory"):
            opened("delete_memory", db="core", id=key)


@pytest.mark.slow
def test_a_second_import_adds_nothing_and_changes_nothing(
    bring: Bring, opened: Callable[..., Any], config: Config, tmp_path: Path
) -> None:
    folder = original.plain(tmp_path / "theirs")
    bring(folder)
    db = apsw.Connection(str(folder / "core.db"))
    db.execute("UPDATE memories SET content = 'overwritten', metadata = NULL WHERE id = 'mem_b'")
    db.close()

    again = bring(folder)

    assert again[:8] == [
        f"{name}: 0"
        for name in ("memories", "entities", "links", "memory_history", "notes", "resources", "config", "query_log")
    ]
    assert "core: 4 of 4 rows of memories were there already or have no id" in again
    assert opened("get_memories", db="core")[0]["content"] == "Never push on Fridays"
    assert len(opened("get_memory_history", memory_id="mem_a")["history"]) == 2


@pytest.mark.slow
def test_an_import_is_undone_with_its_history(bring: Bring, config: Config, tmp_path: Path) -> None:
    bring(original.plain(tmp_path / "theirs"))
    db = apsw.Connection(str(config.file))
    done = db.execute("SELECT max(id) FROM audit").get  # an import of several slices has a row `begun` before it
    assert commands.run(parser().parse_args(["undo", str(done)]), config) == 0
    assert _memories(config) == 0
    assert db.execute("SELECT * FROM history").fetchall() == []
    db.close()
    assert consistency.check(config.file, context_of(config), [brain.DIALECT]) == []


def test_rows_and_index_agree_afterwards(bring: Bring, config: Config, tmp_path: Path) -> None:
    bring(original.plain(tmp_path / "theirs"))

    assert consistency.check(config.file, context_of(config), [brain.DIALECT]) == []


@pytest.mark.slow
def test_encrypted_files_are_imported_with_their_wal(bring: Bring, opened: Callable[..., Any], tmp_path: Path) -> None:
    answer = bring(copied(tmp_path / "theirs"), original.PASSWORD)

    assert answer[0] == "memories: 5"
    memories = {memory["id"]: memory for memory in opened("get_memories", db="core")}
    assert memories["mem_a"]["importance"] == 1
    assert memories["mem_d"]["content"] == "The dragon sleeps under the tower"


@pytest.mark.parametrize(
    ("password", "message"),
    [
        (None, "core.db is encrypted: name the variable with its password by --password-env."),
        ("wrong", "The password does not open core.db."),
    ],
)
def test_unreadable_file_fails_the_import_without_changes(
    bring: Bring, config: Config, tmp_path: Path, password: str | None, message: str
) -> None:
    folder = copied(tmp_path / "theirs")
    original.plain(tmp_path / "more")
    shutil.copyfile(tmp_path / "more" / "dnd.db", folder / "dnd.db")

    with pytest.raises(Fault) as refused:
        bring(folder, password)

    assert refused.value.message == message
    assert _memories(config) == 0


def test_damaged_file_fails_the_whole_import(bring: Bring, config: Config, tmp_path: Path) -> None:
    folder = original.plain(tmp_path / "theirs")
    (folder / "hlg.db").write_bytes(b"SQLite format 3\0" + bytes(2000))

    with pytest.raises(Fault, match=r"hlg\.db"):
        bring(folder)

    assert _memories(config) == 0


@pytest.mark.parametrize("name", ["nowhere", "empty"])
def test_a_folder_without_any_database_is_refused(bring: Bring, tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()

    with pytest.raises(Fault, match=rf"^There is no core\.db or therapy\.db or dnd\.db or hlg\.db in {name}\.$"):
        bring(tmp_path / name)


def test_columns_are_converted_and_missing_ones_get_defaults(
    bring: Bring, opened: Callable[..., Any], tmp_path: Path, clock: Clock
) -> None:
    folder = tmp_path / "theirs"
    folder.mkdir()
    db = apsw.Connection(str(folder / "core.db"))
    db.execute("CREATE TABLE memories (id, content, category, importance, decay_score, tags, created_at)")
    db.execute(
        "INSERT INTO memories VALUES ('m', 7, NULL, 4.5, 'x', x'5b5d', 'yesterday'), (NULL, 'n', 'fact', 1, 1, 1, 1)"
    )
    db.close()

    assert bring(folder)[-1] == "core: 1 of 2 rows of memories were there already or have no id"
    assert opened("get_memories", db="core") == [row("m", "7", importance=5, tags="[]")]


def test_tags_that_are_not_json_are_split_and_searchable(
    bring: Bring, opened: Callable[..., Any], tmp_path: Path
) -> None:
    folder = original.plain(tmp_path / "theirs")
    db = apsw.Connection(str(folder / "core.db"))
    for table in ("memories", "entities", "notes"):
        db.execute(f"UPDATE {table} SET tags = 'infra, eu west' WHERE id LIKE '%_a'")
    db.close()

    answer = bring(folder)

    for table in ("memories", "entities", "notes"):
        line = f"core: 1 rows of {table} have tags that are no JSON list; what stands between commas was taken for tags"
        assert line in answer
    for name, key in (("get_memories", "mem_a"), ("get_entities", "ent_a"), ("get_notes", "note_a")):
        assert [(one["id"], one["tags"]) for one in opened(name, db="core", tags=["EU West"])] == [
            (key, '["infra","eu west"]')
        ]


def test_invalid_tags_of_an_earlier_import_break_no_search(
    bring: Bring, opened: Callable[..., Any], config: Config, tmp_path: Path
) -> None:
    bring(original.plain(tmp_path / "theirs"))
    db = apsw.Connection(str(config.file))
    for table in ("brain_memory", "brain_entity", "brain_note", "brain_resource"):
        db.execute(f"UPDATE {table} SET tags = 'infra, eu west'")
    db.close()

    for name in ("get_memories", "get_entities", "get_notes", "get_resources"):
        assert opened(name, db="core", tags=["infra"]) == []


def _memories(config: Config) -> int:
    kernel = open_kernel(config)
    count = len(everything(kernel)["brain_memory"])
    kernel.store.close()
    return count
