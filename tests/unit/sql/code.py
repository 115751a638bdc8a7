"""Static analysis of the code: the statement names it uses, and those that a handler can reach."""

import ast
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from kernel.store import statements

ROOT = Path(__file__).resolve().parents[3]
STATEMENTS = statements.load()
METHODS = {"one", "all", "each", "run"}
Function = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def names() -> tuple[str, ...]:
    """The dotted names of `modules`, which are known without reading any."""
    return tuple(dotted(file) for file in _files())


def _files() -> list[Path]:
    return sorted(file for top in ("kernel", "handlers") for file in (ROOT / top).rglob("*.py"))


@cache
def modules() -> Mapping[str, ast.Module]:
    """Every module of kernel/ and handlers/ by its dotted name."""
    return {dotted(file): ast.parse(file.read_text(encoding="utf-8")) for file in _files()}


@cache
def nodes(module: str) -> tuple[ast.AST, ...]:
    """Everything in a module, in the order of `ast.walk`."""
    return tuple(ast.walk(modules()[module]))


def dotted(file: Path) -> str:
    """`handlers/brain/links.py` as `handlers.brain.links`."""
    return ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def used(tree: ast.AST) -> set[str]:
    """Every statement name that is a literal in the code."""
    texts = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    return texts & STATEMENTS.keys()


def asked(tree: ast.AST) -> Iterable[ast.expr]:
    """The query of every `tx.one(...)`, `tx.all(...)`, `tx.each(...)` and `tx.run(...)`."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in METHODS
            and isinstance(node.func.value, ast.Name)
            and node.func.value.id == "tx"
        ):
            yield node.args[0]


@cache
def functions(module: str) -> Mapping[str, ast.AST]:
    """The top-level definitions of a module by name; for an assigned name, its value."""
    found: dict[str, ast.AST] = {}
    for node in modules()[module].body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found[node.name] = node
        elif isinstance(node, ast.Assign):
            found.update({target.id: node.value for target in node.targets if isinstance(target, ast.Name)})
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
            found[node.target.id] = node.value
    return found


@cache
def imported(module: str) -> Mapping[str, str]:
    """The imports of a module: local name to dotted name."""
    found: dict[str, str] = {}
    for node in nodes(module):
        if isinstance(node, ast.ImportFrom) and node.module:
            found.update({name.asname or name.name: f"{node.module}.{name.name}" for name in node.names})
        elif isinstance(node, ast.Import):
            found.update({name.asname or name.name: name.name for name in node.names})
    return found


def reached(start: str) -> set[str]:
    """The statements a function can reach, through every function it names."""
    seen: set[str] = set()
    waiting = [start]
    found: set[str] = set()
    while waiting:
        here = waiting.pop()
        if here in seen:
            continue
        seen.add(here)
        module, _, name = here.rpartition(".")
        if module in modules() and name in functions(module):
            statements_here, names_here = _read(module, name)
            found |= statements_here
            waiting += names_here
        elif module in modules() and name in imported(module):
            waiting.append(imported(module)[name])
    return found


@cache
def _read(module: str, name: str) -> tuple[set[str], list[str]]:
    """The statement names and the dotted names in one definition."""
    body = functions(module)[name]
    return used(body), mentioned(module, body)


def mentioned(module: str, body: ast.AST) -> list[str]:
    """The dotted names that a piece of code of `module` mentions."""
    known = imported(module)
    found: list[str] = []
    for node in ast.walk(body):
        if isinstance(node, ast.Name):
            found.append(known.get(node.id, f"{module}.{node.id}"))
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            found.append(f"{known.get(node.value.id, node.value.id)}.{node.attr}")
    return found
