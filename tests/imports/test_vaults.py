"""Vaults of notes: links lead where the program of the vault leads, and no tag, date or link of them is lost."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from handlers.importers import text_files as folders
from kernel.core.errors import Fault
from tests.imports.harness import Shell, rows
from tests.imports.sources import text_files

OBSIDIAN = {".obsidian/app.json": "{}"}


def graph(shell: Shell, folder: Path, *options: str) -> tuple[list[str], list[tuple[str, str, str]]]:
    """The entities of a folder and the links between them, by name."""
    shell.run("import", *options, str(folder))
    names = {row["id"]: row["name"] for row in rows(shell, "brain_entity")}
    links = [row for row in rows(shell, "brain_link") if row["source_id"] in names]
    found = [(names[row["source_id"]], row["relationship"], names[row["target_id"]]) for row in links]
    return sorted(names.values()), sorted(found)


@pytest.mark.parametrize(
    ("link", "files"),
    [
        ("[[A]]", {"A.md": "# Other title\n"}),
        ("[[a]]", {"sub/A.md": "# Other title\n"}),
        ("[[sub/A|shown]]", {"sub/A.md": "---\ntitle: Other title\n---\n", "A.md": "# Wrong\n"}),
        ("[[A#part]]", {"x/y/A.md": "# Wrong\n", "A.md": "# Other title\n"}),
        ("![[A]]", {"A.md": "# Other title\n"}),
        ("| [[A\\|shown]] |", {"A.md": "# Other title\n"}),
        ("[[cafe\u0301]]", {"caf\u00e9.md": "# Other title\n"}),
        ("[[My Page]]", {"A.md": "---\naliases: [My Page]\n---\n# Other title\n"}),
        ("[[the/link]]", {"A.md": "---\npermalink: the/link\n---\n# Other title\n"}),
        ("[[Other title]]", {"A.md": "# Other title\n"}),
        ("[see](sub/my%20a.md#part)", {"sub/my a.md": "# Other title\n"}),
        ("[see](<sub/my a.md>)", {"sub/my a.md": "# Other title\n"}),
        ('[see](A.md#part "shown")', {"A.md": "# Other title\n"}),
        ("[[A^part]]", {"A.md": "# Other title\n"}),
        ("x.\n\n> [!note] or [[A]]", {"A.md": "# Other title\n"}),
    ],
)
def test_a_link_leads_to_the_note_that_it_means(link: str, files: dict[str, str], shell: Shell, tmp_path: Path) -> None:
    bodies = {name: f"{text}\nBody.\n" for name, text in files.items()}
    folder = text_files("vault", {**OBSIDIAN, **bodies, "B.md": f"See {link}.\n"})(tmp_path)
    assert graph(shell, folder, "obsidian") == (["B", "Other title"], [("B", "links_to", "Other title")])


def test_links_in_front_matter_are_links_by_the_name_of_the_value(shell: Shell, tmp_path: Path) -> None:
    files = {"A.md": "# One\n", "B.md": "---\nup: '[[A]]'\nsee: [x, '[[A|a]]', '[[C]]', 7]\n---\nBody.\n"}
    folder = text_files("vault", {**OBSIDIAN, **files})(tmp_path)
    links = [("B", "see", "C"), ("B", "see", "One"), ("B", "up", "One")]
    assert graph(shell, folder) == (["B", "C", "One"], links)


@pytest.mark.parametrize(
    "text", ["See ![[pic.png]].\n", "See [[report.pdf]].\n", "See [[#part]], [[^block]], [[]] and [[|x]].\n"]
)
def test_a_note_that_leads_to_no_other_is_no_entity(text: str, shell: Shell, tmp_path: Path) -> None:
    assert graph(shell, text_files("vault", {**OBSIDIAN, "N.md": text})(tmp_path)) == ([], [])


def test_a_relative_link_leads_to_the_note_beside_it(shell: Shell, tmp_path: Path) -> None:
    files = {"a/x.md": "# One\n", "b/x.md": "# Two\n", "b/y.md": "[up](../a/x.md) and [[x]].\n"}
    folder = text_files("vault", {**OBSIDIAN, **files})(tmp_path)
    assert graph(shell, folder)[1] == [("y", "links_to", "One"), ("y", "links_to", "Two")]


def test_notes_of_one_title_are_entities_of_their_own(shell: Shell, tmp_path: Path) -> None:
    files = {"a/x.md": "# Same\n[[b/x]]\n", "b/x.md": "# Same\n[[Elsewhere]]\n"}
    folder = text_files("vault", {**OBSIDIAN, **files})(tmp_path)
    assert graph(shell, folder) == (
        ["Elsewhere", "Same", "Same"],
        [("Same", "links_to", "Elsewhere"), ("Same", "links_to", "Same")],
    )


@pytest.mark.parametrize("kind", ["basic-memory", "okf", "codex"])
def test_other_folders_resolve_their_links_too(kind: str, shell: Shell, tmp_path: Path) -> None:
    prefix = "rollout_summaries/" if kind == "codex" else ""
    files = {f"{prefix}A.md": "---\ntype: note\ntitle: Other title\n---\nBody.\n", f"{prefix}B.md": "See [[A]].\n"}
    folder = text_files("source", files)(tmp_path)
    assert graph(shell, folder, kind) == (["B", "Other title"], [("B", "links_to", "Other title")])


def test_what_a_page_does_not_show_as_a_link_is_none(shell: Shell, tmp_path: Path) -> None:
    text = (
        "Escaped \\[[one]] and {{embed [[Two]]}}\n"
        "Write `[[code]]` and ``[[more]]``. %% [[hidden]] %% <!-- [[html]] --> ![[pic.png]] ![[a/b.JPG|200]]\n"
        "%%\n[[block]]\n%%\n<!--\n[[lines]]\n-->\n```\n[[fence]]\n```\n- see [[One]], [[Two]] at 100%%\n"
    )
    folder = text_files("vault", {**OBSIDIAN, "N.md": text})(tmp_path)
    assert graph(shell, folder)[0] == ["N", "One", "Two"]


@pytest.mark.parametrize(
    ("page", "title"),
    [
        ("%%\n# Draft\n%%\n# Tea\n", "Tea"),
        ("%% # Draft %%\n\n# Tea %%green%%\n", "Tea"),
        ("%%\n# Draft\n%%\nNo heading.\n", "N"),
        ("<!-- one\n# Draft\n-->\n# Tea <!-- green -->\n", "Tea"),
        ("```\n# Draft\n```\n> # Quoted\n\n# At 100%% of `#tea`\n", "At 100%% of `#tea`"),
    ],
)
def test_a_heading_in_a_comment_is_no_title(page: str, title: str, shell: Shell, tmp_path: Path) -> None:
    shell.run("import", "obsidian", str(text_files("vault", {**OBSIDIAN, "N.md": page})(tmp_path)))
    (note,) = rows(shell, "brain_note")
    assert note["title"] == title
    assert note["content"] == page.strip()


@pytest.mark.parametrize(
    ("page", "tags"),
    [
        ("Buy it #topic/sub, or not #2024/goals.\n\n#first line\n# Heading\n", ["topic/sub", "2024/goals", "first"]),
        ("Issue #12 of a#b `#code` %% #hidden %%\n```\n#fence\n```\nlink.md#part #\u00fcber-x\n", ["\u00fcber-x"]),
        ("---\ntags: ['#review', todo]\n---\nBody #todo\n", ["review", "todo"]),
        ("---\ntags: [2024, x, 1.5]\n---\nBody\n", ["2024", "x", "1.5"]),
        ("---\ntags: 2024\ntag: y\n---\nBody\n", ["2024", "y"]),
        ("---\ntags: a b, #c\n---\nBody\n", ["a", "b"]),
        ("---\ntags: [true, 2024-01-01]\n---\n> [!tip] #quoted\n", ["true", "2024-01-01", "quoted"]),
        ("A #tag, #tea\U0001f375! (#no) #a-b_c/d.\n", ["tag", "tea\U0001f375", "a-b_c/d"]),
        ("---\ntags:\n- '#a/b'\n- c\n---\nBody\n", ["a/b", "c"]),
        ("---\nbase: &b 1\nuse: *b\ntags: !!set {a, b}\n---\nBody\n", ["a", "b"]),
        ("---\nbase: &b 1\nuse: *b\ntags: &t [a, b]\n---\nBody\n", ["a", "b"]),
        ("Read #[[green tea]] and #x.\r- #y\r", ["green tea", "x", "y"]),
        ("---\nurl: a: b\ntags: [a, '#b', \"c\"]\n---\nBody\n", ["a", "b", "c"]),
        ("---\nurl: a: b\ntags:\n  - a\n  - '#b'\n---\nBody\n", ["a", "b"]),
    ],
)
def test_tags_of_a_vault_are_kept(page: str, tags: list[str], shell: Shell, tmp_path: Path) -> None:
    shell.run("import", "obsidian", str(text_files("vault", {**OBSIDIAN, "N.md": page})(tmp_path)))
    (note,) = rows(shell, "brain_note")
    assert json.loads(note["tags"]) == tags


@pytest.mark.parametrize(
    ("page", "title", "tags", "points"),
    [
        ('+++\ntitle = "Tea"\ntags = ["a", "b"]\nat = 2024-01-02\n+++\nBody.\n', "Tea", ["a", "b"], ["at: 2024-01-02"]),
        ('+++\ntitle = "Tea"\n[more]\nn = 1\n+++\nBody.\n', "Tea", None, ['more: {"n":1}']),
        ('{\n"title": "Tea",\n"tags": ["a"]\n}\n\nBody.\n', "Tea", ["a"], []),
        ("+++\ntitle: Tea\n+++\nBody.\n", "Tea", None, []),
    ],
)
def test_front_matter_may_be_toml_or_json(
    page: str, title: str, tags: list[str] | None, points: list[str], shell: Shell, tmp_path: Path
) -> None:
    shell.bring(text_files("vault", {**OBSIDIAN, "N.md": page})(tmp_path))
    (note,) = rows(shell, "brain_note")
    assert (note["title"], note["content"]) == (title, "Body.")
    assert json.loads(note["tags"] or "null") == tags
    assert json.loads(note["key_points"])[1:] == points


@pytest.mark.parametrize("page", ["{\nint x;\n}\nBody.", "+++\nBody.", "{\nBody.", "++++\na = 1\n++++"])
def test_lines_that_are_no_front_matter_are_text(page: str, shell: Shell, tmp_path: Path) -> None:
    shell.bring(text_files("vault", {**OBSIDIAN, "N.md": page})(tmp_path))
    (note,) = rows(shell, "brain_note")
    assert (note["title"], note["content"]) == ("N", page)


@pytest.mark.parametrize(
    ("line", "point"),
    [
        ("created: 05/03/2024", "created: 05/03/2024"),
        ("modified: last week", "modified: last week"),
        ("title: [a, b]", 'title: ["a","b"]'),
        ("type: 7", "type: 7"),
        ("date: 05/03/2024", "date: 05/03/2024"),
        ("tags: {a: 1}", 'tags: {"a":1}'),
    ],
)
def test_front_matter_that_has_no_place_of_its_own_is_kept_as_text(
    line: str, point: str, shell: Shell, tmp_path: Path
) -> None:
    shell.bring(text_files("vault", {**OBSIDIAN, "N.md": f"---\n{line}\n---\nBody.\n"})(tmp_path))
    (note,) = rows(shell, "brain_note")
    assert json.loads(note["key_points"]) == ["source: obsidian N.md", point]


PAGE = "---\ntype: table\n---\nA row an order.\n"


@pytest.mark.parametrize(
    ("files", "kind"),
    [
        ({"index.md": "# Tables\n\n* [Orders](orders.md)\n", "orders.md": PAGE}, "okf"),
        ({"orders.md": f"---\nokf_version: '0.2'\n{PAGE[4:]}"}, "okf"),
        ({"index.md": "# Tables\n", "orders.md": PAGE, "other.md": "No type.\n"}, "obsidian"),
        ({".obsidian/app.json": "{}", "index.md": "# Tables\n", "orders.md": PAGE}, "obsidian"),
        ({"index.md": "# Tables\n", "orders.md": PAGE.replace("---\nA", "permalink: orders\n---\nA")}, "basic-memory"),
    ],
)
def test_a_folder_says_what_it_is(files: dict[str, str], kind: str, shell: Shell, tmp_path: Path) -> None:
    assert shell.bring(text_files("folder", files)(tmp_path))["kind"] == kind


def test_files_that_are_no_pages_are_named(shell: Shell, tmp_path: Path) -> None:
    files = {".obsidian/app.json": "{}", ".trash/Old.md": "Gone.\n", "A.md": "Text.\n", "img/a.png": "-", ".x": "-"}
    done = shell.bring(text_files("vault", files)(tmp_path))
    assert done["remarks"] == ["left out: 1 .trash: deleted there", "left out: 1 img/a.png: is no Markdown file"]


def test_a_note_of_properties_alone_holds_them(shell: Shell, tmp_path: Path) -> None:
    shell.bring(text_files("vault", {**OBSIDIAN, "A.md": "---\nauthor: Ada\nyear: 1843\n---\n"})(tmp_path))
    assert [row["content"] for row in rows(shell, "brain_note")] == ["author: Ada\nyear: 1843"]


def test_a_repeated_key_and_other_lines_of_front_matter_are_kept(shell: Shell, tmp_path: Path) -> None:
    head = "---\ntitle: First\ntags: [a]\nnote: >\n  over two\n  lines\ntitle: Last\ntags: [b]\n---\nText.\n"
    shell.bring(text_files("vault", {".obsidian/app.json": "{}", "a.md": head})(tmp_path))
    (note,) = rows(shell, "brain_note")
    assert (note["title"], json.loads(note["tags"])) == ("Last", ["b"])
    assert {"title (2): First", 'tags (2): ["a"]', "note: >\nover two\nlines"} <= set(json.loads(note["key_points"]))


def test_older_versions_that_logseq_keeps_are_no_notes_and_its_property_gives_tags(
    shell: Shell, tmp_path: Path
) -> None:
    page = "tags:: work, [[client]], #big deal\nalias:: PA\n\n- Deadline is 5 May\n"
    files = {"pages/A.md": page, "logseq/bak/pages/A/1.md": "Old.\n", "logseq/.recycle/B.md": "Gone.\n"}
    done = shell.bring_kind("obsidian", text_files("graph", files)(tmp_path))
    assert done["counts"] == {"entities": 2, "links": 1, "notes": 1, "already there": 0, "left out": 2}
    assert done["remarks"] == ["left out: 2 logseq/.recycle, logseq/bak: deleted there"]
    lines = [json.loads(line) for line in shell.export().read_text(encoding="utf-8").splitlines()]
    (tags,) = (line["row"]["tags"] for line in lines if line.get("table") == "brain_note")
    assert json.loads(tags) == ["work", "client", "big deal"]


@pytest.mark.parametrize(
    ("text", "memories"),
    [
        ("- Never:\n  - [rule] push to main #git\n- Always:\n  - [rule] test\n", {"Never: push to main #git", "test"}),
        ("## Do not\n\n- [rule] rebase\n\n## Do\n\n- [rule] squash\n", {"Do not: rebase", "squash"}),
        (
            "**Never:**\n\n- [rule] push\n- [rule] merge\n\nThe rest:\n\n- [rule] pull\n",
            {"Never: push", "Never: merge", "pull"},
        ),
        ("Never guess.\n\n- [fact] The port is 80\n", {"The port is 80"}),
        ("- Do not push.\n- [fact] The port is 80\n", {"The port is 80"}),
        (
            "- [fact] ~~The port is 80~~ #old\n- ~~[fact] It is 81 #old~~\n- [fact] It is ~~82~~ 83\n",
            {"It is ~~82~~ 83"},
        ),
    ],
)
def test_an_observation_keeps_the_words_above_it_that_forbid_it(
    text: str, memories: set[str], shell: Shell, tmp_path: Path
) -> None:
    shell.bring_kind("basic-memory", text_files("vault", {"a.md": text})(tmp_path))
    lines = [json.loads(line) for line in shell.export().read_text(encoding="utf-8").splitlines()]
    assert {line["row"]["content"] for line in lines if line.get("table") == "brain_memory"} == memories


@pytest.mark.parametrize("head", ["archived: true", "status: archived", "deleted: true", "status: deprecated"])
def test_observations_of_a_page_that_is_no_longer_in_force_are_archived(
    head: str, shell: Shell, tmp_path: Path
) -> None:
    files = {"a.md": f"---\n{head}\n---\n- [fact] The port is 80\n", "b.md": "- [fact] It is 81\n"}
    shell.bring_kind("obsidian", text_files("vault", files)(tmp_path))
    lines = [json.loads(line) for line in shell.export().read_text(encoding="utf-8").splitlines()]
    rows = [line["row"] for line in lines if line.get("table") == "brain_memory"]
    assert {row["content"]: row["status"] for row in rows} == {"The port is 80": "archived", "It is 81": "active"}


def test_tags_that_do_not_fit_are_left_out_by_name(shell: Shell, tmp_path: Path) -> None:
    long, edge, many = "x" * 1001, "y" * 1000, [f"t{number}" for number in range(70)]
    page = f"---\ntags: {json.dumps([long, edge, *many])}\n---\n# Tea\n\n- [fact] It is green. #leaf\n"
    (tmp_path / "vault").mkdir()
    (tmp_path / "vault" / "Tea.md").write_text(page, encoding="utf-8")
    done = shell.bring_kind("obsidian", tmp_path / "vault")
    (note,), (memory,) = (rows(shell, f"brain_{kind}") for kind in ("note", "memory"))
    assert json.loads(note["tags"]) == [edge, *many[:63]]
    assert json.loads(memory["tags"]) == ["leaf", edge, *many[:62]]
    assert done["counts"]["left out"] == 9
    left = [*(f"t{number} of Tea" for number in range(63, 70)), "leaf of Tea"]
    assert done["remarks"] == [
        f"left out: 8 {', '.join(left)}: a tag beyond the first 64",
        f"left out: 1 {'x' * 119}…: a tag of more than 1,000 characters",
    ]


@pytest.mark.parametrize("kind", ["okf", "obsidian", "basic-memory"])
def test_what_a_terminal_would_obey_is_named_by_marks(kind: str, shell: Shell, tmp_path: Path) -> None:
    page = '---\ntype: fact\ntitle: "T\\u001b[1mea"\ntags: ["a\\u001b[31mb", "c\\u202ed", ok]\n---\nGreen.\n'
    files = {"a.md": page, "b.md": '---\ntype: fact\ntitle: "x\\u009by"\n---\n', "odd\x1b[2m.bin": "x"}
    done = shell.bring_kind(kind, text_files("bundle", files)(tmp_path))
    (note,) = rows(shell, "brain_note")
    assert (note["title"], json.loads(note["tags"])) == ("T [1mea", ["ok"])
    tags = "a⟨U+001B⟩[31mb of T [1mea, c⟨U+202E⟩d of T [1mea"  # of the title as it is stored
    assert sorted(done["remarks"]) == [
        "left out: 1 odd⟨U+001B⟩[2m.bin: is no Markdown file",
        "left out: 1 x y: empty",
        f"left out: 2 {tags}: a tag with characters that cannot be printed",
    ]


def test_a_long_tag_in_a_text_is_not_cut(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "Tea.md").write_text(f"# Tea\n\nSome tea #{'z' * 90} of a kind.\n", encoding="utf-8")
    shell.bring_kind("obsidian", tmp_path / "Tea.md")
    (note,) = rows(shell, "brain_note")
    assert json.loads(note["tags"]) == ["z" * 90]


@pytest.mark.parametrize("at_home", [True, False])
def test_a_folder_of_many_programs_is_refused_unless_its_kind_is_named(
    at_home: bool, shell: Shell, tmp_path: Path
) -> None:
    home = text_files("home", {"README.md": "# Read me\nTea.\n"})(tmp_path)
    shell.config = shell.config._replace(environment={"HOME": str(home)})
    folder = home if at_home else Path(home.anchor)
    with pytest.raises(Fault) as refused:
        shell.run("import", str(folder))
    reason = "holds the data of many programs: name a folder or file in it, of one of these kinds."
    assert refused.value.message.splitlines()[0] == f"{folder} {reason}"
    assert shell.bring_kind("obsidian", home)["counts"]["notes"] == 1


def test_a_vault_in_the_folder_of_the_user_is_taken(shell: Shell, tmp_path: Path) -> None:
    home = text_files("home", {**OBSIDIAN, "README.md": "# Read me\nTea.\n"})(tmp_path)
    shell.config = shell.config._replace(environment={"HOME": str(home)})
    assert shell.bring(home)["counts"]["notes"] == 1


@pytest.mark.parametrize("kind", [(), ("obsidian",), ("okf",), ("claude",)])
def test_a_folder_of_too_many_entries_is_refused_as_soon_as_they_are_listed(
    kind: tuple[str, ...], shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folders, "_MOST_ENTRIES", 5)
    folder = text_files("disk", {f"{name}/{name}.bin": "\0" for name in "abc"})(tmp_path)
    with pytest.raises(Fault) as refused:
        shell.run("import", *kind, str(folder))
    reason = "holds more than 5 files and folders: name the folder in it that is to be imported. Nothing was imported."
    assert refused.value.message == f"{folder}: {reason}"


@pytest.mark.skipif(not Path("/dev/shm").is_mount(), reason="the system has no file system in a folder of another")
def test_other_file_systems_are_named_and_left_out(shell: Shell) -> None:
    reason = "is on another file system, and is imported by its own path"
    with TemporaryDirectory(dir="/dev/shm") as folder:
        Path(folder, "CLAUDE.md").write_text("# Rules\nTea.\n")
        with pytest.raises(Fault, match=rf"^dev holds nothing that can be imported: .*shm/: {reason}"):
            shell.run("import", "obsidian", "/dev")
        done = json.loads(shell.run("import", "rules", "/dev", "--dry-run", "--json"))
    (left_out,) = (remark for remark in done["remarks"] if remark.endswith(reason))
    assert "shm/" in left_out
    assert done["counts"] == {"already there": 0, "left out": done["counts"]["left out"]}
