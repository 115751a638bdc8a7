"""BERT's word pieces in plain Python: small, quick to load, equal to the tokenizers library id for id."""

import unicodedata
from collections.abc import Callable, Iterable
from functools import cached_property, lru_cache
from operator import itemgetter

import msgspec

_MEMO = 16_384  # remembered chunks, 2 to 3 MB when full
_START = 4
_BEGINNING = itemgetter(slice(_START))
_MEMO_LENGTH = 40  # longer chunks are hashes, paths and unspaced scripts, which hardly ever come again
_DELETED: dict[int, None] = dict.fromkeys((0x0B, 0x0C, 0x1C, 0x1D, 0x1E, 0x1F, 0x85))
_HAN = (
    ("\u3400", "\u4dbf"),
    ("\u4e00", "\u9fff"),
    ("\uf900", "\ufaff"),
    ("\U00020000", "\U0002a6df"),
    ("\U0002a700", "\U0002b81f"),
    ("\U0002b920", "\U0002ceaf"),
    ("\U0002f800", "\U0002fa1f"),
)


class _Added(msgspec.Struct):
    content: str
    normalized: bool


class BertRules(msgspec.Struct, tag="BertNormalizer"):
    """The `normalizer` of a `tokenizer.json`."""

    clean_text: bool
    handle_chinese_chars: bool
    strip_accents: bool | None
    lowercase: bool


class _BertSplit(msgspec.Struct, tag="BertPreTokenizer"):
    pass


class _Wordpiece(msgspec.Struct, tag="WordPiece"):
    vocab: dict[str, int]
    unk_token: str
    continuing_subword_prefix: str
    max_input_chars_per_word: int


class _File(msgspec.Struct):
    """A `tokenizer.json` whose rules `Chunks` knows; no other file decodes into it."""

    added_tokens: list[_Added]
    normalizer: BertRules
    pre_tokenizer: _BertSplit
    model: _Wordpiece


def read(raw: bytes, width: int, ask: Callable[[str], bytes]) -> "Chunks | None":
    """The chunks of a `tokenizer.json`, or None if it follows other rules than BERT's.

    Ids are packed in `width` bytes; `ask` gives the packed ids of a text by the library itself.
    """
    try:
        file = msgspec.json.decode(raw, type=_File)
    except msgspec.ValidationError:
        return None
    known = file.normalizer.clean_text and file.model.unk_token in file.model.vocab
    if not known or any(added.normalized for added in file.added_tokens):
        return None
    return Chunks(file, width, ask)


def pack(ids: Iterable[int], width: int) -> bytes:
    """The ids one after the other, each in `width` bytes, little-endian."""
    return b"".join([one.to_bytes(width, "little") for one in ids])


class Chunks(dict[str, bytes]):
    """The ids of whitespace-free pieces of text by BERT's rules, computed at first sight and remembered.

    No rule of BERT's normaliser, splitter or word pieces looks past whitespace, so a text is the sum of its chunks.
    Known chunks cost a tenth of the library's time, and the vocabulary a third of its memory and load time.
    """

    def __init__(self, file: _File, width: int, ask: Callable[[str], bytes]) -> None:
        super().__init__()
        self.words = file.model.vocab
        self.added = tuple(added.content for added in file.added_tokens)
        self.unknown = self.words[file.model.unk_token]
        self._prefix = file.model.continuing_subword_prefix
        self._most = file.model.max_input_chars_per_word
        self._characters = Characters(file.normalizer)
        self._width = width
        self._ask = ask
        # Words come back in other chunks, with a comma behind them or a bracket before.
        self._packed = lru_cache(_MEMO)(self._pack)

    @cached_property
    def _longest(self) -> dict[str, int]:
        """The length of the longest piece by its first letters, so that few prefixes of a word need a look."""
        pieces = sorted(self.words, key=len)
        return dict(zip(map(_BEGINNING, pieces), map(len, pieces), strict=True))

    def split(self, text: str) -> bytes:
        """The packed ids of any text, unknown ones included."""
        # str.split would split at these controls, BERT deletes them. Printable text has none.
        clean = text if text.isprintable() else text.translate(_DELETED)
        for content in self.added:
            if content in clean:
                return self._ask(text)
        return b"".join(map(self.__getitem__, clean.split()))

    def __missing__(self, chunk: str) -> bytes:
        try:
            words = chunk.translate(self._characters).split()
        except UnprovenError:
            ids = self._ask(chunk)
        else:
            ids = b"".join(map(self._packed, words))
        if len(chunk) <= _MEMO_LENGTH:
            if len(self) >= _MEMO:
                self.clear()
            self[chunk] = ids
        return ids

    def _pack(self, word: str) -> bytes:
        return pack(self._pieces(word), self._width)

    def _pieces(self, word: str) -> list[int]:
        """The longest known piece from the left, again and again; one unknown id when nothing fits."""
        if len(word) > self._most:
            return [self.unknown]
        if (whole := self.words.get(word)) is not None:
            return [whole]
        ids: list[int] = []
        rest, given = word, 0
        while len(rest) > given:
            longest = self._longest.get(rest[:_START], _START - 1)
            for end in range(min(len(rest), longest), given, -1):
                if (found := self.words.get(rest[:end])) is not None:
                    break
            else:
                return [self.unknown]
            ids.append(found)
            rest, given = self._prefix + rest[end:], len(self._prefix)
        return ids


class UnprovenError(Exception):
    """A character whose treatment by the tokenizers library is not known to equal ours."""


class Characters(dict[int, str]):
    """What BERT's normaliser and splitter make of one character, a space on either side of what stands alone.

    The library's Unicode tables are older than Python's, so only characters are taken on that have kept their
    category since Unicode 3.2, or are plain letters, digits or symbols; a test compares every one with the library.
    """

    def __init__(self, rules: BertRules) -> None:
        super().__init__()
        self._spaced_han = rules.handle_chinese_chars
        self._lower = rules.lowercase
        self._strip = rules.lowercase if rules.strip_accents is None else rules.strip_accents

    def __missing__(self, code: int) -> str:
        char = chr(code)
        kind, old = unicodedata.category(char), unicodedata.ucd_3_2_0.category(char)
        stable = (
            (old == kind and kind not in ("Cn", "Cs"))
            or (old == "Cn" != kind and kind[0] in "LNS")
            or char in "\u00a7\u00b6"
        )
        # Other combining characters may trade places with their neighbours, which no table of single ones can say.
        if not stable or (unicodedata.combining(char) and kind != "Mn"):
            raise UnprovenError(char)
        self[code] = made = self._make(char, kind)
        return made

    def _make(self, char: str, kind: str) -> str:
        if char in "\t\n\r" or kind[0] == "Z":
            return " "
        if kind[0] == "C" or char == "\ufffd":
            return ""
        text = char
        if self._strip:
            text = "".join(c for c in unicodedata.normalize("NFD", char) if unicodedata.category(c) != "Mn")
        if self._lower:
            text = "".join(map(str.lower, text))
        text = "".join(f" {c} " if _is_punctuation(c) else c for c in text)
        return f" {text} " if self._spaced_han and any(first <= char <= last for first, last in _HAN) else text


def _is_punctuation(char: str) -> bool:
    return unicodedata.category(char)[0] == "P" or (char.isascii() and char.isprintable() and not char.isalnum())
