"""/readyz: the store is open, and a database that is not a file answers."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from kernel.calls.dispatch import catch_faults
from kernel.core.errors import Fault
from kernel.http.rest import Ready

_JSON = "application/json"
_SECONDS = 2.0  # for the database
_READY = {"status": "ready"}
_AWAY = Fault("storage", "The database does not answer.")


class Readiness:
    """Answers the probe; the database is asked by one thread at a time, however many probes there are."""

    def __init__(self, ready: Callable[[], Ready]) -> None:
        self._ready = ready
        self._asking: asyncio.Task[Mapping[str, str] | Fault] | None = None

    async def answer(self, request: Request) -> Response:
        """Return status 503 if the database does not answer; a caller that may not call the server reads the status
        alone.
        """
        found = self._ready()
        told = request.scope["caller"] is not None
        body: dict[str, Any] = {"status": "ready", "model": found.model, "schema": found.schema}
        database = dict[str, str]() if found.probe is None else await self._probed(found.probe)
        if isinstance(database, Fault):
            unavailable = {"status": "unavailable", **({"message": database.message} if told else {})}
            return Response(msgspec.json.encode(unavailable), 503, media_type=_JSON)
        return Response(msgspec.json.encode({**body, **database} if told else _READY), media_type=_JSON)

    async def _probed(self, probe: Callable[[], Mapping[str, str]]) -> Mapping[str, str] | Fault:
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(asyncio.to_thread(catch_faults, probe))
        try:
            return await asyncio.wait_for(asyncio.shield(self._asking), _SECONDS)
        except TimeoutError:
            return _AWAY
