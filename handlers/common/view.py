"""The MCP App that shows what recall found: one HTML file, as a resource."""

from functools import cache
from pathlib import Path

from kernel.store.transaction import Tx
from kernel.tools import Resource, ResourceContents, Resources

_SCHEME = "ui://quipu/"
URI = _SCHEME + "recall.html"
_MEDIA = "text/html;profile=mcp-app"
# Nothing is loaded from anywhere; copying an id takes the clipboard.
_SANDBOX = {"csp": {}, "permissions": {"clipboardWrite": {}}, "prefersBorder": False}


@cache
def _html() -> str:
    return (Path(__file__).parent / "recall.html").read_text(encoding="utf-8")


def _page(_tx: Tx, _cursor: str | None) -> tuple[list[Resource], str | None]:
    size = len(_html().encode())
    return [Resource(URI, "recall", "Recall", "Shows what recall found, in clients with MCP Apps", _MEDIA, size)], None


def _read(_tx: Tx, uri: str) -> list[ResourceContents] | None:
    return [ResourceContents(URI, _MEDIA, _html(), {"ui": _SANDBOX})] if uri == URI else None


RESOURCES = Resources(_SCHEME, _page, _read, fixed=True)
