"""The store: transactions, the writer and its readers, migrations, history, audit."""
