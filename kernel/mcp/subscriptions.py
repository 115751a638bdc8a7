"""The resources that a client has subscribed to, and the notifications of their changes."""

from collections.abc import Callable, Collection

import msgspec

from kernel.calls import OnOutcome, ToolEntry
from kernel.dispatch import Dispatch
from kernel.security.permissions import Caller

_UPDATED = b'{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":%b}}'


class Subscriptions:
    """The subscriptions of one client to some of the `known` resources.

    `send` gets a notification for each call of a tool that writes, by whatever client of this process, before that call
    is answered. As long as there is no subscription, calls are not observed.
    """

    def __init__(self, dispatch: Dispatch, known: Collection[str], send: Callable[[bytes], None]) -> None:
        self._dispatch = dispatch
        self._known = known
        self._send = send
        self._uris: set[str] = set()

    def add(self, uri: str) -> None:
        """Subscribes to a resource; one that never changes by a call as a whole is accepted without effect."""
        if uri not in self._known:
            return
        if not self._uris:
            self._dispatch.observers = (*self._dispatch.observers, self._observe)
        self._uris.add(uri)

    def drop(self, uri: str) -> None:
        """Ends a subscription, if there is one."""
        if uri not in self._uris:
            return
        self._uris.discard(uri)
        if not self._uris:
            self._dispatch.observers = tuple(one for one in self._dispatch.observers if one != self._observe)

    def _observe(self, entry: ToolEntry, caller: Caller) -> OnOutcome:
        resources = entry.dialect.resources
        uri = resources.whole if resources is not None and entry.tool.mode != "read" else ""

        def report(outcome: str, seconds: float) -> None:
            if outcome == "ok" and uri in self._uris:
                self._send(_UPDATED % msgspec.json.encode(uri))

        return report
