"""The memory server most people would write first, as the opponent: one commit per request, the obvious queries.

Triggers keep FTS5 in step, vectors lie in a `vec0` table as int8, a search is the question's words joined by OR in the
order of `rank`, a scan of every vector, and the rows of both. It embeds with our own model, so that both sides pay the
same for that.
"""

import argparse
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import apsw
import msgspec
import numpy as np
import sqlite_vec

from kernel.core.config import MODEL
from kernel.core.ids import utc_now
from kernel.embed.model import Embedder, Embedding
from kernel.search.query import STOP_WORDS

_SCHEMA = """
CREATE TABLE IF NOT EXISTS note (
    id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, content TEXT NOT NULL, created_at TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS history (
    id INTEGER PRIMARY KEY, path TEXT NOT NULL, operation TEXT NOT NULL, after TEXT, at TEXT NOT NULL
);
CREATE VIRTUAL TABLE IF NOT EXISTS note_fts USING fts5 (
    path, content, content = 'note', content_rowid = 'id', tokenize = 'porter unicode61'
);
CREATE TRIGGER IF NOT EXISTS note_insert AFTER INSERT ON note BEGIN
    INSERT INTO note_fts (rowid, path, content) VALUES (new.id, new.path, new.content);
END;
CREATE TRIGGER IF NOT EXISTS note_delete AFTER DELETE ON note BEGIN
    INSERT INTO note_fts (note_fts, rowid, path, content) VALUES ('delete', old.id, old.path, old.content);
END;
CREATE VIRTUAL TABLE IF NOT EXISTS note_vec USING vec0 (embedding INT8[256]);
"""
_BY_WORDS = "SELECT rowid FROM note_fts WHERE note_fts MATCH ? ORDER BY rank LIMIT ?"
_BY_MEANING = "SELECT rowid FROM note_vec WHERE embedding MATCH vec_int8(?) AND k = ? ORDER BY distance"
_ROWS = "SELECT id, path, content, created_at FROM note WHERE id IN (SELECT value FROM json_each(?))"
_SMOOTH = 60
_CANDIDATES = 100

Scope = Mapping[str, Any]
Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


class Note(msgspec.Struct):
    """What POST /add takes."""

    path: str
    content: str


class Search(msgspec.Struct):
    """What POST /search takes."""

    query: str
    limit: int = 10
    stop_words: bool = True


class Naive:
    """One file, one connection."""

    def __init__(self, file: Path, embedder: Embedder, *, durable: bool = True) -> None:
        self._embedder = embedder
        self.db = apsw.Connection(str(file))
        self.db.set_busy_timeout(5000)
        self.db.enable_load_extension(True)
        self.db.load_extension(sqlite_vec.loadable_path())
        self.db.enable_load_extension(False)
        self.db.pragma("journal_mode", "wal")
        self.db.pragma("synchronous", "FULL" if durable else "NORMAL")
        self.db.execute(_SCHEMA)

    def add(self, note: Note) -> str:
        """One note in one transaction; when it was written."""
        (embedded,) = self._embedder.embed([f"{note.path}\n{note.content}"])
        self.db.execute("BEGIN IMMEDIATE")
        try:
            now = self.insert(note, embedded)
            self.db.execute("COMMIT")
        finally:
            if self.db.in_transaction:
                self.db.execute("ROLLBACK")
        return now

    def insert(self, note: Note, embedded: Embedding) -> str:
        """One note inside the transaction that is open."""
        now = utc_now()
        row = "INSERT INTO note (path, content, created_at) VALUES (?, ?, ?)"
        self.db.execute(row, (note.path, note.content, now))
        rowid = self.db.last_insert_rowid()
        self.db.execute("INSERT INTO note_vec (rowid, embedding) VALUES (?, vec_int8(?))", (rowid, unit(embedded)))
        event = "INSERT INTO history (path, operation, after, at) VALUES (?, 'created', ?, ?)"
        self.db.execute(event, (note.path, note.content, now))
        return now

    def search(self, query: str, limit: int = 10, *, stop_words: bool = True) -> list[dict[str, Any]]:
        """The best `limit` notes by words and by meaning, fused by reciprocal ranks."""
        both = (self.by_words(query, _CANDIDATES, stop_words=stop_words), self.by_meaning(query, _CANDIDATES))
        scores: dict[int, float] = {}
        for found in both:
            for rank, rowid in enumerate(found):
                scores[rowid] = scores.get(rowid, 0.0) + 1 / (_SMOOTH + rank)
        best = sorted(scores, key=lambda rowid: -scores[rowid])[:limit]
        rows: dict[int, Any] = {row[0]: row for row in self._all(_ROWS, msgspec.json.encode(best).decode())}
        return [
            {"id": rowid, "path": rows[rowid][1], "text": rows[rowid][2][:160], "score": scores[rowid]}
            for rowid in best
        ]

    def by_words(self, query: str, limit: int, *, stop_words: bool = True) -> list[int]:
        """Row ids of the notes with any of the words."""
        words = [word for word in query.split() if stop_words or word.lower() not in STOP_WORDS]
        match = " OR ".join('"' + word.replace('"', '""') + '"' for word in words)
        return [row[0] for row in self._all(_BY_WORDS, match, limit)]

    def by_meaning(self, query: str, limit: int) -> list[int]:
        """Row ids of the notes whose vectors are nearest."""
        (embedded,) = self._embedder.embed([query])
        return [row[0] for row in self._all(_BY_MEANING, unit(embedded), limit)]

    def _all(self, statement: str, *values: Any) -> list[Any]:
        return self.db.execute(statement, values).fetchall()


def unit(embedded: Embedding) -> bytes:
    """The vector with one scale for all, which is what comparing by L2 distance needs."""
    whole = np.frombuffer(embedded.vector, np.int8) * (embedded.scale * 127)
    return np.rint(whole).astype(np.int8).tobytes()


def application(naive: Naive) -> Callable[[Scope, Receive, Send], Awaitable[None]]:
    """POST /add and POST /search, each done where it arrives; GET anything else says it is there."""
    note, search = msgspec.json.Decoder(Note), msgspec.json.Decoder(Search)

    def answer(path: str, body: bytes) -> Any:
        if path == "/add":
            added = note.decode(body)
            return {"status": "ok", "path": added.path, "created_at": naive.add(added)}
        if path == "/search":
            asked = search.decode(body)
            return {"memories": naive.search(asked.query, asked.limit, stop_words=asked.stop_words)}
        return {"status": "ok"}

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        body = (await receive()).get("body", b"")
        try:
            status, reply = 200, msgspec.json.encode(answer(scope["path"], body))
        except (apsw.Error, msgspec.DecodeError) as error:
            status, reply = 400, msgspec.json.encode({"error": str(error)})
        headers: Sequence[tuple[bytes, bytes]] = [
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(reply)),
        ]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": reply})

    return app


def main() -> None:
    """Serves one data directory."""
    from loadtests.baselines.echo_servers import run

    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--port", type=int, required=True)
    arguments = parser.parse_args()
    embedder = Embedder(MODEL)
    embedder.load()
    run(application(Naive(arguments.data / "naive.db", embedder)), arguments.port)


if __name__ == "__main__":
    main()
