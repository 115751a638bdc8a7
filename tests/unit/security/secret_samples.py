"""Generated secrets in notes, and ordinary texts of developers; the same on every machine."""

import ast
import base64
import json
import random
import string
import sysconfig
from collections.abc import Callable, Iterator
from pathlib import Path

from loadtests.lib import corpus

LOWER = string.ascii_lowercase
UPPER = string.ascii_uppercase
DIGITS = string.digits
WORD = LOWER + UPPER + DIGITS
URL_SAFE = WORD + "-_"
HEX = "0123456789abcdef"
BASE32 = UPPER + "234567"
Chance = random.Random


def some(chance: Chance, letters: str, count: int) -> str:
    return "".join(chance.choices(letters, k=count))


def b64(chance: Chance, size: int) -> str:
    return base64.b64encode(chance.randbytes(size)).decode()


def web_token(chance: Chance) -> str:
    parts = [{"alg": chance.choice(["HS256", "RS256", "none"]), "typ": "JWT"}, {"sub": some(chance, DIGITS, 8)}]
    shown = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts]
    return ".".join([*shown, some(chance, URL_SAFE, chance.choice([43, 86, 342]))])


def private_key(chance: Chance) -> str:
    kind = chance.choice(["RSA ", "EC ", "OPENSSH ", "DSA ", "ENCRYPTED ", "", "PGP "])
    end = " BLOCK" if kind == "PGP " else ""
    body = "\n".join(b64(chance, 48) for _ in range(chance.randint(3, 12)))
    return f"-----BEGIN {kind}PRIVATE KEY{end}-----\n{body}\n-----END {kind}PRIVATE KEY{end}-----"


Kind = Callable[[Chance], str]
# The forms are those the issuers document.
BARE: dict[str, Kind] = {
    "aws key id": lambda c: c.choice(["AKIA", "ASIA"]) + some(c, BASE32, 16),
    "github classic": lambda c: c.choice(["ghp_", "gho_", "ghu_", "ghs_", "ghr_"]) + some(c, WORD, 36),
    "github fine-grained": lambda c: f"github_pat_{some(c, WORD, 22)}_{some(c, WORD, 59)}",
    "gitlab": lambda c: c.choice(["glpat-", "gldt-", "glrt-"]) + some(c, URL_SAFE, 20),
    "slack bot": lambda c: f"xoxb-{some(c, DIGITS, 12)}-{some(c, DIGITS, 12)}-{some(c, WORD, 24)}",
    "slack user": lambda c: f"xoxp-{some(c, DIGITS, 11)}-{some(c, DIGITS, 11)}-{some(c, HEX, 32)}",
    "slack hook": lambda c: (
        f"https://hooks.slack.com/services/T{some(c, UPPER, 8)}/B{some(c, UPPER, 8)}/{some(c, WORD, 24)}"
    ),
    "stripe": lambda c: c.choice(["sk_live_", "rk_live_", "sk_test_"]) + some(c, WORD, c.choice([24, 99])),
    "stripe hook": lambda c: f"whsec_{some(c, WORD, 32)}",
    "openai": lambda c: f"sk-{some(c, WORD, 20)}T3BlbkFJ{some(c, WORD, 20)}",
    "openai project": lambda c: f"sk-proj-{some(c, URL_SAFE, 74)}T3BlbkFJ{some(c, URL_SAFE, 74)}",
    "anthropic": lambda c: f"sk-ant-api03-{some(c, URL_SAFE, 93)}AA",
    "hugging face": lambda c: f"hf_{some(c, LOWER + UPPER, 34)}",
    "google key": lambda c: f"AIza{some(c, URL_SAFE, 35)}",
    "google secret": lambda c: f"GOCSPX-{some(c, URL_SAFE, 28)}",
    "google token": lambda c: f"ya29.{some(c, URL_SAFE, 120)}",
    "npm": lambda c: f"npm_{some(c, WORD, 36)}",
    "pypi": lambda c: f"pypi-AgEIcHlwaS5vcmc{some(c, URL_SAFE, 150)}",
    "docker": lambda c: f"dckr_pat_{some(c, URL_SAFE, 27)}",
    "digital ocean": lambda c: f"dop_v1_{some(c, HEX, 64)}",
    "vault": lambda c: f"hvs.{some(c, URL_SAFE, 90)}",
    "databricks": lambda c: f"dapi{some(c, HEX, 32)}",
    "shopify": lambda c: f"shpat_{some(c, HEX, 32)}",
    "sendgrid": lambda c: f"SG.{some(c, URL_SAFE, 22)}.{some(c, URL_SAFE, 43)}",
    "mailgun": lambda c: f"key-{some(c, HEX, 32)}",
    "mailchimp": lambda c: f"{some(c, HEX, 32)}-us{c.randint(1, 21)}",
    "twilio": lambda c: f"SK{some(c, HEX, 32)}",
    "telegram": lambda c: f"{some(c, DIGITS[1:], 9)}:AA{some(c, URL_SAFE, 33)}",
    "discord": lambda c: f"M{some(c, WORD, 23)}.{some(c, URL_SAFE, 6)}.{some(c, URL_SAFE, 27)}",
    "linear": lambda c: f"lin_api_{some(c, WORD, 40)}",
    "age": lambda c: f"AGE-SECRET-KEY-1{some(c, UPPER + DIGITS, 58)}",
    "postgres url": lambda c: f"postgres://{some(c, LOWER, 6)}:{some(c, WORD, 14)}@db.internal:5432/app",
    "mongo url": lambda c: f"mongodb+srv://{some(c, LOWER, 6)}:{some(c, URL_SAFE, 18)}@cluster0.abcde.mongodb.net",
    "redis url": lambda c: f"redis://:{some(c, WORD, 20)}@cache:6379/0",
    "web token": web_token,
    "private key": private_key,
    "bearer": lambda c: f"Authorization: Bearer {some(c, URL_SAFE, 40)}",
    "basic": lambda c: f"Authorization: Basic {b64(c, 18)}",
    "curl": lambda c: f"curl -s -u admin:{some(c, WORD, 12)} https://ci.internal/job",
}
# Values without a form of their own, which only their name gives away.
NAMES = (
    "API_KEY",
    "apiKey",
    "api-key",
    "access_token",
    "AUTH_TOKEN",
    "SECRET_KEY",
    "client_secret",
    "secretKey",
    "DB_PASSWORD",
    "password",
    "AWS_SECRET_ACCESS_KEY",
    "refreshToken",
    "webhook_secret",
    "SIGNING_KEY",
    "encryption_key",
    "NPM_TOKEN",
    "x-api-key",
    "private_key",
    "AccountKey",
    "STRIPE_SECRET",
    "jwtSecret",
    "auth_key",
)
VALUES: tuple[Kind, ...] = (
    lambda c: some(c, WORD, 32),
    lambda c: some(c, HEX, 32),
    lambda c: some(c, HEX, 64),
    lambda c: some(c, WORD, 20),
    lambda c: some(c, LOWER + DIGITS, 40),
    lambda c: b64(c, 30),
    lambda c: b64(c, 64),
    lambda c: some(c, URL_SAFE, 43),
    lambda c: "-".join(some(c, HEX, n) for n in (8, 4, 4, 4, 12)),
)
ASSIGNMENTS = (
    "{name}={value}",
    "export {name}={value}",
    '{name} = "{value}"',
    "{name}: {value}",
    '"{name}": "{value}"',
    "{name}='{value}'",
    "const {name} = '{value}';",
    '{name} := "{value}"',
    "set {name} to this: {name}={value}",
)
AROUND = (
    "{secret}",
    "Use {secret} for staging",
    "Decision: the deploy job reads it from CI.\n\n{secret}\n\nRotate in May.",
    "the key is `{secret}` (ask Ada)",
    "```sh\n{secret}\n```",
    "login works with {secret}, tested today",
    "2026-01-04 10:02 DEBUG http {secret}",
    "- step one\n- {secret}\n- step three",
)


def secrets(count: int, seed: int = 1) -> Iterator[tuple[str, str]]:
    """`count` texts that hold a secret, each with the kind of it; half of them have a form of their own."""
    chance = Chance(seed)
    kinds = list(BARE.items())
    for number in range(count):
        if number % 2:
            name, make = kinds[number // 2 % len(kinds)]
            secret = make(chance)
        else:
            name = chance.choice(NAMES)
            secret = chance.choice(ASSIGNMENTS).format(name=name, value=chance.choice(VALUES)(chance))
        yield name, chance.choice(AROUND).format(secret=secret)


# Texts that look a little like a secret and are none.
NEAR: tuple[Kind, ...] = (
    lambda c: f"Fixed in {some(c, HEX, 40)}, see #{c.randint(1, 999)}",
    lambda c: f"sha256:{some(c, HEX, 64)} is the digest of the image",
    lambda c: f"request {'-'.join(some(c, HEX, n) for n in (8, 4, 4, 4, 12))} took {c.randint(1, 900)} ms",
    lambda c: f"The API key is read from the vault by {c.choice(['ops', 'CI', 'the sidecar'])}, never from a file",
    lambda c: f"api_key = os.environ['{c.choice(['SERVICE', 'BILLING', 'MAPS'])}_API_KEY']",
    lambda c: f"token = request.headers.get('X-Auth-Token')  # line {c.randint(1, 900)}",
    lambda c: f"const token = await getAccessToken(user.id, {c.randint(1, 60)})",
    lambda c: f"token bucket with {c.randint(10, 500)} tokens, refill {c.randint(1, 9)} a second",
    lambda c: f"The secret santa list is in the wiki, page {c.randint(1, 99)}",
    lambda c: f"session opencode:2026-01-{c.randint(1, 28):02} started, session_id kept by the client",
    lambda c: f"ssh-ed25519 {b64(c, 51)} ada@laptop",
    lambda c: "-----BEGIN CERTIFICATE-----\n" + b64(c, 48) + "\n-----END CERTIFICATE-----",
    lambda c: "-----BEGIN PUBLIC KEY-----\n" + b64(c, 48) + "\n-----END PUBLIC KEY-----",
    lambda c: f"next_page_token={some(c, WORD, 24)} goes back as is",
    lambda c: f'"integrity": "sha512-{b64(c, 64)}"',
    lambda c: f"data:image/png;base64,{b64(c, 60)}",
    lambda c: f"git clone https://github.com/acme/repo-{c.randint(1, 99)}.git && cd repo",
    lambda c: f"postgres://localhost:5432/app_{c.randint(1, 99)} is the test database",
    lambda c: f"pip install package=={c.randint(1, 9)}.{c.randint(0, 30)}.{c.randint(0, 9)}",
    lambda c: f"Reset flow: the user gets a mail, the password is hashed with argon2, {c.randint(1, 9)} rounds",
    lambda c: f"def verify_token(token: str, leeway: int = {c.randint(1, 60)}) -> Claims: ...",
    lambda c: f"AUTH_TOKEN=${{{{ secrets.DEPLOY_{c.randint(1, 9)} }}}}",
    lambda c: f"api_key: <your-api-key-{c.randint(1, 9)}>",
    lambda c: f"key=user:{c.randint(1, 9999)}:profile, ttl={c.randint(60, 3600)}",
    lambda c: f"cache key {some(c, HEX, 32)} missed {c.randint(1, 50)} times",
    lambda c: f"primary key (id), foreign key (account_id) references account, {c.randint(1, 20)} rows",
    lambda c: f"signature: def handler(tx, request) -> Result, {c.randint(1, 40)} lines",
    lambda c: f"skip the sk-learn import, risk-free; task-{c.randint(1, 999)}",
    lambda c: f"Bearer tokens expire after {c.randint(1, 60)} minutes; refresh tokens after {c.randint(1, 30)} days",
    lambda c: f"keyboard shortcut ctrl-{c.choice(LOWER)}, monkey patch, tokenizer v{c.randint(1, 9)}",
    lambda c: f"color #{some(c, HEX, 6)}, offset 0x{some(c, HEX, 8)}, port {c.randint(1000, 9999)}",
    lambda c: f"AKIA is the prefix of AWS key ids, ghp_ that of GitHub ({c.randint(1, 9)})",
)


def ordinary(count: int, seed: int = 1) -> Iterator[tuple[str, str]]:
    """`count` texts without a secret, each with its kind: prose and code of Python itself, notes, near misses."""
    chance = Chance(seed)
    prose, code = _library()
    notes = [memory.text for memory in corpus.memories(count // 4 + 1)]
    sources: list[tuple[str, Kind]] = [
        ("documentation", lambda c: c.choice(prose)),
        ("code", lambda c: c.choice(code)),
        ("note", lambda c: c.choice(notes)),
        ("near miss", lambda c: c.choice(NEAR)(c)),
    ]
    for number in range(count):
        name, make = sources[number % len(sources)]
        yield name, make(chance)


def _library() -> tuple[list[str], list[str]]:
    """Paragraphs of docstrings and stretches of code of Python's own modules, in the order of their names."""
    prose: list[str] = []
    code: list[str] = []
    for file in sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py")):
        text = file.read_text(encoding="utf-8")
        lines = text.splitlines()
        code += ["\n".join(lines[at : at + 12]) for at in range(0, len(lines) - 12, 60)]
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and (words := ast.get_docstring(node)):
                prose += [part.strip() for part in words.split("\n\n") if len(part) > 40]
    return prose, code
