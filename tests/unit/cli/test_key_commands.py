"""The output of the commands for keys beyond the key: whom it locks out, which store it opens, how to undo that."""

import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from kernel.cli import commands
from kernel.cli.main import parser
from kernel.core.config import Config
from kernel.core.errors import Fault
from kernel.security import api_keys
from kernel.server import app

Said = Callable[..., str]


@pytest.fixture
def said(config: Config, capsys: pytest.CaptureFixture[str]) -> Said:
    """Return the output of a command on standard error."""

    def run(*arguments: str, **environment: str) -> str:
        own = config._replace(environment={**config.environment, **environment})
        assert commands.run(parser().parse_args(["key", *arguments]), own) == 0
        return capsys.readouterr().err

    return run


def ids(config: Config) -> list[str]:
    return [key.id for key in api_keys.read(config.data)]


def test_first_key_says_what_it_does_to_local_clients_and_what_it_opens(said: Said, config: Config) -> None:
    told = said("create", "--scope", "write").splitlines()
    assert told[0].startswith("The first key: from now on every client needs one, those on this machine too")
    assert "quipu setup --client NAME --key -" in told[0]
    assert told[1] == f"It opens the store of the tenant main, {config.file}, which is new and empty."
    assert told[-1] == "The secret is shown only once:"
    app.open_kernel(config).store.close()
    assert (
        said("create", "--scope", "write").splitlines()[0] == f"It opens the store of the tenant main, {config.file}."
    )


def test_first_key_names_the_clients_of_this_machine_and_who_manages_keys_after_it(
    config: Config, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    here = config._replace(environment={"HOME": str(tmp_path)})
    url = f"http://127.0.0.1:{config.port}/mcp"
    (tmp_path / ".cursor").mkdir()
    (tmp_path / ".cursor/mcp.json").write_text(f'{{"mcpServers": {{"quipu": {{"url": "{url}"}}}}}}', encoding="utf-8")

    for scope, shown in (("write", True), ("admin", False)):
        assert commands.run(parser().parse_args(["key", "create", "--scope", scope]), here) == 0
        told = capsys.readouterr().err
        assert (f"\n  Cursor: quipu setup --client cursor --url {url} --key -\n" in told) is shown
        assert ("`quipu key create --scope admin` on this machine makes one." in told) is shown


def test_first_key_of_another_tenant_says_where_the_memories_are(said: Said, config: Config) -> None:
    app.open_kernel(config).store.close()
    told = said("create", "--scope", "write", "--tenant", "ada").splitlines()
    assert told[1].startswith("It opens the store of the tenant ada, ")
    assert told[1].endswith("quipu.db, which is new and empty.")
    assert told[2] == "What was stored without a key is in the tenant main: leave --tenant out to reach it."


def test_revoking_the_last_active_key_says_how_clients_get_in_again(said: Said, config: Config) -> None:
    said("create", "--scope", "write")
    said("create", "--scope", "read")
    first, second = ids(config)
    assert said("revoke", first) == ""
    told = said("revoke", second)
    assert told.startswith("No key is active: every client is refused.")
    assert "quipu key create" in told
    assert "quipu key reset" in told


@pytest.mark.slow
def test_deleted_key_is_no_longer_listed_and_the_last_one_stays(said: Said, config: Config) -> None:
    said("create", "--scope", "write")
    said("create", "--scope", "read")
    first, second = ids(config)
    said("revoke", first)
    assert said("delete", second).startswith("No key is active")
    assert ids(config) == [first]
    with pytest.raises(Fault, match="This is the last key: `quipu key reset`") as last:
        said("delete", first)
    with pytest.raises(Fault, match="There is no key of this id") as unknown:
        said("delete", second)
    assert (last.value.code, unknown.value.code, ids(config)) == ("conflict", "not_found", [first])
    said("reset")
    assert said("list") == "there are no keys\n"


def test_a_file_of_tenants_gets_a_key_each(
    config: Config, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "tenants"
    file.write_text("acme\n\n beta \r\nacme\n", encoding="utf-8")
    create = ["key", "create", "--scope", "write", "--name", "batch", "--tenants"]

    assert commands.run(parser().parse_args([*create, str(file)]), config) == 0
    rows = [line.split(",") for line in capsys.readouterr().out.splitlines()]
    keys = api_keys.read(config.data)
    assert [(key.tenant, key.id) for key in keys] == [(tenant, id_) for tenant, id_, _ in rows]
    assert [tenant for tenant, _, _ in rows] == ["acme", "beta", "acme"]
    assert all(api_keys.matches(secret, key) for key, (_, _, secret) in zip(keys, rows, strict=True))
    assert {key.name for key in keys} == {"batch"}

    monkeypatch.setattr("sys.stdin", io.StringIO("gamma\n"))
    assert commands.run(parser().parse_args([*create, "-", "--json"]), config) == 0
    made = json.loads(capsys.readouterr().out)
    assert (made["tenant"], made["scope"]) == ("gamma", "write")
    assert api_keys.matches(made["secret"], api_keys.read(config.data)[-1])


@pytest.mark.parametrize(
    ("text", "words", "told"),
    [
        ("fine\nA/B\n", (), "Line 2: A tenant has a name of 1 to 63 characters"),
        ("fine\n", ("--tenant", "acme"), "--tenants names the tenants of the keys: leave --tenant out."),
        ("\n \n", (), "names no tenant; no key was made."),
        (None, (), "Cannot read"),
    ],
)
def test_a_bad_file_of_tenants_makes_no_key(
    config: Config, tmp_path: Path, text: str | None, words: tuple[str, ...], told: str
) -> None:
    file = tmp_path / "tenants"
    if text is not None:
        file.write_text(text, encoding="utf-8")
    with pytest.raises(Fault, match=told):
        commands.run(parser().parse_args(["key", "create", "--scope", "read", "--tenants", str(file), *words]), config)
    assert api_keys.read(config.data) == []


def test_a_key_for_places_has_their_dialects_and_recall(said: Said, config: Config) -> None:
    told = said("create", "--read", "brain:core", "--read", "graph", "--write", "paths:work/")
    key = api_keys.read(config.data)[0]
    assert (key.scope, key.dialects) == ("write", ("brain", "common", "graph", "paths"))
    assert (key.read, key.write) == (("brain:core", "graph"), ("paths:work",))
    assert "  write  reads brain:core,graph writes paths:work  " in told


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "A key needs --scope, or the places that it may --read or --write."),
        (["--scope", "admin", "--read", "brain"], "--read and --write are instead of --scope and --dialect."),
        (["--dialect", "paths", "--write", "paths:a"], "--read and --write are instead of --scope and --dialect."),
        (["--write", "common"], "--write: 'common' must begin with one of "),
        (["--read", "nope:x"], "--read: 'nope:x' must begin with one of brain, files, graph, notes, paths, scopes, "),
        *[
            (["--write", place], f"--write: {place!r} must be {' or '.join(places)}.")
            for place, *places in (
                ("brain:nope", "brain", *(f"brain:{name}" for name in ("core", "therapy", "dnd", "hlg"))),
                ("brain:core/x", "brain", *(f"brain:{name}" for name in ("core", "therapy", "dnd", "hlg"))),
                ("scopes:nope", "scopes", "scopes:project:ID", "scopes:global", "scopes:org:ID", "scopes:session:ID"),
                ("scopes:org:", "scopes", "scopes:project:ID", "scopes:global", "scopes:org:ID", "scopes:session:ID"),
                ("files:work", "files", "files:/memories", "files:/memories/FOLDER", "files:memstore_ID"),
                ("files:/memories//a", "files", "files:/memories", "files:/memories/FOLDER", "files:memstore_ID"),
                ("paths:/work", "paths", "paths:FOLDER"),
                ("sessions:", "sessions", "sessions:SESSION"),
                ("notes:a\x1b", "notes", "notes:PROJECT"),
                ("graph:a", "graph"),
            )
        ],
    ],
)
def test_a_key_for_places_is_no_key_for_more(said: Said, options: list[str], message: str) -> None:
    with pytest.raises(Fault) as caught:
        said("create", *options)
    assert caught.value.message.startswith(message)


def test_a_key_is_held_to_the_places_that_the_server_has(said: Said, config: Config) -> None:
    places = ["brain:work", "files:/memories", "files:/memories/a/b", "files:memstore_1", "notes:web", "paths:a/b"]
    places += ["scopes:global", "scopes:org:o", "scopes:project:p", "scopes:session:s", "sessions:/tmp/s"]
    options = [word for place in places for word in ("--read", place)]
    said("create", *options, QUIPU_BRAIN_DATABASES="work,home")
    assert api_keys.read(config.data)[0].read == tuple(places)
