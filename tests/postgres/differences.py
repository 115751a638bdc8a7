"""Tests of the handlers that look into the file of SQLite, or at what PostgreSQL does differently."""

import pytest

FILE = "opens the file of SQLite itself"
MESSAGE = "expects the words of SQLite's message"
TABLES = "expects the full-text tables of SQLite"
SKIPPED = {
    "brain/test_import_project_brain.py::test_an_import_is_undone_with_its_history": FILE,
    "brain/test_import_project_brain.py::test_invalid_tags_of_an_earlier_import_break_no_search": FILE,
    "brain/test_import_project_brain.py::test_query_log_is_imported_without_secrets": FILE,
    "brain/test_links.py::test_link_of_another_database_stays_if_the_id_exists_there": FILE,
    "common/test_as_of.py::test_forgotten_history_is_gone_from_the_past": FILE,
    "notes/test_journal.py::test_a_call_that_breaks_a_constraint_leaves_every_file_as_it_was": FILE,
    "notes/test_journal.py::test_making_changes_twice_changes_nothing": FILE,
    "scopes/test_admin.py::test_a_reset_that_fails_halfway_changes_nothing": FILE,
    "scopes/test_candidates.py::test_only_shared_names_are_checked_for_shadowing": FILE,
    "scopes/test_import_agent_memory.py::test_an_import_that_fails_in_its_first_slice_changes_nothing": MESSAGE,
    "sessions/test_admin.py::test_diagnostics_returns_the_keys_of_the_contract": TABLES,
    "test_brain.py::test_check_repairs_missing_full_text_words": FILE,
    "test_brain.py::test_index_matches_sources": FILE,
}


def skip(items: list[pytest.Item]) -> None:
    """Skips these, with the reason."""
    for item in items:
        name = item.nodeid.removeprefix("tests/unit/handlers/").partition("[")[0]
        if name in SKIPPED:
            item.add_marker(pytest.mark.skip(reason=SKIPPED[name]))
