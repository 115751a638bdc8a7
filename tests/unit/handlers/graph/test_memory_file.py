"""The file of the reference memory server goes in and comes out as it was, in its order."""

from collections.abc import Callable
from pathlib import Path

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


def test_a_file_comes_out_as_it_went_in(
    run: Run, theirs: Path, config: Config, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("import", "server-memory", theirs) == 0
    assert capsys.readouterr().out == (
        "entities: 2\nobservations: 2\nrelations: 2\nimported 4 memories; `quipu undo 1` takes it back\n"
    )
    assert exported(run, theirs.parent) == WHOLE
    assert consistency.check(config.file, app.context_of(config), app.DIALECTS) == []


def test_a_second_import_adds_what_is_new_alone(run: Run, theirs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("import", "server-memory", theirs)
    more = '{"type":"entity","name":"Ada","entityType":"other","observations":["likes tea","hums"]}\n'
    theirs.write_text(f"{WHOLE}\n\n{more}", encoding="utf-8")
    capsys.readouterr()

    run("import", "server-memory", theirs)

    assert capsys.readouterr().out == (
        "entities: 0\nobservations: 1\nrelations: 0\nimported 1 memory; `quipu undo 2` takes it back\n"
    )
    assert exported(run, theirs.parent) == WHOLE.replace('🙂"]', '🙂","hums"]')


def test_many_observations_of_one_entity_are_all_there(run: Run, theirs: Path) -> None:
    texts = ",".join(f'"{number}"' for number in range(25_000))
    line = f'{{"type":"entity","name":"a","entityType":"t","observations":[{texts}]}}'
    theirs.write_text(line, encoding="utf-8")
    run("import", "server-memory", theirs)
    assert exported(run, theirs.parent) == line


def test_a_last_line_that_was_cut_off_is_left_out(run: Run, theirs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    theirs.write_text(WHOLE[:-5], encoding="utf-8")
    assert run("import", "server-memory", theirs) == 0
    assert capsys.readouterr().err.endswith("left out: line 4, the last one, which was cut off\n")
    assert exported(run, theirs.parent) == WHOLE.rpartition("\n")[0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "holds no entity and no relation"),
        ("\n \n", "holds no entity and no relation"),
        ("{}", "line 1: Object missing required field `type`"),
        ('{"type":"entity","name":"a","entityType":"t"}', "line 1: Object missing required field `observations`"),
        (f"{WHOLE}\n[]\n", "line 5: Expected `object`, got `array`"),
        (f'{WHOLE}\n{{"type":"other"}}\n', "line 5: Invalid value 'other'"),
        (f"{WHOLE}\n{{\n", "line 5: Input data was truncated"),
        (f'{{"type":"entity","name":"{"x" * 1001}","entityType":"t","observations":[]}}', "more than 1000 characters"),
    ],
)
def test_a_file_that_is_none_is_refused_and_nothing_of_it_kept(run: Run, theirs: Path, text: str, message: str) -> None:
    theirs.write_text(text, encoding="utf-8")
    with pytest.raises(Fault, match=message):
        run("import", "server-memory", theirs)
    assert exported(run, theirs.parent) == ""


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
