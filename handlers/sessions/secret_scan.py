"""Finds secrets that must not be stored: keys, tokens, passwords and private keys, by their form."""

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

from kernel.lazy_regex import regex

_SECRET_NAME = regex(
    "(?:(?:api|access|secret|account|auth|signing|encryption|private|master|shared|license|app|application|service)"
    "[ _.-]?key|secret|token|credential|passw(?:or)?d|passphrase|pass|pwd|auth|signature)"
    r"s?[\"'`\]\\]{0,4}\s{0,16}$",
    re.I,
)
_SECRET_NAME_LENGTH = 48
_VALUE = r"[A-Za-z0-9+/_.~!@#$%^&*-]{8,512}={0,2}"
_PLACEHOLDER = regex(
    r"example|sample|your|change.?me|placeholder|replace|redacted|dummy|insert|todo|x{4,}|\*{3,}|\.{3}|"
    r"environ|getenv|\benv\b|config|settings|^\$|<|%\(|none|null|true|false|undefined|secrets?[./]",
    re.I,
)
# Prefixes of tokens that are no secrets: cursors of lists, CSRF and idempotency tokens.
_HARMLESS_PREFIX = regex(r"(?:page|next|sync|cursor|continuation|resume|cancel|csrf|xsrf|idempotency)[_.-]?$", re.I)
_RUNS = regex(r"[A-Z]+|[a-z]+|[0-9]+")
_WORDS = regex(r"[A-Z]?[a-z]{3,}")
_MIN_TOKEN_LENGTH = 16
_MIN_ENTROPY_BITS = 3.0


class SecretRule(NamedTuple):
    """One form of secret.

    Every match contains one of `hints`, in lower case if `fold`, so a text without any skips the pattern.
    `check(match)`, if given, decides whether a match is a secret.
    """

    name: str
    hints: tuple[str, ...]
    pattern: str
    fold: bool = False
    check: Callable[[re.Match[str]], bool] | None = None


def find_secret(texts: Sequence[str]) -> str:
    """The name of the first rule that matches one of the texts; empty for none."""
    for text in texts:
        lower = text.lower()
        # The hints of one rule are adjacent, so each rule runs at most once per text.
        tried = None
        for hint, rule in _RULES_BY_HINT:
            if hint in (lower if rule.fold else text) and rule is not tried:
                tried = rule
                if _matches(rule, text):
                    return rule.name
    return ""


def _matches(rule: SecretRule, text: str) -> bool:
    pattern = _compiled(rule.pattern, rule.fold)
    if rule.check is None:
        return pattern.search(text) is not None
    return any(rule.check(match) for match in pattern.finditer(text))


def _compile(pattern: str, fold: bool) -> re.Pattern[str]:
    return re.compile(pattern, re.I if fold else 0)


# Compiled at first use: most servers never meet most forms of secrets, and compiling all would slow down every start.
_compiled = cache(_compile)


def _looks_random(value: str) -> bool:
    """Whether a value looks random: long, digits mixed with letters, no name and no placeholder."""
    if len(value) < _MIN_TOKEN_LENGTH or _PLACEHOLDER.search(value):
        return False
    counts = Counter(value)
    entropy = -sum(count / len(value) * math.log2(count / len(value)) for count in counts.values())
    digits = sum(letter.isdigit() for letter in value)
    in_words = sum(map(len, _WORDS.findall(value)))
    mixed = digits >= len(value) / 10 or in_words <= len(value) / 3
    return digits > 0 and mixed and entropy >= _MIN_ENTROPY_BITS and len(_RUNS.findall(value)) >= len(value) / 8 + 2


def _is_random_value(match: re.Match[str]) -> bool:
    return _looks_random(match["value"])


def _is_assigned_secret(match: re.Match[str]) -> bool:
    """Whether a random-looking value is assigned to a name such as `api_key`."""
    if not _looks_random(match["value"]):
        return False
    before = match.string[max(0, match.start() - _SECRET_NAME_LENGTH) : match.start()]
    name = _SECRET_NAME.search(before)
    return name is not None and not _HARMLESS_PREFIX.search(before[: name.start()])


def _is_password(match: re.Match[str]) -> bool:
    """Whether the value can be a password: anything but a placeholder or an identifier in code."""
    value = match["value"].strip("\"'`,;)")
    return len(value) >= 6 and not _PLACEHOLDER.search(value) and not re.fullmatch(r"[A-Za-z_][A-Za-z_.]*\(?", value)


def _is_literal(match: re.Match[str]) -> bool:
    return not _PLACEHOLDER.search(match["value"]) and match["value"].lower() not in {"password", "pass", "secret"}


def _token(name: str, hints: str, body: str) -> SecretRule:
    """A rule for tokens with a fixed prefix that are not part of a longer word."""
    return SecretRule(name, tuple(hints.split()), rf"(?<![A-Za-z0-9])(?:{body})")


def _labelled(name: str, hints: str, body: str, check: Callable[[re.Match[str]], bool] | None = None) -> SecretRule:
    """A rule for secrets with a label beside them, in any case."""
    return SecretRule(name, tuple(hints.split()), body, True, check)


_CONTRACT_RULES = (
    _labelled("api key", "key", r"""api[_-]?key\s{0,64}[:=]\s{0,64}["'\\]?[\w/\\\]^+-]{16,}"""),
    _labelled("secret", "secret", r"""secret\s{0,64}[:=]\s{0,64}["'\\]?[\w/\\\]^+-]{12,}"""),
    _labelled("password", "password", r"password\s{0,64}[:=]"),
)
_TOKEN_RULES = (
    _token("AWS key id", "AKIA ASIA ABIA ACCA AROA AIDA", r"(?:AKIA|ASIA|ABIA|ACCA|AROA|AIDA)[A-Z2-7]{16}(?![A-Z0-9])"),
    _token("GitHub token", "ghp_ gho_ ghu_ ghs_ ghr_", r"gh[pousr]_[A-Za-z0-9]{30,}"),
    _token("GitHub token", "github_pat_", r"github_pat_\w{22,}"),
    _token("GitLab token", "gl", r"gl(?:pat|dt|rt|oas|soat|ptt|ft|imt|agent|cbt|ffct)-[\w.-]{20,}"),
    _token("Slack token", "xox", r"xox[abceoprs]-[A-Za-z0-9-]{10,}"),
    _token("Slack token", "xapp-", r"xapp-\d-[A-Z0-9]{8,}-\d{8,}-[a-z0-9]{16,}"),
    _token("webhook", "hooks.slack.com", r"hooks\.slack\.com/(?:services|workflows|triggers)/[\w/+-]{30,}"),
    _token("webhook", "/api/webhooks/", r"discord(?:app)?\.com/api/webhooks/\d{15,}/[\w-]{40,}"),
    _token("webhook", ".webhook.office.com", r"[\w-]{1,64}\.webhook\.office\.com/webhookb2/[\w@/-]{40,}"),
    _token("Stripe key", "k_live_ k_test_ k_prod_", r"[srp]k_(?:live|test|prod)_[A-Za-z0-9]{16,}"),
    _token("Stripe key", "whsec_", r"whsec_[A-Za-z0-9+/=]{24,}"),
    _token("model provider key", "sk-", r"sk-(?:ant|proj|svcacct|admin|or|lf|None)-[\w-]{20,}"),
    _token("model provider key", "sk-", r"sk-[A-Za-z0-9]{20,}"),
    _token("model provider key", "r8_", r"r8_[A-Za-z0-9]{37}"),
    _token("model provider key", "gsk_", r"gsk_[A-Za-z0-9]{40,}"),
    _token("model provider key", "pplx-", r"pplx-[A-Za-z0-9]{40,}"),
    _token("model provider key", "xai-", r"xai-[A-Za-z0-9]{60,}"),
    _token("Hugging Face token", "hf_", r"(?:hf|api_org)_[A-Za-z0-9]{30,}"),
    _token("Google key", "AIza", r"AIza[\w-]{35}"),
    _token("Google token", "ya29.", r"ya29\.[\w-]{20,}"),
    _token("Google secret", "GOCSPX-", r"GOCSPX-[\w-]{24,}"),
    _token("package registry token", "npm_", r"npm_[A-Za-z0-9]{36}"),
    _token("package registry token", "pypi-", r"pypi-[\w-]{50,}"),
    _token("package registry token", "rubygems_", r"rubygems_[a-f0-9]{48}"),
    _token("package registry token", "dckr_", r"dckr_(?:pat|oat)_[\w-]{20,}"),
    _token("package registry token", "cio", r"cio[A-Za-z0-9]{32}(?![A-Za-z0-9])"),
    _token("cloud token", "dop_v1_ doo_v1_ dor_v1_", r"do[opr]_v1_[a-f0-9]{64}"),
    _token("cloud token", "hvs. hvb. hvr.", r"hv[sbr]\.[\w-]{24,}"),
    _token("cloud token", "dapi", r"dapi[a-f0-9]{32}"),
    _token("cloud token", "atlasv1", r"[A-Za-z0-9]{14}\.atlasv1\.[\w=-]{60,}"),
    _token("cloud token", "HRKU-", r"HRKU-[\w-]{30,}"),
    _token("cloud token", "pul-", r"pul-[a-f0-9]{40}"),
    _token("cloud token", "dp.", r"dp\.(?:pt|st|ct|sa|scim|audit)\.[\w.-]{40,}"),
    _token("cloud token", "fo1_", r"fo1_[\w-]{40,}"),
    _token("cloud token", "sbp_", r"sbp_[a-f0-9]{40}"),
    _token("Shopify token", "shpat_ shpca_ shppa_ shpss_", r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}"),
    _token("mail service key", "SG.", r"SG\.[\w-]{20,24}\.[\w-]{39,50}"),
    _token("mail service key", "key-", r"key-[a-f0-9]{32}(?![a-f0-9])"),
    _token("mail service key", "-us", r"[a-f0-9]{32}-us\d{1,2}(?!\d)"),
    _token("mail service key", "xkeysib-", r"xkeysib-[a-f0-9]{64}-\w{16}"),
    _token("telephony key", "SK", r"SK[a-f0-9]{32}(?![a-f0-9])"),
    _token("work tracker token", "lin_", r"lin_(?:api|oauth)_[A-Za-z0-9]{30,}"),
    _token("work tracker token", "ATATT3", r"ATATT3[\w=-]{60,}"),
    _token("work tracker token", "ntn_", r"ntn_[A-Za-z0-9]{40,}"),
    _token("work tracker token", "figd_", r"figd_[\w-]{30,}"),
    _token("work tracker token", "PMAK-", r"PMAK-[a-f0-9]{24}-[a-f0-9]{34}"),
    _token("monitoring token", "glsa_ glc_", r"glsa_[A-Za-z0-9]{32}_[a-f0-9]{8}|glc_[A-Za-z0-9+/]{32,}"),
    _token("monitoring token", "NRAK-", r"NRAK-[A-Z0-9]{27}"),
    _token("monitoring token", "sntr", r"sntr[yu]s?_[\w=+/]{40,}"),
    _token("chat bot token", ":AA", r"\d{8,10}:AA[\w-]{32,34}(?![\w-])"),
    # The lookbehind makes the pattern try each run of letters and hyphens once, from its start.
    _token("web token", "eyJ", r"(?<![\w-])eyJ[\w-]{8,}\.(?:eyJ[\w-]{8,}\.[\w-]*|[\w-]*\.[\w-]+\.[\w-]+\.[\w-]+)"),
    _token("private key", "-----BEGIN", r"-----BEGIN (?:[A-Z0-9]{1,16} ){0,3}PRIVATE KEY(?: BLOCK)?-----"),
    _token("private key", "PuTTY-User-Key-File", r"PuTTY-User-Key-File-\d"),
    _token("private key", "AGE-SECRET-KEY-1", r"AGE-SECRET-KEY-1[A-Z0-9]{50,}"),
    _token("private key", "prv", r"[xyz]prv[A-HJ-NP-Za-km-z1-9]{100,}"),
)
_LABELLED_RULES = (
    SecretRule(
        "chat bot token",
        (".",),
        r"(?<=[A-Za-z\d]{23})\.[\w-]{6}\.(?P<value>[\w-]{27,40})(?![\w-])",
        check=_is_random_value,
    ),
    _labelled(
        "credentials in a URL",
        "://",
        r"://[^\s:/@?#\"'<>]{0,128}:(?P<value>[^\s/@\"'<>]{3,256})@[\w.\[-]",
        _is_literal,
    ),
    _labelled("authorization header", "bearer", rf"bearer[\s:=]{{1,4}}[\"']?(?P<value>{_VALUE})", _is_random_value),
    _labelled(
        "authorization header",
        "authorization",
        r"authorization[\"']?\s{0,4}[:=]\s{0,4}[\"']?(?:basic|token|apikey|digest)\s{1,4}(?P<value>[\w+/.~=-]{12,})",
        _is_literal,
    ),
    _labelled(
        "login file", "login", r"\blogin\s{1,16}\S{1,128}\s{1,16}password\s{1,16}(?P<value>\S{4,256})", _is_literal
    ),
    _labelled(
        "command line",
        "-u",
        r"\bcurl\b[^\n]{0,256}\s-u\s{0,4}[\"']?[\w.@-]{1,64}:(?P<value>[^\s\"']{4,128})",
        _is_literal,
    ),
    _labelled(
        "command line",
        "--",
        r"--(?:password|passwd|token|api-?key|secret|secret-key|client-secret|access-key)[ =][\"']?"
        r"(?P<value>[^\s\"']{6,512})",
        _is_password,
    ),
    _labelled(
        "passphrase",
        "passw passphrase passcode",
        r"(?:passw(?:or)?d|passphrase|passcode)[\"']?\s{0,4}(?::=|=>|[:=])\s{0,4}[\"'](?P<value>[^\"'\n]{6,128})[\"']",
        _is_password,
    ),
    _labelled(
        "assigned secret",
        "key secret token cred pass pwd auth signature",
        rf"(?::=|=>|[:=]|(?<=\s)(?:is|was)(?=\s))\s{{0,16}}[\"'`\\]{{0,4}}(?=(?P<value>{_VALUE}))",
        _is_assigned_secret,
    ),
)
RULES: tuple[SecretRule, ...] = (*_CONTRACT_RULES, *_TOKEN_RULES, *_LABELLED_RULES)
_RULES_BY_HINT = tuple((hint, rule) for rule in RULES for hint in rule.hints)
