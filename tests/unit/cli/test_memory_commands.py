"""The commands for memories on the file: their output, their refusals, and the state after a refusal."""

import json
import shlex
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from kernel.cli.main import main
from kernel.core.times import WORDINGS
from kernel.server.app import Kernel
from tests.conftest import Call

Quipu = Callable[..., tuple[int, str, str]]
HOSTILE = "red \x1b[31m bell \x07 csi \x9b31m turned \u202e end"


@pytest.fixture
def quipu(kernel: Kernel, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Quipu:
    """Runs a command line on the data directory of the test: exit status, output, remarks."""
    monkeypatch.setenv("QUIPU_DATA", str(kernel.config.data))
    monkeypatch.setenv("QUIPU_MODEL", "none")
    folder = tmp_path / "typed"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))

    def run(*arguments: str) -> tuple[int, str, str]:
        status = main(list(arguments))
        shown = capsys.readouterr()
        return status, shown.out, shown.err

    return run


def typed(tmp_path: Path) -> list[str]:
    """Return the kept texts of people."""
    return [file.read_text(encoding="utf-8") for file in (tmp_path / "typed").iterdir()]


def test_recall_shows_id_strength_and_text(quipu: Quipu, call: Call) -> None:
    call("add_memory", path="car", content="The automobile\nis red")
    status, shown, _ = quipu("recall", "red", "automobile")
    head, *lines = shown.splitlines()
    assert (status, head.split("  ")[:2], lines) == (
        0,
        ["paths/car", "may answer"],
        ["  car", "  The automobile", "  is red"],
    )
    hit = json.loads(quipu("recall", "red", "automobile", "--json")[1])
    assert (hit["verdict"], 0 < hit["strength"] < 0.93, hit["score"]) == ("weak", True, 1.0)


def test_nothing_found_is_status_1_and_a_remark(quipu: Quipu, call: Call) -> None:
    empty = "nothing is stored yet; `quipu add TEXT` adds a memory\n"
    for words in (["recall", "nothing"], ["list"], ["list", "--since", "7d"]):
        assert quipu(*words) == (1, "", empty)
    call("add_memory", path="car", content="The automobile is red")
    for words in (["recall", "walrus"], ["list", "--dialect", "graph"]):
        assert quipu(*words) == (1, "", "nothing found\n")


def test_an_empty_question_is_answered_with_the_command_that_lists(quipu: Quipu) -> None:
    answer = (1, "", "quipu: query: is empty; `quipu list` shows the newest memories.\n")
    assert (quipu("recall", ""), quipu("recall", "  ", "")) == (answer, answer)


@pytest.mark.parametrize("command", ["show", "history", "forget"])
def test_unknown_id_is_status_1_and_names_it(quipu: Quipu, command: str) -> None:
    status, shown, remark = quipu(command, "paths/none")
    assert (status, shown, "paths/none" in remark) == (1, "", True)


def test_an_expired_memory_is_listed_but_no_answer(quipu: Quipu, call: Call) -> None:
    call("save_memory", db="core", content="The stork permit is 12", category="fact", valid_until="2020-01-01")

    call("save_memory", db="core", content="The stork permit is 14", category="fact", valid_until="2999-01-01")

    lines = [line.split("  ")[2:] for line in quipu("list")[1].splitlines()]
    assert lines == [["The stork permit is 14"], ["expired", "The stork permit is 12"]]
    assert "The stork permit is 12" not in quipu("recall", "stork", "permit")[1]


def test_nothing_that_holds_is_told_from_nothing_at_all(quipu: Quipu, call: Call) -> None:
    call("save_memory", db="core", content="The stork permit is 12", category="fact", valid_until="2020-01-01")

    assert quipu("recall", "stork", "permit")[::2] == (1, "nothing that holds today; --expired shows what did\n")
    status, hits, _ = quipu("recall", "stork", "permit", "--expired")
    assert (status, "expired" in hits.splitlines()[0], "The stork permit is 12" in hits) == (0, True, True)
    assert quipu("recall", "walrus", "opera")[::2] == (1, "nothing found\n")


@pytest.mark.parametrize("dialect", ["brain", "scopes"])
def test_an_added_memory_is_no_answer_after_its_end(quipu: Quipu, dialect: str) -> None:
    for until, status in (("2020-01-01", 1), ("2999-01-01", 0)):
        added = quipu("add", f"The stork permit of {until} is 12", "--dialect", dialect, "--until", until)
        assert added[0] == 0, added
        assert quipu("recall", "stork", "permit")[0] == status


def test_an_end_that_cannot_be_kept_is_refused_and_adds_nothing(quipu: Quipu) -> None:
    for dialect, until, words in (
        ("paths", "2020-01-01", "until: add_memory"),
        ("brain", "soon", "--until must be a time such as"),
    ):
        status, _, remark = quipu("add", "The stork permit is 12", "--dialect", dialect, "--until", until)
        assert (status, words in remark) == (1, True), remark
    assert quipu("list")[0] == 1


def test_an_end_is_typed_as_any_time(quipu: Quipu) -> None:
    added = json.loads(quipu("add", "The stork permit is 12", "--dialect", "brain", "--json")[1])["id"]
    past = ("yesterday at 8:30", "2 weeks ago")
    for until in (*past, "7d", *past, "tomorrow", *past, "monday", *past, "2999-01-01"):
        assert quipu("edit", added, "--until", until)[0] == 0
        assert quipu("recall", "stork", "permit")[0] == int(until in past)


@pytest.mark.slow
def test_list_is_the_newest_first_within_its_filters(quipu: Quipu, call: Call) -> None:
    for path in ("a", "b", "c"):
        call("add_memory", path=path, content=f"text of {path}")
    call("save_memory", db="core", content="a fact", category="fact")
    ids = [json.loads(line)["id"] for line in quipu("list", "--json", "--dialect", "paths")[1].splitlines()]
    assert ids == ["paths/c", "paths/b", "paths/a"]
    assert len(quipu("list", "--limit", "2")[1].splitlines()) == 2
    assert quipu("list", "--since", "2999-01-01")[0] == 1
    for age in ("999999d", "0d"):
        assert len(quipu("list", "--since", age)[1].splitlines()) == (4 if age == "999999d" else 0)
    assert quipu("recall", "text", "--since", "999999d")[0] == 0
    for day in ("yesterday", "1w", "two days", "monday"):
        assert len(quipu("list", "--since", day)[1].splitlines()) == (0 if day == "two days" else 4)
    for wrong in ("2026-13-01", "two days", "tomorrow", ""):
        status, _, error = quipu("list", "--since", wrong)
        assert (status, error) == ((0, "") if not wrong else (1, f"quipu: --since must be {WORDINGS}.\n"))


def test_a_name_that_is_taken_is_answered_with_the_command_that_edits_it(quipu: Quipu) -> None:
    assert quipu("add", "red", "--name", "car")[0] == 0
    assert quipu("add", "blue", "--name", "car") == (
        1,
        "",
        "quipu: There is paths/car already: `quipu edit paths/car` changes it.\n",
    )
    assert json.loads(quipu("show", "car", "--json")[1])["text"] == "red"


@pytest.mark.parametrize(
    ("dialect", "text", "name", "reason"),
    [
        ("graph", "red", ["--name", "my car"], "graph/my car is there already"),
        ("notes", "red", ["--name", "my car"], "a memory with this name and text is there already"),
        ("sessions", "password: zX9-pelican-42", [], "sensitive: content"),
    ],
)
def test_an_addition_that_adds_nothing_says_why(
    quipu: Quipu, dialect: str, text: str, name: list[str], reason: str
) -> None:
    for _ in range(2):
        answer = quipu("add", text, "--dialect", dialect, *name)
    assert answer == (1, "", f"quipu: Nothing was added: {reason}.\n")


@pytest.mark.slow
def test_a_memory_is_named_by_its_key_or_the_beginning_of_its_id(quipu: Quipu, call: Call) -> None:
    for path in ("infra/deploy", "infra/deploys", "infra/backup", "x"):
        call("add_memory", path=path, content=f"text of {path}")
    call("save_memory", db="core", content="a fact", category="fact")
    (fact,) = (json.loads(line)["id"] for line in quipu("list", "--json", "--dialect", "brain")[1].splitlines())
    for typed, id_ in (
        ("infra/deploy", "paths/infra/deploy"),
        ("infra/b", "paths/infra/backup"),
        ("paths/infra/b", "paths/infra/backup"),
        (fact.partition("/")[2], fact),
        (fact[:-4], fact),
        (fact.partition("/")[2][:-4], fact),
        ("paths/x", "paths/x"),
    ):
        assert json.loads(quipu("show", typed, "--json")[1])["id"] == id_
        assert quipu("history", typed)[0] == 0
    assert quipu("edit", "infra/ba", "--text", "Every night.")[1].startswith("edited paths/infra/backup\n")
    assert quipu("forget", "infra/ba")[1].startswith("forgotten paths/infra/backup\n")
    assert quipu("history", "paths/infra/backup")[0] == 0


@pytest.mark.parametrize(
    ("typed", "answer"),
    [
        ("infra/dep", "infra/dep may be several memories: did you mean paths/infra/deploy or paths/infra/deploys?"),
        ("in", "There is no memory in: did you mean paths/inn?"),
        ("paths/infra/delpoy", "There is no memory paths/infra/delpoy: did you mean paths/infra/deploy?"),
        ("infra/delpoy", "There is no memory infra/delpoy: did you mean paths/infra/deploy?"),
        ("path/infra/deploy", "There is no memory path/infra/deploy: did you mean paths/infra/deploy?"),
        ("nothing", "There is no memory nothing."),
        ("nope", "There is no memory nope."),
        ("paths/zzzz", "There is no memory paths/zzzz."),
        ("sessions/", "There is no memory sessions/: did you mean sessions/1?"),
    ],
)
def test_an_id_that_names_no_single_memory_changes_nothing_and_names_those_near(
    quipu: Quipu, call: Call, typed: str, answer: str
) -> None:
    for path in ("infra/deploy", "infra/deploys", "x", *(["inn"] if typed == "in" else [])):
        call("add_memory", path=path, content=f"text of {path}")
    if typed == "in":
        call("drop_memory", path="infra/deploy")
        call("drop_memory", path="infra/deploys")
    if typed == "sessions/":
        call("remember", content="a fact", session_id="s")
    before = quipu("list")[1]
    for command in (["show"], ["history"], ["edit", "--text", "x"], ["forget"]):
        assert quipu(command[0], typed, *command[1:]) == (1, "", f"quipu: {answer}\n")
    assert quipu("list")[1] == before


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("Tea Notes", "notes:default/context/tea-notes.md"),
        ("notes/tea notes", "notes:default/context/tea-notes.md"),
        ("tea-notes.md", "notes:default/context/tea-notes.md"),
        ("anna berg", "graph/Anna Berg"),
        ("berg", "graph/Anna Berg"),
        ("served by", None),
    ],
)
def test_a_name_or_a_text_in_place_of_an_id_is_answered_with_the_id(
    quipu: Quipu, typed: str, meant: str | None
) -> None:
    quipu("add", "Sencha at 70 degrees.", "--dialect", "notes", "--name", "Tea Notes")
    quipu("add", "She pours it.", "--dialect", "graph", "--name", "Anna Berg")
    quipu("add", "The tea is served by Anna Berg, who learned it in a school of the old town.", "--dialect", "brain")
    hint = f": did you mean {meant}?" if meant else "."
    assert quipu("show", typed) == (1, "", f"quipu: There is no memory {typed}{hint}\n")


@pytest.mark.parametrize(
    ("zone", "shown"), [("Asia/Tokyo", "2026-11-26 07:16 JST"), ("America/New_York", "2026-11-25 17:16 EST")]
)
@pytest.mark.skipif(sys.platform == "win32", reason="the zone of a process cannot be set")
def test_times_are_those_of_the_terminal_with_their_zone_and_json_is_utc(
    quipu: Quipu, call: Call, kernel: Kernel, monkeypatch: pytest.MonkeyPatch, zone: str, shown: str
) -> None:
    at = "2026-11-25T22:16:30.123Z"
    call("add_memory", path="car", content="The automobile is red")
    db = apsw.Connection(str(kernel.config.file))
    db.execute("UPDATE doc SET updated_at = ?, created_at = ?", (at, at))
    db.close()
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        for command in (["recall", "automobile"], ["list"], ["show", "paths/car"]):
            assert shown in quipu(*command)[1]
        assert json.loads(quipu("list", "--json")[1])["provenance"]["updated_at"] == at
        day = shown[:10]
        assert len(quipu("list", "--since", day)[1].splitlines()) == 1
        assert quipu("audit")[1].splitlines()[0].split("  ")[1][-3:] in {"JST", "EST", "EDT"}
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize("dialect", ["paths", "scopes", "brain", "notes", "sessions", "graph", "files"])
def test_added_memory_of_every_dialect_is_shown_listed_and_undone(quipu: Quipu, dialect: str) -> None:
    added = json.loads(quipu("add", "Buy apples.", "--dialect", dialect, "--json")[1])
    assert (added["done"], added["id"].partition("/")[0].partition(":")[0]) == ("added", dialect)
    shown = json.loads(quipu("show", added["id"], "--json")[1])
    assert "Buy apples." in shown["text"]
    assert added["id"] in quipu("list")[1]
    assert quipu("undo", str(added["call"]))[0] == 0
    assert quipu("show", added["id"])[0] == 1


def test_show_prints_all_parts_of_a_memory(quipu: Quipu, call: Call) -> None:
    note = {"title": "Deploy", "content": "Run kamal.", "summary": "In short", "key_points": ["one, two", "Rest."]}
    key = json.loads(call("save_note", db="core", **note, tags=["ops", "web"], category="work").body)["id"]
    examples = {"good": ["a\nb"], "bad": []}
    rule = {"name": "Tabs", "content": "Use Tabs.", "rationale": "Less typing.\nFewer bytes.", "examples": examples}
    added = json.loads(call("memory_guideline", action="add", scopeType="global", **rule, priority=90).body)
    rule_id = f"scopes:guidelines/{added['guideline']['id']}"
    assert quipu("show", f"brain:core/{key}")[1].split("\n\n")[1:] == [
        "Run kamal.",
        "title: Deploy\nsummary: In short\ntags:\n  - ops\n  - web\nkey_points:\n  - one, two\n  - Rest.\n"
        "note_type: note\ncategory: work\n",
    ]
    assert quipu("show", rule_id)[1].split("\n\n")[1:] == [
        "Use Tabs.",
        "title: Tabs\nrationale: |-\n  Less typing.\n  Fewer bytes.\n"
        "examples:\n  good:\n    - |-\n      a\n      b\n  bad: []\npriority: 90\n",
    ]
    assert json.loads(quipu("show", rule_id, "--json")[1])["beside"] == {
        "title": "Tabs",
        "rationale": "Less typing.\nFewer bytes.",
        "examples": examples,
        "priority": 90,
    }


@pytest.mark.parametrize("dialect", ["paths", "scopes", "brain", "notes", "files"])
def test_edited_memory_has_the_text_and_its_history_the_difference(quipu: Quipu, dialect: str) -> None:
    id_ = json.loads(quipu("add", "Buy apples.\nBuy pears.", "--dialect", dialect, "--json")[1])["id"]
    edited = json.loads(quipu("edit", id_, "--text", "Buy apples.\nBuy plums.", "--json")[1])
    shown = json.loads(quipu("show", id_, "--json")[1])
    assert (shown["text"], shown["version"], edited["done"]) == (
        "Buy apples.\nBuy plums.",
        edited["version"],
        "edited",
    )
    lines = quipu("history", id_)[1].splitlines()
    assert [line.lstrip() for line in lines if "pears" in line or "plums" in line][:2] == [
        "- Buy pears.",
        "+ Buy plums.",
    ]
    assert json.loads(quipu("edit", id_, "--text", shown["text"], "--json")[1])["done"] == "unchanged"


@pytest.mark.parametrize("dialect", ["paths", "scopes", "brain", "notes", "graph", "files"])
def test_forgotten_memory_is_gone_and_comes_back(quipu: Quipu, dialect: str) -> None:
    id_ = json.loads(quipu("add", "Buy apples.", "--dialect", dialect, "--json")[1])["id"]
    before = quipu("show", id_)
    gone = json.loads(quipu("forget", id_, "--json")[1])
    assert (gone["done"], quipu("show", id_)[0]) == ("forgotten", 1)
    assert quipu("undo", str(gone["call"]))[0] == 0
    assert quipu("show", id_)[1].splitlines()[2:] == before[1].splitlines()[2:]


def test_dialect_that_edits_nothing_says_so(quipu: Quipu) -> None:
    id_ = json.loads(quipu("add", "Buy apples.", "--dialect", "sessions", "--json")[1])["id"]
    assert quipu("edit", id_, "--text", "Buy pears.") == (1, "", f"quipu: No tool edits {id_}.\n")
    assert quipu("add", "x", "--dialect", "none")[2].startswith("quipu: dialect: choose from paths, ")


@pytest.mark.slow
def test_no_control_character_of_a_memory_reaches_the_terminal(quipu: Quipu, call: Call) -> None:
    call("add_memory", path="hostile", content=HOSTILE)
    for words in (["show", "paths/hostile"], ["recall", "red"], ["list"], ["history", "paths/hostile"]):
        for style in ([], ["--json"]):
            shown = quipu(*words, *style)[1]
            assert shown.replace("\n", "").isprintable(), (words, style)
            assert "bell" in shown
    assert json.loads(quipu("show", "paths/hostile", "--json")[1])["text"] == HOSTILE


def editor(tmp_path: Path, program: str) -> str:
    """An editor that runs a Python program on the bytes of the file, `text`."""
    script = tmp_path / "editor.py"
    script.write_text(
        "import sys\nfrom pathlib import Path\nfile = Path(sys.argv[1])\ntext = file.read_bytes()\n"
        f"{program}\nfile.write_bytes(text)\n",
        encoding="utf-8",
    )
    return shlex.join([sys.executable, str(script)])


@pytest.mark.slow
def test_editor_gets_the_text_and_the_line_end_that_it_adds_is_left_out(
    quipu: Quipu, call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call("add_memory", path="car", content="red")
    monkeypatch.setenv("VISUAL", editor(tmp_path, "text = text.replace(b'red', b'blue') + b'\\n'"))
    assert quipu("edit", "paths/car")[0] == 0
    assert json.loads(quipu("show", "paths/car", "--json")[1])["text"] == "blue"
    assert typed(tmp_path) == []


@pytest.mark.slow
def test_edit_of_what_changed_meanwhile_is_refused_and_its_text_is_kept(
    quipu: Quipu, call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call("add_memory", path="car", content="red")
    other = [sys.executable, "-m", "kernel", "edit", "paths/car", "--text", "green"]
    program = f"import subprocess\nsubprocess.run({other}, cwd={str(Path.cwd())!r}, check=True)\ntext = b'blue'"
    monkeypatch.setenv("VISUAL", editor(tmp_path, program))
    status, shown, remark = quipu("edit", "paths/car")
    kept = [str(file) for file in (tmp_path / "typed").iterdir()]
    changed = "It has changed since it was opened. Nothing was written: look at it again."
    assert (status, shown, remark) == (1, "", f"quipu: {changed} What you wrote is in {kept[0]}.\n")
    assert (typed(tmp_path), json.loads(quipu("show", "paths/car", "--json")[1])["text"]) == (["blue"], "green")


def test_without_a_terminal_only_an_editor_of_the_users_choice_runs(
    quipu: Quipu, call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call("add_memory", path="car", content="red")
    for name in ("VISUAL", "EDITOR"):
        monkeypatch.delenv(name, raising=False)
    told = "quipu: There is no terminal for an editor: --text TEXT gives the text, - standard input.\n"
    assert (quipu("edit", "paths/car"), typed(tmp_path)) == ((1, "", told), [])


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("vim '", "Cannot run the editor vim ': No closing quotation; EDITOR names another."),
        ("vim \\", "Cannot run the editor vim \\: No escaped character; EDITOR names another."),
        (" ", "There is no terminal for an editor: --text TEXT gives the text, - standard input."),
    ],
)
def test_an_editor_that_is_no_command_is_refused_and_no_file_is_left(
    quipu: Quipu, call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, told: str
) -> None:
    call("add_memory", path="car", content="red")
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", command)
    assert (quipu("edit", "paths/car"), typed(tmp_path)) == ((1, "", f"quipu: {told}\n"), [])


def test_a_refused_text_without_words_is_not_kept(quipu: Quipu, call: Call, tmp_path: Path) -> None:
    call("add_memory", path="car", content="red")
    told = "quipu: Memory content is required (content)\n"
    assert (quipu("edit", "paths/car", "--text", ""), typed(tmp_path)) == ((1, "", told), [])


@pytest.mark.parametrize("program", ["sys.exit(3)", "text = b'bl\\xff'"], ids=["status", "bytes"])
def test_editor_that_fails_or_writes_no_text_changes_nothing(
    quipu: Quipu, call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    call("add_memory", path="car", content="red")
    monkeypatch.setenv("VISUAL", editor(tmp_path, program))
    status, shown, remark = quipu("edit", "paths/car")
    kept = next((tmp_path / "typed").iterdir())
    assert (status, shown, str(kept) in remark, "nothing was written" in remark) == (1, "", True, True)
    assert json.loads(quipu("show", "paths/car", "--json")[1])["text"] == "red"


@pytest.mark.parametrize("words", [["add", "bad \udcff"], ["edit", "paths/car", "--text", "bad \udcff"]], ids=" ".join)
def test_bytes_that_are_no_text_are_refused_and_no_file_is_left(
    quipu: Quipu, call: Call, tmp_path: Path, words: list[str]
) -> None:
    call("add_memory", path="car", content="red")
    told = "quipu: text: these bytes are no text in UTF-8; nothing was written.\n"
    assert quipu(*words) == (1, "", told)
    assert (typed(tmp_path), len(quipu("list")[1].splitlines())) == ([], 1)


def test_refused_text_is_kept_whatever_the_reason(quipu: Quipu, call: Call, tmp_path: Path) -> None:
    call("add_memory", path="car", content="red")
    large = "x" * 1_100_000
    status, _, remark = quipu("edit", "paths/car", "--text", large)
    kept = next((tmp_path / "typed").iterdir())
    assert (status, remark.endswith(f" What you wrote is in {kept}.\n"), typed(tmp_path)) == (1, True, [large])


def test_first_memory_makes_the_database_and_no_other_command_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "new"
    monkeypatch.setenv("QUIPU_DATA", str(data))
    monkeypatch.setenv("QUIPU_MODEL", "none")
    for words in (["list"], ["stats"], ["add", "text", "--tenant", "typo"]):
        assert (main(words), data.exists()) == (1, False)
    assert (main(["add", "text", "--name", "first"]), data.exists()) == (0, True)
    assert capsys.readouterr().out == "added paths/first\n  `quipu undo 1` takes it back\n"


def test_a_tenant_with_a_key_takes_its_first_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("QUIPU_DATA", str(tmp_path / "new"))
    monkeypatch.setenv("QUIPU_MODEL", "none")
    assert main(["key", "create", "--scope", "write", "--tenant", "acme"]) == 0
    for words in (["list"], ["check"]):
        assert main([*words, "--tenant", "acme"]) == 1
    nothing = "quipu: The tenant acme has stored nothing yet, or is none: `quipu tenant list` shows all.\n"
    assert capsys.readouterr().err.endswith(nothing * 2)
    assert main(["add", "text", "--name", "first", "--tenant", "acme"]) == 0
    assert main(["list", "--tenant", "acme"]) == 0
    assert "paths/first" in capsys.readouterr().out


def test_stats_count_by_space(quipu: Quipu, call: Call) -> None:
    for path in ("a", "b"):
        call("add_memory", path=path, content="text")
    counts = json.loads(quipu("stats", "--json")[1])
    assert (counts["memories"], counts["spaces"]) == (2, [{"name": "paths", "memories": 2}])
    assert quipu("stats")[1].startswith("2 memories, 2 changed today, 2 within seven days\n         2  paths\n")


@pytest.mark.slow
@pytest.mark.parametrize("dialect", ["brain", "scopes"])
def test_an_edited_end_ends_a_memory_and_is_taken_away(quipu: Quipu, dialect: str) -> None:
    added = json.loads(quipu("add", "The stork permit is 12", "--dialect", dialect, "--json")[1])["id"]
    found = ("recall", "stork", "permit")

    assert quipu("edit", added, "--until", "2020-01-01")[0] == 0
    assert json.loads(quipu("show", added, "--json")[1])["until"].startswith("2020-01-01T23:59:59")
    assert quipu(*found)[0] == 1
    assert quipu("edit", added, "--until", "")[0] == 0
    assert json.loads(quipu("show", added, "--json")[1])["until"] == ""
    assert quipu(*found)[0] == 0
    assert quipu("edit", added, "--text", "The stork permit is 13", "--until", "2020-01-01")[0] == 0
    shown = json.loads(quipu("show", added, "--json")[1])
    assert (shown["text"], bool(shown["until"])) == ("The stork permit is 13", True)
    assert "true until 2020-01-01" in quipu("show", added)[1]


def test_an_end_that_cannot_be_edited_is_refused_and_writes_nothing(quipu: Quipu, call: Call) -> None:
    call("add_memory", path="a", content="The stork permit is 12")
    before = quipu("show", "paths/a")
    status, _, remark = quipu("edit", "paths/a", "--until", "2020-01-01")
    assert (status, "until: replace_memory knows no end" in remark) == (1, True), remark
    assert quipu("show", "paths/a") == before
