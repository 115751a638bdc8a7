"""The statements of `sql/` as PostgreSQL takes them: by a few rules, or by a text of its own in a folder `postgres`."""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, cast

from kernel.engines.postgres.driver import escape, load_driver
from kernel.store.statements import ROOT, load, load_postgres

_ENGINE = "engine."  # statements of the engine itself
Answered = Callable[[Any, Mapping[str, Any]], Sequence[tuple[Any, ...]]]
_STRING_OR_COMMENT = re.compile(r"('(?:[^']|'')*')|--[^\n]*")
_KEPT = re.compile("\0(\\d+)\0")
_PARAMETER = re.compile(r"(?<![:\w]):([a-z_][a-z_0-9]*)")
_JOIN = re.compile(r"(?<!LEFT )(?<!FULL )\b(?:CROSS |INNER )?JOIN (\w+) AS (\w+)\s+ON\b")
_END = re.compile(r"\(|\)|\b(?:CROSS|LEFT|FULL|INNER|JOIN|WHERE|GROUP|ORDER|LIMIT|UNION|RETURNING)\b")
# Texts that differ between SQLite and PostgreSQL, with the same meaning.
_RULES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), new)
    for pattern, new in (
        (r"\bINDEXED BY \w+", ""),
        (r"\bfold\(([^()]*)\)", r"fold(CAST(\1 AS text))"),
        (r"\bjsonb_each\(", "json_each("),
        (r"CROSS JOIN (json_each\([^()]*\) AS \w+)(?=\s+ON\b)", r"JOIN \1"),
        (r"\bNOT IN \(\s*SELECT value FROM json_each\(([^()]*)\)\s*\)", r"<> ALL (items(\1))"),
        (r"\bIN \(\s*SELECT value FROM json_each\(([^()]*)\)\s*\)", r"= ANY (items(\1))"),
        (r"\bIS NOT (?=:[a-z])", "IS DISTINCT FROM "),
        (r"\bIS (?=:[a-z])", "IS NOT DISTINCT FROM "),
        (r"(:[a-z_0-9]+) (IS (?:NOT )?NULL)", r"CAST(\1 AS text) \2"),
        (r"(?<!\S)(\S+) = (\S+) COLLATE NOCASE", r"lower(\1) = lower(\2)"),
        (r"(?<=\s)\+(?=[a-z])", ""),
        (r"\b9e999\b", "CAST('Infinity' AS double precision)"),
        (r"\bAS INTEGER\)", "AS bigint)"),
        (r"ON CONFLICT \((?=\w)", "ON CONFLICT (tenant, "),
        (r"\bgroup_concat\(", "string_agg("),
        (r"\bchar\((?=\d+\))", "chr("),
        (r"\bjson_group_array\(([^()]*)\)", r"json_texts(json_agg(\1))"),
    )
)


class Statement(str):
    """The text of a statement for PostgreSQL, with numbered parameters.

    `names` are its parameters in their order. If it is `answered`, there is no SQL: the function is called with
    the connection and the parameters, and returns the rows.
    """

    names: tuple[str, ...]
    answered: Answered | None

    def __new__(cls, text: str, names: Sequence[str] = (), answered: Answered | None = None) -> "Statement":
        self = super().__new__(cls, text)
        self.names = tuple(names)
        self.answered = answered
        return self


def values_of(text: Statement, params: Mapping[str, Any]) -> list[Any]:
    return [_escaped(params[name]) for name in text.names]


def _escaped(value: Any) -> Any:
    if isinstance(value, str):
        return escape(value)
    return [_escaped(item) for item in cast("list[Any]", value)] if isinstance(value, list) else value


def translate(text: str) -> Statement:
    """Return a statement with named parameters; each use of a parameter has a number, since its type may differ."""
    names: list[str] = []
    strings: list[str] = []

    def keep(match: re.Match[str]) -> str:
        if match[1] is None:
            return ""
        strings.append(match[1])
        return f"\0{len(strings) - 1}\0"

    def numbered(match: re.Match[str]) -> str:
        names.append(match[1])
        return f"${len(names)}"

    code = _STRING_OR_COMMENT.sub(keep, text.replace("x''", "CAST('' AS bytea)"))
    for pattern, new in _RULES:
        code = pattern.sub(new, code)
    code = _ordered(code)
    code = _PARAMETER.sub(numbered, code)
    return Statement(_KEPT.sub(lambda found: strings[int(found[1])], code), names)


def _ordered(code: str) -> str:
    """Joins as subqueries that cannot be taken apart.

    In SQLite a join is a loop, mostly in the order of the text, inside which an index is used. PostgreSQL would choose
    by its statistics of the tables, which are empty while a store is new.
    """
    while join := _JOIN.search(code):
        end = _end_of_condition(code, join.end())
        condition = code[join.end() : end].rstrip()
        gap = code[join.end() + len(condition) : end]
        table, alias = join[1], join[2]
        query = f"CROSS JOIN LATERAL (SELECT * FROM {table} AS {alias} WHERE{condition} OFFSET 0) AS {alias}"
        code = code[: join.start()] + query + gap + code[end:]
    return code


def _end_of_condition(code: str, start: int) -> int:
    depth = 0
    for match in _END.finditer(code, start):
        if match[0] == "(":
            depth += 1
        elif depth == 0:
            return match.start()
        elif match[0] == ")":
            depth -= 1
    return len(code)


def statements(answered: Mapping[str, Answered], root: Path = ROOT) -> dict[str, str]:
    """Return every statement by name; raises ValueError for an overlay that has no statement to stand for."""
    texts = {name: statement.text for name, statement in load(root).items()}
    own = {name: statement.text for name, statement in load_postgres(root).items()}
    if unknown := [name for name in [*own, *answered] if name not in texts and not name.startswith(_ENGINE)]:
        raise ValueError(f"PostgreSQL has texts for {', '.join(sorted(unknown))}, which sql/ has not")
    by_name: dict[str, str] = {name: translate(text) for name, text in {**texts, **own}.items()}
    return by_name | {name: Statement(name, answered=function) for name, function in answered.items()}


def run(db: Any, name: str, /, **params: Any) -> Any:
    """Run a statement of `sql/postgres/engine` on a connection that is in no transaction of a tenant.

    Returns the cursor with its rows; errors are those of psycopg.
    """
    text = _of_the_engine()[name]
    cursor = load_driver().RawCursor(db)
    cursor.execute(str.__str__(text), values_of(text, params))
    return cursor


@cache
def _of_the_engine() -> Mapping[str, Statement]:
    return {name: translate(statement.text) for name, statement in load_postgres().items() if name.startswith(_ENGINE)}
