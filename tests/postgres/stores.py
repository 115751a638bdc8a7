"""Databases for tests: one for each worker of a run, with a new tenant for each test."""

import hashlib
import os
from functools import cache
from importlib import import_module
from typing import Any

import pytest

from kernel.core.config import Config

ADDRESS = os.environ.get("TEST_POSTGRES", "")
"""Of the PostgreSQL that the tests use instead of SQLite; empty for SQLite."""

WITHOUT_POOLER = pytest.mark.skipif(bool(os.environ.get("POOLER")), reason="this needs the database itself")

_PLACED = "scopes_predefined_tag"  # has a last column that SQLite has not, the place of the row


def connect(address: str) -> Any:
    """A connection of the test itself."""
    return import_module("psycopg").connect(address, autocommit=True)


@cache
def new_database(name: str, server: str = ADDRESS) -> str:
    """The address of a new, empty database."""
    with connect(f"{server}/postgres") as db:
        db.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
        db.execute(f"CREATE DATABASE \"{name}\" TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C'")
    return f"{server}/{name}"


def of_worker() -> str:
    """The address of the database of this process."""
    return new_database(f"quipu_{os.environ.get('PYTEST_XDIST_WORKER', 'main')}_{os.getpid()}")


def placed(config: Config) -> Config:
    """The configuration with a database of its own, where the tests use PostgreSQL."""
    if not ADDRESS or config.store:
        return config
    return config._replace(store=new_database(f"quipu_{hashlib.sha256(str(config.data).encode()).hexdigest()[:16]}"))


def forget_tenants(address: str) -> None:
    """Renames all tenants, so that the next use of a name begins with an empty tenant."""
    with connect(address) as db:
        if db.execute("SELECT to_regclass('quipu.directory')::text").fetchone()[0] is not None:
            db.execute("UPDATE quipu.directory SET name = name || ' ' || id WHERE name NOT LIKE '% %'")


def rows(address: str, tenant: str) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of every table of a tenant, without the marks of transactions."""
    found: dict[str, list[tuple[Any, ...]]] = {}
    with connect(address) as db:
        (number,) = db.execute("SELECT id FROM quipu.directory WHERE name = %s", (tenant,)).fetchone()
        for (name,) in db.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = 'quipu_data' AND tablename <> 'commit_mark'"
        ).fetchall():
            placed_by = "position" if name == _PLACED else "2, 3"
            text = f"SELECT * FROM quipu_data.{name} WHERE tenant = {number} ORDER BY {placed_by}"
            found[name] = [row[1 : -1 if name == _PLACED else None] for row in db.execute(text).fetchall()]
        found["migration"] = db.execute("SELECT * FROM quipu.migration ORDER BY name").fetchall()
    return found
