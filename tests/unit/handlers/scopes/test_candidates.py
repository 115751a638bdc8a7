"""Candidates of a query: scopes, filters, words and meaning, and the shortcut for the best entries."""

import itertools
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from handlers.scopes import candidates
from handlers.scopes.inheritance import scope_chain
from kernel.core.config import Config
from kernel.engines.sqlite.connection import Connection
from kernel.search import index
from kernel.server.app import Kernel, open_kernel
from kernel.store.context import CallContext
from kernel.store.transaction import Tx
from tests.conftest import Clock
from tests.unit.handlers.scopes.conftest import (
    KINDS,
    MANY,
    NOW,
    Add,
    Do,
    ScopeIds,
    heading,
    inside,
    relate,
    result_of,
    scopes,
    tag,
)


@pytest.mark.parametrize(
    ("tags", "wanted"),
    [
        ({"include": ["python"]}, "ab"),
        ({"include": ["PYTHON", "Go"]}, "abc"),
        ({"require": ["python", "security"]}, "a"),
        ({"require": ["Security"]}, "ac"),
        ({"exclude": ["security"]}, "bd"),
        ({"exclude": ["security", "unknown tag"]}, "bd"),
        ({"include": ["python", "go"], "exclude": ["security"]}, "b"),
        ({"include": ["python"], "require": ["security"], "exclude": ["go"]}, "a"),
        ({"include": ["unknown tag"]}, ""),
        ({"include": ["unknown tag", "go"]}, "c"),
        ({"require": ["go", "unknown tag"]}, ""),
        ({"include": [], "require": None}, "abcd"),
        ({}, "abcd"),
    ],
)
@pytest.mark.parametrize("text", ["cords", None])
def test_tag_filters_ignore_case(
    do: Do, add: Add, found: Callable[..., list[str]], tags: dict[str, Any], wanted: str, text: str | None
) -> None:
    for name, marks in {"a": ("python", "security"), "b": ("python",), "c": ("go", "security"), "d": ()}.items():
        tag(do, "tool", add("tool", name, "Knotted cords"), *marks)

    assert set(found(tags=tags, search=text)) == set(wanted)


def test_at_most_three_included_tags_score(clock: Clock, do: Do, add: Add) -> None:
    marks = ["one", "two", "three", "four"]
    for count in range(5):
        tag(do, "tool", add("tool", str(count)), *marks[:count], "other")

    answer = do("memory_query", "search", tags={"include": [*marks, "other"]}, types=["tools"])

    scores = {heading(result): result["score"] for result in answer["results"]}
    assert scores == {"0": 5.5, "1": 8.5, "2": 11.5, "3": 11.5, "4": 11.5}


def test_related_to_matches_both_directions_and_the_anchor(
    clock: Clock, do: Do, add: Add, scope_ids: ScopeIds, search: Callable[..., Any]
) -> None:
    ids = {name: add("guideline", name, "Knotted cords") for name in "abcde"}
    project = ("project", scope_ids.project)
    relate(do, ("guideline", ids["a"]), project, "applies_to")
    relate(do, project, ("guideline", ids["b"]), "related_to")
    relate(do, ("guideline", ids["c"]), ("guideline", ids["a"]), "depends_on")

    def seen(anchor: tuple[str, str], relation: str | None = None, **more: Any) -> dict[str, float]:
        related = {"type": anchor[0], "id": anchor[1], "relation": relation}
        return {heading(result): result["score"] for result in search(relatedTo=related, **more)["results"]}

    assert seen(project) == {"a": 8.25, "b": 8.25}
    assert seen(project, "applies_to") == {"a": 8.25}
    assert seen(("guideline", ids["a"])) == {"a": 8.25, "c": 8.25}
    assert seen(("guideline", ids["a"]), "conflicts_with") == {"a": 8.25}
    assert set(seen(project, search="cords")) == {"a", "b"}
    assert set(seen(project, search="cords", includeInactive=True)) == {"a", "b"}
    assert seen(project, types=["tools"]) == {}


def test_words_match_in_any_order_and_form(add: Add, found: Callable[..., list[str]]) -> None:
    add("tool", "alpha", "gamma rays are measured", constraints="never indoors")
    add("guideline", "beta", "delta", rationale="because of gammas")
    add("knowledge", "epsilon", "zeta", source="the alpha report")

    by_words: dict[str, Any] = {"semanticSearch": False}
    assert set(found(search="rays gamma", **by_words)) == {"alpha", "beta"}
    assert found(search="measuring", **by_words) == ["alpha"]
    assert set(found(search="  ALPHA ", **by_words)) == {"alpha", "epsilon"}
    assert found(search="indoors", **by_words) == ["alpha"]
    assert found(search="because", **by_words) == ["beta"]


@pytest.mark.slow
def test_parts_of_words_match_without_word_hits(add: Add, found: Callable[..., list[str]]) -> None:
    add("tool", "git_commit", "Commit what is staged")
    add("knowledge", "Größe", "ÄNDERUNGEN vorbehalten")

    by_words: dict[str, Any] = {"semanticSearch": False}
    assert found(search="stag commi", **by_words) == ["git_commit"]
    assert found(search="ÄNDERUNG", **by_words) == ["Größe"]
    assert found(search="stag nothing", **by_words) == []
    assert found(search="ommi it", **by_words) == ["git_commit"]
    assert found(search="it_comm", **by_words) == ["git_commit"]
    assert found(search="änderung", **by_words) == ["Größe"]
    assert found(search="mm", **by_words) == []


def test_parts_of_words_match_what_a_write_left(do: Do, add: Add, found: Callable[..., list[str]]) -> None:
    changed, dropped = add("guideline", "changed", "Knotted cords"), add("guideline", "dropped", "Knotted cords")
    do("memory_guideline", "update", id=changed, content="Woven baskets")
    do("memory_guideline", "deactivate", id=dropped)

    by_words: dict[str, Any] = {"semanticSearch": False}
    assert found(search="aske", **by_words) == ["changed"]
    assert found(search="nott", **by_words) == []
    assert found(search="nott", includeInactive=True, **by_words) == ["dropped"]
    assert found(search="aske", includeInactive=True, **by_words) == ["changed"]


def test_parts_of_words_at_a_past_time_are_those_of_its_versions(
    clock: Clock, do: Do, add: Add, found: Callable[..., list[str]]
) -> None:
    changed = add("guideline", "changed", "Knotted cords")
    add("guideline", "steady", "Woven baskets")
    before = clock.now
    clock.move(days=1)
    do("memory_guideline", "update", id=changed, content="Woven baskets")

    by_words: dict[str, Any] = {"semanticSearch": False, "asOf": before}
    assert found(search="aske", **by_words) == ["steady"]
    assert found(search="nott", **by_words) == ["changed"]


def test_semantic_search_adds_entries_without_the_words(add: Add, found: Callable[..., list[str]]) -> None:
    add("knowledge", "Pricing", "What customers pay each month")
    add("knowledge", "naming", "Functions are written in snake_case")

    assert found(search="monthly cost of the subscription") == ["Pricing"]
    assert found(search="monthly cost of the subscription", semanticThreshold=0.999) == []
    assert found(search="monthly cost of the subscription", semanticSearch=False) == []
    assert set(found(search="monthly cost of the subscription", semanticThreshold=0)) == {"Pricing", "naming"}


def test_word_hits_rank_above_semantic_hits(add: Add, found: Callable[..., list[str]]) -> None:
    add("knowledge", "other failures", "What to do when paying with a credit card fails")
    add("knowledge", "code", "E4312 means that the card was declined by the bank")

    names = found(search="the payment E4312", semanticThreshold=0.5)

    assert names == ["code", "other failures"]


@pytest.mark.slow
def test_word_hits_are_all_counted(add: Add, search: Callable[..., Any]) -> None:
    for number in range(130):
        add("tool", f"tool {number}", f"Knotted cords {'again ' * (number % 7)}")

    assert search(search="cords", semanticSearch=False, limit=5)["meta"]["totalCount"] == 130
    assert search(search="cords")["meta"] == {
        "totalCount": 130,
        "returnedCount": 20,
        "truncated": True,
        "hasMore": True,
    }
    assert len(search(search="cords", limit=130)["results"]) == 130


@pytest.mark.slow
def test_semantic_search_widens_until_filters_leave_enough(do: Do, add: Add, found: Callable[..., list[str]]) -> None:
    for number in range(120):
        add("guideline", f"login {number}", f"Store the access tokens of logins in cookies, part {number}")
    last = add("guideline", "rotation", "Rotate refresh tokens")
    tag(do, "guideline", last, "security")

    assert found(search="credentials", semanticThreshold=0.2, tags={"require": ["security"]}, limit=1) == ["rotation"]


@pytest.mark.parametrize(
    "text",
    ["c++", "don't", "foo-bar", "AND", "*", '"', "title:x", "NEAR(", "' OR 1=1 --", "\u202e", "日本", "😀", "(" * 900],
)
def test_any_text_can_be_searched_for(add: Add, search: Callable[..., Any], text: str) -> None:
    add("tool", "hostile", f"it holds {text} in the middle")

    assert [heading(result) for result in search(search=text, semanticSearch=False)["results"]] in ([], ["hostile"])


def test_search_works_without_a_model(config: Config, caller: Any) -> None:
    running = open_kernel(config._replace(model=None))
    ask = caller(running.dispatch)
    result_of(ask("memory_tool", action="add", scopeType="global", name="t", description="Knotted cords"))

    assert result_of(ask("memory_query", action="search", search="cord"))["meta"]["totalCount"] == 1
    running.store.close()


class Row(NamedTuple):
    """An entry of the property test below."""

    kind: str
    name: str
    depth: int
    age: int
    priority: int
    tagged: bool
    expired: bool
    gone: int | None = None  # days since it was deactivated
    late: int = 0  # days from its creation to its oldest version
    was: tuple[int, int] | None = None  # another priority, and the days since it was replaced


ROWS = st.lists(
    st.builds(
        Row,
        st.sampled_from(KINDS),
        st.sampled_from("abcdefgh"),
        st.integers(0, 3),
        st.integers(0, 60),
        st.integers(0, 100),
        st.booleans(),
        st.booleans(),
        st.none(),
        st.just(0),
        st.none(),
    ),
    max_size=40,
    unique_by=lambda row: row[:3],
)


PAST_ROWS = st.lists(
    st.builds(
        Row,
        st.sampled_from(KINDS),
        st.sampled_from("abcdefgh"),
        st.integers(0, 3),
        st.integers(0, 60),
        st.integers(0, 200),
        st.booleans(),
        st.booleans(),
        st.one_of(st.none(), st.integers(0, 60)),
        st.sampled_from([0, 0, 0, 7]),
        st.one_of(st.none(), st.tuples(st.integers(0, 200), st.integers(0, 60))),
    ),
    max_size=40,
    unique_by=lambda row: row[:3],
)


def insert_row(db: Connection, tx: Tx, row: Row, seq: int, where: tuple[str, str | None]) -> None:
    """Inserts the row as in a store that is some days old."""
    entry_id, scope = f"{row.kind}-{seq}", where[0] if where[1] is None else f"{where[0]}:{where[1]}"
    born = days_before_now(row.age)
    priority = row.priority if row.kind == "guideline" else None
    until = "2026-01-01T00:00:00.000Z" if row.expired and row.kind == "knowledge" else None
    given = {
        "id": entry_id,
        "kind": row.kind,
        "type": where[0],
        "scope": where[1],
        "name": row.name,
        "priority": priority,
        "version": f"v{seq}",
        "born": born,
        "known": days_before_now(row.age - row.late),
        "gone": None if row.gone is None else days_before_now(row.gone),
        "until": until,
        "mark": f"et{seq}",
    }
    db.values(
        "INSERT INTO scopes_entry (id, kind, scope_type, scope_id, name, priority, current_version_id, created_at, "
        "deactivated_at) VALUES (:id, :kind, :type, :scope, :name, :priority, :version, :born, :gone)",
        given,
    )
    db.values(
        "INSERT INTO scopes_version (id, entry_id, version_num, content, valid_until, created_at) "
        "VALUES (:version, :id, 1, 'x', :until, :known)",
        given,
    )
    if row.was and priority is not None:
        db.values(
            "INSERT INTO scopes_entry_was (entry_id, until, priority) VALUES (:id, :until, :was)",
            {"id": entry_id, "until": days_before_now(row.was[1]), "was": row.was[0]},
        )
    if row.tagged:
        db.values(
            "INSERT INTO scopes_entry_tag (id, entry_type, entry_id, tag_id, created_at) "
            "VALUES (:mark, :kind, :id, 'tag_python', '')",
            given,
        )
    tx.run("scopes.entries.mark_same_name", id=entry_id, kind=row.kind, name=row.name)
    tx.run("scopes.entries.mark_late", id=entry_id)
    if row.gone is None:
        index.put(tx, f"scopes:{MANY[row.kind]}", entry_id, "x", scope=scope)


def hidden_by(nearer: Row) -> list[Row]:
    """A row, and one of its name in a farther scope."""
    return [nearer, nearer._replace(depth=3, gone=None, late=0)]


def days_before_now(days: int) -> str:
    return f"{(datetime.fromisoformat(NOW) - timedelta(days=days)).isoformat(timespec='milliseconds')[:23]}Z"


def raised(*pairs: tuple[int, int]) -> list[Row]:
    """Old guidelines that were given a priority a day ago, as (priority, priority before)."""
    olds = rules(*((priority, 9) for priority, _ in pairs))
    return [rule._replace(was=(before, 1)) for rule, (_, before) in zip(olds, pairs, strict=True)]


def rules(*pairs: tuple[int, int]) -> list[Row]:
    """Guidelines of one scope, given as (priority, age)."""
    return [Row("guideline", str(at), 3, age, priority, False, False) for at, (priority, age) in enumerate(pairs)]


@pytest.mark.slow
@example(rows=rules((60, 10), (48, 0), (61, 40)), limit=1, shadowed=False, excluding=False)
@example(rows=rules((100, 60), (50, 10)), limit=1, shadowed=False, excluding=False)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(rows=ROWS, limit=st.integers(1, 6), shadowed=st.booleans(), excluding=st.booleans())
def test_the_top_candidates_equal_a_full_ranking(
    kernel: Kernel, scope_ids: ScopeIds, rows: Sequence[Row], limit: int, shadowed: bool, excluding: bool
) -> None:
    """Without a text only few candidates are read; they rank as in a full ranking, and the count is the same."""
    db = Connection(kernel.config.file, kernel.store.context, readonly=False)
    tx = db.begin(CallContext())
    for seq, row in enumerate(rows):
        insert_row(db, tx, row, seq, scopes(scope_ids)[row.depth])
    tagging = candidates.TagIds(exclude=frozenset({"tag_python"}) if excluding else frozenset())
    seen_by = scope_chain(tx, "session", scope_ids.session)
    ask = candidates.EntryQuery(KINDS, seen_by, NOW, limit, include_shadowed=shadowed, tags=tagging)

    for kinds, expired in itertools.product((KINDS, *((kind,) for kind in KINDS)), (False, True)):
        asked = ask._replace(kinds=kinds, include_expired=expired)
        short, every = (
            candidates.find_candidates(tx, asked),
            candidates.find_candidates(tx, asked._replace(include_inactive=True)),
        )
        assert candidates.rank(asked, short)[:limit] == candidates.rank(asked, every)[:limit]
        assert short.total == every.total == len(every.candidates)
        assert short.expired == every.expired
    best, whole = (
        candidates.rank(ask, candidates.find_candidates(tx, ask)),
        candidates.rank(ask, candidates.find_candidates(tx, ask._replace(include_inactive=True))),
    )
    for kind in KINDS:
        assert of(best, kind)[:limit] == of(whole, kind)[:limit]
    db.rollback()
    db.close()


@pytest.mark.slow
@example(rows=hidden_by(Row("tool", "a", 0, 9, 0, False, False, 3)), days=5, limit=3, shadowed=False, excluding=False)
@example(
    rows=hidden_by(Row("tool", "a", 0, 9, 0, False, False, None, 7)), days=5, limit=3, shadowed=False, excluding=False
)
@example(rows=raised((90, 10), (10, 95)), days=5, limit=1, shadowed=False, excluding=False)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    rows=PAST_ROWS, days=st.integers(0, 62), limit=st.integers(1, 6), shadowed=st.booleans(), excluding=st.booleans()
)
def test_the_top_candidates_of_a_past_time_equal_a_full_ranking(
    kernel: Kernel,
    scope_ids: ScopeIds,
    rows: Sequence[Row],
    days: int,
    limit: int,
    shadowed: bool,
    excluding: bool,
) -> None:
    db = Connection(kernel.config.file, kernel.store.context, readonly=False)
    tx = db.begin(CallContext())
    for seq, row in enumerate(rows):
        insert_row(db, tx, row, seq, scopes(scope_ids)[row.depth])
    tagging = candidates.TagIds(exclude=frozenset({"tag_python"}) if excluding else frozenset())
    at, seen_by = days_before_now(days), scope_chain(tx, "session", scope_ids.session)
    ask = candidates.EntryQuery(KINDS, seen_by, at, limit, at, include_shadowed=shadowed, tags=tagging)
    everything = frozenset(db.values("SELECT id FROM scopes_entry")[number][0] for number in range(len(rows)))

    for kinds, expired in itertools.product((KINDS, *((kind,) for kind in KINDS)), (False, True)):
        asked = ask._replace(kinds=kinds, include_expired=expired)
        short = candidates.find_candidates(tx, asked)
        every = candidates.find_candidates(tx, asked._replace(related_ids=everything))
        assert best_of_past(asked, short) == best_of_past(asked, every)
        assert short.total == every.total == len(every.candidates)
        assert short.expired == every.expired
    db.rollback()
    db.close()


def best_of_past(ask: candidates.EntryQuery, found: candidates.CandidateSet) -> list[candidates.RankedCandidate]:
    """The first of the ranking, without `indexed`, which is looked up for searches only."""
    ranked = candidates.rank(ask, found)[: ask.limit]
    return [one._replace(candidate=one.candidate._replace(indexed=0)) for one in ranked]


def of(ranked: Sequence[candidates.RankedCandidate], kind: str) -> list[candidates.RankedCandidate]:
    return [one for one in ranked if one.candidate.kind == kind]


def test_only_shared_names_are_checked_for_shadowing(kernel: Kernel, do: Do, add: Add, scope_ids: ScopeIds) -> None:
    add("tool", "alone")
    add("guideline", "same")
    add("tool", "same")
    first = add("tool", "again")
    do("memory_tool", "deactivate", id=first)
    for scope, scope_id in [*scopes(scope_ids)[:2], ("global", None)]:
        add("tool", "again", scopeType=scope, scopeId=scope_id)

    db = Connection(kernel.config.file, kernel.store.context, readonly=True)
    marked = db.values("SELECT name, count(*), sum(shared) FROM scopes_entry GROUP BY kind, name ORDER BY kind, name")
    db.close()
    assert marked == [("same", 1, 0), ("again", 4, 4), ("alone", 1, 0), ("same", 1, 0)]


@pytest.mark.parametrize("text", [None, "cords"])
def test_nearer_entries_shadow_farther_ones_unless_included(
    do: Do, add: Add, scope_ids: ScopeIds, search: Callable[..., Any], text: str | None
) -> None:
    ids = [
        add("guideline", "same", f"Cords {scope}", scopeType=scope, scopeId=scope_id)
        for scope, scope_id in scopes(scope_ids)
    ]
    add("tool", "same", "Cords")

    def seen(**more: Any) -> tuple[list[str], int]:
        answer = search(**inside("session", scope_ids.session), types=["guidelines"], search=text, **more)
        return [result["id"] for result in answer["results"]], answer["meta"]["totalCount"]

    assert seen() == ([ids[0]], 1)
    assert seen(tags={"exclude": ["nothing"]}) == ([ids[0]], 1)
    every, total = seen(includeShadowed=True)
    assert (set(every), total) == (set(ids), 4)
    do("memory_guideline", "deactivate", id=ids[0])
    assert seen() == ([ids[1]], 1)
    every, total = seen(includeShadowed=True)
    assert (set(every), total) == (set(ids[1:]), 3)


def test_shadowed_entries_stay_hidden_if_the_nearer_one_is_filtered_out(
    do: Do, add: Add, scope_ids: ScopeIds, found: Callable[..., list[str]]
) -> None:
    far = add("guideline", "same", "Tabs")
    add("guideline", "same", "Spaces", scopeType="project", scopeId=scope_ids.project)
    tag(do, "guideline", far, "python")
    here = inside("project", scope_ids.project)

    assert found(**here, search="tabs", semanticSearch=False) == []
    assert found(**here, tags={"include": ["python"]}) == []
    assert found(**here, search="tabs", semanticSearch=False, includeShadowed=True) == ["same"]


def test_sibling_projects_do_not_shadow(do: Do, add: Add, scope_ids: ScopeIds, found: Callable[..., list[str]]) -> None:
    other = do("memory_project", "create", name="Other", orgId=scope_ids.org)["project"]["id"]
    for project in (scope_ids.project, other):
        add("tool", "same", scopeType="project", scopeId=project)
        add("tool", f"only {project}", scopeType="project", scopeId=project)

    assert set(found(**inside("project", other))) == {"same", f"only {other}"}
