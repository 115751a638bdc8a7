"""The comparison of a checkout with the places that memories name: symbols by rule, and the ignored files."""

import os
import random
import time
from pathlib import Path

import pytest

from kernel.cli import witness

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
