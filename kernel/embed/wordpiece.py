"""BERT's WordPiece in plain Python: small, quick to load, with the ids of the tokenizers library."""

import re
import unicodedata
from collections.abc import Iterable
from functools import cached_property, lru_cache

import msgspec

_CACHED_CHUNKS = 16_384  # 2 to 3 MB when full; twice as many grew a server's memory for ten minutes of a load
_MAX_CACHED_LENGTH = 40  # characters; longer chunks are hashes, paths and unspaced scripts, which hardly ever recur
_PREFIX_LENGTH = 4  # characters by which the lengths of pieces are looked up; not measured
_SHORTER = tuple(range(_PREFIX_LENGTH - 1, 0, -1))
# Controls that str.split takes for whitespace and BERT deletes.
_DELETED: dict[int, None] = dict.fromkeys((0x0B, 0x0C, 0x1C, 0x1D, 0x1E, 0x1F, 0x85))
_CJK_IDEOGRAPHS = (
    ("\u3400", "\u4dbf"),
    ("\u4e00", "\u9fff"),
    ("\uf900", "\ufaff"),
    ("\U00020000", "\U0002a6df"),
    ("\U0002a700", "\U0002b81f"),
    ("\U0002b920", "\U0002ceaf"),
    ("\U0002f800", "\U0002fa1f"),
)


class _Added(msgspec.Struct):
    id: int
    content: str
    normalized: bool
    single_word: bool = False
    lstrip: bool = False
    rstrip: bool = False


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
    """A `tokenizer.json` with the rules that `WordPieceEncoder` implements; no other file decodes into it."""

    added_tokens: list[_Added]
    normalizer: BertRules
    pre_tokenizer: _BertSplit
    model: _Wordpiece


def load_encoder(raw: bytes, width: int) -> "WordPieceEncoder | None":
    """Return the encoder of a `tokenizer.json`, or None if it follows other rules than BERT's; ids take
    `width` bytes.
    """
    try:
        file = msgspec.json.decode(raw, type=_File)
    except msgspec.ValidationError:
        return None
    known = file.normalizer.clean_text and file.model.unk_token in file.model.vocab
    if not known or any(one.normalized or one.single_word or one.lstrip or one.rstrip for one in file.added_tokens):
        return None
    return WordPieceEncoder(file, width)


def pack(ids: Iterable[int], width: int) -> bytes:
    """Return the ids one after the other, each in `width` bytes, little-endian."""
    return b"".join([one.to_bytes(width, "little") for one in ids])


class WordPieceEncoder(dict[str, bytes]):
    """A cache of the packed ids of chunks, text without whitespace; a missing chunk is encoded by BERT's rules.

    No rule of BERT's normalizer, splitter or WordPiece looks past whitespace, so a text is the sum of its chunks.
    Cached chunks cost a tenth of the library's time, and the vocabulary a third of its memory and load time.
    """

    def __init__(self, file: _File, width: int) -> None:
        super().__init__()
        self.vocabulary = file.model.vocab
        self.added = {added.content: added.id.to_bytes(width, "little") for added in file.added_tokens}
        self.unknown = self.vocabulary[file.model.unk_token]
        self.prefix = file.model.continuing_subword_prefix
        self._max_word_length = file.model.max_input_chars_per_word
        self._characters = CharacterMap(file.normalizer)
        self._width = width
        # Words recur in other chunks, followed by a comma or after a bracket.
        self._packed = lru_cache(_CACHED_CHUNKS)(self._pack)

    @cached_property
    def _piece_lengths(self) -> dict[str, tuple[int, ...]]:
        """Return the lengths of the pieces with each prefix, the longest first: others need no look-up."""
        lengths: dict[str, set[int]] = {}
        for piece in self.vocabulary:
            if len(piece) >= _PREFIX_LENGTH:
                lengths.setdefault(piece[:_PREFIX_LENGTH], set()).add(len(piece))
        return {prefix: (*sorted(longer, reverse=True), *_SHORTER) for prefix, longer in lengths.items()}

    def encode(self, text: str) -> bytes:
        """Return the packed ids of any text, unknown tokens included."""
        for content in self.added:
            if content in text:
                parts = self._added_pattern.split(text)
                return b"".join(self.added[part] if at % 2 else self._encode(part) for at, part in enumerate(parts))
        return self._encode(text)

    @cached_property
    def _added_pattern(self) -> re.Pattern[str]:
        """Return the added tokens, which are found in a text before anything else; if two begin, the longer counts."""
        longest_first = sorted(self.added, key=len, reverse=True)
        return re.compile(f"({'|'.join(map(re.escape, longest_first))})")

    def _encode(self, text: str) -> bytes:
        clean = text if text.isprintable() else text.translate(_DELETED)
        return b"".join(map(self.__getitem__, clean.split()))

    def __missing__(self, chunk: str) -> bytes:
        ids = b"".join(map(self._packed, chunk.translate(self._characters).split()))
        if len(chunk) <= _MAX_CACHED_LENGTH:
            if len(self) >= _CACHED_CHUNKS:
                self.clear()
            self[chunk] = ids
        return ids

    def _pack(self, word: str) -> bytes:
        return pack(self._pieces(word), self._width)

    def _pieces(self, word: str) -> list[int]:
        """Greedy longest match from the left; one unknown id if some part matches no piece."""
        if len(word) > self._max_word_length:
            return [self.unknown]
        if (whole := self.vocabulary.get(word)) is not None:
            return [whole]
        ids: list[int] = []
        rest, prefix_length = word, 0
        while len(rest) > prefix_length:
            size = len(rest)
            for end in self._piece_lengths.get(rest[:_PREFIX_LENGTH], _SHORTER):
                if prefix_length < end <= size and (piece := self.vocabulary.get(rest[:end])) is not None:
                    break
            else:
                return [self.unknown]
            ids.append(piece)
            rest, prefix_length = self.prefix + rest[end:], len(self.prefix)
        return ids


class CharacterMap(dict[int, str]):
    """The output of BERT's normalizer and splitter for a character, with spaces around a token of its own.

    Equal to the library but for some 500 marks and signs that its Unicode tables are too old for; a test compares all
    others. No word of a vocabulary contains them.
    """

    def __init__(self, rules: BertRules) -> None:
        super().__init__()
        self._spaced_cjk = rules.handle_chinese_chars
        self._lower = rules.lowercase
        self._strip = rules.lowercase if rules.strip_accents is None else rules.strip_accents

    def __missing__(self, code: int) -> str:
        char = chr(code)
        self[code] = made = self._make(char, unicodedata.category(char))
        return made

    def _make(self, char: str, kind: str) -> str:
        if char in "\t\n\r" or kind[0] == "Z":
            return " "
        if (kind[0] == "C" and kind != "Cn") or char == "\ufffd":
            return ""
        text = char
        if self._strip:
            text = "".join(c for c in unicodedata.normalize("NFD", char) if unicodedata.category(c) != "Mn")
        if self._lower:
            text = "".join(map(str.lower, text))
        text = "".join(f" {c} " if _is_punctuation(c) else c for c in text)
        return f" {text} " if self._spaced_cjk and is_ideograph(char) else text


def is_ideograph(char: str) -> bool:
    """Return whether BERT takes a character for a word of its own."""
    return any(first <= char <= last for first, last in _CJK_IDEOGRAPHS)


def _is_punctuation(char: str) -> bool:
    return unicodedata.category(char)[0] == "P" or (char.isascii() and char.isprintable() and not char.isalnum())
