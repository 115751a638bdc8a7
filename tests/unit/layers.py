"""The layers of the kernel as a table for kernel/README.md: `python -m tests.unit.layers` writes it there.

The order comes from the import contract in pyproject.toml, the words from the docstring of each package or module.
"""

import ast
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "kernel" / "README.md"
BEGIN, END = "<!-- layers -->", "<!-- /layers -->"


def layers() -> list[list[str]]:
    """The names of each layer, the topmost first."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    (ordered,) = (contract["layers"] for contract in contracts if contract["type"] == "layers")
    return [[name.strip() for name in line.split("|")] for line in ordered]


def about(name: str) -> str:
    """Return the first sentence of the docstring of a package or module."""
    folder = ROOT / "kernel" / name
    file = folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")
    words = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    return words.split("\n\n")[0].replace("\n", " ").rstrip(".")


def table() -> str:
    """One row for each layer; each imports only from layers below it."""
    rows = [f"| {', '.join(f'`{name}`' for name in names)} | {'; '.join(map(about, names))} |" for names in layers()]
    return "\n".join(["| layer | holds |", "|---|---|", *rows])


def written(page: str) -> str:
    """The page with the table of today between its two marks."""
    return re.sub(f"{BEGIN}.*?{END}", lambda _: f"{BEGIN}\n{table()}\n{END}", page, flags=re.DOTALL)


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
