"""Retrieval: BM25 over FTS5, vectors with a coarse binary stage, reranking and fusion. See README.md."""
