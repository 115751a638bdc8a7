"""Searches are noted without its secrets, counted over every database, and can be cleaned up."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handlers.brain.querylog import MAX_LOGGED_CHARACTERS, redact
from kernel.server.app import Kernel
from tests.conftest import Clock, everything
from tests.unit.handlers.brain.conftest import CallOk
from tests.unit.handlers.brain.examples import example, shape

NOW = "2026-01-02T03:04:05.678Z"
KEYS = {
    "openai": "sk-" + "proj-abcDEF123456789012345",
    "github": "ghp_" + "0123456789abcdefghijABCDEFGHIJ",
    "aws": "AKIA" + "ABCDEFGHIJKLMNOP",
    "jwt": "eyJhbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl",
}


def entries(kernel: Kernel) -> list[tuple[Any, ...]]:
    """The log, less ids, times taken and sessions."""
    return [(row[1], row[2], row[3], row[4], row[5], row[8]) for row in everything(kernel)["brain_query"]]


@pytest.fixture
def filled(call_ok: CallOk, settled: Callable[[], None], clock: Clock) -> None:
    """Four searches in three databases over three days."""
    call_ok("save_memory", db="core", content="The database is PostgreSQL", category="fact")
    call_ok("save_memory", db="dnd", content="The dragon guards a database", category="fact")
    call_ok("hybrid_search", db="core", query="which database")
    settled()
    clock.move(days=1)
    call_ok("semantic_search", db="dnd", query="which database")
    call_ok("search", db="core", query="nothing like it")
    settled()
    clock.move(days=1)
    call_ok("search", db="core", query="database")
    settled()


def test_search_is_logged_with_its_results(call_ok: CallOk, kernel: Kernel, settled: Any, clock: Clock) -> None:
    call_ok("save_memory", db="core", content="The database is PostgreSQL", category="fact")
    for name in ("hybrid_search", "semantic_search", "search"):
        call_ok(name, db="core", query="which database")
    call_ok("search_all", query="database", dbs=["core", "dnd"])
    settled()

    assert entries(kernel) == [
        ("core", "which database", "hybrid", 1, '["mem_1"]', NOW),
        ("core", "which database", "semantic", 1, '["mem_1"]', NOW),
        ("core", "which database", "fts", 1, '["mem_1"]', NOW),
        ("core,dnd", "database", "fts", 1, '["mem_1"]', NOW),
    ]


@pytest.mark.parametrize(
    ("query", "kept"),
    [
        ("how do I rotate the api key", "how do I rotate the api key"),
        ("password reset flow", "password reset flow"),
        ("what is mem_1m7yrh27p48swxwazx5ps", "what is mem_1m7yrh27p48swxwazx5ps"),
        ("user 123e4567-e89b-12d3-a456-426614174000", "user 123e4567-e89b-12d3-a456-426614174000"),
        ("https://example.org/a/b?c=d", "https://example.org/a/b?c=d"),
        ("password: hunter2 on staging", "password: [redacted] on staging"),
        ('{"password": "open sesame", "x": 1}', '{"password": [redacted], "x": 1}'),
        ("DB_PASSWORD=hunter2 API_TOKEN=abcdef123456", "DB_PASSWORD=[redacted] API_TOKEN=[redacted]"),
        ("my passphrase is swordfish", "my passphrase is [redacted]"),
        ("Authorization: Bearer abcdefghijk", "Authorization: Bearer [redacted]"),
        ("postgres://bob:s3cret@db/x", "postgres://bob:[redacted]@db/x"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY----- of bob", "[redacted] of bob"),
        ("password is: hunter2", "password is: [redacted]"),
        ("the password was = hunter2 once", "the password was = [redacted] once"),
        ("client_secret is = q8Zt3vXk1LmN7pRs2WyB", "client_secret is = [redacted]"),
        ("SECRET_KEY=q8Zt3vXk1LmN7pRs2WyB", "SECRET_KEY=[redacted]"),
        ("secret key: q8Zt3vXk1LmN7pRs2WyB", "secret key: [redacted]"),
        ("private_key: q8Zt3vXk1LmN7pRs2WyB", "private_key: [redacted]"),
        ("DB_PASS=hunter22 passcode: 1234", "DB_PASS=[redacted] passcode: [redacted]"),
        ("pass: hunter22", "pass: [redacted]"),
        ("auth: q8Zt3vXk1LmN7pRs2WyB", "auth: [redacted]"),
        ("token -> q8Zt3vXk1LmN7pRs2WyB", "token -> [redacted]"),
        ("token => q8Zt3vXk1LmN7pRs2WyB", "token => [redacted]"),
        ("token → q8Zt3vXk1LmN7pRs2WyB", "token → [redacted]"),
        ("redis://:pw@host", "redis://:[redacted]@host"),
        ("postgres://u:p@ss@host/x", "postgres://u:[redacted]@host/x"),
        ("dop_v1_" + "0123456789abcdef" * 4, "[redacted]"),
        ("curl -u admin:Swordfish https://x", "curl -u admin:[redacted] https://x"),
        ("curl --user admin:Swordfish", "curl --user admin:[redacted]"),
        ("my password hunter2", "my password [redacted]"),
        ("my password policy", "my password policy"),
        ("bypass: how", "bypass: how"),
        ("the pass is closed", "the pass is closed"),
        ("how does auth work", "how does auth work"),
        ("git push -u origin main", "git push -u origin main"),
        ("who keeps the secret keys", "who keeps the secret keys"),
        *((f"who uses {key}?", "who uses [redacted]?") for key in KEYS.values()),
        ("x" * (MAX_LOGGED_CHARACTERS + 1), "x" * (MAX_LOGGED_CHARACTERS - 1) + "…"),
    ],
)
def test_keys_tokens_and_passwords_are_redacted(query: str, kept: str) -> None:
    assert redact(query) == kept


@pytest.mark.slow
@pytest.mark.parametrize(
    "unit",
    [
        "a-",
        "-",
        "a",
        "A1",
        "eyJabcdefghij-",
        "-eyJ",
        "password-",
        "password ",
        "password: ",
        "password is ",
        'pwd "',
        "my password ",
        "my ",
        "my password a",
        "pass_",
        "pass-",
        "pass: ",
        "secret key ",
        "password -",
        "→",
        "api key",
        "://",
        "://a:",
        "@",
        "://a:b@",
        "-u ",
        "-u a",
        "=",
        "->",
        "-----BEGIN ",
        "-----BEGIN A PRIVATE KEY-----",
        "sk-",
        "bearer ",
        " ",
        "\n",
        "0",
        "ya29.",
    ],
)
def test_redaction_time_is_linear(unit: str) -> None:
    text = unit * (20_000 // len(unit))

    for tail in ("", " ", "!", ":", '"'):
        assert len(redact(f"password is {text}{tail}")) <= MAX_LOGGED_CHARACTERS
        assert len(redact(text + tail)) <= MAX_LOGGED_CHARACTERS


@pytest.mark.slow
@given(st.text(max_size=40), st.sampled_from(sorted(KEYS.values())), st.text(max_size=40))
def test_known_key_format_is_always_redacted(before: str, key: str, after: str) -> None:
    assert key not in redact(f"{before} {key} {after}")


def test_log_contains_no_secret_of_a_query(call_ok: CallOk, kernel: Kernel, settled: Any) -> None:
    for name in ("hybrid_search", "semantic_search", "search"):
        call_ok(name, db="core", query=f"where is {KEYS['github']} used")
    call_ok("search_all", query=f"where is {KEYS['github']} used")
    settled()

    assert {row[1] for row in entries(kernel)} == {"where is [redacted] used"}
    assert KEYS["github"] not in str(everything(kernel))


def test_refused_search_is_not_logged(call: Any, kernel: Kernel, settled: Any) -> None:
    call("search", db="nowhere", query="x")
    settled()

    assert entries(kernel) == []


def test_totals_are_over_every_database_and_groups_are_counted_by_tool(call_ok: CallOk, filled: None) -> None:
    answer = call_ok("get_query_stats")
    times = answer["totals"].pop("avg_time_ms"), [row.pop("avg_time_ms") for row in answer["data"]]

    assert answer == {
        "totals": {
            "total_queries": 4,
            "unique_queries": 3,
            "tools_used": {"hybrid": 1, "semantic": 1, "fts": 2},
            "avg_results": 0.8,
        },
        "grouped_by": "tool",
        "data": [
            {
                "tool": "fts",
                "query_count": 2,
                "avg_results": 0.5,
                "first_query": "2026-01-03T03:04:05.678Z",
                "last_query": "2026-01-04T03:04:05.678Z",
            },
            {"tool": "hybrid", "query_count": 1, "avg_results": 1.0, "first_query": NOW, "last_query": NOW},
            {
                "tool": "semantic",
                "query_count": 1,
                "avg_results": 1.0,
                "first_query": "2026-01-03T03:04:05.678Z",
                "last_query": "2026-01-03T03:04:05.678Z",
            },
        ],
    }
    assert all(isinstance(time, int) for time in (times[0], *times[1]))


def test_the_answer_has_the_shape_the_contract_shows(call_ok: CallOk, filled: None) -> None:
    assert shape(call_ok("get_query_stats")) == shape(example("get_query_stats"))


def test_groups_can_be_texts_or_days(call_ok: CallOk, filled: None) -> None:
    by_query = call_ok("get_query_stats", group_by="query", limit=2)
    by_day = call_ok("get_query_stats", group_by="day")

    assert (by_query["grouped_by"], by_day["grouped_by"]) == ("query", "day")
    assert by_query["data"] == [
        {
            "query_text": "database",
            "tool": "fts",
            "times_searched": 1,
            "avg_results": 1.0,
            "last_searched": "2026-01-04T03:04:05.678Z",
        },
        {
            "query_text": "nothing like it",
            "tool": "fts",
            "times_searched": 1,
            "avg_results": 0.0,
            "last_searched": "2026-01-03T03:04:05.678Z",
        },
    ]
    assert [(row["day"], row["query_count"], row["tools_used"], row["avg_results"]) for row in by_day["data"]] == [
        ("2026-01-04", 1, 1, 1.0),
        ("2026-01-03", 2, 2, 0.5),
        ("2026-01-02", 1, 1, 1.0),
    ]


def test_only_requested_days_are_counted(call_ok: CallOk, filled: None) -> None:
    counted = [call_ok("get_query_stats", days=days)["totals"]["total_queries"] for days in (0, 1, 2)]

    assert counted == [1, 3, 4]


def test_without_a_query_averages_are_null(call_ok: CallOk) -> None:
    assert call_ok("get_query_stats") == {
        "totals": {
            "total_queries": 0,
            "unique_queries": 0,
            "tools_used": {"hybrid": 0, "semantic": 0, "fts": 0},
            "avg_results": None,
            "avg_time_ms": None,
        },
        "grouped_by": "tool",
        "data": [],
    }


def test_cleaning_up_deletes_what_is_strictly_older_in_every_database(
    call_ok: CallOk, kernel: Kernel, clock: Clock, filled: None
) -> None:
    assert call_ok("cleanup_query_log") == {"deleted": 0, "older_than_days": 30}
    assert call_ok("cleanup_query_log", older_than_days=1) == {"deleted": 1, "older_than_days": 1}
    assert [row[1] for row in entries(kernel)] == ["which database", "nothing like it", "database"]

    clock.move(seconds=1)

    assert call_ok("cleanup_query_log", older_than_days=0) == {"deleted": 3, "older_than_days": 0}
    assert entries(kernel) == []


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("get_query_stats", {"days": -1}, "expected `integer` >= 0 - at `days`"),
        ("get_query_stats", {"days": 10**30}, "`days`"),
        ("get_query_stats", {"days": "7"}, "expected `integer`, got `string` - at `days`"),
        (
            "get_query_stats",
            {"group_by": "month"},
            "invalid enum value 'month', choose from day, query, tool - at `group_by`",
        ),
        ("get_query_stats", {"limit": 0}, "expected `integer` >= 1 - at `limit`"),
        ("get_query_stats", {"db": "core"}, "contains unknown field `db`"),
        ("cleanup_query_log", {"older_than_days": 36_501}, "expected `integer` <= 36500 - at `older_than_days`"),
        ("cleanup_query_log", {"older_than_days": []}, "expected `integer`, got `array` - at `older_than_days`"),
    ],
)
def test_bad_arguments_are_refused_by_name(
    refused: Callable[..., tuple[str | None, str]], filled: None, name: str, arguments: dict[str, Any], message: str
) -> None:
    code, text = refused(name, **arguments)

    assert code == "invalid"
    assert text.startswith("Error: Invalid arguments: ")
    assert message in text
