"""Every regular expression of the product, with the methods it is used by, found in the modules and in their source.

A pattern of a module is found there, a pattern in a call by its source. A pattern that a function makes at run
time from its input stands in `MADE`; `left_out` names the calls that are in none of the three.
"""

import ast
import importlib
import pkgutil
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import handlers
import kernel
from handlers.console import rendering
from kernel.core import text
from kernel.core.config import MODEL
from kernel.core.lazy_regex import LazyPattern
from kernel.embed.tokenizer import load_encoder
from kernel.search import named_values
from kernel.security.rules import secrets

Pattern = re.Pattern[Any]

ANY_USE = frozenset({"search", "finditer", "fullmatch"})
_USES = {name: name for name in ("search", "match", "fullmatch")} | dict.fromkeys(
    ("sub", "subn", "split", "findall", "finditer"), "finditer"
)
_FLAGS_AT = {"sub": 4, "subn": 4, "split": 3, "compile": 1, "regex": 1}  # the argument; elsewhere the third
_NO_USES = frozenset({"pattern", "flags"})
_DEPTH = 5  # of tables that hold patterns


class Found(NamedTuple):
    """A pattern with the place that names it, and how it is used."""

    name: str
    pattern: Pattern
    uses: frozenset[str]


def _of_the_model() -> Iterator[Pattern]:
    encoder = load_encoder((MODEL / "tokenizer.json").read_bytes(), 4)
    assert encoder is not None
    yield encoder._added_pattern


# Patterns that functions make at run time, by the module and the name of the function.
MADE: Mapping[tuple[str, str], Callable[[], Iterator[Pattern]]] = {
    ("kernel.security.rules.secrets", "_compile"): lambda: (
        secrets._compile(rule.pattern, rule.fold) for rule in secrets.RULES
    ),
    ("handlers.console.rendering", "_beginning_with"): lambda: iter(
        one for query in ("lamp", "a1 aa lamp lamps kitchen") if (one := rendering._beginning_with(query))
    ),
    ("kernel.memories.json_rows", "_is_like_document"): lambda: iter([re.compile(rb'"(?:memories|items)"\s*+:\s*+\[')]),
    ("kernel.memories.json_rows", "_damage"): lambda: iter([re.compile(rb'(\{"id":|\{"name":)')]),
    ("kernel.search.named_values", "_written"): lambda: map(
        named_values._written,
        ("2.3.2", "5550142", "015550142", "4711", "nodefetch", "4f5e6d7c8b9a0f1e2d3c4b5a69788796a5b4c3d2"),
    ),
    ("kernel.core.text", "_many_marks"): lambda: iter([text._many_marks()]),
    ("kernel.search.query", "respelled"): lambda: iter([re.compile(r"\blamp\b", re.IGNORECASE)]),
    ("kernel.embed.tokenizer", "_added_pattern"): _of_the_model,
    ("kernel.engines.sqlite.full_text", "_define"): lambda: iter([re.compile(r'"?doc_fts"?')]),
    ("kernel.core.lazy_regex", "__getattr__"): lambda: iter(()),  # compiles those that are found
}


@cache
def modules() -> tuple[ModuleType, ...]:
    """Every module of the product that does nothing but define when it is imported."""
    infos = [one for of in (kernel, handlers) for one in pkgutil.walk_packages(of.__path__, f"{of.__name__}.")]
    names = [one.name for one in infos if not one.name.endswith(("__main__", "launcher"))]
    return (kernel, handlers, *map(importlib.import_module, names))


@cache
def patterns() -> Mapping[str, Found]:
    """Every pattern by the name of its place, each once."""
    found = [*_held(), *(one.found for one in _calls() if one.found is not None)]
    for (module, function), made in MADE.items():
        found += [Found(f"{module}.{function}[{at}]", one, ANY_USE) for at, one in enumerate(made())]
    unique: dict[tuple[Any, int], Found] = {}
    for one in found:
        key = (one.pattern.pattern, one.pattern.flags)
        before = unique.get(key)
        unique[key] = one if before is None else before._replace(uses=before.uses | one.uses)
    _tree.cache_clear()  # as large as all else that a test process holds
    return {one.name: one for one in unique.values()}


def left_out() -> list[str]:
    """The calls whose pattern is neither held by a module, nor written in the call, nor in `MADE`."""
    unknown = {(one.module, one.function): one.line for one in _calls() if one.found is None and one.function}
    return [f"{module}:{line} {name}" for (module, name), line in unknown.items() if (module, name) not in MADE]


def _held() -> Iterator[Found]:
    uses = _uses_of_names()
    for module in modules():
        for name, value in vars(module).items():
            for at, pattern in _within(value, 0):
                yield Found(
                    f"{module.__name__}.{name}{at}", pattern, ANY_USE if at else uses.get(_place(module, name), ANY_USE)
                )


def _within(value: Any, depth: int) -> Iterator[tuple[str, Pattern]]:
    if isinstance(value, LazyPattern):
        yield "", re.compile(value.pattern, value._flags)
    elif isinstance(value, re.Pattern):
        yield "", value
    elif depth < _DEPTH and isinstance(value, Mapping):
        for key, one in list(value.items()):
            yield from ((f".{key}{at}", pattern) for at, pattern in _within(one, depth + 1))
    elif depth < _DEPTH and isinstance(value, list | tuple | set | frozenset):
        for number, one in enumerate(value):
            yield from ((f"[{number}]{at}", pattern) for at, pattern in _within(one, depth + 1))


class _Call(NamedTuple):
    """A call that makes or uses a pattern; `function` is empty at the level of its module."""

    module: str
    function: str
    line: int
    found: Found | None


@cache
def _calls() -> tuple[_Call, ...]:
    return tuple(call for module in modules() if _may_call(module) for call in _calls_in(module, _tree(module), ""))


def _may_call(module: ModuleType) -> bool:
    """Whether the text of a module has a call that `_of_call` looks at."""
    return any(word in _source(module) for word in ("re.", "regex(", "Meta("))


def _source(module: ModuleType) -> str:
    return Path(str(module.__file__)).read_text(encoding="utf-8")


@cache
def _tree(module: ModuleType) -> ast.Module:
    return ast.parse(_source(module))


def _calls_in(module: ModuleType, node: ast.AST, function: str) -> Iterator[_Call]:
    for child in ast.iter_child_nodes(node):
        inner = child.name if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) else function
        if isinstance(child, ast.Call):
            yield from _of_call(module, child, function)
        yield from _calls_in(module, child, inner)


def _of_call(module: ModuleType, call: ast.Call, function: str) -> Iterator[_Call]:
    method = _method(call.func)
    written = next((one.value for one in call.keywords if one.arg == "pattern"), None)
    if method:
        flags = [one.value for one in call.keywords if one.arg == "flags"] or call.args[_FLAGS_AT.get(method, 2) :][:1]
        uses = frozenset({_USES[method]}) if method in _USES else ANY_USE
    elif isinstance(call.func, ast.Name) and call.func.id == "Meta" and written is not None:
        flags, uses = [], frozenset({"search"})
    else:
        return
    place = f"{module.__name__}:{call.lineno}"
    try:
        pattern = re.compile(*(_value(module, one) for one in (written or call.args[0], *flags)))
    except (NameError, TypeError):
        yield _Call(module.__name__, function, call.lineno, None)
    else:
        # A pattern of a module is found there, with the uses of its name.
        if function or method not in {"compile", "regex"}:
            yield _Call(module.__name__, function, call.lineno, Found(place, pattern, uses))


def _method(called: ast.expr) -> str:
    if isinstance(called, ast.Name):
        return "regex" if called.id == "regex" else ""
    if isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name) and called.value.id == "re":
        return called.attr if called.attr in _USES or called.attr == "compile" else ""
    return ""


def _value(module: ModuleType, written: ast.expr) -> Any:
    return eval(compile(ast.Expression(written), "pattern", "eval"), dict(vars(module)))  # our own source


@cache
def _uses_of_names() -> Mapping[tuple[str, str], frozenset[str]]:
    """How the names that modules give to patterns are used; any use where one is passed on.

    The key is the module and the name, without the module where the name may be imported.
    """
    uses: dict[tuple[str, str], set[str]] = {}
    called: set[int] = set()
    for module in modules():
        for node in ast.walk(_tree(module)):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                called.add(id(node.value))
                if node.attr not in _NO_USES:
                    uses.setdefault(_place(module, node.value.id), set()).add(_USES.get(node.attr, ""))
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and id(node) not in called:
                uses.setdefault(_place(module, node.id), set()).add("")
    return {place: ANY_USE if "" in found else frozenset(found) for place, found in uses.items()}


def _place(module: ModuleType, name: str) -> tuple[str, str]:
    return module.__name__ if name.startswith("_") else "", name
