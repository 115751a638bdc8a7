"""The tokenizer of a model folder: the ids that model2vec pools, and those that have a meaning."""

import threading
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from kernel.embed.wordpiece import MoreKeys, load_encoder, meaningful, pack

if TYPE_CHECKING:
    from tokenizers import Tokenizer


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
