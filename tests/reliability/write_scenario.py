"""A story in which every tool that writes, and every action of one, is called once with success."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec
import yaml

from kernel.calls.tools import Reply


class Step(NamedTuple):
    """A call; `$name` in an argument is a value kept before, and `keep` says where later ones lie in the answer."""

    tool: str
    arguments: dict[str, Any]
    keep: Mapping[str, str] = {}


def step(tool: str, /, keep: Mapping[str, str] = {}, **arguments: Any) -> Step:
    """One step."""
    return Step(tool, arguments, keep)


def act(tool: str, action: str, /, keep: Mapping[str, str] = {}, **arguments: Any) -> Step:
    """One step of a tool with actions."""
    return Step(f"memory_{tool}", {"action": action, **arguments}, keep)


_GLOBAL: dict[str, Any] = {"scopeType": "global"}
_LOCK: dict[str, Any] = {"file_path": "/src/cart.py", "agent_id": "ada"}
_CORE: dict[str, Any] = {"db": "core"}
_FACT: dict[str, Any] = {**_CORE, "category": "fact"}

PATHS = [
    step("add_memory", path="a/b", content="The cart is blue"),
    step("add_memory", path="a/c", content="The horse is brown"),
    step("replace_memory", path="a/b", content="The cart is red"),
    step("drop_memory", path="a/b"),
    step("clear_memory"),
]
SCOPES = [
    act("init", "init"),
    act("org", "create", {"org": "organization.id"}, name="Acme"),
    act("project", "create", {"project": "project.id"}, name="Shop", orgId="$org"),
    act("project", "update", id="$project", description="A shop"),
    act("session", "start", {"session": "session.id"}, projectId="$project", agentId="ada"),
    act("tool", "add", {"tool": "tool.id"}, **_GLOBAL, name="git", category="cli", description="Versions"),
    act("tool", "update", id="$tool", description="Versions of files"),
    act("guideline", "add", {"rule": "guideline.id"}, **_GLOBAL, name="commits", content="Small ones"),
    act("guideline", "update", id="$rule", content="Smaller ones"),
    act("knowledge", "add", {"fact": "knowledge.id"}, **_GLOBAL, title="cart", content="It is blue"),
    act("knowledge", "update", id="$fact", content="It is red"),
    act("tag", "create", {"tag": "tag.id"}, name="ours"),
    act("tag", "attach", entryType="guideline", entryId="$rule", tagName="ours"),
    act("tag", "detach", entryType="guideline", entryId="$rule", tagId="$tag"),
    act(
        "relation",
        "create",
        {"relation": "relation.id"},
        sourceType="guideline",
        sourceId="$rule",
        targetType="tool",
        targetId="$tool",
        relationType="applies_to",
    ),
    act("relation", "delete", id="$relation"),
    act("file_lock", "checkout", **_LOCK),
    act("file_lock", "checkin", **_LOCK),
    act("file_lock", "checkout", **_LOCK),
    act("file_lock", "force_unlock", file_path="/src/cart.py", agent_id="bob", reason="gone"),
    act("knowledge", "deactivate", id="$fact"),
    act("session", "end", id="$session"),
    act("export", "export", {"export": "content"}),
    act("import", "import", content="$export"),
    act("init", "reset", confirm=True),
]
BRAIN = [
    step("save_memory", {"memory": "id"}, **_FACT, content="The cart is blue"),
    step("save_memory", {"other": "id"}, **_FACT, content="The horse eats oats"),
    step("update_memory", **_CORE, id="$memory", importance=4),
    step("supersede_memory", **_CORE, old_id="$memory", new_content="The cart is red"),
    step("bulk_save_memories", **_CORE, memories=[{"content": "Rain in May", "category": "fact"}]),
    step("smart_save_memory", **_FACT, content="Quite another thing about the sea"),
    step("handle_correction", **_CORE, wrong_memory_id="$other", correct_content="The horse eats hay"),
    step("create_entity", {"entity": "id"}, **_CORE, name="Ada", type="person"),
    step("update_entity", **_CORE, id="$entity", description="She wrote it"),
    step(
        "create_link",
        {"link": "id"},
        **_CORE,
        source_type="entity",
        source_id="$entity",
        target_type="entity",
        target_id="$entity",
        relationship="is",
    ),
    step("delete_link", **_CORE, id="$link"),
    step("delete_entity", **_CORE, id="$entity"),
    step("save_note", {"note": "id"}, **_CORE, title="Plan", content="Buy oats"),
    step("update_note", **_CORE, id="$note", content="Buy hay"),
    step("save_resource", **_CORE, title="A book", url="https://example.com"),
    step("set_config", key="search.half_life_days", value="30"),
    step("batch_embed", **_CORE),
    step("cleanup_query_log"),
    step("delete_memory", **_CORE, id="$other"),
]
SESSIONS = [
    step("remember", content="We chose SQLite for the cart", session_id="s1"),
    step("remember", content="The horse eats oats", session_id="s2"),
    step("upsert_entity", name="Cart", entity_type="thing", observations_json='["it is blue"]'),
    step("upsert_entity", name="Horse", entity_type="animal"),
    step("add_relation", source="Horse", target="Cart", relation_type="pulls"),
    step("maintenance", action="purge_session", session_id="s1", confirm=True),
    step("maintenance", action="prune_older_than", older_than_days=0, confirm=True),
    step("maintenance", action="vacuum", confirm=True),
    step("maintenance", action="purge_all", confirm=True),
]
_KNOWS: dict[str, Any] = {"relations": [{"from": "Ada", "to": "Bob", "relationType": "knows"}]}
GRAPH = [
    step(
        "create_entities",
        entities=[{"name": name, "entityType": "person", "observations": ["likes tea"]} for name in ("Ada", "Bob")],
    ),
    step("create_relations", **_KNOWS),
    step("add_observations", observations=[{"entityName": "Bob", "contents": ["hums"]}]),
    step("delete_observations", deletions=[{"entityName": "Bob", "observations": ["likes tea"]}]),
    step("delete_relations", **_KNOWS),
    step("create_relations", **_KNOWS),
    step("delete_entities", entityNames=["Bob"]),
]
_CARTS = "/memories/carts"
_IN_STORE: dict[str, Any] = {"memory_store_id": "$store"}
FILES = [
    step("memory", command="create", path="/memories/kept", file_text="The cart is blue"),
    step("memory", command="create", path=f"{_CARTS}/a", file_text="The cart is blue"),
    step("memory", command="str_replace", path=f"{_CARTS}/a", old_str="blue", new_str="red"),
    step("memory", command="insert", path=f"{_CARTS}/a", insert_line=0, insert_text="The horse eats oats"),
    step("memory", command="rename", old_path=_CARTS, new_path="/memories/wagons"),
    step("memory", command="delete", path="/memories/wagons"),
    step("create_memory_store", {"kept": "id"}, name="Kept"),
    step("create_stored_memory", memory_store_id="$kept", path="/a", content="The cart is blue"),
    step("create_memory_store", {"store": "id"}, name="Carts"),
    step("update_memory_store", **_IN_STORE, name="Wagons", metadata={"of": "ours"}),
    step("create_stored_memory", {"blue": "id", "first": "memory_version_id"}, **_IN_STORE, path="/a", content="Blue"),
    step("create_stored_memory", **_IN_STORE, path="/b", content="The horse eats oats"),
    step("update_stored_memory", **_IN_STORE, memory_id="$blue", content="Red", path="/c"),
    step("redact_memory_version", **_IN_STORE, memory_version_id="$first"),
    step("delete_stored_memory", **_IN_STORE, memory_id="$blue"),
    step("archive_memory_store", **_IN_STORE),
    step("delete_memory_store", **_IN_STORE),
]
_COMPACTED: dict[str, Any] = {"client": "claude", "session_id": "s", "cwd": "/w/web"}
HOOKS = [
    step("hook post-compact", **_COMPACTED, compact_summary="The API moved to another port. " * 4),
    step("hook post-compact", **_COMPACTED, compact_summary="The API moved back to its first port. " * 4),
]

STORY = [*PATHS, *SCOPES, *BRAIN, *SESSIONS, *GRAPH, *FILES, *HOOKS]


class Kept:
    """The values that later steps need."""

    def __init__(self) -> None:
        self._values: dict[str, Any] = {}

    def fill(self, value: Any) -> Any:
        """An argument with its `$name` replaced."""
        if isinstance(value, str) and value.startswith("$"):
            return self._values[value[1:]]
        return value

    def has(self, step: Step) -> bool:
        """Whether every value that a step needs is known."""
        named = (value[1:] for value in step.arguments.values() if isinstance(value, str) and value.startswith("$"))
        return all(name in self._values for name in named)

    def arguments(self, step: Step) -> dict[str, Any]:
        """The arguments of a step as they are to be sent."""
        return {name: self.fill(value) for name, value in step.arguments.items()}

    def take(self, step: Step, reply: Reply) -> None:
        """Keeps the part of its answer that the step names."""
        for name, where in step.keep.items():
            found: Any = told(reply)
            for part in where.split("."):
                found = found[part]
            self._values[name] = found


def told(reply: Reply) -> Any:
    """The body of an answer in any encoding."""
    return yaml.safe_load(reply.body) if "yaml" in reply.media else msgspec.json.decode(reply.body)
