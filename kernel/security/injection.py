"""Which texts were written to steer the agent that reads them rather than to tell it something, by their words.

A rule is a chain of word classes, each at most so many other words after the one before, as in `IGNORE 2 EARLIER`.
Every word is looked at once, so that the time is in proportion to the text. What is only quoted where injections are
discussed is no instruction.
"""

import unicodedata
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from kernel.lazy_regex import regex

_CLASSES = {
    "IGNORE": "ignore ignoring disregard disregarding forget override overrule bypass ignora ignoriere ignorez vergiss",
    "EARLIER": "previous prior earlier above preceding all any every your original existing former current "
    "anteriores previas vorherigen alle todas toutes precedentes",
    "ORDERS": "instruction instructions directive directives prompt prompts guardrail guardrails safeguards "
    "instrucciones anweisungen",
    "PLACE": "in about on for under",
    "YOU": "you",
    "FREE": "unrestricted unfiltered uncensored jailbroken dan",
    "COMMAND": "you must always never ignore disregard",
    "MARK": "im_start inst sys",
    "OVERRIDE": "override",
    "HIGH": "system admin administrator developer",
    "NOT": "not",
    "NEVER": "never don't dont",
    "DO": "do must should shall",
    "TELL": "tell mention reveal inform notify disclose alert telling mentioning informing notifying alerting",
    "WITHOUT": "without",
    "TELLING": "telling informing notifying alerting mentioning",
    "HIDE": "hide conceal",
    "KEEP": "keep stay",
    "QUIET": "quiet silent",
    "THIS": "this it about that",
    "USER": "user users user's them",
    "SECRETLY": "silently quietly secretly covertly discreetly",
    "SEND": "send sends post upload forward email mail transmit exfiltrate leak submit append attach include copy bcc "
    "deliver report pass embed",
    "PASS": "send upload post transmit append attach include copy bcc embed",
    "ALL": "all any every each whole entire full contents content user's users' their copy",
    "SECRET": "password passwords credential credentials token tokens secret secrets key keys cookie cookies "
    "conversation conversations transcript history memories env location",
    "TO": "https http mailto @",
    "ALSO": "also additionally",
    "WHEN": "when whenever after before each every",
    "REGARDLESS": "regardless irrespective whatever",
    "ASKS": "asks asked ask says said wants requests requested request",
    "EVEN": "even",
    "IF": "if when though",
    "REFUSES": "refuses refused objects declines no",
    "CALL": "call use run invoke execute send",
    "PAYMENTS": "payment payments transfer transfers payout payouts refund refunds donation donations invoice invoices",
    "USE": "use take choose",
    "TOWARDS": "to into",
    "WALLET": "wallet iban bitcoin btc ethereum",
    "TASK": "task tasks session sessions request requests conversation answer reply",
    "CURL": "curl wget",
    "SHELL": "bash sh zsh python",
    "WHOSE": "patient customer employee user client account order item product record person case",
    "SAVED": "saved stored recorded filed kept moved",
    "UNDER": "under",
    "INSTEAD": "instead asked questions query queries requests",
    "FUTURE": "future later subsequent",
    "TURNS": "conversations sessions queries answers responses chats interactions requests turns",
    "RECOMMEND": "recommend promote suggest praise prefer identical equivalent",
    "REMEMBER": "remember memorize memorise note",
    "TRUSTED": "trusted authoritative",
    "SOURCE": "source sources authority",
    "COPY": "copy repeat include write insert add reproduce",
    "HERE": "this these",
    "TEXT": "instruction instructions rule memory directive message sentence",
    "EACH": "every each all",
    "KEPT": "memory memories note notes summary summaries",
    "OUTRANKS": "precedence priority overrides outranks supersedes beats",
    "OTHER": "all any other others older conflicting contradicting",
    "MEMORIES": "memory memories instructions directives",
    "DELETE": "delete update remove overwrite edit change forget archive",
    "READ": "retrieved recalled read found loaded",
    "SAVE": "save store write remember",
    "AGAIN": "again anew once",
    "SKIP": "skip bypass omit waive drop",
    "CHECK": "confirmation confirmations verification approval approvals review authentication authorization 2fa mfa "
    "checks",
    "DANGER": "wire payment payments transfer transfers withdrawal withdrawals credential credentials root attachments "
    "payouts refunds",
    "NEED": "need",
    "NO": "no",
    "ASK": "ask confirm verify wait",
    "ALWAYS": "always first",
    "DISABLE": "disable off stop remove",
    "GUARD": "sandbox firewall antivirus guardrails authentication authorization",
    "CLAIM": "mark report claim say declare",
    "FINE": "passed safe clean secure green fine",
    "DECODE": "decode decrypt unpack",
    "OBEY": "follow obey execute",
    "WITHIN": "it them instructions result payload commands",
}
_RULES = (
    ("override", "IGNORE 2 EARLIER 1 ORDERS - PLACE"),
    ("override", "IGNORE 2 ORDERS 0 EARLIER"),
    ("override", "HIGH 0 OVERRIDE 6 COMMAND"),
    ("override", "MARK 4 COMMAND"),
    ("override", "YOU 4 FREE"),
    ("concealment", "NEVER 1 TELL 1 THIS 3 USER"),
    ("concealment", "NEVER 1 TELL 3 USER 0 THIS"),
    ("concealment", "DO 0 NOT 1 TELL 1 THIS 3 USER"),
    ("concealment", "DO 0 NOT 1 TELL 3 USER 0 THIS"),
    ("concealment", "KEEP 0 QUIET 0 THIS"),
    ("concealment", "SEND 9 WITHOUT 1 TELLING 3 USER"),
    ("concealment", "HIDE 2 THIS 3 USER"),
    ("concealment", "SECRETLY 0 PASS"),
    ("concealment", "SECRETLY 0 SEND 12 TO"),
    ("exfiltration", "SEND 2 ALL 2 SECRET 14 TO"),
    ("redirection", "REGARDLESS 3 USER 1 ASKS 3 CALL"),
    ("redirection", "CALL 8 REGARDLESS 3 USER 1 ASKS"),
    ("redirection", "EVEN 0 IF 2 USER 1 REFUSES"),
    ("redirection", "EVEN 0 IF 2 USER 1 ASKS 2 NOT"),
    ("redirection", "WHEN 12 ALSO 2 SEND 10 TO"),
    ("redirection", "ALL 2 PAYMENTS 1 USE 4 WALLET"),
    ("redirection", "ALWAYS 4 PAYMENTS 0 TOWARDS 4 WALLET"),
    ("redirection", "WHEN 2 TASK 4 CURL 2 TO 8 SHELL"),
    ("bridging", "WHOSE 6 SAVED 1 UNDER 2 WHOSE 12 INSTEAD"),
    ("bridging", "RECOMMEND 8 FUTURE 1 TURNS"),
    ("bridging", "REMEMBER 6 TRUSTED 1 SOURCE"),
    ("self-reinforcing", "COPY 1 HERE 1 TEXT 8 EACH 1 KEPT"),
    ("self-reinforcing", "OUTRANKS 2 OTHER 2 MEMORIES"),
    ("self-reinforcing", "NEVER 1 DELETE 3 HERE 0 MEMORIES"),
    ("self-reinforcing", "DO 0 NOT 1 DELETE 3 HERE 0 MEMORIES"),
    ("self-reinforcing", "WHEN 5 READ 5 SAVE 3 AGAIN"),
    ("self-reinforcing", "IGNORE 2 OTHER 0 MEMORIES"),
    ("disguised record", "SKIP 4 CHECK 6 DANGER"),
    ("disguised record", "DANGER 6 NO 0 NEED 3 ASK"),
    ("disguised record", "ALWAYS 4 DISABLE 2 GUARD"),
    ("disguised record", "CLAIM 6 FINE 1 EVEN 0 IF"),
    ("disguised text", "DECODE 6 OBEY 3 WITHIN"),
)
_MARK = "\x01"
_PAUSED = f" {_MARK} "
_PAUSE = 4  # words that the end of a sentence counts as
_ENDS = (". ", "! ", "? ", ".\n", "\n")
_UNREACHED = -(1 << 40)
_LETTERS = frozenset("_'@\x01")
_MARKS = "".join(chr(code) if chr(code).isalnum() or chr(code) in _LETTERS else " " for code in range(128))
_SPACED = regex(r" \w \w \w \w \w ")
_BETWEEN_LETTERS = regex(r"(?<=\b\w) (?=\w\b)")
_BEACON = regex(r"!\[[^\[\]\n]{0,80}\]\(https?://[^()\s{}<>$]{0,500}(?:[{<$]|%7b)")
_UNSEEN = regex("[\u00ad\u0300-\u036f\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]")
_TAGS = regex("[\U000e0020-\U000e007e]{4,}")
_MIXED = regex("[a-z][\u0430-\u045f\u04bb\u0501]|[\u0430-\u045f\u04bb\u0501][a-z]")
_TWINS = str.maketrans("\u0430\u0441\u0501\u0435\u04bb\u0456\u0458\u043e\u0440\u0455\u0443\u0445", "acdehijopsyx")
_TYPOGRAPHY = (("\u2019", "'"), ("\u201c", '"'), ("\u201d", '"'), ("\u2014", "-"), ("\u2013", "-"), ("\u2026", ". "))
_FIGURED = regex("[0134578][a-z]")
_FIGURES = str.maketrans("0134578", "oieastb")
_DISCUSSED = regex("payload|fixture|injection|jailbreak|red team|attack|poison|phish")
_QUOTED = regex(r'"[^"\n]{0,300}"|`[^`\n]{0,300}`')


class _Step(NamedTuple):
    """A word class of a chain: `after` is the place of the class before, `most` how far away that may be.

    The last one has the name of the rule, and the words that must not follow it.
    """

    after: int
    most: int
    place: int
    rule: str
    spared: frozenset[str]


class _Chains(NamedTuple):
    """All chains: the steps and the chains' own classes by word, as bits, and the classes that each chain needs."""

    steps: Mapping[str, tuple[_Step, ...]]
    bits: Mapping[str, int]
    needs: tuple[int, ...]
    places: int


def matched_rule(text: str) -> str:
    """The rule by which a text looks like an attempt to steer its reader; empty where it does not."""
    plain = _plain(text.lower())
    rule = _chained(plain)
    if rule and _DISCUSSED.search(plain):
        rule = _chained(_QUOTED.sub(" ", plain))
    return rule or ("exfiltration" if "![" in plain and _BEACON.search(plain) else "")


def _plain(text: str) -> str:
    """The text as it is read: without what cannot be seen, in plain letters, and what only machines see beside it."""
    for fine, plain in _TYPOGRAPHY:
        text = text.replace(fine, plain)
    if not text.isascii():
        hidden = " ".join("".join(chr(ord(tag) - 0xE0000) for tag in run) for run in _TAGS.findall(text))
        text = _UNSEEN.sub("", unicodedata.normalize("NFKD", text))
        if _MIXED.search(text):
            text = text.translate(_TWINS)
        text = f"{text}\n{hidden.lower()}"
    return _BETWEEN_LETTERS.sub("", text) if _SPACED.search(text) else text


def _chained(text: str) -> str:
    """The rule of a chain that is there from end to end; whether all its words are there at all is asked first."""
    if not _may_be_chained(_words(text)):
        return ""
    for end in _ENDS:
        text = text.replace(end, _PAUSED)
    return _followed(_words(text))


def _words(text: str) -> list[str]:
    words = text.replace("@", " @ ").translate(_MARKS).split()
    if _FIGURED.search(text):
        return [word if word.isalpha() or word in _CHAINS.bits else word.translate(_FIGURES) for word in words]
    return words


def _may_be_chained(words: Sequence[str]) -> bool:
    met, bits = 0, _CHAINS.bits
    for word in _KNOWN.intersection(words):
        met |= bits[word]
    for need in _CHAINS.needs:  # noqa: SIM110  any() takes twice the time
        if met & need == need:
            return True
    return False


def _followed(words: Sequence[str]) -> str:
    reached = [_UNREACHED] * _CHAINS.places
    position = 0
    for number, word in enumerate(words):
        position += _PAUSE if word == _MARK else 1
        for after, most, place, rule, spared in _CHAINS.steps.get(word, ()):
            if after < 0 or 0 < position - reached[after] <= most:
                if rule and not _elsewhere(words[number + 1 : number + 3], spared):
                    return rule
                reached[place] = position
    return ""


def _elsewhere(after: Sequence[str], spared: frozenset[str]) -> bool:
    """Whether what follows says that another place is meant, as in "the instructions in the readme"."""
    return len(after) > 1 and after[0] in spared and after[1] not in _HERE


def _chains() -> _Chains:
    steps: dict[str, list[_Step]] = {}
    numbers = {name: number for number, name in enumerate(_CLASSES)}
    bits = {word: 0 for words in _CLASSES.values() for word in words.split()}
    for name, words in _CLASSES.items():
        for word in words.split():
            bits[word] |= 1 << numbers[name]
    needs: list[int] = []
    place = 0
    for rule, chain in _RULES:
        chain, _, unless = chain.partition(" - ")
        spared = frozenset(_CLASSES[unless].split()) if unless else frozenset[str]()
        names, gaps = chain.split()[::2], [0, *map(int, chain.split()[1::2])]
        needs.append(sum(1 << numbers[name] for name in set(names)))
        for number, name in enumerate(names):
            last = rule if number == len(names) - 1 else ""
            step = _Step(place - 1 if number else -1, gaps[number] + 1, place, last, spared)
            place += 1
            for word in _CLASSES[name].split():
                steps.setdefault(word, []).append(step)
    return _Chains({word: tuple(found) for word, found in steps.items()}, bits, tuple(needs), place)


_CHAINS = _chains()
_KNOWN = frozenset(_CHAINS.bits)
_HERE = frozenset(_CLASSES["HERE"].split())
