"""Damage of any kind to the source of each importer: nothing raises, no good record is lost, and the counts add up."""

import json
import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as some

from kernel.cli import commands
from kernel.cli.import_command import kinds
from kernel.cli.main import parser
from kernel.core.config import from_mapping
from kernel.core.errors import Fault
from kernel.server import app
from tests.imports.damage import ODD, bad_rows, mangled, places, spoiled
from tests.imports.harness import Shell, perhaps_refused
from tests.imports.sources import COGX_ROWS, ROWS, SOURCES, text_files, written
from tests.unit.handlers.brain import original
from tests.unit.handlers.scopes import test_import_agent_memory
from tests.unit.handlers.sessions import test_import_code_memory

pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")  # of the data of a failure
EXAMPLES = int(os.environ.get("DAMAGED_IMPORTS", "3"))  # of each importer; each is a store of its own steps
# One store serves all examples of a test: each is taken back.
damaged = settings(
    max_examples=EXAMPLES,
    derandomize=EXAMPLES < 10,
    database=None,
    phases=(Phase.generate,),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)
GRAPH = [
    *({"type": "entity", "name": f"Place {at}", "entityType": "place", "observations": ["opens"]} for at in range(3)),
    {"type": "relation", "from": "Place 0", "to": "Place 1", "relationType": "near"},
]
PAGE = (
    "---\ntitle: Tea\ntags: ['#a', 7]\ncreated: 2024-01-02\naliases: [Chai]\n---\n# Tea\n\n- [fact] It is green #b\n"
    "- knows [[good|one]] and [two](p2.md) %%no%%\n\n```\n# code\n```\n\n## Part\npassword: {{ vault }}\n"
)
ENTRIES = {
    "entries": {
        "guidelines": [{"scopeType": "global", "name": name, "content": "Be kind.", "tags": ["a"]} for name in "AB"],
        "knowledge": [{"scopeType": "global", "title": "Port", "content": "7437"}],
        "tools": [{"scopeType": "global", "name": "make", "description": "builds"}],
    }
}
FOLDERS = {
    "obsidian": {".obsidian/app.json": "{}", "good.md": "Good.\n", "N.md": PAGE},
    "basic-memory": {"good.md": "---\npermalink: more\n---\nGood.\n", "N.md": PAGE},
    "okf": {"index.md": "---\nokf_version: '0.2'\n---\n", "good.md": "Good.\n", "N.md": PAGE},
    "codex": {"memory_summary.md": "-", "MEMORY.md": "Good.\n", "rollout_summaries/N.md": PAGE},
    "claude-code": {"web/memory/MEMORY.md": "-", "web/memory/a.md": "Good.\n", "web/memory/N.md": PAGE},
    "rules": {"AGENTS.md": "# Build\nGood.\n", "CLAUDE.md": PAGE},
}


HEAD = [
    *("title", "name", "type", "permalink", "tags", "tag", "aliases", "status", "category", "description", "summary"),
    *("created", "date", "modified", "stale_after", "deprecated", "archived", "metadata", "key_points", "generated"),
    *("note_type", "globs", "paths", "alwaysApply", "applyTo", "trigger", "inclusion", "up"),
]


class Subject(NamedTuple):
    """A source: its kind, its path, the file of it that is damaged, and whether the rest of it is good."""

    kind: str
    path: Path
    file: Path
    has_good: bool = False


def rows_file(name: str, folder: Path) -> Subject:
    """The source of rows: those of COGX are beside a manifest, which names the format."""
    if name != "cogx":
        file = folder / ("memory.jsonl" if name.startswith("graph") else "export.json")
        return Subject("server-memory" if name.startswith("graph") else name, file, file)
    target = text_files("export", {"manifest.json": '{"cogx_version": "0.1"}'})(folder)
    return Subject("cogx", target, target / "memories.jsonl")


def text_of(name: str, rows: list[Any]) -> str:
    if not name.startswith("graph"):
        return written(name, rows)
    return json.dumps(rows) if name == "graph list" else "\n".join(map(json.dumps, rows))


def page_file(kind: str, folder: Path) -> Subject:
    source = text_files("source", FOLDERS[kind])(folder)
    return Subject(
        kind, source, next(path for path in source.rglob("*.md") if path.name in {"N.md", "CLAUDE.md"}), True
    )


def code_memory(folder: Path) -> Subject:
    path = folder / "code_memory.db"
    database = sqlite3.connect(path)
    database.executescript(test_import_code_memory.SCHEMA + test_import_code_memory.ROWS)
    database.close()
    return Subject("code-memory", path, path)


def agent_memory(folder: Path) -> Subject:
    path = folder / "memory.db"
    database = sqlite3.connect(path)
    for table, columns in test_import_agent_memory.TABLES.items():
        database.execute(f'CREATE TABLE "{table}" ({", ".join(columns)})')
        for row in test_import_agent_memory.ROWS[table]:
            database.execute(f'INSERT INTO "{table}" VALUES ({", ".join("?" * len(row))})', row)
    database.commit()
    database.close()
    return Subject("agent-memory", path, path)


def project_brain(folder: Path) -> Subject:
    path = original.plain(folder / "theirs") / "core.db"
    return Subject("project-brain", path.parent, path)


def memory_export(folder: Path, ending: str) -> Subject:
    path = folder / f"export.{ending}"
    path.write_text(json.dumps(ENTRIES, indent=1) if ending == "json" else yaml.safe_dump(ENTRIES), encoding="utf-8")
    return Subject("memory-export", path, path)


def of_program(name: str, folder: Path) -> Subject:
    """A source of which the largest file is damaged."""
    path = SOURCES[name].make(folder)
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return Subject(SOURCES[name].kind, path, max(files, key=lambda file: file.stat().st_size))


def everything(folder: Path) -> Subject:
    config = from_mapping({"QUIPU_DATA": str(folder / "theirs")})
    app.open_kernel(config).store.close()
    path = folder / "everything.jsonl"
    for line in (("import", str(whole_rows("graph lines", folder).path)), ("export", "jsonl", str(path))):
        assert commands.run(parser().parse_args(line), config) == 0
    return Subject("jsonl", path, path)


def rows_of(name: str) -> list[Any]:
    return GRAPH if name.startswith("graph") else {**ROWS, "cogx": COGX_ROWS}[name]


def whole_rows(name: str, folder: Path) -> Subject:
    subject = rows_file(name, folder)
    subject.file.write_text(text_of(name, rows_of(name)), encoding="utf-8")
    return subject


ROWED = [*ROWS, "cogx", "graph lines", "graph list"]
ORIGINALS: dict[str, Callable[[Path], Subject]] = {
    "code-memory": code_memory,
    "agent-memory": agent_memory,
    "project-brain": project_brain,
}
SUBJECTS: Mapping[str, Callable[[Path], Subject]] = {
    **{f"{name} rows": (lambda folder, name=name: whole_rows(name, folder)) for name in ROWED},
    **{f"{name} page": (lambda folder, name=name: page_file(name, folder)) for name in FOLDERS},
    **{f"{name} file": (lambda folder, name=name: of_program(name, folder)) for name in SOURCES},
    "everything": everything,
    **{f"memory-export {end}": (lambda folder, end=end: memory_export(folder, end)) for end in ("json", "yaml")},
    **ORIGINALS,
}


def bring(shell: Shell, subject: Subject) -> dict[str, Any] | None:
    """The result of an import, which its dry run told; None if it is refused with a printable reason."""
    line = ("import", subject.kind, str(subject.path), "--json")
    try:
        dry = json.loads(shell.run(*line, "--dry-run"))
    except Fault as fault:
        return None if fault.code == "invalid" and fault.message.isprintable() else pytest.fail(fault.message)
    done = json.loads(shell.run(*line))
    done.pop("undo", None)
    assert dry == {**done, "dry_run": True}
    told = [int(remark.split()[2]) for remark in done["remarks"] if remark.startswith("left out: ")]
    if "left out" in done["counts"] or told:
        assert sum(told) == done["counts"]["left out"]
    assert all(count >= 0 for count in done["counts"].values())
    return done


def added(done: Mapping[str, Any] | None) -> dict[str, int]:
    counts = done["counts"] if done else {}
    return {
        name: count
        for name, count in counts.items()
        if count and name not in {"already there", "left out", "repeated", "skipped"}
    }


def test_every_import_is_damaged(tmp_path: Path) -> None:
    damaged_kinds = set[str]()
    for number, make in enumerate(SUBJECTS.values()):
        folder = tmp_path / f"{number}"
        folder.mkdir()
        damaged_kinds.add(make(folder).kind)
    assert damaged_kinds == set(kinds())


@pytest.mark.parametrize("name", ROWED)
def test_damaged_rows_cost_no_good_row(name: str, shell: Shell, tmp_path: Path) -> None:
    subject, rows = rows_file(name, tmp_path), rows_of(name)
    before = shell.export().read_bytes()
    bad = some.lists(some.sampled_from(rows).flatmap(bad_rows), min_size=2, max_size=5)

    @damaged
    @given(bad=bad, data=some.data())
    def check(bad: list[Any], data: some.DataObject) -> None:
        others = [
            {**row, "id": f"x{at}", "name": "Odd"} if isinstance(row, dict) else row for at, row in enumerate(bad)
        ]
        subject.file.write_text(text_of(name, data.draw(some.permutations([*rows, *others]))), encoding="utf-8")
        done = bring(shell, subject)
        assert done is not None
        if name.startswith("graph"):
            exported = [json.loads(line) for line in shell.export("graph").read_text(encoding="utf-8").splitlines()]
            assert all(row in exported for row in rows)
        else:
            assert done["counts"]["memories"] >= len(rows), done
        assert not added(bring(shell, subject))
        shell.run("undo", str(shell.audit()[0]["id"]))
        assert shell.export().read_bytes() == before

    check()


@pytest.mark.parametrize("name", SUBJECTS)
def test_damaged_bytes_raise_nothing_and_cost_no_other_file(name: str, shell: Shell, tmp_path: Path) -> None:
    subject = SUBJECTS[name](tmp_path)
    before = shell.export().read_bytes()

    @damaged
    @given(data=mangled(subject.file.read_bytes()))
    def check(data: bytes) -> None:
        subject.file.write_bytes(data)
        done = bring(shell, subject)
        assert not (subject.has_good and done is None)
        if subject.has_good:
            assert "Good." in shell.export().read_text(encoding="utf-8")
        if added(done):
            shell.run("undo", str(shell.audit()[0]["id"]))
        assert shell.export().read_bytes() == before

    check()


@pytest.mark.parametrize("kind", ORIGINALS)
def test_odd_values_of_the_originals_raise_nothing(kind: str, shell: Shell, tmp_path: Path) -> None:
    subject = ORIGINALS[kind](tmp_path)
    whole, before = subject.file.read_bytes(), shell.export().read_bytes()

    @damaged
    @given(data=some.data())
    def check(data: some.DataObject) -> None:
        subject.file.write_bytes(whole)
        spoil(subject.file, data)
        if added(bring(shell, subject)):
            shell.run("undo", str(shell.audit()[0]["id"]))
        assert shell.export().read_bytes() == before

    check()


@pytest.mark.parametrize("name", [*(f"{name} file" for name in SOURCES), *ORIGINALS])
def test_no_type_of_any_value_in_a_source_raises(name: str, shell: Shell, tmp_path: Path) -> None:
    """Each value in JSON, and each column of a database, becomes a list, an object, null, and one more in turn."""
    subject = SUBJECTS[name](tmp_path)
    for number, spoil_file in enumerate(spoilings(subject.file)):
        spoil_file(number)
        with perhaps_refused():
            shell.run("import", subject.kind, str(subject.path), "--dry-run", "--json")


def spoilings(file: Path) -> Iterator[Callable[[int], None]]:
    """Changes of a file of JSON, of lines of JSON, or of a database; none of other files."""
    whole = file.read_bytes()
    if whole.startswith(b"SQLite format 3"):
        yield from (partial(spoil_column, file, whole, *column) for column in columns_of(file))
        return
    with suppress(ValueError):
        value, write = json.loads(whole), json.dumps
        yield from (partial(spoil_value, file, value, write, place) for place in places(value) for _ in range(4))
        return
    with suppress(ValueError):
        rows = [json.loads(line) for line in whole.splitlines()]
        yield from (partial(spoil_value, file, rows, in_lines, place) for place in places(rows) for _ in range(4))


def in_lines(rows: Any) -> str:
    return "\n".join(map(json.dumps, rows if isinstance(rows, list) else [rows]))


def spoil_value(file: Path, value: Any, write: Callable[[Any], str], place: tuple[Any, ...], number: int) -> None:
    odd = ([["x"]], {"a": {"b": []}}, None, ODD[number // 4 % len(ODD)])[number % 4]
    file.write_text(write(spoiled(value, place, odd)), encoding="utf-8")


def columns_of(file: Path) -> list[tuple[str, str, object]]:
    with closing(sqlite3.connect(file)) as database:
        tables = database.execute("SELECT name FROM pragma_table_list WHERE type = 'table' AND NOT wr").fetchall()
        return [
            (table, row[1], odd)
            for (table,) in tables
            for row in database.execute(f'PRAGMA table_info("{table}")')
            for odd in (None, b"\xff\x00", '[["x"]]')
        ]


def spoil_column(file: Path, whole: bytes, table: str, column: str, odd: object, _number: int) -> None:
    file.write_bytes(whole)
    with closing(sqlite3.connect(file)) as database, suppress(sqlite3.IntegrityError, sqlite3.OperationalError):
        database.execute(f'UPDATE "{table}" SET "{column}" = ?', (odd,))
        database.commit()


def spoil(path: Path, data: some.DataObject) -> None:
    """Puts an odd value into some row of each table, where its constraints allow that."""
    odd = (None, "", "x" * 1_100_000, b"\xff\x00", -1, 1e300, "2026-13-40", "[" * 200, "\u0000", "null")
    database = sqlite3.connect(path)
    listed = database.execute("SELECT name FROM pragma_table_list WHERE type = 'table' AND NOT wr AND schema = 'main'")
    for (table,) in listed.fetchall():
        columns = [row[1] for row in database.execute(f'PRAGMA table_info("{table}")')]
        if rows := [row[0] for row in database.execute(f'SELECT rowid FROM "{table}"')]:
            number, column, value = (data.draw(some.sampled_from(choices)) for choices in (rows, columns, odd))
            with suppress(sqlite3.IntegrityError, sqlite3.OperationalError):
                database.execute(f'UPDATE "{table}" SET "{column}" = ? WHERE rowid = ?', (value, number))
    database.commit()
    database.close()


@pytest.mark.parametrize("kind", FOLDERS)
def test_many_damaged_pages_are_named_or_taken(kind: str, shell: Shell, tmp_path: Path) -> None:
    subject = page_file(kind, tmp_path)
    folder = subject.file.parent / (".claude/rules" if kind == "rules" else "")
    folder.mkdir(parents=True, exist_ok=True)
    subject.file.unlink()
    before = shell.export().read_bytes()
    files = sum(path.suffix == ".md" for path in subject.path.rglob("*.md"))

    @settings(damaged, max_examples=max(1, EXAMPLES // 3))
    @given(pages=some.lists(mangled(PAGE.encode()), min_size=6, max_size=12))
    def check(pages: list[bytes]) -> None:
        for page in folder.glob("bad*.md"):
            page.unlink()
        for number, data in enumerate(pages):
            (folder / f"bad{number}.md").write_bytes(data)
        done = bring(shell, subject)
        assert done is not None
        if kind != "rules":
            assert done["counts"].get("notes", 0) + done["counts"]["left out"] >= files + len(pages)
        assert "Good." in shell.export().read_text(encoding="utf-8")
        assert not added(bring(shell, subject))
        shell.run("undo", str(shell.audit()[0]["id"]))
        assert shell.export().read_bytes() == before

    check()


@pytest.mark.parametrize("kind", [kind for kind in FOLDERS if kind != "codex"])
def test_odd_values_of_front_matter_cost_no_page(kind: str, shell: Shell, tmp_path: Path) -> None:
    subject = page_file(kind, tmp_path)
    folder = subject.file.parent / (".cursor/rules" if kind == "rules" else "")
    folder.mkdir(parents=True, exist_ok=True)
    texts = list[str]()
    for name in HEAD:
        for number, odd in enumerate([*ODD, ["archived"], {"status": ["deleted"]}]):
            texts.append(f"{name} has value {number}.")
            page = f"---\n{name}: {json.dumps(odd)}\n---\n# Page of {name} {number}\n{texts[-1]}\n- [fact] It is so.\n"
            (folder / f"{name}{number}.{'mdc' if kind == 'rules' else 'md'}").write_text(page, encoding="utf-8")
    assert bring(shell, subject) is not None
    exported = shell.export().read_text(encoding="utf-8")
    assert [text for text in texts if text not in exported] == []
