"""Training texts of the model: sentences and short paragraphs of descriptions, dictionaries and documentation.

Reads a folder of unpacked packages and infers the kind of each file from its name: `*Translation-*` (Debian package
descriptions), `*.dict.dz` (dictionaries), `fortunes/*`, `*.rst*` and `*.txt*` (documentation), `*.html` (its
paragraphs), `METADATA` (of Python packages), `*.py` (functions and docstrings). Writes one JSON string a line; the same
files give the same lines.
"""

import ast
import gzip
import html
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

import msgspec

from loadtests.lib.servers import options

MOST = 110  # words: a memory is a sentence or a short paragraph
LEAST = 3
# No kind may outweigh the others; one that is not named is taken whole.
CAPS = {
    "description": 60_000,
    "gloss": 75_000,
    "example": 45_000,
    "gcide": 25_000,
    "foldoc": 12_000,
    "manual": 55_000,
    "function": 14_000,
    "docstring": 12_000,
}
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z\"'])")
_SENSE = re.compile(r"(?:^| )(?:n|v|adj|adv)? ?\d+: |(?:^| )(?:n|v|adj|adv) : ")
_NOTE = re.compile(r"\[(?:syn|ant|also):[^\]]*\]")
_SOURCE = re.compile(r"\[1913 Webster\]|\[Webster 1913 Suppl\.\]|\[[A-Z][^\]]{0,30}\]|\(\d{4}-\d\d-\d\d\)|[{}]")
_ROLE = re.compile(r":[a-z:-]+:`~?\.?([^`<]*?)(?: <[^`]*>)?`")
_NO_PROSE = re.compile(r"\s*(?:\.\.|>>>|[-=~^*#+|]{3,}|:)")
_PACKAGE = re.compile(r"^Package: (\S+)", re.M)
_ABOUT = re.compile(r"^Description-(?!md5)\w+: (.*(?:\n .*)*)", re.M)
_FAMILY = re.compile(r"(?:lib|python3?-|r-cran-|r-bioc-|golang-[a-z]+-|node-|ruby-|fonts-|librust-)*([a-z]*)")
_HELD_OUT = 0.3
_LONG_FUNCTION = 1500


class Text(NamedTuple):
    """One text and the kind of its source."""

    kind: str
    text: str


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the texts and print the number of each kind."""
    into = {"type": Path, "required": True}
    chosen = options(__doc__, arguments, folder=into, into=into)
    texts = mixed(found(chosen.folder))
    chosen.into.write_bytes(b"".join(msgspec.json.encode(one.text) + b"\n" for one in texts))
    for kind in sorted({one.kind for one in texts}):
        print(f"{kind:12} {sum(one.kind == kind for one in texts):>8,}")
    return 0


def mixed(texts: Iterable[Text]) -> list[Text]:
    """Texts without duplicates (case and punctuation ignored), limited per kind, in an order given by the texts."""
    kept: dict[str, Text] = {}
    for kind, text in texts:
        words = text.split()
        if len(words) >= LEAST:
            shortened = " ".join(words[:MOST])
            kept.setdefault(re.sub(r"\W+", "", shortened.lower())[:80], Text(kind, shortened))
    count: dict[str, int] = {}
    chosen: list[Text] = []
    for one in sorted(kept.values(), key=lambda one: (chance(one.text), one)):
        count[one.kind] = count.get(one.kind, 0) + 1
        if count[one.kind] <= CAPS.get(one.kind, count[one.kind]):
            chosen.append(one)
    return chosen


def found(folder: Path) -> Iterator[Text]:
    """The texts of every file under the folder, with the kind that its name implies."""
    for file in sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()):
        name = file.name.removesuffix(".gz")
        if "Translation-" in name:
            yield from descriptions(read(file))
        elif name.endswith(".dict.dz"):
            yield from dictionary(name.partition(".")[0], read(file))
        elif file.parent.name == "fortunes" and not file.suffix:
            yield from fortunes(read(file))
        elif name.endswith((".rst", ".txt")) or name == "METADATA":
            yield from manual(read(file).split("\n\n", 1)[-1] if name == "METADATA" else read(file))
        elif name.endswith(".html"):
            yield from page(read(file))
        elif name.endswith(".py") and "/test" not in f"/{file.relative_to(folder)}":
            yield from functions(read(file))


def read(file: Path) -> str:
    """The text of a file, decompressed if needed."""
    raw = file.read_bytes()
    return (gzip.decompress(raw) if raw.startswith(b"\x1f\x8b") else raw).decode(errors="replace")


def chance(text: str) -> float:
    """A pseudo-random number in [0, 1) derived from the text."""
    return crc32(text.encode(errors="replace")) / 2**32


def prose(kind: str, paragraph: str) -> Iterator[Text]:
    """The paragraph, or for every second longer one its sentences."""
    flat = " ".join(paragraph.split())
    alone = len(flat.split()) > 25 and chance(flat) < 0.5
    yield from (Text(kind, part) for part in (_SENTENCE.split(flat) if alone else [flat]))


class Package(NamedTuple):
    """A Debian package: name, synopsis, and the paragraphs of its description."""

    name: str
    line: str
    paragraphs: list[str]

    @property
    def held_out(self) -> bool:
        """Whether it is held out for evaluation (`debian_dataset.py`), with all packages of the same name prefix."""
        family = _FAMILY.match(self.name)
        return chance((family and family[1]) or self.name) < _HELD_OUT


def packages(listing: str) -> Iterator[Package]:
    """The package descriptions of Debian."""
    for block in listing.split("\n\n"):
        name, about = _PACKAGE.search(block), _ABOUT.search(block)
        if name and about:
            line, _, rest = about[1].partition("\n")
            paragraphs = [" ".join(part.split()) for part in re.split(r"\n \.\n?", "\n" + rest)]
            yield Package(name[1], line, [part for part in paragraphs if part])


def descriptions(listing: str) -> Iterator[Text]:
    """The synopsis and the first paragraphs of package descriptions."""
    for package in packages(listing):
        if not package.held_out:
            yield Text("description", package.line)
            for paragraph in package.paragraphs[:3]:
                if not paragraph.startswith("This package"):
                    yield from prose("description", paragraph)


def dictionary(name: str, text: str) -> Iterator[Text]:
    """WordNet's glosses and examples; of other dictionaries the paragraphs and their quotations."""
    if name != "wn":
        for paragraph in re.split(r"\n\s*\n", _SOURCE.sub("", text)):
            body = paragraph if "\\" not in paragraph.partition("\n")[0] else paragraph.partition("\n")[2]
            yield from (Text("quote", quote) for quote in re.findall(r'"([A-Z][^"]{20,300}[.!?])"', body))
            yield Text(name, re.sub(r'"[^"]*"|--\S[^\n]*|^\s*\d+\. ', "", body))
        return
    for entry in re.split(r"\n(?=\S)", text):
        head, _, body = entry.partition("\n")
        for sense in _SENSE.split(" ".join(body.split()))[1:]:
            meaning = _NOTE.sub("", sense)
            gloss = re.sub(r'; ?"[^"]*"', "", meaning).strip(" ;")
            form = int(chance(gloss) * 3)
            yield Text("gloss", (f"{head}: {gloss}", f"{head} is {gloss}", gloss)[form])
            yield from (Text("example", quote[0].upper() + quote[1:]) for quote in re.findall(r'"([^"]+)"', meaning))


def fortunes(text: str) -> Iterator[Text]:
    """Fortunes, without their attribution."""
    for saying in text.split("\n%\n"):
        yield from prose("fortune", re.sub(r"\n\s+-- .*", "", saying, flags=re.S))


def manual(text: str) -> Iterator[Text]:
    """The paragraphs of documentation that are mostly letters, without markup."""
    for paragraph in re.split(r"\n\s*\n", text):
        plain = re.sub(r"``|\*\*|`_*", "", _ROLE.sub(r"\1", paragraph))
        letters = sum(map(str.isalpha, plain))
        if not _NO_PROSE.match(plain) and letters > 0.7 * len("".join(plain.split())):
            yield from prose("manual", plain)


def page(text: str) -> Iterator[Text]:
    """The paragraphs of a page."""
    for paragraph in re.findall(r"<p[^>]*>(.*?)</p>", text, re.S):
        yield from prose("page", html.unescape(re.sub(r"<[^>]+>", " ", paragraph)))


def functions(source: str) -> Iterator[Text]:
    """Documented Python functions: short ones whole, or their docstrings."""
    try:
        with warnings.catch_warnings(action="ignore"):
            tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return
    lines = source.split("\n")
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and (about := ast.get_docstring(node)):
            code = "\n".join(lines[node.lineno - 1 : node.end_lineno])
            whole = len(code) < _LONG_FUNCTION and chance(code) < 0.5
            yield Text("function", code) if whole else Text("docstring", about.split("\n\n")[0])


if __name__ == "__main__":
    raise SystemExit(main())
