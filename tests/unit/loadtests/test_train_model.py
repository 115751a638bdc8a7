"""Training texts are deterministic, and the arithmetic of the fit is correct."""

import gzip
from pathlib import Path

import msgspec
import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from kernel.core.config import MODEL
from kernel.embed.model import Embedder, TokenVectors
from loadtests.quality import debian_dataset, train_model, training_texts
from loadtests.quality.dataset import read
from loadtests.quality.training_texts import Text

TOKENS, WIDTH = 7, 4
Lists = list[list[int]]
lists = st.lists(st.lists(st.integers(0, TOKENS - 1), min_size=1, max_size=6), min_size=1, max_size=6)


def bags(rows: Lists) -> train_model.Bags:
    lengths = np.array([len(row) for row in rows])
    return train_model.Bags(np.concatenate([np.array(row, np.int64) for row in rows]), np.cumsum(lengths) - lengths)


def counts(rows: Lists) -> NDArray[np.float32]:
    return np.array([np.bincount(row, minlength=TOKENS) for row in rows], np.float32)


def drawn(*shape: int) -> NDArray[np.float32]:
    return np.random.default_rng(3).normal(size=shape).astype(np.float32)


@given(lists)
def test_sums_and_gradients_equal_the_count_matrix_product(rows: Lists) -> None:
    vectors, gradient = drawn(TOKENS, WIDTH), drawn(len(rows), WIDTH)
    np.testing.assert_allclose(bags(rows).sums(vectors), counts(rows) @ vectors, atol=1e-5)
    np.testing.assert_allclose(bags(rows).spread(gradient, TOKENS), counts(rows).T @ gradient, atol=1e-5)


@given(lists, st.data())
def test_chosen_texts_keep_their_tokens(rows: Lists, data: st.DataObject) -> None:
    places = data.draw(st.lists(st.integers(0, len(rows) - 1), min_size=1))
    taken, wanted = bags(rows).take(np.array(places)), bags([rows[at] for at in places])
    assert (taken.ids.tolist(), taken.starts.tolist()) == (wanted.ids.tolist(), wanted.starts.tolist())


@given(lists, st.floats(0, 1), st.integers(0, 99))
def test_thinning_keeps_the_first_token_and_adds_none(rows: Lists, share: float, seed: int) -> None:
    thin = bags(rows).thinned(share, np.random.default_rng(seed))
    parts = np.split(thin.ids, thin.starts[1:])
    assert [part[0] for part in parts] == [row[0] for row in rows]
    assert all(len(part) <= len(row) and set(part) <= set(row) for part, row in zip(parts, rows, strict=True))


def test_slope_is_the_gradient_of_the_cosines() -> None:
    some, vectors, step = bags([[0, 1, 1], [2, 3], [0, 6]]), drawn(TOKENS, WIDTH), 1e-2
    targets = drawn(3, WIDTH) / np.linalg.norm(drawn(3, WIDTH), axis=1, keepdims=True)
    for token, at in ((1, 0), (3, 2), (0, 3), (4, 1)):
        move = np.zeros_like(vectors)
        move[token, at] = step
        rise = train_model.slope(some, targets, vectors + move)[1] - train_model.slope(some, targets, vectors - move)[1]
        assert train_model.slope(some, targets, vectors)[0][token, at] == pytest.approx(
            -3 * rise / (2 * step), abs=1e-3
        )


def test_fit_recovers_vectors_whose_sums_match_the_teacher(capsys: pytest.CaptureFixture[str]) -> None:
    lot = np.random.default_rng(1)
    some, hidden = bags(lot.integers(0, 40, (3 * train_model.BATCH, 6)).tolist()), drawn(40, 8)
    targets = some.sums(hidden)
    targets /= np.linalg.norm(targets, axis=1, keepdims=True)
    start: NDArray[np.float32] = np.abs(drawn(40, 8))
    before = train_model.slope(some, targets, start)[1]
    after = train_model.slope(some, targets, train_model.fitted(some, targets, start * np.float32(0.1)))[1]
    assert before < 0.2 < 0.6 < after
    assert "step 9 of 9" in capsys.readouterr().out


def test_frequent_tokens_weigh_less() -> None:
    weights = train_model.frequency(bags([[0, 0, 0, 1], [0, 1, 2]]), TOKENS)
    assert weights[0] < weights[1] < weights[2] < weights[3] == weights[6]


def test_directions_blend_single_token_vectors_and_keep_lengths() -> None:
    vectors, alone = np.split(drawn(2 * TOKENS, 30), 2)
    lengths = drawn(TOKENS) ** 2
    made = train_model.directed(vectors, alone, lengths)
    np.testing.assert_allclose(np.linalg.norm(made, axis=1), lengths, atol=1e-5)
    np.testing.assert_allclose(made, train_model.directed(vectors * 3, alone + 7, lengths), atol=1e-4)
    cosines = [
        (train_model.unit(made) * train_model.unit(one)).sum(axis=1).mean()
        for one in (vectors, alone - alone.mean(axis=0))
    ]
    assert cosines[0] > cosines[1] > 0


@pytest.mark.slow
def test_lengths_of_the_shipped_model_are_its_row_norms() -> None:
    lengths = train_model.lengths_of(TokenVectors(MODEL))
    tensors = safetensors.numpy.load_file(MODEL / "model.safetensors")
    rows = np.concatenate([tensors["embeddings"], tensors["more_embeddings"]]).astype(np.float32)
    np.testing.assert_allclose(lengths, np.linalg.norm(rows, axis=1), rtol=1e-5)


def test_no_token_quantizes_to_zero() -> None:
    vectors = drawn(2000, WIDTH)
    vectors[7] = [1e-6, -2e-6, 0, 3e-7]
    vectors[9] *= 1e3
    made = train_model.whole(vectors)
    assert (made[7].tolist(), int(np.abs(made[9]).max())) == ([0, -1, 0, 0], 127)
    step = np.quantile(np.abs(vectors).max(axis=1), train_model.CUT) / 127
    rest = np.abs(vectors).max(axis=1) < 127 * step
    rest[7] = False
    assert rest.sum() >= 0.99 * len(vectors)
    np.testing.assert_allclose(made[rest] * step, vectors[rest], atol=0.51 * step)


def test_fitted_model_keeps_the_tokenizer(tmp_path: Path) -> None:
    matrix = train_model.whole(drawn(29_525, 16))
    train_model.save(MODEL, tmp_path, matrix)
    model = Embedder(tmp_path)
    (made,) = model.embed(["plain words"])
    tokens = np.frombuffer(made.tokens, "<u2")
    total = matrix[tokens].astype(np.float32).sum(axis=0)
    assert (model.dimensions, made.tokens) == (16, Embedder(MODEL).embed(["plain words"])[0].tokens)
    vector = np.frombuffer(made.vector, np.int8) * made.scale
    np.testing.assert_allclose(vector, total / np.linalg.norm(total), atol=0.01)


def test_texts_are_deduplicated_limited_and_ordered_by_content(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(training_texts.CAPS, "gloss", 2)
    given_texts = [
        *(Text("gloss", f"the meaning of word {at}") for at in range(5)),
        Text("quote", "Come here, my friend!"),
        Text("quote", "come  here my friend"),
        Text("quote", "too short"),
        Text("page", "on and on " * 200),
    ]
    made = training_texts.mixed(given_texts)
    assert [len(one.text.split()) for one in made if one.kind == "page"] == [training_texts.MOST]
    assert sum(one.kind == "gloss" for one in made) == 2
    assert [one.text for one in made if one.kind == "quote"] == ["Come here, my friend!"]
    assert training_texts.mixed([one for one in reversed(given_texts) if one.text != "come  here my friend"]) == made


def test_texts_are_extracted_from_every_kind_of_file(tmp_path: Path) -> None:
    wordnet = 'abhor\n     v 1: find repugnant; "I loathe that man" [syn: {abhor}, {loathe}]\n'
    files = {
        "x_Translation-en": "Package: a\nDescription-md5: 0\nDescription-en: a shell for people\n It reads commands.\n",
        "wn.dict.dz": gzip.compress(wordnet.encode()),
        "jargon.dict.dz": gzip.compress(b"bug\n\n   A fault that nobody wanted (1990-01-01).\n"),
        "fortunes/wise": "Time is what you make.\n%\nA cat may look.\n    -- Anon\n",
        "doc.rst.gz": gzip.compress(b"Title\n=====\n\n.. note::\n\nUse :func:`open` to read *this* file.\n"),
        "page.html": "<h1>No</h1><p>One &amp; only paragraph here.</p>",
        "code.py": 'def f(x):\n    """Say what it does here.\n\n    More."""\n    return x\n',
        "broken.py": "def f(:\n",
    }
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    assert training_texts.main(["--folder", str(tmp_path), "--into", str(tmp_path / "out")]) == 0
    made = {msgspec.json.decode(line) for line in (tmp_path / "out").read_bytes().splitlines()}
    assert made == {
        "a shell for people",
        "It reads commands.",
        "abhor is find repugnant",
        "I loathe that man",
        "A fault that nobody wanted .",
        "Time is what you make.",
        "A cat may look.",
        "Use open to read *this* file.",
        "One & only paragraph here.",
        'def f(x): """Say what it does here. More.""" return x',
    }


def listing(packages: dict[str, str]) -> str:
    blocks = (
        f"Package: {name}\nDescription-md5: 0\nDescription-en: {line}\n {name} does {'much ' * 40}.\n .\n And more.\n"
        for name, line in packages.items()
    )
    return "\n".join(blocks)


def test_evaluation_packages_are_held_out_of_training(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = {
        "awk": "finds patterns in lines of text",
        "libcurl4": "fetches files from other machines",
        "curl": "another one by the same people as before",
        "bash": "reads commands and runs them",
    }
    (tmp_path / "x_Translation-en").write_text(listing(lines), encoding="utf-8")

    debian_dataset.main(["--listing", str(tmp_path / "x_Translation-en"), "--into", str(tmp_path / "judged")])
    made = read(tmp_path / "judged")
    fitted = [text for _, text in training_texts.descriptions(listing(lines))]

    assert {query.text: query.relevant for query in made.queries} == {
        line: [name] for name, line in lines.items() if name != "bash"
    }
    assert {doc.id: doc.text for doc in made.docs} == {
        name: f"{name} does {'much ' * 40}. And more." for name in lines if name != "bash"
    }
    assert {lines["bash"], "And more."} <= {*fitted}
    assert not {*fitted} & {*lines.values()} - {lines["bash"]}
    assert capsys.readouterr().out == "3 descriptions, 3 questions\n"


def test_passages_are_long_enough_and_unique() -> None:
    long = "word " * 50
    packages = [
        training_texts.Package("one", "a line of its own", [long]),
        training_texts.Package("short", "another line", ["few words"]),
        training_texts.Package("none", "no paragraph", []),
        training_texts.Package("huge", "a huge one", ["word " * 400]),
        training_texts.Package("twin", "the same line", [f"first {long}"]),
        training_texts.Package("other", "the same line", [f"second {long}"]),
        training_texts.Package("copy", "a line for a copy", [f"third {long}"]),
        training_texts.Package("copied", "a line of a copy", [f"third {long}"]),
    ]
    assert [one.name for one in debian_dataset.distinct(packages)] == ["one"]
