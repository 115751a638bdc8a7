"""The tokenizer of a model folder: the ids that model2vec pools, and those that have a meaning."""

import re
import string
import threading
import unicodedata
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from zlib import crc32

import msgspec

from kernel.core.lazy_regex import regex

if TYPE_CHECKING:
    from tokenizers import Tokenizer

MIN_WORD_SHARE = 0.5  # of the words and of the letters of a text that has a meaning; not measured
_MIN_IDEOGRAPHS = 2000  # a vocabulary with as many as a newspaper needs was trained on Chinese; that of English has 492
_MAX_LETTERS = 512  # of a text that are counted, since an unknown word may be a sentence; not measured
# Letters of scripts without spaces: Thai, kana, ideographs. Words end where Latin or katakana begins or ends.
_UNSPACED = "\u0e00-\u0e7f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002fa1f"
_KATAKANA = "\u30a0-\u30ff"
_JOINT = regex(
    f"(?<=[{_UNSPACED}])(?=[0-9a-z])|(?<=[0-9a-z])(?=[{_UNSPACED}])"
    f"|(?<=[{_KATAKANA}])(?=[{_UNSPACED}])(?![{_KATAKANA}])|(?<=[{_UNSPACED}])(?<![{_KATAKANA}])(?=[{_KATAKANA}])"
)
_UNSPACED_LETTER = regex(f"[{_UNSPACED}]")
_IN_ASCII_WORDS = f"{string.ascii_letters}{string.digits} \n".encode()
_EMOJI = regex("[\u2190-\u2bff\ufe0f\U0001f000-\U0001faff]+")

_CACHED_WORDS = 16_384  # 2 to 3 MB when full; twice as many grew a server's memory for ten minutes of a load
_CACHED_ENDINGS = 4_096  # of rare words; 65,536 are no faster
_MAX_CACHED_LENGTH = 40  # characters; longer words are hashes and unspaced scripts, which hardly ever recur
_LONGEST_WORD = 100_000  # characters; more than max_input_chars_per_word, since words without spaces are sentences
PREFIX_LENGTH = 4  # characters by which the lengths of pieces are looked up; not measured
_SHORTER = tuple(range(PREFIX_LENGTH - 1, 0, -1))
WHOLE = " "  # ends a key beside the vocabulary that is a whole word and no beginning of others
LONGEST_KEY = 31  # characters of a key beside the vocabulary; a bit of 32 for each length
_SLICE_BITS = 54  # of a hash, besides those by which its slice is looked up: a thousand slices
_LENGTHS = range(LONGEST_KEY, PREFIX_LENGTH - 1, -1)
_HASH = blake2b(digest_size=8)
NO_BITS = b"\xff"  # of keys beside the vocabulary: any text may be one
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


class MoreKeys:
    """Keys beside a vocabulary, too many for a `dict`: their hashes in order with the id of each, and the hashes of
    their first characters in order with the lengths of the keys that begin so, a bit for each.

    They come before the vocabulary for words that are not ASCII, and after it for others. `bits` tell most texts that
    are no key in a quarter of a hash's time: the bit at the CRC-32 of each key is set. A power of two of bytes.
    """

    def __init__(
        self,
        keys: "memoryview[int]",
        ids: "memoryview[int]",
        beginnings: "memoryview[int]",
        lengths: "memoryview[int]",
        *,
        bits: bytes = NO_BITS,
    ) -> None:
        self.get = _look_up(keys, ids, bits)
        self._mask = _look_up(beginnings, lengths, NO_BITS)

    def sizes(self, beginning: str) -> frozenset[int]:
        """Return the lengths of the keys with these first characters."""
        mask = self._mask(beginning) or 0
        return frozenset(length for length in _LENGTHS if mask >> length & 1)


def hash_of(text: str) -> int:
    """Return the 64 bits by which a model's file knows a key."""
    digest = _HASH.copy()  # in two thirds of the time of a new hash
    digest.update(text.encode("utf-8", "surrogatepass"))
    return int.from_bytes(digest.digest(), "little")


def _look_up(hashes: "memoryview[int]", values: "memoryview[int]", bits: bytes) -> Callable[[str], int | None]:
    """Return a function from a text to the value at its hash; a text has none if its bit is not set."""
    # Each slice of the sorted hashes has the same first bits: it takes seven steps instead of seventeen.
    starts = array("I", (bisect_left(hashes, part << _SLICE_BITS) for part in range((1 << 64 - _SLICE_BITS) + 1)))
    last = len(bits) - 1

    def look_up(text: str) -> int | None:
        bit = crc32(text.encode())  # no word has a surrogate any more
        if not bits[bit >> 3 & last] >> (bit & 7) & 1:
            return None
        code = hash_of(text)
        part = code >> _SLICE_BITS
        end = starts[part + 1]
        at = bisect_left(hashes, code, starts[part], end)
        return values[at] if at < end and hashes[at] == code else None

    return look_up


class Word(NamedTuple):
    """The packed ids of a word, the number of its letters, and whether pieces of one letter make up most of it."""

    ids: bytes
    letters: int
    spelled: bool


def load_encoder(raw: bytes, width: int, more: MoreKeys | None = None) -> "WordPieceEncoder | None":
    """Return the encoder of a `tokenizer.json`, or None if it follows other rules than BERT's; ids take
    `width` bytes.
    """
    try:
        file = msgspec.json.decode(raw, type=_File)
    except msgspec.ValidationError:
        return None
    is_bert = file.normalizer.clean_text and file.model.unk_token in file.model.vocab
    if not is_bert or any(
        token.normalized or token.single_word or token.lstrip or token.rstrip for token in file.added_tokens
    ):
        return None
    return WordPieceEncoder(file, width, more)


def pack(ids: Iterable[int], width: int) -> bytes:
    """Return the ids one after the other, each in `width` bytes, little-endian."""
    return b"".join([id_.to_bytes(width, "little") for id_ in ids])


class WordPieceEncoder(dict[str, bytes]):
    """A cache of the packed ids of words, as BERT's normalizer and splitter leave them; WordPiece encodes a missing
    word.

    A text whose words are there costs a tenth of the library's time, and the vocabulary a third of its memory and load
    time.
    """

    def __init__(self, file: _File, width: int, more: MoreKeys | None = None) -> None:
        super().__init__()
        if more is not None:
            # Keys of several ideographs are words, and a word of Thai may be as long as a sentence.
            file.normalizer.handle_chinese_chars = False
            file.model.max_input_chars_per_word = _LONGEST_WORD
        self._more = more
        self.vocabulary = file.model.vocab
        self.added = {token.content: token.id.to_bytes(width, "little") for token in file.added_tokens}
        firsts = {content[:1] for content in self.added}
        self._mark = firsts.pop() if len(firsts) == 1 else ""  # of every added token, a bracket: most texts have none
        self.unknown = self.vocabulary[file.model.unk_token]
        self.prefix = file.model.continuing_subword_prefix
        self._max_word_length = file.model.max_input_chars_per_word
        self._lowers = file.normalizer.lowercase
        self._characters = CharacterMap(file.normalizer)
        self._width = width
        self._word = lru_cache(_CACHED_WORDS)(self._make_word)
        self._sizes = lru_cache(_CACHED_WORDS)(self._make_sizes)
        self._ending = lru_cache(_CACHED_ENDINGS)(self._make_ending)

    @cached_property
    def _piece_lengths(self) -> dict[str, tuple[int, ...]]:
        lengths: dict[str, set[int]] = {}
        for piece in self.vocabulary:
            if len(piece) >= PREFIX_LENGTH:
                lengths.setdefault(piece[:PREFIX_LENGTH], set()).add(len(piece))
        return {prefix: tuple(longer) for prefix, longer in lengths.items()}

    def encode(self, text: str) -> bytes:
        """Return the packed ids of any text, unknown tokens included."""
        if self._mark not in text or not any(content in text for content in self.added):
            return self._encode(text)
        parts = self._added_pattern.split(text)
        return b"".join(self.added[part] if at % 2 else self._encode(part) for at, part in enumerate(parts))

    @cached_property
    def _added_pattern(self) -> re.Pattern[str]:
        """Return the added tokens, which are found in a text before anything else; if two begin, the longer counts."""
        longest_first = sorted(self.added, key=len, reverse=True)
        return re.compile(f"({'|'.join(map(re.escape, longest_first))})")

    def _encode(self, text: str) -> bytes:
        return b"".join(map(self.__getitem__, self._split(text)))

    def __missing__(self, word: str) -> bytes:
        ids = pack(self.pieces(word), self._width)
        if len(word) <= _MAX_CACHED_LENGTH:
            if len(self) >= _CACHED_WORDS:
                self.clear()
            self[word] = ids
        return ids

    def _split(self, text: str) -> list[str]:
        """Return the words and the punctuation of a text."""
        if self._lowers and text.isascii():
            marks = text.encode().translate(None, _IN_ASCII_WORDS).decode()
            if marks.isprintable():
                text = text.lower()
                for mark in {*marks}:  # two thirds of the time of a regular expression
                    text = text.replace(mark, f" {mark} ")
                return text.split()
        if not text.replace("\n", " ").isprintable():
            text = text.translate(_DELETED)
        text = text.translate(self._characters)
        return (text if self._more is None or text.isascii() else _JOINT.sub(" ", text)).split()

    def pieces(self, word: str) -> list[int]:
        """Return the ids of a word's pieces; one unknown id if some part matches no piece."""
        return [token for _, token in self._match(word)] or [self.unknown]

    def _match(self, word: str) -> Sequence[tuple[str, int]]:
        """Return the pieces of a word with their ids: greedy longest match from the left; none if a part has none."""
        more_first = self._more is not None and not word.isascii()
        if not more_first and (whole := self.vocabulary.get(word)) is not None and len(word) <= self._max_word_length:
            return ((word, whole),)
        if self._more is not None and (whole := self._more.get(word + WHOLE)) is not None:
            return ((word, whole),)
        if len(word) > self._max_word_length or (first := self._longest(word, 0, more_first)) is None:
            return ()
        if len(first[0]) == len(word):
            return (first,)
        rest = self.prefix + word[len(first[0]) :]
        further = (self._ending if len(rest) <= _MAX_CACHED_LENGTH else self._make_ending)(rest, more_first)
        return (first, *further) if further else ()

    def _make_ending(self, rest: str, more_first: bool) -> Sequence[tuple[str, int]]:
        """Return the pieces of a word but for the first, which other words have too."""
        pieces: list[tuple[str, int]] = []
        length = len(self.prefix)
        while len(rest) > length:
            if (piece := self._longest(rest, length, more_first)) is None:
                return ()
            pieces.append(piece)
            rest = self.prefix + rest[len(piece[0]) :]
        return pieces

    def _longest(self, rest: str, shortest: int, more_first: bool) -> tuple[str, int] | None:
        """Return the longest piece with more than `shortest` characters that a text begins with, and its id."""
        size, own = len(rest), self.vocabulary.get
        for end, more in self._sizes(rest[:PREFIX_LENGTH]):
            if shortest < end <= size:
                piece = rest[:end]
                token = own(piece)
                if more is not None and (token is None or more_first):
                    extra = more(piece)
                    token = token if extra is None else extra
                if token is not None:
                    return piece, token
        return None

    def _make_sizes(self, beginning: str) -> list[tuple[int, Callable[[str], int | None] | None]]:
        """Return the lengths of the pieces that a text with these first characters may begin with, the longest first,
        each with the look-up of the keys beside the vocabulary if they have it, since that costs a hash.
        """
        own = self._piece_lengths.get(beginning, ())
        if self._more is None:
            return [(length, None) for length in (*sorted(own, reverse=True), *_SHORTER)]
        more = self._more.sizes(beginning)
        lengths = (*sorted({*own, *more}, reverse=True), *_SHORTER)
        return [(length, self._more.get if length in more or length < PREFIX_LENGTH else None) for length in lengths]

    def is_whole(self, word: str) -> bool:
        """Return whether a word is a single piece of the vocabulary; the keys beside it do not count."""
        words = self._split(word)
        return len(words) == 1 and words[0] in self.vocabulary

    def words(self, text: str) -> Iterator[Word]:
        """Yield the words of a text, emoji left out, which are no words and no part of the words beside them."""
        text = _EMOJI.sub(" ", text)
        parts = self._added_pattern.split(text) if any(content in text for content in self.added) else [text]
        for at, part in enumerate(parts):
            if at % 2:
                yield Word(self.added[part], 0, spelled=False)
            else:
                yield from map(self._word, self._split(part))

    def _make_word(self, word: str) -> Word:
        pieces = self._match(word)
        if not pieces:
            return Word(pack([self.unknown], self._width), 1, spelled=True)
        texts = [piece.removeprefix(self.prefix) if piece != self.prefix else piece for piece, _ in pieces]
        letters = sum(sum(map(_is_letter, text)) for text in texts)
        single = sum(
            len(text) == 1 and not text.isascii() and _is_letter(text) and not self._is_word(piece, text)
            for (piece, _), text in zip(pieces, texts, strict=True)
        )
        return Word(pack([token for _, token in pieces], self._width), letters, spelled=2 * single > letters)

    def _is_word(self, piece: str, letter: str) -> bool:
        """Return whether a piece of one letter has a meaning, as an ideograph has if the model reads Chinese."""
        if self._more is not None and self._more.get(piece) is not None:
            return piece == letter or _UNSPACED_LETTER.match(letter) is not None
        return self._reads_ideographs and is_ideograph(letter)

    @cached_property
    def _reads_ideographs(self) -> bool:
        return sum(len(piece) == 1 and is_ideograph(piece) for piece in self.vocabulary) >= _MIN_IDEOGRAPHS


def meaningful(words: Iterable[Word], text: str, most: int | None) -> bytes:
    """Return the packed ids of a text's first `most` tokens without those of spelled words; none if less than half of
    its words or letters remain.
    """
    first: list[Word] = []
    size = 0
    for word in words:
        first.append(word)
        size += len(word.ids)
        if most is not None and size >= most:
            break
    meaningful_words = [word for word in first if not word.spelled]
    if len(meaningful_words) < len(first):
        # A word of Thai is a sentence, and a word of Chinese a letter.
        if sum(word.letters > 0 for word in meaningful_words) < MIN_WORD_SHARE * sum(
            word.letters > 0 for word in first
        ):
            return b""
        if sum(word.letters for word in meaningful_words) < MIN_WORD_SHARE * sum(map(str.isalpha, text[:_MAX_LETTERS])):
            return b""
    return b"".join(word.ids for word in meaningful_words)[:most]


def _is_letter(char: str) -> bool:
    return char.isalpha() or unicodedata.category(char)[0] == "M"


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
        self[code] = text = self._make(char, unicodedata.category(char))
        return text

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


def id_width(vocabulary: int) -> int:
    return 2 if vocabulary <= 65_536 else 4


class _Config(msgspec.Struct):
    max_length: int | None = 512


class ModelTokenizer:
    """The folder's tokenizer: the ids that model2vec would pool, packed as in `Embedding`."""

    def __init__(self, folder: Path, vocabulary: int, more: MoreKeys | None = None) -> None:
        self._path = folder / "tokenizer.json"
        self._lock = threading.Lock()
        self._library: Tokenizer | None = None
        self._width = id_width(vocabulary)
        self._limit = msgspec.json.decode((folder / "config.json").read_bytes(), type=_Config).max_length
        raw = self._path.read_bytes()
        self._encoder = load_encoder(raw, self._width, more)
        size = len(self._encoder.vocabulary) if self._encoder is not None else self._open().get_vocab_size()
        if size > vocabulary:
            raise ValueError(f"{folder.name}: {size} tokens, but vectors for {vocabulary}")
        unknown = self._encoder.unknown if self._encoder is not None else _unknown(raw, self._open())
        self._unknown = None if unknown is None else unknown.to_bytes(self._width, "little")

    def encode(self, text: str) -> bytes:
        """Return the ids of `text`, cut to the model's maximal length; unknown ids are left out after the cut."""
        return self._known(self._cut(text))

    def encode_words(self, text: str) -> bytes:
        """Return the same without words that the model does not know but spells, and none of a text made of
        such words.
        """
        if text.isascii() or self._encoder is None:
            return self.encode(text)
        text = self._shortened(text)
        most = None if self._limit is None else self._limit * self._width
        return self._known(meaningful(self._encoder.words(text), text, most))

    def is_word(self, word: str) -> bool:
        """Return whether a word is a single token of the vocabulary in `tokenizer.json`."""
        if self._encoder is None:
            return len(self.encode(word)) == self._width
        return self._encoder.is_whole(word)

    def _cut(self, text: str) -> bytes:
        text = self._shortened(text)
        ids = self._encode_by_library(text) if self._encoder is None else self._encoder.encode(text)
        return ids if self._limit is None else ids[: self._limit * self._width]

    def _shortened(self, text: str) -> str:
        if self._limit is not None and len(text) > self._limit:
            return text[: self._limit * self._median_length]
        return text

    def _known(self, ids: bytes) -> bytes:
        # A match may span two ids; then nothing is dropped.
        if self._unknown is not None and self._unknown in ids:
            pieces = (ids[at : at + self._width] for at in range(0, len(ids), self._width))
            ids = b"".join(piece for piece in pieces if piece != self._unknown)
        return ids

    @cached_property
    def _median_length(self) -> int:
        """Return the median length of a token in characters, by which model2vec cuts long texts before it tokenizes
        them.
        """
        pieces = (
            {*self._encoder.vocabulary, *self._encoder.added} if self._encoder is not None else self._open().get_vocab()
        )
        lengths = sorted(map(len, pieces))
        return (lengths[(len(lengths) - 1) // 2] + lengths[len(lengths) // 2]) // 2

    def _encode_by_library(self, text: str) -> bytes:
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        return pack((self._library or self._open()).encode(text, add_special_tokens=False).ids, self._width)

    def _open(self) -> "Tokenizer":
        with self._lock:
            if self._library is None:
                self._library = _library(self._path, self._limit)
            return self._library


def _library(path: Path, limit: int | None) -> "Tokenizer":
    try:
        from tokenizers import Tokenizer
    except ImportError:
        reason = "is not WordPiece and needs the tokenizers package: pip install 'quipu-memory[tokenizers]'"
        raise ValueError(f"{path.parent.name}/{path.name} {reason}") from None

    library: Any = Tokenizer.from_file(str(path))  # the stubs leave some arguments untyped
    library.no_padding()
    if limit is None:
        library.no_truncation()
    else:
        library.enable_truncation(limit)
    return library


class _Model(msgspec.Struct):
    unk_token: str | None = None
    unk_id: int | None = None


class _AnyFile(msgspec.Struct):
    model: _Model


def _unknown(raw: bytes, library: "Tokenizer") -> int | None:
    model = msgspec.json.decode(raw, type=_AnyFile).model
    return model.unk_id if model.unk_token is None else library.token_to_id(model.unk_token)
