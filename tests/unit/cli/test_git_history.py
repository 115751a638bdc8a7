"""The history of a checkout in git: commits that memories name, and files as they were when a memory was written."""

import os
import random
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from kernel.cli import witness

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")
BEGAN = int(time.time()) - 86_400  # git forgets the moves of a checkout after 90 days
NEVER = "0123456789abcdef"
LONG = "".join(f"value_{number} = {number}\n" for number in range(40))


class Repository:
    """A checkout that git has made, whose commits lie hours apart."""

    def __init__(self, root: Path, hour: int = 0) -> None:
        self.root = root
        self.hour = hour

    def git(self, *words: str) -> str:
        people = {f"GIT_{role}_{part}": "ann@web" for role in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")}
        date = f"{self.hour * 3600 + BEGAN} +0000"
        times = {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.root), "GIT_CONFIG_NOSYSTEM": "1"}
        done = subprocess.run(
            ["git", "-C", str(self.root), *words], capture_output=True, check=True, env=environment | people | times
        )
        return done.stdout.decode().strip()

    def commit(self, files: dict[str, str]) -> str:
        """Commit these files, an hour after the last commit, and return the hash."""
        self.hour += 1
        for name, text in files.items():
            (self.root / name).write_text(text, encoding="utf-8")
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "A change")
        return self.git("rev-parse", "HEAD")

    def sight(self, path: str, name: str, digest: str = "", *, hour: float = 0) -> tuple[str, str]:
        """The words for a place of a memory that was written at this hour, and the digest that is kept."""
        tree = witness.Tree(str(self.root), "web", 60)
        words = tree.words(1, hour * 3600 + BEGAN, [(path, name, 0, digest, "", "web" if digest else "")])
        return words, tree.news[0][4] if tree.news else digest


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    root = tmp_path / "web"
    root.mkdir()
    made = Repository(root)
    made.git("init", "--quiet")
    return made


def code(*lines: str) -> str:
    return "def load():\n" + "".join(f"    {line}\n" for line in lines) + LONG


@pytest.mark.parametrize("packed", [False, True])
def test_a_commit_is_there_or_gone(repository: Repository, packed: bool) -> None:
    first, second = repository.commit({"a.py": "x = 1\n"}), repository.commit({"a.py": "x = 2\n"})
    if packed:
        repository.git("gc", "--quiet")
    for commit in (first, first[:7], second[:12], second):
        assert repository.sight("", commit) == (witness.FRESH, f"{(first, second)[second.startswith(commit)][:16]}:::")
    assert repository.sight("", NEVER) == ("", "")  # of another repository, for all that can be seen
    met = f"{NEVER}:::"
    assert repository.sight("", NEVER[:8], met) == (f"gone now: {NEVER[:8]}", met)
    (repository.root / ".git" / "shallow").write_text(f"{second}\n", encoding="utf-8")
    assert repository.sight("", NEVER[:8], met) == ("", met)


def test_a_linked_checkout_has_the_commits_of_its_repository(repository: Repository) -> None:
    commit = repository.commit({"a.py": code("return 1")})
    linked = Repository(repository.root.with_name("linked"), repository.hour)
    repository.git("worktree", "add", "--quiet", str(linked.root), "-b", "work")
    assert linked.sight("", commit[:9])[0] == witness.FRESH
    linked.commit({"b.py": "x = 1\n"})
    linked.commit({"a.py": code("return 2")})
    assert linked.sight("a.py", "load", hour=1.5)[0] == "changed since: a.py load"


OTHER = code("return 3").replace("value", "other")


@pytest.mark.parametrize("packed", [False, True])
def test_a_change_before_the_first_meeting_is_seen(repository: Repository, packed: bool) -> None:
    repository.commit({"a.py": code("return 1"), "b.py": code("return 1"), "c.py": OTHER})
    repository.commit({"d.py": "x = 1\n"})
    repository.commit({"a.py": code("return 2"), "b.py": f"# A comment.\n{code('return 1')}"})
    (repository.root / "lib").mkdir()
    repository.git("mv", "c.py", "e.py")
    repository.git("mv", "d.py", "lib/d.py")
    repository.commit({"e.py": OTHER + "x = 3\n"})
    if packed:
        repository.git("gc", "--quiet")
    words, digest = repository.sight("a.py", "load", hour=1.5)
    assert words == "changed since: a.py load"
    assert repository.sight("a.py", "load", digest)[0] == words
    assert repository.sight("b.py", "load", hour=1.5)[0] == witness.FRESH
    assert repository.sight("b.py", "", hour=1.5)[0] == "changed since: b.py"
    assert repository.sight("c.py", "load", hour=1.5)[0] == "moved to e.py: c.py load"
    assert repository.sight("d.py", "", hour=2.5)[0] == "moved to lib/d.py: d.py"
    assert repository.sight("c.py", "load", hour=3.5)[0] == "moved to e.py: c.py load"
    assert repository.sight("a.py", "load", hour=3.5)[0] == witness.FRESH


def test_what_git_is_not_certain_of_is_not_said(repository: Repository) -> None:
    """A memory may be about a later commit, or about changes that were never committed."""
    repository.commit({"a.py": code("return 1"), "b.py": "x = 1\n"})
    repository.commit({"a.py": code("return 2")})
    repository.commit({"b.py": "x = 2\n"})
    for path, name, hour in (("a.py", "load", 1.5), ("a.py", "load", 0.5), ("b.py", "main", 1.5), ("c.py", "", 1.5)):
        assert repository.sight(path, name, hour=hour)[0] == "", (path, name, hour)
    (repository.root / "a.py").write_text(code("return 3"), encoding="utf-8")
    assert repository.sight("a.py", "load", hour=1.5)[0] == "changed since: a.py load"
    assert repository.sight("a.py", "load", hour=3.5)[0] == ""  # the change may be older than the memory
    (repository.root / ".git" / "logs" / "HEAD").unlink()
    assert repository.sight("a.py", "load", hour=1.5)[0] == ""


def test_a_file_is_followed_by_an_index_of_version_4(repository: Repository) -> None:
    names = {f"part_{letter}{number}.py": f"{letter} = {number}\n" for letter in "ab" for number in range(30)}
    repository.commit(names | {"a.py": code("return 1")})
    digest = repository.sight("a.py", "load")[1]
    (repository.root / "deep").mkdir()
    repository.git("mv", "a.py", "deep/part_a1.py")
    repository.git("update-index", "--index-version", "4")
    assert (repository.root / ".git" / "index").read_bytes()[:8] == b"DIRC\0\0\0\4"
    assert repository.sight("a.py", "load", digest)[0] == "moved to deep/part_a1.py: a.py load"


@pytest.mark.slow
def test_damaged_objects_tell_nothing_and_end(repository: Repository) -> None:
    repository.commit({"a.py": code("return 1")})
    repository.commit({"b.py": "x = 1\n"})
    commit = repository.commit({"a.py": code("return 2")})
    repository.git("gc", "--quiet")
    chooser = random.Random(1)
    for file in (repository.root / ".git").rglob("*"):
        if not file.is_file() or "hooks" in file.parts:
            continue
        content = file.read_bytes()
        file.chmod(0o600)
        for _ in range(8):
            at = chooser.randrange(len(content) + 1)
            file.write_bytes(
                content[:at] + chooser.randbytes(chooser.randrange(9)) + content[at + chooser.choice((0, 4)) :]
            )
            assert repository.sight("a.py", "load", hour=1.5)[0] in ("", witness.FRESH, "changed since: a.py load")
            assert repository.sight("", commit[:9])[0] in ("", witness.FRESH)
        file.write_bytes(content)
    assert repository.sight("a.py", "load", hour=1.5)[0] == "changed since: a.py load"
