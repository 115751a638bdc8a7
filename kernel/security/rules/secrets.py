"""Finds and redacts secrets: keys, tokens, passwords and private keys, by their form or by the name before them.

One set of rules for every dialect, so that what one refuses to store no other keeps in a log.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from kernel.core.lazy_regex import regex
from kernel.security.rules.secret_values import (
    VALUE,
    is_assigned_secret,
    is_filler,
    is_literal,
    is_password,
    is_plain_value,
    is_random_value,
    is_strong_password,
)

_LONG = 128  # characters; the shortest limit of a pattern
_REST = regex(r"""[^\s"'`]*""")


class SecretRule(NamedTuple):
    """One form of secret.

    Every match contains one of `hints`, in lower case if `fold`, so a text without any skips the pattern.
    `check(match)` decides whether a match is a secret; without it, all are but those filled up as an example.
    """

    name: str
    hints: tuple[str, ...]
    pattern: str
    fold: bool = False
    check: Callable[[re.Match[str]], bool] | None = None


def find_secret(texts: Sequence[str]) -> str:
    """Return the name of the first rule that matches one of the texts; empty for none."""
    for text in texts:
        lower = text.lower()
        # The hints of one rule are adjacent, so each rule runs at most once per text.
        tried = None
        for hint, rule in _RULES_BY_HINT:
            if hint in (lower if rule.fold else text) and rule is not tried:
                tried = rule
                if any(True for _ in _matches(rule, text)):
                    return rule.name
    return ""


def sensitive_field(fields: Mapping[str, str]) -> str:
    """Return the name of the first field that holds a secret; empty for none."""
    return next((name for name, text in fields.items() if find_secret([text])), "")


def redact(text: str, mark: str) -> str:
    """Return the text with `mark` in place of each secret; it is changed if and only if `find_secret` finds
    one in it.
    """
    output, end = "", 0
    for start, stop in sorted(_spans(text)):
        if stop > end:
            output += f"{text[end:start]}{mark}" if start >= end else ""
            end = stop
    return output + text[end:]


def _spans(text: str) -> list[tuple[int, int]]:
    """Return where the secrets of a text lie: the values of rules that name one, the whole matches of the others."""
    lower = text.lower()
    return [
        _span(match)
        for rule in RULES
        if any(hint in (lower if rule.fold else text) for hint in rule.hints)
        for match in _matches(rule, text)
    ]


def _span(match: re.Match[str]) -> tuple[int, int]:
    """Return where a secret lies; one longer than a pattern reads goes on to the next space or quote."""
    start, stop = match.span("value" if "value" in match.re.groupindex else 0)
    rest = _REST.match(match.string, stop) if stop - start >= _LONG else None
    return start, rest.end() if rest else stop


def _matches(rule: SecretRule, text: str) -> Iterator[re.Match[str]]:
    for match in _compiled(rule.pattern, rule.fold).finditer(text):
        if not is_filler(match) if rule.check is None else rule.check(match):
            yield match


def _compile(pattern: str, fold: bool) -> re.Pattern[str]:
    return re.compile(pattern, re.I if fold else 0)


# Compiled at first use: most servers never meet most forms of secrets, and compiling all would slow down every start.
_compiled = cache(_compile)


def _labelled(name: str, hints: str, body: str, check: Callable[[re.Match[str]], bool] | None = None) -> SecretRule:
    return SecretRule(name, tuple(hints.split()), body, True, check)


_SIGN = (
    r"""["'`\]\\]{0,4}[ \t]{0,16}(?P<sign>:=|=>|->|→|[:=]|(?<=\s)(?:is|was)(?:\s{0,2}[:=])?(?=\s))\s{0,16}"""
    r"(?:!(?:!\w{1,16}|unsafe|Sub)[ \t]{1,4})?"  # tags of YAML before the text itself
)
_GIVEN = r"""(?P<value>"[^"\n]{1,128}"|'[^'\n]{1,128}'|`[^`\n]{1,128}`|[^\s"'`]+)"""
_NAMED_RULES = (
    _labelled(
        "api key",
        "key",
        r"""api[_-]?key\s{0,64}(?P<sign>[:=])\s{0,64}(?P<value>["'\\]?[\w/\\\]^+-]{16,})""",
        is_plain_value,
    ),
    _labelled(
        "secret",
        "secret",
        r"""secret\s{0,64}(?P<sign>[:=])\s{0,64}(?P<value>["'\\]?[\w/\\\]^+-]{12,})""",
        is_plain_value,
    ),
    _labelled(
        "password",
        "passw passphrase passcode",
        rf"(?:passw(?:or)?d|passwort|passphrase|passcode){_SIGN}{_GIVEN}",
        is_password,
    ),
    _labelled("password", "pass pw", rf"(?<![a-z])(?:pass|pwd?){_SIGN}{_GIVEN}", is_strong_password),
    _labelled(
        "password",
        "my",
        rf"\bmy\s{{1,4}}(?:passw(?:or)?d|passphrase|passcode|pwd)(?P<sign>\s{{1,4}}){_GIVEN}",
        is_strong_password,
    ),
)
# Each line has the name, the hints and the pattern of tokens with a fixed prefix that are not part of a longer word.
# The lookbehind of web tokens makes the pattern try each run of letters and hyphens once, from its start.
_TOKEN_RULES = tuple(
    SecretRule(name, tuple(hints.split()), rf"(?<![A-Za-z0-9])(?:{body})")
    for name, hints, body in (
        line.split(": ", 2) for line in Path(__file__).with_name("tokens.txt").read_text(encoding="utf-8").splitlines()
    )
)
_LABELLED_RULES = (
    SecretRule(
        "chat bot token",
        (".",),
        r"(?<=[A-Za-z\d]{23})\.[\w-]{6}\.(?P<value>[\w-]{27,40})(?![\w-])",
        check=is_random_value,
    ),
    _labelled(
        "credentials in a URL",
        "://",
        r"://[^\s:/@?#\"'<>]{0,128}:(?P<value>[^\s/\"'<>]{2,256})@[\w.\[-]",
        is_literal,
    ),
    _labelled("authorization header", "bearer", rf"bearer[\s:=]{{1,4}}[\"']?(?P<value>{VALUE})", is_random_value),
    _labelled(
        "authorization header",
        "authorization",
        r"authorization[\"']?\s{0,4}[:=]\s{0,4}[\"']?(?:basic|bearer|token|apikey|digest)\s{1,4}(?P<value>[\w+/.~=-]{10,})",
        is_literal,
    ),
    _labelled(
        "login file", "login", r"\blogin\s{1,16}\S{1,128}\s{1,16}password\s{1,16}(?P<value>\S{4,256})", is_literal
    ),
    _labelled(
        "command line",
        "-u",
        r"\bcurl\b[^\n]{0,256}\s(?:-u|--user)[\s=]{0,4}[\"']?[\w.@-]{1,64}:(?P<value>[^\s\"']{4,128})",
        is_literal,
    ),
    _labelled(
        "command line",
        "--",
        r"--(?:password|passwd|token|api-?key|secret|secret-key|client-secret|access-key)(?P<sign>[ =])[\"']?"
        r"(?P<value>[^\s\"']{6,512})",
        is_password,
    ),
    _labelled(
        "assigned secret",
        "key secret token cred pass pwd auth signature",
        rf"(?::=|=>|->|→|[:=]|(?<=\s)(?:is|was)(?:\s{{0,2}}[:=])?(?=\s))\s{{0,16}}[\"'`\\]{{0,4}}(?=(?P<value>{VALUE}))",
        is_assigned_secret,
    ),
)
RULES: tuple[SecretRule, ...] = (*_NAMED_RULES, *_TOKEN_RULES, *_LABELLED_RULES)
_RULES_BY_HINT = tuple((hint, rule) for rule in RULES for hint in rule.hints)
