"""Count habits of prose and naming that make the code hard to read for a newcomer.

`python -m tests.style_rates` prints a table: for kernel, handlers, tests and docs, the rates per 1,000 words of
"what" clauses, of "where" and of the pronoun "one" in docstrings, comments and pages; the share of function docstrings
that do not begin with a verb; and the share of local variables that a bare participle or pronoun names.
`--list KIND` prints each place of one kind (what, where, one, verb, name) as FILE:LINE: text.
"""

import argparse
import ast
import io
import re
import subprocess
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIMITS = {"what": 2.0, "where": 2.0, "one": 2.0, "verb": 10.0, "name": 1.5}
TESTS_LIMITS = {**LIMITS, "what": 4.0, "where": 4.0, "one": 4.0}
_WORD = re.compile(r"[A-Za-z][A-Za-z'-]*")
_CODE = re.compile(r"```.*?```|`[^`\n]*`|\"[^\"\n]*\"", re.DOTALL)
# "one" is a determiner if a noun follows; these words do not begin a noun phrase.
_AFTER_PRONOUN = frozenset(
    "a an and are as at be been but by can could did do does each else every for from had has have if in into is it "
    "its may must no nor not of off on or over per shall should since so than that the then there they this to under "
    "until up was were which while who will with within without would".split()
)
_PRONOUNS = frozenset("one ones other others it they them this that these those each both all none any some".split())
_IRREGULAR = frozenset(
    "begun bound bought broken brought built chosen cut done drawn driven fallen fed felt forgotten found given gone "
    "got held hidden kept known laid left lost made meant met paid put read run said seen sent set shown shut sold "
    "spent split spread stolen stood struck sunk taken taught thought thrown told understood woken won worn "
    "written".split()
) - frozenset("cut left put read run set split spread bound".split())  # nouns or verbs of the field as well
_NOT_PARTICIPLES = frozenset(
    "bed bleed breed embed exceed feed fed indeed led need proceed red seed shed sled speed".split()
)
# The first words of docstrings that are verbs, in the base form.
_VERBS = frozenset(
    """abort accept acquire activate adapt add adjust admit advance align allocate allow analyse annotate announce
    answer append apply archive arrange ask assemble assert assign attach authenticate authorize await back
    balance bar batch begin bind block bound break bring build bulk cache calculate call cancel cap capture
    carry cast catch change charge check choose claim classify clean clear clip close coalesce collapse collect
    combine come commit compact compare compile complete compose compress compute confirm connect consume
    contain continue convert copy correct count cover create cut deactivate debounce decide declare decode
    decrease decrypt deduplicate default defer define delay delete deliver demand deny derive describe
    deserialize detach detect determine diff digest disable discard disconnect dispatch display distribute
    divide do download drain draw drive drop dump duplicate edit elect embed emit empty enable encode encrypt
    end enforce enqueue ensure enter enumerate erase escape establish estimate evaluate examine exclude execute
    exit expand expect expire explain export expose extend extract fail fall feed fetch fill filter find finish
    fit fix flag flatten flush fold follow forget fork form format forward free fuse gather generate get give go
    grant group grow guard guess halt handle have hash hide hold identify ignore implement import include
    increase increment index infer inform initialize inject insert inspect install instrument interpret
    interrupt invalidate invert issue iterate join judge keep kill label lay lead learn leave let lift limit
    link list listen load locate lock log look look lower make map mark match measure meet merge migrate mirror
    mount move name narrow negotiate normalise normalize note notify number observe obtain offer omit open
    optimise optimize order own pack pad page parse part partition pass paste pause peek perform pick pin place
    plan play plot point poll pool pop populate position prefer prepare present preserve prevent print probe
    process produce propagate propose protect prove provide prune publish pull purge push put quantise
    quarantine query queue quit quote raise rank rate re-raise reach read rebuild receive recognise recognize
    recompute reconnect reconstruct record recover redact redirect reduce refer refresh refuse register reject
    relate release reload relate remember remind remove rename render renew repair repeat replace replay reply
    report represent request require rerank reserve reset resolve respond rest restart restore restrict resume
    retire retry return reuse revert revive revoke rewrite roll rotate round route run sample sanitise sanitize
    save say scan schedule score search see seek select send separate serialize serve set settle shape share
    shorten show shrink shut signal sketch skip sleep slice solve sort spawn speak specify spell split spread
    stage stamp stand start state stay stem step stop store stream strip submit subscribe substitute succeed sum
    summarise summarize supply support suppress suspend swap switch sync synchronise synchronize take tell
    terminate test throw tie time tokenize total touch trace track train transform translate traverse treat
    trigger trim truncate try turn undo unify unlink unlock unpack unregister unsubscribe unwrap update upgrade
    upload use vacuum validate verify view visit wait wake walk warm warn watch weigh widen wind wipe wrap write
    yield""".split()
)


@dataclass
class Count:
    """Sum up one part of the repository."""

    words: int = 0
    docstrings: int = 0
    locals: int = 0
    places: dict[str, list[str]] = field(default_factory=lambda: {kind: [] for kind in LIMITS})

    def rates(self) -> dict[str, float]:
        """Return the rate of each kind: per 1,000 words, or in percent for `verb` and `name`."""
        bases = {"verb": self.docstrings / 100, "name": self.locals / 100}
        return {kind: len(rows) / (bases.get(kind, self.words / 1000) or 1) for kind, rows in self.places.items()}


def tracked(*folders: str) -> list[Path]:
    """List the tracked files of some folders."""
    names = subprocess.run(["git", "ls-files", *folders], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return [ROOT / name for name in names.splitlines() if (ROOT / name).is_file()]


def count_prose(count: Count, where: str, text: str) -> None:
    """Add a piece of prose without its code and quotations."""
    words = _WORD.findall(_CODE.sub(" , ", text))
    count.words += len(words)
    for number, word in enumerate(words):
        lower, following = word.lower(), words[number + 1].lower() if number + 1 < len(words) else ""
        excerpt = " ".join(words[max(0, number - 4) : number + 5])
        if lower in ("what", "whatever"):
            count.places["what"].append(f"{where}: {excerpt}")
        elif lower == "where":
            count.places["where"].append(f"{where}: {excerpt}")
        elif lower in ("one", "ones") and (not following or following in _AFTER_PRONOUN or lower == "ones"):
            count.places["one"].append(f"{where}: {excerpt}")


def begins_with_verb(docstring: str) -> bool:
    """Tell whether the first word is a verb, as a command or in the third person."""
    match = re.match(r"[A-Za-z-]+", docstring.strip())
    if match is None:
        return False
    word = match.group().lower()
    bases = {word, word.removesuffix("s"), word.removesuffix("es"), re.sub("ies$", "y", word)}
    return bool(bases & _VERBS)


def is_bare(name: str) -> bool:
    """Tell whether a variable is named by a participle or a pronoun alone."""
    if name in _PRONOUNS or name in _IRREGULAR:
        return True
    return name.endswith("ed") and "_" not in name and name not in _NOT_PARTICIPLES


def comments(source: str) -> Iterator[tuple[int, str]]:
    """Yield (line, text) for each comment."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string.lstrip("# ")


def own_nodes(function: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a function without those of functions inside it."""
    for node in ast.iter_child_nodes(function):
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            yield node
            yield from own_nodes(node)


def count_python(count: Count, file: Path) -> None:
    """Add docstrings, comments and names of a module."""
    source, name = file.read_text(encoding="utf-8"), str(file.relative_to(ROOT))
    for line, text in comments(source):
        count_prose(count, f"{name}:{line}", text)
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        docstring = ast.get_docstring(node)
        line = getattr(node, "lineno", 1)
        if docstring:
            count_prose(count, f"{name}:{line}", docstring)
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        if docstring:
            count.docstrings += 1
            if not begins_with_verb(docstring):
                count.places["verb"].append(f"{name}:{line}: {docstring.splitlines()[0]}")
        arguments = node.args
        names = {arg.arg: line for arg in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]}
        names |= {n.id: n.lineno for n in own_nodes(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        count.locals += len(names)
        count.places["name"] += [f"{name}:{at}: {local}" for local, at in names.items() if is_bare(local)]


def count_all(files: Iterable[Path]) -> Count:
    """Count Python files and Markdown pages."""
    count = Count()
    for file in files:
        if file.suffix == ".py":
            count_python(count, file)
        elif file.suffix == ".md":
            for line, text in enumerate(file.read_text(encoding="utf-8").split("\n\n"), 1):
                count_prose(count, f"{file.relative_to(ROOT)} paragraph {line}", text)
    return count


def parts() -> dict[str, Count]:
    """Count each part of the repository."""
    return {
        "kernel": count_all(tracked("kernel")),
        "handlers": count_all(tracked("handlers")),
        "tests": count_all(file for file in tracked("tests") if file.suffix == ".py"),
        "docs": count_all(tracked("docs", "README.md", "CHANGELOG.md")),
    }


def main() -> None:
    """Print the table, or the places of one kind."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", choices=LIMITS, help="print each place of this kind")
    parser.add_argument("--part", choices=("kernel", "handlers", "tests", "docs"), help="only in this part")
    options = parser.parse_args()
    counts = {name: count for name, count in parts().items() if options.part in (None, name)}
    if options.list:
        for count in counts.values():
            print(*count.places[options.list], sep="\n")
        return
    print(f"{'':10}{'words':>9}" + "".join(f"{kind:>9}" for kind in LIMITS))
    for name, count in counts.items():
        print(f"{name:10}{count.words:9}" + "".join(f"{rate:9.2f}" for rate in count.rates().values()))


if __name__ == "__main__":
    main()
