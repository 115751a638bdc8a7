"""Mechanism: transports, transactions, search and history; names no dialect."""
