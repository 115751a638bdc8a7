"""Static text embeddings: the model2vec format, WordPiece, and late interaction over token vectors."""
