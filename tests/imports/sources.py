"""The sources of the tests: fixtures that the programs themselves have written, and files made here by the formats that
are documented, for programs that cannot run here. README.md says which is which.
"""

import gzip
import io
import json
import shutil
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import apsw

FIXTURES = Path(__file__).parent / "fixtures"
ZERO = {"already there": 0, "left out": 0}
Make = Callable[[Path], Path]


class Given(NamedTuple):
    """A source: how it is made in a folder, the kind that is found in it, and the counts of its import."""

    make: Make
    kind: str
    counts: Mapping[str, int]


def fixture(name: str) -> Make:
    """A copy of a fixture, unpacked."""

    def make(folder: Path) -> Path:
        target = folder / name.removesuffix(".gz") if name.endswith(".sqlite.gz") else folder / name
        if name.endswith(".sqlite.gz"):
            target.write_bytes(gzip.decompress((FIXTURES / name).read_bytes()))
        elif (FIXTURES / name).is_dir():
            shutil.copytree(FIXTURES / name, target)
        else:
            shutil.copyfile(FIXTURES / name, target)
        return target

    return make


def of_another_day(text: str, day: str) -> str:
    """Return a text with the times of another day of that month."""
    return text.replace("2026-05-01", f"2026-05-0{day}")


def json_file(name: str, value: Any) -> Make:
    """A JSON document."""

    def make(folder: Path) -> Path:
        (folder / name).write_text(json.dumps(value, ensure_ascii=False), encoding="utf-8")
        return folder / name

    return make


def zip_file(name: str, members: Mapping[str, Any]) -> Make:
    """A ZIP archive of JSON documents."""

    def make(folder: Path) -> Path:
        with zipfile.ZipFile(folder / name, "w", zipfile.ZIP_DEFLATED) as archive:
            for member, value in members.items():
                archive.writestr(zipfile.ZipInfo(member, (2026, 1, 1, 0, 0, 0)), json.dumps(value))
        return folder / name

    return make


def notion_zip(folder: Path) -> Path:
    """An export of Notion: a ZIP archive of archives, here of two, in which a page has its id after its name."""
    number = "39d2b6745dc68012930afe9bc14d27e"
    parts = [
        {
            f"Private & Shared/Recipes {number}a.md": f"# Recipes\n\n[Soup](Recipes/Soup%20{number}b.md)\n",
            f"Private & Shared/Table {number}c.csv": "a,b\n",
        },
        {f"Private & Shared/Recipes/Soup {number}b.md": "# Soup\n\nBoil it.\n"},
    ]
    with zipfile.ZipFile(folder / "ExportBlock-1.zip", "w") as whole:
        for at, files in enumerate(parts, 1):
            data = io.BytesIO()
            with zipfile.ZipFile(data, "w") as part:
                for name, text in files.items():
                    part.writestr(zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0)), text)
            whole.writestr(zipfile.ZipInfo(f"ExportBlock-1-Part-{at}.zip", (2026, 1, 1, 0, 0, 0)), data.getvalue())
    return folder / "ExportBlock-1.zip"


def text_files(name: str, files: Mapping[str, str]) -> Make:
    """A folder of text files."""

    def make(folder: Path) -> Path:
        for path, text in files.items():
            (folder / name / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / name / path).write_text(text, encoding="utf-8")
        return folder / name

    return make


def engram_database(folder: Path) -> Path:
    """A database with the tables of engram, and the columns that a test needs."""
    file = folder / "engram.sqlite"
    db = apsw.Connection(str(file))
    db.execute(
        "CREATE TABLE sessions (id TEXT PRIMARY KEY, project TEXT);"
        "CREATE TABLE observations (id INTEGER PRIMARY KEY, session_id TEXT, type TEXT, title TEXT, content TEXT,"
        " tool_name TEXT, project TEXT, scope TEXT, topic_key TEXT, revision_count INTEGER, created_at TEXT,"
        " updated_at TEXT, deleted_at TEXT);"
        "CREATE TABLE user_prompts (id INTEGER PRIMARY KEY, content TEXT);"
    )
    rows = [
        (1, "s1", "decision", "Use Go", "The daemon is written in Go.", None, "web", "project", "arch/lang", 1),
        (2, "s1", "bugfix", "Fix the port", "The port is 7437.", None, "web", "project", None, 2),
    ]
    insert = "INSERT INTO observations VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, '2026-02-01 10:00:00', NULL, ?)"
    db.executemany(insert, [(*row, None) for row in rows])
    db.execute(insert, (3, "s2", "note", "Gone", "This was deleted.", None, None, None, None, 1, "2026-02-02 10:00:00"))
    db.execute("INSERT INTO user_prompts VALUES (1, 'do it')")
    db.close()
    return file


def _node(parent: str | None, role: str, text: str, at: float | None, *, hidden: bool = False) -> dict[str, Any]:
    message = {
        "author": {"role": role},
        "content": {"content_type": "text", "parts": [text]},
        "create_time": at,
        "metadata": {"is_visually_hidden_from_conversation": hidden},
    }
    return {"parent": parent, "children": [], "message": message}


CHATGPT = [
    {
        "title": "Tea",
        "create_time": 1_767_225_600.5,
        "conversation_id": "c1",
        "current_node": "d",
        "mapping": {
            "r": {"parent": None, "children": ["a"], "message": None},
            "a": _node("r", "system", "You are helpful.", None, hidden=True),
            "b": _node("a", "user", "Which tea is green?", 1_767_225_601.0),
            "x": _node("b", "assistant", "An answer that was given up.", 1_767_225_602.0),
            "d": _node("b", "assistant", "Sencha is green.", 1_767_225_603.0),
        },
    },
    {"title": "Empty", "id": "c2", "current_node": None, "mapping": {}},
]
CLAUDE = [
    {
        "uuid": "u1",
        "name": "Cats",
        "created_at": "2026-01-05T08:00:00Z",
        "updated_at": "2026-01-05T09:00:00Z",
        "chat_messages": [
            {"uuid": "m1", "sender": "human", "text": "Do cats swim?", "created_at": "2026-01-05T08:00:01Z"},
            {"uuid": "m2", "sender": "assistant", "content": [{"type": "text", "text": "Some do."}]},
            {"uuid": "m3", "sender": "human", "text": "Which?", "created_at": "2026-01-05T08:01:01Z"},
        ],
    }
]
CLAUDE_PROJECTS = [
    {
        "uuid": "p1",
        "name": "Zoo",
        "docs": [{"uuid": "d1", "filename": "cats.md", "content": "Cats are animals.", "created_at": "2026-01-01"}],
    }
]
LETTA = {
    "agents": [
        {
            "id": "agent-0",
            "name": "Helper",
            "block_ids": ["block-0", "block-1"],
            "messages": [
                {"id": "m0", "role": "system", "content": "You are Helper."},
                {"id": "m1", "role": "user", "content": [{"type": "text", "text": "My name is Ada."}]},
                {"id": "m2", "role": "assistant", "content": "Hello Ada.", "created_at": "2026-02-02T00:00:00Z"},
            ],
        }
    ],
    "blocks": [
        {"id": "block-0", "label": "persona", "value": "I am a helper.", "limit": 2000},
        {"id": "block-1", "label": "human", "value": "Her name is Ada.", "limit": 2000},
    ],
    "passages": [{"id": "p0", "text": "Ada likes engines.", "tags": ["ada"], "created_at": "2026-02-01T00:00:00Z"}],
    "files": [],
    "metadata": {},
}
MEM0 = {
    "results": [
        {
            "id": f"m{number}",
            "memory": f"The user drinks tea number {number}.",
            "hash": f"h{number}",
            "user_id": "ada",
            "categories": ["drinks"],
            "metadata": {"mood": "good"},
            "expiration_date": "2027-01-01",
            "created_at": "2026-03-01T10:00:00-07:00",
            "updated_at": None,
        }
        for number in range(3)
    ]
}
MCP_MEMORY_SERVICE = {
    "export_metadata": {"total_memories": 2, "exporter_version": "5.0.1"},
    "memories": [
        {"content": f"fact {number}", "content_hash": f"h{number}", "tags": ["a"], "created_at": 1_767_225_600.0}
        for number in range(2)
    ],
}
CLAUDE_MEM = {
    "exportedAt": "2026-06-01T00:00:00Z",
    "totalObservations": 1,
    "observations": [
        {
            "id": 7,
            "memory_session_id": "memory-9",
            "project": "quipu",
            "type": "feature",
            "title": "Add an export",
            "facts": ["one file"],
            "narrative": "The export is one file.",
            "concepts": ["what-changed"],
            "created_at_epoch": 1_767_225_600_000,
        }
    ],
    "summaries": [
        {"id": 1, "memory_session_id": "memory-9", "request": "an export", "created_at_epoch": 1_767_225_700_000}
    ],
    "prompts": [{"id": 1, "prompt_text": "please"}],
}
ENGRAM = {
    "version": "1",
    "sessions": [{"id": "s1"}],
    "observations": [{"id": 1, "session_id": "s1", "type": "note", "title": "A", "content": "b", "topic_key": "t"}],
    "prompts": [{"id": 1, "content": "x"}],
}
CLAUDE_CODE = {
    "projects/-home-ada-web/memory/MEMORY.md": "- [Tests](tests.md)\n",
    "projects/-home-ada-web/memory/tests.md": "---\nname: Tests\ndescription: How tests run\n"
    "metadata:\n  type: project\nmodified: 2026-04-01T08:00:00Z\n---\nRun them with make. See [[deploy]].\n",
    "projects/-home-ada-web/memory/deploy.md": "---\nname: Deploy\nmetadata:\n  type: feedback\n---\n"
    "Never on Friday.\n",
    "CLAUDE.md": "# Style\nWrite short sentences.\n",
}
SESSION = "\n".join(
    json.dumps(line)
    for line in [
        {"type": "summary", "summary": "x"},
        {"type": "user", "sessionId": "s9", "timestamp": "2026-05-01T08:00:00Z", "message": {"content": "Why?"}},
        {
            "type": "assistant",
            "sessionId": "s9",
            "timestamp": "2026-05-01T08:00:05Z",
            "message": {"content": [{"type": "text", "text": "Because."}, {"type": "tool_use", "name": "Bash"}]},
        },
    ]
)


def _of_codex(kind: str, **payload: Any) -> str:
    return json.dumps({"timestamp": "2026-05-01T08:00:00Z", "type": kind, "payload": payload})


def _said(role: str, *parts: dict[str, Any]) -> str:
    return _of_codex("response_item", type="message", role=role, content=[*parts])


ROLLOUT = "\n".join(
    [
        _of_codex("session_meta", id="s7", timestamp="2026-05-01T08:00:00Z", cwd="/web", cli_version="0.65.0"),
        _said("developer", {"type": "input_text", "text": "Be careful."}),
        _said("user", {"type": "input_text", "text": "# AGENTS.md instructions for /web\n\nUse make."}),
        _said(
            "user",
            {"type": "input_text", "text": "<environment_context>/web</environment_context>"},
            {"type": "input_text", "text": "# Context\nopen: a.py\n\n## My request for Codex:\nWhich port?"},
        ),
        _of_codex("event_msg", type="user_message", message="Which port?"),
        _of_codex("response_item", type="reasoning", summary=[]),
        _of_codex("response_item", type="function_call", name="shell", arguments="{}"),
        _said("assistant", {"type": "output_text", "text": "7437."}),
        _said("user", {"type": "input_image", "image_url": "data:"}),
        _said("assistant", {"type": "output_text", "text": "A red bicycle."}),
    ]
)
TALK: list[dict[str, Any]] = [
    {"id": "m1", "type": "info", "content": "Update available.", "timestamp": "2026-05-01T08:00:00Z"},
    {
        "id": "m2",
        "type": "user",
        "timestamp": "2026-05-01T08:00:01Z",
        "content": [{"text": "Which port? @a.md"}, {"text": "The file."}],
        "displayContent": "Which port? @a.md",
    },
    {
        "id": "m3",
        "type": "gemini",
        "content": "80.",
        "timestamp": "2026-05-01T08:00:02Z",
        "model": "m",
        "thoughts": [{"subject": "Ports"}],
        "toolCalls": [{"id": "t", "name": "read_file"}],
        "tokens": {"input": 1},
    },
    {"id": "m4", "type": "user", "content": [{"inlineData": {"data": "x"}}], "timestamp": "2026-05-01T08:00:03Z"},
    {"id": "m5", "type": "gemini", "content": "A lamp.", "timestamp": "2026-05-01T08:00:04Z"},
]
GEMINI = {"sessionId": "s1", "projectHash": "h", "startTime": "2026-05-01T08:00:00Z", "messages": TALK}
GEMINI_LINES: list[dict[str, Any]] = [
    {"sessionId": "s1", "projectHash": "h", "startTime": "2026-05-01T08:00:00Z", "kind": "main"},
    *TALK[:2],
    {**TALK[2], "content": "", "toolCalls": []},
    TALK[2],
    {"$set": {"summary": "Ports"}},
    {"id": "w1", "type": "user", "content": "Wrong?", "timestamp": "2026-05-01T08:00:02Z"},
    {"id": "w2", "type": "gemini", "content": "So wrong.", "timestamp": "2026-05-01T08:00:02Z"},
    {"$rewindTo": "w1"},
    {"$set": {"messages": [{"id": "z", "type": "user", "content": "<state_snapshot>Ports."}, TALK[1]]}},
    {"$set": {"lastUpdated": "2026-05-01T09:00:00Z"}},
    *TALK[3:],
    {"$set": {"messages": [{"id": "y", "type": "user", "content": [{"functionResponse": {"id": "t"}}]}]}},
    {"id": "m6", "type": "error", "content": "The quota is used up."},
]
SAVED = [
    {"role": "user", "parts": [{"text": "This is the Gemini CLI. We are setting up the context for our chat."}]},
    {"role": "model", "parts": [{"text": "Got it."}]},
    {"role": "user", "parts": [{"text": "Which port?"}]},
    {"role": "model", "parts": [{"functionCall": {"name": "read_file"}}]},
    {"role": "user", "parts": [{"functionResponse": {"name": "read_file"}}]},
    {"role": "model", "parts": [{"text": "80."}]},
]
SAID: list[dict[str, Any]] = [
    {"role": "system", "content": "You are helpful."},
    {"role": "user", "content": "Where are the spare keys?"},
    {"role": "assistant", "content": "In the safe."},
    {"role": "user", "content": [{"type": "text", "text": "Who has the code?"}]},
    {"role": "assistant", "content": None, "tool_calls": [{"id": "t1"}]},
    {"role": "tool", "tool_call_id": "t1", "content": "Mira"},
    {"role": "assistant", "content": "Mira has it."},
]
COPILOT = {
    "responderUsername": "GitHub Copilot",
    "initialLocation": "panel",
    "requests": [
        {
            "requestId": "r1",
            "message": {"text": "Which port?", "parts": []},
            "timestamp": 1_780_000_000_000,
            "response": [
                {"kind": "toolInvocationSerialized", "toolId": "read"},
                {"value": "It is in "},
                {"kind": "inlineReference", "inlineReference": {"path": "/src/app.ts", "scheme": "file"}},
                {"value": ": 80."},
                {"kind": "thinking", "value": "Ports."},
            ],
        },
        {"requestId": "r2", "message": "And the host?", "timestamp": 1_780_000_001_000, "response": None},
        {
            "requestId": "r3",
            "message": {"text": ""},
            "timestamp": 1_780_000_002_000,
            "response": [{"kind": "markdownContent", "content": {"value": "A lamp."}}],
        },
        {"requestId": "r4", "isSystemInitiated": True, "message": {"text": "Go on."}},
    ],
}
ITEMS = [
    {"namespace": ["memories", "ada"], "key": f"k{number}", "value": value, "created_at": "2026-03-01T10:00:00+00:00"}
    for number, value in enumerate(
        [{"content": "Ada cycles."}, {"kind": "Memory", "content": {"content": "Ada bakes."}}, {"city": "Bonn", "n": 2}]
    )
]
GRAPHITI = {
    "edges": [
        {
            "uuid": "e1",
            "name": "LIVES_IN",
            "fact": "Ada lives in Bonn.",
            "source_node_uuid": "n1",
            "target_node_uuid": "n2",
            "valid_at": "2024-05-01T00:00:00Z",
            "invalid_at": None,
        }
    ],
    "nodes": [
        {"uuid": "n1", "name": "Ada", "labels": ["Entity", "Person"], "summary": "Ada bakes."},
        {"uuid": "n2", "name": "Bonn", "labels": ["Entity"], "summary": ""},
    ],
    "episodes": [{"uuid": "p1", "content": "I moved to Bonn.", "source": "message"}],
}
MEM0_EVENTS = [
    {
        "id": "h1",
        "memory_id": "m1",
        "old_memory": None,
        "new_memory": "Bonn.",
        "event": "ADD",
        "created_at": "2026-01-01",
    },
    {
        "id": "h2",
        "memory_id": "m1",
        "old_memory": "Bonn.",
        "new_memory": "Rome.",
        "event": "UPDATE",
        "created_at": "2026-01-01",
        "updated_at": "2026-01-02",
    },
    {"id": "h3", "memory_id": "m2", "old_memory": "Tea.", "new_memory": None, "event": "DELETE", "is_deleted": 1},
]
RULES = {
    "CLAUDE.md": "Be kind. See @docs/style.md and `@not.md`.\n\n## Tests\nRun them.\n",
    "docs/style.md": "# Style\nUse tabs.\n",
    "AGENTS.md": "# Build\nUse make.\n",
    ".cursor/rules/py.mdc": "---\ndescription: Python\nglobs: *.py\nalwaysApply: false\n---\nUse types.\n",
    "src/main.py": "print()\n",
}
OBSIDIAN = {
    ".obsidian/app.json": "{}",
    "Garden.md": "# Garden\n\n- [fact] Roses need sun #roses\n- [ ] water them\nSee [[Rose|roses]] and ![[pic.png]].\n",
    "plants/Rose.md": "A red flower.\n",
}
OKF = {
    "index.md": "---\nokf_version: '0.2'\n---\n\n# All\n\n- [Rose](rose.md)\n",
    "log.md": "# Log\n\n## 2026-01-01\n\n- made\n",
    "rose.md": "---\ntype: plant\ntitle: Rose\ntags: [red]\ngenerated:\n  by: tool/1\n  at: 2026-01-02T00:00:00Z\n"
    "stale_after: 2027-01-01\n---\n\nA rose. See [Tulip](tulip.md).\n",
    "tulip.md": "---\ntype: plant\n---\n\nA tulip.\n",
}
CODEX = {
    "memory_summary.md": "v1\nsummary\n",
    "MEMORY.md": "# Handbook\n\nUse uv.\n",
    "rollout_summaries/2026-05-01.md": "# A day\n\nThe build was fixed.\n",
}

SOURCES: Mapping[str, Given] = {
    "server-memory": Given(
        fixture("server-memory.jsonl"), "server-memory", {"entities": 4, "observations": 4, "relations": 2}
    ),
    "claude-mem": Given(
        fixture("claude-mem.sqlite.gz"), "claude-mem", {"memories": 8, "already there": 0, "left out": 4}
    ),
    "mem0 history": Given(
        fixture("mem0-history.sqlite.gz"), "mem0", {"memories": 5, "already there": 0, "left out": 1}
    ),
    "mcp-memory-service": Given(
        fixture("mcp-memory-service.sqlite.gz"),
        "mcp-memory-service",
        {"links": 3, "memories": 7, "already there": 0, "left out": 1},
    ),
    "basic-memory": Given(
        fixture("basic-memory"),
        "basic-memory",
        {"entities": 3, "links": 6, "memories": 3, "notes": 3, "repeated": 3, "already there": 0, "left out": 0},
    ),
    "cogx": Given(
        fixture("export.cogx.tar.gz"),
        "cogx",
        {"entities": 2, "links": 1, "memories": 6, "memory blocks": 1, "notes": 1, "already there": 0, "left out": 1},
    ),
    "cogx folder": Given(
        fixture("cogx"),
        "cogx",
        {"entities": 2, "links": 1, "memories": 6, "memory blocks": 1, "notes": 1, "already there": 0, "left out": 1},
    ),
    "mem0": Given(json_file("mem0.json", MEM0), "mem0", {"memories": 3, **ZERO}),
    "mem0 list": Given(json_file("mem0.json", MEM0["results"]), "mem0", {"memories": 3, **ZERO}),
    "mcp-memory-service json": Given(
        json_file("export.json", MCP_MEMORY_SERVICE), "mcp-memory-service", {"memories": 2, **ZERO, "left out": 1}
    ),
    "claude-mem json": Given(
        json_file("export.json", CLAUDE_MEM), "claude-mem", {"memories": 2, "already there": 0, "left out": 1}
    ),
    "engram": Given(engram_database, "engram", {"memories": 2, "already there": 0, "left out": 2}),
    "engram json": Given(
        json_file("export.json", ENGRAM), "engram", {"memories": 1, "already there": 0, "left out": 2}
    ),
    "chatgpt": Given(
        zip_file("export.zip", {"conversations.json": CHATGPT, "user.json": {}}),
        "chatgpt",
        {"memories": 1, "already there": 0, "left out": 4},
    ),
    "claude": Given(
        zip_file("data.zip", {"conversations.json": CLAUDE, "projects.json": CLAUDE_PROJECTS}),
        "claude",
        {"memories": 2, "notes": 1, **ZERO},
    ),
    "letta": Given(
        json_file("helper.af", LETTA), "letta", {"memories": 3, "memory blocks": 2, "already there": 0, "left out": 1}
    ),
    "claude-code": Given(
        text_files("claude", CLAUDE_CODE),
        "claude-code",
        {"entities": 2, "guidelines": 1, "links": 1, "notes": 2, "already there": 0, "left out": 1},
    ),
    "claude-code session": Given(
        lambda folder: text_files("s", {"s9.jsonl": SESSION})(folder) / "s9.jsonl",
        "claude-code",
        {"memories": 1, "already there": 0, "left out": 2},
    ),
    "claude-code sessions": Given(
        text_files("-web", {f"s{at}.jsonl": of_another_day(SESSION.replace("s9", f"s{at}"), at) for at in "12"}),
        "claude-code",
        {"memories": 2, "already there": 0, "left out": 4},
    ),
    "codex sessions": Given(
        text_files(
            "sessions",
            {f"2026/05/0{at}/rollout-s{at}.jsonl": of_another_day(ROLLOUT.replace("s7", f"s{at}"), at) for at in "12"},
        ),
        "codex",
        {"memories": 4, "already there": 0, "left out": 12},
    ),
    "codex": Given(text_files("memories", CODEX), "codex", {"notes": 2, "already there": 0, "left out": 1}),
    "codex session": Given(
        lambda folder: text_files("s", {"rollout-s7.jsonl": ROLLOUT})(folder) / "rollout-s7.jsonl",
        "codex",
        {"memories": 2, "already there": 0, "left out": 6},
    ),
    "gemini-cli": Given(
        json_file("session-2026-05-01T08-00-a1.json", GEMINI),
        "gemini-cli",
        {"memories": 2, "already there": 0, "left out": 3},
    ),
    "gemini-cli lines": Given(
        lambda folder: (
            text_files("s", {"session-a1.jsonl": "\n".join(map(json.dumps, GEMINI_LINES))})(folder) / "session-a1.jsonl"
        ),
        "gemini-cli",
        {"memories": 2, "already there": 0, "left out": 8},
    ),
    "gemini-cli saved": Given(
        json_file("checkpoint-a.json", SAVED), "gemini-cli", {"memories": 1, "already there": 0, "left out": 4}
    ),
    "gemini-cli folder": Given(
        text_files(
            "home",
            {
                f"tmp/{at}/chats/session-{at}.json": of_another_day(json.dumps({**GEMINI, "sessionId": at}), at)
                for at in "12"
            },
        ),
        "gemini-cli",
        {"memories": 4, "already there": 0, "left out": 6},
    ),
    "copilot-chat": Given(
        json_file("chat.json", COPILOT), "copilot-chat", {"memories": 3, "already there": 0, "left out": 3}
    ),
    "messages": Given(
        json_file("chat.json", {"id": "c1", "title": "Keys", "created_at": "2026-05-01T08:00:00Z", "messages": SAID}),
        "messages",
        {"memories": 2, "already there": 0, "left out": 3},
    ),
    "messages alone": Given(
        json_file("chat.json", SAID), "messages", {"memories": 2, "already there": 0, "left out": 3}
    ),
    "messages by lines": Given(
        lambda folder: (
            text_files("s", {"chats.jsonl": "\n".join(json.dumps({"messages": SAID[at:]}) for at in (1, 3))})(folder)
            / "chats.jsonl"
        ),
        "messages",
        {"memories": 3, "already there": 0, "left out": 4},
    ),
    "letta blocks": Given(
        json_file("blocks.json", [{"label": "human", "value": "Ada.", "limit": 5000}, {"label": "style", "value": ""}]),
        "letta",
        {"memory blocks": 1, "already there": 0, "left out": 1},
    ),
    "langgraph": Given(json_file("store.json", ITEMS), "langgraph", {"memories": 3, **ZERO}),
    "langgraph by namespaces": Given(
        json_file("store.json", {"default": [{**ITEMS[0], "namespace": "default"}], "web": ITEMS[1:], "old": []}),
        "langgraph",
        {"memories": 3, **ZERO},
    ),
    "facts of zep": Given(
        json_file("facts.json", {"facts": [{"uuid": "e1", "fact": "Ada bakes.", "created_at": "2026-01-01"}]}),
        "graphiti",
        {"memories": 1, **ZERO},
    ),
    "graphiti": Given(
        json_file("graph.json", GRAPHITI), "graphiti", {"entities": 2, "links": 1, "memories": 2, **ZERO}
    ),
    "mem0 events": Given(
        json_file("history.json", MEM0_EVENTS), "mem0", {"memories": 1, "already there": 0, "left out": 2}
    ),
    "notion": Given(notion_zip, "obsidian", {"entities": 2, "links": 1, "notes": 2, "already there": 0, "left out": 1}),
    "rules": Given(text_files("web", RULES), "rules", {"guidelines": 5, **ZERO}),
    "obsidian": Given(
        text_files("vault", OBSIDIAN),
        "obsidian",
        {"entities": 2, "links": 2, "memories": 1, "notes": 2, **ZERO},
    ),
    "okf": Given(
        text_files("bundle", OKF),
        "okf",
        {"entities": 2, "links": 1, "notes": 2, "already there": 0, "left out": 2},
    ),
}

# Three rows of each export in JSON; of some they are a member of an object.
ROWS = {
    "mem0": [{"id": str(number), "memory": f"Fact {number}."} for number in range(3)],
    "claude": [
        {"uuid": f"c{number}", "chat_messages": [{"sender": "human", "text": f"Question {number}?"}]}
        for number in range(3)
    ],
    "chatgpt": [
        {
            "id": f"c{number}",
            "current_node": "a",
            "mapping": {"a": {"message": {"author": {"role": "user"}, "content": {"parts": [f"Question {number}?"]}}}},
        }
        for number in range(3)
    ],
    "claude-mem": [{"id": number, "title": f"Title {number}", "type": "change"} for number in range(3)],
    "engram": [{"id": number, "title": "", "content": f"Note {number}.", "topic_key": "t"} for number in range(3)],
    "mcp-memory-service": [{"content": f"Fact {number}.", "content_hash": f"h{number}"} for number in range(3)],
    "letta": [{"id": f"p{number}", "text": f"Passage {number}."} for number in range(3)],
    "langgraph": [
        {"namespace": ["n"], "key": f"k{number}", "value": {"content": f"Fact {number}."}} for number in range(3)
    ],
    "graphiti": [{"uuid": f"e{number}", "fact": f"Fact {number}."} for number in range(3)],
    "gemini-cli": [
        {"id": f"m{number}", "type": "user", "content": f"Question {number}?", "timestamp": f"2026-05-0{number + 1}"}
        for number in range(3)
    ],
    "copilot-chat": [
        {"requestId": f"r{number}", "message": {"text": f"Question {number}?"}, "timestamp": 1_780_000_000_000 + number}
        for number in range(3)
    ],
}
COGX_ROWS = [{"kind": "memory", "external_id": f"m{number}", "content": f"Fact {number}."} for number in range(3)]
MEMBERS = {
    "claude-mem": "observations",
    "engram": "observations",
    "mcp-memory-service": "memories",
    "letta": "passages",
    "gemini-cli": "messages",
    "copilot-chat": "requests",
}
HEADS: Mapping[str, Mapping[str, str]] = {
    "gemini-cli": {"sessionId": "s", "projectHash": "h"},
    "copilot-chat": {"sessionId": "s", "responderUsername": "GitHub Copilot"},
}


def written(kind: str, rows: list[Any]) -> str:
    """Return an export of a kind with these rows."""
    if kind == "cogx":
        return "\n".join(map(json.dumps, rows))
    return json.dumps({**HEADS.get(kind, {}), MEMBERS[kind]: rows} if kind in MEMBERS else rows)
