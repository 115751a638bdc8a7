"""SQLite's full-text tokenizers for an index that is not in SQLite."""

from typing import cast

import apsw

from kernel.store.engine_types import Token

_WORDS = ("porter", ["unicode61", "remove_diacritics", "2"])  # the tokenizer of doc_fts (sql/schema/0001)
_TRIGRAMS = ("trigram", list[str]())  # that of doc_part (sql/schema/0013)


class Tokenizers:
    """The tokenizers of `doc_fts` and `doc_part`, made at the first use."""

    def __init__(self) -> None:
        self._made: tuple[apsw.FTS5Tokenizer, apsw.FTS5Tokenizer] | None = None

    def tokens(self, text: str) -> list[Token]:
        """Return the tokens of a text as (start byte, end byte, stem)."""
        words, _ = self._tokenizers()
        return cast("list[Token]", words(text.encode(), apsw.FTS5_TOKENIZE_QUERY, None))

    def stems(self, text: str, *, trigrams: bool = False) -> list[str]:
        if not text:
            return []
        tokens = self._tokenizers()[trigrams](
            text.replace("\0", " ").encode(),
            apsw.FTS5_TOKENIZE_DOCUMENT,
            None,
            include_offsets=False,
            include_colocated=False,
        )
        return cast("list[str]", tokens)

    def _tokenizers(self) -> tuple[apsw.FTS5Tokenizer, apsw.FTS5Tokenizer]:
        if self._made is None:
            db = apsw.Connection(":memory:")
            self._made = db.fts5_tokenizer(*_WORDS), db.fts5_tokenizer(*_TRIGRAMS)
        return self._made
