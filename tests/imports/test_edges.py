"""What sources hold that is easily lost, mixed up or let through."""

from pathlib import Path

from tests.imports.harness import Shell


def folder(root: Path, **files: str) -> Path:
    """A folder with these Markdown files."""
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / f"{name}.md").write_text(text)
    return root


def test_private_text_over_several_items_or_sections_is_left_out_of_each(shell: Shell, tmp_path: Path) -> None:
    text = "# Public\n\n<private>\n\n## Pin\n\n- [pin] It is 4711 #pin\n- knows [[Jane Roe]]\n\n</private>\n\nEnd.\n"
    shell.bring(folder(tmp_path / "vault", note=text))
    shell.bring(folder(tmp_path / "project", AGENTS=text))
    exported = shell.export().read_bytes()
    assert (b"Public" in exported, b"4711" in exported, b"Jane Roe" in exported) == (True, False, False)
