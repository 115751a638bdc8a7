"""Tests of the handlers and of the wire that look into the file of SQLite, or at differences of PostgreSQL."""

import pytest

FILE = "opens the file of SQLite itself"
MESSAGE = "expects the words of SQLite's message"
TABLES = "expects the full-text tables of SQLite"
PROCESS = "starts the program, which keeps its store in a file"
SIZES = "expects the sizes of files"
LATER = "expects a short call to be answered before a ping behind it, which a database elsewhere may not be"
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
SKIPPED_OF_HTTP = {
    "test_console_pages.py::test_audit_says_whether_its_chain_holds": FILE,
    "test_console_pages.py::test_chain_is_followed_over_the_newest_calls_unless_all_are_asked_for": FILE,
    "test_console_pages.py::test_keys_show_their_last_use_and_operators_see_the_tenants": SIZES,
    "test_console_server.py": PROCESS,
    "test_stdio.py::test_each_line_gets_its_response": LATER,
    "test_progress.py": PROCESS,
    "test_startup.py": PROCESS,
    "test_workers.py": PROCESS,
}


def skip(items: list[pytest.Item]) -> None:
    """Skips these, with the reason."""
    for item in items:
        name = item.nodeid.partition("[")[0]
        place, known = ("tests/http/", SKIPPED_OF_HTTP) if "/http/" in name else ("tests/unit/handlers/", SKIPPED)
        name = name.removeprefix(place)
        reason = known.get(name) or known.get(name.partition("::")[0])
        if reason:
            item.add_marker(pytest.mark.skip(reason=reason))
