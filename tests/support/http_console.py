"""Calls, values and checks that several tests of console share."""

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from tests.security.authenticated_server import Answer, House

TYPED = "application/x-www-form-urlencoded"


INSTALLING = ("cursor:", "vscode:", "lmstudio:")  # links of Connect that make a client add the entry


def page(server: House, path: str) -> str:
    answer = server.ask("GET", path)
    assert (answer.status, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    return answer.body.decode()


def model(server: House, path: str, **query: object) -> Any:
    answer = server.ask("GET", f"/ui{path}.json?{urlencode(query)}")
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json"), answer.body
    return json.loads(answer.body)


def send(server: House, action: str, fields: Mapping[str, object], zone: str = "UTC") -> Answer:
    headers = {"origin": f"http://127.0.0.1:{server.port}", "sec-fetch-site": "same-origin", "content-type": TYPED}
    headers["cookie"] = f"quipu_zone={zone}"
    return server.ask("POST", f"/ui/do/{action}", body=urlencode(fields).encode(), headers=headers)


def state(server: House, id_: str) -> dict[str, Any]:
    return model(server, "/memory", id=id_)


def change(server: House, action: str, id_: str, **fields: object) -> Answer:
    return send(server, action, {"id": id_, "version": state(server, id_)["version"], **fields})


def added(server: House, path: str, content: str) -> str:
    assert server.tool("add_memory", {"path": path, "content": content}).status == 200
    return f"paths/{path}"
