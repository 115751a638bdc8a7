"""The words of a connection: the tokenizer, and if words occur."""

from abc import ABC, abstractmethod
from typing import Any

from kernel.engines.postgres.rows import Row
from kernel.engines.postgres.word_index import Seen, WordIndex
from kernel.engines.sqlite.tokenizers import Tokenizers
from kernel.store.engine_types import Token


class WordReader(ABC):
    """A connection; `words` has what transactions that read have committed to find, and `reading` is one of these."""

    def __init__(self, words: WordIndex) -> None:
        self.words = words
        self.reading = False
        self._seen: Seen | None = None
        self._tokenizers = Tokenizers()

    @abstractmethod
    def query(self, name: str, /, **params: Any) -> list[Row]:
        """Return the rows of a statement of `sql/postgres/engine`."""

    def begin_reading(self, *, reading: bool) -> None:
        """Notes that a transaction begins, and whether it only reads."""
        self.reading = reading
        self._seen = None

    @property
    def seen(self) -> Seen:
        """Return the words as a transaction that reads sees them."""
        if self._seen is None:
            self._seen = Seen(*self.query("engine.full_text.seen")[0])
        return self._seen

    def tokenize(self, text: str) -> list[Token]:
        """Return the full-text tokens of `text`."""
        return self._tokenizers.tokens(text)

    def stems(self, text: str, *, trigrams: bool = False) -> list[str]:
        """Return the stems of `text`, or its trigrams."""
        return self._tokenizers.stems(text, trigrams=trigrams)
