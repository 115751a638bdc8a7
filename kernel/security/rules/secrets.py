"""Finds and redacts secrets: keys, tokens, passwords and private keys, by their form or by the name before them.

One set of rules for every dialect, so that what one refuses to store no other keeps in a log."""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from kernel.core.lazy_regex import regex

_SECRET_NAME = regex(
    "(?:(?:api|access|secret|account|auth|signing|encryption|private|master|shared|license|app|application|service)"
    "[ _.-]?key|secret|token|credential|passw(?:or)?d|passphrase|pass|pwd|auth|signature)"
    r"s?[\"'`\]\\]{0,4}\s{0,16}$",
    re.I,
)
_SECRET_NAME_LENGTH = 48
_ENVIRONMENT_NAME = regex(r"(?<![A-Za-z0-9])[A-Z][A-Z0-9_]*(?:TOKEN|SECRET|KEY|PASS|PWD|AUTH|CREDENTIALS?)$")
_ENVIRONMENT_VALUE = regex(r"(?=[^\d]{0,512}\d)(?=[^A-Za-z]{0,512}[A-Za-z])[\w+.~!@#$%^&*=-]{12,512}")
VALUE = r"[A-Za-z0-9+/_.~!@#$%^&*-]{8,512}={0,2}"
_PLACEHOLDER = regex(
    r"example|sample|your|change.?(?:me|it)|placeholder|replace|redacted|dummy|insert|todo|x{4,}|\*{3,}|\.{3}|"
    r"environ|getenv|\benv\b|config|settings|^\$|<|%\(|none|null|true|false|undefined|secrets?[./]",
    re.I,
)
# Values that another program puts in: templates, parameters of a query, references to a vault or a variable.
_TEMPLATE = regex(
    r"\{[{%]|\[\[|[#%]\{|\{[a-z_][\w.]{0,64}\}|%\w{1,64}%|@@|__[a-z]|@microsoft\.|[@:][a-z_]{0,32}(?:pass|pw)\w{0,32}\Z"
    r"|\A@[a-z]{2,32}\(|(?:op|ssm|vault|arn|ref\+[a-z]{1,32}|keyring|keychain|awssm):|(?:var|local|data|module|vault)\.",
    re.I,
)
# A value of words with one of these among them says what belongs there: `wrong-password`, `tu-secreto-aqui`.
_TELLING_WORDS = frozenset(
    (
        "secret secrets secreto secreta segredo geheim key clave clé cle chave token schlüssel schluessel "
        "password passwd passwort kennwort passe contraseña contrasena senha parola wachtwoord here aqui aquí ici "
        "hier too test tests fake mock demo wrong invalid incorrect insecure generate denied"
    ).split()
)
_BLANKS_OF_WORDS = regex(r"[-_. ]+")
_WORD = regex(r"[^\W\d_]+\d{0,3}|\d{1,4}|1234\d{1,16}")
_YAML_TAG = regex(r"![A-Za-z][A-Za-z_/:.-]{0,64}")
_YAML_VALUE = regex(r"[ \t]+\S")
# Parts of a rule of validation, and the names with which it begins: `required|string|min:8`.
_RULE_PART = regex(r"[a-z_]{2,32}(?:[:=](?:[a-z_.]{1,40}|\d{1,4}))?|\d{1,4}", re.I)
_RULE_ENDS = regex(r"[|,;]")
_RULE_NAMES = frozenset(
    {
        *("bail", "required", "required_if", "required_with", "required_without", "nullable", "sometimes", "optional"),
        *("filled", "present", "confirmed", "string", "str", "min", "max", "between", "size", "same", "gte", "lte"),
        *("len", "min_length", "max_length", "minlength", "maxlength"),
    }
)
_VARIABLE = regex(r"\$\w{0,48}\Z")  # `$password: String!` of GraphQL
_DEFAULT_PASSWORD = regex(r"(?:my|db|test|some|the)?[_-]?(?:passw(?:or)?d|pass|pwd|secret)\d{0,3}", re.I)
# Tokens and keys of documentation: filled up, cut short, or with a word in their middle.
_FILLER = regex(r"x{6}|\*{3}|\.{3}|…|0{12}|example|\byour[-_ ]|[-_]here\b|placeholder", re.I)
_KEY_BODY = regex(r"[A-Za-z0-9+/=]{16}")
# Repetitions are bounded, so that the time is in proportion to the text.
# Values after the name of a secret that are none: code, a path, a range, a date, an algorithm, a word about it.
_NO_VALUE = regex(
    r"[/~.${}<>\[\](),;|&*=-]"
    r"|[a-z_.:]{1,64}[([{]"
    r"|[a-z]{0,64}(?:(?:[._]|::)[a-z]{0,64}){1,16}\Z"
    r"|(?:\d{1,3}-\d{1,3}|\d{4}-\d\d-\d\d)\Z"
    r"|(?:argon2[a-z]*|sha-?\d{1,3}|md5|pbkdf2.{0,64}|[bs]?crypt|base64|aes-?\d*|[hr]s256|oauth2?|utf-?8|v\d+)\Z"
    r"|(?:password|passwd|passphrase|passcode|pass|secret|token|string|text|bytes|varchar|integer|number|boolean|"
    r"hash|empty|blank|unknown|missing|wrong|hidden|rotation|reset|policy|changes?|"
    r"passwort|kennwort|contrase[ñn]a|senha|parola|wachtwoord|has[łl]o|heslo|lösenord|пароль)\Z"
    r"|[a-z'-]{0,64}(?:ed|ing|able|ible|al|ry|ive|ent|ect|id)\Z",
    re.I,
)
_TYPE_NAME = regex(
    r"(?:[A-Z][a-z]+){2,}[!?]?|(?i:(?:NS)?(?:string|text|password|secret|hash|bytes|char|varchar|any|object|data|id|int))[!?]+"
)
_PROSE = regex(
    r"\b(?:the|a|an|is|are|be|must|should|has|have|at|of|to|for|in|with|not|your|please|enter|required|characters)\b",
    re.I,
)
_UNIT = regex(r"[ \t]{1,16}(?:characters?|chars?|letters?|digits?|words?|bits?|bytes?|days?|rounds?|times)\b", re.I)
_END = regex(r"[.,;:)\]}?\"'`]{0,8}[ \t]{0,64}(?:\n|\Z)")
_MARKS = ".,;:)]}?\"'`"  # around a value, not part of it
_MIN_PASSWORD_LENGTH = 4
_LONGEST_USER = 130  # characters, with the signs around it
_MIN_WORD_LENGTH = 6  # of a password of letters alone
# Prefixes of tokens that are no secrets: cursors of lists, CSRF and idempotency tokens.
_SPACED_LETTER = regex(r"[^\W\d_\u0e00-\u0eff\u1100-\u11ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_HARMLESS_PREFIX = regex(r"(?:page|next|sync|cursor|continuation|resume|cancel|csrf|xsrf|idempotency)[_.-]?$", re.I)
_RUNS = regex(r"[A-Z]+|[a-z]+|[0-9]+")
_WORDS = regex(r"[A-Z]?[a-z]{3,}")
_MIN_TOKEN_LENGTH = 16
_MIN_ENTROPY_BITS = 3.0


def _is_stand_in(value: str) -> bool:
    if _PLACEHOLDER.search(value) or _TEMPLATE.match(value):
        return True
    words = _BLANKS_OF_WORDS.split(value.strip("!?.\"'`").casefold())
    return len(words) > 1 and not _TELLING_WORDS.isdisjoint(words) and all(map(_WORD.fullmatch, words))


def is_filler(match: re.Match[str]) -> bool:
    """Return whether a token or key of a fixed form is an example: filled up, cut short, or without its body."""
    if not match[0].startswith("-----BEGIN"):
        return _FILLER.search(match[0]) is not None
    head, _, rest = match[0][len("-----BEGIN") :].partition("-----")
    body, end, _ = rest.partition("-----END")
    return _FILLER.search(body) is not None or not (body.strip() if end else _KEY_BODY.search(body)) or not head


def _looks_random(value: str) -> bool:
    """Return whether a value looks random: long, digits mixed with letters, no name and no placeholder."""
    if len(value) < _MIN_TOKEN_LENGTH or _is_stand_in(value):
        return False
    counts = Counter(value)
    entropy = -sum(count / len(value) * math.log2(count / len(value)) for count in counts.values())
    digits = sum(letter.isdigit() for letter in value)
    in_words = sum(map(len, _WORDS.findall(value)))
    is_mixed = digits >= len(value) / 10 or in_words <= len(value) / 3
    return digits > 0 and is_mixed and entropy >= _MIN_ENTROPY_BITS and len(_RUNS.findall(value)) >= len(value) / 8 + 2


def is_random_value(match: re.Match[str]) -> bool:
    return _looks_random(match["value"])


def is_assigned_secret(match: re.Match[str]) -> bool:
    """Return whether a random-looking value is assigned to a name such as `api_key`."""
    value, before = match["value"], match.string[max(0, match.start() - _SECRET_NAME_LENGTH) : match.start()]
    if match[0] == "=" and _ENVIRONMENT_NAME.search(before) and _ENVIRONMENT_VALUE.fullmatch(value):
        return not _is_stand_in(value)
    if not _looks_random(value):
        return False
    name = _SECRET_NAME.search(before)
    return name is not None and not _HARMLESS_PREFIX.search(before[: name.start()])


def is_password(match: re.Match[str]) -> bool:
    """Return whether the text after a name such as `password:` is a secret, and no code, no placeholder and no text
    about it.
    """
    quoted = match["value"]
    is_quoted = quoted[0] in "\"'`" and quoted[-1] == quoted[0]
    value = quoted.strip("\"'`") if is_quoted else quoted.rstrip(_MARKS)
    # In the query of a URL, the next parameters say nothing about the password.
    if len(value) < _MIN_PASSWORD_LENGTH or _is_stand_in(value.partition("&")[0]) or _is_rule(value):
        return False
    if " " in value:
        return match["sign"] not in {"->", "→"} and not _PROSE.search(value)
    if is_quoted and not value.isalpha():
        return True
    if _NO_VALUE.match(value) or _TYPE_NAME.fullmatch(value) or _UNIT.match(match.string, match.end()):
        return False
    if not is_quoted and match["sign"] == ":" and (_is_tag(match) or _is_variable(match)):
        return False
    if not re.fullmatch(r"[^\W\d]+(?:['-][^\W\d]+)*", value):
        return True
    # A word alone: a password if it is assigned, or if the line ends with it.
    is_assigned = match["sign"].endswith("=")
    return len(value) >= _MIN_WORD_LENGTH and (
        is_quoted or is_assigned or _END.match(match.string, match.end()) is not None
    )


def _is_rule(value: str) -> bool:
    """Return whether a value is a rule for values: a pattern, or names of rules, at least two of them or a bound."""
    parts = [part.strip() for part in _RULE_ENDS.split(value)]
    first, *bound = re.split("[:=]", parts[0].lower())
    is_of_rules = first in _RULE_NAMES and (len(parts) > 1 or bound) and all(map(_RULE_PART.fullmatch, parts))
    return bool(is_of_rules) or (value.startswith("^") and value.endswith("$"))


def _is_tag(match: re.Match[str]) -> bool:
    """Return whether a value is a tag of YAML before the value itself: `!vault |`, `!Ref Name`."""
    return bool(_YAML_TAG.fullmatch(match["value"]) and _YAML_VALUE.match(match.string, match.end()))


def _is_variable(match: re.Match[str]) -> bool:
    return _VARIABLE.search(match.string[max(0, match.start() - _SECRET_NAME_LENGTH) : match.start()]) is not None


def is_strong_password(match: re.Match[str]) -> bool:
    """Return whether the text after a short name such as `pass:`, which often means something else, looks like a
    password.
    """
    value = match["value"].strip(_MARKS)
    is_mixed = any(letter.isdigit() for letter in value) and any(letter.isalpha() for letter in value)
    return is_mixed and len(value) >= _MIN_WORD_LENGTH and not re.search(r"[/_]", value) and is_password(match)


def is_password_elsewhere(match: re.Match[str]) -> bool:
    """Return whether the text after a word for a password in another language looks like a password. Letters of a
    script without spaces may be those of a sentence: `密码：至少8位`.
    """
    return bool(_SPACED_LETTER.search(match["value"])) and is_strong_password(match)


def is_plain_value(match: re.Match[str]) -> bool:
    """Return whether a value can be a key: no call, no attribute and no name in code, and no word in a sentence."""
    value, after = match["value"].strip("\"'\\"), match.string[match.end() : match.end() + 1]
    if after in {"(", ".", "["} or _is_stand_in(value) or _NO_VALUE.match(value):
        return False
    return not value.isalpha() or match["sign"] == "=" or _END.match(match.string, match.end()) is not None


def is_literal(match: re.Match[str]) -> bool:
    """Return whether the value is neither a placeholder nor the word for a password, nor the name of the user."""
    value, before = match["value"], match.string[max(0, match.start("value") - _LONGEST_USER) : match.start("value")]
    is_user = before.endswith(f"{value}:") and not before[: -len(value) - 1][-1:].isalnum()
    return not (is_user or _is_stand_in(value) or _DEFAULT_PASSWORD.fullmatch(value))


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
# Words for a password in the other languages that `recall` reads, and the signs and verbs before the password.
_ELSEWHERE = (
    "passwort,kennwort,zugangscode,mot de passe,contraseña,contrasena,senha,palavra-passe,parola,wachtwoord,hasło,"
    "heslo,lösenord,adgangskode,kodeord,passord,salasana,jelszó,şifre,parolă,пароль,κωδικός,סיסמה,"
    "كلمة المرور,كلمة السر,पासवर्ड,รหัสผ่าน,mật khẩu,kata sandi,密码,密碼,口令,パスワード,暗証番号,비밀번호,암호"
).split(",")
_SIGN_ELSEWHERE = (
    r"""["'`»”]{0,2}[\s\u200b]{0,4}(?P<sign>[:=：＝]|[—–-](?=\s)|(?<=\s)(?:ist|lautet|est|es|è|é|to|jest|je|är|er|on|is|"""
    r"""adalah|это|है|هي|הוא)(?=\s)|は|是|为|為|은|는)[\s\u3000「『“«„]{0,4}"""
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
    SecretRule(
        "password",
        tuple(_ELSEWHERE),
        rf"(?:{'|'.join(_ELSEWHERE)}){_SIGN_ELSEWHERE}{_GIVEN}",
        fold=True,
        check=is_password_elsewhere,
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
        "credentials in a URL", "://", r"://[^\s:/@?#\"'<>]{0,128}:(?P<value>[^\s/\"'<>]{2,256})@[\w.\[-]", is_literal
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
