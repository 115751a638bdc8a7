"""Exports as programs write them: folders, archives and states; questions without text, and messages of no person."""

import gzip
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.imports.harness import Shell, contents, rows
from tests.imports.sources import COGX_ROWS, ROWS, SOURCES, json_file, written, zip_file

STATES = [
    {"id": "m1", "content": "Alice likes green tea.", "state": "active"},
    {"id": "m2", "content": "The old address.", "state": "deleted", "deleted_at": "2025-07-01T00:00:00Z"},
    {"id": "m3", "content": "The office is closed.", "state": "archived"},
    {"id": "m4", "content": "The gym is at noon.", "state": "paused"},
    {"id": "m5", "content": "The old phone.", "deleted_at": "2025-07-01T00:00:00Z"},
]
BACKUP = {"user": {"id": "u"}, "memories": STATES, "apps": [{"name": "x"}], "categories": []}


def backup(folder: Path) -> Path:
    """The ZIP archive of the backup route of OpenMemory."""
    path = folder / "memories_export_ada.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("memories.json", json.dumps(BACKUP))
        archive.writestr("memories.jsonl.gz", gzip.compress("\n".join(map(json.dumps, STATES)).encode()))
    return path


@pytest.mark.parametrize("form", ["list", "document", "zip", "folder", "gzip"])
def test_what_mem0_has_deleted_or_set_aside_stays_so(form: str, shell: Shell, tmp_path: Path) -> None:
    path = backup(tmp_path)
    if form in {"list", "document"}:
        path = json_file("memories.json", STATES if form == "list" else BACKUP)(tmp_path)
    elif form == "folder":
        (tmp_path / "backup").mkdir()
        zipfile.ZipFile(path).extractall(path := tmp_path / "backup")
    elif form == "gzip":
        path = tmp_path / "memories.jsonl.gz"
        path.write_bytes(gzip.compress("\n".join(map(json.dumps, STATES)).encode()))
    dry = shell.bring(path, "--dry-run")
    done = shell.bring(path)
    assert {**done, "dry_run": True} == dry
    assert (done["kind"], done["counts"]["memories"]) == ("mem0", 3)
    assert {row["content"]: row["status"] for row in rows(shell, "brain_memory")} == {
        "Alice likes green tea.": "active",
        "The office is closed.": "archived",
        "The gym is at noon.": "archived",
    }
    told = {remark.partition(" ")[2].split(" ", 2)[2].rpartition(": ")[2] for remark in done["remarks"]}
    members = {"of the member user", "of the member apps"} if form in {"document", "zip", "folder"} else set[str]()
    older = {"repeated, or an older version"} if form in {"zip", "folder"} else set[str]()
    assert told == {"deleted there", *members, *older}


def observation(number: int, sync: str, content: str, updated: str, **more: Any) -> dict[str, Any]:
    return {
        "id": number,
        "sync_id": sync,
        "session_id": "s1",
        "type": "decision",
        "title": "",
        "content": content,
        "topic_key": "t",
        "created_at": "2026-02-01 10:00:00",
        "updated_at": updated,
        **more,
    }


def chunk(*observations: dict[str, Any]) -> bytes:
    return gzip.compress(json.dumps({"sessions": [], "observations": observations, "prompts": []}).encode())


def engram(folder: Path) -> Path:
    """The folder that engram commits: newer versions of observations stand in any chunk."""
    root = folder / "project" / ".engram"
    (root / "chunks").mkdir(parents=True)
    (root / "manifest.json").write_text('{"version": 1, "chunks": [{"id": "a"}, {"id": "b"}, {"id": "c"}]}')
    (root / "chunks" / "a.jsonl.gz").write_bytes(
        chunk(
            observation(1, "o1", "The port is 8080.", "2026-02-03 10:00:00", revision_count=2),
            observation(2, "o2", "Use tabs.", "2026-02-01 10:00:00"),
        )
    )
    (root / "chunks" / "b.jsonl.gz").write_bytes(
        chunk(
            observation(7, "o1", "The port is 7437.", "2026-02-01 10:00:00"),
            observation(8, "o2", "Use tabs.", "2026-02-04 10:00:00", deleted_at="2026-02-04 10:00:00"),
            observation(9, "o3", "Write it in Go.", "2026-02-01 10:00:00"),
        )
    )
    (root / "chunks" / "c.jsonl.gz").write_bytes(b"\x1f\x8b torn")
    return root


def test_the_folder_of_engram_is_read_with_all_its_chunks(shell: Shell, tmp_path: Path) -> None:
    root = engram(tmp_path)
    for path in (root, root.parent):
        done = json.loads(shell.run("import", str(path), "--json"))
        assert done["kind"] == "engram"
        assert "left out: 1 chunks/c.jsonl.gz: cannot be unpacked" in " ".join(done["remarks"])
        assert "left out: 1 manifest.json: is no file with memories" in done["remarks"]
        assert "The port is 8080." in contents(shell)
        assert not {"The port is 7437.", "Use tabs."} & {*contents(shell)}
    one = shell.bring(root / "chunks" / "a.jsonl.gz")
    assert (one["kind"], one["counts"]["already there"]) == ("engram", 1)  # by itself it does not know of the deletion


def mutation(op: str, sync: str, **payload: Any) -> dict[str, Any]:
    key = {"entity": "observation", "entity_key": sync, "op": op}
    return {**key, "payload": json.dumps(payload), "occurred_at": "2026-02-05 10:00:00"}


def test_changes_in_a_chunk_of_engram_bring_and_delete(shell: Shell, tmp_path: Path) -> None:
    row = {"session_id": "s1", "type": "note", "title": ""}
    value = {
        "sessions": None,
        "observations": [
            observation(number, f"o{number}", f"Fact {number}.", "2026-02-01 10:00:00") for number in range(3)
        ],
        "mutations": [
            mutation("upsert", "o0", **row, content="Fact zero."),
            mutation("delete", "o1", deleted_at="2026-02-04 10:00:00", hard_delete=True),
            mutation("delete", "o2") | {"occurred_at": None},
            mutation("upsert", "o3", **row, content="Fact three."),
            {"entity": "session", "entity_key": "s1", "op": "upsert", "payload": "{}"},
        ],
    }
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(json.dumps(value).encode()))
    done = shell.bring(path)
    assert sorted(contents(shell)) == ["Fact three.", "Fact zero."]
    assert done["counts"] == {"memories": 2, "already there": 0, "left out": 6}
    assert sorted(done["remarks"]) == [
        "left out: 1 a change of a session",
        "left out: 2 o1, o2: deleted there",
        "left out: 3 o0, o1, o2: repeated, or an older version",
    ]


@pytest.mark.parametrize(
    ("row", "status"),
    [
        ({"deleted": True}, ""),
        ({"state": "Deleted"}, ""),
        ({"state": "Archived"}, "archived"),
        ({"archived_at": "2025-07-01"}, "archived"),
        ({"is_active": False}, "archived"),
        ({"state": "active", "archived_at": "2025-07-01"}, "active"),
    ],
)
@pytest.mark.parametrize("earlier", [[], [{"id": "m1", "memory": "Tea."}]])
def test_marks_of_what_mem0_has_deleted_or_set_aside(
    earlier: list[dict[str, Any]], row: dict[str, Any], status: str, shell: Shell, tmp_path: Path
) -> None:
    value = [*earlier, {"id": "m1", "memory": "Tea.", **row}, {"id": "m2", "memory": "Milk."}]
    shell.bring(json_file("mem0.json", value)(tmp_path))
    found = {row["content"]: row["status"] for row in rows(shell, "brain_memory")}
    assert found == {**({"Tea.": status} if status else {}), "Milk.": "active"}


def test_a_memory_of_mem0_in_parts_is_read_whole(shell: Shell, tmp_path: Path) -> None:
    parts = [{"type": "text", "text": "Likes tea."}, {"type": "text", "text": "Green."}]
    rows = [{"id": "1", "content": parts}, {"id": "2", "memory": {"text": "Likes milk."}}, {"id": "3", "memory": 7}]
    (tmp_path / "export.json").write_text(json.dumps(rows))
    assert shell.bring_kind("mem0", tmp_path / "export.json")["remarks"] == ["left out: 1 3: empty"]
    assert sorted(contents(shell, "brain_memory")) == ["Likes milk.", "Likes tea.\n\nGreen."]


@pytest.mark.parametrize(
    "text",
    [
        '["Tea.", "Milk \\u00e9."]',
        '{"memories": ["Tea.", {"memory": "Milk \\u00e9."}]}',
        '[\n  "Tea.",\n  "Milk \u00e9.",\n]',
    ],
)
def test_a_list_of_texts_is_one_of_memories(text: str, shell: Shell, tmp_path: Path) -> None:
    source = tmp_path / "facts.json"
    source.write_text(text, encoding="utf-8")
    done = shell.bring(source)
    assert (done["kind"], done["counts"]) == ("mem0", {"memories": 2, "already there": 0, "left out": 0})
    assert shell.bring(source)["counts"] == {"already there": 2, "left out": 0}
    lines = [json.loads(line) for line in shell.export().read_text(encoding="utf-8").splitlines()]
    rows = [line["row"] for line in lines if line.get("table") == "brain_memory"]
    assert sorted(row["content"] for row in rows) == ["Milk \u00e9.", "Tea."]


def test_ids_that_are_numbers_or_of_mongodb_name_a_memory(shell: Shell, tmp_path: Path) -> None:
    rows = [{"id": 7, "memory": "Tea."}, {"_id": {"$oid": "65a0"}, "text": "Milk."}]
    (tmp_path / "a.json").write_text(json.dumps(rows))
    shell.bring(tmp_path / "a.json")
    (tmp_path / "a.json").write_text(json.dumps([{**rows[0], "memory": "Coffee."}, {**rows[1], "text": "Cream."}]))
    assert shell.bring(tmp_path / "a.json")["counts"] == {"updated": 2, "already there": 0, "left out": 0}
    assert sorted(contents(shell, "brain_memory")) == ["Coffee.", "Cream."]


def test_a_time_that_cannot_be_read_is_kept_as_metadata(shell: Shell, tmp_path: Path) -> None:
    rows = [
        {"id": "1", "memory": "Tea.", "created_at": "01/02/2024", "expiration_date": "never"},
        {"id": "2", "memory": "Milk.", "created_at": {"$date": "2024-01-02T00:00:00Z"}},
    ]
    (tmp_path / "a.json").write_text(json.dumps(rows))
    shell.bring(tmp_path / "a.json")
    lines = [json.loads(line) for line in shell.export().read_text(encoding="utf-8").splitlines()]
    memories = {line["row"]["content"]: line["row"] for line in lines if line.get("table") == "brain_memory"}
    metadata = {text: json.loads(row["metadata"]) for text, row in memories.items()}
    assert {
        text: {key: value for key, value in parts.items() if key != "from"} for text, parts in metadata.items()
    } == {
        "Tea.": {"created_at": "01/02/2024", "expiration_date": "never"},
        "Milk.": {},
    }
    assert memories["Milk."]["created_at"] == "2024-01-02T00:00:00.000Z"


@pytest.mark.parametrize("member", ["data", "results"])
def test_memories_in_an_answer_of_a_service_are_read(member: str, shell: Shell, tmp_path: Path) -> None:
    rows = {"results": [{"id": "1", "memory": "Tea."}, "Milk."], "count": 2}
    (tmp_path / "a.json").write_text(json.dumps({"success": True, member: rows}))
    assert shell.bring_kind("mem0", tmp_path / "a.json")["counts"] == {
        "memories": 2,
        "already there": 0,
        "left out": 0,
    }


def test_texts_among_objects_and_of_damaged_lists_are_no_memories(shell: Shell, tmp_path: Path) -> None:
    source = tmp_path / "a.json"
    source.write_text('[{"id": "1", "memory": "Tea."}, "id": "2", "tags": ["x", "y"]}, {"id": "3", "memory": "Milk."}]')
    assert shell.bring(source)["counts"]["memories"] == 2


def test_a_row_that_is_no_memory_takes_the_place_of_none(shell: Shell, tmp_path: Path) -> None:
    value = [{"id": "m1", "memory": "Tea."}, {"id": "m1", "memory": ""}, {"id": "m1", "memory": "x" * 1_000_001}]
    done = shell.bring(json_file("mem0.json", value)(tmp_path))
    assert done["counts"] == {"memories": 1, "already there": 0, "left out": 2}


@pytest.mark.parametrize("topic", [{}, {"topic_key": None}, {"topic_key": "t"}])
@pytest.mark.parametrize("form", ["chunk.jsonl.gz", "export.json"])
def test_an_observation_of_engram_shows_the_program_without_a_topic(
    topic: dict[str, Any], form: str, shell: Shell, tmp_path: Path
) -> None:
    row = observation(1, "o1", "Use tabs.", "2026-02-01 10:00:00")
    row.pop("topic_key")
    data = chunk({**row, **topic})
    path = tmp_path / form
    path.write_bytes(data if form.endswith(".gz") else gzip.decompress(data))
    done = shell.bring(path)
    assert (done["kind"], done["counts"]["memories"]) == ("engram", 1)


def test_a_later_version_of_an_observation_takes_the_place_of_the_earlier_and_is_taken_back(
    shell: Shell, tmp_path: Path
) -> None:
    first, second = tmp_path / "first.jsonl.gz", tmp_path / "second.jsonl.gz"
    same = observation(2, "o2", "Use tabs.", "2026-02-01 10:00:00")
    first.write_bytes(chunk(observation(1, "o1", "The port is 7437.", "2026-02-01 10:00:00"), same))
    second.write_bytes(chunk(observation(9, "o1", "The port is 8080.", "2026-02-05 10:00:00"), same))
    assert counted(shell.bring(first)) == {"memories": 2}
    dry = shell.bring(second, "--dry-run")
    done = shell.bring(second)
    assert counted(done) == counted(dry) == {"updated": 1, "already there": 1}
    number = shell.audit()[0]["id"]
    assert sorted(contents(shell)) == ["The port is 8080.", "Use tabs."]
    assert counted(shell.bring(first)) == {"already there": 2}  # the version before adds nothing
    assert counted(shell.bring(second)) == {"already there": 2}
    assert sorted(contents(shell)) == ["The port is 8080.", "Use tabs."]
    shell.run("undo", str(number))
    assert sorted(contents(shell)) == ["The port is 7437.", "Use tabs."]


def test_a_memory_that_changed_in_mem0_is_updated_unless_it_was_edited_here(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / "mem0.json"

    def bring(*memories: tuple[str, str, str]) -> dict[str, int]:
        rows = [{"id": name, "memory": text, "updated_at": f"2026-01-{day}T00:00:00Z"} for name, text, day in memories]
        file.write_text(json.dumps({"results": rows}))
        return counted(shell.bring(file))

    tea, bus = ("m1", "Alice drinks green tea.", "02"), ("m2", "The bus leaves at nine.", "02")
    assert bring(tea, bus) == {"memories": 2}
    assert bring(("m1", "Alice drinks black tea.", "03"), bus) == {"updated": 1, "already there": 1}
    assert bring(tea, bus) == {"already there": 2}  # an older export changes nothing
    assert sorted(contents(shell, "brain_memory")) == ["Alice drinks black tea.", "The bus leaves at nine."]
    (edited,) = [row["id"] for row in rows(shell, "brain_memory") if "bus" in row["content"]]
    shell.run("edit", f"brain:core/{edited}", "--text", "The bus leaves at ten.")
    same = {"id": "m1", "memory": "Alice drinks black tea."}
    file.write_text(json.dumps({"results": [same, {"id": "m2", "memory": "The bus leaves at noon."}]}))
    again = shell.bring(file)
    assert counted(again) == {"already there": 1, "left out": 1}
    assert "changed in the source, and edited here since" in " ".join(again["remarks"])
    assert sorted(contents(shell, "brain_memory")) == ["Alice drinks black tea.", "The bus leaves at ten."]


def counted(done: dict[str, Any]) -> dict[str, int]:
    """The counts of an import that are not zero."""
    return {name: count for name, count in done["counts"].items() if count}


PICTURE = {"content_type": "image_asset_pointer", "asset_pointer": "file-service://x"}


def node(parent: str | None, role: str, *parts: Any, at: float = 0.0, **metadata: Any) -> dict[str, Any]:
    content = {"content_type": "text", "parts": list(parts)}
    message = {"author": {"role": role}, "content": content, "create_time": at, "metadata": metadata}
    return {"parent": parent, "children": [], "message": message}


def chatgpt(current: str | None = "f") -> list[dict[str, Any]]:
    mapping = {
        "a": node(None, "user", "Name three herbs.", at=1.8e9),
        "b": node("a", "assistant", "Basil, thyme, sage.", at=1.8e9 + 1),
        "x": node("a", "assistant", "An answer that was given up.", at=1.8e9 + 0.5),
        "c": node("b", "user", PICTURE, at=1.8e9 + 2),
        "d": node("c", "assistant", "The picture shows a red bicycle.", at=1.8e9 + 3),
        "e": node("d", "user", "", at=1.8e9 + 4, attachments=[{"name": "report.pdf"}]),
        "f": node("e", "assistant", "The report is about bees.", at=1.8e9 + 5),
    }
    return [{"title": "T", "conversation_id": "c1", "current_node": current, "mapping": mapping}]


@pytest.mark.parametrize("current", ["f", None, "gone"])
def test_a_question_of_an_image_begins_an_exchange_of_chatgpt(
    current: str | None, shell: Shell, tmp_path: Path
) -> None:
    shell.bring(json_file("conversations.json", chatgpt(current))(tmp_path))
    assert contents(shell) == [
        "Question: Name three herbs.\n\nAnswer: Basil, thyme, sage.",
        "Question: (image)\n\nAnswer: The picture shows a red bicycle.",
        "Question: (attachment: report.pdf)\n\nAnswer: The report is about bees.",
    ]


NOTICE = "```\nThis block is not supported on your current device yet.\n```"
CLAUDE = [
    {
        "uuid": "c1",
        "chat_messages": [
            {"sender": "human", "text": "Name three herbs.", "created_at": "2026-01-01T00:00:00Z"},
            {
                "sender": "assistant",
                "text": f"{NOTICE}\n\nBasil.",
                "content": [{"type": "tool_use", "name": "search"}, {"type": "text", "text": "Basil, thyme, sage."}],
            },
            {"sender": "human", "text": "", "content": [], "files": [{"file_name": "bike.png"}]},
            {"sender": "assistant", "text": f"{NOTICE}\n\nA red bicycle."},
            {"sender": "human", "text": "", "content": [{"type": "image"}]},
            {"sender": "assistant", "text": "A bee."},
            {"sender": "human", "text": ""},
            {"sender": "assistant", "text": "I see nothing."},
        ],
    }
]
PROJECTS = [
    {
        "uuid": "p1",
        "name": "Zoo",
        "description": "All about cats.",
        "prompt_template": "Answer in rhyme.",
        "docs": [{"uuid": "d1", "filename": "cats.md", "content": "Cats are animals."}],
    }
]
MEMORIES = [
    {
        "account_uuid": "a1",
        "conversations_memory": "Ada works on engines.",
        "project_memories": {"p1": "The zoo has nine cats."},
    }
]


def test_claude_keeps_blocks_images_memories_and_instructions(shell: Shell, tmp_path: Path) -> None:
    members = {
        "conversations.json": CLAUDE,
        "projects.json": PROJECTS,
        "memories.json": MEMORIES,
        "users.json": [{"uuid": "a1"}],
    }
    done = shell.bring(zip_file("data.zip", members)(tmp_path))
    assert done["remarks"] == [
        "left out: 1 c1: a call of a tool, or a thought",
        "left out: 1 users.json: is no file with memories",
    ]
    assert contents(shell) == [
        "Question: Name three herbs.\n\nAnswer: Basil, thyme, sage.",
        "Question: (attachment: bike.png)\n\nAnswer: A red bicycle.",
        "Question: (image)\n\nAnswer: A bee.",
        "Question: (no text)\n\nAnswer: I see nothing.",
    ]
    assert {row["title"]: row["content"] for row in rows(shell, "brain_note")} == {
        "Zoo: description": "All about cats.",
        "Zoo: instructions": "Answer in rhyme.",
        "cats.md": "Cats are animals.",
        "Memory of Claude: conversations memory": "Ada works on engines.",
        "Memory of Claude: project memories": "The zoo has nine cats.",
    }


LONG = "Herbs grow in pots. " * 200


@pytest.mark.parametrize(
    ("file", "rows", "texts", "told"),
    [
        (
            "claude",
            {
                "uuid": "c1",
                "name": "Herbs",
                "summary": "They spoke of herbs.",
                "created_at": "2026-01-05T08:00:00Z",
                "chat_messages": [
                    {"sender": "human", "text": LONG, "attachments": [{"file_name": "a", "extracted_content": "b"}]},
                    {"sender": "assistant", "text": "Yes.", "content": [{"type": "thinking", "thinking": "Hm."}] * 2},
                ],
            },
            ["They spoke of herbs."],
            [
                "left out: 1 Herbs, exchange 1: the rest of a text of more than 2,000 characters",
                "left out: 1 a: the content of an attachment",
                "left out: 2 Herbs: a call of a tool, or a thought",
            ],
        ),
        (
            "chatgpt",
            {
                "title": "Herbs",
                "id": "c1",
                "current_node": "d",
                "mapping": {
                    name: {"parent": parent, "message": {"author": {"role": role}, **more}}
                    for name, parent, role, more in [
                        ("a", None, "user", {"content": {"parts": ["Which herbs?"]}}),
                        ("b", "a", "assistant", {"content": {"content_type": "thoughts", "thoughts": [{"a": "b"}]}}),
                        ("c", "b", "assistant", {"recipient": "bio", "content": {"parts": ["User likes herbs."]}}),
                        ("d", "c", "assistant", {"content": {"parts": ["Basil."]}}),
                        ("x", "a", "assistant", {"content": {"parts": ["Parsley."]}}),
                        ("y", "x", "user", {"content": {"parts": ["No."]}}),
                    ]
                },
            },
            [],
            [
                "left out: 2 Herbs: hidden, or of a tool",
                "left out: 2 Herbs: of a branch that was given up",
            ],
        ),
    ],
)
def test_what_an_exchange_does_not_hold_is_told(
    file: str, rows: dict[str, Any], texts: list[str], told: list[str], shell: Shell, tmp_path: Path
) -> None:
    path = json_file("conversations.json", [rows])(tmp_path)
    done = shell.bring_kind(file, path)
    assert sorted(done["remarks"]) == told
    assert contents(shell)[1:] == texts


@pytest.mark.parametrize(
    ("name", "value", "counts"),
    [
        ("memories (1).json", MEMORIES, {"notes": 2}),
        ("projects.json", PROJECTS, {"notes": 3}),
        ("data.zip", {"data/projects/p1.json": PROJECTS[0], "data/memories.json": MEMORIES}, {"notes": 5}),
    ],
)
def test_a_part_of_an_export_of_claude_is_read_by_itself(
    name: str, value: Any, counts: dict[str, int], shell: Shell, tmp_path: Path
) -> None:
    done = shell.bring((zip_file if name.endswith(".zip") else json_file)(name, value)(tmp_path))
    assert (done["kind"], done["counts"]) == ("claude", {**counts, "already there": 0, "left out": 0})


def claude_talk(*said: tuple[str, str, str], **more: Any) -> list[dict[str, Any]]:
    """A conversation of Claude: the id of each message that is answered, who says it, and what; ids are numbers."""
    messages = [
        {"uuid": str(number), "parent_message_uuid": parent, "sender": sender, "text": text}
        for number, (parent, sender, text) in enumerate(said, 1)
    ]
    return [{"uuid": "c1", "name": "Tea", "chat_messages": messages, **more}]


EDITED = (("0", "human", "Tee?"), ("1", "assistant", "Golf?"), ("0", "human", "Tea?"), ("3", "assistant", "Sencha."))


@pytest.mark.parametrize(
    ("said", "more", "texts", "told"),
    [
        (EDITED, {}, ["Question: Tea?\n\nAnswer: Sencha."], ["left out: 2 Tea: of a branch that was given up"]),
        (
            EDITED,
            {"current_leaf_message_uuid": "2"},
            ["Question: Tee?\n\nAnswer: Golf?"],
            ["left out: 2 Tea: of a branch that was given up"],
        ),
        ((("", "human", "Tea?"), ("", "assistant", "Sencha.")), {}, ["Question: Tea?\n\nAnswer: Sencha."], []),
        (
            (
                ("0", "assistant", "Hello."),
                ("1", "human", "Tea?"),
                ("2", "operator", "Wait."),
                ("3", "assistant", "Yes."),
            ),
            {},
            ["Question: Tea?\n\nAnswer: Yes."],
            ["left out: 1 Tea: an answer to no question", "left out: 1 Tea: of a operator"],
        ),
        (
            (("0", "human", "Tea?"), ("1", "assistant", NOTICE)),
            {},
            ["Question: Tea?"],
            ["left out: 1 Tea: a call of a tool, or a thought"],
        ),
    ],
)
def test_only_the_branch_that_was_kept_is_a_conversation_of_claude(
    said: Any, more: dict[str, Any], texts: list[str], told: list[str], shell: Shell, tmp_path: Path
) -> None:
    done = shell.bring(json_file("conversations.json", claude_talk(*said, **more))(tmp_path))
    assert (contents(shell), sorted(done["remarks"])) == (texts, told)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ({"content_type": "reasoning_recap", "content": "Thought for a second."}, "hidden, or of a tool"),
        ({"content_type": "multimodal_text", "parts": [{"asset_pointer": "x"}]}, "an answer without text"),
    ],
)
def test_content_of_chatgpt_without_text_is_told(
    content: dict[str, Any], told: str, shell: Shell, tmp_path: Path
) -> None:
    nodes = {
        "a": {"children": ["b"], "message": {"author": {"role": "user"}, "content": {"parts": ["Tea?"]}}},
        "b": {"children": ["c"], "message": {"author": {"role": "assistant"}, "content": content}},
        "c": {"children": [], "message": {"author": {"role": "assistant"}, "content": {"parts": ["Yes."]}}},
    }
    value = [{"title": "T", "id": "c1", "current_node": "c", "mapping": nodes}]
    done = shell.bring(json_file("conversations.json", value)(tmp_path))
    assert done["remarks"] == [f"left out: 1 T: {told}"]
    assert contents(shell) == ["Question: Tea?\n\nAnswer: Yes."]


def test_settings_of_chatgpt_are_notes_of_which_the_newest_holds(shell: Shell, tmp_path: Path) -> None:
    def conversation(number: int, **content: Any) -> dict[str, Any]:
        kind = "user_editable_context" if "user_profile" in content else "model_editable_context"
        settings = {"author": {"role": "user"}, "content": {"content_type": kind, **content}}
        hidden: dict[str, Any] = {"is_visually_hidden_from_conversation": True}
        if "about" in content:
            hidden["user_context_message_data"] = {"about_model_message": content.pop("about")}
        question = {"author": {"role": "user"}, "content": {"parts": [f"Question {number}?"]}}
        nodes = {
            "a": {"children": ["b"], "message": {**settings, "metadata": hidden}},
            "b": {"children": [], "message": question},
        }
        at = f"2026-01-0{number}T00:00:00Z"
        return {"title": "T", "id": f"c{number}", "current_node": "b", "mapping": nodes, "create_time": at}

    value = [
        conversation(3, user_profile="The user said of themselves:\n```I am Ada.```", about="Answer in rhyme."),
        conversation(1, user_profile="I am Bob.", user_instructions="Answer in rhyme."),
        conversation(2, model_set_context="1. Drinks tea."),
    ]
    done = shell.bring(json_file("conversations.json", value)(tmp_path))
    assert done["counts"] == {"memories": 3, "notes": 3, "already there": 0, "left out": 1}
    assert done["remarks"] == ["left out: 1 ChatGPT: about the user: an older version"]
    lines = [json.loads(line) for line in shell.export().read_text(encoding="utf-8").splitlines()]
    notes = {line["row"]["title"]: line["row"]["content"] for line in lines if line.get("table") == "brain_note"}
    assert notes == {
        "ChatGPT: about the user": "I am Ada.",
        "ChatGPT: instructions": "Answer in rhyme.",
        "Memory of ChatGPT": "1. Drinks tea.",
    }


def test_a_folder_of_an_unpacked_export_is_read_as_the_archive_is(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "export").mkdir()
    json_file("conversations.json", CLAUDE)(tmp_path / "export")
    json_file("memories.json", MEMORIES)(tmp_path / "export")
    done = shell.bring(tmp_path / "export")
    assert (done["kind"], done["counts"]) == ("claude", {"memories": 4, "notes": 2, "already there": 0, "left out": 1})


def said(role: str, content: Any, **more: Any) -> str:
    return json.dumps({"type": role, "sessionId": "s1", "message": {"role": role, "content": content}, **more})


def test_what_no_person_has_said_in_a_session_is_left_out(shell: Shell, tmp_path: Path) -> None:
    lines = [
        said("user", "Which port?", timestamp="2026-05-01T08:00:00Z"),
        said("user", "Look for the port.", isSidechain=True),
        said("assistant", "I am the helper.", isSidechain=True),
        said("assistant", [{"type": "text", "text": "7437."}, {"type": "tool_use", "name": "Bash"}]),
        said("user", [{"type": "tool_result", "content": "ok"}]),
        said("user", "This session is being continued from a previous conversation.", isCompactSummary=True),
        said("user", "<task-notification>done</task-notification>"),
        said("user", [{"type": "text", "text": "[Request interrupted by user for tool use]"}]),
        said("user", "<command-name>/clear</command-name>"),
        said("user", "<local-command-stdout></local-command-stdout>"),
        said("user", "<bash-input>ls</bash-input>"),
        said("user", [{"type": "image", "source": {}}], timestamp="2026-05-01T08:01:00Z"),
        said("assistant", "A red bicycle."),
    ]
    path = tmp_path / "s1.jsonl"
    path.write_text("\n".join(lines))
    done = shell.bring(path)
    assert done["counts"] == {"memories": 2, "already there": 0, "left out": 10}
    assert sorted(done["remarks"]) == [
        "left out: 1 a summary of the session itself",
        "left out: 2 a call of a tool, or a thought",
        "left out: 2 said to or by a helper of the agent",
        "left out: 5 a notice of the program",
    ]
    assert contents(shell) == [
        "Question: Which port?\n\nAnswer: 7437.",
        "Question: (image)\n\nAnswer: A red bicycle.",
    ]


def test_a_command_that_the_agent_answers_is_a_question_of_its_own(shell: Shell, tmp_path: Path) -> None:
    review = (
        "<command-message>review</command-message>\n<command-name>/review</command-name>\n"
        "<command-args>the login</command-args>"
    )
    lines = [
        said("user", "Which port?"),
        said("user", "<command-name>/model</command-name>"),
        said("user", "<local-command-stdout>Set model</local-command-stdout>"),
        said("assistant", "7437."),
        said("user", review),
        said("user", "Review the changes: the login", isMeta=True),
        said("assistant", "It is sound."),
        said("user", "<command-name>/exit</command-name>"),
    ]
    path = tmp_path / "s1.jsonl"
    path.write_text("\n".join(lines))
    done = shell.bring(path)
    assert done["counts"] == {"memories": 2, "already there": 0, "left out": 4}
    assert done["remarks"] == ["left out: 4 a notice of the program"]
    assert contents(shell) == [
        "Question: Which port?\n\nAnswer: 7437.",
        "Question: /review the login\n\nAnswer: It is sound.",
    ]


def test_a_question_is_kept_without_what_the_program_has_added_to_it(shell: Shell, tmp_path: Path) -> None:
    def texts(*parts: str) -> list[dict[str, str]]:
        return [{"type": "text", "text": part} for part in parts]

    synthetic = {"role": "assistant", "model": "<synthetic>", "content": texts("You have hit your limit.")}
    lines = [
        said("user", texts("<system-reminder>Be brief.</system-reminder>", "Which port?")),
        said("assistant", texts("7437.")),
        said("assistant", texts("API Error: 500"), isApiErrorMessage=True),
        json.dumps({"type": "assistant", "sessionId": "s1", "message": synthetic}),
        said("user", texts("<ide_selection>port = 1</ide_selection>", "Change it.")),
        said("assistant", texts("Changed.")),
        said("user", "<system-reminder>\nBe brief.\n</system-reminder>\nWhy?\n<ide_opened_file>a.py</ide_opened_file>"),
        said("assistant", texts("It was taken.")),
        said("user", "<teammate-message teammate_id='a'>Ready.</teammate-message>"),
        said("user", "<system-reminder>\nIt has no end"),
        said("user", "Is <system-reminder> a tag?"),
        said("user", "<user-prompt-submit-hook>ok</user-prompt-submit-hook>"),
        said("user", "This session is being continued from a previous conversation that ran out of context."),
        said("assistant", texts("Done.")),
    ]
    path = tmp_path / "s1.jsonl"
    path.write_text("\n".join(lines))
    done = shell.bring(path)
    assert sorted(done["remarks"]) == [
        "left out: 1 a summary of the session itself",
        "left out: 5 a notice of the program",
    ]
    assert contents(shell) == [
        "Question: Which port?\n\nAnswer: 7437.",
        "Question: Change it.\n\nAnswer: Changed.",
        "Question: Why?\n\nAnswer: It was taken.",
        "Question: Is <system-reminder> a tag?\n\nAnswer: Done.",
    ]


def test_a_question_that_waited_for_the_agent_is_one_of_its_own(shell: Shell, tmp_path: Path) -> None:
    def queued(prompt: Any, **members: Any) -> str:
        attachment = {"type": "queued_command", "prompt": prompt, **members}
        return json.dumps({"type": "attachment", "sessionId": "s1", "attachment": attachment})

    lines = [
        said("user", "Build it."),
        json.dumps({"type": "queue-operation", "operation": "enqueue", "sessionId": "s1", "content": "Test it too."}),
        queued("Test it too.", commandMode="prompt", origin={"kind": "human"}),
        said("assistant", "It is tested."),
        queued([{"type": "text", "text": "And deploy."}]),
        queued("<task-notification>Done.</task-notification>", commandMode="task-notification"),
        queued("I am another agent.", commandMode="prompt", origin={"kind": "peer"}),
        said("assistant", "Deployed."),
        said("user", "A peer says hello.", origin={"kind": "peer"}),
    ]
    path = tmp_path / "s1.jsonl"
    path.write_text("\n".join(lines))
    done = shell.bring(path)
    assert sorted(done["remarks"]) == ["left out: 2 a notice of the program", "left out: 2 a record of the program"]
    assert contents(shell) == [
        "Question: Build it.",
        "Question: Test it too.\n\nAnswer: It is tested.",
        "Question: And deploy.\n\nAnswer: Deployed.",
    ]


@pytest.mark.parametrize(
    ("kind", "row", "kept"),
    [
        (
            "mem0",
            {"memory": "Tea.", "context": "At work.", "vector": [0.5] * 64},
            {"context": "At work."},
        ),
        ("mem0", {"memory": "Tea.", "note": "password: hunter2secret99"}, {"note": "password: [redacted]"}),
        ("mem0", {"memory": "Tea.", "db": {"password": "hunter2secret99"}}, {"db": {"password": "[redacted]"}}),
        (
            "engram",
            {"title": "", "content": "Tea.", "topic_key": "t", "mood": "calm"},
            {"topic_key": "t", "mood": "calm"},
        ),
        ("claude-mem", {"type": "change", "title": "Tea", "mood": "calm"}, {"mood": "calm"}),
        ("mcp-memory-service", {"content": "Tea.", "content_hash": "h", "mood": "calm"}, {"mood": "calm"}),
        ("letta", {"id": "p", "text": "Tea.", "mood": "calm"}, {"mood": "calm"}),
    ],
)
def test_members_without_a_place_are_kept_as_metadata(
    kind: str, row: dict[str, Any], kept: dict[str, Any], shell: Shell, tmp_path: Path
) -> None:
    path = tmp_path / "export.json"
    path.write_text(written(kind, [row]))
    shell.bring_kind(kind, path)
    (found,) = rows(shell, "brain_memory") or rows(shell, "sessions_memory")
    metadata = json.loads(found["metadata"])
    assert {name: value for name, value in metadata.items() if name != "from"} == kept


@pytest.mark.parametrize(
    ("name", "table", "texts"),
    [
        (
            "codex session",
            "sessions_memory",
            ["Question: Which port?\n\nAnswer: 7437.", "Question: (image)\n\nAnswer: A red bicycle."],
        ),
        ("langgraph", "brain_memory", ["Ada cycles.", "Ada bakes.", "city: Bonn\nn: 2"]),
        ("graphiti", "brain_memory", ["Ada lives in Bonn.", "I moved to Bonn."]),
        ("mem0 events", "brain_memory", ["Rome."]),
        (
            "notion",
            "brain_note",
            ["# Recipes\n\n[Soup](Recipes/Soup%2039d2b6745dc68012930afe9bc14d27eb.md)", "# Soup\n\nBoil it."],
        ),
    ],
)
def test_texts_of_formats_without_a_program_of_their_own(
    name: str, table: str, texts: list[str], shell: Shell, tmp_path: Path
) -> None:
    shell.bring(SOURCES[name].make(tmp_path))
    assert sorted(contents(shell, table)) == sorted(texts)


def test_a_fact_of_graphiti_keeps_its_validity_and_its_ends(shell: Shell, tmp_path: Path) -> None:
    shell.bring(SOURCES["graphiti"].make(tmp_path))
    fact = next(row for row in rows(shell, "brain_memory") if row["content"] == "Ada lives in Bonn.")
    assert (fact["category"], fact["valid_from"], fact["valid_until"]) == ("fact", "2024-05-01T00:00:00.000Z", None)
    names = {row["id"]: row["name"] for row in rows(shell, "brain_entity")}
    (link,) = rows(shell, "brain_link")
    ends = names[link["source_id"]], link["relationship"], names[link["target_id"]]
    assert ends == ("Ada", "LIVES_IN", "Bonn")


@pytest.mark.parametrize("source", ["subagent", {"subagent": {"thread_spawn": {"depth": 1}}}])
def test_prompts_to_a_helper_of_codex_are_no_questions(source: Any, shell: Shell, tmp_path: Path) -> None:
    head = {"id": "s8", "thread_source": source} if isinstance(source, str) else {"id": "s8", "source": source}
    said = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Look for the port."}]}
    event = {"type": "user_message", "message": "Look for the port."}
    lines = [
        {"type": "session_meta", "payload": head},
        {"type": "response_item", "payload": said},
        {"type": "event_msg", "payload": event},
    ]
    path = tmp_path / "rollout-s8.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    done = shell.bring(path)
    assert done["counts"] == {"already there": 0, "left out": 4}
    assert "left out: 2 said to or by a helper of the agent" in done["remarks"]


def test_a_session_of_codex_without_payloads_is_read(shell: Shell, tmp_path: Path) -> None:
    def said(role: str, text: str) -> dict[str, Any]:
        return {"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]}

    lines = [
        {"id": "s6", "timestamp": "2025-05-01T08:00:00Z", "instructions": None},
        {"record_type": "state"},
        said("user", "<user_instructions>Use make.</user_instructions>"),
        said("user", "Which port?"),
        said("assistant", "7437."),
    ]
    path = tmp_path / "rollout-s6.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    done = shell.bring(path)
    assert done["counts"] == {"memories": 1, "already there": 0, "left out": 3}
    assert [row["session_id"] for row in rows(shell, "sessions_memory")] == ["codex:s6"]
    assert contents(shell) == ["Question: Which port?\n\nAnswer: 7437."]


def test_a_session_of_codex_may_hold_events_alone(shell: Shell, tmp_path: Path) -> None:
    events = [("user_message", "Which port?"), ("agent_message", "7437."), ("agent_message", "Done.")]
    lines = [
        {"type": "session_meta", "payload": {"id": "s5"}},
        *({"type": "event_msg", "payload": {"type": kind, "message": text}} for kind, text in events),
    ]
    path = tmp_path / "rollout-s5.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    done = shell.bring(path)
    assert done["counts"] == {"memories": 1, "already there": 0, "left out": 1}
    assert contents(shell) == ["Question: Which port?\n\nAnswer: 7437.\n\nDone."]


@pytest.mark.parametrize(
    ("members", "status"),
    [
        ({"deleted": "false", "deleted_at": "null", "archived": "no"}, "active"),
        ({"is_active": "true", "archivedAt": None}, "active"),
        ({"is_active": 0}, "archived"),
        ({"isActive": "false"}, "archived"),
        ({"archivedAt": "2026-01-01"}, "archived"),
        ({"status": "superseded"}, "archived"),
        ({"isDeleted": True}, None),
        ({"deletedAt": "2026-01-01"}, None),
        ({"status": "removed"}, None),
    ],
)
def test_states_count_in_all_forms_in_which_programs_write_them(
    members: dict[str, Any], status: str | None, shell: Shell, tmp_path: Path
) -> None:
    done = shell.bring(json_file("m.json", [{"id": "1", "memory": "Likes tea.", **members}])(tmp_path))
    rows = [json.loads(line) for line in shell.export().read_text(encoding="utf-8").splitlines()]
    states = [line["row"]["status"] for line in rows if line.get("table") == "brain_memory"]
    assert (states, done["counts"]["left out"]) == (([status], 0) if status else ([], 1))


@pytest.mark.parametrize(
    ("written_time", "at"),
    [
        ("2024/03/05", "2024-03-05T00:00:00.000Z"),
        ("2024-03-05 10:00:00 +0000 UTC", "2024-03-05T10:00:00.000Z"),
        ("2024-03-05 10:00:00 -0500", "2024-03-05T15:00:00.000Z"),
        (99999999999999999999, None),
        ("03/05/2024", None),
    ],
)
def test_times_that_are_nearly_iso_are_read_and_others_kept_as_they_are(
    written_time: str | int, at: str | None, shell: Shell, tmp_path: Path
) -> None:
    shell.bring(json_file("m.json", [{"id": "1", "memory": "Likes tea.", "created_at": written_time}])(tmp_path))
    rows = [json.loads(line) for line in shell.export().read_text(encoding="utf-8").splitlines()]
    (row,) = (line["row"] for line in rows if line.get("table") == "brain_memory")
    assert (row["created_at"] == at, "created_at" in row["metadata"]) == (at is not None, at is None)


@pytest.mark.parametrize("kind", ["chatgpt", "claude"])
def test_of_a_conversation_that_is_twice_in_an_export_the_newest_counts(
    kind: str, shell: Shell, tmp_path: Path
) -> None:
    def talk(question: str, update: str) -> dict[str, Any]:
        row = json.loads(json.dumps(ROWS[kind][0]).replace("Question 0?", question))
        return {**row, "update_time": update, "updated_at": update}

    rows = [talk("New tea?", "2026-02-02T00:00:00Z"), talk("Old tea?", "2026-02-01T00:00:00Z")]
    done = shell.bring(json_file("conversations.json", rows)(tmp_path))
    assert (done["kind"], done["counts"]) == (kind, {"memories": 1, "already there": 0, "left out": 1})
    assert '"content":"Question: New tea?"' in shell.export().read_text(encoding="utf-8")


def test_a_fact_of_claude_mem_is_not_cut_at_its_comma(shell: Shell, tmp_path: Path) -> None:
    row = {"id": 1, "title": "Tools", "facts": "Use make, not cmake"}
    shell.bring(json_file("c.json", {"totalObservations": 1, "observations": [row]})(tmp_path))
    assert "- Use make, not cmake" in shell.export().read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", ["langgraph", "graphiti", "cogx", "mem0", "mcp-memory-service"])
def test_a_row_that_its_source_marks_as_deleted_does_not_come_back(kind: str, shell: Shell, tmp_path: Path) -> None:
    def bring(rows: list[Any]) -> dict[str, Any]:
        if kind == "cogx":
            (tmp_path / "x").mkdir(exist_ok=True)
            (tmp_path / "x" / "manifest.json").write_text('{"cogx_version": "0.1"}')
            (tmp_path / "x" / "memories.jsonl").write_text(written(kind, rows))
            return shell.bring_kind(kind, tmp_path / "x")
        (tmp_path / "x.json").write_text(written(kind, rows))
        return shell.bring_kind(kind, tmp_path / "x.json")

    rows: list[Any] = COGX_ROWS if kind == "cogx" else ROWS[kind]
    bring(rows)
    counts = bring([{**rows[0], "is_deleted": True}, *rows[1:]])["counts"]
    assert counts == {"archived": 1, "already there": 2, "left out": 0}
    lines = [json.loads(line) for line in shell.export().read_text(encoding="utf-8").splitlines()]
    states = [line["row"]["status"] for line in lines if line.get("table") == "brain_memory"]
    assert sorted(states) == ["active", "active", "archived"]
