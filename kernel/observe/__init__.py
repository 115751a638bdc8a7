"""Metrics, access logs and traces, each optional."""
