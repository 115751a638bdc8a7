"""The text of `--help` beside the options: the groups of commands, and a sentence and examples for each."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

_TEXT = Path(__file__).with_name("help.txt")
TOP_EXAMPLES = (
    "quipu setup --client cursor",
    "quipu serve",
    'quipu add "The garage opens at eight."',
    'quipu recall "when does the garage open"',
    "quipu doctor",
    "quipu COMMAND --help",
)
ENVIRONMENT = """environment:
  QUIPU_DATA, QUIPU_MODEL, HOST and PORT stand for --data, --model, --host and --port; every other setting is a
  variable too, in docs/settings.md. NO_COLOR turns colours off."""


class Help(NamedTuple):
    """A few words for the list of commands; sentences, which may be empty, and examples for its own help."""

    brief: str
    sentences: str
    examples: tuple[str, ...]


def _parsed(text: str) -> dict[str, dict[str, Help]]:
    groups: dict[str, dict[str, Help]] = {}
    commands: dict[str, Help] = {}
    for section in text.strip().split("\n\n"):
        head, *lines = section.splitlines()
        if head.startswith("= "):
            commands = groups[head.removeprefix("= ")] = {}
            continue
        name, _, brief = head.partition(": ")
        examples = tuple(line.strip() for line in lines if line.startswith(" "))
        commands[name] = Help(brief, " ".join(line for line in lines if not line.startswith(" ")), examples)
    return groups


GROUPS: Mapping[str, Mapping[str, Help]] = _parsed(_TEXT.read_text(encoding="utf-8"))
TEXTS = {name: text for commands in GROUPS.values() for name, text in commands.items()}
