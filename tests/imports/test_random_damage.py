"""Random damage to the source of each importer: nothing raises, no good record is lost, and the counts add up."""

import json
import random
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from kernel.core.errors import Fault
from tests.imports.harness import Shell
from tests.imports.sources import COGX_ROWS, ROWS, SOURCES, text_files, written
from tests.unit.handlers.brain import original
from tests.unit.handlers.scopes import test_import_agent_memory
from tests.unit.handlers.sessions import test_import_code_memory

DATA_ROWS = {**ROWS, "cogx": COGX_ROWS}
ROUNDS = 2  # of each importer; each is a store of its own steps


def nulled(row: Any, source: random.Random) -> Any:
    """A row of which some member is null."""
    return {**row, source.choice([*row]): None}


def huge(row: Any, _source: random.Random) -> Any:
    """A row with a text beyond what a memory may hold."""
    return {**row, "padding": "x" * 1_100_000}


def deep(_row: Any, _source: random.Random) -> Any:
    """Lists in lists."""
    value: Any = []
    for _ in range(200):
        value = [value]
    return {"deep": value}


DAMAGE: tuple[Callable[[Any, random.Random], Any], ...] = (
    nulled,
    huge,
    deep,
    lambda _row, _source: None,
    lambda row, _source: [row],
    lambda _row, source: source.choice(["", "text", 7, True, {}]),
    lambda row, source: dict(source.sample(list(row.items()), len(row))),
)


def mangled(data: bytes, source: random.Random) -> bytes:
    """The bytes, cut off, with some of them doubled or changed, or in another encoding."""
    at = source.randrange(len(data))
    return source.choice(
        [
            data,
            data[:at],
            data[:at] + data[max(0, at - 40) :],
            data[:at] + bytes([source.randrange(256)]) + data[at + 1 :],
            data.decode("utf-8").encode("utf-16"),
            b"\xef\xbb\xbf" + data.replace(b"\n", b"\r\n"),
        ]
    )


def run(shell: Shell, kind: str, path: Path) -> dict[str, Any] | None:
    """The result of an import, which its dry run told; None if it is refused with a printable reason."""
    try:
        dry = json.loads(shell.run("import", kind, str(path), "--dry-run", "--json"))
    except Fault as fault:
        return None if fault.code == "invalid" and fault.message.isprintable() else pytest.fail(fault.message)
    done = json.loads(shell.run("import", kind, str(path), "--json"))
    assert dry == {**done, "dry_run": True}
    return done


def data_file(kind: str, folder: Path) -> Path:
    """The file of a source of this kind that holds its rows; of COGX beside its manifest, which names the format."""
    if kind != "cogx":
        return folder / "export.json"
    (folder / "export").mkdir()
    (folder / "export" / "manifest.json").write_text('{"cogx_version": "0.1"}', encoding="utf-8")
    return folder / "export" / "memories.jsonl"


def source_of(kind: str, file: Path) -> Path:
    return file.parent if kind == "cogx" else file


def check_counts(done: dict[str, Any]) -> None:
    """The remarks count what is left out, each once."""
    told = [int(remark.split()[2]) for remark in done["remarks"] if remark.startswith("left out: ")]
    assert sum(told) == done["counts"]["left out"]


@pytest.mark.parametrize("kind", DATA_ROWS)
def test_damaged_rows_cost_no_good_row(kind: str, shell: Shell, tmp_path: Path) -> None:
    source = random.Random(kind)
    path = data_file(kind, tmp_path)
    before = shell.export().read_bytes()
    for _ in range(ROUNDS):
        bad = [change({**source.choice(DATA_ROWS[kind])}, source) for change in source.sample(DAMAGE, 4)]
        rows: list[Any] = [
            *DATA_ROWS[kind],
            *({**row, "id": f"x{at}"} if isinstance(row, dict) else row for at, row in enumerate(bad)),
        ]
        path.write_text(written(kind, source.sample(rows, len(rows))), encoding="utf-8")
        done = run(shell, kind, source_of(kind, path))
        assert done is not None
        check_counts(done)
        assert done["counts"]["memories"] >= len(DATA_ROWS[kind]), done
        again = run(shell, kind, source_of(kind, path))
        assert again is not None
        assert again["counts"].get("memories", 0) == 0, again
        shell.run("undo", str(shell.audit()[0]["id"]))
        assert shell.export().read_bytes() == before


@pytest.mark.parametrize("kind", DATA_ROWS)
def test_mangled_bytes_raise_nothing(kind: str, shell: Shell, tmp_path: Path) -> None:
    source = random.Random(kind)
    path = data_file(kind, tmp_path)
    for _ in range(ROUNDS * 3):
        path.write_bytes(mangled(written(kind, DATA_ROWS[kind]).encode(), source))
        if done := run(shell, kind, source_of(kind, path)):
            check_counts(done)
            shell.run("undo", str(shell.audit()[0]["id"]))


BINARIES = (*("claude", "chatgpt", "cogx", "claude-mem", "mcp-memory-service", "mem0 history", "engram"),)


def torn(data: bytes, source: random.Random) -> bytes:
    """The bytes with some of them changed, gone, doubled, or none."""
    at, end = sorted(source.sample(range(len(data)), 2))
    return source.choice(
        [
            data[:at],
            data[:at] + bytes([source.randrange(256)]) + data[at + 1 :],
            data[:at] + source.randbytes(64) + data[at + 64 :],
            data[:at] + bytes(end - at) + data[end:],
            data[:at] + data[end:],
            data + data[at:end],
        ]
    )


@pytest.mark.parametrize("name", BINARIES)
def test_torn_databases_and_archives_raise_nothing(name: str, shell: Shell, tmp_path: Path) -> None:
    source = random.Random(name)
    path, kind = SOURCES[name].make(tmp_path), SOURCES[name].kind
    whole, before = path.read_bytes(), shell.export().read_bytes()
    for _ in range(ROUNDS * 3):
        path.write_bytes(torn(whole, source))
        if done := run(shell, kind, path):
            check_counts(done)
            shell.run("undo", str(shell.audit()[0]["id"]))
            assert shell.export().read_bytes() == before


def code_memory(folder: Path) -> Path:
    path = folder / "code_memory.db"
    database = sqlite3.connect(path)
    database.executescript(test_import_code_memory.SCHEMA + test_import_code_memory.ROWS)
    database.close()
    return path


def agent_memory(folder: Path) -> Path:
    path = folder / "memory.db"
    database = sqlite3.connect(path)
    for table, columns in test_import_agent_memory.TABLES.items():
        database.execute(f'CREATE TABLE "{table}" ({", ".join(columns)})')
        for row in test_import_agent_memory.ROWS[table]:
            database.execute(f'INSERT INTO "{table}" VALUES ({", ".join("?" * len(row))})', row)
    database.commit()
    database.close()
    return path


def project_brain(folder: Path) -> Path:
    return original.plain(folder / "theirs") / "core.db"


ORIGINALS = {"code-memory": code_memory, "agent-memory": agent_memory, "project-brain": project_brain}


@pytest.mark.parametrize("kind", ORIGINALS)
def test_torn_databases_of_the_originals_raise_nothing(kind: str, shell: Shell, tmp_path: Path) -> None:
    source = random.Random(kind)
    path = ORIGINALS[kind](tmp_path)
    whole, before = path.read_bytes(), shell.export().read_bytes()
    for _ in range(ROUNDS * 3):
        path.write_bytes(torn(whole, source))
        if run(shell, kind, path.parent if kind == "project-brain" else path):
            shell.run("undo", str(shell.audit()[0]["id"]))
        assert shell.export().read_bytes() == before


@pytest.mark.parametrize("kind", ORIGINALS)
def test_odd_values_of_the_originals_raise_nothing(kind: str, shell: Shell, tmp_path: Path) -> None:
    source = random.Random(kind)
    path = ORIGINALS[kind](tmp_path)
    whole, before = path.read_bytes(), shell.export().read_bytes()
    for _ in range(ROUNDS * 2):
        path.write_bytes(whole)
        spoil(path, source)
        if done := run(shell, kind, path.parent if kind == "project-brain" else path):
            assert all(count >= 0 for count in done["counts"].values())
            shell.run("undo", str(shell.audit()[0]["id"]))
        assert shell.export().read_bytes() == before


def spoil(path: Path, source: random.Random) -> None:
    """Puts odd values into some row of each table, where its constraints allow them."""
    odd = (None, "", "x" * 1_100_000, b"\xff\x00", -1, 1e300, "2026-13-40", "[" * 200, "\u0000", "null")
    database = sqlite3.connect(path)
    listed = database.execute("SELECT name FROM pragma_table_list WHERE type = 'table' AND NOT wr AND schema = 'main'")
    for (table,) in listed.fetchall():
        columns = [row[1] for row in database.execute(f'PRAGMA table_info("{table}")')]
        rows = [row[0] for row in database.execute(f'SELECT rowid FROM "{table}"')]
        for number in source.sample(rows, min(2, len(rows))):
            with suppress(sqlite3.IntegrityError, sqlite3.OperationalError):
                value = source.choice(odd)
                database.execute(
                    f'UPDATE "{table}" SET "{source.choice(columns)}" = ? WHERE rowid = ?', (value, number)
                )
    database.commit()
    database.close()


GRAPH = [
    *(
        {"type": "entity", "name": f"Place {number}", "entityType": "place", "observations": ["opens"]}
        for number in range(3)
    ),
    {"type": "relation", "from": "Place 0", "to": "Place 1", "relationType": "near"},
]


@pytest.mark.parametrize("form", ["lines", "list"])
def test_damaged_lines_cost_no_entity_of_a_graph(form: str, shell: Shell, tmp_path: Path) -> None:
    source, path = random.Random(form), tmp_path / "memory.jsonl"
    before = shell.export().read_bytes()
    for _ in range(ROUNDS):
        bad = [change({**source.choice(GRAPH), "name": "Odd"}, source) for change in source.sample(DAMAGE, 5)]
        rows = source.sample([*GRAPH, *bad], len(GRAPH) + len(bad))
        path.write_text(json.dumps(rows) if form == "list" else "\n".join(map(json.dumps, rows)), encoding="utf-8")
        done = run(shell, "server-memory", path)
        assert done is not None
        if "left out" in done["counts"]:
            check_counts(done)
        exported = [json.loads(line) for line in shell.export("graph").read_text(encoding="utf-8").splitlines()]
        assert all(row in exported for row in GRAPH)
        again = run(shell, "server-memory", path)
        assert again is not None
        assert not any(again["counts"][name] for name in ("entities", "observations", "relations"))
        shell.run("undo", str(shell.audit()[0]["id"]))
        assert shell.export().read_bytes() == before


@pytest.mark.parametrize("form", ["lines", "list"])
def test_mangled_graphs_raise_nothing(form: str, shell: Shell, tmp_path: Path) -> None:
    source, path = random.Random(form), tmp_path / "memory.jsonl"
    text = json.dumps(GRAPH) if form == "list" else "\n".join(map(json.dumps, GRAPH))
    for _ in range(ROUNDS * 3):
        path.write_bytes(mangled(text.encode(), source))
        if run(shell, "server-memory", path):
            shell.run("undo", str(shell.audit()[0]["id"]))


PAGE = (
    "---\ntitle: Tea\ntags: [a, b]\n---\n# Tea\n\n- [fact] Sencha is green #tea\n\n## Milk\n\nSee [[Other]]. No milk.\n"
)
FOLDERS = {
    "obsidian": {".obsidian/app.json": "{}"},
    "basic-memory": {"more.md": "---\npermalink: more\n---\nMore.\n"},
    "okf": {"index.md": "---\nokf_version: '0.2'\n---\n"},
    "codex": {"memory_summary.md": "-", "MEMORY.md": "Use uv.\n"},
    "claude-code": {"web/memory/MEMORY.md": "-", "web/memory/deploy.md": "Never on Friday.\n"},
    "rules": {"AGENTS.md": "# Build\nUse make.\n"},
}
DAMAGED_FILE = {
    "codex": "rollout_summaries/N.md",
    "claude-code": "web/memory/N.md",
    "rules": "CLAUDE.md",
}


@pytest.mark.parametrize("kind", FOLDERS)
def test_a_damaged_page_costs_no_other(kind: str, shell: Shell, tmp_path: Path) -> None:
    source = random.Random(kind)
    folder = text_files(
        "source", {**FOLDERS[kind], "good.md" if kind != "rules" else ".clinerules": "# Good\nGood.\n"}
    )(tmp_path)
    page = folder / DAMAGED_FILE.get(kind, "N.md")
    page.parent.mkdir(parents=True, exist_ok=True)
    for _ in range(ROUNDS):
        page.write_bytes(mangled(PAGE.encode(), source))
        done = run(shell, kind, folder)
        assert done is not None
        check_counts(done)
        exported = shell.export().read_text(encoding="utf-8")
        assert {"rules": "Use make.", "codex": "Use uv.", "claude-code": "Never on Friday."}.get(
            kind, "Good."
        ) in exported
        shell.run("undo", str(shell.audit()[0]["id"]))
