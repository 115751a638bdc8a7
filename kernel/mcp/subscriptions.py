"""The resources that a client has subscribed to, and the notifications of their changes."""

from collections.abc import Callable, Collection

import msgspec

from kernel.calls.dispatch import Answer, Call, Dispatch, OnOutcome, ToolEntry
from kernel.core.data_dir import MAIN
from kernel.mcp.messages import SERVER_KEY, Listen, Object

_ID_KEY = "io.modelcontextprotocol/subscriptionId"


class Subscriptions:
    """The subscriptions of one client to some of the `known` resources.

    `send` gets a notification for each call of a tool that writes, by whatever client of this process and tenant,
    before that call is answered. As long as there is no subscription, calls are not observed. `id_` is the encoded id
    of the request whose response the notifications are, where they are one.
    """

    def __init__(
        self,
        dispatch: Dispatch,
        uris: Collection[str],
        send: Callable[[bytes], None],
        *,
        tenant: str = MAIN,
        id_: bytes | None = None,
    ) -> None:
        self._dispatch = dispatch
        self._known = uris
        self._send = send
        self._tenant = tenant
        self._meta: Object = {} if id_ is None else {"_meta": {_ID_KEY: msgspec.Raw(id_)}}
        self._messages: dict[str, bytes] = {}

    def add(self, uri: str) -> None:
        """Subscribes to a resource; one that never changes by a call as a whole is accepted without effect."""
        if uri in self._known and uri not in self._messages:
            self._messages[uri] = self._notification("resources/updated", {"uri": uri})
            for entry in self._writers(uri):
                entry.observers = (*entry.observers, self._observe)

    def drop(self, uri: str) -> None:
        if self._messages.pop(uri, None) is not None:
            for entry in self._writers(uri):
                entry.observers = tuple(observer for observer in entry.observers if observer != self._observe)

    def listen(self, params: Listen) -> bytes:
        """Subscribes to what a request of subscriptions/listen asks for; the notification of what of it counts."""
        for uri in params.notifications.resourceSubscriptions or ():
            self.add(uri)
        granted = {"resourceSubscriptions": [*self._messages]} if self._messages else {}
        return self._notification("subscriptions/acknowledged", {"notifications": granted})

    def close(self) -> None:
        for uri in list(self._messages):
            self.drop(uri)

    def _writers(self, uri: str) -> list[ToolEntry]:
        return [entry for entry in self._dispatch.tools.values() if _whole(entry) == uri]

    def _observe(self, call: Call) -> OnOutcome:
        message = self._messages.get(_whole(call.entry)) if call.caller.tenant == self._tenant else None

        def report(outcome: str, seconds: float, answer: Answer | None) -> None:
            if outcome == "ok" and message is not None:
                self._send(message)

        return report

    def _notification(self, name: str, params: Object) -> bytes:
        whole = {"jsonrpc": "2.0", "method": f"notifications/{name}", "params": {**params, **self._meta}}
        return msgspec.json.encode(whole)


def listen_result(id_: bytes, server: Object) -> bytes:
    """Return the response that ends a subscription; it is sent when the server ends it."""
    meta = {SERVER_KEY: server, _ID_KEY: msgspec.Raw(id_)}
    result = {"resultType": "complete", "_meta": meta}
    return msgspec.json.encode({"jsonrpc": "2.0", "id": msgspec.Raw(id_), "result": result})


def _whole(entry: ToolEntry) -> str:
    resources = entry.dialect.offers.resources
    return resources.whole if resources is not None and entry.tool.mode != "read" else ""
