"""SQL as SQLite has it is translated for PostgreSQL by a few rules."""

import pytest

from kernel.engines.postgres.statements import Statement, statements, translate, values_of


@pytest.mark.parametrize(
    ("text", "translated"),
    [
        ("SELECT a FROM t WHERE b IS :b", "SELECT a FROM t WHERE b IS NOT DISTINCT FROM $1"),
        (
            "SELECT a FROM t WHERE b IN (SELECT value FROM json_each(:ids))",
            "SELECT a FROM t WHERE b = ANY (items($1))",
        ),
        ("SELECT a FROM t INDEXED BY i", "SELECT a FROM t "),
        ("INSERT INTO t (a) VALUES (:a) ON CONFLICT (a) DO NOTHING", None),
        ("SELECT ':no -- comment' -- a comment", "SELECT ':no -- comment' "),
        (
            "SELECT 1 FROM t AS a JOIN u AS b ON b.x = a.x WHERE a.y",
            "SELECT 1 FROM t AS a CROSS JOIN LATERAL (SELECT * FROM u AS b WHERE b.x = a.x OFFSET 0) AS b WHERE a.y",
        ),
    ],
)
def test_a_text_is_translated(text: str, translated: str | None) -> None:
    assert str(translate(text)) == (translated or "INSERT INTO t (a) VALUES ($1) ON CONFLICT (tenant, a) DO NOTHING")


def test_each_use_of_a_parameter_has_a_number() -> None:
    statement = translate("SELECT :a, :b, :a")
    assert (str(statement), statement.names) == ("SELECT $1, $2, $3", ("a", "b", "a"))
    assert values_of(statement, {"a": 1, "b": "x\0y"}) == [1, "x\ue0000y", 1]


@pytest.mark.slow
def test_every_statement_has_a_text_and_an_answer_stands_for_one() -> None:
    texts = statements({"kernel.vectors.score": lambda _db, _params: []})
    answered = texts["kernel.vectors.score"]
    assert isinstance(answered, Statement)
    assert answered.answered is not None


def test_an_answer_without_a_statement_is_refused() -> None:
    with pytest.raises(ValueError, match=r"kernel\.nothing, which sql/ has not"):
        statements({"kernel.nothing": lambda _db, _params: []})
