"""Several labels per text, or none, from the file to the answer."""

import json
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics as sklearn

import fathomer
from fathomer.artifact import Artifact
from fathomer.data.examples import Example, Examples, split_stratified
from fathomer.data.reading import ReadOptions, read_examples
from fathomer.errors import ArtifactError, ConfigError, DataError
from fathomer.evaluate.calibrate import MIN_SUPPORT, fit_temperature, tune_thresholds
from fathomer.evaluate.metrics import score
from fathomer.evaluate.report import make_report
from fathomer.explain import draw_prediction
from fathomer.model.inference import Classified
from fathomer.predictor import Predictor
from fathomer.train.fit import fit
from fathomer.train.losses import text_losses
from tests.tiny import SIGNS, TAGGED, TINY, tagged, tagged_artifact


@pytest.fixture(scope="module")
def artifact():
    return tagged_artifact()


@pytest.fixture(scope="module")
def predictor(artifact):
    return Predictor(artifact)


def test_a_model_learns_several_labels_and_none(predictor):
    texts = ["The hotel was swift and cheap.", "The hotel was there.", "The hotel was warm."]
    several, none, one = predictor.predict(texts)
    assert several.labels == ("cheap", "fast")
    assert several.label == max(several.labels, key=several.probabilities.__getitem__)
    assert (none.labels, none.label) == ((), None)
    assert (one.labels, one.label) == (("kind",), "kind")
    assert sum(several.probabilities.values()) > 1.5


def test_scores_are_those_of_scikit_learn(predictor):
    examples = tagged(60)
    answers = predictor.predict([example.text for example in examples])
    true = [[name in found for name in predictor.labels] for found in examples.label_sets]
    given = [[name in answer.labels for name in predictor.labels] for answer in answers]
    found = predictor.evaluate(examples)
    assert found.accuracy == pytest.approx(sklearn.accuracy_score(true, given))
    for average in ("micro", "macro"):
        expected = sklearn.f1_score(true, given, average=average)
        assert getattr(found, f"{average}_f1") == pytest.approx(expected)
    probabilities = [list(answer.probabilities.values()) for answer in answers]
    losses = [
        sklearn.log_loss(*pair)
        for pair in zip(np.transpose(true), np.transpose(probabilities), strict=True)
    ]
    assert found.loss == pytest.approx(np.mean(losses), rel=1e-4)
    assert found.micro_f1 > 0.9


def test_the_artifact_keeps_the_thresholds(artifact, predictor, tmp_path):
    artifact.save(tmp_path)
    loaded = Artifact.load(tmp_path)
    assert loaded.recipe.model.multi_label
    assert loaded.thresholds == artifact.thresholds
    assert len(loaded.thresholds) == 3
    texts = [example.text for example in tagged(30)]
    assert fathomer.load(tmp_path).predict(texts) == predictor.predict(texts)
    with pytest.raises(ArtifactError, match=r"gives several labels per text; use fathomer\.load"):
        fathomer.TextClassifier.load(tmp_path)


def test_thresholds_that_do_not_fit_the_labels_are_refused(artifact, tmp_path):
    artifact.save(tmp_path)
    path = tmp_path / "config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    for thresholds in ([0.5], [0.5, "high", 0.5], 0.5):
        path.write_text(json.dumps(config | {"thresholds": thresholds}), encoding="utf-8")
        with pytest.raises(ArtifactError, match="not a model that can be loaded"):
            Artifact.load(tmp_path)


def test_a_label_is_given_if_it_reaches_its_threshold(artifact):
    text = ["The hotel was swift and cheap."]
    [plain] = Predictor(artifact).predict(text)
    limits = (plain.probabilities["cheap"] + 1e-6, plain.probabilities["fast"] - 1e-6, 0.0)
    [answer] = Predictor(replace(artifact, thresholds=limits)).predict(text)
    assert answer.labels == ("fast", "kind")
    [careful] = Predictor(artifact).predict(text, abstain_below=1.0)
    assert (careful.labels, careful.label) == ((), None)


@settings(max_examples=200)
@given(
    rows=st.lists(
        st.tuples(st.sampled_from([0.1, 0.2, 0.45, 0.6, 0.8]), st.integers(0, 1)),
        min_size=1,
        max_size=20,
    )
)
def test_no_other_threshold_has_a_better_f1(rows):
    probabilities, true = map(np.asarray, zip(*rows, strict=True))
    [found] = tune_thresholds(probabilities[:, None], true[:, None])
    assert 0 <= found <= 1

    def f1(threshold):
        return sklearn.f1_score(true, probabilities >= threshold, zero_division=0)

    if true.sum() < MIN_SUPPORT:
        assert found == 0.5
    else:
        assert f1(found) == pytest.approx(max(map(f1, [0.05, 0.15, 0.3, 0.5, 0.7, 0.9])))


def test_the_threshold_of_a_rare_label_is_not_tuned():
    probabilities = np.linspace(0.2, 0.001, 100)
    true = np.zeros((100, 1), dtype=np.int64)
    true[60] = 1
    [found] = tune_thresholds(probabilities[:, None], true)
    assert found == 0.5


def test_a_known_temperature_of_independent_labels_is_recovered():
    random = np.random.default_rng(0)
    logits = random.normal(size=(3000, 3)) * 1.5
    true = (random.random(logits.shape) < 1 / (1 + np.exp(-logits))).astype(np.int64)
    logs = -np.log1p(np.exp(-3 * logits))
    assert fit_temperature(logs.astype(np.float32), true) == pytest.approx(3, rel=0.08)


def test_texts_without_labels_are_scored():
    answers = Classified(np.log(np.full((2, 2), 0.1)), np.zeros(0, dtype=np.int16))
    found = score(answers, np.zeros((2, 2), dtype=np.int64), ("a", "b"))
    assert (found.accuracy, found.micro_f1, found.macro_f1) == (1.0, 0.0, 0.0)
    assert found.loss == pytest.approx(-np.log(0.9))


def test_a_split_holds_out_texts_of_every_label():
    larger, smaller = split_stratified(tagged(), fraction=0.2, seed=0)
    assert larger.multi_label
    assert smaller.multi_label
    assert set(smaller.label_counts) == set(SIGNS)
    assert 25 <= len(smaller) <= 45
    sets = list(combinations("abcdefghijkl", 3))  # no two texts have the same labels
    distinct = Examples([Example("x", "|".join(found)) for found in sets], multi_label=True)
    assert 35 <= len(split_stratified(distinct, fraction=0.2, seed=0)[1]) <= 55
    alone = Examples([Example("x", f"a|{n}") for n in range(50)], multi_label=True)
    assert len(split_stratified(alone, fraction=0.2, seed=0)[0]) == 50, "each label is kept"


def test_weights_and_the_baseline_support_several_labels():
    examples = tagged(60)
    ones = fit(examples.weighted(np.ones(len(examples))), TINY).artifact.to_files()
    assert ones["model.safetensors"] == fit(examples, TINY).artifact.to_files()["model.safetensors"]
    tfidf = fit(examples, TINY.updated({"model": {"name": "tfidf"}})).artifact
    assert Predictor(tfidf).evaluate(examples).micro_f1 > 0.9
    with pytest.raises(ConfigError, match="class_weight=balanced needs one label per text"):
        fit(examples, TINY.updated({"train": {"class_weight": "balanced"}}))


def test_the_loss_is_the_mean_over_the_labels():
    logits = torch.tensor([[2.0, -1.0], [0.5, 0.0]])
    targets = torch.tensor([[1, 0], [0, 1]])
    yes, no = -torch.nn.functional.logsigmoid(logits), -torch.nn.functional.logsigmoid(-logits)
    expected = torch.where(targets == 1, yes, no).mean(1)
    assert text_losses(logits, targets, 0.0) == pytest.approx(expected)
    smoothed = 0.8 * expected + 0.2 * (yes + no).mean(1) / 2
    assert text_losses(logits, targets, 0.2) == pytest.approx(smoothed)


FILES = {
    "data.jsonl": '{"text": "x", "label": ["a", "b"]}\n{"text": "y", "label": []}\n'
    '{"text": "z", "label": "b|c"}\n{"text": "", "label": ["a"]}\n{"text": " ", "label": []}\n',
    "data.csv": "text,label\nx,a|b\ny,\nz, b | c \n,a\n,\n",
    "data.ft": "__label__a __label__b x\n__label__ y\n__label__b __label__c z\n__label__a\n__label__\n",
}


@pytest.mark.parametrize("name", FILES)
def test_labels_are_read_from_lists_and_split_at_bars(tmp_path, name):
    (tmp_path / name).write_text(FILES[name], encoding="utf-8")
    examples = read_examples(tmp_path / name, ReadOptions(multi_label=True))
    assert [example.text for example in examples] == ["x", "y", "z"]
    assert list(examples.label_sets) == [("a", "b"), (), ("b", "c")]
    assert examples.label_counts == {"a": 1, "b": 2, "c": 1}
    assert examples.skipped == {"empty text": 2}, "no label is allowed, no text is not"


@pytest.mark.parametrize(
    ("name", "line", "multi", "message"),
    [
        ("d.jsonl", '{"text": "x", "label": ["a"]}', False, "a list of labels; pass --multi-label"),
        (
            "d.jsonl",
            '{"text": "x", "label": ["a|b"]}',
            True,
            "a label must not be empty or contain '|', found 'a|b'",
        ),
        ("d.jsonl", '{"text": "x", "label": [""]}', True, "a label must not be empty or contain"),
        ("d.jsonl", '{"text": "x", "label": {"a": 1}}', True, "the label must be a string or"),
        (
            "d.ft",
            "__label__a __label__b x",
            False,
            "several labels; put them at the start and pass",
        ),
        ("d.ft", "__label__a x __label__b", True, "several labels; put them at the start and pass"),
    ],
)
def test_labels_that_do_not_fit_the_mode_are_a_clear_error(tmp_path, name, line, multi, message):
    (tmp_path / name).write_text(line + "\n", encoding="utf-8")
    with pytest.raises(DataError) as caught:
        read_examples(tmp_path / name, ReadOptions(multi_label=multi))
    assert str(caught.value).startswith(f"{tmp_path / name}, line 1: {message}")


def test_without_multi_label_a_bar_is_part_of_the_label(tmp_path):
    (tmp_path / "data.csv").write_text("text,label\nx,a|b\n", encoding="utf-8")
    assert read_examples(tmp_path / "data.csv").label_counts == {"a|b": 1}


def test_single_label_examples_are_refused(predictor):
    single = Examples([Example("The hotel was warm.", "kind")])
    with pytest.raises(DataError, match="the model gives several labels per text"):
        predictor.evaluate(single)


def test_explain_shows_all_labels(predictor):
    text = ["The hotel was swift and cheap."]
    [several], [none] = predictor.predict(text), predictor.predict(text, abstain_below=1.0)
    assert draw_prediction(several, max_depth=4, width=80).plain.startswith("cheap, fast  ")
    assert draw_prediction(none, max_depth=4, width=80).plain.startswith("no label  ")


def test_the_most_probable_of_several_labels_is_explained(predictor):
    for label, words in SIGNS.items():
        [prediction] = predictor.predict([f"The hotel was {words[0]}."], contributions=True)
        assert prediction.best == label
        strongest = max(prediction.words, key=lambda word: word.contribution)
        assert strongest.text == words[0]


def test_a_report_is_refused(predictor):
    with pytest.raises(ConfigError, match="one label per text"):
        make_report(predictor.answer(tagged(5)), tagged(5))


def test_the_service_answers_with_all_labels(predictor):
    schema = pytest.importorskip("fathomer.serve.schema", reason="the extra serve is missing")
    answers = predictor.predict(["The hotel was swift and cheap.", "The hotel was there."])
    several, none = (schema.TextAnswer.model_validate(answer.to_dict()) for answer in answers)
    assert several.labels == ["cheap", "fast"]
    assert (none.labels, none.label) == ([], None)


def test_from_a_file_to_answers(run, tmp_path):
    lines = [
        json.dumps({"text": example.text, "label": list(found)})
        for example, found in zip(tagged(), tagged().label_sets, strict=True)
    ]
    (tmp_path / "data.jsonl").write_text("\n".join(lines), encoding="utf-8")
    (tmp_path / "tiny.toml").write_text(TAGGED.to_toml(), encoding="utf-8")
    command = ["train", "data.jsonl", "--out", "model", "--recipe", "tiny.toml"]
    code, _, err = run(*command)
    assert (code, "line 1: a list of labels; pass --multi-label" in err) == (2, True)
    code, out, err = run("check", "data.jsonl", "--multi-label", "--json")
    assert (code, json.loads(out)["labels"]) == (0, tagged().label_counts), err
    assert json.loads(out)["command"].endswith(" --multi-label")
    code, out, err = run(*command, "--multi-label", "--no-baseline")
    assert code == 0, err
    code, out, err = run("evaluate", "model", "data.jsonl", "--json")
    assert code == 0, err
    assert json.loads(out)["micro_f1"] > 0.9
    _, out, _ = run("evaluate", "model", "data.jsonl")
    assert "\nmicro F1 " in out
    assert out.endswith("\nno confusion matrix: a text may have several labels\n")
    code, _, err = run("evaluate", "model", "data.jsonl", "--html", "page.html")
    assert err == "fathomer: --plot and --html show one label per text; this model gives several\n"
    assert code == 2
    (tmp_path / "texts.txt").write_text("The hotel was swift and cheap.\n", encoding="utf-8")
    _, out, _ = run("predict", "model", "texts.txt")
    assert json.loads(out)["labels"] == ["cheap", "fast"]
    table = "text\nThe hotel was swift and cheap.\nThe hotel was there.\n"
    (tmp_path / "texts.csv").write_text(table, encoding="utf-8")
    assert run("predict", "model", "texts.csv", "--out", "answers.csv")[0] == 0
    answers = (tmp_path / "answers.csv").read_text("utf-8").splitlines()
    assert [line.split(",")[1] for line in answers] == ["label", "cheap|fast", ""]
    code, out, _ = run("threshold", "model", "data.jsonl", "--recall", "0.9", "--label", "fast")
    assert code == 0
    code, _, err = run("train", "demo", "--out", "other", "--multi-label")
    assert err == "fathomer: demo has one label per text; remove --multi-label\n"
    assert code == 2
