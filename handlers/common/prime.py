"""The knowledge for an agent at the start of a session: rules, the last handoff, decisions, and hits of a question."""

from collections.abc import Collection, Sequence
from typing import Annotated, NamedTuple

from msgspec import Meta, Struct

from handlers.common import fence
from handlers.common.filters import is_left_out
from handlers.common.retrieval import find, prepare
from handlers.common.schemas import Floor, Recall
from kernel.core.checkout import has_controls
from kernel.memories import witness
from kernel.memories.briefing import Part, Project, Remark
from kernel.search import index
from kernel.search.index import Document
from kernel.store.transaction import Tx

DEFAULT_TOKENS = 800
LEAST_TOKENS, MOST_TOKENS = 200, 4000
MOST_HITS = 5
_LINE_CHARS, _WHOLE_CHARS, _HANDOFF_CHARS, _RULE_CHARS = 200, 1200, 400, 300
_MOST_DECISIONS = 5
_CHARS: dict[Part, int] = {"rule": _RULE_CHARS, "handoff": _HANDOFF_CHARS, "decision": _LINE_CHARS}
_RULES_SHARE = 0.5  # of the budget, so that rules leave room for the state of the work
_NOTE_SHARE = 0.3
_NOTE_FILE = ".quipu/prime.md"
_TITLES: dict[str, str] = {
    "rule": "Standing rules:",
    "handoff": "Where the last session stopped:",
    "decision": "Decisions and notes, newest first:",
    "hit": "About this question:",
    "note": "From a file in this folder, by whoever wrote it there:",
}


# Around the text that a client replaces by two words on the places that a memory names, see kernel.cli.witness.
Mark = Annotated[
    str, Meta(description="Random digits, between which the client gets what to compare", pattern="^([0-9a-f]{32})?$")
]
_MARK_BYTES = 48  # for the words in the place of a mark


class Prime(Struct, forbid_unknown_fields=True):
    """A project, and what else to look for."""

    root: Annotated[str, Meta(description="Root folder of the repository", max_length=4096)] = ""
    query: Annotated[str, Meta(description="A question whose answers are shown too", max_length=4096)] = ""
    budget: Annotated[int, Meta(description="Most tokens", ge=LEAST_TOKENS, le=MOST_TOKENS)] = DEFAULT_TOKENS
    intro: Annotated[str, Meta(description="Text of .quipu/prime.md in that folder", max_length=65_536)] = ""
    mark: Mark = ""


class Primed(Struct):
    """The text, empty if nothing is known; the tokens it takes, and the ids of the memories in it."""

    text: str
    tokens: int
    ids: list[str]


# Least strength for a prompt, which as a rule asks nothing. Of natural questions 11 % get the memory that answers, and
# 4 % another if none does; with .95 12 and 4 %, with .98 6 and 3 % (`loadtests.benchmarks.first_prompt`).
PROMPT_FLOOR = 0.955
_QUERY_CHARS = 1000  # of a prompt; the rest is often a log or a file


class _Line(NamedTuple):
    part: str
    id: str
    text: str
    document: Document | None = None
    mark: str = ""


def prime(tx: Tx, request: Prime) -> Primed:
    """What is known of a project at the start of a session, within a budget of tokens: its standing rules, where the
    last session stopped, recent decisions, and what answers a question.
    """
    return primed(tx, request)


def primed(tx: Tx, request: Prime, left_out: Collection[Part] = ()) -> Primed:
    project = Project.at(request.root)
    remarks = [line for line in _remarks(tx, project) if line.part not in left_out]
    ids = {line.id for line in remarks}
    hits = hits_above(tx, request.query, "strong", MOST_HITS, ids) if request.query.strip() else []
    lines = marked(tx, [*remarks, *hit_lines(hits)], request.mark)
    return compose(_intro(project), [*_note(tx, request), *lines], request.budget) if lines else Primed("", 0, [])


def marked(tx: Tx, lines: Sequence[_Line], mark: str) -> Sequence[_Line]:
    """Return lines with the marks of the places that their memories name, if the client has sent a mark."""
    if not mark:
        return lines
    marks = witness.marks(tx, [line.document for line in lines if line.document], mark)
    return [line._replace(mark=marks.get(line.document.doc, "")) if line.document else line for line in lines]


def compose(intro: str, lines: Sequence[_Line], budget: int) -> Primed:
    """Return the text of these lines in one fence, as many of them as the budget allows; empty if it allows none."""
    frame = f"{intro}\n{fence.NOTICE}\n{fence.OPEN}\n{fence.CLOSE}\n"
    room = budget * fence.BYTES_PER_TOKEN - len(frame.encode())
    fitting = _fitting(lines, room)
    if not fitting:
        return Primed("", 0, [])
    body: list[str] = []
    for part, title in _TITLES.items():
        texts = [line.text + line.mark for line in fitting if line.part == part]
        body += [title, *texts] if texts else []
    text = "\n".join([intro, fence.NOTICE, fence.OPEN, *body, fence.CLOSE]) + "\n"
    surplus = sum(len(line.mark) - _MARK_BYTES for line in fitting if line.mark)
    return Primed(text, fence.tokens(text) - surplus // fence.BYTES_PER_TOKEN, [line.id for line in fitting if line.id])


def hits_above(tx: Tx, query: str, floor: Floor, limit: int, seen_ids: Collection[str] = ()) -> list[Document]:
    """Return the best hits of at least this strength, without those of these ids."""
    request = Recall(query=query[:_QUERY_CHARS], floor=floor, limit=min(limit + len(seen_ids), 100))
    _, ranking = find(tx, prepare(tx, request, None))
    documents = [item.document for item in ranking.items]
    return [document for document in documents if f"{document.space}/{document.key}" not in seen_ids][:limit]


def hit_lines(hits: Sequence[Document]) -> list[_Line]:
    return [_line("hit", hit, hit.text, _LINE_CHARS) for hit in hits]


def _fitting(lines: Sequence[_Line], room: int) -> list[_Line]:
    """Return the lines that fit, with the titles of their parts; rules first, up to their share."""
    fitting: list[_Line] = []
    titled_parts: set[str] = set()
    rules = int(room * _RULES_SHARE)
    for line in lines:
        title = 0 if line.part in titled_parts else len(_TITLES[line.part]) + 1
        size = len(line.text.encode()) + 1 + title + (_MARK_BYTES if line.mark else 0)
        if size > room or (line.part == "rule" and size > rules):
            continue
        fitting.append(line)
        titled_parts.add(line.part)
        room -= size
        rules -= size
    return fitting


def _intro(project: Project) -> str:
    of = f" of {fence.line(project.name, 60)}" if project.name else ""
    return (
        f"{fence.INTRO}{of}. Search them with the tool recall (lines first, then ids) before you rely on "
        "earlier work; store decisions with their reasons, and corrections, when they are made."
    )


def _note(tx: Tx, request: Prime) -> list[_Line]:
    """Return the text of a file in the folder, which is data like any memory: a clone brings such a file along."""
    text = fence.harmless(fence.without_private(request.intro)).strip()
    if not text:
        return []
    origin = fence.line(f"{request.root.rstrip('/')}/{_NOTE_FILE}" if request.root else _NOTE_FILE, _LINE_CHARS)
    if has_controls(text):
        return [_Line("note", "", f"- {origin} is not shown: it holds control characters")]
    if index.is_quarantining(tx) and (rule := index.matched_rule(request.intro)):
        return [_Line("note", "", f"- {origin} is not shown: it reads like a prompt injection ({rule})")]
    opening = text.encode()[: int(request.budget * fence.BYTES_PER_TOKEN * _NOTE_SHARE)].decode(errors="ignore")
    return [_Line("note", "", "\n".join([f"- {origin}:", *(f"  > {line}" for line in opening.splitlines())]))]


def _remarks(tx: Tx, project: Project) -> list[_Line]:
    """Return the remarks of the dialects on the project, without quarantined memories and those kept out of recall."""
    if not project.name:
        return []
    remarks = [
        remark
        for brief in tx.context.briefs.values()
        for remark in brief(tx, project)
        if not is_left_out(tx, remark.space)
    ]
    documents = _documents(tx, remarks)
    pairs = [
        (remark, documents[remark.space, remark.key]) for remark in remarks if (remark.space, remark.key) in documents
    ]
    newest = sorted(pairs, key=lambda pair: pair[1].updated_at, reverse=True)
    return [
        *(_remark(*pair) for pair in pairs if pair[0].part == "rule"),
        *[_remark(*pair) for pair in newest if pair[0].part == "handoff"][:1],
        *[_remark(*pair) for pair in newest if pair[0].part == "decision"][:_MOST_DECISIONS],
    ]


def _documents(tx: Tx, remarks: Sequence[Remark]) -> dict[tuple[str, str], Document]:
    docs = index.doc_ids(tx, [(remark.space, remark.key) for remark in remarks])
    documents = index.documents(tx, docs).values()
    visible = [item for item in documents if item.flag is None or not index.is_quarantining(tx)]
    return {(item.space, item.key): item for item in visible}


def _remark(remark: Remark, document: Document) -> _Line:
    if remark.whole:
        text = fence.harmless(fence.without_private(remark.text).strip())[:_WHOLE_CHARS].replace("\n", "\n  ")
        return _Line(remark.part, f"{document.space}/{document.key}", _item(text, document), document)
    return _line(remark.part, document, remark.text, _CHARS[remark.part])


def _line(part: Part | str, document: Document, text: str, limit: int) -> _Line:
    return _Line(part, f"{document.space}/{document.key}", _item(fence.line(text, limit), document), document)


def _item(text: str, document: Document) -> str:
    return fence.item(text, f"{document.space}/{document.key}", document.actor, document.updated_at)
