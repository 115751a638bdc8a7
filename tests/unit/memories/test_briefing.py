"""The start of a session: the name of a project, a text after its name, and the memories that a session got."""

from datetime import UTC, datetime, timedelta

import pytest

from kernel.memories.briefing import HookSessions, Project, named

NOW = "2026-01-02T03:04:05.678Z"
KEY = "claude s-1"


def after(**span: float) -> str:
    return (datetime.fromisoformat(NOW) + timedelta(**span)).astimezone(UTC).isoformat()


@pytest.mark.parametrize(
    ("root", "project"),
    [
        ("/home/ada/mill/", Project("/home/ada/mill", "mill")),
        ("C:\\src\\mill", Project("C:\\src\\mill", "mill")),
        ("/", Project("/", "")),
    ],
)
def test_a_folder_names_its_project(root: str, project: Project) -> None:
    assert Project.at(root) == project


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("Never", "push to main", "Never: push to main"),
        ("deploy rules", "Deploy rules: two reviewers", "Deploy rules: two reviewers"),
        ("Never", "- push\n- force", "Never: push; force"),
        ("", "push", "push"),
    ],
)
def test_a_text_follows_its_name_unless_it_begins_with_it(name: str, text: str, told: str) -> None:
    assert named(name, text) == told


def test_a_whole_text_keeps_its_lines() -> None:
    assert named("Never", "- push\n- force", whole=True) == "Never:\n- push\n- force"


def test_only_the_first_prompt_gets_the_memories_of_the_start() -> None:
    sessions = HookSessions()
    sessions.start(KEY, NOW, "/mill", ["a", "b"])
    assert sessions.take_prompt(KEY, NOW) == {"a", "b"}
    assert sessions.take_prompt(KEY, NOW) is None


def test_the_first_prompt_after_a_compaction_got_no_memories() -> None:
    sessions = HookSessions()
    sessions.start(KEY, NOW, "/mill", ["a"])
    sessions.take_prompt(KEY, NOW)
    sessions.compact(KEY, NOW)
    assert sessions.get(KEY, NOW).root == "/mill"
    assert sessions.take_prompt(KEY, NOW) == set()


def test_a_session_is_forgotten_at_its_end_and_after_a_day() -> None:
    sessions = HookSessions()
    sessions.start(KEY, NOW, "/mill", ["a"])
    assert sessions.get(KEY, after(hours=23)).root == "/mill"
    assert sessions.get(KEY, after(hours=25)).root == ""
    sessions.end(KEY)
    assert sessions.get(KEY, NOW).root == ""
