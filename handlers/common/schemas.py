"""Request and result types of recall."""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from kernel.search import index
from kernel.search.pagination import MAX_CURSOR_LENGTH

_DEFAULT_WEIGHTS = index.Weights()
HALF_LIFE_DAYS = 30.0
DEFAULT_ALIKE = 4  # near-duplicates that count in full

Detail = Literal["line", "text"]
Floor = index.Verdict | Annotated[float, Meta(ge=0, le=1)]
Weight = Annotated[float, Meta(ge=0, le=1)]
Time = Annotated[str, Meta(max_length=32)]


class SignalWeights(Struct, forbid_unknown_fields=True, frozen=True):
    """What each signal counts, from 0 to 1; what is left out counts as usual, and what counts 0 is not looked at."""

    words: Annotated[Weight, Meta(description="Words in common")] = _DEFAULT_WEIGHTS.words
    meaning: Annotated[Weight, Meta(description="Nearness of the whole text in meaning")] = _DEFAULT_WEIGHTS.meaning
    late: Annotated[
        Weight | None, Meta(description="Nearness in meaning, word by word; nothing where words or meaning are 0")
    ] = None
    neighbours: Annotated[
        Weight | None, Meta(description="What was written just before and after it in its scope; the same holds")
    ] = None
    recency: Annotated[Weight, Meta(description="How lately it was written; not looked at as a rule")] = 0.0


class Recall(Struct, forbid_unknown_fields=True):
    """A question to the whole store, or the ids of memories found before."""

    query: Annotated[
        str, Meta(description="What to look for, in plain words; empty: the newest memories", max_length=4096)
    ] = ""
    ids: Annotated[
        list[str], Meta(description="Ids from an earlier recall, to read their full text", max_length=100)
    ] = []
    dialects: Annotated[
        list[str], Meta(description="Only memories of these dialects, such as paths or notes", max_length=16)
    ] = []
    spaces: Annotated[
        list[str], Meta(description="Only memories of these spaces, such as paths or brain:core", max_length=64)
    ] = []
    scope: Annotated[
        Annotated[str, Meta(max_length=256)] | None, Meta(description="Only memories of this scope, or folder of paths")
    ] = None
    tags: Annotated[
        list[Annotated[str, Meta(min_length=1, max_length=256)]],
        Meta(description="Only memories with any of these tags, in any case", max_length=64),
    ] = []
    actor: Annotated[
        Annotated[str, Meta(max_length=64)] | None, Meta(description="Only memories written by this actor")
    ] = None
    after: Annotated[Time, Meta(description="Only memories updated at or after this ISO 8601 time")] = ""
    before: Annotated[Time, Meta(description="Only memories updated before this ISO 8601 time")] = ""
    as_of: Annotated[
        Time, Meta(description="Memories as they stood at this ISO 8601 time; `unrecorded` counts the lost texts")
    ] = ""
    detail: Annotated[Detail, Meta(description="line: ids and one-liners; text: full texts with their origin")] = "line"
    weights: Annotated[SignalWeights, Meta(description="Weights of the signals; leave out when unsure")] = (
        SignalWeights()
    )
    half_life_days: Annotated[float, Meta(description="Days after which recency counts half", ge=0.001, le=100_000)] = (
        HALF_LIFE_DAYS
    )
    alike: Annotated[
        int, Meta(description="So many that say nearly the same count in full, others ever less; 0: all", ge=0, le=100)
    ] = DEFAULT_ALIKE
    per_source: Annotated[
        int, Meta(description="Most memories of one actor in one scope; 0: any number", ge=0, le=100)
    ] = 0
    floor: Annotated[
        Floor,
        Meta(description="Least strength of a hit: none: any; weak: it may answer; strong: it does; or from 0 to 1"),
    ] = "weak"
    explain: Annotated[bool, Meta(description="Show what each signal adds to a score")] = False
    quarantined: Annotated[bool, Meta(description="Also memories kept apart as poison")] = False
    expired: Annotated[bool, Meta(description="Also memories past their validity")] = False
    limit: Annotated[int, Meta(description="Most memories to return", ge=1, le=100)] = 10
    max_tokens: Annotated[int, Meta(description="Token budget of the answer", ge=100, le=100_000)] = 2000
    cursor: Annotated[
        str, Meta(description="The cursor of the answer before, for what comes after it", max_length=MAX_CURSOR_LENGTH)
    ] = ""


class Signals(Struct):
    """Evidence behind a score: BM25 of the words (larger is better), cosine of the meaning, late interaction word by
    word; null if absent.
    """

    words: float | None
    meaning: float | None
    late: float | None = None


class Explained(Struct):
    """How a score came about: what each signal adds, in sum times `factor`, which is less than 1 for what says nearly
    the same as `alike` better memories.
    """

    words: float
    meaning: float
    late: float
    neighbours: float
    recency: float
    alike: int
    factor: float


class Provenance(Struct):
    """Where a memory comes from; times are ISO 8601 UTC. `created_at` is left out if nothing has changed since."""

    dialect: str
    tool: str
    actor: str
    created_at: str | UnsetType = UNSET
    updated_at: str = ""


class RecalledMemory(Struct, omit_defaults=True):
    """One memory: its id (space/key) for a later recall, its score in [0, 1] beside the other hits, its line or text;
    `complete` is false if that is not all of it, and else left out. With a query, `strength` is how likely it
    answers. Scope, provenance and `verdict`, the strength in a word, come with detail=text, ids or explain; signals
    come with explain.

    `flag` is there if it looks written to steer agents: as what. `older_version_of` is the id of a newer hit that seems
    to replace it, and `expired` says that its validity has ended. `stale` names files of it that have changed since, as
    a client saw: such a hit is never strong. With ids, `beside` are its parts that the text does not hold, as tags.
    """

    id: str
    score: float
    text: str
    complete: bool = True
    scope: str | UnsetType = UNSET
    signals: Signals | UnsetType = UNSET
    provenance: Provenance | UnsetType = UNSET
    flag: str | UnsetType = UNSET
    explained: Explained | UnsetType = UNSET
    strength: float | UnsetType = UNSET
    verdict: index.Verdict | UnsetType = UNSET
    older_version_of: str | UnsetType = UNSET
    stale: str | UnsetType = UNSET
    expired: bool = False
    beside: dict[str, Any] | UnsetType = UNSET


class Recalled(Struct):
    """Answer of recall; `signals` says which searches took part, `omitted` how many hits the budget left out, and
    `cursor` leads to the next page, if there is one. With as_of, `unrecorded` counts the memories left out because
    they have changed since and nothing holds their text of then. `message` is there if nothing answers the query, if
    expired memories are left out, or if ids are of no memory. With detail=line, `days_old` is how many days ago each
    memory was last changed, in their order, or one number if that is the same for all; with as_of, before that time.
    """

    memories: list[RecalledMemory]
    signals: list[str]
    omitted: int
    tokens: int
    cursor: str | None = None
    unrecorded: int | UnsetType = UNSET
    message: str | UnsetType = UNSET
    days_old: int | list[int] | UnsetType = UNSET
