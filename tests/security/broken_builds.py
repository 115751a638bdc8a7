"""Builds that are broken on purpose, by name: each a fault that one row of the catalogue is there to find.

`BROKEN=name` breaks the run under `pytest -p tests.security.broken_builds`.
"""

import os
import re
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from handlers.brain import base
from handlers.common import scoring
from handlers.notes import files, journal
from handlers.notes import safe_fs as steps
from kernel.calls import dispatch
from kernel.core import data_dir, limits, text
from kernel.engines import foreign_file
from kernel.engines.sqlite import connection
from kernel.engines.sqlite.connection import Budget
from kernel.http import uvicorn_protocol
from kernel.operations import backup, consistency, data_access, restore
from kernel.search import index, quarantine
from kernel.search import query as terms
from kernel.security import api_keys, auth, permissions
from kernel.security.rate_limit import RateLimiter
from kernel.security.rules import secrets
from kernel.store import audit, queue

HERE = "tests/security"
RESTORE = "../reliability/test_restore.py"
CORRUPTED = "../reliability/test_corruption.py"


class Broken(NamedTuple):
    """The row, the broken part and how, and the test that must find it."""

    row: str
    what: str
    change: Callable[[], object]
    test: str


def put(where: Any, **new: Any) -> None:
    """Replaces names of a module or a class."""
    for name, value in new.items():
        assert hasattr(where, name), name
        setattr(where, name, value)


def _pages_of_others() -> None:
    put(limits, host_allowed=lambda _value, _allowed: True, origin_allowed=lambda _value, _allowed: True)


def _forms() -> None:
    put(limits, is_json=lambda _value: True)


def _no_keys() -> None:
    put(auth.Auth, caller=lambda _self, _headers: permissions.ANONYMOUS_CALLER)


def _no_rights() -> None:
    put(dispatch.Dispatch, _check_permission=lambda *_given: None)


def _one_tenant() -> None:
    put(data_dir, home=lambda data, _name: data)


def _raw_match() -> None:
    put(terms, quote=lambda word: word)


def _slow_pattern() -> None:
    put(text, _WORD=re.compile("[^;]+;"))


def _no_bounds() -> None:
    put(dispatch, checked_size=lambda _tx, reply: reply)


def _no_clock() -> None:
    put(Budget, __call__=lambda _self: False)


def _loose_engine() -> None:
    put(connection, SETTINGS={}, LIMITS={})


def _unsafe_text() -> None:
    put(text, _quoted=lambda given: f'"{given}"')


def _open_folders() -> None:
    def private(folder: Path) -> None:
        folder.mkdir(mode=0o777, parents=True, exist_ok=True)

    put(data_dir, make_private=private)
    put(data_access, make_private=private)


def _reaching() -> None:
    kept = connection.Tx.new_id

    def new_id(self: connection.Tx, prefix: str) -> str:
        socket.socket().connect_ex(("127.0.0.1", 9))
        return kept(self, prefix)

    put(connection.Tx, new_id=new_id)


def _flooded() -> None:
    put(scoring, _diversify=lambda items, _leaders, _rules: list(items))


def _following() -> None:
    put(steps, NO_FOLLOW=0)


def _early_files() -> None:
    put(journal, _record=lambda _tx, project, change: journal._make(project, [change]))


def _forgotten_files() -> None:
    kept = journal.settle

    def settle(tx: connection.Tx, project: Any) -> None:
        if not tx.call_context.tool.startswith("memory_re"):
            kept(tx, project)

    put(journal, settle=settle, recover=lambda _tx: None)


def _sweeping_files() -> None:
    def remove(root: Path, path: str, _before: str) -> None:
        (root / ".mnemonics" / path).unlink(missing_ok=True)

    def replace(root: Path, path: str, temporary: str, *_digests: str | None) -> Any:
        file = root / ".mnemonics" / path
        file.with_name(temporary).replace(file)
        return files.read(root, path).stamp

    put(files, remove=remove, put=replace)


def _left_behind() -> None:
    put(connection.Tx, rolled_back=lambda _self: None, on_rollback=lambda _self, _undo: None)


def _careless() -> None:
    put(secrets, _RULES_BY_HINT=())


def _silent() -> None:
    put(audit, record=lambda *_given, **_more: None)


def _credulous() -> None:
    put(index, is_quarantining=lambda _tx: False)


def _blind() -> None:
    for module in (quarantine, index):
        put(module, matched_rule=lambda _text: "")


def _unguarded() -> None:
    put(base, lock_of=lambda _row: "")


def _bugs_for_mistakes() -> None:
    put(dispatch, UNREADABLE=(RecursionError,))


def _no_meter() -> None:
    put(RateLimiter, wait=lambda *_given: 0.0)


def _any_trailers() -> None:
    put(uvicorn_protocol.LimitedProtocol, _check_trailers=lambda *_given: None)


def _long_queues() -> None:
    put(uvicorn_protocol, MAX_QUEUED=1 << 30, _REQUESTS_PER_TURN=1 << 30)


def _unbounded_answers() -> None:
    put(uvicorn_protocol.Unsent, enforce=lambda *_given: None)


def _forgetful() -> None:
    kept = auth.Auth.__init__

    def init(self: auth.Auth, *given: Any, **more: Any) -> None:
        kept(self, *given, **{**more, "had_keys": False})  # pyrefly: ignore[bad-argument-type]

    put(auth.Auth, __init__=init)


def _one_line() -> None:
    put(queue, _caller=lambda _job: "")


def _own_words() -> None:
    put(text, _ONE_WORD=re.compile(".*", re.S))


def _whole_metrics() -> None:
    from kernel.server.asgi import Application

    kept = Application._render_metrics
    put(Application, _render_metrics=lambda self, registry, _tenant: kept(self, registry, None))


def _early_compare() -> None:
    def matches(secret: str, key: Any) -> bool:
        return key is not None and api_keys.digest(secret) == key.hash

    put(api_keys, matches=matches)


def _any_log() -> None:
    put(data_access, check_log=lambda _file: None)


def _unchecked_file() -> None:
    put(consistency, check_file=lambda *_arguments, **_options: [])


def _restore_beside() -> None:
    put(restore.FolderLock, take=lambda _self, _wanted: True)


def _restore_unjournaled() -> None:
    def commit(work: restore.Restoring) -> None:
        for step in work.steps:
            restore._apply(work.data, step)
        (work.data / restore.JOURNAL).write_text("[]", encoding="utf-8")

    put(restore, _commit=commit)


def _unverified() -> None:
    put(backup, verify=lambda _folder, _manifest: None)


def _half_copies() -> None:
    @contextmanager
    def named_at_once(target: Path) -> Iterator[Path]:
        yield target

    def finished(_part: Path, _target: Path) -> None:
        pass

    for module in (backup, connection):
        put(module, unfinished=named_at_once, finish=finished)


def _uncommitted() -> None:
    put(foreign_file, _SIDE_FILES=("-wal",))


JOURNAL = "../unit/handlers/notes/test_journal.py"


BUILDS: Mapping[str, Broken] = {
    "early files": Broken("R01", "files change before the commit", _early_files, f"{JOURNAL} -k constraint"),
    "forgotten files": Broken("R01", "nobody completes what a crash left", _forgotten_files, f"{JOURNAL} -k next"),
    "sweeping files": Broken("R01", "files change whatever they hold", _sweeping_files, f"{JOURNAL} -k somebody"),
    "left behind": Broken("R05", "what a refused call staged stays", _left_behind, f"{JOURNAL} -k at_its_end"),
    "pages of others": Broken("S01", "every Host and Origin passes", _pages_of_others, "test_routes.py -k somebody"),
    "forms": Broken("S03", "every content type is JSON", _forms, "test_routes.py -k form"),
    "no keys": Broken("S05", "nobody is asked for a key", _no_keys, "test_routes.py -k no_route"),
    "no rights": Broken("S06", "no call is checked for its scope", _no_rights, "test_scopes.py -k answered_as"),
    "one tenant": Broken("S07", "all tenants share a file", _one_tenant, "test_tenants.py -k stranger"),
    "raw match": Broken("S10", "words go to FTS5 as they are", _raw_match, "test_injection.py -k syntax"),
    "slow pattern": Broken("S11", "a pattern looks back from all over", _slow_pattern, "test_patterns.py -k WORD"),
    "no bounds": Broken("S12", "an answer may be of any size", _no_bounds, "test_costs.py -k too_large_is"),
    "no clock": Broken("S12", "a statement may take for ever", _no_clock, "test_costs.py -k between"),
    "loose engine": Broken("S12", "the engine does all it can", _loose_engine, "test_costs.py -k itself"),
    "unsafe text": Broken("S15", "YAML escapes nothing", _unsafe_text, "test_breakouts.py -k paths"),
    "open folders": Broken("S16", "folders for everybody", _open_folders, "../unit/core/test_data_dir.py"),
    "following": Broken("S14", "links to folders are followed", _following, "test_links.py -k nobody_out"),
    "reaching": Broken("S17", "an id asks a server for its number", _reaching, "test_outward.py -k argument"),
    "careless": Broken(
        "S18", "nothing is taken for a secret", _careless, "../unit/security/rules/test_secrets.py -k found"
    ),
    "credulous": Broken("S19", "what is marked is found", _credulous, "test_injection_samples.py -k not_found"),
    "blind": Broken("S19", "nothing is marked", _blind, "test_injection_samples.py -k not_found"),
    "flooded": Broken("S21", "the same said again counts again", _flooded, "test_flood.py -k numbered"),
    "unguarded": Broken(
        "S22", "immutable memories are as others", _unguarded, "../unit/handlers/brain/test_base_immutability.py"
    ),
    "silent": Broken("S23", "no call leaves a row", _silent, "test_destructive.py -k second"),
    "bugs": Broken("S25", "what cannot be read is a bug", _bugs_for_mistakes, "test_schemas.py -k not_allow"),
    "trailers": Broken("S26", "trailers have no limits", _any_trailers, "../http/test_fast_path.py -k trailers"),
    "long queues": Broken(
        "S26", "any number of requests waits", _long_queues, "../unit/http/test_uvicorn_protocol_read_flow.py"
    ),
    "answers": Broken(
        "S26", "answers wait without bounds", _unbounded_answers, "../unit/http/test_uvicorn_protocol_backpressure.py"
    ),
    "forgetful": Broken(
        "S05", "that there were keys is forgotten", _forgetful, "../unit/security/test_auth.py -k lost"
    ),
    "one line": Broken("S27", "all keys stand in one line", _one_line, "../unit/store/test_queue.py"),
    "own words": Broken(
        "S23", "names of clients stand as they are", _own_words, "../unit/core/test_text.py -k one_word"
    ),
    "metrics": Broken("S07", "an admin sees every tenant", _whole_metrics, "test_shares.py -k metrics"),
    "no meter": Broken("S27", "nobody is made to wait", _no_meter, "../unit/security/test_rate_limit.py"),
    "early compare": Broken("S28", "a key is compared as any text is", _early_compare, "test_keys.py -k steps"),
    "any log": Broken("R28", "a log is replayed over any file", _any_log, f"{RESTORE} -k after_a_crash"),
    "unjournaled": Broken(
        "R29", "a restore has no journal", _restore_unjournaled, f"{RESTORE} -k killed_at_any_step_leaves"
    ),
    "half copies": Broken("R30", "a copy has its name at once", _half_copies, f"{RESTORE} -k has_no_name"),
    "beside": Broken("R31", "a restore asks for no lock", _restore_beside, f"{RESTORE} -k beside"),
    "unverified": Broken(
        "R32", "a manifest is not compared", _unverified, "../unit/operations/test_backup.py -k as_it_was_made"
    ),
    "unchecked file": Broken("R10", "SQLite checks no file", _unchecked_file, f"{CORRUPTED} -k told_by_what"),
    "uncommitted": Broken(
        "R33", "a rollback journal stays behind", _uncommitted, "../unit/engines/test_foreign_file.py -k committed"
    ),
}


def pytest_configure() -> None:
    """Breaks the named part before any test is read."""
    name = os.environ.get("BROKEN")
    if name:
        BUILDS[name].change()
