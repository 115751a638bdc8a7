"""The query plans of the hot statements."""

from collections.abc import Iterator

import apsw
import apsw.ext
import pytest

from tests.unit.sql.code import STATEMENTS


def steps(db: apsw.Connection, key: str) -> list[str]:
    """The query plan, outermost loop first."""
    plan = apsw.ext.query_info(db, STATEMENTS[key].text, explain_query_plan=True).query_plan
    assert plan is not None
    return list(flat(plan))


def flat(plan: apsw.ext.QueryPlan) -> Iterator[str]:
    if plan.detail not in {"", "QUERY PLAN"}:
        yield plan.detail
    for part in plan.sub or ():
        yield from flat(part)


def tables(plan: list[str]) -> list[str]:
    return [step for step in plan if step.startswith(("SCAN", "SEARCH"))]


@pytest.mark.parametrize(
    ("key", "wanted"),
    [
        ("kernel.lexical.match_by_bm25", ["SCAN doc_fts VIRTUAL TABLE INDEX 0:M3"]),
        ("kernel.lexical.match_with_tf", ["SCAN doc_fts VIRTUAL TABLE INDEX 192:M3"]),
        (
            "kernel.lexical.match_with_tf_in",
            ["SCAN f VIRTUAL TABLE INDEX 192:M3", "SEARCH d USING INTEGER PRIMARY KEY (rowid=?)"],
        ),
        ("kernel.lexical.match_with_tf_of", ["SCAN i VIRTUAL TABLE", "SCAN f VIRTUAL TABLE INDEX 0:=M3"]),
        (
            "kernel.documents.by_actor",
            ["SEARCH d USING COVERING INDEX doc_by_actor (actor=? AND updated_at>? AND updated_at<?)"],
        ),
        ("kernel.documents.by_time", ["SEARCH d USING COVERING INDEX doc_by_time (updated_at>? AND updated_at<?)"]),
        (
            "kernel.documents.partition_sizes",
            ["SCAN p VIRTUAL TABLE", "SEARCH d USING COVERING INDEX doc_by_place (place=?)"],
        ),
        (
            "kernel.vectors.score",
            [
                "SCAN json_each VIRTUAL TABLE",
                "SCAN i VIRTUAL TABLE",
                "SEARCH o USING COVERING INDEX sqlite_autoindex_doc_vector_1 (doc=?)",
                "SCAN p VIRTUAL TABLE",
                "SEARCH d USING COVERING INDEX doc_by_place (place=?)",
                "SEARCH o USING COVERING INDEX sqlite_autoindex_doc_vector_1 (doc=?)",
                "SEARCH o USING INTEGER PRIMARY KEY (rowid>?)",
                "SCAN json_each VIRTUAL TABLE",
                "SCAN s",
                "SEARCH v USING INTEGER PRIMARY KEY (rowid=?)",
            ],
        ),
        ("kernel.ann.sealed_blocks", ["SEARCH doc_block USING INTEGER PRIMARY KEY (rowid>?)"]),
        (
            "kernel.ann.trim_deletions",
            ["SEARCH doc_gone USING INTEGER PRIMARY KEY (rowid=?)", "SEARCH doc_gone"],
        ),
        (
            "kernel.index.by_keys",
            ["SCAN k VIRTUAL TABLE", "SEARCH d USING INDEX sqlite_autoindex_doc_1 (space=? AND key=?)"],
        ),
        (
            "kernel.documents.ids_of",
            ["SCAN k VIRTUAL TABLE", "SEARCH d USING COVERING INDEX sqlite_autoindex_doc_1 (space=? AND key=?)"],
        ),
        ("kernel.index.keys_of", ["SCAN i VIRTUAL TABLE", "SEARCH d USING INTEGER PRIMARY KEY (rowid=?)"]),
        (
            "kernel.documents.partitions_by_pairs",
            [
                "SCAN w VIRTUAL TABLE",
                "SEARCH p USING COVERING INDEX sqlite_autoindex_doc_place_1 (space=? AND scope=?)",
            ],
        ),
        ("kernel.ann.vectors_after", ["SEARCH doc_vector USING INTEGER PRIMARY KEY (rowid>?)"]),
        ("kernel.ann.block_after", ["SEARCH doc_vector USING INTEGER PRIMARY KEY (rowid>?)"]),
        ("kernel.lexical.document_frequencies", ["SCAN s VIRTUAL TABLE", "SCAN t VIRTUAL TABLE INDEX 259:"]),
        (
            "kernel.lexical.frequencies_alike",
            ["SCAN s VIRTUAL TABLE", "SCAN t VIRTUAL TABLE INDEX 259:", "SCAN t VIRTUAL TABLE INDEX 1539:"],
        ),
        ("kernel.index.fts_delete", ["SCAN i VIRTUAL TABLE", "SEARCH doc USING INTEGER PRIMARY KEY (rowid=?)"]),
        ("kernel.index.fts_insert", ["SCAN i VIRTUAL TABLE", "SEARCH doc USING INTEGER PRIMARY KEY (rowid=?)"]),
        ("kernel.index.delete_docs", ["SEARCH doc USING INTEGER PRIMARY KEY (rowid=?)"]),
        (
            "kernel.vectors.model_id",
            ["SEARCH doc_model USING COVERING INDEX sqlite_autoindex_doc_model_1 (identity=?)"],
        ),
        ("kernel.history.read", ["SEARCH history USING INDEX history_by_key (space=? AND key=?)"]),
        ("kernel.console.spaces", ["SCAN c", "SCAN json_each VIRTUAL TABLE INDEX 1:"]),
        (
            "kernel.console.children",
            [
                "SEARCH d USING COVERING INDEX sqlite_autoindex_doc_1 (space=? AND key>? AND key<?)",
                *["SCAN c", "SEARCH d USING COVERING INDEX sqlite_autoindex_doc_1 (space=? AND key>? AND key<?)"] * 2,
            ],
        ),
        (
            "kernel.console.calls_of",
            [
                "SEARCH a USING INTEGER PRIMARY KEY (rowid>?)",
                "SEARCH n",
                "SCAN t",
                "SEARCH u USING INTEGER PRIMARY KEY",
            ],
        ),
        ("kernel.console.held", ["SCAN f", "SEARCH d USING INTEGER PRIMARY KEY (rowid=?)", "SCAN json_each"]),
        ("kernel.console.timeline", ["SEARCH h USING INTEGER PRIMARY KEY (rowid<?)", "SCAN json_each"]),
        (
            "kernel.console.session_events",
            [
                "SEARCH p USING COVERING INDEX sqlite_autoindex_doc_place_1 (space=? AND scope=?)",
                "SEARCH d USING INDEX doc_by_place (place=?)",
                "SEARCH h USING INDEX history_by_key (space=? AND key=? AND id<?)",
            ],
        ),
        ("kernel.console.versions", ["SEARCH h USING INDEX history_by_key (space=? AND key=? AND id<?)"]),
        ("kernel.as_of.changed", ["SEARCH h USING INDEX history_by_change (at>?)"]),
        (
            "kernel.as_of.by_words",
            ["SCAN i VIRTUAL TABLE", "SCAN (subquery", "SCAN c", "SEARCH p USING INTEGER PRIMARY KEY (rowid=?)"],
        ),
        (
            "kernel.as_of.changed_of",
            [
                "SCAN k VIRTUAL TABLE",
                "SEARCH e USING INTEGER PRIMARY KEY (rowid=?)",
                "SEARCH o USING INDEX history_by_key (space=? AND key=?)",
                "SEARCH p USING INTEGER PRIMARY KEY (rowid=?)",
                "SEARCH o USING COVERING INDEX history_by_key (space=? AND key=? AND id<?)",
            ],
        ),
        (
            "kernel.as_of.unchanged",
            [
                "SCAN i VIRTUAL TABLE",
                "SEARCH d USING INTEGER PRIMARY KEY (rowid=?)",
                "SEARCH h USING INDEX history_by_key (space=? AND key=?)",
            ],
        ),
        (
            "brain.memories.page",
            [
                "SEARCH brain_memory USING INDEX brain_memory_by_rank (db=? AND status=?)",
                "SCAN json_each VIRTUAL TABLE",
                "SCAN t",
                "SCAN w",
            ],
        ),
        (
            "brain.links.delete_of_row",
            [
                "SEARCH brain_link USING INTEGER PRIMARY KEY (rowid=?)",
                "SCAN d VIRTUAL TABLE",
                "SEARCH l USING COVERING INDEX sqlite_autoindex_brain_link_2 (db=? AND source_id=?",
                "SCAN d VIRTUAL TABLE",
                "SEARCH l USING COVERING INDEX brain_link_by_target (db=? AND target_id=?",
            ],
        ),
        (
            "brain.scoring.record_access",
            [
                "SCAN jsonb_each VIRTUAL TABLE",
                "SCAN seen",
                "SEARCH brain_memory USING INDEX sqlite_autoindex_brain_memory_1 (db=? AND id=?)",
            ],
        ),
        (
            "brain.repository.get_many",
            [
                "SCAN i VIRTUAL TABLE",
                "SEARCH m USING INDEX sqlite_autoindex_brain_memory_1 (db=? AND id=?)",
            ],
        ),
        *(
            (
                f"brain.{key}",
                ["SCAN i VIRTUAL TABLE", f"SEARCH {at} USING INDEX sqlite_autoindex_brain_{table}_1 (db=? AND id=?)"],
            )
            for key, at, table in (
                ("hybrid_search.memory_signals", "m", "memory"),
                ("hybrid_search.entity_signals", "e", "entity"),
                ("hybrid_search.note_signals", "n", "note"),
                ("hybrid_search.notes", "n", "note"),
                ("search.entities_by_ids", "e", "entity"),
            )
        ),
        (
            "brain.search.memories_with_part",
            ["SEARCH brain_memory USING INDEX brain_memory_by_rank (db=? AND status=?)"],
        ),
        ("brain.querylog.totals", ["SEARCH brain_query USING INDEX brain_query_by_age (created_at>?)"]),
        ("brain.querylog.delete", ["SEARCH brain_query USING INDEX brain_query_by_age (created_at<?)"]),
        ("brain.repository.get", ["SEARCH brain_memory USING INDEX sqlite_autoindex_brain_memory_1 (db=? AND id=?)"]),
        (
            "brain.entities.linked",
            [
                "SEARCH brain_link USING COVERING INDEX brain_link_by_target (db=? AND target_id=?",
                "SEARCH brain_link USING COVERING INDEX sqlite_autoindex_brain_link_2 (db=? AND source_id=?",
                "SCAN l",
                "SEARCH m USING INDEX sqlite_autoindex_brain_memory_1 (db=? AND id=?)",
            ],
        ),
        ("brain.entities.scoped", ["SEARCH brain_memory USING INDEX brain_memory_by_project (db=? AND project_id=?)"]),
        (
            "brain.links.from_source",
            ["SEARCH brain_link USING INDEX sqlite_autoindex_brain_link_2 (db=? AND source_id=?)"],
        ),
        (
            "brain.links.with_entities",
            [
                "SEARCH brain_link USING INTEGER PRIMARY KEY (rowid=?)",
                "SCAN d VIRTUAL TABLE INDEX 1:",
                "SEARCH l USING COVERING INDEX sqlite_autoindex_brain_link_2 (db=? AND source_id=?",
                "SCAN d VIRTUAL TABLE INDEX 1:",
                "SEARCH l USING COVERING INDEX brain_link_by_target (db=? AND target_id=?",
            ],
        ),
        (
            "brain.repository.free_predecessors",
            ["SEARCH brain_memory USING INDEX sqlite_autoindex_brain_memory_1 (db=? AND id=?)"],
        ),
        ("brain.links.to_target", ["SEARCH brain_link USING INDEX brain_link_by_target (db=? AND target_id=?)"]),
        ("brain.links.list", ["SEARCH brain_link USING INDEX brain_link_by_age (db=?)"]),
        ("paths.memories.get", ["SEARCH paths_memory USING INDEX sqlite_autoindex_paths_memory_1 (path=?)"]),
        ("paths.memories.content", ["SEARCH paths_memory USING INDEX sqlite_autoindex_paths_memory_1 (path=?)"]),
        (
            "paths.memories.page",
            ["SEARCH paths_memory USING INDEX sqlite_autoindex_paths_memory_1 (path>? AND path<?)"],
        ),
        (
            "notes.sync.stamps",
            ["SEARCH notes_file USING COVERING INDEX notes_file_stamps (project=?)"],
        ),
        (
            "notes.sync.unsettled",
            ["SEARCH notes_file USING COVERING INDEX notes_file_doubtful (project=?)"],
        ),
        (
            "notes.sync.by_keys",
            ["SCAN k VIRTUAL TABLE", "SEARCH f USING PRIMARY KEY (project=? AND path=?)"],
        ),
        (
            "notes.memories.by_keys",
            ["SCAN k VIRTUAL TABLE", "SEARCH f USING PRIMARY KEY (project=? AND path=?)"],
        ),
        ("paths.memories.count", ["SEARCH paths_memory USING COVERING INDEX sqlite_autoindex_paths_memory_1 (path>?"]),
        (
            "sessions.intake.same_origin",
            ["SCAN r VIRTUAL TABLE", "SEARCH m USING INDEX sessions_memory_by_origin (<expr>=? AND <expr>=?)"],
        ),
        (
            "sessions.intake.given_up",
            ["SEARCH sessions_memory USING INDEX sessions_memory_by_session (session_id=? AND created_at=?)"],
        ),
        (
            "sessions.search.recent_of_session",
            ["SEARCH sessions_memory USING INDEX sessions_memory_by_session (session_id"],
        ),
        ("sessions.search.recent", ["SCAN sessions_memory USING INDEX sessions_memory_by_time"]),
        ("sessions.search.mentions", ["SEARCH sessions_mention USING INDEX sessions_mention_by_memory (memory_id"]),
        (
            "sessions.search.by_ids_or_hash",
            [
                "SEARCH sessions_memory USING INTEGER PRIMARY KEY (rowid=?)",
                "SCAN json_each VIRTUAL TABLE",
                "SEARCH sessions_memory USING COVERING INDEX sessions_memory_by_hash (hash=?)",
            ],
        ),
        ("sessions.graph.by_name_nocase", ["SEARCH sessions_entity USING INDEX sessions_entity_by_name (name=?)"]),
        ("sessions.graph.by_name", ["SEARCH sessions_entity USING INDEX sqlite_autoindex_sessions_entity_1 (name=?)"]),
        (
            "scopes.entries.get",
            [
                "SEARCH e USING INDEX sqlite_autoindex_scopes_entry_1 (id=?)",
                "SEARCH v USING INDEX sqlite_autoindex_scopes_version_1 (id=?)",
            ],
        ),
        (
            "scopes.entries.find",
            [
                "SCAN s VIRTUAL TABLE",
                "SEARCH e USING INDEX scopes_entry_active (kind=? AND name=? AND scope=?)",
                "SEARCH v USING INDEX sqlite_autoindex_scopes_version_1 (id=?)",
            ],
        ),
        (
            "scopes.entries.find_as_of",
            [
                "SCAN s VIRTUAL TABLE",
                "SEARCH e USING INDEX scopes_entry_by_name (kind=? AND name=? AND scope=?)",
                "SEARCH v USING INDEX sqlite_autoindex_scopes_version_2 (entry_id=?)",
            ],
        ),
        (
            "scopes.entries.list_in",
            [
                "SEARCH e USING INDEX scopes_entry_by_scope (kind=? AND scope=?)",
                "SEARCH v USING INDEX sqlite_autoindex_scopes_version_1 (id=?)",
            ],
        ),
        (
            "scopes.entries.list_all",
            [
                "SEARCH e USING INDEX scopes_entry_by_kind (kind=?)",
                "SEARCH v USING INDEX sqlite_autoindex_scopes_version_1 (id=?)",
            ],
        ),
        (
            "scopes.entries.list_chain",
            [
                "SCAN s VIRTUAL TABLE",
                "SEARCH e USING INDEX scopes_entry_by_scope (kind=? AND scope=?)",
                "SCAN n VIRTUAL TABLE",
                "SEARCH x USING INDEX scopes_entry_active (kind=? AND name=? AND scope=?)",
                "SEARCH v USING INDEX sqlite_autoindex_scopes_version_1 (id=?)",
            ],
        ),
        (
            "scopes.entries.id_by_name",
            ["SEARCH scopes_entry USING INDEX scopes_entry_active (kind=? AND name=? AND scope=?)"],
        ),
        ("scopes.entries.latest", ["SEARCH scopes_version USING INDEX sqlite_autoindex_scopes_version_2 (entry_id=?)"]),
        (
            "scopes.entries.versions",
            ["SEARCH scopes_version USING INDEX sqlite_autoindex_scopes_version_2 (entry_id=?)"],
        ),
        (
            "scopes.query.by_score",
            [
                "SCAN k VIRTUAL TABLE",
                "SCAN s VIRTUAL TABLE",
                "SEARCH e USING INTEGER PRIMARY KEY (rowid=?)",
                "SEARCH i USING INDEX scopes_entry_by_standing (kind=? AND scope=? AND deactivated_at=?)",
                "SEARCH v USING INDEX sqlite_autoindex_scopes_version_1 (id=?)",
                "SCAN n VIRTUAL TABLE",
                "SEARCH o USING INDEX scopes_entry_active (kind=? AND name=? AND scope=?)",
                "SEARCH t USING COVERING INDEX scopes_entry_tag_by_tag (tag_id=? AND entry_id=?",
            ],
        ),
        (
            "scopes.query.by_priority",
            [
                "SCAN s VIRTUAL TABLE",
                "SEARCH e USING INTEGER PRIMARY KEY (rowid=?)",
                "SEARCH i USING INDEX scopes_entry_by_priority (kind=? AND scope=? AND deactivated_at=? ",
                "SCAN n VIRTUAL TABLE",
                "SEARCH o USING INDEX scopes_entry_active (kind=? AND name=? AND scope=?)",
                "SEARCH t USING COVERING INDEX scopes_entry_tag_by_tag (tag_id=? AND entry_id=?",
            ],
        ),
        (
            "scopes.query.count_shadowed",
            [
                "SCAN k VIRTUAL TABLE",
                "SCAN s VIRTUAL TABLE",
                "SEARCH e USING INDEX scopes_entry_shared (kind=? AND scope=? AND deactivated_at=?)",
                "SCAN n",
            ],
        ),
        (
            "scopes.query.entries",
            [
                "SCAN i VIRTUAL TABLE",
                "SEARCH e USING INDEX sqlite_autoindex_scopes_entry_1 (id=?)",
                "SCAN s VIRTUAL TABLE",
                "SCAN n VIRTUAL TABLE",
                "SEARCH o USING INDEX scopes_entry_active (kind=? AND name=? AND scope=?)",
                "SEARCH v USING INDEX sqlite_autoindex_scopes_version_1 (id=?)",
            ],
        ),
        (
            "scopes.query.entries_as_of",
            [
                "SCAN i VIRTUAL TABLE",
                "SEARCH e USING INDEX sqlite_autoindex_scopes_entry_1 (id=?)",
                "SCAN s VIRTUAL TABLE",
                "SCAN n VIRTUAL TABLE",
                "SEARCH o USING INDEX scopes_entry_by_name (kind=? AND name=? AND scope=?)",
                "SEARCH v USING INDEX sqlite_autoindex_scopes_version_1 (id=?)",
                "SEARCH p USING INDEX sqlite_autoindex_scopes_version_2 (entry_id=?)",
            ],
        ),
        (
            "scopes.query.ids_with_tags",
            ["SCAN g VIRTUAL TABLE", "SEARCH t USING COVERING INDEX scopes_entry_tag_by_tag (tag_id=?)"],
        ),
        (
            "scopes.query.matching_tags",
            [
                "SCAN i VIRTUAL TABLE",
                "SEARCH t USING COVERING INDEX scopes_entry_tag_by_tag (tag_id=? AND entry_id=?",
            ],
        ),
        (
            "scopes.query.related",
            [
                "SEARCH scopes_relation USING INDEX scopes_relation_by_target (target_id=? AND target_type=?)",
                "SEARCH scopes_relation USING COVERING INDEX sqlite_autoindex_scopes_relation_2 "
                "(source_id=? AND source_type=?)",
            ],
        ),
        (
            "scopes.query.page",
            [
                "SCAN i VIRTUAL TABLE",
                "SEARCH e USING INDEX sqlite_autoindex_scopes_entry_1 (id=?)",
                "SEARCH v USING INDEX sqlite_autoindex_scopes_version_1 (id=?)",
                "SEARCH p USING INDEX sqlite_autoindex_scopes_version_2 (entry_id=?)",
            ],
        ),
        (
            "scopes.query.tags",
            [
                "SCAN i VIRTUAL TABLE",
                "SEARCH t USING COVERING INDEX sqlite_autoindex_scopes_entry_tag_2 (entry_id=?)",
                "SEARCH g USING INDEX sqlite_autoindex_scopes_tag_1 (id=?)",
            ],
        ),
        (
            "kernel.lexical.match_by_bm25_in",
            ["SCAN f VIRTUAL TABLE INDEX 0:M3", "SEARCH d USING INTEGER PRIMARY KEY (rowid=?)"],
        ),
        (
            "kernel.documents.count",
            [
                "SCAN CONSTANT ROW",
                "SCAN w VIRTUAL TABLE",
                "SEARCH p USING COVERING INDEX sqlite_autoindex_doc_place_1 (space=? AND scope=?)",
                "SEARCH d USING COVERING INDEX doc_by_place (place=?)",
                "SCAN w VIRTUAL TABLE",
                "SEARCH p USING COVERING INDEX sqlite_autoindex_doc_place_1 (space=?)",
                "SEARCH d USING COVERING INDEX doc_by_place (place=?)",
            ],
        ),
        (
            "kernel.documents.matching_partitions",
            [
                "SCAN w VIRTUAL TABLE",
                "SEARCH p USING COVERING INDEX sqlite_autoindex_doc_place_1 (space=? AND scope=?)",
                "SCAN w VIRTUAL TABLE",
                "SEARCH p USING COVERING INDEX sqlite_autoindex_doc_place_1 (space=?)",
            ],
        ),
        (
            "scopes.inheritance.above_session",
            [
                "SEARCH s USING INDEX sqlite_autoindex_scopes_session_1 (id=?)",
                "SEARCH p USING INDEX sqlite_autoindex_scopes_project_1 (id=?)",
            ],
        ),
        ("scopes.hierarchy.projects_by_name", ["SEARCH scopes_project USING INDEX scopes_project_by_name (fold=?)"]),
        ("scopes.hierarchy.projects_of_org", ["SEARCH scopes_project USING INDEX scopes_project_by_org (org_id=?)"]),
        (
            "scopes.hierarchy.sessions_of_project",
            ["SEARCH scopes_session USING INDEX scopes_session_by_project (project_id=?)"],
        ),
        (
            "scopes.tags.of_entry",
            [
                "SEARCH m USING COVERING INDEX sqlite_autoindex_scopes_entry_tag_2 (entry_id=? AND entry_type=?)",
                "SEARCH t USING INDEX sqlite_autoindex_scopes_tag_1 (id=?)",
            ],
        ),
        (
            "scopes.relations.from_source",
            ["SEARCH scopes_relation USING INDEX sqlite_autoindex_scopes_relation_2 (source_id=?)"],
        ),
        (
            "scopes.relations.to_target",
            ["SEARCH scopes_relation USING INDEX scopes_relation_by_target (target_id=?)"],
        ),
        ("scopes.locks.get", ["SEARCH scopes_lock USING INDEX sqlite_autoindex_scopes_lock_2 (file_path=?)"]),
        ("scopes.locks.delete_expired", ["SEARCH scopes_lock USING INDEX scopes_lock_by_expiry (expires_at<?)"]),
        (
            "scopes.locks.forced_unlocks",
            ["SEARCH scopes_lock_event USING INDEX scopes_lock_event_by_path (file_path=? AND operation=?)"],
        ),
        ("scopes.conflicts.list", ["SEARCH scopes_conflict USING INDEX scopes_conflict_by_time (resolved=?)"]),
    ],
)
def test_hot_statement_uses_its_index(migrated: apsw.Connection, key: str, wanted: list[str]) -> None:
    """M3 means that FTS5 matches the query, = that it reads one row, 259 that it looks up one term, 1539 that it
    reads a range of terms.
    """
    found = tables(steps(migrated, key))
    starts = [step[: len(start)] for step, start in zip(found, wanted, strict=False)]
    assert starts == wanted, found


@pytest.mark.parametrize(
    "key",
    [
        "kernel.ann.sealed_blocks",
        "kernel.ann.last_sealed_id",
        "kernel.ann.deletions_after",
        "kernel.ann.vectors_after",
        "kernel.ann.block_after",
        "kernel.history.read",
        "kernel.lexical.match_with_tf",
        "kernel.lexical.match_with_tf_in",
        "paths.memories.page",
        "scopes.entries.list_in",
        "scopes.entries.list_all",
        "scopes.entries.versions",
        "scopes.entries.latest",
        "scopes.hierarchy.projects_of_org",
        "scopes.hierarchy.sessions_of_project",
        "scopes.locks.forced_unlocks",
        "scopes.conflicts.list",
        "brain.memories.page",
        "brain.entities.page",
        "brain.notes.page",
        "brain.resources.page",
        "brain.links.list",
        "sessions.search.recent_of_session",
        "sessions.search.recent",
        "sessions.search.mentions",
    ],
)
def test_statement_in_index_order_is_not_sorted(migrated: apsw.Connection, key: str) -> None:
    assert [step for step in steps(migrated, key) if "TEMP B-TREE" in step] == []
