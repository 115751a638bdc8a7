"""The file of the reference memory server goes in and comes out as it was, in its order."""

import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path
from zipfile import ZipFile

import pytest

from kernel.cli import commands
from kernel.cli.main import parser
from kernel.core.config import Config
from kernel.core.errors import Fault
from kernel.operations import consistency
from kernel.server import app

WHOLE = (
    '{"type":"entity","name":"Ada","entityType":"person","observations":["likes tea","d\\u0001\\n\\"é\u2028🙂"]}\n'
    '{"type":"entity","name":"","entityType":"","observations":[]}\n'
    '{"type":"relation","from":"Ada","to":"nobody","relationType":"knows"}\n'
    '{"type":"relation","from":"","to":"Ada","relationType":""}'
)
Run = Callable[..., int]


@pytest.fixture
def run(config: Config) -> Run:
    return lambda *line: commands.run(parser().parse_args(list(map(str, line))), config)


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    file = tmp_path / "memory.jsonl"
    file.write_text(WHOLE, encoding="utf-8")
    return file


def exported(run: Run, folder: Path) -> str:
    target = folder / "out.jsonl"
    target.unlink(missing_ok=True)
    assert run("export", "graph", target) == 0
    assert target.stat().st_mode & 0o777 == 0o600
    return target.read_bytes().decode()


def numberless(printed: str) -> str:
    """The same without the number of the import: on a busy machine it takes several slices, each with its own."""
    return re.sub(r"undo \d+", "undo N", printed)


def test_a_file_comes_out_as_it_went_in(
    run: Run, theirs: Path, config: Config, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("import", "server-memory", theirs) == 0
    assert numberless(capsys.readouterr().out) == (
        "entities: 2\nobservations: 2\nrelations: 2\nimported 4 memories; `quipu undo N` takes it back\n"
    )
    assert exported(run, theirs.parent) == WHOLE
    assert consistency.check(config.file, app.context_of(config), app.DIALECTS) == []


def test_a_second_import_adds_what_is_new_alone(run: Run, theirs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("import", "server-memory", theirs)
    more = '{"type":"entity","name":"Ada","entityType":"other","observations":["likes tea","hums"]}\n'
    theirs.write_text(f"{WHOLE}\n\n{more}", encoding="utf-8")
    capsys.readouterr()

    run("import", "server-memory", theirs)

    assert numberless(capsys.readouterr().out) == (
        "entities: 0\nobservations: 1\nrelations: 0\nimported 1 memory; `quipu undo N` takes it back\n"
    )
    assert exported(run, theirs.parent) == WHOLE.replace('🙂"]', '🙂","hums"]')


@pytest.mark.slow
def test_many_observations_of_one_entity_are_all_there(run: Run, theirs: Path) -> None:
    texts = ",".join(f'"{number}"' for number in range(25_000))
    line = f'{{"type":"entity","name":"a","entityType":"t","observations":[{texts}]}}'
    theirs.write_text(line, encoding="utf-8")
    run("import", "server-memory", theirs)
    assert exported(run, theirs.parent) == line


ADA, KNOWS = (
    {"type": "entity", "name": "Ada", "entityType": "person", "observations": ["likes tea"]},
    {"type": "relation", "from": "Ada", "to": "Bob", "relationType": "knows"},
)
GOOD = "\n".join(json.dumps(row, separators=(",", ":")) for row in (ADA, KNOWS))
GRAPH = {"entities": [ADA], "relations": [KNOWS]}
FORMS = {
    "lines": GOOD,
    "list": json.dumps([ADA, KNOWS]),
    "indented list": json.dumps([ADA, KNOWS], indent=2),
    "list of lines": f"[\n{json.dumps(ADA)},\n{json.dumps(KNOWS)}\n]\n",
    "two on a line": f"{json.dumps(ADA)}{json.dumps(KNOWS)}\n",
    "byte order mark": f"\ufeff{GOOD}",
    "mark of a fork": '{"type":"_aim","source":"mcp-knowledge-graph"}\n' + GOOD,
    "read_graph": json.dumps({"entities": [{**ADA, "type": None}], "relations": [{**KNOWS, "type": None}]}),
    "a result of read_graph": json.dumps({"content": [{"type": "text", "text": json.dumps(GRAPH, indent=2)}]}),
    "a response to read_graph": json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"structuredContent": GRAPH}}),
    "parts of read_graph": json.dumps([{"type": "text", "text": json.dumps(GRAPH)}], indent=2),
    "indented read_graph": json.dumps(GRAPH, indent=2),
    "read_graph with an entity among the relations": json.dumps({"entities": [], "relations": [KNOWS, ADA]}),
    "without types": GOOD.replace('"type":"entity",', "").replace('"type":"relation",', ""),
    "lines with commas": f"{json.dumps(ADA)},\n{json.dumps(KNOWS)},\n",
    "carriage returns": GOOD.replace("\n", "\r"),
    "lists in a list": json.dumps([[ADA], [KNOWS]]),
    "types in capitals": GOOD.replace('"entity"', '"Entity"').replace('"relation"', '"RELATION"'),
    "observations with times": GOOD.replace('"likes tea"', '{"content":"likes tea","timestamp":"2025-01-01"}'),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_that_people_have_is_known_and_read(run: Run, theirs: Path, form: str) -> None:
    theirs.write_text(FORMS[form], encoding="utf-8")
    assert run("import", theirs) == 0
    assert exported(run, theirs.parent) == GOOD


@pytest.mark.slow
def test_a_folder_of_databases_of_a_fork_is_known_and_read(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / ".aim"
    folder.mkdir()
    (folder / "memory.jsonl").write_text(json.dumps(ADA), encoding="utf-8")
    (folder / "memory-work.jsonl").write_text(json.dumps(KNOWS), encoding="utf-8")
    assert run("import", folder) == 0
    assert exported(run, tmp_path) == GOOD
    (folder / "memory.jsonl.bak").write_text("-", encoding="utf-8")
    capsys.readouterr()
    assert run("import", folder) == 0
    assert "left out: 1 memory.jsonl.bak: is no file of JSON" in capsys.readouterr().err
    (folder / "README.md").write_text("A project.", encoding="utf-8")
    assert run("import", folder) == 0
    assert ".aim is taken for obsidian" in capsys.readouterr().err


@pytest.mark.parametrize("form", ["archive", "archive of compressed files", "compressed"])
def test_packed_files_are_known_and_read(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str
) -> None:
    packed = tmp_path / "packed"
    if form != "compressed":
        is_plain = form == "archive"
        with ZipFile(packed, "w") as archive:
            name, data = (
                ("memory.json", GOOD.encode()) if is_plain else ("memory.jsonl.gz", gzip.compress(GOOD.encode()))
            )
            archive.writestr(f"data/{name}", data)
            archive.writestr("data/picture.png", "-")
    else:
        packed.write_bytes(gzip.compress(GOOD.encode()))
    assert run("import", packed) == 0
    assert ("left out: 1 data/picture.png: is no file of JSON" in capsys.readouterr().err) == (form != "compressed")
    assert exported(run, tmp_path) == GOOD


def test_a_packed_file_that_is_cut_off_is_refused(run: Run, tmp_path: Path) -> None:
    packed = tmp_path / "packed"
    packed.write_bytes(gzip.compress(GOOD.encode())[:-12])
    with pytest.raises(Fault, match=r"^packed cannot be read: Compressed file ended"):
        run("import", "server-memory", packed)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "told", "is_damage"),
    [
        (f"{GOOD}\n[1]\n", ["1 line 3: is no JSON object"], True),
        (f"{GOOD}\n{{\n", ["1 line 3: was cut off"], True),
        (f"{GOOD}\nnull\n", ["1 line 3: is no JSON object"], True),
        (f"{GOOD}\n{{}}\n", ["1 line 3: is no entity and no relation"], True),
        (f'{{"type":"other"}}\n{GOOD}', ["1 line 1: is no entity and no relation"], True),
        (f'{{"type":"entity","name":"B","observations":[]}}\n{GOOD}', ["1 line 1: no entityType"], True),
        (f'{GOOD}\n{{"type":"relation","from":1,"to":"Ada"}}\n', ["1 line 3: no from and no relationType"], True),
        (GOOD.replace('"likes tea"', 'null,"likes tea",{}'), ["2 line 1: an observation without text"], True),
        (
            GOOD.replace("\n", f'\n{{"type":"entity","name":"{"x" * 1001}","entityType":"t","observations":[]}}\n'),
            ["1 line 2: a name or type of more than 1000 characters"],
            True,
        ),
        (f'{{"type":"entity","na{GOOD}', ["1 line 1: is no JSON"], True),
        (f'{GOOD}\n{{"type":"entity","name":"Bob","entityType":"person","obser', ["1 line 3: was cut off"], False),
        (
            f'{GOOD}\n{{"type":"entity","name":"B","entityType":"t","observations":["see {{x}}',
            ["1 line 3: was cut off"],
            False,
        ),
        (
            f'{GOOD}\n{{"type":"entity"}}\n[\n{{"type":"entity","name":"B"}}\n1\n',
            ["1 line 3: no name and no entityType", "1 line 5: no entityType", "1 line 6: is no JSON object"],
            True,
        ),
    ],
)
def test_a_damaged_line_is_left_out_and_named(
    run: Run, theirs: Path, capsys: pytest.CaptureFixture[str], text: str, told: list[str], is_damage: bool
) -> None:
    theirs.write_text(text, encoding="utf-8")
    for options in (("--dry-run",), ()):
        assert run("import", "server-memory", theirs, *options) == 0
        said = capsys.readouterr()
        assert said.err.splitlines() == [f"left out: {line}" for line in told]
        assert f"left out: {sum(int(line.split()[0]) for line in told)}\n" in said.out
    assert exported(run, theirs.parent) == GOOD
    if is_damage:
        reasons = [line.partition(" ")[2].replace("line 1, ", "") for line in told]
        with pytest.raises(Fault) as refused:
            run("import", "server-memory", theirs, "--strict")
        assert refused.value.message.startswith("memory.jsonl: ")
        assert refused.value.message.endswith(" Nothing was imported.")
        assert all(reason in refused.value.message for reason in reasons)
    else:
        assert run("import", "server-memory", theirs, "--strict") == 0


def test_numbers_among_observations_are_texts(run: Run, theirs: Path) -> None:
    theirs.write_text(GOOD.replace('"likes tea"', '1987,{"content":2.5},true'), encoding="utf-8")
    assert run("import", "server-memory", theirs, "--strict") == 0
    assert exported(run, theirs.parent) == GOOD.replace('"likes tea"', '"1987","2.5","true"')


def test_half_a_surrogate_pair_is_replaced(run: Run, theirs: Path) -> None:
    theirs.write_text(GOOD.replace("likes tea", "half \\ud83d, whole \\ud83d\\ude42"), encoding="utf-8")
    assert run("import", "server-memory", theirs, "--strict") == 0
    assert exported(run, theirs.parent) == GOOD.replace("likes tea", "half \ufffd, whole \U0001f642")


def test_lines_of_one_name_and_another_type_are_told(
    run: Run, theirs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [
        json.dumps({"type": "entity", "name": "Ada", "entityType": kind, "observations": [f"a {kind}"]})
        for kind in ("person", "tool", "person", "service")
    ]
    theirs.write_text("\n".join(lines), encoding="utf-8")
    told = ["merged: 2 line 2, line 4: another type of a name, which keeps its first"]
    for options in (("--dry-run",), ()):
        run("import", "server-memory", theirs, *options)
        assert capsys.readouterr().err.splitlines() == told
    theirs.write_text(lines[1], encoding="utf-8")
    run("import", "server-memory", theirs)
    assert "merged: 1 line 1: another type" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"memory\.jsonl holds nothing that can be imported\."),
        ("\n \n", r"memory\.jsonl holds nothing that can be imported\."),
        ("{}", r"holds nothing that can be imported: line 1: is no entity and no relation\."),
        (
            '{"type":"entity","name":"a"}\n{"type":"x"}\n',
            r"line 1: no entityType; line 2: is no entity and no relation\.",
        ),
        ("\n".join(["{}"] * 50), r"line 20: is no entity and no relation; 50 in all\.$"),
    ],
)
def test_a_file_of_nothing_else_is_refused(run: Run, theirs: Path, text: str, message: str) -> None:
    theirs.write_text(text, encoding="utf-8")
    with pytest.raises(Fault, match=message):
        run("import", "server-memory", theirs)
    assert exported(run, theirs.parent) == ""


@pytest.mark.slow
def test_an_export_leaves_what_is_there(run: Run, theirs: Path) -> None:
    run("import", "server-memory", theirs)
    with pytest.raises(Fault, match="is there already"):
        run("export", "graph", theirs)
    assert theirs.read_text(encoding="utf-8") == WHOLE
    with pytest.raises(Fault, match="No such file or directory"):
        run("export", "graph", theirs.parent / "missing" / "x")
    with pytest.raises(Fault, match="Cannot export other: choose from okf, jsonl, graph"):
        run("export", "other", theirs.parent / "x")
    with pytest.raises(Fault, match="cannot be read"):
        run("import", "server-memory", theirs.parent / "missing")


@pytest.mark.parametrize(
    "lines",
    [
        ({"entityName": "Ada", "entityType": "person"}, {"from_id": "Ada", "to_id": "Bern", "relation_type": "in"}),
        ({"id": "Ada", "entity_type": "person"}, {"from_entity": "Ada", "to_entity": "Bern", "relationType": "in"}),
        (
            {"name": "Ada", "id": "e1", "entityType": "person"},
            {"source": "Ada", "target": "Bern", "relationType": "in"},
        ),
    ],
)
def test_other_names_of_members_are_read(run: Run, lines: tuple[dict[str, str], ...], tmp_path: Path) -> None:
    file = tmp_path / "memory.jsonl"
    kinds = ("entity", "relation")
    rows = [{"type": kind, **line} for kind, line in zip(kinds, lines, strict=True)]
    file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    assert run("import", file) == 0
    assert exported(run, tmp_path) == (
        '{"type":"entity","name":"Ada","entityType":"person","observations":[]}\n'
        '{"type":"relation","from":"Ada","to":"Bern","relationType":"in"}'
    )
