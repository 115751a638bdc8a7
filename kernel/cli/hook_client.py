"""`quipu hook EVENT --client NAME`: passes an event of a client to the server, and prints the answer.

It runs at every start of a session, so it imports nothing of the rest and little of the library. If anything fails, it
prints nothing and ends with status 0 within the time of its event: a memory must never hold up the work.
"""

import os
import sys
from _thread import start_new_thread
from time import monotonic, sleep

TYPE_CHECKING = False  # `typing` takes as long as the rest
if TYPE_CHECKING:
    from collections.abc import Callable
    from socket import socket

    from kernel.cli import local_client, witness
    from kernel.core import checkout
elif __name__ == "quipu_memory.hook_client":  # in the wheel, if another package may be called `kernel`
    from quipu_memory import checkout, local_client, witness
else:
    from kernel.cli import local_client, witness
    from kernel.core import checkout

# Seconds for each event, the start of the interpreter not included.
EVENTS = {"session-start": 1.0, "first-prompt": 0.3, "post-compact": 2.0, "session-end": 0.5}
CLIENTS = ("claude", "codex", "cursor", "gemini", "opencode")
DEFAULT_URL = "http://127.0.0.1:7847"
OFF_FILE, INTRO_FILE = os.path.join(".quipu", "off"), os.path.join(".quipu", "prime.md")
PROOF_PATH, NONCE_HEADER, KEY_ID_HEADER = "/hook/proof", "x-quipu-nonce", "x-quipu-key"  # of kernel.http.direct_routes
WITNESS_PATH = "/memories/witness"
_MOST_INPUT, _MOST_ANSWER = 1 << 20, 1 << 16
_MOST_INTRO = 8192
# Of the fields of a client only these leave the process, cut to so many characters.
_FIELDS = {
    "session_id": 256,
    "conversation_id": 256,
    "cwd": 4096,
    "source": 64,
    "prompt": 2000,
    "compact_summary": 20_000,
}
_LOOPBACK = ("localhost", "::1")


def main(words: list[str]) -> None:
    debug = "--debug" in words
    limit = EVENTS[words[0]]
    start_new_thread(_end_after, (limit,))
    try:
        answer, tell = run(words, dict(os.environ), monotonic() + limit)
        if answer:
            os.write(1, answer)
        tell()  # afterwards: the client has its answer even if this takes longer than the time of the event
    finally:
        if debug and sys.exc_info()[0] is not None:
            import traceback

            traceback.print_exc()
        os._exit(0)


def is_event(words: list[str]) -> bool:
    """Return whether these words of a command line are for `main`, and not to be explained or refused."""
    return len(words) > 1 and words[0] == "hook" and words[1] in EVENTS and option(words, "--client") in CLIENTS


def option(words: list[str], name: str) -> str:
    at = words.index(name) if name in words else len(words)
    return words[at + 1] if at + 1 < len(words) else ""


def run(words: list[str], environment: dict[str, str], deadline: float) -> "tuple[bytes, Callable[[], object]]":
    """Return the output of a hook, and the call that sends to the server which places of the checkout were seen; empty
    if there is nothing to say, or if it is switched off.
    """
    content = _read(0)
    if not content or environment.get("QUIPU_HOOKS") == "0":
        return b"", bytes
    fields = local_client.read_json(content)
    roots = fields.get("workspace_roots") or [""]
    folder = fields.get("cwd") or roots[0] or os.getcwd()
    root = project_root(folder)
    if is_off(root, environment):
        return b"", bytes
    body = {name: fields[name][:most] for name, most in _FIELDS.items() if isinstance(fields.get(name), str)}
    body["root"], body["mark"] = root, os.urandom(16).hex()
    intro, problem = read_intro(root) if words[0] == "session-start" else ("", "")
    if problem:
        os.write(2, f"quipu: {problem}\n".encode(errors="replace"))
    if intro:
        body["intro"] = intro
    path = f"/hook/{option(words, '--client')}/{words[0]}"
    data = option(words, "--data") or local_client.default_data(environment)
    url = option(words, "--url") or environment.get("QUIPU_URL") or local_client.url(data) or DEFAULT_URL
    key = _key(words, environment)
    answer = post(url, path, key, local_client.write_json(body), data, deadline)
    output, news = witness.judged(answer, body["mark"], folder)
    return output, lambda: news and post(url, WITNESS_PATH, key, news, data, deadline)


def read_intro(root: str) -> tuple[str, str]:
    """Return the text of `.quipu/prime.md` of a checkout, or why it is not read; both empty if there is none."""
    try:
        return checkout.read_text(root, ".quipu/prime.md", _MOST_INTRO), ""
    except FileNotFoundError:
        return "", ""
    except checkout.Refused as refused:
        return "", f"{INTRO_FILE} is not read: {refused}"
    except (OSError, ValueError) as error:
        return "", f"{INTRO_FILE} is not read: {getattr(error, 'strerror', None) or 'an error'}"


def project_root(folder: str) -> str:
    here = os.path.realpath(folder)  # as imports name it, by whichever link it was reached
    while True:
        git = os.path.join(here, ".git")
        if os.path.isdir(git):
            return here
        if os.path.isfile(git):
            return checkout.main_worktree(here) or here
        above = os.path.dirname(here)
        if above == here:
            return os.path.realpath(folder)
        here = above


def is_off(root: str, environment: dict[str, str]) -> bool:
    """Return whether the user has switched hooks off: everywhere, in a list of folders, or by a file in the project."""
    folders = [entry for entry in environment.get("QUIPU_HOOKS_OFF", "").split(os.pathsep) if entry]
    below = any(os.path.join(root, "").startswith(os.path.join(os.path.abspath(entry), "")) for entry in folders)
    return environment.get("QUIPU_HOOKS") == "0" or below or os.path.exists(os.path.join(root, OFF_FILE))


def post(url: str, path: str, key: str, body: bytes, data: str, deadline: float) -> bytes:
    """Return the body of the answer to a POST, empty unless it is whole and says 200.

    Over http nothing is sent before the server has proved that it can read the data directory, or knows the key.
    """
    scheme, _, rest = url.partition("://")
    authority = rest.partition("/")[0]
    host, _, digits = authority.rpartition(":") if authority.rpartition(":")[2].isdigit() else (authority, "", "80")
    host, port = host.strip("[]"), int(digits)
    if scheme == "https":
        return _post_securely(authority, path, key, body, deadline)
    if scheme != "http" or not (host in _LOOPBACK or (host.startswith("127.") and host.replace(".", "").isdigit())):
        return b""  # a key and memories go over the network encrypted, or not at all
    from socket import create_connection

    with create_connection((host, port), timeout=max(deadline - monotonic(), 0.001)) as connection:
        if not _is_proved(connection, authority, port, key, data, deadline):
            raise PermissionError(f"{authority} does not prove to be the server of {data}, and knows no key given here")
        lines = [f"POST {path} HTTP/1.1", f"host: {authority}", "content-type: application/json", "connection: close"]
        lines += [f"content-length: {len(body)}", *([f"authorization: Bearer {key}"] if key else [])]
        connection.sendall("\r\n".join([*lines, "", ""]).encode() + body)
        return _answer(connection, deadline)


def _is_proved(connection: "socket", authority: str, port: int, key: str, data: str, deadline: float) -> bool:
    """Return whether the server knows a secret of this user of this machine: its token, or the hash of the key."""
    nonce = os.urandom(16).hex()
    lines = [f"GET {PROOF_PATH} HTTP/1.1", f"host: {authority}", f"{NONCE_HEADER}: {nonce}"]
    lines += [f"{KEY_ID_HEADER}: {key[6:14]}"] if key.startswith("quipu_") else []
    connection.sendall("\r\n".join([*lines, "", ""]).encode())
    proofs = _answer(connection, deadline)
    token = local_client.token(data)  # read now: a server that the connection has started has written it by now
    if token and proof(token, nonce, port) in proofs:
        return True
    if not key:
        return False
    from hashlib import sha256

    return proof(sha256(key.encode()).hexdigest(), nonce, port) in proofs


def proof(secret: str, nonce: str, port: int) -> bytes:
    """Return an answer that takes the secret to compute; the port keeps a stranger from passing it on."""
    from _blake2 import blake2b  # hashlib loads OpenSSL, which takes longer than the rest

    return blake2b(f"{port} {nonce}".encode(), key=secret.encode()).hexdigest().encode()


def _answer(connection: "socket", deadline: float) -> bytes:
    response = head = body = b""
    length = -1
    while len(response) <= _MOST_ANSWER and len(body) != length and monotonic() < deadline:
        part = connection.recv(_MOST_ANSWER)
        if not part:
            break
        response += part
        head, end, body = response.partition(b"\r\n\r\n")
        length = _length(head) if end else -1
    whole = len(body) == length and len(body) <= _MOST_ANSWER
    return body if whole and head.split(b" ", 2)[1:2] == [b"200"] else b""


def _length(head: bytes) -> int:
    """Return the bytes of the body that a head announces; -2 if it says nothing of them."""
    lines = head.lower().split(b"\r\n")
    digits = next((line.partition(b":")[2].strip() for line in lines if line.startswith(b"content-length:")), b"")
    return int(digits) if digits.isdigit() and len(digits) < 10 else -2


def _post_securely(authority: str, path: str, key: str, body: bytes, deadline: float) -> bytes:
    from http.client import HTTPSConnection

    connection = HTTPSConnection(authority, timeout=max(deadline - monotonic(), 0.001))
    headers = {"content-type": "application/json", **({"authorization": f"Bearer {key}"} if key else {})}
    connection.request("POST", path, body, headers)
    answer = connection.getresponse()
    body_read = answer.read(_MOST_ANSWER + 1)
    return body_read if answer.status == 200 and len(body_read) <= _MOST_ANSWER else b""


def _key(words: list[str], environment: dict[str, str]) -> str:
    file = option(words, "--key-file")
    if environment.get("QUIPU_KEY") or not file:
        return environment.get("QUIPU_KEY", "")
    with open(file, encoding="ascii") as source:
        return source.read(1024).strip()


def _read(descriptor: int) -> bytes:
    """Return all of an input; empty if it is too long, which is read to its end all the same."""
    parts: list[bytes] = []
    size = 0
    while part := os.read(descriptor, 1 << 16):
        size += len(part)
        if size <= _MOST_INPUT:
            parts.append(part)
    return b"".join(parts) if size <= _MOST_INPUT else b""


def _end_after(seconds: float) -> None:
    sleep(seconds)
    os._exit(0)
