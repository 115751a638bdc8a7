"""A scope inherits from its project, its organization and global, nearest first."""

import pytest

from handlers.scopes.inheritance import required_scope_id, scope_chain, scope_key
from kernel.app import Kernel
from kernel.errors import Fault
from tests.conftest import Call
from tests.unit.handlers.scopes.conftest import Do, ScopeIds, refused


def test_a_chain_leads_from_the_session_to_global(kernel: Kernel, scope_ids: ScopeIds) -> None:
    session, project, org = f"session:{scope_ids.session}", f"project:{scope_ids.project}", f"org:{scope_ids.org}"

    def scopes(scope_type: str, scope_id: str | None, *, inherit: bool = True) -> list[str]:
        return kernel.store.read_sync(lambda tx: scope_chain(tx, scope_type, scope_id, inherit=inherit))

    assert scopes("session", scope_ids.session) == [session, project, org, "global"]
    assert scopes("project", scope_ids.project) == [project, org, "global"]
    assert scopes("org", scope_ids.org) == [org, "global"]
    assert scopes("global", None) == scopes("global", "whatever") == ["global"]
    assert scopes("session", scope_ids.session, inherit=False) == [session]
    assert scopes("global", None, inherit=False) == ["global"]


def test_a_chain_skips_missing_parents(kernel: Kernel, do: Do) -> None:
    project = do("memory_project", "create", name="Alone")["project"]["id"]
    within = do("memory_session", "start", projectId=project)["session"]["id"]
    free = do("memory_session", "start")["session"]["id"]

    def scopes(scope_type: str, scope_id: str | None) -> list[str]:
        return kernel.store.read_sync(lambda tx: scope_chain(tx, scope_type, scope_id))

    assert scopes("session", within) == [f"session:{within}", f"project:{project}", "global"]
    assert scopes("session", free) == [f"session:{free}", "global"]
    assert scopes("project", project) == [f"project:{project}", "global"]
    for scope_type in ("session", "project", "org"):
        assert scopes(scope_type, "unknown") == [f"{scope_type}:unknown", "global"]
        assert scopes(scope_type, None) == [scope_type, "global"]


def test_a_scope_has_one_key() -> None:
    assert [scope_key("global", None), scope_key("global", "x"), scope_key("org", "a"), scope_key("project", None)] == [
        "global",
        "global",
        "org:a",
        "project",
    ]
    assert (required_scope_id("global", "x"), required_scope_id("org", "a")) == (None, "a")
    with pytest.raises(Fault, match="scopeId is required for non-global scope"):
        required_scope_id("session", None)


@pytest.mark.parametrize(
    ("scope_type", "resource"), [("org", "Organization"), ("project", "Project"), ("session", "Session")]
)
def test_an_unknown_scope_is_refused(unchanged: Call, scope_type: str, resource: str) -> None:
    reply = unchanged("memory_tool", action="add", scopeType=scope_type, scopeId="ghost", name="a")

    assert refused(reply) == (
        "not_found",
        "E2000",
        f"{resource} not found: ghost",
        {"resource": resource.lower(), "identifier": "ghost", "field": "scopeId"},
    )
