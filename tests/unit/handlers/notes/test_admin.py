"""Lint finds faults in files that people edit, and nothing where nothing did."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kernel.calls.dispatch import Dispatch
from kernel.core.config import Config
from kernel.server import app
from kernel.server.app import Kernel
from tests.conftest import Call, Clock, everything
from tests.unit.handlers.notes.conftest import CallOk, put

HEAD = "---\nmemory_type: {}\ncreated: 2026-01-01\nmodified: 2026-01-01\n---\n\n"
SUMMARY = {"totalMemories": 0, "issuesFound": 0, "healthScore": 100, "issuesByType": {}}
SOUND = {"success": True, "summary": SUMMARY, "issues": []}


def found(answer: dict[str, Any]) -> list[tuple[str, str, str]]:
    return [(issue["severity"], issue["type"], issue["file"]) for issue in answer["issues"]]


def test_empty_project_has_no_issues(call_ok: CallOk) -> None:
    assert call_ok("memory_lint") == SOUND


def test_files_written_by_tools_have_no_issues(call_ok: CallOk, clock: Clock) -> None:
    for title in ("One", "日本語", 'Third: "quoted"'):
        call_ok("memory_remember", title=title, content="x", memoryType="learning", tags=["a"])

    assert call_ok("memory_lint") == SOUND | {"summary": SUMMARY | {"totalMemories": 3}}


def test_every_issue_is_reported_with_a_suggestion(call_ok: CallOk, clock: Clock, folder: Path) -> None:
    clock.now = "2026-01-02T03:04:05.678Z"
    texts = {
        "learning/good.md": HEAD.format("learning") + "see [[Other Note]] and [[issue/linked|this]]\n",
        "learning/other-note.md": HEAD.format("learning") + "`[[not a link]]`\n```\n[[ -f x ]]\n```\n",
        "issue/linked.md": HEAD.format("issue") + "x\n",
        "issue/lonely.md": HEAD.format("issue") + "x\n",
        "issue/broken.md": HEAD.format("issue") + "[[nowhere]] [[nowhere#part]]\n",
        "issue/empty.md": HEAD.format("issue") + " \n",
        "issue/bare.md": "x [[good]]\n",
        "issue/stale.md": HEAD.format("issue").replace("modified: 2026", "modified: 2024") + "[[good]]\n",
        "strange/a.md": HEAD.format("strange") + "[[good]]\n",
        "issue/a.md": HEAD.format("issue") + "[[good]]\n",
        "issue/bytes.md": (HEAD.format("issue") + "[[good]] ").encode() + b"\xff\n",
    }
    for path, text in texts.items():
        put(folder, path, text)
    (folder / "issue" / "link.md").symlink_to("linked.md")
    answer = call_ok("memory_lint")

    assert found(answer) == [
        ("error", "missing-frontmatter", "issue/bare.md"),
        ("error", "unreadable", "issue/link.md"),
        ("error", "invalid-type", "strange/a.md"),
        ("warning", "duplicate-title", "issue/a.md"),
        ("warning", "broken-wikilink", "issue/broken.md"),
        ("warning", "invalid-text", "issue/bytes.md"),
        ("warning", "empty-content", "issue/empty.md"),
        ("warning", "stale", "issue/stale.md"),
        ("warning", "duplicate-title", "strange/a.md"),
        ("info", "orphan", "issue/empty.md"),
        ("info", "orphan", "issue/lonely.md"),
    ]
    assert answer["success"] is False
    assert answer["summary"] == {
        "totalMemories": 11,
        "issuesFound": 11,
        "healthScore": 36,
        "issuesByType": {
            "missing-frontmatter": 1,
            "unreadable": 1,
            "invalid-type": 1,
            "duplicate-title": 2,
            "broken-wikilink": 1,
            "invalid-text": 1,
            "empty-content": 1,
            "stale": 1,
            "orphan": 2,
        },
    }
    assert answer["issues"][0] == {
        "type": "missing-frontmatter",
        "severity": "error",
        "file": "issue/bare.md",
        "message": "Front matter lacks memory_type, created, modified",
        "suggestion": "Add it, or update it",
    }
    assert all(issue["message"] and issue["suggestion"] for issue in answer["issues"])


CONFLICT = "<<<<<<< HEAD\n{}\n=======\n{}\n>>>>>>> other\n"


@pytest.mark.parametrize(
    "text",
    [
        HEAD.format("learning") + CONFLICT.format("ours", "theirs"),
        HEAD.format("learning").replace("\n---\n\n", "\n" + CONFLICT.format("tags: [a]", "tags: [b]") + "---\n\nx\n"),
        HEAD.format("learning") + "left over\n>>>>>>> other\n",
    ],
    ids=["body", "front matter", "half"],
)
def test_conflict_markers_of_git_are_reported(call_ok: CallOk, clock: Clock, folder: Path, text: str) -> None:
    put(folder, "learning/a.md", text)

    assert {
        "type": "conflict-marker",
        "severity": "error",
        "file": "learning/a.md",
        "message": "Two versions stand in the file, as git left them",
        "suggestion": "Keep one of them",
    } in call_ok("memory_lint")["issues"]


def test_underlined_heading_is_no_conflict(call_ok: CallOk, clock: Clock, folder: Path) -> None:
    put(folder, "learning/a.md", HEAD.format("learning") + "Heading\n=======\n\n`<<<<<<<` and 1 <<<<<<< 2\n")
    assert call_ok("memory_lint") == SOUND | {"summary": SUMMARY | {"totalMemories": 1}}


def test_lint_lists_as_many_issues_as_the_limit_and_counts_them_all(call_ok: CallOk, folder: Path) -> None:
    for number in range(60):
        put(folder, f"learning/n{number}.md", "x\n")

    answers = [call_ok("memory_lint", **given) for given in ({}, {"limit": 2}, {"limit": 1000})]

    assert [len(answer["issues"]) for answer in answers] == [50, 2, 60]
    assert answers[0]["issues"][:2] == answers[1]["issues"]
    assert [answer["summary"] for answer in answers] == [
        {"totalMemories": 60, "issuesFound": 60, "healthScore": 0, "issuesByType": {"missing-frontmatter": 60}}
    ] * 3


def test_orphans_do_not_spoil_the_health_score(call_ok: CallOk, clock: Clock, folder: Path) -> None:
    for name, text in (("a", "[[b]]"), ("b", "x"), ("c", "x")):
        put(folder, f"learning/{name}.md", HEAD.format("learning") + f"{text}\n")

    assert call_ok("memory_lint")["summary"] == {
        "totalMemories": 3,
        "issuesFound": 1,
        "healthScore": 100,
        "issuesByType": {"orphan": 1},
    }


@pytest.mark.parametrize("time", ["2026-02-30T10:00:00Z", "soonZ", "yesterday", "0001-01-01T00:00:00+14:00", "[a]"])
def test_invalid_time_is_reported_and_replaced_by_file_time(
    call_ok: CallOk, clock: Clock, folder: Path, time: str
) -> None:
    file = put(folder, "learning/a.md", f"---\nmemory_type: learning\ncreated: {time}\nmodified: {time}\n---\n\nx\n")
    moment = 1_767_323_045_678 * 10**6
    os.utime(file, ns=(moment, moment))
    answer = call_ok("memory_lint")

    assert answer["issues"] == [
        {
            "type": "invalid-time",
            "severity": "warning",
            "file": "learning/a.md",
            "message": "What stands for created and modified is no time",
            "suggestion": "Write it as 2026-01-31T10:00:00Z",
        }
    ]
    (memory,) = call_ok("memory_recall", isAll=True)["memories"]
    assert [memory["created"], memory["modified"]] == ["2026-01-02T03:04:05.678Z"] * 2


def test_lint_sees_manual_edits_and_changes_nothing(call_ok: CallOk, unchanged: Call, folder: Path) -> None:
    put(folder, "learning/a.md", "x")
    assert call_ok("memory_lint")["summary"]["totalMemories"] == 1
    assert unchanged("memory_lint").fault is None


@pytest.fixture
def several(config: Config, caller: Callable[[Dispatch], Call], tmp_path: Path) -> Iterator[tuple[Kernel, Call]]:
    """Two projects, `web` and `blog`, with a memory each that was recalled once."""
    for name in ("web", "blog"):
        put(tmp_path, f"{name}/.mnemonics/learning/{name}.md", HEAD.format("learning") + "salt\n")
    roots = os.pathsep.join([str(tmp_path / "web"), str(tmp_path / "blog")])
    kernel = app.open_kernel(config._replace(environment={"QUIPU_NOTES_ROOTS": roots}))
    call = caller(kernel.dispatch)
    assert call("memory_recall", isAll=True).fault is None
    yield kernel, call
    kernel.store.close()


def test_unreadable_project_does_not_affect_others(several: tuple[Kernel, Call], tmp_path: Path) -> None:
    kernel, call = several
    rows = everything(kernel)
    (tmp_path / "web" / ".mnemonics").rename(tmp_path / "away")
    (tmp_path / "web" / ".mnemonics").symlink_to(tmp_path / "away")
    message = f"{tmp_path / 'web' / '.mnemonics'} is a link, or leads through one, or is no file."

    assert msgspec.json.decode(call("memory_recall", isAll=True).body)["count"] == 2
    assert everything(kernel) == rows
    put(tmp_path, "blog/.mnemonics/learning/new.md", HEAD.format("learning") + "raven\n")
    for arguments in ({"project": "blog"}, {}):
        reply = call("memory_recall", query="raven", type="search", **arguments)
        assert msgspec.json.decode(reply.body)["count"] == 1
    assert call("memory_recall", isAll=True, project="web").fault == "blocked"
    reply = call("memory_sync")
    assert (reply.fault, reply.body.decode()) == ("blocked", message)
    lint = msgspec.json.decode(call("memory_lint").body)
    assert {"type": "unreadable", "file": str(tmp_path / "web"), "message": message}.items() <= lint["issues"][
        0
    ].items()
    assert lint["summary"]["totalMemories"] == 3


def test_lint_of_several_projects_names_the_project_of_each_issue(several: tuple[Kernel, Call], tmp_path: Path) -> None:
    _, call = several
    for project in ("web", "blog"):
        put(tmp_path, f"{project}/.mnemonics/learning/bad.md", "x\n")
    issue = {
        "type": "missing-frontmatter",
        "severity": "error",
        "file": "learning/bad.md",
        "message": "Front matter lacks memory_type, created, modified",
        "suggestion": "Add it, or update it",
    }

    def issues(**given: str) -> list[dict[str, str]]:
        found = msgspec.json.decode(call("memory_lint", **given).body)["issues"]
        return [one for one in found if one["file"] == "learning/bad.md"]

    assert issues() == [issue | {"project": "blog"}, issue | {"project": "web"}]
    assert issues(project="web") == [issue | {"project": "web"}]
    assert call("memory_lint", project="shop").body.decode() == ('Invalid project: "shop". Must be one of: web, blog.')


def test_project_with_invalid_types_does_not_affect_others(several: tuple[Kernel, Call], tmp_path: Path) -> None:
    _, call = several
    put(tmp_path, "web/.opencode/opencode-historian.json", "{")
    put(tmp_path, "blog/.opencode/opencode-historian.json", '{"memoryTypes": [{"name": "x", "description": "X"}]}')

    assert call("memory_list_types").body.count(b'"name":"x"') == 1
    assert call("memory_remember", title="t", content="c", memoryType="x", project="blog").fault is None
    assert call("memory_remember", title="t", content="c", memoryType="x", project="web").fault == "invalid"
    (issue, *_) = msgspec.json.decode(call("memory_lint").body)["issues"]
    assert (issue["type"], issue["file"]) == ("unreadable", str(tmp_path / "web"))
    assert issue["message"].startswith("Cannot read the types of opencode-historian.json: ")


@pytest.mark.parametrize("piece", ["[[", "```\n", "`", "[[a", "~~~\n", "]]"])
def test_lint_time_is_linear_for_awkward_text(call_ok: CallOk, folder: Path, piece: str) -> None:
    put(folder, "learning/a.md", piece * 100_000)
    assert call_ok("memory_lint")["summary"]["totalMemories"] == 1
