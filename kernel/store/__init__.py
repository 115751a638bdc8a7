"""The store: transactions, the writer and its readers, history, audit."""
