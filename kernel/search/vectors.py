"""Vectors of documents: the model that made them, embeddings of texts, and their rows in the store."""

import zlib
from collections.abc import Sequence
from typing import NamedTuple

from kernel.core.errors import Fault
from kernel.embed.model import Embedding
from kernel.search import ann_storage
from kernel.search.cache import SearchCache
from kernel.search.instructions import is_order
from kernel.search.query import STOP_WORDS
from kernel.search.word_forms import subject_of
from kernel.store.transaction import Tx

COMMON_TEXT = " ".join(sorted(STOP_WORDS))
"""Its vector is the direction all texts share, by which sketches are centred (see `Sketcher`)."""
# Words that ask for advice, to which those of other languages are near, and words that follow an order's verb.
_ADVICE, _LIKE_ADVICE = "should recommend suggest advise help plan", 0.55
_COMMON_DIGEST = zlib.crc32(COMMON_TEXT.encode())


def has_model(tx: Tx) -> bool:
    """Return whether an embedding model is configured and can be read."""
    return tx.embedding_model is not None


def model_id(tx: Tx) -> int:
    """Return the id under which the configured model's vectors are stored; 0 before the first, or without a model."""
    model, cache = _model_key(tx), tx.context.search_cache
    if model is None:
        return 0
    if cached_id := cache.models.get(model[0]):
        return cached_id
    stored_id = tx.one("kernel.vectors.model_id", int, identity=model[0]) or 0
    if stored_id and cache.can_cache(tx):
        cache.models[model[0]] = stored_id
    return stored_id


def embed_texts(tx: Tx, texts: Sequence[str]) -> list[Embedding] | None:
    """Return the embeddings of `texts`, or None if the model cannot be read: the search is lexical only then."""
    try:
        return tx.embed(texts)
    except Fault as fault:
        if fault.code != "disabled":
            raise
        return None


class QueryEmbeddings(NamedTuple):
    """A query without its function words, the embeddings of both, and that by which the query is compared: of one in
    another language than English that without function words, since these are as long as other rows.
    """

    subject: str
    whole: Embedding
    about: Embedding
    compared: Embedding


class Question(NamedTuple):
    """The embedding of a query, of one in another language without its function words, the tokens and the number of its
    words but for these, and whether it asks for something to be done or advised.
    """

    whole: Embedding
    subject: bytes
    words: int
    is_request: bool


def embed_question(tx: Tx, text: str) -> Question | None:
    """Return a query with its embedding, or None if the model cannot be read or knows none of its words."""
    embeddings, embedder = _query_embeddings(tx, text), tx.context.embedder
    if embeddings is None or embedder is None:
        return None
    is_request = is_order(text) or embedder.nearest(embeddings.whole.tokens, _ADVICE) > _LIKE_ADVICE
    return Question(embeddings.compared, embeddings.about.tokens, len(embeddings.subject.split()), is_request)


def embed_query(tx: Tx, text: str) -> Embedding | None:
    """Return the embedding that a query is compared by; None as for `embed_question`."""
    embeddings = _query_embeddings(tx, text)
    return embeddings and embeddings.compared


def _query_embeddings(tx: Tx, text: str) -> QueryEmbeddings | None:
    cache: SearchCache = tx.context.search_cache
    last_text, embeddings = cache.last_embeddings
    if embeddings is not None and last_text == text:
        return embeddings
    embedded, embedder = embed_texts(tx, [text, subject := subject_of(text)]), tx.context.embedder
    if not embedded or embedder is None or not embedded[0].scale:
        return None
    whole, about = embedded
    compared = about if about.scale and embedder.is_foreign([whole.tokens])[0] else whole
    embeddings = QueryEmbeddings(subject, whole, about, compared)
    cache.last_embeddings = text, embeddings
    return embeddings


def insert_vectors(tx: Tx, docs: Sequence[tuple[int, str]]) -> None:
    """Embeds (document id, text) pairs and stores their vectors."""
    texts = [text for _, text in docs]
    vectors = embed_texts(tx, texts)
    if not vectors:
        return
    tx.drop_embeddings(texts)
    cache: SearchCache = tx.context.search_cache
    cache.uncommitted = tx
    sketches = cache.vectors.sketcher.sketch([embedding.vector for embedding in vectors])
    rows: list[tuple[int, float, int, int]] = []
    end = 0
    for (doc, _), embedding in zip(docs, vectors, strict=True):
        rows.append((doc, embedding.scale, end + 1, len(embedding.tokens)))
        end += len(embedding.tokens)
    model = model_id(tx) or _add_model(tx)
    tx.send(
        "kernel.vectors.insert",
        rows=rows,
        model=model,
        vectors=b"".join([embedding.vector for embedding in vectors]),
        vector_size=len(vectors[0].vector),
        sketches=b"".join(sketches),
        sketch_size=len(sketches[0]),
        tokens=b"".join([embedding.tokens for embedding in vectors]),
    )
    ann_storage.seal_blocks(tx, model, 1 + len(rows) // ann_storage.BLOCK_ROWS)


def delete_vectors(tx: Tx, docs: Sequence[int]) -> None:
    """Deletes the vectors of documents and logs the deletions, by which the vectors in memory are updated."""
    tx.context.search_cache.uncommitted = tx
    tx.send("kernel.vectors.log_deletions", ids=docs)
    tx.send("kernel.vectors.delete", ids=docs)


def _model_key(tx: Tx) -> tuple[str, int] | None:
    # Sketches depend on the centre too, so vectors of one model with another COMMON_TEXT count as another model's.
    model = tx.embedding_model
    return model and (f"{model[0]}/{_COMMON_DIGEST:08x}", model[1])


def _add_model(tx: Tx) -> int:
    model = _model_key(tx)
    return tx.one("kernel.vectors.add_model", int, identity=model[0], dimensions=model[1]) or 0 if model else 0
