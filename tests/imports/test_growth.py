"""An import takes time in proportion to what its source holds, however that is built."""

import tarfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import pytest

from kernel.core.errors import Fault
from tests.imports.harness import Shell
from tests.security.growth import MOST, Growth, spent

TOO_LONG = 30.0  # seconds
DOUBLINGS = 2


def archive_of_folders(folder: Path, count: int) -> Path:
    path, member = folder / "many.cogx.tar.gz", tarfile.TarInfo("folder")
    member.type = tarfile.DIRTYPE
    with tarfile.open(path, "w:gz", compresslevel=1) as archive:
        for _ in range(count * 4):
            archive.addfile(member)
    return path


def files_of_one_name(folder: Path, count: int) -> Path:
    for number in range(count // 8):
        (folder / f"part {number}").mkdir()
        links = " ".join(f"[[README]] [[part {number + at}/README]]" for at in range(10))
        (folder / f"part {number}" / "README.md").write_text(f"# Part {number}\n{links}\n", encoding="utf-8")
    return folder


def list_in_damaged_front_matter(folder: Path, count: int) -> Path:
    items = "- b\n" * (count * 4)
    (folder / "note.md").write_text(f"---\n&x *y\na:\n{items}---\nThe lamp.\n", encoding="utf-8")
    return folder


SHAPES: Mapping[str, tuple[str, Callable[[Path, int], Path]]] = {
    "an archive of folders": ("cogx", archive_of_folders),
    "files of one name": ("obsidian", files_of_one_name),
    "a list in damaged front matter": ("obsidian", list_in_damaged_front_matter),
}


@pytest.mark.parametrize("title", SHAPES)
def test_an_import_takes_time_in_proportion_to_its_source(title: str, shell: Shell, tmp_path: Path) -> None:
    kind, build = SHAPES[title]
    sizes, seconds = (600, 600 << DOUBLINGS), list[float]()
    for size in sizes:
        folder = tmp_path / f"{size}"
        folder.mkdir()
        source = build(folder, size)

        def look(source: Path = source) -> None:
            with suppress(Fault):  # of the archive, which holds no memory
                shell.run("import", kind, str(source), "--dry-run")

        seconds.append(min(spent(look, TOO_LONG) for _ in "ab"))
    assert Growth(sizes, seconds).worst <= MOST, Growth(sizes, seconds)
