"""The house rules on imports, sizes and words, checked in the code itself."""

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from kernel.calls.dialect import Dialect
from kernel.server import app
from tests.unit import layers
from tests.unit.sql.code import ROOT, STATEMENTS, Function, dotted, modules, names, nodes

pytestmark = [pytest.mark.slow, pytest.mark.rules]

MOST_FIELDS = 15
MOST_UNTESTED = 40  # modules that only the tests of other folders reach, such as those of the server's processes
_WHOLE = {"test_architecture", "test_kernel_proper"}  # tests of the whole tree
KERNEL = [name for name in names() if name.startswith("kernel")]
SPEAKING_SQL = {
    "kernel.engines.postgres.connection",
    "kernel.engines.postgres.tenants.moving",
    "kernel.engines.postgres.driver",
    "kernel.engines.postgres.schema",
    "kernel.engines.postgres.session",
    "kernel.engines.postgres.database",
    "kernel.engines.sqlite.changesets",
    "kernel.engines.sqlite.connection",
    "kernel.engines.sqlite.errors",
    "kernel.engines.sqlite.limited",
    "kernel.engines.sqlite.full_text",
    "kernel.engines.sqlite.table_rows",
    "kernel.engines.migrations",
    "kernel.engines.foreign_file",
}
HANDLERS = [name for name in names() if name.startswith("handlers") and not name.startswith("handlers.console")]


def imports(name: str) -> Iterator[str]:
    """Everything a module imports, wherever in it, as dotted names."""
    for node in nodes(name):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def importers(*packages: str) -> set[str]:
    """The modules that import one of these packages outside a block for type checkers."""
    return {name for name in names() if not set(packages).isdisjoint(imported_packages(name))}


def lazy_users(module: str) -> set[str]:
    return {name for name, tree in modules().items() if module in imports_at_run_time(tree)}


@cache
def imported_packages(name: str) -> frozenset[str]:
    """The packages a module imports at run time."""
    return frozenset(found.partition(".")[0] for found in imports_at_run_time(modules()[name]))


def imports_at_run_time(tree: ast.AST) -> Iterator[str]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            yield from imports_at_run_time(ast.Module(node.orelse, []))
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
        else:
            yield from imports_at_run_time(node)


def functions(tree: ast.AST) -> Iterator[Function]:
    return (node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)))


def path(name: str) -> Path:
    stem = ROOT.joinpath(*name.split("."))
    return stem / "__init__.py" if stem.is_dir() else stem.with_suffix(".py")


def test_only_the_sqlite_package_imports_the_driver() -> None:
    assert {name.rpartition(".")[0] for name in importers("apsw", "sqlite3")} == {"kernel.engines.sqlite"}


def test_only_vector_modules_import_numpy() -> None:
    assert importers("numpy") | lazy_users("kernel.core.lazy_numpy") == {
        "kernel.core.lazy_numpy",
        "kernel.embed.model",
        "kernel.search.ann",
        "kernel.search.bm25",
        "kernel.search.fusion",
        "kernel.search.relations",
        "kernel.search.rerank",
        "kernel.memories.as_of",
        "kernel.search.vectors",
        "kernel.engines.postgres.full_text",
        "kernel.engines.sqlite.database_file",
    }
    assert importers("simsimd") == {"kernel.search.ann", "kernel.engines.sqlite.vector_functions"}
    assert importers("tokenizers") == {"kernel.embed.tokenizer"}


def test_server_imports_neither_mcp_nor_pydantic() -> None:
    assert importers("mcp", "pydantic") == set()


def test_tokens_are_checked_in_one_place() -> None:
    assert importers("jwt") == {"kernel.security.oauth"}


def test_import_contracts_hold() -> None:
    """The contracts of pyproject.toml: layers, no cycles, no dialect in the kernel, no dialect in another."""
    linter = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([linter, "--no-logo"], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout


def test_readme_shows_the_layers_of_the_contract() -> None:
    page = layers.PAGE.read_text(encoding="utf-8")
    assert layers.table() in page
    assert layers.written(page) == page


def test_the_kernel_is_packages_and_its_entry() -> None:
    top = {file.name for file in (ROOT / "kernel").glob("*.py")}
    assert top == {"__init__.py", "__main__.py"}


def test_one_place_catches_everything() -> None:
    everything = {None, "Exception", "BaseException"}
    places = [
        f"{name}:{node.lineno}"
        for name in names()
        for node in nodes(name)
        if isinstance(node, ast.ExceptHandler) and caught(node) & everything
    ]
    assert [place.partition(":")[0] for place in places] == ["kernel.calls.dispatch"], places


def caught(node: ast.ExceptHandler) -> set[str | None]:
    kinds = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
    return {None if kind is None else ast.unparse(kind) for kind in kinds}


def test_a_handler_module_holds_plain_functions_and_data() -> None:
    """No coroutine, no global statement, no class with a method of its own, no decorator."""
    offences = [
        f"{name}:{node.lineno} {type(node).__name__}"
        for name in HANDLERS
        for node in nodes(name)
        if isinstance(node, (ast.AsyncFunctionDef, ast.Await, ast.AsyncFor, ast.AsyncWith, ast.Global, ast.Nonlocal))
        or (isinstance(node, ast.ClassDef) and any(functions(node)))
        or (isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.decorator_list)
    ]
    assert offences == []


def test_no_sql_stands_in_the_code() -> None:
    """Pragmas, the ledger and foreign tables are read where the engine, the migrations and the imports are."""
    verbs = ("SELECT ", "INSERT ", "UPDATE ", "DELETE ", "CREATE ", "DROP ", "ALTER ", "PRAGMA ", "WITH ")
    offences = [
        f"{name}:{node.lineno} {node.value[:40]!r}"
        for name in names()
        if name not in SPEAKING_SQL
        for node in nodes(name)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.lstrip().startswith(verbs)
    ]
    assert offences == []


@pytest.mark.parametrize("name", [name for name in names() if not name.endswith("__init__")])
def test_a_module_says_in_a_sentence_what_it_is(name: str) -> None:
    words = ast.get_docstring(modules()[name])
    assert words, "no docstring"
    first = words.split("\n\n")[0]
    assert first.endswith("."), first


def test_tools_have_names_of_their_own_and_words_for_the_agent() -> None:
    tools = [tool for dialect in app.DIALECTS for tool in dialect.tools]
    assert len({tool.name for tool in tools}) == len(tools)
    assert [tool.name for tool in tools if not tool.description.endswith(".")] == []


def test_a_feature_of_one_dialect_is_no_field_of_all() -> None:
    assert len(Dialect._fields) <= MOST_FIELDS


def test_one_module_begins_responses() -> None:
    """The fast path writes its own bytes; everything else goes through the edge."""
    beginning = {
        name
        for name in names()
        for node in nodes(name)
        if isinstance(node, ast.Constant) and node.value == "http.response.start"
    }
    assert beginning == {"kernel.http.edge"}


def test_the_kernel_names_no_table_statement_or_setting_of_a_dialect() -> None:
    """`sql/postgres/schema` is left out: released migrations never change."""
    schema = "".join(file.read_text(encoding="utf-8") for file in (ROOT / "sql" / "schema").glob("*.sql"))
    prefixes = "|".join(dialect.name for dialect in app.DIALECTS)
    tables = sorted(set(re.findall(rf"CREATE TABLE ((?:{prefixes})_\w+)", schema)))
    assert len(tables) > 30
    own = [prefix for prefix in app.SETTING_PREFIXES if prefix != "QUIPU_"]
    facts = re.compile(
        rf"\b(?:{'|'.join(tables)})\b|['\"](?:{prefixes})_['\"]|['\"](?:{prefixes})\.[a-z_.]+['\"]|{'|'.join(own)}"
    )
    overlays = [file for file in (ROOT / "sql" / "postgres").rglob("*.sql") if "schema" not in file.parts]
    files = [*(ROOT / "kernel").rglob("*.py"), *(ROOT / "sql" / "kernel").rglob("*.sql"), *overlays]
    lines = ((file, line) for file in files for line in file.read_text(encoding="utf-8").splitlines())
    assert [f"{file.relative_to(ROOT)}: {line.strip()}" for file, line in lines if facts.search(line)] == []


def test_nothing_is_left_for_later() -> None:
    marks = ("TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK")
    folders = ("kernel", "handlers", "sql", "tests", "loadtests")
    found = [
        f"{file.relative_to(ROOT)}: {mark}"
        for folder in folders
        for file in sorted((ROOT / folder).rglob("*"))
        if file.suffix in {".py", ".sql", ".md"} and "node_modules" not in file.parts and file.parent.name != "seeds"
        for mark in marks
        if mark in file.read_text(encoding="utf-8")
    ]
    assert found == []


SERVING = """
import sys
import kernel.__main__, kernel.server.app, kernel.http.rest, kernel.mcp.server, kernel.http.mcp
import kernel.server.server, kernel.server.asgi
# starlette.types holds the types of ASGI and imports nothing.
names = sys.modules.keys() - {"starlette", "starlette.types"}
print(*sorted({name.partition(".")[0] for name in names}))
"""
FIRST_ANSWER = """
import asyncio, sys
from pathlib import Path
import kernel.cli.main
from kernel.server import app, asgi
from kernel.core.config import Config

running = app.open_kernel(Config(data=Path(sys.argv[1])))
sent = []

async def receive():
    return {"type": "http.request", "body": b""}

async def send(message):
    sent.append(message)

scope = {"type": "http", "method": "GET", "path": "/healthz", "raw_path": b"/healthz", "query_string": b"",
         "headers": [(b"host", b"127.0.0.1")], "http_version": "1.1", "scheme": "http", "root_path": "",
         "server": ("127.0.0.1", 80), "client": ("127.0.0.1", 1)}
asyncio.run(asgi.Application(running)(scope, receive, send))
assert sent[0]["status"] == 200, sent
print(*sorted({name.partition(".")[0] for name in sys.modules}))
running.store.close()
"""


UNNEEDED = frozenset({"mcp", "pydantic", "sqlite3", "numpy", "simsimd", "tokenizers", "sqlite_vec", "model2vec", "jwt"})


@pytest.mark.parametrize(
    ("program", "unneeded"),
    [(SERVING, UNNEEDED | {"starlette", "anyio"}), (FIRST_ANSWER, UNNEEDED)],
    ids=["imports", "first answer"],
)
def test_a_server_starts_without_what_it_does_not_need_yet(
    program: str, unneeded: frozenset[str], tmp_path: Path
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    loaded = set(done.stdout.split())
    assert "apsw" in loaded
    assert loaded & unneeded == set()


def test_the_readme_has_a_line_for_every_package_the_server_needs() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    packages = [entry.partition(">")[0].partition(";")[0].strip() for entry in project["dependencies"]]
    rows = [line for line in (ROOT / "README.md").read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    missing = [package for package in packages if not any(package in row.split("|")[1] for row in rows)]
    assert missing == []


def test_no_test_imports_a_test() -> None:
    """Code that several tests share is in tests/support, or in a module beside them without tests of its own."""
    importing = [
        f"{file.relative_to(ROOT)}: {module}"
        for file in sorted((ROOT / "tests").rglob("*.py"))
        if "node_modules" not in file.parts
        for module in imports_at_run_time(ast.parse(file.read_text(encoding="utf-8")))
        if module.startswith("tests.") and module.rpartition(".")[2].startswith("test_")
    ]
    assert importing == []


def test_unit_tests_mirror_the_packages() -> None:
    """`tests/unit/store/test_queue.py` tests kernel/store/queue.py, `test_queue_limits.py` a part of it."""
    misplaced = [
        str(file.relative_to(ROOT))
        for file in sorted((ROOT / "tests" / "unit").rglob("test_*.py"))
        if file.parent.name not in {"sql", "loadtests"} and file.stem not in _WHOLE and not modules_of(file)
    ]
    assert misplaced == []


def modules_of(file: Path) -> set[str]:
    """The modules whose name the name of a test file begins with."""
    path = dotted(file).removeprefix("tests.unit.").replace("test_", "")
    name = path if path.startswith("handlers.") else f"kernel.{path}"
    return {module for module in names() if name == module or name.startswith(f"{module}_")}


def test_few_modules_of_the_kernel_have_no_unit_test_of_their_name() -> None:
    """`tests/unit/store/test_queue_limits.py` is a test of the module with the longest name that it begins with."""
    tests = (file for file in (ROOT / "tests" / "unit").rglob("test_*.py") if file.stem not in _WHOLE)
    tested = {max(modules_of(file), key=len, default="") for file in tests}
    packages = {name for name in KERNEL if path(name).name == "__init__.py"}
    untested = sorted({*KERNEL} - tested - packages - {"kernel.__main__"})
    assert len(untested) <= MOST_UNTESTED, untested


def test_statements_are_known_to_this_test() -> None:
    assert len(STATEMENTS) > 40
    assert {"kernel.engines.sqlite.connection", "handlers.paths"} <= set(names())
