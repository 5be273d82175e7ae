"""The scikit-learn estimator: fitting, predicting, weights and warm starts."""

import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import get_tags

import fathomer
from fathomer.errors import ConfigError, DataError
from fathomer.recipes import find_recipe
from fathomer.train.fit import Fitted
from tests.small_classifier import LABELS, TEXTS, classifier, small_settings, weights_of
from tests.tiny import TINY


@pytest.fixture(scope="module")
def fitted():
    return classifier().fit(TEXTS, LABELS)


def test_it_learns_and_predicts(fitted):
    assert fitted.score(TEXTS, LABELS) >= 0.9
    assert fitted.classes_.tolist() == ["negative", "positive"]
    probabilities = fitted.predict_proba(TEXTS)
    assert probabilities.shape == (60, 2)
    assert probabilities.sum(1) == pytest.approx(1)
    assert (fitted.predict(TEXTS) == fitted.classes_[probabilities.argmax(1)]).all()


@pytest.mark.parametrize("values", [(2, 10), (True, False), ("b", "a")])
def test_labels_keep_their_type(values):
    labels = np.asarray([values[label == "positive"] for label in LABELS])
    fitted = classifier().fit(np.asarray(TEXTS), labels)
    assert fitted.classes_.tolist() == sorted(values)
    assert fitted.predict(TEXTS).dtype == labels.dtype
    assert fitted.score(TEXTS, labels) >= 0.9


def test_the_same_seed_gives_the_same_answers(fitted):
    again, other = classifier().fit(TEXTS, LABELS), classifier(seed=1).fit(TEXTS, LABELS)
    assert (again.predict_proba(TEXTS) == fitted.predict_proba(TEXTS)).all()
    assert (other.predict_proba(TEXTS) != fitted.predict_proba(TEXTS)).any()


def test_it_can_be_cloned_and_its_parameters_set(fitted):
    parameters = fitted.get_params()
    assert parameters["max_depth"] == 3
    copy = clone(fitted)
    assert copy.get_params() == parameters
    with pytest.raises(NotFittedError):
        copy.predict(TEXTS)
    assert copy.set_params(epochs=2).epochs == 2


def test_a_grid_search_finds_the_better_setting():
    grid = GridSearchCV(classifier(), {"epochs": [1, 12]}, cv=2)
    assert grid.fit(TEXTS * 2, LABELS * 2).best_params_ == {"epochs": 12}
    assert grid.best_score_ >= 0.9
    assert grid.score(TEXTS, LABELS) >= 0.9


def test_cross_validation_scores_every_fold():
    scores = cross_val_score(classifier(epochs=12), TEXTS * 2, LABELS * 2, cv=2)
    assert len(scores) == 2
    assert scores.mean() >= 0.9


def test_it_can_be_the_last_step_of_a_pipeline():
    lower = FunctionTransformer(lambda texts: [text.lower() for text in texts])
    pipeline = Pipeline([("lower", lower), ("classify", classifier())]).fit(TEXTS, LABELS)
    assert pipeline.predict(["THE FILM WAS LOVELY."]).tolist() == ["positive"]


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
def test_scikit_learn_can_calibrate_it(method):
    calibrated = CalibratedClassifierCV(classifier(), method=method, cv=2).fit(TEXTS, LABELS)
    assert calibrated.score(TEXTS, LABELS) >= 0.9
    assert calibrated.predict_proba(TEXTS).sum(1) == pytest.approx(1)


def test_weights_reach_training_through_a_search():
    texts, labels = ["a fine film"] * 40, ["no", "yes"] * 20
    weights = np.asarray([1.0, 9.0] * 20)
    grid = GridSearchCV(classifier(), {"epochs": [12]}, cv=2)
    grid.fit(texts, labels, sample_weight=weights)
    assert grid.predict(texts[:1]).tolist() == ["yes"]
    assert grid.score(texts, labels) == 0.5


def test_equal_weights_change_nothing(fitted):
    weighted = classifier().fit(TEXTS, LABELS, sample_weight=np.ones(len(TEXTS)))
    assert weights_of(weighted) == weights_of(fitted)
    one_each = classifier(class_weight={"positive": 1, "negative": 1}).fit(TEXTS, LABELS)
    assert weights_of(one_each) == weights_of(fitted)


def test_labels_can_be_weighted():
    texts, even, rare = ["a fine film"] * 40, [0, 1] * 20, [0, 1, 1, 1] * 10
    settings = {**small_settings(), "train.held_out": 0.0}

    def probability_of_one(labels, class_weight):
        fitted = classifier(epochs=12, class_weight=class_weight, settings=settings)
        return fitted.fit(texts, labels).predict_proba(texts[:1])[0, 1]

    assert probability_of_one(even, {0: 1, 1: 9}) > 0.7
    assert probability_of_one(rare, None) > 0.6
    assert probability_of_one(rare, "balanced") == pytest.approx(0.5, abs=0.07)


def test_a_warm_start_continues_from_the_first_fit():
    warm = classifier(warm_start=True, settings=small_settings(TINY)).fit(TEXTS, LABELS)
    first, answers = warm.predictor_, warm.predictor_.predict(TEXTS)
    warm.set_params(epochs=2).fit(["A quaint film was lovely.", *TEXTS], ["positive", *LABELS])
    assert first.predict(TEXTS) == answers, "the second fit changed the first model"
    assert warm.predictor_.artifact.tokenizer is first.artifact.tokenizer
    before, after = (p.artifact.metrics["history"] for p in (first, warm.predictor_))
    assert len(after) == 2
    assert after[0]["loss"] < 0.8 * before[0]["loss"]
    assert warm.score(TEXTS, LABELS) >= 0.9


def test_a_second_fit_without_warm_start_starts_from_scratch(fitted):
    again = classifier().fit(TEXTS[:20], LABELS[:20]).fit(TEXTS, LABELS)
    assert weights_of(again) == weights_of(fitted)


def test_a_warm_start_keeps_labels_and_sizes():
    warm = classifier(warm_start=True, epochs=1).fit(TEXTS, LABELS)
    with pytest.raises(DataError, match="label 'neutral' does not occur in the training data"):
        warm.fit(["so so"] * 20, ["neutral", "positive"] * 10)
    with pytest.raises(
        ConfigError, match=r"continue with model.hidden_size = 16: the model has 12"
    ):
        warm.set_params(hidden_size=16).fit(TEXTS, LABELS)
    warm.set_params(hidden_size=12, settings={**small_settings(), "text.max_chars": 9})
    with pytest.raises(ConfigError, match=r"continue with text.max_chars = 9: the model has 32"):
        warm.fit(TEXTS, LABELS)
    assert warm.classes_.tolist() == ["negative", "positive"]


def test_a_model_without_epochs_cannot_be_warm_started():
    settings = {**small_settings(), "model.name": "tfidf"}
    warm = classifier(warm_start=True, settings=settings).fit(TEXTS, LABELS)
    with pytest.raises(ConfigError, match="the model tfidf is fitted in one go and cannot be"):
        warm.fit(TEXTS, LABELS)


def test_new_texts_are_learned_with_the_old_vocabulary_and_labels():
    first = classifier(epochs=6, settings=small_settings(TINY)).fit(TEXTS, LABELS)
    before = first.predictor_.artifact
    new = ["The film was a masterpiece."] * 60
    assert "masterpiece" not in before.tokenizer.vocabulary
    probability = first.predict_proba(new[:1])[0, 1]
    for _ in range(3):
        first.partial_fit([*new, *TEXTS], ["negative"] * 60 + LABELS)
    assert first.predict_proba(new[:1])[0, 1] < 0.5 * probability
    assert first.score(TEXTS, LABELS) >= 0.8, "trained on, too, and not forgotten"
    after = first.predictor_.artifact
    assert (after.tokenizer, after.labels) == (before.tokenizer, before.labels)
    assert after.temperature == before.temperature


def test_the_first_partial_fit_needs_all_classes():
    with pytest.raises(DataError, match="no text has the label 'neutral'; the first call"):
        classifier().partial_fit(TEXTS, LABELS, classes=["negative", "neutral", "positive"])
    first = classifier(epochs=1).partial_fit(TEXTS, LABELS, classes=["negative", "positive"])
    with pytest.warns(UserWarning, match="no new text has the label 'negative': the model may"):
        first.partial_fit(["a fine film"] * 4, ["positive"] * 4)
    with pytest.raises(DataError, match="label 'neutral' does not occur in the training data"):
        first.partial_fit(["so so"] * 4, ["neutral", *LABELS[:3]])


def test_many_texts_are_predicted_in_chunks(fitted, monkeypatch):
    whole = fitted.predict_proba(TEXTS)
    monkeypatch.setattr("fathomer.estimator.CHUNK_TEXTS", 7)
    np.testing.assert_allclose(fitted.predict_proba(TEXTS), whole, atol=1e-6)
    assert fitted.predict_proba([]).shape == (0, 2)


def test_ctrl_c_ends_a_search(monkeypatch):
    monkeypatch.setattr("fathomer.estimator.fit", lambda *a, **k: Fitted(None, interrupted=True))
    with pytest.raises(KeyboardInterrupt):
        classifier().fit(TEXTS, LABELS)


def test_the_tags_ask_for_texts():
    tags = get_tags(classifier())
    assert tags.estimator_type == "classifier"
    assert (tags.input_tags.string, tags.input_tags.one_d_array) == (True, True)
    assert not tags.input_tags.two_d_array
    assert tags.target_tags.required


def test_the_how_to_page_shows_the_small_recipe():
    page = Path(__file__).parents[1] / "docs" / "howto" / "scikit-learn.md"
    [code] = re.findall(r"`(fathomer\.TextClassifier\(recipe=.*?\))`", page.read_text("utf-8"))
    assert eval(code, {"fathomer": fathomer})._recipe() == find_recipe("small")


def test_several_vectors_are_joined_by_name_or_path(tmp_path):
    paths = [tmp_path / "a.txt", tmp_path / "b.txt"]
    paths[0].write_text("good 1 2\nbad 2 1\n", encoding="utf-8")
    paths[1].write_text("film 1 2 3\n", encoding="utf-8")
    for given, size in ((paths, 5), (str(paths[0]), 2)):
        fitted = clone(classifier(vectors=given)).fit(TEXTS, LABELS)
        assert fitted.predictor_.artifact.network.config.word_size == size
