"""Every statement compiles, names its parameters, keeps to its owner's tables and writes only for writing tools."""

import ast
import re
from collections.abc import Iterator

import apsw
import apsw.ext
import pytest

from kernel.calls.tools import Tool
from kernel.server import app
from kernel.store import statements
from tests.unit.sql.code import ROOT, STATEMENTS, asked, modules, reached, used

KERNEL_TABLES = re.compile(r"doc(_\w+)?|history|setting|migration|audit(_answer|_shown)?|undo(_part)?")
ENGINE_TABLES = {"dbstat", "json_each", "json_tree", "jsonb_each", "sqlite_master", "sqlite_sequence"}
DIALECTS = ("brain", "files", "graph", "notes", "paths", "scopes", "sessions")
TOOLS = [tool for dialect in app.DIALECTS for tool in (*dialect.tools, *(method.tool for method in dialect.rest))]
# flush_deferred runs only the deferred work of the same transaction; a read defers nothing, so its flushes never run.
FLUSHES = ("kernel.search.index._flush", "kernel.store.history._flush")

statement = pytest.mark.parametrize("key", sorted(STATEMENTS))


@pytest.fixture
def details(migrated: apsw.Connection, key: str) -> apsw.ext.QueryDetails:
    """SQLite's description of a compiled statement."""
    return apsw.ext.query_info(migrated, STATEMENTS[key].text, actions=True)


def tables(details: apsw.ext.QueryDetails) -> set[str]:
    return {action.table_name for action in details.actions or () if action.table_name}


@statement
def test_statement_compiles_and_is_the_only_one_in_its_block(details: apsw.ext.QueryDetails) -> None:
    assert details.has_vdbe
    assert details.query_remaining is None


@statement
def test_statement_uses_only_tables_of_its_owner(details: apsw.ext.QueryDetails, key: str) -> None:
    owner = key.partition(".")[0]
    others = {name for name in tables(details) - ENGINE_TABLES if not owns(owner, name)}
    assert others == set()


@pytest.fixture(scope="module")
def writing(migrated: apsw.Connection) -> set[str]:
    """The statements that can write."""
    return {name for name, found in STATEMENTS.items() if not apsw.ext.query_info(migrated, found.text).is_readonly}


def owns(owner: str, table: str) -> bool:
    return bool(KERNEL_TABLES.fullmatch(table)) if owner == "kernel" else table.startswith(f"{owner}_")


@pytest.mark.parametrize(
    ("owner", "table", "verdict"),
    [
        ("kernel", "doc", True),
        ("kernel", "doc_fts_config", True),
        ("kernel", "document", False),
        ("kernel", "paths_memory", False),
        ("paths", "paths_memory", True),
        ("paths", "doc", False),
        ("paths", "history", False),
        ("brain", "paths_memory", False),
    ],
)
def test_table_prefix_names_the_owner(owner: str, table: str, verdict: bool) -> None:
    assert owns(owner, table) is verdict


@statement
def test_parameters_are_named_and_columns_are_listed(details: apsw.ext.QueryDetails, key: str) -> None:
    assert details.bindings_count == len([name for name in details.bindings_names if name])
    assert all(name.isidentifier() and name == name.lower() for name in details.bindings_names if name)
    assert re.findall(r"(?:\b(?:select|distinct|all|returning)|,|\.)\s*\*", STATEMENTS[key].text, re.I) == []


@statement
def test_statement_uses_no_clock_and_no_randomness(key: str) -> None:
    forbidden = re.compile(
        r"\b(datetime|date|time|julianday|strftime|unixepoch|random|randomblob)\s*\(|\bcurrent_(date|time)", re.I
    )
    assert forbidden.findall(STATEMENTS[key].text) == []


@statement
def test_no_parameter_is_a_pattern(key: str) -> None:
    """SQLite refuses long patterns, and compares them in quadratic time; instr has no such limit."""
    assert re.findall(r"\b(?:LIKE|GLOB|REGEXP)\b", STATEMENTS[key].text, re.I) == []


def test_files_have_nothing_outside_named_blocks() -> None:
    files = [file for file in (ROOT / "sql").rglob("*.sql") if "schema" not in file.parts]
    stray = [file.name for file in files if not re.match("-- (name|fragment): ", file.read_text(encoding="utf-8"))]
    assert stray == []


def test_every_fragment_is_used_by_more_than_one_statement() -> None:
    texts = [file.read_text(encoding="utf-8") for file in (ROOT / "sql").rglob("*.sql")]
    fragments = [name for text in texts for name in re.findall("^-- fragment: (.+)$", text, re.MULTILINE)]
    assert [name for name in fragments if sum(text.count(f"{{{name}}}") for text in texts) < 2] == []


def test_every_file_of_statements_has_a_module_of_the_same_stem() -> None:
    files = sorted({statement.file.relative_to(ROOT / "sql") for statement in STATEMENTS.values()})
    kernel_stems = {file.stem for folder in ("kernel", "handlers/console") for file in (ROOT / folder).rglob("*.py")}
    unmatched = [
        str(file)
        for file in files
        if not (
            file.stem in kernel_stems
            if file.parts[0] == "kernel"
            else any((ROOT / "handlers" / file.with_suffix("") / end).exists() for end in ("", "__init__.py"))
            or (ROOT / "handlers" / file).with_suffix(".py").exists()
        )
    ]
    assert unmatched == ["kernel/setting.sql"]  # two statements that only the composition root runs


@pytest.mark.slow
def test_every_statement_name_in_code_is_an_existing_literal() -> None:
    unknown = [
        name
        for name, tree in modules().items()
        for query in asked(tree)
        if not (isinstance(query, ast.Constant) and query.value in STATEMENTS)
    ]
    # They take the name of one of a few statements as a parameter; the names are literals where it comes from.
    assert unknown == [
        *["handlers.brain"] * 2,
        "handlers.brain.hybrid_search",
        *["handlers.brain.intake"] * 3,
        *["handlers.brain.repository"] * 5,
        *["handlers.brain.vectors"] * 2,
        "handlers.scopes.import_agent_memory",
        *["handlers.scopes.results"] * 2,
        "kernel.operations.compact",
    ]


@pytest.mark.slow
def test_every_statement_is_used() -> None:
    assert set(STATEMENTS) - {name for tree in modules().values() for name in used(tree)} == set()


def owner_of(module: str) -> str:
    """The first part of the names of the statements that a module uses; those of the console are the kernel's."""
    package, name = module.split(".")[:2]
    return name if package == "handlers" and name != "console" else "kernel"


@pytest.mark.slow
def test_a_dialect_uses_no_statement_of_another() -> None:
    violations = {
        (module, name)
        for module, tree in modules().items()
        for name in used(tree)
        if name.partition(".")[0] != owner_of(module)
    }
    assert violations == set()


def handlers(tool: Tool) -> Iterator[str]:
    yield f"{tool.handler.__module__}.{tool.handler.__qualname__}"
    if tool.hooks.batch is not None:
        yield f"{tool.hooks.batch.__module__}.{tool.hooks.batch.__qualname__}"
    if tool.name == "hook post-compact":  # it writes by the function with which a dialect keeps handoffs
        kept = [dialect.memories.keep_handoff for dialect in app.DIALECTS if dialect.memories.keep_handoff]
        yield from (f"{keep.__module__}.{keep.__qualname__}" for keep in kept)
    if tool.hooks.precheck is not None:
        yield f"{tool.hooks.precheck.check.__module__}.{tool.hooks.precheck.check.__qualname__}"


@pytest.mark.slow
@pytest.mark.parametrize("tool", [tool for tool in TOOLS if tool.mode == "read"], ids=lambda tool: tool.name)
def test_read_tools_reach_only_readonly_statements(tool: Tool, writing: set[str]) -> None:
    deferred = {name for flush in FLUSHES for name in reached(flush)}
    found = {name for start in handlers(tool) for name in reached(start)}
    assert found & writing <= deferred


@pytest.mark.slow
@pytest.mark.parametrize("tool", [tool for tool in TOOLS if tool.mode != "read"], ids=lambda tool: tool.name)
def test_write_tools_reach_a_writing_statement(tool: Tool, writing: set[str]) -> None:
    assert any(reached(start) & writing for start in handlers(tool))


@pytest.mark.slow
@pytest.mark.parametrize("tool", [tool for tool in TOOLS if tool.hooks.precheck], ids=lambda tool: tool.name)
def test_prechecks_reach_a_writing_statement(tool: Tool, writing: set[str]) -> None:
    assert tool.hooks.precheck is not None
    write = tool.hooks.precheck.write
    assert reached(f"{write.__module__}.{write.__qualname__}") & writing


def test_reachability_follows_imported_modules() -> None:
    assert {"paths.memories.drop", "kernel.history.append", "kernel.index.delete_docs"} <= reached(
        "handlers.paths.memories.drop_memory"
    )
    assert "paths.memories.drop" not in reached("handlers.paths.memories.read_memory")


def test_every_table_has_an_owner(migrated: apsw.Connection) -> None:
    names = {name for (name,) in migrated.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    owners = ("kernel", *DIALECTS)
    unowned = {name for name in names - {"sqlite_sequence"} if not any(owns(owner, name) for owner in owners)}
    assert unowned == set()


def test_statements_are_keyed_by_path_and_name() -> None:
    assert statements.load(ROOT / "sql") == STATEMENTS
    assert STATEMENTS["kernel.lexical.match_by_bm25"].file == ROOT / "sql" / "kernel" / "lexical.sql"
