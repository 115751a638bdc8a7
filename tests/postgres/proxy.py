"""A network between a server and its database: it cuts a connection around a COMMIT, or holds it back."""

import socket
import threading
from contextlib import suppress
from enum import Enum

_COMMIT = b"COMMIT\0"
_OF_A_WRITER = b"SET LOCAL synchronous_commit"  # readers and the look for keys commit too
_WAIT_SECONDS = 30.0


class Cut(Enum):
    """Where a COMMIT is cut off; HELD waits with it until the proxy is told to go on."""

    BEFORE = "before COMMIT arrives"
    DURING = "while COMMIT runs"
    AFTER = "after COMMIT, before its answer"
    HELD = "held back"


class _Link:
    """One connection and its other half."""

    def __init__(self, client: socket.socket, server: socket.socket) -> None:
        self.client = client
        self.server = server
        self.muted = False  # answers of the database are not passed on
        self.answered = threading.Event()
        self.writing = False

    def close(self) -> None:
        for end in (self.client, self.server):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()


class Proxy:
    """Listens on a port of the loopback address and passes on all bytes."""

    def __init__(self, port: int) -> None:
        self.target = port
        self.cuts = threading.Semaphore(0)  # released by each cut
        self.go_on = threading.Event()  # lets a COMMIT through that is held back
        self.away = False  # refuses new connections
        self._next: list[Cut] = []
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self, how: Cut, *, away: bool = False) -> None:
        """Cuts the next COMMIT of a writer; with `away` the database cannot be reached from then on."""
        with self._lock:
            self._away_next = away
            self._next.append(how)

    def was_cut(self) -> bool:
        """Waits for a cut."""
        return self.cuts.acquire(timeout=_WAIT_SECONDS)

    def close(self) -> None:
        """Takes no more connections."""
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self._connect(client)

    def _connect(self, client: socket.socket) -> None:
        try:
            if self.away:
                raise ConnectionRefusedError
            server = socket.create_connection(("127.0.0.1", self.target))
        except OSError:
            client.close()
            return
        link = _Link(client, server)
        for end in (client, server):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=self._upwards, args=(link,), daemon=True).start()
        threading.Thread(target=self._downwards, args=(link,), daemon=True).start()

    def _upwards(self, link: _Link) -> None:
        with suppress(OSError):
            while data := link.client.recv(65536):
                link.writing = link.writing or _OF_A_WRITER in data
                if link.writing and _COMMIT in data:
                    link.writing = False
                    if (how := self._taken()) is not None and not self._commit(link, data, how):
                        break
                    if how is not None:
                        continue
                link.server.sendall(data)
        link.close()

    def _taken(self) -> Cut | None:
        with self._lock:
            return self._next.pop() if self._next else None

    def _commit(self, link: _Link, data: bytes, how: Cut) -> bool:
        """Whether the connection stays."""
        self.away = self.away or self._away_next
        if how is Cut.HELD:
            self.cuts.release()
            self.go_on.wait(_WAIT_SECONDS)
        link.muted = how in (Cut.DURING, Cut.AFTER)
        if how is not Cut.BEFORE:
            link.server.sendall(data)
        if how is Cut.AFTER:
            link.answered.wait(_WAIT_SECONDS)
        if how is Cut.HELD:
            return True
        link.close()
        self.cuts.release()
        return False

    def _downwards(self, link: _Link) -> None:
        with suppress(OSError):
            while data := link.server.recv(65536):
                link.answered.set() if link.muted else link.client.sendall(data)
        link.close()
