"""Parallel texts of English and another language, read from packages whose licences allow a model to be fitted to them.

Debian's package descriptions, LibreOffice's messages and help pages (MPL-2.0), the messages of Home Assistant
(Apache-2.0), Django, Wagtail and Oscar (BSD), Indico, Kolibri, Spyder and Thonny (MIT), names of emoji, countries,
languages, months and units of CLDR (Unicode), and the everyday words of `everyday.txt`. `read` expects each package
unpacked into a folder of its name; the same packages give the same texts.
"""

import html
import json
import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from loadtests.quality.training_texts import chance, packages

LANGUAGES = tuple("ar bn cs de el es fa fr he hi id it ja ko nl pl pt ru sv th tr uk vi zh".split())
LATIN = frozenset("cs de es fr id it nl pl pt sv tr vi".split())
_STANDARDS = frozenset(
    "zh-cn zh-hans pt-br pt-pt es-es de-de fr-fr it-it sv-se hi-in cs-cz pl-pl tr-tr uk-ua ru-ru nl-nl ja-jp".split()
)
LONGEST = 300  # characters; the words of longer paragraphs are no evidence for each other
_SHORTEST = 2
_CAPS: Mapping[str, int] = {"description": 9_000, "help": 9_000, "message": 12_000, "home": 12_000}
_MARKUP = re.compile(r"<[^<>]{1,200}>|%\(\w{1,30}\)\w|%\d?\$?\w|\{[^{}]{0,200}\}|\$\(?\w{1,30}\)?|&\w{1,9};|\\n")
_ACCELERATOR = re.compile(r"[~_&](?=\w)|\(_?&?[A-Z]\)")
_ELEMENT = re.compile(r'<(?:p|h\d) id="((?:par|hd)_id\w{1,30})"[^<>]{0,200}>(.{1,4000}?)</(?:p|h\d)>', re.S)
_HIDDEN = re.compile(r'<span hidden="true"[^<>]{0,200} class="MAC">[^<>]{0,200}</span>')


class Pair(NamedTuple):
    """An English text and the same in another language (ISO 639-1), and the kind of its source."""

    language: str
    kind: str
    english: str
    other: str


def read(folder: Path) -> list[Pair]:
    """Return the pairs of all sources under the folder, limited per language and kind, in an order of their own."""
    texts: dict[tuple[str, str, str], Pair] = {}
    for source in (_everyday, _descriptions, _libreoffice, _help, _home_assistant, _gettext, _cldr):
        for language, kind, english, other in source(folder):
            pair = Pair(language, kind, _flat(english), _flat(other))
            if language in LANGUAGES and _usable(pair):
                texts.setdefault((language, pair.english.lower(), pair.other.lower()), pair)
    count: dict[tuple[str, str], int] = {}
    chosen: list[Pair] = []
    for pair in sorted(texts.values(), key=lambda pair: (chance("".join(pair)), pair)):
        at = pair.language, pair.kind
        count[at] = count.get(at, 0) + 1
        if count[at] <= _CAPS.get(pair.kind, count[at]):
            chosen.append(pair)
    return chosen


def _usable(pair: Pair) -> bool:
    short = _SHORTEST <= len(pair.english) <= LONGEST and 0 < len(pair.other) <= LONGEST
    return short and pair.english.lower() != pair.other.lower() and any(map(str.isalpha, pair.other))


def _flat(text: str) -> str:
    return " ".join(_ACCELERATOR.sub("", _MARKUP.sub(" ", html.unescape(text))).split())


def _code(name: str) -> str:
    """Return the language of a locale's name, empty for a variety that is not its standard."""
    name = name.replace("%5f", "-").replace("_", "-").lower()
    if name in _STANDARDS:
        return name[:2]
    return "" if "-" in name else name


def _everyday(_folder: Path) -> Iterator[Pair]:
    """Yield the words of each row of `everyday.txt`, a column for each language, `/` between words of a cell."""
    lines = Path(__file__).with_name("everyday.txt").read_text(encoding="utf-8").splitlines()
    languages = lines[0].split("|")
    for line in lines[1:]:
        english, *others = line.replace("/", " ").split("|")
        for language, other in zip(languages[1:], others, strict=True):
            yield Pair(language, "everyday", english, other)


def _descriptions(folder: Path) -> Iterator[Pair]:
    """Yield the descriptions of Debian's packages, paired by the digest of the English text."""
    lists = folder / "descriptions"
    english = dict(_described(lists, "en"))
    for file in sorted(lists.glob("*Translation-*")):
        language = _code(file.name.rpartition("-")[2])
        for digest, other in _described(lists, file.name.rpartition("-")[2]) if language != "en" else ():
            same = english.get(digest)
            if same is not None and len(same) == len(other):
                yield from (Pair(language, "description", *both) for both in zip(same, other, strict=True))


def _described(lists: Path, locale: str) -> Iterator[tuple[str, Sequence[str]]]:
    for file in sorted(lists.glob(f"*Translation-{locale}")):
        for block in file.read_text(encoding="utf-8", errors="replace").split("\n\n"):
            digest = re.search(r"^Description-md5: (\S{32})", block, re.M)
            for package in packages(block) if digest else ():
                if digest and not package.held_out:
                    yield digest[1], (package.line, *package.paragraphs)


def _libreoffice(folder: Path) -> Iterator[Pair]:
    for package in sorted(folder.glob("libreoffice-l10n-*")):
        language = _code(package.name.removeprefix("libreoffice-l10n-"))
        for file in sorted(package.rglob("*.mo")):
            yield from (Pair(language, "message", *both) for both in _catalogue(file.read_bytes()))


def _gettext(folder: Path) -> Iterator[Pair]:
    for package in ("django", "django-oscar", "indico", "kolibri", "spyder", "thonny", "wagtail"):
        for file in sorted((folder / package).rglob("*/LC_MESSAGES/*.mo")):
            language = _code(file.parent.parent.name)
            yield from (Pair(language, "program", *both) for both in _catalogue(file.read_bytes()))


def _catalogue(raw: bytes) -> Iterator[tuple[str, str]]:
    """Yield the messages of a GNU .mo file with their translations, without contexts and plurals."""
    if raw[:4] != b"\xde\x12\x04\x95":
        return
    count, originals, translations = struct.unpack_from("<III", raw, 8)

    def text(table: int, number: int) -> str:
        length, start = struct.unpack_from("<II", raw, table + 8 * number)
        return raw[start : start + length].decode(errors="replace").split("\0")[0]

    for number in range(count):
        yield text(originals, number).split("\x04")[-1], text(translations, number)


def _help(folder: Path) -> Iterator[Pair]:
    """Yield the paragraphs of LibreOffice's help, paired by page and id."""
    pages = folder / "libreoffice-help-en-us/usr/share/libreoffice/help/en-US/text"
    english = {page.relative_to(pages): _paragraphs(page) for page in sorted(pages.rglob("*.html"))}
    for package in sorted(folder.glob("libreoffice-help-*")):
        language = _code(package.name.removeprefix("libreoffice-help-"))
        for root in sorted(package.glob("usr/share/libreoffice/help/*/text")) if language else ():
            for name, paragraphs in english.items():
                other = _paragraphs(root / name) if (root / name).is_file() else {}
                shared = (key for key in paragraphs if key in other)
                yield from (Pair(language, "help", paragraphs[key], other[key]) for key in shared)


def _paragraphs(page: Path) -> Mapping[str, str]:
    text = _HIDDEN.sub("", page.read_text(encoding="utf-8", errors="replace"))
    return {key: re.sub(r"<[^<>]{1,400}>", "", body) for key, body in _ELEMENT.findall(text)}


def _home_assistant(folder: Path) -> Iterator[Pair]:
    """Yield the messages of Home Assistant, paired by place and key; the files of its pages have digests as names."""
    for package in ("homeassistant", "home-assistant-frontend"):
        for english in sorted((folder / package).rglob("translations/**/en*.json")):
            if english.stem.partition("-")[0] + english.stem[2:][-33:] not in {"en", english.stem}:
                continue
            texts = dict(_names(json.loads(english.read_bytes())))
            for file in sorted(english.parent.glob("*.json")):
                language = _code(re.sub(r"-[0-9a-f]{32}$", "", file.stem))
                other = dict(_names(json.loads(file.read_bytes()))) if language not in {"", "en"} else {}
                for key in (key for key in texts if isinstance(texts[key], str) and isinstance(other.get(key), str)):
                    yield Pair(language, "home", str(texts[key]), str(other[key]))


def _cldr(folder: Path) -> Iterator[Pair]:
    """Yield the names and keywords of emoji, and the names of countries, languages, currencies, months and days."""
    for package in sorted(folder.glob("cldr-*")):
        for english in sorted(package.rglob("en/*.json")):
            texts = dict(_names(json.loads(english.read_bytes())))
            for file in sorted(english.parent.parent.glob(f"*/{english.name}")):
                other = dict(_names(json.loads(file.read_bytes()))) if _code(file.parent.name) else {}
                for key in (key for key in texts if key in other):
                    kind = "names" if isinstance(texts[key], str) else "keywords"
                    yield Pair(_code(file.parent.name), kind, _joined(texts[key]), _joined(other[key]))


def _joined(names: str | Sequence[str]) -> str:
    return names if isinstance(names, str) else ", ".join(names[:8])


def _names(tree: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, str | Sequence[str]]]:
    """Yield the path of each text or list of texts; the locale in the path is left out."""
    for key, value in tree.items():
        place = (
            path if path in {"/main", "/annotations"} and key not in {"annotations", "identity"} else f"{path}/{key}"
        )
        if key in {"identity", "_cldrVersion", "_number"}:
            continue
        if isinstance(value, dict):
            yield from _names(value, place)
        elif isinstance(value, list):
            yield from ((place, value),) if len(value) > 1 else ((place, value[0]),) if value else ()
        elif isinstance(value, str):
            yield place, value
