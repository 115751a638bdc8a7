"""Secrets are found and ordinary texts kept: samples of the contract, measured rates, linear time."""

import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handlers.sessions.secret_scan import RULES, SecretRule, find_secret
from tests.catalogue import Catalogue
from tests.unit.handlers.sessions import samples

RECALL = 0.95
FALSE_POSITIVES = 0.005


@pytest.mark.parametrize(
    "text",
    [
        "api_key=abcd1234abcd1234",
        "secret=abcdefghijkl",
        "password=123456",
        "API-KEY : 'abcd1234abcd1234'",
        "Password :",
        "apikey: abcd_1234/abcd^12",
        "SECRET = \\abcdefghijkl",
        "api_key=sk-abcdef-ghijkl-mnopqr",
        "x\npassword=\ny",
    ],
)
def test_the_patterns_of_the_contract_match(text: str) -> None:
    assert find_secret([text])


@pytest.mark.parametrize(
    "text",
    [
        "all good here",
        "",
        "api_key=short",
        "secret=short",
        "the password is asked for",
        "passwords are hashed",
        "secret ingredient",
        "api key rotation",
        "token",
        "-----BEGIN CERTIFICATE-----",
        "https://user@example.com/x",
        "postgres://app:${DB_PASSWORD}@db/app",
        "AKIA",
        "eyJ",
        "see #123 and MEM-12",
    ],
)
def test_texts_about_secrets_are_kept(text: str) -> None:
    assert find_secret([text]) == ""


def test_one_secret_among_many_texts_is_found_by_rule() -> None:
    assert find_secret(["fine", "", "ghp_" + "a1B2" * 9]) == "GitHub token"


@pytest.mark.slow
def test_secrets_are_found_and_ordinary_texts_are_kept(catalogue: Catalogue) -> None:
    missed, kinds = Counter[str](), Counter[str]()
    for kind, text in samples.secrets(8000):
        kinds[kind] += 1
        missed[kind] += not find_secret([text])
    wrong, texts = Counter[str](), Counter[str]()
    for kind, text in samples.ordinary(20_000):
        texts[kind] += 1
        wrong[kind] += bool(find_secret([text]))
    recall = 1 - missed.total() / kinds.total()
    false = wrong.total() / texts.total()
    print(f"\nsecrets: recall {recall:.4f} of {kinds.total()} in {len(kinds)} kinds; missed {dict(+missed)}")
    print(f"ordinary texts: {false:.5f} of {texts.total()} taken for secrets; {dict(+wrong)} of {dict(texts)}")
    assert recall >= RECALL
    assert false <= FALSE_POSITIVES
    secrets, ordinary = f"{recall:.2%} of {len(kinds)} kinds found", f"{false:.3%} taken for secrets"
    catalogue("S18", injected="secrets in notes", times=kinds.total(), outcome=secrets)
    catalogue("S18", injected="ordinary texts of developers", times=texts.total(), outcome=ordinary)
    assert {kind: missed[kind] for kind in samples.BARE if missed[kind] > kinds[kind] / 5} == {}


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule.check is None], ids=lambda rule: rule.pattern)
def test_every_match_contains_a_hint(rule: SecretRule) -> None:
    """A pattern is skipped in texts without its hints, so a wrong hint would disable it."""
    wide = [text for _, text in samples.secrets(2000, seed=7)]
    for text in wide:
        if re.search(rule.pattern, text, re.I if rule.fold else 0):
            where = text.lower() if rule.fold else text
            assert any(hint in where for hint in rule.hints)


@given(st.text(max_size=300))
def test_any_text_is_scanned_without_error(text: str) -> None:
    assert isinstance(find_secret([text]), str)


PIECES = [
    "key=",
    "token: ",
    "eyJ-",
    "eyJaaaaaaaa-",
    "://",
    "a:",
    "password",
    "eyJ",
    "eyJaaaaaaaa.",
    "-----BEGIN ",
    "curl -u ",
    "--token ",
    "bearer ",
    "secret ",
    ".aaaaaa.",
    "sk-",
    "login x password ",
    "xoxb-",
    "a.",
    "://a:",
    'passphrase = "',
    "is ",
    "=",
    "[",
    "\n",
    "authorization: basic ",
    "hooks.slack.com/services/",
    "0:AA",
]


@pytest.mark.slow
@pytest.mark.parametrize("piece", PIECES)
def test_scan_time_is_linear(piece: str) -> None:
    """A pattern that backtracks would not finish on a megabyte of repeated prefixes."""
    find_secret([(piece * (1_000_000 // len(piece)))[:1_000_000]])
