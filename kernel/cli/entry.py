"""The begin of the command: hooks, and a recall beside a running server, do without the whole command line."""

import os
import sys

_MAX_DIGITS = 18
_OF_SIGNALS = 128  # and the number of the signal: the status as shells report it
_INTERRUPTED = 130


def main() -> int:
    try:
        return _run()
    except KeyboardInterrupt:
        return _INTERRUPTED


def _run() -> int:
    if os.getpid() == 1:
        _end_at_signals()
    _open_missing_streams()
    if sys.argv[1:2] == ["hook"]:
        from kernel.cli import hook_client

        if hook_client.is_event(sys.argv[1:]):
            hook_client.main(sys.argv[2:])
    status = _recall(sys.argv[2:]) if sys.argv[1:2] == ["recall"] else None
    if status is not None:
        return status
    from kernel.cli.main import main as whole  # takes a tenth of a second, in which Ctrl-C may come

    return whole()


def _end_at_signals() -> None:
    """Let signals end this process as they end any other: the first process of a container gets only those for which it
    has a handler.
    """
    import signal

    if sys.platform != "win32":
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) == signal.SIG_DFL:
                signal.signal(number, lambda number, _frame: os._exit(_OF_SIGNALS + number))


def _open_missing_streams() -> None:
    """Open the null device for each stream that the caller has closed, so that no file of the store gets its number."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115  # until the end


def _recall(words: list[str]) -> int | None:
    """Return the exit status; None leaves other options, no server and any failure to the whole command line."""
    body, style = _request(words)
    if not body or os.environ.get("QUIPU_STORE"):  # then the server of the folder may have another store
        return None
    from kernel.cli import local_client

    server = local_client.find(local_client.default_data(os.environ))
    mark = os.urandom(16).hex()
    try:
        answer = server and local_client.ask(server, "recall", body, style, mark=mark)
        if not server or not answer or answer[0] != 200 or not answer[1]:
            return None
        output, news = answer[1], b""
        if mark.encode() in output:
            from kernel.cli import witness

            output, news = witness.judged(output, mark, ".")
        sys.stdout.buffer.write(local_client.in_local_time(output))
        sys.stdout.flush()
    except OSError:  # a recall changes nothing, so it can be asked again
        return None
    try:
        if news:
            local_client.ask(server, "witness", news, "json")
    except OSError:  # the answer is there without it
        pass
    return 0


def _request(words: list[str]) -> tuple[bytes, str]:
    """Return the body and the style of a request; no body for options that are not known here."""
    from _json import encode_basestring_ascii as quoted

    query_words: list[str] = []
    style, limit, rest = _style(), "10", iter(words)
    for word in rest:
        if word == "--json":
            style = "json"
        elif word == "--limit":
            limit = next(rest, "")
        elif word.startswith("-"):
            return b"", ""
        else:
            query_words.append(word)
    query = " ".join(query_words)
    is_text = not any("\ud800" <= sign <= "\udfff" for sign in query)
    is_number = limit.isascii() and limit.isdigit() and len(limit) <= _MAX_DIGITS
    if not query or not is_text or not is_number or sys.stdout.encoding != "utf-8":
        return b"", ""
    return f'{{"query":{quoted(query)},"limit":{int(limit)}}}'.encode(), style


def _style() -> str:
    values = os.environ
    able = sys.stdout.isatty() and not values.get("NO_COLOR") and values.get("TERM") != "dumb"
    return "colour" if able and sys.platform != "win32" else "text"
