"""Commands on a tenant in PostgreSQL: exports and imports as on a file, and commands for files refused by name."""

import re
import shutil
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest

from kernel.cli.main import main
from kernel.core.config import Config
from kernel.store.statements import ROOT
from tests.postgres import stores
from tests.support.postgres_copy import fill

pytestmark = pytest.mark.postgres


@pytest.fixture
def filled(address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data directory with memories; those of PostgreSQL come from it."""
    folder = tmp_path / "original"
    fill(Config(data=folder))
    assert main(["store", "copy", str(folder), address]) == 0
    monkeypatch.setenv("QUIPU_STORE", address)
    monkeypatch.setenv("QUIPU_DATA", str(tmp_path / "data"))
    return folder


def exported(target: Path, *options: str) -> bytes:
    assert main(["export", "jsonl", str(target), *options]) == 0
    return target.read_bytes()


def test_an_export_is_that_of_the_file(
    filled: Path, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_postgres = exported(tmp_path / "postgres.jsonl")
    monkeypatch.delenv("QUIPU_STORE")

    assert on_postgres == exported(tmp_path / "file.jsonl", "--data", str(filled))


def test_an_import_brings_everything_back(filled: Path, tmp_path: Path) -> None:
    whole = exported(tmp_path / "whole.jsonl")

    assert main(["import", str(tmp_path / "whole.jsonl"), "--tenant", "other"]) == 0
    assert exported(tmp_path / "returned.jsonl", "--tenant", "other") == whole
    assert main(["import", str(tmp_path / "whole.jsonl"), "--tenant", "other"]) == 0
    assert exported(tmp_path / "again.jsonl", "--tenant", "other") == whole
    assert main(["check", "--tenant", "other"]) == 0


def test_what_is_added_after_an_import_has_ids_of_its_own(
    filled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for text in ("a walk in the park", "bread with salt", "the printer is out of paper"):
        assert main(["add", "--dialect", "sessions", text]) == 0
    exported(tmp_path / "whole.jsonl")
    assert main(["import", str(tmp_path / "whole.jsonl"), "--tenant", "other"]) == 0

    assert main(["add", "--dialect", "sessions", "--tenant", "other", "a swim in the lake"]) == 0

    capsys.readouterr()
    assert main(["list", "--dialect", "sessions", "--tenant", "other", "--json"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 4


def test_memories_are_found_and_shown_without_a_server(filled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["recall", "tea"]) == 0
    assert "likes tea" in capsys.readouterr().out
    assert main(["stats"]) == 0
    assert main(["export", "okf", str(filled.parent / "bundle")]) == 0
    assert any(filled.parent.joinpath("bundle").rglob("*.md"))


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["replica", "copy"], "quipu replica"),
        (["backup", "--to", "backups"], "works on files"),
        (["serve", "--port", "0", "--follow"], "--follow"),
        (["serve", "--port", "0", "--backup-to", "backups"], "QUIPU_BACKUP_TO"),
    ],
)
def test_what_works_on_files_is_refused_by_name(
    words: list[str],
    told: str,
    address: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("QUIPU_STORE", address)
    monkeypatch.setenv("QUIPU_DATA", str(tmp_path / "data"))

    assert main(words) == 1

    assert told in capsys.readouterr().err
    assert not (tmp_path / "data" / "quipu.db").exists()


@pytest.mark.parametrize(
    ("migrations", "name"),
    [
        (["0005_intake_and_index_words"], "index_outdated_to"),
        (["0017_example_words", "0018_label_words", "0019_tag_words", "0018_label_words"], "index_texts_outdated_to"),
    ],
)
def test_what_an_earlier_release_indexed_is_renewed(
    filled: Path, address: str, migrations: list[str], name: str
) -> None:
    (filled.parent / "web").mkdir()
    (filled.parent / "web" / "AGENTS.md").write_text("Use tabs.")
    assert main(["import", "rules", str(filled.parent / "web")]) == 0
    waiting = "SELECT value FROM quipu_data.setting WHERE name = %s"
    with stores.connect(address) as db:
        for migration in migrations:
            text = (ROOT / f"postgres/schema/{migration}.sql").read_text(encoding="utf-8")
            db.execute(text.partition(";")[0])
        before = db.execute(waiting, [name]).fetchall()

    assert main(["reindex"]) == 0

    with stores.connect(address) as db:
        after = db.execute(waiting, [name]).fetchall()
    assert (len(before), after) == (1, [])
    assert main(["check"]) == 0


def test_a_reindex_makes_words_and_vectors_anew(filled: Path, address: str) -> None:
    counted = "SELECT count(*), coalesce(max(doc), 0) FROM quipu_data.{} WHERE tenant = %s"
    with stores.connect(address) as db:
        tenant = db.execute("SELECT id FROM quipu.directory WHERE name = 'main'").fetchone()
        before = [db.execute(counted.format(name), tenant).fetchone() for name in ("doc_words", "doc_vector")]
        db.execute("DELETE FROM quipu_data.doc_vector WHERE tenant = %s", tenant)
        db.execute("UPDATE quipu_data.doc_words SET doc = doc + 99999 WHERE tenant = %s", tenant)
    assert main(["check"]) == 1

    assert main(["reindex"]) == 0

    with stores.connect(address) as db:
        after = [db.execute(counted.format(name), tenant).fetchone() for name in ("doc_words", "doc_vector")]
        totals = db.execute("SELECT last FROM quipu_data.counter WHERE name = 'words_docs' AND tenant = %s", tenant)
        assert totals.fetchone() == before[0][:1]
    assert after == before
    assert main(["check"]) == 0
    assert main(["check", "--repair"]) == 0


def test_an_import_is_undone_in_slices(
    filled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kernel.store.long_work.SLICE_SECONDS", -1.0)
    before = exported(tmp_path / "before.jsonl")
    source = tmp_path / "memory.jsonl"
    line = '{{"type":"entity","name":"new {0}","entityType":"t","observations":["seen {0}"]}}\n'
    source.write_text("".join(line.format(number) for number in range(60)))
    assert main(["import", "server-memory", str(source)]) == 0
    capsys.readouterr()
    assert main(["audit", "--limit", "1", "--json"]) == 0
    number = msgspec.json.decode(capsys.readouterr().out)["id"]

    assert main(["undo", str(number)]) == 0

    assert exported(tmp_path / "after.jsonl").count(b"new ") == before.count(b"new ")
    assert main(["check"]) == 0


def test_changed_sources_are_followed_as_in_a_file(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    web, export, chunk, session = (tmp_path / name for name in ("web", "a.json", "b.json", "s.jsonl"))
    said = {"type": "user", "sessionId": "s", "message": {"content": "Tea?"}}
    texts: list[Mapping[str, str]] = [
        {"AGENTS.md": "# Do\n## Push\nRun it.\n# Tabs\nUse tabs.\n", "api/CLAUDE.md": "Use spaces.\n"},
        {"AGENTS.md": "# Never do\n## Push\nRun it.\n"},
        {"AGENTS.md": "# Never do\n## Push\nRun it.\n# Tabs\nUse tabs.\n", "api/CLAUDE.md": "Use spaces.\n"},
    ]
    counts: dict[bool, list[str]] = {True: [], False: []}
    for is_file, store in ((True, None), (False, address)):
        monkeypatch.setenv("QUIPU_DATA", str(tmp_path / f"data-{is_file}"))
        monkeypatch.setenv("QUIPU_STORE", store) if store else monkeypatch.delenv("QUIPU_STORE", raising=False)
        for text, state in zip(texts, ("active", "archived", "active"), strict=True):
            shutil.rmtree(web, ignore_errors=True)
            for name, body in text.items():
                (web / name).parent.mkdir(parents=True, exist_ok=True)
                (web / name).write_text(body)
            export.write_bytes(msgspec.json.encode([{"id": "1", "memory": "Tea.", "state": state, "tags": [state]}]))
            later = {"deleted_at": "2026-02-01"} if state == "archived" else {"content": f"The port is {state}."}
            chunk.write_bytes(msgspec.json.encode({"observations": [{"sync_id": "o", **later}]}))
            records = [
                *({**said, "uuid": str(at), "timestamp": f"2026-05-01T08:0{at}:00Z"} for at in range(len(counts))),
                {"type": "last-prompt", "leafUuid": "1" if state == "archived" else "0"},
            ]
            session.write_bytes(b"\n".join(map(msgspec.json.encode, records)))
            capsys.readouterr()
            assert main(["import", "engram", str(chunk), "--json"]) == 0
            assert main(["import", "claude-code", str(session), "--json"]) == 0
            assert main(["import", "rules", str(web), "--json"]) == 0
            assert main(["import", "mem0", str(export), "--json"]) == 0
            # The number of a call says how many slices came before it, which is a matter of time.
            counts[is_file].append(re.sub(r'"undo":\[\d+\]', "", capsys.readouterr().out))
        assert main(["check"]) == 0
    assert counts[False] == counts[True]
    assert '{"archived":1,"already there":0' in counts[True][1]
    assert '{"archived":1,"memories":1' in counts[True][1]
    assert '"archived":2,"updated":1' in counts[True][1]
    assert '"updated":2,"already there":1' in counts[True][2]
