"""Thresholds: the best of all possible ones, and answers withheld below it."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fathomer.data.examples import Example, Examples
from fathomer.errors import ConfigError, DataError
from fathomer.evaluate.reliability import Certainties
from fathomer.evaluate.threshold import choose_threshold, find_threshold
from fathomer.files import sha256_of
from fathomer.predictor import Predictor
from tests.tiny import TINY, tagged, tagged_artifact, tiny_artifact, tiny_examples, write_csv

PAIRS = st.lists(
    st.tuples(st.sampled_from([0.1, 0.3, 0.5, 0.7, 0.9, 1.0]), st.booleans()),
    min_size=1,
    max_size=25,
)


def scores_of(probabilities, right, threshold):
    """Return precision, recall and number of the answers at a threshold."""
    given = probabilities >= threshold
    hits = int((given & right).sum())
    return hits / max(1, given.sum()), hits / len(right), int(given.sum())


@settings(max_examples=300)
@given(pairs=PAIRS, wanted=st.sampled_from([0.2, 0.5, 0.8, 1.0]), what=st.sampled_from([0, 1]))
def test_no_other_threshold_is_better(pairs, wanted, what):
    probabilities, right = map(np.asarray, zip(*pairs, strict=True))
    tried = [scores_of(probabilities, right, p) for p in {0.0, *probabilities.tolist()}]
    reached = [scores for scores in tried if scores[what] >= wanted]
    options = {"precision": None, "recall": None, ("precision", "recall")[what]: wanted}
    found = Certainties(probabilities, right)
    if not reached:
        with pytest.raises(DataError, match="no threshold gives a "):
            find_threshold(found, possible=len(right), **options)
        return
    best = find_threshold(found, possible=len(right), **options)
    scores = scores_of(probabilities, right, best.threshold)
    assert scores == pytest.approx((best.precision, best.recall, best.answered))
    assert scores[what] >= wanted
    assert scores[1 - what] == pytest.approx(max(other[1 - what] for other in reached))


@pytest.fixture(scope="module")
def predictor():
    return Predictor(tiny_artifact())


def test_an_answer_below_the_threshold_is_not_given(predictor):
    texts = [example.text for example in tiny_examples()]
    plain = predictor.predict(texts)
    probable = sorted(p.probabilities[p.label] for p in plain)
    limit = (probable[29] + probable[30]) / 2
    careful = predictor.predict(texts, abstain_below=limit)
    for before, after in zip(plain, careful, strict=True):
        assert after.probabilities == before.probabilities
        given = before.probabilities[before.label] >= limit
        assert after.label == (before.label if given else None)
        assert after.best == before.label
    assert {p.label for p in predictor.predict(texts, abstain_below=0.0)} == set(predictor.labels)


@pytest.mark.parametrize("limit", [-0.1, 1.1, float("nan")])
def test_a_limit_that_is_not_a_probability_is_refused(predictor, limit):
    with pytest.raises(ConfigError, match="abstain_below is a probability, not"):
        predictor.predict(["good"], abstain_below=limit)


def test_the_scores_of_one_label_are_those_of_predict(predictor):
    right = tiny_examples()
    wrong = [Example(e.text, "negative") for e in right if e.label == "positive"][:9]
    missed = [Example(e.text, "positive") for e in right if e.label == "negative"][:9]
    examples = Examples([*right, *wrong, *missed])
    found = choose_threshold(predictor.answer(examples), recall=0.5, label="positive")
    texts = [example.text for example in examples]
    answers = predictor.predict(texts, abstain_below=found.threshold)
    given = np.asarray([answer.label == "positive" for answer in answers])
    true = np.asarray([example.label == "positive" for example in examples])
    assert found.answered == given.sum()
    assert found.precision == pytest.approx(true[given].mean())
    assert found.recall == pytest.approx(given[true].mean())
    assert (found.examples, found.unit) == (78, "texts")
    with pytest.raises(DataError, match="no threshold gives a recall of 1"):
        choose_threshold(predictor.answer(examples), recall=1.0, label="positive")


@pytest.mark.parametrize("label", [None, "fast"])
def test_with_several_labels_the_decisions_of_predict_are_counted(label):
    predictor, examples = Predictor(tagged_artifact()), tagged()
    found = choose_threshold(predictor.answer(examples), precision=0.9, label=label)
    answers = predictor.predict([e.text for e in examples], abstain_below=found.threshold)
    names = predictor.labels if label is None else (label,)
    given = np.asarray([[name in a.labels for name in names] for a in answers])
    true = np.asarray([[name in labels for name in names] for labels in examples.label_sets])
    assert found.answered == given.sum()
    assert found.precision == pytest.approx(true[given].mean())
    assert found.recall == pytest.approx(given[true].mean())
    assert found.examples == given.size
    assert found.unit == ("decisions" if label is None else "texts")


def test_the_command_warns_as_evaluate_does(run, tmp_path):
    write_csv(tmp_path / "data.csv", tiny_examples())
    checksum = sha256_of(tmp_path / "data.csv")
    artifact = tiny_artifact()
    metrics = {**artifact.metrics, "data_name": "data.csv", "data_checksum": checksum}
    replace(artifact, metrics=metrics).save(tmp_path / "model")
    command = ("threshold", "model", "data.csv", "--recall", "0.5")
    assert run(*command)[2].startswith("warning: the model was trained on this file")
    replace(artifact, metrics={**metrics, "fold": 2, "folds": 3}).save(tmp_path / "model")
    code, out, err = run(*command, "--json")
    assert (code, err) == (0, "data.csv: fold 2 of 3 is the test part\n")
    assert (json.loads(out)["examples"], json.loads(out)["fold"]) == (20, 2)
    _, _, err = run(*command, "--fold", "1")
    assert "\nwarning: the model was trained for fold 2 of 3, so it has seen " in err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "give either a precision or a recall"),
        ({"precision": 0.5, "recall": 0.5}, "give either a precision or a recall"),
        ({"precision": 1.5}, "a precision or recall is between 0 and 1, not 1.5"),
        ({"recall": 0}, "a precision or recall is between 0 and 1, not 0"),
        ({"recall": 0.5, "label": "positiv"}, "unknown label 'positiv'; did you mean 'positive'"),
    ],
)
def test_an_impossible_request_is_a_clear_error(predictor, options, message):
    with pytest.raises(ConfigError, match=message):
        choose_threshold(predictor.answer(tiny_examples()), **options)


def test_the_recall_of_a_label_without_texts_is_undefined(predictor):
    good = Examples([Example("The film was lovely.", "positive")] * 3)
    with pytest.raises(DataError, match="no text has the label 'negative'"):
        choose_threshold(predictor.answer(good), recall=0.5, label="negative")


def test_predict_keeps_the_threshold_that_the_command_found(run, tmp_path):
    tiny_artifact().save(tmp_path / "model")
    write_csv(tmp_path / "data.csv", tiny_examples())
    code, out, err = run("threshold", "model", "data.csv", "--recall", "0.5", "--json")
    assert code == 0, err
    found = json.loads(out)
    assert found["recall"] >= 0.5
    texts = "\n".join(example.text for example in tiny_examples())
    (tmp_path / "texts.txt").write_text(texts, encoding="utf-8")
    limit = str(found["threshold"])
    code, out, err = run("predict", "model", "texts.txt", "--abstain-below", limit)
    assert code == 0, err
    labels = [json.loads(line)["label"] for line in out.splitlines()]
    assert len(labels) - labels.count(None) == found["answered"] < len(labels)
    code, out, err = run("threshold", "model", "data.csv", "--recall", "0.5")
    assert out == (
        f"{found['threshold']:.4f}: precision {found['precision']:.4f}, "
        f"recall {found['recall']:.4f}, {found['answered']} of 60 texts\n"
    )
    assert run("threshold", "model", "data.csv")[0] == 2


@pytest.mark.parametrize("several", [False, True])
def test_evaluate_draws_the_reliability_plot(run, tmp_path, monkeypatch, several):
    pytest.importorskip("matplotlib")
    answer, calls = Predictor.answer, []
    monkeypatch.setattr(
        Predictor, "answer", lambda *args, **more: calls.append(1) or answer(*args, **more)
    )
    artifact, examples = (tiny_artifact(), tiny_examples())
    if several:
        artifact, examples = (tagged_artifact(), tagged())
    artifact.save(tmp_path / "model")
    write_csv(tmp_path / "data.csv", examples)
    code, out, err = run("evaluate", "model", "data.csv", "--reliability", "plot.png", "--json")
    assert code == 0, err
    assert len(calls) == 1, "texts are answered once"
    assert 0 <= json.loads(out)["calibration_error"] <= 1
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")


def test_training_reports_the_effect_of_calibration(run, tmp_path):
    write_csv(tmp_path / "data.csv", tiny_examples(400))
    only = [example for example in tiny_examples() if example.label == "positive"]
    write_csv(tmp_path / "one.csv", Examples(only))
    write_csv(tmp_path / "few.csv", tiny_examples(12))
    (tmp_path / "tiny.toml").write_text(TINY.to_toml(), encoding="utf-8")
    command = ("train", "data.csv", "--out", "m", "--recipe", "tiny.toml", "--overwrite")
    command += ("--epochs", "1")
    _, out, _ = run(*command)
    assert "\ncalibrated: loss 0." in out
    _, out, _ = run(*command, "--held-out", "few.csv")
    assert "\nnot calibrated: only 12 held-out texts, 50 are needed\n" in out
    code, out, err = run(*command, "--held-out", "one.csv")
    assert code == 0
    assert err.endswith("not calibrated: the held-out texts have only one label\n")
    code, out, err = run(*command, "--no-calibrate", "--json")
    assert "calibration" not in json.loads(out)
