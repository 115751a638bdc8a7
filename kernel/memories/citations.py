"""The places in a repository that a text names: files, their symbols and lines, scripts of a package, and commits.

They follow from the text alone, so that they hold as of any time, and nothing of them is stored.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kernel.core.lazy_regex import regex

MOST = 16  # of a text
_MOST_CHARS = 8000  # of a text that are looked at
_MOST_PATH = 300
_TOKEN = regex(r"[\w@.+~/\\:#-]+(?:\(\))?")
_SCRIPTS = {"npm": "package.json", "pnpm": "package.json", "yarn": "package.json", "bun": "package.json"}
_RUNNERS = {**_SCRIPTS, "uv": "pyproject.toml"}  # before `run NAME`
# Names without an extension, and extensions by which a name without a folder counts as that of a file.
_FILES = frozenset(("Makefile", "Dockerfile", "Containerfile", "Justfile", "Procfile", "Gemfile", "LICENSE"))
_EXTENSIONS = frozenset(
    (
        "adoc astro bash bat bzl c cc cfg cjs clj cmake conf cpp cs css csv cts cxx dart ex exs fs go gradle graphql "
        "h hh hpp hs html ini ipynb java jl js json jsonc jsx kt kts less lock lua m md mdx mjs mk ml mod mts nix php "
        "pl properties proto ps1 py pyi r rb rs rst sass scala scss sh sql sum svelte swift tf toml ts tsx txt vue "
        "xml yaml yml zig"
    ).split()
)
_COMMIT_CHARS = range(7, 41)
_HEX, _DIGITS = frozenset("0123456789abcdef"), frozenset("0123456789")


class Citation(NamedTuple):
    """A place that a text names: a file by its path with slashes, and in it a symbol, a number or a line; a line is 0
    for none. A commit has no path.
    """

    path: str
    name: str = ""
    line: int = 0


class _Token(NamedTuple):
    start: int
    text: str


def citations_of(text: str) -> list[Citation]:
    """Return the places that a text names, in their order, at most so many."""
    places: dict[Citation, None] = {}
    for line in text[:_MOST_CHARS].splitlines():
        if len(places) >= MOST:
            break
        tokens = [_Token(match.start(), match[0].rstrip(".:-/\\")) for match in _TOKEN.finditer(line)]
        places |= dict.fromkeys(_of_line(tokens))
    return [*places][:MOST]


def _of_line(tokens: Sequence[_Token]) -> Iterator[Citation]:
    paths = [(token.start, place) for token in tokens if (place := _path(token.text))][:MOST]
    citations: dict[int, list[Citation]] = {at: [] for at, _ in paths}
    words = [token.text.lower() for token in tokens]
    for number, token in enumerate(tokens):
        before, first = words[number - 1 : number], words[max(0, number - 2) : max(0, number - 1)]
        if before == ["run"] and first and first[0] in _RUNNERS:
            yield Citation(_RUNNERS[first[0]], token.text)
        elif before == ["make"] and not token.text.startswith("-"):
            yield Citation("Makefile", token.text)
        elif _is_commit(token.text):
            yield Citation("", token.text)
        elif paths and (name := _symbol(token.text, before)):
            at, place = min(paths, key=lambda pair: abs(pair[0] - token.start))
            citations[at].append(Citation(place.path, name))
    for at, place in paths:
        yield from citations[at] if citations[at] and not (place.name or place.line) else [place]


def _symbol(token: str, before: Sequence[str]) -> str:
    """Return a token as the name of a symbol or a port in the file beside it; empty if it is neither."""
    name = token.removesuffix("()")
    parts = name.split(".")
    if not all(part.isidentifier() for part in parts):
        is_port = before in (["port"], ["ports"]) and 2 <= len(token) <= 5 and _DIGITS.issuperset(token)
        return token if is_port else ""
    is_member = len(parts) == 2 and parts[0][0].isupper() and parts[1] not in _EXTENSIONS
    return name if name != token or is_member else ""


def _path(token: str) -> Citation | None:
    """Return a token as a file, with the line or the symbol behind its path; None if it names none."""
    if len(token) > _MOST_PATH or "//" in token or token.endswith("()"):
        return None
    drive, rest = (token[:2], token[2:]) if token[1:3] in (":\\", ":/") else ("", token)
    path, _, behind = rest.replace("#L", ":").replace("::", ":").partition(":")
    path = drive + path.replace("\\", "/").removeprefix("./")
    folders, _, file = path.rpartition("/")
    stem, _, extension = file.rpartition(".")
    is_plain = extension.isalnum() and not extension[0].isdigit() and len(extension) <= 10
    is_file = file in _FILES or (is_plain and (bool(folders) or (bool(stem) and extension.lower() in _EXTENSIONS)))
    if not is_file or ".." in folders.split("/"):
        return None
    first = behind.partition(":")[0].partition("-")[0]
    if first.isascii() and first.isdigit():
        return Citation(path, "", int(first[:7]))
    name = behind.replace(":", ".")
    return Citation(path, name if all(part.isidentifier() for part in name.split(".")) else "")


def _is_commit(token: str) -> bool:
    return len(token) in _COMMIT_CHARS and _HEX.issuperset(token) and not (token.isdigit() or token.isalpha())
