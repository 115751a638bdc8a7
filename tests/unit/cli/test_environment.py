"""A variable that begins like a setting and is none is named, with the setting that it may have meant."""

from pathlib import Path

from kernel.cli.environment import unknown_variables
from kernel.core.config import Config


def unknown(folder: Path, also: str | None = None, **environment: str) -> list[str]:
    return [*unknown_variables(Config(folder, environment=environment), also)]


def test_settings_and_variables_of_other_programs_are_not_named(tmp_path: Path) -> None:
    variables = {"QUIPU_DATA": "a", "QUIPU_HOOKS": "off", "QUIPU_DIALECTS": "paths", "PATH": "b", "QUIPU_EMPTY": ""}
    assert unknown(tmp_path, **variables) == []


def test_a_misspelt_setting_is_named_with_the_right_one(tmp_path: Path) -> None:
    assert unknown(tmp_path, QUIPU_DIALECT="paths") == ["QUIPU_DIALECT is no setting: did you mean QUIPU_DIALECTS?"]
    assert unknown(tmp_path, QUIPU_PORT="1") == ["QUIPU_PORT is no setting: did you mean PORT?"]


def test_a_variable_that_a_command_reads_is_not_named(tmp_path: Path) -> None:
    assert unknown(tmp_path, "QUIPU_ODD_NAME", QUIPU_ODD_NAME="1") == []
