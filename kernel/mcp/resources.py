"""Resources, prompts and completions, of the dialects that have them."""

import base64
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import TypeVar

import msgspec

from kernel.calls.dialect import Dialect
from kernel.calls.tools import InputRequired, Interaction, Prompt, ResourceContents
from kernel.mcp import elicitation, listings
from kernel.mcp.messages import (
    INVALID_PARAMS,
    METHODS,
    Complete,
    Get,
    Inbound,
    Object,
    PromptRef,
    ProtocolError,
    ResourceRef,
)
from kernel.store.transaction import Tx

T = TypeVar("T")
Method = Callable[[Inbound], Coroutine[object, None, Object | InputRequired]]
OpenInteraction = Callable[[Inbound, str, str], Interaction]
# The protocol allows no more in one result.
_MAX_COMPLETIONS = 100
# Characters of an unknown name in an error message.
_MAX_NAME_SHOWN = 128


class ResourceMethods:
    """The methods for resources, prompts and completions of some dialects; each returns the fields of its result."""

    def __init__(self, dialects: Sequence[Dialect], open_interaction: OpenInteraction) -> None:
        self._open_interaction = open_interaction
        with_skills = [listings.with_skill_files(dialect) for dialect in dialects if dialect.offers.skills]
        self._resources = [*(dialect for dialect in dialects if dialect.offers.resources), *with_skills]
        self._skills = listings.skill_entries(listings.skills_of(dialects))
        self._prompts = {prompt.name: (dialect, prompt) for dialect in dialects for prompt in dialect.offers.prompts}
        self.methods: Mapping[str, Method] = {
            "resources/list": self._resource_page,
            "resources/read": self._resource_read,
            "prompts/get": self._prompt_get,
            "skills/get": self._skill_get,
            "completion/complete": self._completion,
        }

    def offered(self, capabilities: Object) -> Mapping[str, Method]:
        """Return the methods that belong to these capabilities, and those of skills if there are any."""
        needed = {*capabilities, *(["skills"] if self._skills else ())}
        return {name: work for name, work in self.methods.items() if METHODS[name].needs in needed}

    def is_interactive(self, name: str) -> bool:
        return name in self._prompts and self._prompts[name][1].interactive

    def is_fixed(self, uri: str) -> bool:
        owner = self._owner(uri)
        return owner is not None and owner.offers.resources is not None and owner.offers.resources.fixed

    async def _resource_page(self, inbound: Inbound) -> Object:
        index, cursor = _decode_cursor(inbound.params.cursor, len(self._resources))
        while True:
            dialect, page = self._page(index, cursor)
            items, cursor = await _read(inbound, dialect, page)
            index += cursor is None
            if items or index == len(self._resources):
                break
        result: Object = {"resources": items}
        if index < len(self._resources):
            result["nextCursor"] = _encode_cursor(index, cursor)
        return result

    def _page(self, index: int, cursor: str | None) -> tuple[Dialect, Callable[[Tx], tuple[list[Object], str | None]]]:
        dialect = self._resources[index]
        resources = dialect.offers.resources
        assert resources is not None

        def page(tx: Tx) -> tuple[list[Object], str | None]:
            items, onward = resources.page(tx, cursor)
            return [listings.resource_entry(resource) for resource in items], onward

        return dialect, page

    async def _resource_read(self, inbound: Inbound) -> Object:
        uri = inbound.params.uri
        dialect = self._owner(uri)
        resources = dialect.offers.resources if dialect else None
        contents: Object | None = None
        if dialect is not None and resources is not None:
            contents = await _read(inbound, dialect, lambda tx: _contents(resources.read(tx, uri)))
        if contents is None:
            raise ProtocolError(inbound.era.resource_missing, "Resource not found", {"uri": uri})
        return contents

    async def _skill_get(self, inbound: Inbound) -> Object:
        skill = self._skills.get(inbound.params.uri)
        if skill is None:
            raise ProtocolError(INVALID_PARAMS, "Unknown skill", {"uri": inbound.params.uri})
        return {"skill": skill}

    async def _prompt_get(self, inbound: Inbound) -> Object | InputRequired:
        params: Get = inbound.params
        dialect, prompt = self._prompt(params.name)
        arguments = params.arguments or {}
        lacking = [
            argument.name for argument in prompt.arguments if argument.required and argument.name not in arguments
        ]
        if lacking:
            raise ProtocolError(INVALID_PARAMS, f"Missing prompt arguments: {', '.join(lacking)}")
        extra = (self._open_interaction(inbound, dialect.name, prompt_purpose(inbound)),) if prompt.interactive else ()

        def get(tx: Tx) -> Object | InputRequired:
            result = prompt.handler(tx, arguments, *extra)
            if isinstance(result, InputRequired):
                return result
            messages = [{"role": role, "content": content} for role, content in result]
            return {"description": prompt.about, "messages": messages}

        return await _read(inbound, dialect, get)

    async def _completion(self, inbound: Inbound) -> Object:
        params: Complete = inbound.params
        dialect, ref = self._completed(params.ref)
        complete = dialect.offers.complete if dialect else None
        values: list[str] = []
        if dialect is not None and complete is not None:
            argument, earlier = params.argument, (params.context.arguments if params.context else None) or {}
            values = await _read(inbound, dialect, lambda tx: complete(tx, ref, argument.name, argument.value, earlier))
        first = values[:_MAX_COMPLETIONS]
        return {"completion": {"values": first, "total": len(values), "hasMore": len(values) > len(first)}}

    def _completed(self, ref: PromptRef | ResourceRef) -> tuple[Dialect | None, str]:
        if isinstance(ref, ResourceRef):
            return self._owner(ref.uri), ref.uri
        return self._prompt(ref.name)[0], ref.name

    def _prompt(self, name: str) -> tuple[Dialect, Prompt]:
        prompt = self._prompts.get(name)
        if prompt is None:
            raise ProtocolError(INVALID_PARAMS, f"Unknown prompt: {name[:_MAX_NAME_SHOWN]}")
        return prompt

    def _owner(self, uri: str) -> Dialect | None:
        schemes = [(d.offers.resources.scheme, d) for d in self._resources if d.offers.resources]
        fitting = {len(scheme): dialect for scheme, dialect in schemes if uri.startswith(scheme)}
        return fitting[max(fitting)] if fitting else None


async def _read(inbound: Inbound, dialect: Dialect, work: Callable[[Tx], T]) -> T:
    return await inbound.dispatch.read(dialect, work, inbound.caller)


def prompt_purpose(inbound: Inbound) -> str:
    """Return the fingerprint that the state of a prompt's rounds is bound to."""
    params: Get = inbound.params
    return elicitation.purpose(
        inbound.caller.audit_identity, inbound.method, params.name, msgspec.json.encode(params.arguments or {})
    )


def _contents(contents: list[ResourceContents] | None) -> Object | None:
    return None if contents is None else {"contents": [_content(content) for content in contents]}


def _content(content: ResourceContents) -> Object:
    entry: Object = {"uri": content.uri, "mimeType": content.media}
    if content.about:
        entry["_meta"] = dict(content.about)
    if isinstance(content.data, bytes):
        return {**entry, "blob": base64.b64encode(content.data).decode()}
    return {**entry, "text": content.data}


def _encode_cursor(index: int, inner: str | None) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode((index, inner))).decode()


def _decode_cursor(cursor: str | None, count: int) -> tuple[int, str | None]:
    if not cursor:
        return 0, None
    try:
        index, inner = msgspec.json.decode(base64.urlsafe_b64decode(cursor), type=tuple[int, str | None])
    except ValueError:
        raise ProtocolError(INVALID_PARAMS, "Unknown cursor") from None
    if not 0 <= index < count:
        raise ProtocolError(INVALID_PARAMS, "Unknown cursor")
    return index, inner
