"""Files of Markdown that are damaged at random: none refuses an import, and none takes a good file with it."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from kernel.core.errors import Fault
from tests.imports.harness import Shell

PAGE = (
    "---\ntitle: {0}\ntags: ['#a', 7]\ncreated: 2024-01-02\naliases: [{0} too]\n---\n# {0}\n\n- [fact] {0} is here #b\n"
    "- knows [[Page 1|one]] and [two](p2.md) %%no%%\n\n```\n# code\n```\n\n## Part\npassword: {{{{ vault }}}}\n"
)
Damage = Callable[[random.Random, bytes], bytes]


def lines_mixed(chance: random.Random, data: bytes) -> bytes:
    lines = data.split(b"\n")
    chance.shuffle(lines)
    return b"\n".join(lines)


DAMAGES: tuple[Damage, ...] = (
    lambda chance, data: data[: chance.randrange(len(data))],
    lambda chance, data: data[chance.randrange(len(data)) :],
    lambda chance, data: data * chance.randrange(2, 5),
    lines_mixed,
    lambda chance, data: bytes(byte ^ (chance.random() < 0.02) * chance.randrange(256) for byte in data),
    lambda chance, data: data.decode().encode(chance.choice(["utf-16", "utf-32", "cp037"])),
    lambda chance, data: b"\xef\xbb\xbf" + data.replace(b"\n", b"\r\n"),
    lambda chance, data: data.replace(b" ", b" " + chance.choice([b"\0", b"\xed\xa0\xbd", b"\x1b", b"<private>"]), 3),
    lambda chance, data: data + chance.choice([b"[", b"[[", b"%%", b"<!--", b"`", b"> ", b"- ", b"#", b"|"]) * 20_000,
    lambda chance, data: b"---\n" + b"a: [" * chance.randrange(40, 400) + b"\n---\n" + data,
    lambda chance, data: data.replace(b"'#a', 7", b"null, {x: [null]}, true, ''").replace(b"2024-01-02", b"null"),
    lambda chance, data: b"",
)


@pytest.mark.parametrize("kind", ["obsidian", "basic-memory", "okf", "claude-code", "codex", "rules"])
def test_damage_is_named_and_no_good_file_is_lost(kind: str, shell: Shell, tmp_path: Path) -> None:
    chance = random.Random(kind)
    below = {"claude-code": "memory", "codex": "source/rollout_summaries", "rules": "source/.claude/rules"}
    folder = tmp_path / below.get(kind, "source")
    folder.mkdir(parents=True)
    for number, damage in enumerate(DAMAGES * 2):
        (folder / f"bad{number}.md").write_bytes(damage(chance, PAGE.format(f"Bad {number}").encode()))
    for number in range(4):
        (folder / f"p{number}.md").write_text(PAGE.format(f"Page {number}"), encoding="utf-8")
    source = folder if kind == "claude-code" else tmp_path / "source"
    done = shell.bring_kind(kind, source)
    with pytest.raises(Fault, match=r"bad\d+\.md: is no"):
        shell.run("import", kind, str(source), "--strict")
    exported = shell.export().read_text(encoding="utf-8")
    for number in range(4):
        assert f"Page {number} is here #b" in exported
    assert done["counts"]["left out"] == sum(int(line.split()[2]) for line in done["remarks"])
    files = done["counts"].get("notes", 0) + done["counts"]["left out"]
    assert kind == "rules" or files >= len(DAMAGES) * 2 + 4
    again = shell.bring_kind(kind, source)["counts"]
    assert {name for name, count in again.items() if count} <= {"already there", "left out", "repeated"}
    assert again["already there"] + again.get("repeated", 0) == (
        sum(done["counts"].values()) - done["counts"]["left out"]
    )
