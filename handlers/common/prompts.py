"""The offers of `common` beside its tools: prompts with completions, the Agent Skill, and the app that shows hits."""

from collections.abc import Mapping
from pathlib import Path

from handlers.common import fence
from handlers.common.prime import DEFAULT_TOKENS, Prime, compose, hit_lines, prime
from handlers.common.retrieval import find, find_newest
from handlers.common.retrieval import prepare as prepare_recall
from handlers.common.schemas import Recall
from kernel.calls.tools import Prompt, PromptArgument, PromptMessage, Resource, ResourceContents, Resources, Skill
from kernel.core.errors import Fault
from kernel.search import index
from kernel.search.index import Document
from kernel.store.transaction import Tx

_MOST_HITS = 10
_COMPLETED_FROM = 200  # newest memories whose ids are offered
_PROJECT = PromptArgument("project", "Root folder or name of the project")
_FOLDER = Path(__file__).parent / "skills" / "quipu-memory"
_ENTRY = "SKILL.md"
_LICENSE = "Apache-2.0"
_SCHEME = "ui://quipu/"
URI = _SCHEME + "recall.html"
_FILE = Path(__file__).parent / "recall.html"
_MEDIA = "text/html;profile=mcp-app"
# Nothing is loaded from anywhere; copying an id takes the clipboard.
_SANDBOX: dict[str, object] = {"csp": {}, "permissions": {"clipboardWrite": {}}, "prefersBorder": False}


def prime_prompt(tx: Tx, arguments: Mapping[str, str]) -> list[PromptMessage]:
    briefing = prime(tx, Prime(root=arguments["project"][:4096])).text
    return _said(briefing or f"Nothing is stored for the project {fence.line(arguments['project'], 80)} yet.")


def recall_prompt(tx: Tx, arguments: Mapping[str, str]) -> list[PromptMessage]:
    """Give the hits of a question, for the model to answer from."""
    hits = _found(tx, arguments["query"], arguments.get("scope"))
    question = f"Answer from what Quipu holds, and name the ids you rely on: {arguments['query']}"
    return _said(_with_hits(question, hits) or f"{question}\nQuipu has found nothing: say so, and do not guess.")


def remember_prompt(_tx: Tx, arguments: Mapping[str, str]) -> list[PromptMessage]:
    return _said(
        "Store this in Quipu as one memory, in words that are clear without this conversation. Search first; if a "
        f"memory says something else about it, replace that one. No passwords or keys.\n\n{arguments['text']}"
    )


def wrong_prompt(tx: Tx, arguments: Mapping[str, str]) -> list[PromptMessage]:
    """Give the order to correct or delete a wrong memory, with the memories that it may be about."""
    order = (
        f"Something that Quipu holds is wrong: {arguments['what']}\nFind the memory, say what it is to become, and "
        "replace it with the tool that wrote it, or delete it if nothing of it is true."
    )
    by_id = index.documents(tx, index.doc_ids(tx, [_key(arguments["id"])])) if arguments.get("id") else {}
    hits = [*by_id.values()] or _found(tx, arguments["what"], None)
    return _said(_with_hits(order, hits) or order)


def handoff_prompt(_tx: Tx, arguments: Mapping[str, str]) -> list[PromptMessage]:
    project = arguments["project"]
    return _said(
        "Write a handoff for the next session: what is done, what is open, what to do next and why, with names of "
        "files and commands; at most 400 characters first, details after them. Store it in Quipu with the tool "
        f'remember, kind "handoff" and metadata_json {{"project": "{project}"}}; without that tool, as the memory '
        f"{project}/handoff with add_memory or replace_memory. No passwords or keys."
    )


def complete(tx: Tx, _ref: str, argument: str, value: str, _others: Mapping[str, str]) -> list[str]:
    """List scopes and ids that begin with a value; the ids are those of the newest memories."""
    if argument == "scope":
        scopes = {scope for _, scope in index.partitions_of(tx, None, None, None) if scope}
        return sorted(scope for scope in scopes if scope.startswith(value))
    if argument != "id":
        return []
    newest = find_newest(tx, prepare_recall(tx, Recall(limit=100), None)).items[:_COMPLETED_FROM]
    ids = [f"{item.document.space}/{item.document.key}" for item in newest]
    return [id_ for id_ in ids if id_.startswith(value)]


def _found(tx: Tx, query: str, scope: str | None) -> list[Document]:
    request = Recall(query=query[:4096], scope=scope or None, limit=_MOST_HITS)
    return [item.document for item in find(tx, prepare_recall(tx, request, None))[1].items[:_MOST_HITS]]


def _with_hits(instruction: str, hits: list[Document]) -> str:
    return compose(instruction, hit_lines(hits), DEFAULT_TOKENS + fence.tokens(instruction)).text


def _key(id_: str) -> tuple[str, str]:
    space, slash, key = id_.partition("/")
    if not slash:
        raise Fault("invalid", "id: give the id of a memory, such as paths/car")
    return space, key


def _said(text: str) -> list[PromptMessage]:
    return [PromptMessage("user", {"type": "text", "text": text})]


def load_skill() -> Skill:
    """Return the skill as it stands in its folder, SKILL.md first."""
    files = {path.relative_to(_FOLDER).as_posix(): path.read_bytes() for path in sorted(_FOLDER.rglob("*.md"))}
    about = next(line for line in files[_ENTRY].decode().splitlines() if line.startswith("description: "))
    return Skill(_FOLDER.name, about.removeprefix("description: "), _LICENSE, files)


def _page(_tx: Tx, _cursor: str | None) -> tuple[list[Resource], str | None]:
    about = "Shows what recall found, in clients with MCP Apps"
    return [Resource(URI, "recall", "Recall", about, _MEDIA, _FILE.stat().st_size)], None


def _read(_tx: Tx, uri: str) -> list[ResourceContents] | None:
    if uri != URI:
        return None
    return [ResourceContents(URI, _MEDIA, _FILE.read_text(encoding="utf-8"), {"ui": _SANDBOX})]


RESOURCES = Resources(_SCHEME, _page, _read, fixed=True)

SKILL = load_skill()

PROMPTS: tuple[Prompt, ...] = (
    Prompt(
        "prime",
        "What is known of a project: rules, the last handoff, decisions.",
        prime_prompt,
        (_PROJECT._replace(required=True),),
        "Start with what is known",
    ),
    Prompt(
        "recall",
        "Answer a question from the memories.",
        recall_prompt,
        (PromptArgument("query", "The question", True), PromptArgument("scope", "Scope, or folder of paths")),
        "Recall",
    ),
    Prompt(
        "remember",
        "Store something as a memory.",
        remember_prompt,
        (PromptArgument("text", "What to store", True),),
        "Remember",
    ),
    Prompt(
        "wrong",
        "Correct or delete a memory that is wrong.",
        wrong_prompt,
        (PromptArgument("what", "What is wrong", True), PromptArgument("id", "Id of the memory, if you know it")),
        "Correct a memory",
    ),
    Prompt(
        "handoff",
        "Write down where the work stands, for the next session.",
        handoff_prompt,
        (_PROJECT._replace(required=True),),
        "Hand over",
    ),
)
