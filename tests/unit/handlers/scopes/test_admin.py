"""Health counts rows; a reset clears this dialect alone, atomically, and keeps a backup."""

import asyncio
import json
from typing import Any

import httpx
import pytest

from handlers import scopes
from kernel.core.config import Config
from kernel.core.limits import Limits
from kernel.engines.sqlite.connection import Connection
from kernel.http import rest
from kernel.operations import consistency
from kernel.search import index
from kernel.server.app import Kernel, open_kernel
from kernel.store import history, statements
from tests.conftest import Call, Clock, everything
from tests.contracts.seed_texts import contracts
from tests.http.mcp_fixture import unlocked
from tests.postgres import stores
from tests.support.handlers_scopes_export import add
from tests.unit.handlers.scopes.conftest import Do, ScopeIds, Store, exported, refused, result_of

MIGRATIONS = sorted(file.stem for file in (statements.ROOT / "schema").glob("*_scopes*.sql"))
ENGINE = "PostgreSQL" if stores.ADDRESS else "SQLite"
NOW = "2026-01-02T03:04:05.678Z"


def tables(call: Call) -> dict[str, int]:
    """The counts of health."""
    return result_of(call("memory_health"))["tables"]


def test_health_returns_the_keys_of_the_contract(call: Call) -> None:
    (contract,) = (tool for tool in contracts()["scopes"] if tool.name == "memory_health")

    answer = result_of(call("memory_health"))

    assert answer == {
        "serverVersion": "0.3.0",
        "status": "healthy",
        "database": {"type": ENGINE, "inMemory": False, "walEnabled": True},
        "cache": {"enabled": False, "size": 0, "hits": 0, "misses": 0, "ttl": 0},
        "tables": {
            "organizations": 0,
            "projects": 0,
            "sessions": 0,
            "tools": 0,
            "guidelines": 0,
            "knowledge": 0,
            "tags": 26,
            "fileLocks": 0,
            "conflicts": 0,
        },
    }
    assert set(contract.returns) <= set(answer)


def test_health_counts_active_rows(call: Call, do: Do, scope_ids: ScopeIds, clock: Clock) -> None:
    do("memory_tool", "deactivate", id=add(do, "tool", "gone"))
    rule = add(do, "guideline", "g")
    for kind in ("tool", "guideline", "knowledge"):
        add(do, kind, "x")
    do("memory_guideline", "update", id=rule, content="at once")
    do("memory_tag", "create", name="mine")
    for path, seconds in (("/a", 60), ("/b", 600), ("/c", 0)):
        do("memory_file_lock", "checkout", file_path=path, agent_id="a", expires_in=seconds)
    clock.move(minutes=5)

    assert tables(call) == {
        "organizations": 1,
        "projects": 1,
        "sessions": 1,
        "tools": 1,
        "guidelines": 2,
        "knowledge": 1,
        "tags": 27,
        "fileLocks": 2,
        "conflicts": 1,
    }
    do("memory_conflict", "resolve", id=do("memory_conflict", "list")["conflicts"][0]["id"], resolution="fine")
    assert tables(call)["conflicts"] == 0


NO_PARAMETERS = "memory_health has no such parameter for this action. Suggestion: memory_health takes no parameters"


def test_health_takes_no_arguments(unchanged: Call) -> None:
    assert refused(unchanged("memory_health", verbose=True)) == (
        "invalid",
        "E1000",
        f"Validation error: verbose - {NO_PARAMETERS}",
        {"field": "verbose", "suggestion": "memory_health takes no parameters"},
    )


@pytest.mark.parametrize("action", ["status", "", None, 7])
def test_health_refuses_an_action_by_call_and_over_http(
    kernel: Kernel, runner: asyncio.Runner, unchanged: Call, action: Any
) -> None:
    app = rest.ToolRoutes(kernel.dispatch, Limits(), unlocked(kernel.dispatch))

    async def post() -> httpx.Response:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
            return await client.post("/tools/memory_health", json={"action": action})

    reply = unchanged("memory_health", action=action)
    wire = runner.run(post())

    context = {"field": "action", "suggestion": "memory_health takes no parameters"}
    assert refused(reply) == ("invalid", "E1000", f"Validation error: action - {NO_PARAMETERS}", context)
    assert (wire.status_code, wire.content) == (400, reply.body)


@pytest.mark.parametrize("given", [{}, {"force": True, "verbose": True}, {"force": None, "verbose": None}])
def test_init_changes_nothing(unchanged: Call, given: dict[str, Any]) -> None:
    assert result_of(unchanged("memory_init", action="init", **given)) == {
        "success": True,
        "initialized": True,
        "alreadyInitialized": True,
        "migrationsApplied": [],
        "migrationCount": 0,
        "totalMigrations": len(MIGRATIONS),
        "pendingMigrations": [],
        "message": "Database already initialized, all migrations applied",
    }


def test_status_lists_the_migrations_of_the_dialect(unchanged: Call) -> None:
    assert result_of(unchanged("memory_init", action="status")) == {
        "initialized": True,
        "status": "ready",
        "totalMigrations": len(MIGRATIONS),
        "appliedMigrations": MIGRATIONS,
        "appliedCount": len(MIGRATIONS),
        "pendingMigrations": [],
        "pendingCount": 0,
    }


@pytest.mark.parametrize(
    ("given", "code", "message"),
    [
        ({}, "E5001", "Unknown action for memory_init: undefined"),
        ({"action": "drop"}, "E5001", "Unknown action for memory_init: drop"),
        ({"action": "reset"}, "E1000", "confirm is required"),
        ({"action": "reset", "confirm": None}, "E1000", "confirm is required"),
        ({"action": "reset", "confirm": "true"}, "E1000", "Validation error: confirm - expected boolean, got string"),
        ({"action": "reset", "confirm": 1}, "E1000", "Validation error: confirm - expected boolean, got integer"),
        ({"action": "init", "force": "x"}, "E1000", "Validation error: force - expected boolean, got string"),
        ({"action": "init", "verbose": 1}, "E1000", "Validation error: verbose - expected boolean, got integer"),
        ({"action": "status", "confirm": True}, "E1000", "Validation error: confirm - memory_init has no such paramet"),
        ({"action": "reset", "confirm": True, "path": "../x"}, "E1000", "Validation error: path - memory_init has no"),
    ],
    ids=str,
)
def test_bad_arguments_name_their_field(unchanged: Call, given: dict[str, Any], code: str, message: str) -> None:
    found = refused(unchanged("memory_init", **given))

    assert found[:2] == ("invalid", code)
    assert found[2].startswith(message)
    assert found[3]["field"] in {"action", *given, "confirm"}


def test_an_unconfirmed_reset_changes_nothing(do: Do, unchanged: Call, kernel: Kernel) -> None:
    add(do, "tool", "t")

    assert result_of(unchanged("memory_init", action="reset", confirm=False)) == {
        "success": False,
        "error": "Reset requires confirmation. Set confirm=true to proceed. WARNING: This will delete all data!",
    }
    assert [file.name for file in kernel.config.data.glob("*reset*")] == []


def fill(call: Call, do: Do, scope_ids: ScopeIds) -> None:
    """Rows in every table of the dialect, and some of another dialect."""
    call("add_memory", path="kept", content="marmalade of another dialect")
    entry = add(do, "tool", "t", ("session", scope_ids.session), description="marmalade")
    do("memory_tool", "update", id=entry, description="marmalade jar")
    do("memory_tag", "attach", entryType="tool", entryId=entry, tagName="mine")
    do("memory_tag", "detach", entryType="tool", entryId=entry, tagName="mine")
    do("memory_tag", "attach", entryType="tool", entryId=entry, tagName="mine")
    do(
        "memory_relation",
        "create",
        sourceType="tool",
        sourceId=entry,
        targetType="project",
        targetId=scope_ids.project,
        relationType="applies_to",
    )
    do("memory_file_lock", "checkout", file_path="/a", agent_id="a")
    rule = add(do, "guideline", "g", ("global", None), priority=10)
    do("memory_guideline", "update", id=rule, priority=20)


def test_reset_clears_this_dialect_only(
    call: Call, do: Do, kernel: Kernel, second_store: Store, scope_ids: ScopeIds, clock: Clock
) -> None:
    fill(call, do, scope_ids)
    filled = everything(kernel)
    empty = [name for name, rows in filled.items() if name.startswith("scopes_") and not rows]
    assert empty == []

    answer = do("memory_init", "reset", confirm=True, verbose=True)

    assert answer == {
        "success": True,
        "message": "Database reset successfully",
        "backup": "quipu-before-reset-2026-01-02T030405678Z.db",
        "migrationsApplied": MIGRATIONS,
        "migrationCount": len(MIGRATIONS),
    }
    after, fresh = everything(kernel), everything(second_store.kernel)
    seeded = [(*row[:-1], NOW) for row in fresh["scopes_tag"]]
    assert len(seeded) == 26
    for name in (name for name in after if name.startswith("scopes_")):
        assert after[name] == (seeded if name == "scopes_tag" else fresh[name]), name
    for name in ("paths_memory", "setting", "migration", "doc_model"):
        assert after[name] == filled[name]
    assert {row[1] for row in after["history"]} == {row[1] for row in after["doc"]} == {"paths"}
    found = kernel.store.read_sync(lambda tx: index.search(tx, "marmalade"))
    assert [(hit.space, hit.id) for hit in found] == [("paths", "kept")]
    assert kernel.store.read_sync(lambda tx: history.read(tx, "scopes:tools", "tool_9")) == []
    assert consistency.check(kernel.config.file, kernel.store.context, [scopes.DIALECT]) == []


def test_fencing_numbers_continue_after_a_reset(do: Do) -> None:
    lock = {"file_path": "/a", "agent_id": "a"}
    before = do("memory_file_lock", "checkout", **lock)["lock"]["fencingToken"]
    do("memory_init", "reset", confirm=True)

    assert do("memory_file_lock", "checkout", **lock)["lock"]["fencingToken"] > before


def test_the_backup_holds_the_store_before_the_reset(
    call: Call, do: Do, kernel: Kernel, scope_ids: ScopeIds, tmp_path: Any, caller: Any
) -> None:
    fill(call, do, scope_ids)
    before = exported(do)

    name = do("memory_init", "reset", confirm=True)["backup"]
    again = do("memory_init", "reset", confirm=True)["backup"]

    assert exported(do)["scopes"] == {"organizations": [], "projects": [], "sessions": []}
    assert name != again
    restored = tmp_path / "restored"
    restored.mkdir()
    (kernel.config.data / name).rename(restored / "quipu.db")
    other = open_kernel(Config(data=restored))
    there = caller(other.dispatch)
    assert exported(lambda tool, action, **given: result_of(there(tool, action=action, **given))) == before
    assert result_of(there("memory_health"))["tables"]["fileLocks"] == 1
    other.store.close()


def test_a_reset_that_fails_halfway_changes_nothing(call: Call, do: Do, kernel: Kernel, scope_ids: ScopeIds) -> None:
    fill(call, do, scope_ids)
    db = Connection(kernel.config.file, kernel.store.context, readonly=False)
    last = db.values("SELECT max(created_at) FROM scopes_tag")[0][0]
    db.script(f"CREATE UNIQUE INDEX scopes_last ON scopes_tag (length(name) > 0) WHERE created_at > '{last}'")
    db.close()
    before = everything(kernel)

    reply = call("memory_init", action="reset", confirm=True)

    assert (reply.fault, json.loads(reply.body)["code"]) == ("internal", "E5001")
    assert everything(kernel) == before
    found = kernel.store.read_sync(lambda tx: index.search(tx, "marmalade jar"))
    assert max(found, key=lambda hit: hit.text_rank or 0.0).space == "scopes:tools"
