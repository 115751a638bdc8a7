"""The names under which the notes of a folder link to each other, resolved as the program of the folder does."""

from collections.abc import Iterable
from posixpath import dirname, join, normpath
from unicodedata import normalize
from urllib.parse import unquote

from handlers.importers import markdown
from handlers.importers.records import clean_line, text_of, texts_in
from kernel.core.lazy_regex import regex

# Pictures and other files beside the notes, which links show and no note is.
_FILE = regex(
    r".*\.(?:png|jpe?g|gif|svg|webp|bmp|avif|heic|tiff?|pdf|mp[34]|m4a|wav|ogg|webm|mov|zip|csv|canvas|base)", 2
)
_SUFFIX = regex(r"\.(?:md|markdown)\Z", 2)


class NoteNames:
    """Notes by the names that a link may have: of the file first, then permalink, title and alias.

    A note is the subject of one entity. That has its title as its key, or the path of the note where another has it.
    """

    def __init__(self, system: str) -> None:
        self._system = system
        self._titles: dict[str, str] = {}  # by path
        self._stems: dict[str, list[str]] = {}
        self._others: tuple[dict[str, str], dict[str, str], dict[str, str]] = ({}, {}, {})

    def add(self, path: str, page: markdown.Page) -> None:
        """Takes in a note by its path."""
        title = title_of(path, page)
        self._titles[path] = title
        self._stems.setdefault(_fold(_stem(path)), []).append(path)
        aliases = [alias for key in ("aliases", "alias") for alias in texts_in(page.head.get(key))]
        for names, own in zip(self._others, ([text_of(page.head, "permalink")], [title], aliases), strict=True):
            for name in filter(None, own):
                names.setdefault(_fold(name), path)

    def entity(self, path: str) -> tuple[str, str]:
        """Return key and name of the entity of a note."""
        title = self._titles[path]
        own = self._others[1].get(_fold(title)) == path
        return self._key(title if own else path), title

    def target(self, link: str, source: str) -> tuple[str, str] | None:
        """Return key and name of the entity that a link of a note leads to; None for a picture or another file."""
        name = unquote(link) if "%" in link else link
        path = self._path(_fold(name), source)
        if path:
            return self.entity(path)
        return None if _FILE.fullmatch(name) else (self._key(link), clean_line(link))

    def _path(self, name: str, source: str) -> str:
        """Return the note that a name means, the nearest of several; empty if it means none."""
        wanted = name.lstrip("/")
        beside = normpath(join(_fold(dirname(source)), wanted))
        candidates = self._stems.get(_stem(wanted), ())
        if near := [path for path in candidates if _is_at(path, beside, wanted)]:
            return min(near, key=lambda path: (_fold(path) != beside, path.count("/"), path))
        return next((names[name] for names in self._others if name in names), "")

    def _key(self, name: str) -> str:
        return f"{self._system}:{clean_line(name).casefold()}"


def names_of(system: str, pages: Iterable[tuple[str, markdown.Page]]) -> NoteNames:
    """Return the names of notes, each by its path."""
    names = NoteNames(system)
    for path, page in pages:
        names.add(path, page)
    return names


def title_of(path: str, page: markdown.Page) -> str:
    """Return the title of a note: of its front matter, its first heading, or its file."""
    return clean_line(
        text_of(page.head, "title", "name") or markdown.first_heading(page.body) or _SUFFIX.sub("", _stem(path))
    )


def _stem(path: str) -> str:
    return path.rpartition("/")[2]


def _is_at(path: str, whole: str, end: str) -> bool:
    return _fold(path) == whole or f"/{_fold(path)}".endswith(f"/{end}")


def _fold(name: str) -> str:
    """Return a name as it is compared: in any case, in one form of Unicode, without the ending of Markdown."""
    return _SUFFIX.sub("", normalize("NFC", name)).casefold()
