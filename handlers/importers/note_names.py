"""The names under which the notes of a folder link to each other, resolved as the program of the folder does."""

from collections.abc import Iterable, Iterator
from posixpath import dirname, join, normpath
from typing import NamedTuple
from urllib.parse import unquote

from handlers.importers import markdown
from handlers.importers.records import clean_line, text_of, texts_in
from kernel.core.lazy_regex import regex
from kernel.core.text import composed

# Pictures and other files beside the notes, which links show and no note is.
_FILE = regex(
    r".*\.(?:png|jpe?g|gif|svg|webp|bmp|avif|heic|tiff?|pdf|mp[34]|m4a|wav|ogg|webm|mov|zip|csv|canvas|base)", 2
)
_SUFFIX = regex(r"\.(?:md|markdown|txt)\Z", 2)


class NoteNames(NamedTuple):
    """The notes of a folder: their titles by path, their paths as compared, by digests of the ends of a path, and by
    each other name.
    """

    system: str
    titles: dict[str, str]
    paths: dict[str, str]
    ends: dict[int, str]
    permalinks: dict[str, str]
    by_title: dict[str, str]
    aliases: dict[str, str]


def names_of(system: str, pages: Iterable[tuple[str, markdown.Page]]) -> NoteNames:
    names = NoteNames(system, {}, {}, {}, {}, {}, {})
    for path, page in pages:
        names.titles[path] = title_of(path, page)
        names.by_title.setdefault(_fold(names.titles[path]), path)
        names.permalinks.setdefault(_fold(text_of(page.head, "permalink")), path)
        for alias in (alias for key in ("aliases", "alias") for alias in texts_in(page.head.get(key))):
            names.aliases.setdefault(_fold(alias), path)
    for path in sorted(names.titles, key=lambda path: (path.count("/"), path)):
        names.paths.setdefault(_fold(path), path)
        for end in _ends(_fold(path)):
            names.ends.setdefault(end, path)
    return names


def entity_of(names: NoteNames, path: str) -> tuple[str, str]:
    """Return key and name of the entity of a note: its title, and as the key its path if another has the title."""
    title = names.titles.get(path, path)  # a file may be new since the names were read
    return _key(names, title if names.by_title.get(_fold(title)) == path else path), title


def linked_entity(names: NoteNames, link: str, source: str) -> tuple[str, str] | None:
    """Return key and name of the entity that a link of a note leads to; None for a picture or another file."""
    name = unquote(link) if "%" in link else link
    path = _path(names, _fold(name), source)
    if path:
        return entity_of(names, path)
    return None if _FILE.fullmatch(name) else (_key(names, link), clean_line(link))


def _path(names: NoteNames, name: str, source: str) -> str:
    """Return the path of the note that a name means: the file beside the source, else the uppermost of such an end,
    else a note with the name; empty if there is none.
    """
    target = name.lstrip("/")
    beside = normpath(join(_fold(dirname(source)), target))
    if _last(target) == _last(beside) and beside in names.paths:
        return names.paths[beside]
    *_, end = _ends(target)
    tables = (names.permalinks, names.by_title, names.aliases)
    return names.ends.get(end) or next((paths[name] for paths in tables if name and name in paths), "")


def _ends(path: str) -> Iterator[int]:
    """Yield digests of the ends of a path: of its last part, its last two, and so on, each without the text of it."""
    end = 0
    for part in reversed(path.split("/")):
        end = hash((end, part))
        yield end


def _key(names: NoteNames, name: str) -> str:
    return f"{names.system}:{clean_line(name).casefold()}"


def title_of(path: str, page: markdown.Page) -> str:
    """Return the title of a note: of its front matter, its first heading, or its file."""
    return clean_line(
        text_of(page.head, "title", "name") or markdown.first_heading(page.body) or _SUFFIX.sub("", _last(path))
    )


def _last(path: str) -> str:
    return path.rpartition("/")[2]


def _fold(name: str) -> str:
    """Return a name as it is compared: in any case, in one form of Unicode, without the ending of Markdown."""
    return _SUFFIX.sub("", composed(name)).casefold()
