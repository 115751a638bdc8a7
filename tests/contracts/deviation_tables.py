"""The deviations that the tools declare, as the table in the README of their dialect.

`python -m tests.contracts.deviation_tables` writes every table again.
"""

from collections.abc import Iterator
from pathlib import Path

from kernel.app import DIALECTS
from kernel.tools import Deviation, Dialect

ROOT = Path(__file__).resolve().parents[2]
BEGIN = "<!-- deviations: written by `python -m tests.contracts.deviation_tables` -->"
END = "<!-- end of deviations -->"
COLUMNS = ("tool", "what", "contract", "ours", "reason")


def declared(dialect: Dialect) -> Iterator[tuple[str, Deviation]]:
    """Every deviation with the tools it is of: one name, or a text such as `every tool`."""
    for tool in dialect.tools:
        yield from ((tool.name, deviation) for deviation in tool.deviations)
    for tools, deviations in dialect.deviations.items():
        yield from ((tools, deviation) for deviation in deviations)


def table(dialect: Dialect) -> str:
    """The deviations of a dialect as a Markdown table."""
    rows = [(tools, *deviation) for tools, deviation in declared(dialect)]
    lines = [COLUMNS, ("---",) * len(COLUMNS), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)


def readme(dialect: Dialect) -> Path:
    return ROOT / "handlers" / dialect.name / "README.md"


def replace_table(text: str, dialect: Dialect) -> str:
    """The text of a README with the table between its markers written again."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{readme(dialect)} needs the lines {BEGIN} and {END}")
    return f"{before}{begin}\n{table(dialect)}{end}{after}"


def main() -> None:
    for dialect in DIALECTS:
        if any(declared(dialect)):
            text = readme(dialect).read_text(encoding="utf-8")
            readme(dialect).write_text(replace_table(text, dialect), encoding="utf-8")


if __name__ == "__main__":
    main()
