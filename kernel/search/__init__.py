"""The search index: full text, vectors, fusion, reranking, quarantine."""
