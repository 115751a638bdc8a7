"""A path means a file of a configured project, or nothing."""

import os
from pathlib import Path

import pytest

from handlers.notes.projects import (
    Project,
    absolute,
    candidate_files,
    is_ambiguous,
    parse_roots,
    select_projects,
    space,
)
from kernel.core.config import Config
from kernel.core.errors import Fault
from kernel.server.app import open_kernel

WEB, BLOG = Project("web", Path("/srv/web")), Project("blog", Path("/srv/blog"))


@pytest.mark.parametrize(
    ("given", "projects"),
    [
        ("/srv/web", (WEB,)),
        ("web=/srv/web/:/srv/blog", (WEB, BLOG)),
        (" a b = /x/../srv/web : : /k=v/c ", (Project("a b", Path("/srv/web")), Project("c", Path("/k=v/c")))),
        ("/", (Project("default", Path("/")),)),
    ],
)
def test_projects_are_folders_with_names(given: str, projects: tuple[Project, ...]) -> None:
    assert parse_roots(given) == projects


def test_a_home_folder_is_that_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    assert parse_roots("~/web") == (Project("web", Path("/home/ada/web")),)


@pytest.mark.parametrize("given", ["web", ":", "a=b", "/a/web:/b/web", "x=/a:x=/b", "./web"])
def test_a_wrong_setting_stops_the_start_and_is_named(tmp_path: Path, given: str) -> None:
    with pytest.raises(Fault, match=r"^QUIPU_NOTES_ROOTS is (absolute )?folders"):
        open_kernel(Config(data=tmp_path, environment={"QUIPU_NOTES_ROOTS": given}))


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("/srv/web/.mnemonics/learning/a.md", [(WEB, "learning/a.md")]),
        ("/srv/blog/.mnemonics/a.md", [(BLOG, "a.md")]),
        ("/srv/web/.mnemonics/x/../learning//./a.md", [(WEB, "learning/a.md")]),
        ("/srv/web/.mnemonics", [(WEB, "")]),
    ],
)
def test_an_absolute_path_is_that_of_one_project(given: str, found: list[tuple[Project, str]]) -> None:
    assert candidate_files((WEB, BLOG), given) == found


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ("learning/a.md", "learning/a.md"),
        (".mnemonics/learning/a.md", "learning/a.md"),
        ("./learning/../issue/a.md", "issue/a.md"),
        ("qmd://learning/a.md", "learning/a.md"),
        ("", ""),
    ],
)
def test_a_relative_or_virtual_path_needs_one_project(given: str, path: str) -> None:
    assert candidate_files((WEB,), given) == [(WEB, path)]
    assert candidate_files((WEB, BLOG), given) == []
    assert [is_ambiguous((WEB,), given), is_ambiguous((WEB, BLOG), given)] == [False, True]


@pytest.mark.parametrize(
    "given",
    [
        "/etc/passwd",
        "/srv/web/.mnemonics-evil/a.md",
        "/srv/web/.mnemonics/../a.md",
        "/srv/web/a.md",
        "..",
        "../a.md",
        "learning/../../a.md",
        ".mnemonics/../../a.md",
        "qmd://../a.md",
        "qmd:///etc/passwd",
        "qmd://a/../../b.md",
        "/srv/web/.mnemonics/../../blog/.mnemonicsx/a.md",
        "a\0.md",
        "/srv/web/.mnemonics/a\0.md",
        "//srv/other/a.md",
    ],
)
def test_path_outside_is_no_candidate(given: str) -> None:
    assert candidate_files((WEB, BLOG), given) == candidate_files((WEB,), given) == []


def test_a_root_behind_a_link_is_known_by_both_its_names(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "alias").symlink_to("real")
    project = Project("p", tmp_path / "alias")
    for name in ("real", "alias"):
        assert candidate_files((project,), str(tmp_path / name / ".mnemonics" / "a.md")) == [(project, "a.md")]


def test_projects_are_picked_by_name() -> None:
    assert select_projects((WEB, BLOG), "") == (WEB, BLOG)
    assert select_projects((WEB, BLOG), "blog") == [BLOG]
    with pytest.raises(Fault, match=r'^Invalid project: "x"\. Must be one of: web, blog\.$'):
        select_projects((WEB, BLOG), "x")


def test_a_project_has_a_space_of_its_own_and_a_file_a_whole_path() -> None:
    assert space("web") == "notes:web"
    assert absolute(WEB, "learning/a.md") == os.path.join("/srv/web", ".mnemonics", "learning", "a.md")  # noqa: PTH118
