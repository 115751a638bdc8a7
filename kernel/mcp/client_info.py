"""The client's own description: its name, and its capabilities."""

from typing import Any, Literal

from msgspec import Struct

Object = dict[str, Any]


class Icon(Struct):
    """An icon of a client; only checked."""

    src: str
    mimeType: str | None = None
    sizes: list[str] | None = None
    theme: Literal["light", "dark"] | None = None


class Client(Struct, gc=False):
    """The client's description of itself."""

    name: str
    version: str
    title: str | None = None
    description: str | None = None
    websiteUrl: str | None = None
    icons: list[Icon] | None = None


class Elicitation(Struct, omit_defaults=True):
    """The modes of elicitation that the client offers; an empty object means `form`."""

    form: Object | None = None
    url: Object | None = None


class Sampling(Struct, omit_defaults=True):
    """The sampling features that the client offers."""

    context: Object | None = None
    tools: Object | None = None


class Capabilities(Struct, omit_defaults=True, gc=False):
    """The capabilities of a client."""

    elicitation: Elicitation | None = None
    experimental: dict[str, Object] | None = None
    extensions: dict[str, Object] | None = None
    roots: Object | None = None
    sampling: Sampling | None = None
