"""GET /: the server and its endpoints, as a page for browsers and as text for everything else."""

from collections.abc import Sequence
from html import escape

from kernel.calls.dialect import Dialect
from kernel.http.edge import HttpResponse

_PURPOSE = "A memory server for AI agents: MCP over HTTP, and the same tools as JSON over HTTP."
_DOCUMENTATION = "Documentation: README.md and the folder docs in the repository."
_STYLE = "body{font:1rem/1.5 system-ui;max-width:48rem;margin:2rem auto;padding:0 1rem}td{padding-right:1rem}"
# The page needs no script and loads nothing; a proxy or a bug that injects either gets no further.
_SECURITY = (
    (b"content-security-policy", b"default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"vary", b"accept"),
)


def home(version: str, dialects: Sequence[Dialect], accept: bytes) -> HttpResponse:
    """Return the page where `accept` names HTML, else the text; only these dialects are shown."""
    links = _links(dialects)
    if b"text/html" in accept.lower():
        return HttpResponse(200, _page(version, links).encode(), _SECURITY, b"text/html; charset=utf-8")
    return HttpResponse(200, _text(version, links).encode(), _SECURITY, b"text/plain; charset=utf-8")


def _links(dialects: Sequence[Dialect]) -> list[tuple[str, str]]:
    """Return each endpoint with its purpose."""
    return [
        ("/mcp", "MCP, all dialects (POST)"),
        *(
            [(f"/mcp/{dialects[0].name},{dialects[-1].name}", "MCP, some dialects, by their names")]
            * (len(dialects) > 1)
        ),
        *((f"/mcp/{dialect.name}", f"MCP, {dialect.name}: {dialect.about}") for dialect in dialects),
        ("/tools", "the tools with their schemas; POST /tools/NAME calls one"),
        ("/openapi.json", "the tools as an OpenAPI 3.1 document"),
        ("/healthz", "whether the process runs"),
        ("/readyz", "whether the store is open and the model is loaded"),
    ]


def _page(version: str, links: Sequence[tuple[str, str]]) -> str:
    rows = "\n".join(f'<tr><td><a href="{path}">{path}</a></td><td>{escape(about)}</td></tr>' for path, about in links)
    return (
        '<!doctype html>\n<html lang="en">\n<head><meta charset="utf-8"><title>Quipu</title>\n'
        f"<style>{_STYLE}</style></head>\n<body>\n<h1>Quipu {escape(version)}</h1>\n<p>{escape(_PURPOSE)}</p>\n"
        f"<table>\n{rows}\n</table>\n<p>{escape(_DOCUMENTATION)}</p>\n</body>\n</html>\n"
    )


def _text(version: str, links: Sequence[tuple[str, str]]) -> str:
    width = max(len(path) for path, _ in links)
    rows = "\n".join(f"  {path.ljust(width)}  {about}" for path, about in links)
    return f"Quipu {version}\n{_PURPOSE}\n\n{rows}\n\n{_DOCUMENTATION}\n"
