"""Parts of words: the documents that hold texts as substrings, by their trigrams."""

from collections.abc import Iterable, Sequence

from kernel.search.partitions import Within, matching_partitions
from kernel.search.query import quote
from kernel.store.transaction import Tx

MIN_PART_LENGTH = 3  # characters: the length of a term of FTS5's trigram tokenizer
_MAX_TRIGRAMS = 32  # of a query; more hardly leave fewer documents to compare; not measured


def containing(tx: Tx, parts: Sequence[str], within: Within) -> list[str]:
    """Return the keys of the documents that hold every part, in any case; none if no part has MIN_PART_LENGTH
    characters.

    Only documents of the spaces of `doc_part` are found.
    """
    tx.flush_deferred()
    expression = " AND ".join(map(quote, _trigrams(parts)))
    partitions = matching_partitions(tx, within)
    if not expression or not partitions:
        return []
    folded_parts = [part.casefold() for part in parts]

    def held(key: str, text: str) -> str | None:
        text = text.casefold()
        return key if all(part in text for part in folded_parts) else None

    keys = tx.all("kernel.trigrams.match_trigrams", held, query=expression, partitions=partitions)
    return [key for key in keys if key is not None]


def _trigrams(parts: Iterable[str]) -> list[str]:
    """Return trigrams of the parts, the longest parts first; FTS5 reads an expression up to its first NUL."""
    trigrams: dict[str, None] = {}
    for part in sorted(parts, key=len, reverse=True):
        for at in range(len(part) - MIN_PART_LENGTH + 1):
            if "\0" not in part[at : at + MIN_PART_LENGTH]:
                trigrams[part[at : at + MIN_PART_LENGTH]] = None
            if len(trigrams) == _MAX_TRIGRAMS:
                return [*trigrams]
    return [*trigrams]
