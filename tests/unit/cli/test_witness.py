"""The comparison of a checkout with the places that memories name: symbols by rule, and the ignored files."""

import os
import random
import time
import zlib
from collections.abc import Sequence
from pathlib import Path

import pytest

from kernel.cli import witness
from tests.security.growth import KIB, growth

FILES = {
    "a.py": (
        "parse",
        "class A:\n    def parse(\n        self,\n    ) -> int:\n        return 1\n\n    x = 1\n",
        "return 1",
    ),
    "b.py": ("Reader.open", "class Reader:\n    def open(self):\n        pass\n\n\ndef open():\n    x()\n", "pass"),
    "c.go": ("Open", "func (r *Reader) Open(name string) error {\n\treturn nil\n}\n\nvar x = 1\n", "return nil"),
    "d.rs": (
        "host",
        "impl X {\n    pub(crate) fn host(&self) -> u8 {\n        1\n    }\n    const Y: u8 = 1;\n}\n",
        "        1",
    ),
    "e.js": ("send", "class X {\n  send(a) {\n    go(a)\n  }\n  y = 1\n}\n", "go(a)"),
    "f.ts": ("load", "export const load = async () => {\n  go()\n}\nexport const x = 1\n", "go()"),
    "g.c": ("total", "static int\ntotal(int a)\n{\n    return a;\n}\nint x = 1;\n", "return a"),
    "h.java": ("size", "class X {\n    public int size() {\n        return n;\n    }\n    int x = 1;\n}\n", "return n"),
    "package.json": ("build", '{\n  "scripts": {\n    "build": "vite",\n    "x = 1": ""\n  }\n}\n', "vite"),
    "Makefile": ("check", "check: all\n\tpytest\n\nx = 1\n", "pytest"),
}


def judged(root: Path, name: str, symbol: str = "", digest: str = "", **more: float) -> tuple[str, str]:
    """The words for a place, and its digest."""
    tree = witness.Tree(str(root), "web", more.get("seconds", 60))
    words = tree.words(1, time.time() + 60, [(name, symbol, 0, digest, "", "web" if digest else "")])
    return words, tree.news[0][4] if tree.news else digest


@pytest.mark.parametrize("name", FILES)
def test_a_symbol_changes_with_its_lines_and_with_no_others(name: str, tmp_path: Path) -> None:
    symbol, text, inside = FILES[name]
    file = tmp_path / name
    file.write_text(text, encoding="utf-8")
    words, digest = judged(tmp_path, name, symbol)
    assert words == witness.FRESH
    file.write_text(f"\n{text.replace('x = 1', 'x = 2')}", encoding="utf-8")
    assert judged(tmp_path, name, symbol, digest)[0] == witness.FRESH
    file.write_text(text.replace(inside, f"{inside} and more"), encoding="utf-8")
    assert judged(tmp_path, name, symbol, digest)[0] == f"changed since: {name} {symbol}"
    file.write_text("nothing\n", encoding="utf-8")
    assert judged(tmp_path, name, symbol, digest)[0] == f"gone now: {name} {symbol}"


@pytest.mark.skipif(os.name == "nt", reason="links take a right there")
def test_links_secrets_and_files_elsewhere_are_not_looked_at(tmp_path: Path) -> None:
    root = tmp_path / "web"
    (root / "src").mkdir(parents=True)
    (tmp_path / "out.py").write_text("x = 1\n", encoding="utf-8")
    (root / "src" / "link.py").symlink_to(tmp_path / "out.py")
    (root / "away").symlink_to(tmp_path)
    for name in (".env", "src/.env.local", "tls.key", ".git/config"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text("x = 1\n", encoding="utf-8")
    for name in ("src/link.py", "away/out.py", str(tmp_path / "out.py"), ".env", "src/.env.local", "tls.key"):
        assert judged(root, name) == ("", ""), name
    assert judged(root, ".git/config") == ("", "")
    assert judged(root, str(root / "src" / "gone.py"))[0] == "gone now: gone.py"


@pytest.mark.slow
def test_a_damaged_index_is_no_index(tmp_path: Path) -> None:
    chooser = random.Random(1)
    index = tmp_path / ".git" / "index"
    index.parent.mkdir()
    for _ in range(300):
        noise = chooser.randbytes(chooser.randrange(200)).replace(b"\1", b"a.py\0")
        index.write_bytes(b"DIRC\0\0\0" + bytes([chooser.choice((2, 3, 4))]) + noise + b"/a.py\0" + noise)
        assert judged(tmp_path, "src/a.py", digest=f"{'61' * 8}:::")[0].startswith((witness.GONE, witness.MOVED))


def test_there_is_an_end_to_the_time_and_to_the_files(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n", encoding="utf-8")
    assert judged(tmp_path, "a.py", seconds=-1) == ("", "")
    tree = witness.Tree(str(tmp_path), "web", 60)
    places = [("a.py", "", 0, "", "", "")]
    assert [tree.words(1, time.time() + 60, places) for _ in range(65)] == [witness.FRESH] * 64 + [""]


def test_a_long_line_is_searched_in_proportion_to_its_length(tmp_path: Path) -> None:
    """Such as a file without line ends that a program has written, which names a symbol thousands of times."""

    def look(text: str) -> tuple[str, str]:
        (tmp_path / "app.js").write_text(text, encoding="utf-8")
        return judged(tmp_path, "app.js", "render")

    def made(size: int) -> str:
        return "render(x),t=1;" * (size // 14)

    grown = growth(look, made, (4 * KIB, 64 * KIB, 1024 * KIB))
    assert grown.linear, str(grown)
    assert look(f"function render(x){{}};{made(64 * KIB)}")[0] == witness.FRESH


def test_a_line_or_symbol_that_is_far_away_ends_with_the_time(tmp_path: Path) -> None:
    (tmp_path / "long.py").write_text("class a:\n" * 100_000, encoding="utf-8")
    digest = f"{'0' * 16}:0123456789abcdef::"
    for places in ([("long.py", ".".join("a" * 16), 0, "", "", "")], [("long.py", "", 7, digest, "", "web")]):
        begun = time.process_time()
        assert witness.Tree(str(tmp_path), "web").words(1, time.time() + 60, places) == ""
        assert time.process_time() - begun < 0.5


def test_an_index_with_a_path_that_no_system_has_is_no_index(tmp_path: Path) -> None:
    """Its entries repeat the path of the one before, so that the whole would be hundreds of times as large."""
    index = tmp_path / ".git" / "index"
    index.parent.mkdir()
    entries = bytes(62) + b"\0" + b"src/" * KIB * KIB + b"/a.py\0" + (bytes(62) + b"\0b\0") * 499
    index.write_bytes(b"DIRC\0\0\0\4" + (500).to_bytes(4) + entries)
    begun = time.process_time()
    assert judged(tmp_path, "src/a.py", digest=f"{'61' * 8}:::")[0] == "gone now: a.py"
    assert time.process_time() - begun < 0.5


NAME = "ab" * 20
PLACES = [("src/a.py", "", 0, "", "", "")]
SIZES_OF_A_MEGABYTE = b"\x80\x80\x40" * 2


def packed(root: Path, objects: Sequence[bytes], offset: int | None = None) -> Path:
    """A checkout with a pack: an object and differences, each to the one before; `offset` is said of the last."""
    pack, places = b"PACK\0\0\0\2" + len(objects).to_bytes(4), [0]
    for number, content in enumerate(objects):
        places.append(len(pack))
        size, head = len(content) >> 4, [(6 if number else 1) << 4 | len(content) & 15]
        while size:
            head[-1] |= 0x80
            head.append(size & 0x7F)
            size >>= 7
        back = len(pack) - places[-2]
        bases = [back & 0x7F]
        while back := back >> 7:
            back -= 1
            bases.insert(0, back & 0x7F | 0x80)
        pack += bytes([*head, *(bases if number else [])]) + zlib.compress(content)
    fan = b"".join(int(first >= 0xAB).to_bytes(4) for first in range(256))
    place = places[-1].to_bytes(4) if offset is None else b"\x80\0\0\0" + offset.to_bytes(8)
    for name, content in {
        "objects/pack/x.pack": pack,
        "objects/pack/x.idx": b"\xfftOc\0\0\0\2" + fan + bytes.fromhex(NAME) + bytes(4) + place,
        "logs/HEAD": f"{'0' * 40} {NAME} Ann <ann@web> 1000 +0000\tcommit\n".encode(),
    }.items():
        file = root / ".git" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    (root / "src").mkdir(exist_ok=True)
    return root


@pytest.mark.parametrize("offset", [1 << 63, (1 << 64) - 1])
def test_an_index_of_a_pack_that_points_beyond_any_file_says_nothing(offset: int, tmp_path: Path) -> None:
    tree = witness.Tree(str(packed(tmp_path, [b"x"], offset)), "web", 60)
    assert tree.words(1, 1e9, PLACES) == "gone now: a.py"


@pytest.mark.parametrize("orders", [b"\0" * (1 << 20), b"\x91\0\1" * (1 << 18)], ids=["empty", "short"])
def test_objects_of_a_million_parts_end_with_the_time(orders: bytes, tmp_path: Path) -> None:
    delta = SIZES_OF_A_MEGABYTE + orders[: (1 << 20) - len(SIZES_OF_A_MEGABYTE)]
    tree = witness.Tree(str(packed(tmp_path, [b"a" * (1 << 20), delta])), "web", 0.1)
    begun = time.process_time()
    assert tree.words(1, 1e9, PLACES) == ""
    assert time.process_time() - begun < 0.3


def test_a_search_of_thousands_of_packs_ends_with_the_time(tmp_path: Path) -> None:
    packed(tmp_path, [b"x"])
    for number in range(3000):
        index = tmp_path / ".git" / "objects" / "pack" / f"{number}.idx"
        index.write_bytes(b"\xfftOc\0\0\0\2" + bytes(1024))
    tree = witness.Tree(str(tmp_path), "web")
    begun = time.process_time()
    tree.words(1, 1e9, [("", "ff" * 20, 0, "", "", "")])
    assert time.process_time() - begun < 0.5
