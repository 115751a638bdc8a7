"""The MCP App that shows the hits of recall: one HTML file, as a resource."""

from pathlib import Path

from kernel.calls.resources import Resource, ResourceContents, Resources
from kernel.store.transaction import Tx

_SCHEME = "ui://quipu/"
URI = _SCHEME + "recall.html"
_FILE = Path(__file__).parent / "recall.html"
_MEDIA = "text/html;profile=mcp-app"
# Nothing is loaded from anywhere; copying an id takes the clipboard.
_SANDBOX: dict[str, object] = {"csp": {}, "permissions": {"clipboardWrite": {}}, "prefersBorder": False}


def _page(_tx: Tx, _cursor: str | None) -> tuple[list[Resource], str | None]:
    about = "Shows what recall found, in clients with MCP Apps"
    return [Resource(URI, "recall", "Recall", about, _MEDIA, _FILE.stat().st_size)], None


def _read(_tx: Tx, uri: str) -> list[ResourceContents] | None:
    if uri != URI:
        return None
    return [ResourceContents(URI, _MEDIA, _FILE.read_text(encoding="utf-8"), {"ui": _SANDBOX})]


RESOURCES = Resources(_SCHEME, _page, _read, fixed=True)
