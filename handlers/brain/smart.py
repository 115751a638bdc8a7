"""Smart memory tools of `brain` (seed 003, Smart Memory Tools): save unless known, correct, history."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import asdict

from handlers.brain import base, repository
from handlers.brain.links import carry_entity_links, check_references
from handlers.brain.memories import NewCategory, NewSubcategory
from handlers.brain.repository import Draft, Successor, check_not_replaced, inherited_metadata
from handlers.brain.schemas import (
    MAX_ROWS,
    Database,
    Fraction,
    Id,
    Importance,
    Memory,
    ShortText,
    Tags,
    Text,
    Time,
    ValidUntil,
)
from kernel.calls.settings import setting
from kernel.calls.tools import Hints, Hooks, Tool, read, write
from kernel.core.lazy_regex import regex
from kernel.search import index
from kernel.search.index import Hit
from kernel.store import history
from kernel.store.history import Event
from kernel.store.transaction import Tx

_MOST_WORDS = 4
_WORD = regex(r"(?:[^\W_]|[$€£¥₹]\d)[^\W_]*(?:[.,:/'’-][^\W_]+)*")
_OPPOSITES = frozenset(
    frozenset(words.split("/"))
    for words in "on/off up/down in/out with/without before/after above/below over/under more/less from/to".split()
)


def difference(new: str, old: str, name: str) -> str:
    """Return a clause on how a new text differs from that of the memory `name`.

    Numbers, names and days tell more than other words, so these are named alone if both texts have their own.
    """
    more, less = _own_words(new, old), _own_words(old, new)
    if index.is_negated(new) != index.is_negated(old):
        return f"denies what {name} says" if index.is_negated(new) else f"says what {name} denies"
    if _telling(more) and _telling(less):
        more, less = _telling(more), _telling(less)
    if more and less:
        return f"says {_listed(more)} where {name} says {_listed(less)}"
    if more:
        return f"adds {_listed(more)} to {name}"
    return f"leaves out {_listed(less)} of {name}" if less else f"says the same as {name}"


def _own_words(text: str, other: str) -> list[str]:
    """Return the words of a text that the other lacks, without those that say no subject or the opposite of another."""
    words = {word.casefold() for word in _WORD.findall(other)}
    own = {word.casefold(): word for word in _WORD.findall(text)}
    return [
        word
        for folded_word, word in own.items()
        if folded_word not in words
        and (not index.is_common(word) or any(frozenset((folded_word, said)) in _OPPOSITES for said in words))
    ]


def _telling(words: list[str]) -> list[str]:
    return [word for word in words if word[0].isupper() or any(character.isdigit() for character in word)]


def _listed(words: list[str]) -> str:
    return " ".join(words[:_MOST_WORDS]) + (" ..." if len(words) > _MOST_WORDS else "")


MAX_SIMILAR = 5  # as in the original
_CANDIDATES = 20  # by words, if there are no vectors; not measured
# In a transformer's vectors two names lie farther apart than in the sum of their words, and so do numbers of two
# subjects; words that mean the same lie nearer. Chosen by the agreement with its decisions.
_OTHERS_APART, _NUMBERS_APART, _SAME_NEARER, _SAME_DAY_NEARER = 0.2, 0.1, 0.05, 0.2
_MOST_APART, _MOST_NEARER = max(_OTHERS_APART, _NUMBERS_APART), max(_SAME_NEARER, _SAME_DAY_NEARER)
MIN_WORD_OVERLAP = 0.5  # share of the words in common; from the contract
_CHOICES = (
    "Choose: merge it with update_memory, replace it with supersede_memory, keep both by calling smart_save_memory "
    "again with force_add=true, or do nothing if it is known already."
)


class SmartSaveMemory(Struct, forbid_unknown_fields=True):
    """A new memory that may be known already."""

    db: Database
    content: Annotated[Text, Meta(description="The memory: one fact, decision, learning or the like")]
    category: NewCategory
    subcategory: NewSubcategory = None
    tags: Annotated[Tags | None, Meta(description="Words to find it by")] = None
    importance: Annotated[Importance, Meta(description="1 is minor, 5 foundational; a correction is always 5")] = 3
    project_id: Annotated[Id | None, Meta(description="Id of the entity it belongs to, or the name of a project")] = (
        None
    )
    confidence: Annotated[Fraction | None, Meta(description="1 for what was stated, less for what was inferred")] = None
    is_correction: Annotated[bool, Meta(description="The user corrects what was believed before")] = False
    force_add: Annotated[bool, Meta(description="Save without looking for similar memories")] = False
    valid_until: ValidUntil = None


class HandleCorrection(Struct, forbid_unknown_fields=True):
    """What is wrong, by id or by what it says, and what is right."""

    db: Database
    correct_content: Annotated[Text, Meta(description="What is right")]
    wrong_memory_id: Annotated[Id | None, Meta(description="Id of the wrong memory, if known")] = None
    wrong_content: Annotated[Text | None, Meta(description="What the wrong memory says, if its id is not known")] = None
    category: Annotated[
        ShortText | None, Meta(description="Category of the correction as in save_memory, instead of `correction`")
    ] = None
    tags: Annotated[Tags | None, Meta(description="Tags of the correction, instead of those of the wrong memory")] = (
        None
    )


class Similar(Memory, kw_only=True):
    """A memory similar to the new memory: `distance` is L2 between unit vectors, `similarity` the corresponding cosine.
    Without `distance` it was found by words, and `similarity` is the share of words in common.
    """

    distance: float | UnsetType = UNSET
    similarity: float


class NeedsDecision(Struct, tag_field="action", tag="needs_decision"):
    """Answer of smart_save_memory if something similar is stored; nothing was saved."""

    similar: list[Similar]
    message: str
    suggested_action: Literal["review", "supersede"]


class Added(Struct, tag_field="action", tag="added"):
    memory: Memory


class Corrected(Struct, tag_field="action", tag="corrected"):
    """Answer of handle_correction; without a wrong memory its id is null."""

    archived_memory_id: str | None
    correction_memory: Memory


def smart_save_memory(tx: Tx, request: SmartSaveMemory) -> NeedsDecision | Added:
    """Save a memory unless something similar is stored. If it is, nothing is saved and the similar memories come
    back: then update_memory, supersede_memory, or call again with force_add. Set is_correction when the user corrects
    you.
    """
    base.space(tx, request.db)
    check_references(tx, request)
    similar = [] if request.force_add else similar_memories(tx, request)
    if similar:
        differences = "; ".join(difference(request.content, memory.content, _named(tx, memory)) for memory in similar)
        message = f"Similar memories are stored. The new one {differences}. {_CHOICES}"
        return NeedsDecision(similar, message, "supersede" if request.is_correction else "review")
    correction = request.is_correction or request.category == "correction"
    columns = {
        "importance": 5 if correction else request.importance,
        "confidence": 1.0 if request.confidence is None else request.confidence,
        "valid_until": base.parse_end("valid_until", request.valid_until),
    }
    row = repository.new_memory(tx, request, **columns)
    reason = "User correction" if request.is_correction else "Proactive save"
    repository.add(tx, [Draft(request.db, row, reason=reason)])
    return Added(row)


def handle_correction(tx: Tx, request: HandleCorrection) -> Corrected:
    """Correct a wrong memory: it is archived, and the correction is saved with the highest importance and a link to
    it. Name the wrong memory by id, or by what it says; if nothing says that, only the correction is saved. It
    inherits project, metadata and links to entities. Immutable memories cannot be corrected.
    """
    base.space(tx, request.db)
    base.check_word("category", request.category)
    twins = _wrong_memories(tx, request)
    wrong = next(iter(twins), None)
    for memory in twins:
        base.check_mutable(memory, "correct")
        check_not_replaced(tx, request.db, memory)
    columns: dict[str, Any] = {"category": request.category or "correction", "tags": request.tags}
    if wrong:
        columns |= {"subcategory": wrong.subcategory, "project_id": wrong.project_id}
        columns |= {"metadata": inherited_metadata(wrong), "tags": wrong.tags if request.tags is None else request.tags}
    row = repository.new_memory(tx, content=request.correct_content, importance=5, **columns)
    repository.add(tx, [Draft(request.db, row, wrong.content if wrong else None, "User correction")])
    for memory in twins:
        reason = f"Corrected to: {request.correct_content}"
        repository.retire(tx, request.db, memory, Successor("archived", "corrected", row.id, reason))
        repository.link_successor(tx, request.db, row.id, memory.id, "corrects", context="User correction")
        carry_entity_links(tx, request.db, memory.id, row.id)
    return Corrected(wrong.id if wrong else None, row)


def _named(tx: Tx, memory: Memory) -> str:
    end = memory.valid_until
    return f"{memory.id} (ended on {end[:10]})" if end and end <= tx.now else memory.id


def similar_memories(tx: Tx, request: SmartSaveMemory) -> list[Similar]:
    """Return the active memories nearer than the limit, nearest first: they may say the same, or something else about
    the same thing.

    Memories without an embedding are compared by the share of words in common. A text without words, such as `!!!`,
    has neither: it matches only identical texts.
    """
    # The partition holds active memories only, so archived memories cannot take the place of a duplicate.
    hits = index.search(tx, request.content, within=[(base.space(tx, request.db), "memory")], limit=_CANDIDATES)
    near = _similar_hits(tx, request, hits)
    distances = {hit.id: (round(hit.distance or 0.0, 4), round(hit.similarity or 0.0, 2)) for hit in near}
    if index.has_model(tx) or not hits:
        which = {"db": request.db, "content": request.content, "limit": MAX_SIMILAR}
        distances |= {row.id: (0.0, 1.0) for row in tx.all("brain.smart.same_content", Memory, **which)}
    nearest = sorted(distances, key=lambda key: (distances[key][0], key))[:MAX_SIMILAR]
    if nearest:
        rows = [(row, *distances[row.id]) for row in repository.get_many(tx, request.db, nearest)]
        return [Similar(**asdict(row), distance=distance, similarity=share) for row, distance, share in rows]
    text_ids = [hit.id for hit in hits if hit.text_rank is not None and hit.distance is None]
    return _sharing_words(request, repository.get_many(tx, request.db, text_ids))


def _sharing_words(request: SmartSaveMemory, rows: Sequence[Memory]) -> list[Similar]:
    overlaps = [(word_overlap(row.content, request.content), row) for row in rows]
    overlaps = [(share, row) for share, row in overlaps if share > MIN_WORD_OVERLAP]
    overlaps.sort(key=lambda pair: -pair[0])
    return [Similar(**asdict(row), similarity=round(share, 2)) for share, row in overlaps[:MAX_SIMILAR]]


def word_overlap(text: str, other: str) -> float:
    """Return the number of distinct words in common divided by that of the text with more words, in [0, 1]."""
    first, second = _words(text), _words(other)
    return len(first & second) / max(len(first), len(second), 1)


def _words(text: str) -> set[str]:
    pairs = index.character_pairs(text)
    return {word for word in text.lower().split() if not pairs or word.isascii()} | pairs


def _similar_hits(tx: Tx, request: SmartSaveMemory, hits: Sequence[Hit]) -> list[Hit]:
    """Return the hits within the limit, those about others within a lower limit, and those that name another thing of
    the same subject, which may be far by meaning.
    """
    limit: float = setting(tx, base.DUPLICATE_DISTANCE)
    hits_by_id = {hit.id: hit for hit in hits if hit.distance is not None}
    rows = repository.get_many(tx, request.db, [*hits_by_id])

    def is_similar(content: str, distance: float) -> bool:
        if distance < limit - _MOST_APART:
            return True
        texts = content, request.content
        is_near = distance < limit + _MOST_NEARER and distance < limit + _nearer(*texts)
        return is_near or index.begins_alike(*texts) or index.ends_alike(*texts)

    return [hits_by_id[row.id] for row in rows if is_similar(row.content, hits_by_id[row.id].distance or 0.0)]


def _nearer(new: str, old: str) -> float:
    """Return how much nearer two texts are to a transformer than the distance says; less than 0 if they lie apart."""
    if index.are_about_others(new, old):
        return -_OTHERS_APART
    if index.share_day(new, old):
        return _SAME_DAY_NEARER
    if index.begin_apart(new, old):
        return -_NUMBERS_APART
    return _SAME_NEARER if index.share_half(new, old) else 0.0


def _wrong_memories(tx: Tx, request: HandleCorrection) -> list[Memory]:
    """Return the wrong memory, and after it, if it is named by its content, the active memories of equal content."""
    if request.wrong_memory_id is not None:
        return [repository.get(tx, Memory, request.db, request.wrong_memory_id)]
    if request.wrong_content is None:
        return []
    equal = _equal(tx, request.db, request.wrong_content)
    similar = None if equal else _find_by_content(tx, request.db, request.wrong_content)
    if similar is None:
        return equal
    return [similar, *(row for row in _equal(tx, request.db, similar.content) if row.id != similar.id)]


def _equal(tx: Tx, db: str, content: str) -> list[Memory]:
    return tx.all("brain.smart.same_content", Memory, db=db, content=content, limit=MAX_ROWS)


def _find_by_content(tx: Tx, db: str, content: str) -> Memory | None:
    """Return the active memory that says the same as `content`, or the only memory that contains every word of it."""
    hits = index.search(tx, content, within=[(base.space(tx, db), "memory")], limit=index.CANDIDATES)
    fused_hits = index.fuse(hits, index.Weights(0.5, 0.5))
    limit: float = setting(tx, base.DUPLICATE_DISTANCE)
    near = {hit.id for hit in hits if hit.distance is not None and hit.distance < limit}
    rows = repository.get_many(tx, db, [item.hit.id for item in fused_hits])
    rows_near = [row for row in rows if row.id in near]
    same = index.says_the_same(tx, content, [row.content for row in rows_near])
    if True in same:
        return rows_near[same.index(True)]
    shares = index.coverage(tx, content, [row.content for row in rows])
    denies = index.is_negated(content)
    holding = [
        row for row, share in zip(rows, shares, strict=True) if share == 1 and index.is_negated(row.content) == denies
    ]
    return holding[0] if len(holding) == 1 and not index.is_common(content) else None


# These rows have history too, but the contract is about memories.
_OTHER_ID_PREFIXES = ("ent_", "note_", "lnk_")


class GetMemoryHistory(Struct, forbid_unknown_fields=True):
    """A memory, and the moment to look back to."""

    memory_id: Annotated[Id, Meta(description="Id of the memory, deleted ones included")]
    as_of: Annotated[Time | None, Meta(description="Also show its content at this ISO 8601 date or time")] = None


class MemoryChange(Struct):
    """One event of a memory; content is null if it had none, or was no longer active."""

    id: str
    db: str
    memory_id: str
    operation: str
    content_before: str | None
    content_after: str | None
    reason: str | None
    changed_at: str


class MemoryHistory(Struct):
    """Answer of get_memory_history, oldest first. With `as_of`: what happened until then, and `content` at
    that time, null if the memory did not exist or was no longer active.
    """

    db: str
    history: list[MemoryChange]
    as_of: str | UnsetType = UNSET
    content: str | UnsetType | None = UNSET


def get_memory_history(tx: Tx, request: GetMemoryHistory) -> MemoryHistory | str:
    """Show everything that happened to a memory, in whichever database it is: its content before and after, why and
    when; with as_of also its content at that moment.
    """
    at = base.parse_time("as_of", request.as_of)
    if request.memory_id.startswith(_OTHER_ID_PREFIXES):
        return f"No history found for memory '{request.memory_id}'"
    # The contract takes no database here, and a deleted memory has no row that would name it.
    for db in base.databases(tx):
        events = history.read(tx, base.space(tx, db), request.memory_id)
        if events:
            return _memory_history(tx, db, request.memory_id, events, at)
    return f"No history found for memory '{request.memory_id}'"


def _memory_history(tx: Tx, db: str, key: str, events: Sequence[Event], at: str | None) -> MemoryHistory:
    changes = [
        MemoryChange(
            f"mhist_{event.id:021}", db, key, event.operation, event.before, event.after, event.reason, event.at
        )
        for event in events
        if at is None or event.at <= at
    ]
    if at is None:
        return MemoryHistory(db, changes)
    return MemoryHistory(db, changes, at, history.as_of(tx, base.space(tx, db), key, at))


TOOLS: tuple[Tool, ...] = (
    write(
        smart_save_memory,
        Hints("Save memory unless known"),
        permission="write",
        hooks=Hooks(texts=base.texts_of("content")),
    ),
    write(
        handle_correction,
        Hints("Correct memory", destructive=True),
        permission="write",
        hooks=Hooks(texts=base.texts_of("correct_content", "wrong_content")),
    ),
    read(get_memory_history, Hints("Get memory history"), permission="read"),
)
