"""Judge statements about files of repositories that were true at an old commit, at the newest.

`python -m loadtests.quality.witness GIT_FOLDER ...` makes the statements by rule at a commit some hundred before the
newest, lets the witness of the hooks meet them there, and compares its words at the newest commit with the truth, which
git and the parser of Python tell. Nothing of the repositories is kept.
"""

import argparse
import ast
import random
import re
import shutil
import subprocess
import tempfile
import textwrap
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from kernel.cli import witness
from kernel.memories.witness import citations_of

_SOURCES = (".py", ".go", ".rs", ".js", ".md", ".toml", ".yml", ".json")
_HEADS = {
    ".go": re.compile(r"^func (?:\([^)]*\) )?(\w+)\(.*\{$", re.MULTILINE),
    ".rs": re.compile(r"^[ ]*(?:pub(?:\([^)]*\))? )?(?:const )?(?:unsafe )?fn (\w+).*\{$", re.MULTILINE),
    ".js": re.compile(r"^[ ]*(?:export )?(?:default )?(?:async )?function (\w+)\(.*\{$", re.MULTILINE),
}
_RENAMED = 20  # files of a repository that were renamed, on top of the sample


class Statement(NamedTuple):
    """A text that was true at the old commit, whether it is stale, and where its file is now, if it was renamed."""

    text: str
    stale: bool
    renamed: str


class Score(NamedTuple):
    """The numbers of statements: all, stale, called stale, both, renamed, followed, and microseconds for all."""

    all: int = 0
    stale: int = 0
    called: int = 0
    right: int = 0
    renamed: int = 0
    followed: int = 0
    microseconds: int = 0

    def row(self, name: str) -> str:
        recall, precision = self.right / max(1, self.stale), self.right / max(1, self.called)
        follows = f"{self.followed}/{self.renamed}"
        ms = self.microseconds / 1000 / max(1, self.all)
        return f"{name:24} {self.all:5} {self.stale:5} {recall:8.3f} {precision:9.3f} {follows:>9} {ms:8.2f}"


def git(folder: Path, *words: str, **options: str) -> bytes:
    done = subprocess.run(["git", f"--git-dir={folder}", *words], capture_output=True, check=True, env=options or None)
    return done.stdout


def symbols(path: str, text: str) -> Mapping[str, str]:
    """Return the text of each function that a file defines once."""
    if path.endswith(".py"):
        try:
            tree = ast.parse(text)
        except SyntaxError:
            return {}
        pairs = list(_of_python(tree, text, ""))
    else:
        head = _HEADS.get(Path(path).suffix)
        pairs = [(match[1], _to_brace(text, match)) for match in head.finditer(text)] if head else []
    names = [name for name, _ in pairs]
    return {name: body for name, body in pairs if names.count(name) == 1}


def _of_python(node: ast.AST, text: str, within: str) -> Iterator[tuple[str, str]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            body = textwrap.dedent("\n".join(text.splitlines()[child.lineno - 1 : child.end_lineno]))
            yield f"{within}{child.name}", body
            if isinstance(child, ast.ClassDef) and not within:
                yield from _of_python(child, text, f"{child.name}.")


def _to_brace(text: str, match: re.Match[str]) -> str:
    """Return the lines up to the brace at the indent of the first."""
    indent = re.match(r"\s*", match[0])
    end = re.compile(rf"^{indent[0] if indent else ''}\}}", re.MULTILINE).search(text, match.end())
    return textwrap.dedent(text[match.start() : end.end() if end else len(text)])


def statements(folder: Path, old: str, new: str, size: int, seed: int) -> list[Statement]:
    """Return a sample of statements about symbols, lines and files, and further ones about files that were renamed."""
    at_old, at_new = blobs(folder, old), blobs(folder, new)
    lines = git(folder, "diff", "-M", "--diff-filter=R", "--name-status", "-z", old, new).decode().split("\0")
    renamed = dict(zip(lines[1::3], lines[2::3], strict=False))
    chooser = random.Random(seed)
    paths = [path for path in at_old if path.endswith(_SOURCES) and path.isascii() and " " not in path]
    sample = chooser.sample(paths, min(size, len(paths)))
    chosen = [_statement(folder, path, at_old, at_new, renamed, chooser) for path in sample]
    more = chooser.sample(sorted(set(renamed) & set(paths)), min(_RENAMED, len(set(renamed) & set(paths))))
    return chosen + [Statement(f"See {path} for this.", True, renamed[path]) for path in more]


def _statement(
    folder: Path,
    path: str,
    at_old: Mapping[str, str],
    at_new: Mapping[str, str],
    renamed: Mapping[str, str],
    chooser: random.Random,
) -> Statement:
    text = git(folder, "cat-file", "blob", at_old[path]).decode(errors="replace")
    later = git(folder, "cat-file", "blob", at_new[path]).decode(errors="replace") if path in at_new else ""
    named, where = symbols(path, text), renamed.get(path, "") if path not in at_new else ""
    if named and chooser.random() < 0.7:
        name = chooser.choice(sorted(named))
        return Statement(f"`{name}()` in {path} does it.", symbols(path, later).get(name) != named[name], where)
    rows = [number for number, row in enumerate(text.splitlines(), 1) if len(row.strip()) > 20]
    if rows and chooser.random() < 0.3:
        line = chooser.choice(rows)
        row = text.splitlines()[line - 1].strip()
        return Statement(f"It is set at {path}:{line}.", row not in map(str.strip, later.splitlines()), where)
    return Statement(f"See {path} for this.", at_new.get(path) != at_old[path], where)


def blobs(folder: Path, commit: str) -> dict[str, str]:
    """Return the hash of each ordinary file."""
    rows = (row.split("\t", 1) for row in git(folder, "ls-tree", "-rz", commit).decode(errors="replace").split("\0"))
    return {row[1]: row[0].split()[2] for row in rows if len(row) == 2 and row[0].startswith("100")}


def judge(folder: Path, back: int, size: int, seed: int, *, late: bool) -> tuple[Score, list[str]]:
    """Return the score of the witness in a repository, and the statements that it judges wrong.

    It meets them at the old commit, or if `late` at the newest alone, where the history of git tells of the old.
    """
    commits = git(folder, "rev-list", "--first-parent", "HEAD").decode().split()[: back + 1]
    old, new = commits[-1], commits[0]
    said = statements(folder, old, new, size, seed)
    with tempfile.TemporaryDirectory() as place:
        root = Path(place).resolve()
        check_out(folder, root, new if late else old)
        places: list[list[witness.Place]] = [
            [(place.path, place.name, place.line, "", "", "") for place in citations_of(one.text)] for one in said
        ]
        if late:
            shutil.copytree(folder / "objects", root / ".git" / "objects")
            moves = zip(commits[::-1], commits[-2::-1], range(len(commits)), strict=False)
            lines = [f"{before} {after} a <a@b.c> {at} +0000\tcommit: x\n" for before, after, at in moves]
            (root / ".git" / "logs").mkdir()
            (root / ".git" / "logs" / "HEAD").write_text("".join(lines), encoding="utf-8")
        else:
            tree = witness.Tree(str(root), "it", 600, 10**9)
            for number, one in enumerate(places):
                tree.words(number, time.time() + 60, one)
            for number, path, name, line, digest, state in tree.news:
                places[number] = [(path, name, line, digest, state, "it")]
            check_out(folder, root, new)
        tree = witness.Tree(str(root), "it", 600, 10**9)
        begun = time.process_time()
        words = [tree.words(number, -1, one) for number, one in enumerate(places)]
        seconds = time.process_time() - begun
    return _score(said, words, round(1e6 * seconds)), [
        f"{one.text} {one.renamed} -> {word or '(nothing)'}"
        for one, word in zip(said, words, strict=True)
        if one.stale != is_stale(word) or (one.renamed and f"{witness.MOVED}{one.renamed}:" not in word)
    ]


def is_stale(word: str) -> bool:
    return bool(word) and word != witness.FRESH


def _score(said: Sequence[Statement], words: Sequence[str], microseconds: int) -> Score:
    pairs = list(zip(said, words, strict=True))
    return Score(
        len(pairs),
        sum(one.stale for one, _ in pairs),
        sum(is_stale(word) for _, word in pairs),
        sum(one.stale and is_stale(word) for one, word in pairs),
        sum(bool(one.renamed) for one, _ in pairs),
        sum(bool(one.renamed) and f"{witness.MOVED}{one.renamed}:" in word for one, word in pairs),
        microseconds,
    )


def check_out(folder: Path, root: Path, commit: str) -> None:
    """Make a folder the checkout of a commit, with an index of git."""
    index = root / ".git" / "index"
    index.parent.mkdir(exist_ok=True)
    options = {"GIT_INDEX_FILE": str(index), "GIT_WORK_TREE": str(root), "PATH": "/usr/bin:/bin"}
    git(folder, "read-tree", "--reset", "-u", commit, **options)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("folders", nargs="+", type=Path, help="git folders of the repositories")
    arguments.add_argument("--back", type=int, default=400, help="commits before the newest (400)")
    arguments.add_argument("--size", type=int, default=200, help="statements of each repository (200)")
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--late", action="store_true", help="meet the statements at the newest commit alone")
    arguments.add_argument("--wrong", action="store_true", help="print what is judged wrong")
    given = arguments.parse_args()
    print(f"{'repository':24} {'all':>5} {'stale':>5} {'recall':>8} {'precision':>9} {'followed':>9} {'ms each':>8}")
    total = Score()
    for folder in given.folders:
        score, wrong = judge(folder, given.back, given.size, given.seed, late=given.late)
        print(score.row(folder.parent.name[-24:]), *(wrong if given.wrong else ()), sep="\n  ", flush=True)
        total = Score(*map(sum, zip(total, score, strict=True)))
    print(total.row("all"))


if __name__ == "__main__":
    main()
