"""Temperature scaling: probabilities get closer to the truth, and no answer changes."""

import json
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fathomer
from fathomer.artifact import Artifact
from fathomer.data.examples import Examples
from fathomer.errors import ArtifactError, MissingExtraError
from fathomer.evaluate.calibrate import (
    MIN_TEMPERATURE,
    MIN_TEXTS,
    fit_temperature,
    reason_against,
)
from fathomer.evaluate.reliability import (
    Certainties,
    calibration_error,
    certainties,
    draw_reliability,
    reliability,
)
from fathomer.model.inference import Classified
from fathomer.predictor import Predictor
from fathomer.train.fit import fit
from tests.tiny import TINY, tiny_examples

TEXTS = [example.text for example in tiny_examples()]


def simulated(temperature, *, texts=4000, labels=3, seed=0):
    """Draw labels from known probabilities, and logits that are too large by a known factor."""
    random = np.random.default_rng(seed)
    logits = random.normal(size=(texts, labels)) * 1.5
    probabilities = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    targets = np.array([random.choice(labels, p=row) for row in probabilities])
    return log_softmax(logits * temperature).astype(np.float32), targets


def log_softmax(logits):
    return logits - np.log(np.exp(logits).sum(1, keepdims=True))


def error_of(log_probabilities, targets):
    answers = Classified(log_probabilities, np.zeros(0, dtype=np.int16))
    return calibration_error(reliability(certainties(answers, targets)))


@pytest.mark.parametrize("temperature", [0.4, 1.0, 3.0])
def test_a_known_temperature_is_recovered(temperature):
    log_probabilities, targets = simulated(temperature)
    found = fit_temperature(log_probabilities, targets)
    assert found == pytest.approx(temperature, rel=0.08)
    calibrated = log_softmax(log_probabilities.astype(np.float64) / found)
    assert error_of(calibrated, targets) < 0.02
    if temperature != 1.0:
        assert error_of(log_probabilities, targets) > 0.08


def test_calibration_is_applied_only_if_it_helps_on_other_texts():
    overconfident, targets = simulated(3.0, texts=200)
    assert reason_against(overconfident, targets) is None
    calibrated, targets = simulated(1.0, texts=200, seed=2)
    found = reason_against(calibrated, targets)
    before, after = map(float, re.findall(r"\d\.\d{4}", found))
    assert found == f"it would not help (loss {before:.4f}, with calibration {after:.4f})"
    assert after >= before


def test_with_few_texts_there_is_no_calibration():
    log_probabilities, targets = simulated(3.0, texts=MIN_TEXTS)
    assert reason_against(log_probabilities, targets) is None
    found = reason_against(log_probabilities[1:], targets[1:])
    assert found == "only 49 held-out texts, 50 are needed"


def test_a_few_right_answers_do_not_make_a_model_fully_certain():
    targets = np.array([0, 1] * 5)
    logits = np.where(np.eye(2)[targets] > 0, 1.0, -1.0)
    found = fit_temperature(log_softmax(logits).astype(np.float32), targets)
    assert found > 2 * MIN_TEMPERATURE
    [certainty] = np.unique(np.exp(log_softmax(logits / found)).max(1).round(3))
    assert certainty == pytest.approx(21 / 22, abs=0.005)


@given(pairs=st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=50))
def test_the_calibration_error_is_between_zero_and_one_and_counts_every_answer(pairs):
    probabilities, right = map(np.asarray, zip(*pairs, strict=True))
    bins = reliability(Certainties(probabilities, right))
    assert sum(found.count for found in bins) == len(pairs)
    assert 0 <= calibration_error(bins) <= 1
    assert sum(b.count * b.right for b in bins) == pytest.approx(right.sum())


def test_calibrated_answers_have_no_error_and_overconfident_ones_a_large_one():
    calibrated = Certainties(np.full(10, 0.8), np.arange(10) < 8)
    overconfident = Certainties(np.full(10, 1.0), np.arange(10) < 5)
    assert calibration_error(reliability(calibrated)) == pytest.approx(0)
    assert calibration_error(reliability(overconfident)) == pytest.approx(0.5)


def calibrated_and_plain(name="fathomer"):
    recipe = TINY.updated({"model": {"name": name}, "train": {"epochs": 4}})
    plain = recipe.updated({"train": {"calibrate": False}})
    examples = mislabelled()
    return fit(examples, recipe).artifact, fit(examples, plain).artifact


def mislabelled():
    """Return short opinions, one in six with the wrong label, so that no model is certain."""
    other = {"positive": "negative", "negative": "positive"}
    return Examples(
        [
            example._replace(label=other[example.label]) if number % 6 == 0 else example
            for number, example in enumerate(tiny_examples(300))
        ]
    )


@pytest.mark.parametrize("name", ["fathomer", "tfidf"])
def test_calibration_changes_probabilities_but_no_answer(name):
    calibrated, plain = calibrated_and_plain(name)
    found = calibrated.metrics["calibration"]
    assert calibrated.temperature == found["temperature"]
    assert found["applied"] == (found["reason"] is None) == (found["temperature"] != 1.0)
    assert (plain.temperature, "calibration" in plain.metrics) == (1.0, False)
    assert (found["loss_after"] < found["loss_before"]) == found["applied"]
    assert found["examples"] == 60
    held_out = calibrated.metrics["held_out"]
    assert held_out["calibration_error"] == found["error_after"]
    assert held_out["accuracy"] == plain.metrics["held_out"]["accuracy"]
    mine, theirs = (Predictor(one).predict(TEXTS) for one in (calibrated, plain))
    assert [p.label for p in mine] == [p.label for p in theirs]
    assert (mine[0].probabilities != theirs[0].probabilities) == found["applied"]


def test_prediction_and_evaluation_use_the_same_temperature(tmp_path):
    calibrated, _ = calibrated_and_plain()
    examples = tiny_examples()
    predictor = Predictor(calibrated)
    chosen = [
        answer.probabilities[example.label]
        for answer, example in zip(predictor.predict(TEXTS), examples, strict=True)
    ]
    loss = predictor.evaluate(examples).loss
    assert loss == pytest.approx(-np.mean(np.log(chosen)), rel=1e-5)
    calibrated.save(tmp_path)
    assert Artifact.load(tmp_path).temperature == calibrated.temperature
    assert fathomer.load(tmp_path).predict(TEXTS) == predictor.predict(TEXTS)


@pytest.mark.parametrize("temperature", [0, -1, "hot", None])
def test_an_invalid_temperature_is_refused(tmp_path, temperature):
    calibrated, _ = calibrated_and_plain("tfidf")
    calibrated.save(tmp_path)
    path = tmp_path / "config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(config | {"temperature": temperature}), encoding="utf-8")
    with pytest.raises(ArtifactError, match="not a model that can be loaded"):
        Artifact.load(tmp_path)


def test_held_out_texts_with_a_single_label_do_not_calibrate():
    one = Examples([example for example in tiny_examples() if example.label == "positive"])
    artifact = fit(tiny_examples(), TINY, held_out=one).artifact
    assert artifact.temperature == 1.0
    assert artifact.metrics["calibration"] is None


def test_without_a_held_out_part_nothing_is_calibrated():
    artifact = fit(tiny_examples(), TINY.updated({"train": {"held_out": 0.0}})).artifact
    assert artifact.temperature == 1.0
    assert "calibration" not in artifact.metrics


def test_the_reliability_plot_is_a_png(tmp_path):
    pytest.importorskip("matplotlib")
    bins = reliability(Certainties(np.linspace(0, 1, 50), np.arange(50) > 20))
    draw_reliability(bins, tmp_path / "plot.png")
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")


def test_without_matplotlib_the_error_names_the_extra(monkeypatch, tmp_path):
    monkeypatch.setattr("fathomer.errors.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"pip install 'fathomer\[plots\]'"):
        draw_reliability([], tmp_path / "plot.png")
