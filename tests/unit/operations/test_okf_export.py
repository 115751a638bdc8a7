"""The files of a bundle have names that every file system takes, and that stay different."""

import pytest

from kernel.operations.okf_export import folder_of, safe_name


@pytest.mark.parametrize("name", ["mill", "mill-wheel", "a1"])
def test_a_safe_name_stays(name: str) -> None:
    assert safe_name(name) == name


@pytest.mark.parametrize(
    ("name", "begin"),
    [("Mill", "mill-"), ("../etc", "etc-"), ("con", "con-"), ("日本", "memory-"), ("a" * 300, "aaa")],
)
def test_another_name_gets_a_digest(name: str, begin: str) -> None:
    safe = safe_name(name)
    assert safe.startswith(begin)
    assert safe != name
    assert len(safe) < 100
    assert set(safe) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")


def test_names_that_look_alike_stay_different() -> None:
    assert len({safe_name(name) for name in ("mill", "Mill", "MILL", "mill ")}) == 4


def test_a_space_and_its_scope_are_folders() -> None:
    assert folder_of("brain:core", "mill") == "brain/core/mill"
    assert folder_of("paths", "") == "paths"
