"""Hooks go into the files of clients and out of them; nothing else in these files changes."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel.cli.hook_files import HOOK_CLIENTS, HookClient, Level, entries, events_of, own, put, take

Output = tuple[int, str, str]
WITH_FILES = [client for client in HOOK_CLIENTS if client.form != "plugin"]
JSON_CLIENTS = pytest.mark.parametrize("client", WITH_FILES, ids=lambda client: client.name)
OTHERS = {"hooks": [{"type": "command", "command": "date"}]}
FILES = {
    "none": None,
    "empty object": "{}\n",
    "one line": '{"model": "x"}',
    "other members": '{\n  "model": "x", \n  "list": [1,2]\n}\n',
    "hooks of others": json.dumps(
        {"hooks": {"SessionStart": [OTHERS], "sessionStart": [{"command": "date"}]}}, indent=4
    ),
    "hooks of others on one line": json.dumps({"version": 1, "hooks": {"SessionStart": [OTHERS], "Stop": [OTHERS]}}),
    "empty list": '{"hooks": {"SessionStart": []}}\n',
    "comments": '// mine\r\n{\r\n\t"hooks": {\r\n\t\t"Stop": [ ], // none\r\n\t},\r\n}\r\n',
    "comment at the end of a list": '{"hooks": {\n  "SessionStart": [\n    {"command": "date"} // theirs\n  ]\n}}\n',
}


def wanted(client: HookClient, level: Level) -> Any:
    return entries(client, level, ["/usr/bin/quipu"], [], "linux")


def file_of(client: HookClient, folder: Path) -> Path:
    return folder / client.path.path


@pytest.mark.parametrize("before", FILES.values(), ids=FILES)
@JSON_CLIENTS
def test_a_file_is_afterwards_as_it_was_before(
    client: HookClient,
    before: str | None,
    home: Path,
    quipu: Callable[..., Output],
) -> None:
    file = file_of(client, home)
    if before is not None:
        file.parent.mkdir(parents=True)
        file.write_bytes(before.encode())
    for level in ("prime", "recall", "recall", "prime", "recall"):
        assert quipu("setup", "--client", client.name, "--hooks", level)[0] == 0
        assert events_of(own(file.read_text(encoding="utf-8"))) == list(client.events(level).values())

    assert quipu("hook", "remove", "--client", client.name)[0] == 0
    after = file.read_bytes() if file.exists() else None
    entry = b'"mcpServers"'
    if after is not None and entry in after:  # Gemini CLI has servers and hooks in one file
        quipu("setup", "--client", client.name, "--remove")
        return
    assert after == (None if before is None else before.encode())


@JSON_CLIENTS
def test_a_second_run_changes_nothing_and_removal_knows_only_own_entries(client: HookClient) -> None:
    text = '{"hooks": {"SessionStart": [{"command": "my-quipu hook"}]}}'
    once = put(text, client, wanted(client, "recall"))
    assert put(once, client, wanted(client, "recall")) == once
    assert "my-quipu hook" in once
    assert json.loads(take(once))["hooks"] == json.loads(text)["hooks"]


EVENTS = sorted({event for client in WITH_FILES for event in client.events("recall")} | {"Stop", "stop"})
LISTS = st.lists(
    st.sampled_from([OTHERS, {"command": "date"}, {"command": "true", "timeout": 1}]), min_size=1, max_size=3
)
DOCUMENTS = st.fixed_dictionaries(
    {},
    optional={
        "hooks": st.dictionaries(st.sampled_from(EVENTS), LISTS, min_size=1),
        "model": st.just("x"),
        "version": st.just(1),
    },
)


@pytest.mark.slow
@given(
    document=DOCUMENTS, indent=st.sampled_from([None, 2, 4, "\t"]), client=st.sampled_from(WITH_FILES), data=st.data()
)
def test_what_is_put_into_any_file_is_taken_out_again(
    document: Any, indent: Any, client: HookClient, data: st.DataObject
) -> None:
    text = json.dumps({**document, **client.fixed}, indent=indent)
    level: Level = "prime" if data.draw(st.booleans()) else "recall"
    put_in = put(text, client, wanted(client, level))
    assert own(put_in) == wanted(client, level)
    assert take(put_in) == text


@pytest.mark.parametrize("text", ["[]", '{"hooks": []}', '{"hooks": {"SessionStart": 1}}', '{"hooks": ', '"x"'])
def test_a_file_of_another_form_is_refused_and_left(
    text: str,
    home: Path,
    quipu: Callable[..., Output],
) -> None:
    file = file_of(HOOK_CLIENTS[0], home)
    file.parent.mkdir(parents=True)
    file.write_text(text, encoding="utf-8")
    status, _, errors = quipu("setup", "--client", "claude-code", "--hooks", "prime")
    assert (status, file.read_text(encoding="utf-8")) == (1, text)
    assert errors


def test_difference_is_shown_and_with_print_nothing_else_happens(
    home: Path,
    quipu: Callable[..., Output],
) -> None:
    status, printed, _ = quipu("setup", "--client", "cursor", "--hooks", "prime", "--print")
    assert (status, file_of(HOOK_CLIENTS[2], home).exists()) == (0, False)
    assert '+    "sessionStart": [\n' in printed


def test_key_goes_into_a_file_of_its_own_that_only_the_user_reads(
    home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    quipu: Callable[..., Output],
) -> None:
    monkeypatch.setenv("QUIPU_DATA", str(tmp_path / "data"))
    address = ("--url", "https://memory.example/mcp", "--key", "k-12345")
    assert quipu("setup", "--client", "claude-code", "--hooks", "prime", *address)[0] == 0
    key = tmp_path / "data" / "hook.key"
    assert (key.read_text(encoding="ascii"), key.stat().st_mode & 0o777) == ("k-12345", 0o600)
    text = file_of(HOOK_CLIENTS[0], home).read_text(encoding="utf-8")
    assert "k-12345" not in text
    args = json.loads(text)["hooks"]["SessionStart"][0]["hooks"][0]["args"]
    assert args[-6:] == ["--client", "claude", "--url", "https://memory.example", "--key-file", str(key)]


def test_hooks_name_the_data_directory_by_which_the_server_proves_itself(
    home: Path, tmp_path: Path, quipu: Callable[..., Output], monkeypatch: pytest.MonkeyPatch
) -> None:
    quipu("setup", "--client", "claude-code", "--hooks", "prime")
    assert "--data" not in file_of(HOOK_CLIENTS[0], home).read_text(encoding="utf-8")
    monkeypatch.setenv("QUIPU_DATA", str(tmp_path / "data"))
    for client in HOOK_CLIENTS:
        quipu("setup", "--client", client.name, "--hooks", "prime")
        text = file_of(client, home).read_text(encoding="utf-8")
        assert str(tmp_path / "data") in text.partition("--data")[2], client.name


def test_a_program_that_a_client_starts_imports_nothing_from_its_folder(
    home: Path, quipu: Callable[..., Output]
) -> None:
    for client in HOOK_CLIENTS:
        quipu("setup", "--client", client.name, "--hooks", "prime")
        text = file_of(client, home).read_text(encoding="utf-8")
        assert text.count("-P") == text.count("-m"), client.name


def test_hooks_to_another_machine_need_https(home: Path, quipu: Callable[..., Output]) -> None:
    status, _, errors = quipu(
        "setup", "--client", "cursor", "--hooks", "prime", "--url", "http://memory.example:7847/mcp"
    )
    assert (status, "https" in errors) == (1, True)
    assert not file_of(HOOK_CLIENTS[2], home).exists()


def test_plugin_of_opencode_is_written_replaced_and_deleted(home: Path, quipu: Callable[..., Output]) -> None:
    file = file_of(HOOK_CLIENTS[4], home)
    quipu("setup", "--client", "opencode", "--hooks", "recall")
    assert 'const EVENTS = ["session-start", "first-prompt"]' in file.read_text(encoding="utf-8")
    assert "opencode        session-start, first-prompt" in quipu("hook", "status")[1]
    quipu("setup", "--client", "opencode", "--hooks", "prime")
    assert 'const EVENTS = ["session-start"]' in file.read_text(encoding="utf-8")
    quipu("setup", "--client", "opencode", "--remove")
    assert not file.exists()


def test_a_file_in_the_place_of_the_plugin_stays(home: Path, quipu: Callable[..., Output]) -> None:
    file = file_of(HOOK_CLIENTS[4], home)
    file.parent.mkdir(parents=True)
    file.write_text("mine", encoding="utf-8")
    assert quipu("setup", "--client", "opencode", "--hooks", "prime")[0] == 1
    quipu("hook", "remove")
    assert file.read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize(
    "words",
    [
        ("setup", "--client", "zed", "--hooks", "prime"),
        ("setup", "--client", "cursor", "--hooks", "prime", "--remove"),
        ("hook", "remove", "--client", "zed"),
        ("hook", "session-start"),
        ("prime", "--query", "x" * 5000),
    ],
)
def test_wrong_options_are_one_line(words: tuple[str, ...], home: Path, quipu: Callable[..., Output]) -> None:
    status, printed, errors = quipu(*words)
    assert (status, printed, errors.count("\n")) == (1, "", 1)


@pytest.mark.parametrize(
    "text", ['{"hooks": null}', '{"hooks": {"sessionStart": null}}', '{"version": 1, "hooks": null}']
)
def test_null_in_place_of_hooks_is_none(text: str, home: Path, quipu: Callable[..., Output]) -> None:
    file = home / ".cursor" / "hooks.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    assert quipu("setup", "--client", "cursor", "--hooks", "prime")[0] == 0
    assert quipu("hook", "status", "--client", "cursor")[1].split()[:2] == ["cursor", "session-start"]
    assert quipu("hook", "remove", "--client", "cursor")[0] == 0
    assert file.read_text(encoding="utf-8") == text


def test_a_file_of_hooks_that_cannot_be_edited_is_named(home: Path, quipu: Callable[..., Output]) -> None:
    file = home / ".cursor" / "hooks.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    for text, reason in (('{"hooks": 5}', "hooks is not an object"), ("{", "invalid JSON at line 1, column 2")):
        file.write_text(text, encoding="utf-8")
        status, _, errors = quipu("setup", "--client", "cursor", "--hooks", "prime")
        told = f"quipu: {file} was not changed: {reason}"
        assert (status, told in errors, file.read_text(encoding="utf-8")) == (1, True, text), errors


def test_prime_prints_what_is_known_of_a_project(
    home: Path,
    tmp_path: Path,
    quipu: Callable[..., Output],
) -> None:
    data = ("--data", str(tmp_path / "data"))
    project = tmp_path / "web"
    project.mkdir()
    for words in (data, (*data, "--json"), (*data, "--tenant", "other")):
        assert quipu("prime", *words) == (0, "", "")
    assert not (tmp_path / "data").exists()
    notes = tmp_path / "notes.jsonl"
    notes.write_text('{"type":"entity","name":"a","entityType":"b","observations":[]}\n', encoding="utf-8")
    assert quipu("import", "server-memory", str(notes), *data)[0] == 0
    assert quipu("prime", "--project", str(project), *data)[1] == ""


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("QUIPU_HOOKS", "QUIPU_HOOKS_OFF", "QUIPU_URL", "QUIPU_KEY"):
        monkeypatch.delenv(name, raising=False)
