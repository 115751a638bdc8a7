"""Small mistakes made in a module on purpose, one at a time: a list of them, and the module with a mistake in it."""

import ast
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

_COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_COUNTED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.LShift: ast.RShift,
}
_FEW = 16
_PLUGINS = ("-p", "tests.reliability.mutation.mutation_plugin", "-p", "no:cacheprovider")
# Runs the tests that are named after it; the variable MUTANT names the module and the mistake.
COMMAND = (sys.executable, "-m", "pytest", *_PLUGINS, "-x", "-q")


class Mutant(NamedTuple):
    """One mistake: its number within the module, its line, and its effect."""

    number: int
    line: int
    what: str


class _Maker(ast.NodeTransformer):
    """Counts the places where a mistake can be made, and makes it at the one of number `chosen`."""

    def __init__(self, chosen: int | None) -> None:
        self.found: list[Mutant] = []
        self._chosen = chosen

    def _here(self, node: Any, what: str) -> bool:
        number = len(self.found)
        self.found.append(Mutant(number, node.lineno, what))
        return number == self._chosen

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:  # types do not run
        if node.value is not None:
            node.value = self.visit(node.value)
        return node

    def visit_arguments(self, node: ast.arguments) -> Any:
        node.defaults = [self.visit(one) for one in node.defaults]
        node.kw_defaults = [one and self.visit(one) for one in node.kw_defaults]
        return node

    def visit_FunctionDef(self, node: Any) -> Any:
        node.args = self.visit(node.args)
        node.body = [done for one in node.body for done in [self.visit(one)]]
        return node

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Expr(self, node: ast.Expr) -> Any:
        if isinstance(node.value, ast.Constant):
            return node  # a docstring
        whole = ast.unparse(node.value)
        if isinstance(node.value, ast.Call) and "_log." not in whole and self._here(node, f"without {whole[:60]}"):
            return ast.copy_location(ast.Pass(), node)
        return self.generic_visit(node)

    def visit_Return(self, node: ast.Return) -> Any:
        whole = ast.unparse(node.value)[:60] if node.value else "None"
        if whole != "None" and self._here(node, f"None for {whole}"):
            node.value = ast.copy_location(ast.Constant(None), node)
            return node
        return self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> Any:
        whole = ast.unparse(node)[:60]
        for at, operator in enumerate(node.ops):
            other = _COMPARED[type(operator)]
            if self._here(node, f"{other.__name__} in {whole}"):
                node.ops[at] = other()
        return self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        if self._here(node, f"and for or, or for and, in {ast.unparse(node)[:60]}"):
            node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        return self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        if isinstance(node.op, ast.Not) and self._here(node, f"without not in {ast.unparse(node)[:60]}"):
            return self.visit(node.operand)
        return self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        other = _COUNTED.get(type(node.op))
        if other and self._here(node, f"{other.__name__} in {ast.unparse(node)[:60]}"):
            node.op = other()
        return self.generic_visit(node)

    def visit_If(self, node: ast.If) -> Any:
        if self._here(node, f"not {ast.unparse(node.test)[:60]}"):
            node.test = ast.copy_location(ast.UnaryOp(ast.Not(), node.test), node.test)
        return self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        if self._here(node, f"the other of {ast.unparse(node)[:60]}"):
            node.body, node.orelse = node.orelse, node.body
        return self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> Any:
        value = node.value
        if isinstance(value, bool):
            if self._here(node, f"{not value} for {value}"):
                return ast.copy_location(ast.Constant(not value), node)
        elif isinstance(value, int | float):
            other = value + 1 if value < _FEW else value * 2
            if self._here(node, f"{other} for {value}"):
                return ast.copy_location(ast.Constant(other), node)
        return node


def mutants(source: str) -> list[Mutant]:
    """Every mistake that can be made in a module; texts, types and log messages stay as they are."""
    maker = _Maker(None)
    maker.visit(ast.parse(source))
    return maker.found


def mutated(source: str, number: int) -> ast.Module:
    """The module with one mistake in it."""
    return ast.fix_missing_locations(_Maker(number).visit(ast.parse(source)))


def lines(found: list[Mutant]) -> Iterator[str]:
    """Each as `line: what`."""
    return (f"{one.line}: {one.what}" for one in found)
