"""Memories that a person adds, imports, exports and backs up from the console."""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path

import pytest

from handlers.console.requests import Upload, upload_of
from kernel.core.config import Config
from tests.security.authenticated_server import Answer, House, house
from tests.support.http_console import model, page, send

GRAPH = b'{"type":"entity","name":"Zoe","entityType":"person","observations":["Zoe plays the cello."]}\n'


@pytest.fixture
def server(tmp_path: Path) -> Iterator[House]:
    with house(Config(data=tmp_path / "data", model=None)) as running:
        yield running


def multipart(name: str, content: bytes, fields: Mapping[str, str]) -> tuple[bytes, bytes]:
    """The type and the body of a form with a file, as a browser sends them."""
    texts = "".join(
        f'--cut\r\nContent-Disposition: form-data; name="{field}"\r\n\r\n{value}\r\n' for field, value in fields.items()
    )
    head = f'--cut\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\nContent-Type: x/y\r\n\r\n'
    return b"multipart/form-data; boundary=cut", texts.encode() + head.encode() + content + b"\r\n--cut--\r\n"


def look_into(server: House, name: str, content: bytes, key: str = "", **fields: str) -> Answer:
    media, body = multipart(name, content, fields)
    headers = {"origin": f"http://127.0.0.1:{server.port}", "content-type": media.decode()}
    return server.ask("POST", "/ui/do/import", key, body, headers)


def test_a_file_is_looked_into_then_imported_then_undone(server: House) -> None:
    shown = look_into(server, "C:\\docs\\memory.jsonl", GRAPH).body.decode()
    assert "memory.jsonl is taken for server-memory" in shown
    assert re.findall(r'row">(\w+)</th><td class="number">(\d+)<', shown) == [
        ("entities", "1"),
        ("observations", "1"),
        ("relations", "0"),
    ]
    assert model(server, "")["memories"] == 0
    fields = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', shown))
    done = send(server, "import-kept", fields)
    assert (done.status, done.headers["location"]) == (303, "/ui/audit?calls=1&done=imported")
    assert model(server, "")["memories"] == 1
    assert [*server.data.glob("import*")] == []
    assert "Imported. Undo takes all of it back." in page(server, done.headers["location"])
    assert send(server, "undo", {"number": 1}).status == 303
    assert model(server, "")["memories"] == 0
    again = send(server, "import-kept", fields)
    assert (again.status, "choose it again" in again.body.decode()) == (404, True)


@pytest.mark.parametrize(
    ("name", "content", "fields", "words"),
    [
        ("notes.bin", b"\0\1\2", {}, "notes.bin does not say what it is"),
        ("", b"", {}, "Choose a file first."),
        ("memory.jsonl", GRAPH, {"kind": "--help"}, "kind: there is none of this name"),
    ],
)
def test_a_file_that_cannot_be_imported_is_refused_in_words(
    server: House, name: str, content: bytes, fields: dict[str, str], words: str
) -> None:
    answer = look_into(server, name, content, **fields)
    assert (answer.status, words in answer.body.decode()) == (400, True)
    assert [*server.data.glob("import*")] == []


def test_a_file_longer_than_any_other_body_is_looked_into(server: House) -> None:
    answer = look_into(server, "memory.jsonl", GRAPH + b" " * (20 << 20) + b"\n" + GRAPH.replace(b"Zoe", b"Ann"))
    assert (answer.status, "memory.jsonl is taken for server-memory" in answer.body.decode()) == (200, True)


def test_a_caller_sends_one_file_at_a_time(server: House) -> None:
    media, body = multipart("memory.jsonl", GRAPH, {})
    with closing(HTTPConnection("127.0.0.1", server.port, timeout=60)) as first:
        first.putrequest("POST", "/ui/do/import")
        for name, value in (
            ("origin", f"http://127.0.0.1:{server.port}"),
            ("content-type", media.decode()),
            ("content-length", str(len(body))),
        ):
            first.putheader(name, value)
        first.endheaders(body[:9])
        others = (look_into(server, "memory.jsonl", GRAPH) for _ in range(20))
        second = next(answer for answer in others if answer.status != 200)  # once the first has come
        assert (second.status, "Another file is being looked into" in second.body.decode()) == (503, True)
        first.send(body[9:])
        assert first.getresponse().status == 200
    assert look_into(server, "memory.jsonl", GRAPH).status == 200


def test_a_name_longer_than_a_file_system_takes_keeps_its_end(server: House) -> None:
    answer = look_into(server, "\u5e74" * 200 + ".jsonl", GRAPH)
    assert (answer.status, "\u5e74.jsonl is taken for server-memory" in answer.body.decode()) == (200, True)


def test_only_an_admin_of_every_dialect_moves_everything(server: House) -> None:
    writer, limited = server.key("write"), server.key("admin", dialects=("paths",))
    server.told()
    for key in (writer, limited):
        assert look_into(server, "memory.jsonl", GRAPH, key).status == 403
        assert server.ask("GET", "/ui/import", key).status == 403
        for action in ("export", "backup", "import-kept"):
            headers = {
                "origin": f"http://127.0.0.1:{server.port}",
                "content-type": "application/x-www-form-urlencoded",
            }
            assert server.ask("POST", f"/ui/do/{action}", key, b"token=x", headers).status == 403
    assert server.ask("GET", "/ui/new", writer).status == 200


def test_an_export_brings_everything_back(server: House, tmp_path: Path) -> None:
    assert send(server, "add", {"text": "The cello is from 1890.", "dialect": "paths", "name": "cello"}).status == 303
    exported = send(server, "export", {})
    assert exported.headers["content-disposition"] == 'attachment; filename="memories.jsonl"'
    with house(Config(data=tmp_path / "other", model=None)) as other:
        shown = look_into(other, "memories.jsonl", exported.body).body.decode()
        send(other, "import-kept", dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', shown)))
        assert model(other, "/memory", id="paths/cello")["text"] == "The cello is from 1890."


def test_a_backup_lies_beside_the_database(server: House) -> None:
    assert send(server, "backup", {}).headers["location"] == "/ui?done=backup"
    assert len([*server.data.glob("quipu-*.db")]) == 1
    assert "Backed up" in page(server, "/ui?done=backup")


def test_a_new_memory_is_shown(server: House) -> None:
    done = send(server, "add", {"text": "Zoe plays the cello.", "dialect": "paths", "name": "zoe"})
    assert done.headers["location"] == "/ui/memory?id=paths%2Fzoe&done=added"
    refused = send(server, "add", {"text": "Another Zoe", "dialect": "paths", "name": "zoe"})
    assert (refused.status, "Another Zoe" in refused.body.decode()) == (409, True)
    assert send(server, "add", {"text": " ", "dialect": "paths"}).status == 400
    assert model(server, "/new")["dialects"][0] == "paths"


def test_overview_shows_the_days_that_are_asked_for(server: House) -> None:
    assert [len(model(server, "", days=days)["days"]) for days in (7, 90, 8)] == [7, 90, 30]


@pytest.mark.parametrize(
    ("media", "body", "upload"),
    [
        (*multipart("a.json", b"\r\n{}\r\n", {"kind": "mem0"}), Upload("a.json", b"\r\n{}\r\n", {"kind": "mem0"})),
        (*multipart("\u00e9.json", b"", {}), Upload("\u00e9.json", b"", {})),
        (b"multipart/form-data; boundary=cut", b"nothing of it", Upload("", b"", {})),
        (b"multipart/form-data", b"--cut", None),
        (b"application/json; boundary=cut", b"--cut", None),
    ],
)
def test_files_of_forms(media: bytes, body: bytes, upload: Upload | None) -> None:
    assert upload_of(media, body) == upload


def test_the_page_of_an_import_as_json_has_the_formats(server: House) -> None:
    kinds = json.loads(server.ask("GET", "/ui/import.json").body)["kinds"]
    assert {"jsonl", "server-memory", "chatgpt"} <= {kind for kind, _ in kinds}
