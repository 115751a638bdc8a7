"""The text of `--help` for the commands for memories."""

from collections.abc import Mapping
from typing import NamedTuple


class Help(NamedTuple):
    """One sentence, and command lines that show a use."""

    sentence: str
    examples: tuple[str, ...]


MEMORY_TEXTS: Mapping[str, Help] = {
    "recall": Help(
        "Finds memories by words and by meaning, whatever dialect they were written with; the exit status is 1 where "
        "there are none.",
        (
            "quipu recall when does the garage open",
            'quipu recall "open tasks" --dialect paths --since 7d',
            "quipu recall car --json --limit 3",
        ),
    ),
    "list": Help(
        "Lists the memories that were changed last, a line of each.",
        ("quipu list", "quipu list --since 2026-01-31 --actor cursor", "quipu list --dialect brain --json"),
    ),
    "show": Help(
        "Shows the text of one memory, who wrote it and what it is linked with.",
        ("quipu show paths/car", "quipu show paths/car --json"),
    ),
    "history": Help(
        "Shows the versions of one memory with their differences, the newest first.",
        ("quipu history paths/car", "quipu history paths/car --json"),
    ),
    "add": Help(
        "Adds a memory by the tool of a dialect, and prints its id.",
        (
            'quipu add "The garage opens at eight." --name car/garage',
            "quipu add --dialect brain < notes.txt",
            "quipu add",
        ),
    ),
    "edit": Help(
        "Changes the text of a memory; where that is refused, as when it was changed meanwhile, the new text is kept "
        "in a file.",
        ("quipu edit paths/car", 'quipu edit paths/car --text "The garage opens at nine."'),
    ),
    "forget": Help(
        "Deletes a memory of any kind, an immutable one with --immutable; `quipu undo` brings it back.",
        (
            "quipu forget paths/car",
            "quipu forget brain:core/mem_01abc --immutable",
            'quipu forget graph/Ann --observation "likes tea"',
        ),
    ),
    "stats": Help("Counts the memories of every space.", ("quipu stats", "quipu stats --json")),
    "completion": Help(
        "Prints what a shell needs to complete commands and options.",
        ("quipu completion bash > ~/.quipu.bash", "quipu completion fish > ~/.config/fish/completions/quipu.fish"),
    ),
}
