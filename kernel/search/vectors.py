"""Vectors of documents: the model that made them, embeddings of texts, their rows, and search by meaning.

A search takes the nearest by exact cosine, in memory, or in SQL if not all that counts is there.
"""

import math
import zlib
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from kernel.core.errors import Fault
from kernel.core.lazy_numpy import Ids, Matrix, np
from kernel.embed.model import Embedding
from kernel.search import ann
from kernel.search.ann import VectorFeed, VectorIndex
from kernel.search.cache import LastIds, Reached, SearchCache
from kernel.search.query import STOP_WORDS, asks_for_fact, is_order
from kernel.search.word_forms import subject_of
from kernel.store.transaction import Tx

if TYPE_CHECKING:
    from kernel.search.documents import PartitionSet

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
    model, cache = tx.embedding_model, tx.context.search_cache
    if model is None:
        return 0
    if cached_id := cache.models.get(model[0]):
        return cached_id
    stored_id = tx.one("kernel.vectors.model_id", int, identity=_stored_name(model[0])) or 0
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
    """A query without its function words, its tokens with these and without, and the embedding by which it is compared:
    of one in another language than English that without function words, since these are as long as other rows.
    """

    subject: str
    whole: bytes
    about: bytes
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
    is_request = is_order(text) or (
        embedder.nearest(embeddings.whole, _ADVICE) > _LIKE_ADVICE and not asks_for_fact(text)
    )
    return Question(embeddings.compared, embeddings.about, len(embeddings.subject.split()), is_request)


def embed_query(tx: Tx, text: str) -> Embedding | None:
    """Return the embedding that a query is compared by; None as for `embed_question`."""
    embeddings = _query_embeddings(tx, text)
    return embeddings.compared if embeddings else None


def _query_embeddings(tx: Tx, text: str) -> QueryEmbeddings | None:
    cache: SearchCache = tx.context.search_cache
    last_text, embeddings = cache.last_embeddings
    if embeddings is not None and last_text == text:
        return embeddings
    (whole,), embedder = embed_texts(tx, [text]) or (None,), tx.context.embedder
    if whole is None or embedder is None or not whole.scale:
        return None
    subject, compared = subject_of(text), whole
    if embedder.is_foreign([whole.tokens])[0]:
        (about,) = tx.embed([subject])
        compared = about if about.scale else whole
    embeddings = QueryEmbeddings(subject, whole.tokens, embedder.tokens(subject), compared)
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
    ann.seal_blocks(tx, model, 1 + len(rows) // ann.BLOCK_ROWS)


def delete_vectors(tx: Tx, docs: Sequence[int]) -> None:
    """Deletes the vectors of documents and logs the deletions, by which the vectors in memory are updated."""
    tx.context.search_cache.uncommitted = tx
    tx.send("kernel.vectors.log_deletions", ids=docs)
    tx.send("kernel.vectors.delete", ids=docs)


def _stored_name(identity: str) -> str:
    # Sketches depend on the centre too, so vectors of one model with another COMMON_TEXT count as another model's.
    return f"{identity}/{_COMMON_DIGEST:08x}"


def _add_model(tx: Tx) -> int:
    model = tx.embedding_model
    if model is None:
        return 0
    return tx.one("kernel.vectors.add_model", int, identity=_stored_name(model[0]), dimensions=model[1]) or 0


_MIN_SHORTLIST = 800  # vectors of a large store scored exactly; at 1M recall@10 is .99, with 1,280 .996 for 1.3 times
_SHORTLIST_PER_RESULT = 8  # if more than 160 results are wanted; not measured
_NO_ID = 2**63 - 1  # after all ids


def vector_search(
    tx: Tx,
    text: str,
    partitions: "PartitionSet | None",
    limit: int,
    also: Sequence[int],
    docs: Sequence[int] | None = None,
    feed: VectorFeed | None = None,
    reached: Reached | None = None,
) -> dict[int, float]:
    """Return the cosine of the `limit` documents with the vectors nearest to that of `text`, and of the documents
    `also`.

    With `docs`, a search among these documents. While vectors are being loaded, only small partitions, `docs` and
    `also` are searched. `feed` is what `ask_vectors` returned in this transaction. With `reached`, vectors in memory
    are searched among its documents.
    """
    model = model_id(tx)
    query = embed_query(tx, text) if model else None
    if query is None:
        return {}
    vector, scale, _ = query
    cache: SearchCache = tx.context.search_cache
    index, last = cache.vectors, cache.last_ids(tx)
    places = None if partitions is None else partitions.ids
    in_memory = (
        index.nearest(vector, scale, limit, places, docs, also, last.vector, reached.flags if reached else None)
        if _is_loaded(tx, model, last, feed)
        else None
    )
    if in_memory is not None:
        return in_memory
    score = partial(_score, tx, model, vector)
    if docs is not None:
        near = score(limit, docs=docs)
    elif partitions is not None and not partitions.large:
        near = score(limit, partitions=partitions.ids)
    else:
        near = {} if _is_loading(tx, last) else score(limit, **_shortlist(index, vector, limit, places, last))
    missing = [doc for doc in also if doc not in near]
    return near | (score(len(missing), docs=missing) if missing else {})


def unit_vectors(tx: Tx, model: int, docs: Sequence[int]) -> tuple[Ids, Matrix]:
    """Return the documents of these that have a vector, each once, and a row for each: its vector scaled to unit
    length.
    """
    cache: SearchCache = tx.context.search_cache
    last = cache.last_ids(tx)
    in_memory = cache.vectors.unit_vectors(docs, last.vector) if _is_loaded(tx, model, last) else None
    if in_memory is not None:
        return in_memory
    rows = tx.rows("kernel.vectors.of_documents", ids=docs, model=model) if docs else []
    row_docs, vectors, scales = zip(*rows, strict=True) if rows else ((), (), ())
    codes = np.frombuffer(b"".join(vectors), np.int8).reshape(-1, cache.vectors.sketcher.dimensions)
    return np.array(row_docs, np.int64), codes * np.array(scales, np.float32)[:, None]


def l2_distance(cosine: float) -> float:
    """Return the distance of two unit vectors."""
    return math.sqrt(max(0.0, 2.0 - 2.0 * cosine))


def load_vectors(tx: Tx) -> None:
    """Reads the vectors that are not in memory yet; `tx` must see committed rows only."""
    cache: SearchCache = tx.context.search_cache
    if model := model_id(tx):
        cache.vectors.extend(ann.vector_feed(tx, model))


def load_all_vectors(tx: Tx) -> None:
    cache: SearchCache = tx.context.search_cache
    try:
        ann.load_library()
        load_vectors(tx)
        cache.warming = False
    finally:
        cache.loading = False


def _is_loading(tx: Tx, last: LastIds) -> bool:
    """Return whether another thread loads the vectors, and more than a block is still missing."""
    cache: SearchCache = tx.context.search_cache
    is_loading = cache.warming and tx.readonly and last.vector - cache.vectors.last > ann.BLOCK_ROWS
    if is_loading and not cache.loading:
        cache.loading = True  # each further job would keep a reader waiting for the same lock
        try:
            cache.load_later()
        except Fault:  # the next search tries again
            cache.loading = False
    return is_loading


def ask_vectors(tx: Tx) -> VectorFeed | None:
    """Ask for the vectors that a search of a few new documents will read; None if it reads none, or many."""
    cache: SearchCache = tx.context.search_cache
    index, model = cache.vectors, model_id(tx) if tx.readonly else 0
    if not model or not index.last:
        return None
    last = cache.last_ids(tx)
    if not 0 < last.vector - index.last <= ann.BLOCK_ROWS:
        return None
    return ann.asked_feed(tx, model, index.last, index.exact, last.deletion)


def _is_loaded(tx: Tx, model: int, last: LastIds, feed: VectorFeed | None = None) -> bool:
    """Return whether memory holds the rows that `tx` sees, from here on; never rows that a rollback would undo."""
    cache: SearchCache = tx.context.search_cache
    index = cache.vectors
    if not cache.can_cache(tx) or _is_loading(tx, last):
        return False
    if last.vector > index.last or last.deletion > index.last_deletion:
        index.extend(feed or ann.vector_feed(tx, model, last.deletion))
    return True


def _shortlist(
    index: VectorIndex, vector: bytes, limit: int, places: Sequence[int] | None, last: LastIds
) -> dict[str, Any]:
    """Return the vectors for SQL to score: the nearest in memory, more by those deleted since, and all it lacks."""
    after, deletions = index.last, max(0, last.deletion - index.last_deletion)
    near = index.nearest(vector, 1.0, limit + deletions, places, upto=after)
    if near is not None:
        return {"docs": [*near], "after": after, "within": places}
    size = max(_MIN_SHORTLIST, _SHORTLIST_PER_RESULT * limit) + deletions
    return {"vectors": index.shortlist(vector, size, places, after), "after": after, "within": places}


def _score(
    tx: Tx,
    model: int,
    vector: bytes,
    limit: int,
    vectors: Sequence[int] = (),
    docs: Sequence[int] = (),
    partitions: Sequence[int] = (),
    after: int = _NO_ID,
    within: Sequence[int] | None = None,
) -> dict[int, float]:
    """Return the exact cosines of the `limit` nearest of these vectors, of those of documents and of partitions, and of
    those after an id within partitions.
    """
    cosines: dict[int, float] = {}
    sources = {"vectors": vectors, "docs": docs, "partitions": partitions, "after": after, "within": within}
    tx.all("kernel.vectors.score", cosines.__setitem__, model=model, vector=vector, limit=limit, **sources)
    return cosines
