"""The public name of a server is kept in a file for its owner alone, and settings come before it."""

from pathlib import Path

import pytest

from kernel.core.config import Config
from kernel.core.errors import Fault
from kernel.core.exposure import FILE, Exposure, applied, read, write

NAME = Exposure("memory.example", ("10.0.0.1",))


def test_a_name_is_read_as_it_was_written(tmp_path: Path) -> None:
    write(tmp_path, NAME)
    assert read(tmp_path) == NAME
    assert (tmp_path / FILE).stat().st_mode & 0o077 == 0


def test_no_file_is_no_name(tmp_path: Path) -> None:
    assert read(tmp_path) is None


def test_a_damaged_file_is_refused_with_the_remedy(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("{", encoding="utf-8")
    with pytest.raises(Fault, match="`quipu expose --off` removes it"):
        read(tmp_path)


def test_a_name_adds_to_the_settings_and_replaces_none(tmp_path: Path) -> None:
    plain = applied(Config(tmp_path), NAME)
    assert (plain.public, plain.allowed_hosts[-1], plain.proxies) == (
        "https://memory.example",
        "memory.example",
        ("10.0.0.1",),
    )
    own = applied(Config(tmp_path, public="https://other.example", proxies=("10.0.0.9",)), NAME)
    assert (own.public, own.proxies) == ("https://other.example", ("10.0.0.9",))
