"""The fit of the network finds what tells pairs apart, judges on other pairs, and writes what is read back."""

from pathlib import Path
from runpy import run_path

import msgspec
import numpy as np
import pytest

from kernel.search import paraphrase
from loadtests.quality import paraphrase_fit, question_families
from loadtests.quality.paraphrase_fit import Judged


def synthetic(count: int = 400) -> Judged:
    """Pairs that are the same where just one of the first two signals is high, which no logistic tells."""
    signals = np.zeros((count, len(paraphrase.SIGNALS)))
    signals[:, :2] = np.random.default_rng(5).uniform(-1, 1, (count, 2))
    label = (signals[:, 0] > 0) != (signals[:, 1] > 0)
    return Judged(signals, label.astype(np.float64), np.zeros(count, np.bool_))


def test_the_network_tells_what_a_logistic_cannot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paraphrase_fit, "_DECAY", 1e-4)
    fitted, rest = paraphrase_fit.halves(synthetic())

    found = [
        float(((scorer(rest.signals) > 0) == rest.label).mean())
        for scorer in (paraphrase_fit.train(fitted).odds, paraphrase_fit.logistic(fitted))
    ]

    assert found[0] > 0.75 > 0.65 > found[1]


def test_what_is_written_is_read_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paraphrase_fit, "_FILE", tmp_path / "weights.py")
    monkeypatch.setattr(paraphrase_fit, "_STEPS", 20)
    network = paraphrase_fit.train(synthetic())

    paraphrase_fit.write(network, 0.25)

    written = run_path(str(tmp_path / "weights.py"))
    assert written["LEAST"] == 0.25
    for one, other in zip(written["network"](), network, strict=True):
        np.testing.assert_allclose(one, other, rtol=0.01)


def test_measures_are_those_of_information_retrieval() -> None:
    said, label = np.array([True, True, True, False]), np.array([1.0, 1.0, 0.0, 1.0])

    assert paraphrase_fit.measured(said, label) == pytest.approx((2 / 3, 2 / 3, 2 / 3))
    judged = Judged(np.zeros((4, 1)), label, np.array([False, False, False, True]))
    assert paraphrase_fit.least_for(np.array([3.0, 2.0, 1.0, 4.0]), judged) == 2.0
    assert paraphrase_fit.best_f1(np.array([3.0, 2.0, 1.0, 1.5]), label) == 1.5


def test_the_half_that_is_not_fitted_to_is_judged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pairs = [("How do I swim?", "What is the way to swim?", 1), ("How do I swim?", "Who swims?", 0)] * 4
    file = tmp_path / "pairs.jsonl"
    file.write_bytes(b"\n".join(msgspec.json.encode({"a": a, "b": b, "label": label}) for a, b, label in pairs))

    paraphrase_fit.report(file)

    assert "4 pairs, fitted to 4 others" in capsys.readouterr().out


def test_generated_pairs_tell_apart_what_was_not_fitted() -> None:
    held_out = paraphrase_fit.generated(question_families.HELD_OUT)

    said = (paraphrase.odds(held_out.signals) >= paraphrase_fit.paraphrase_weights.LEAST) & ~held_out.barred
    precision, recall, _ = paraphrase_fit.measured(said, held_out.label)

    assert (precision > 0.8, recall > 0.6) == (True, True)
