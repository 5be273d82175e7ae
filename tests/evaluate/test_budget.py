"""Depth budgets: the average depth that was asked for is the one that is taken."""

import numpy as np
import pytest

import fathomer
from fathomer.data.demo import demo_corpus
from fathomer.errors import DepthError
from fathomer.evaluate.budget import DepthBudgets, calibrate_depth, depth_thresholds
from fathomer.model.fast import int8_available
from fathomer.predictor import Predictor
from fathomer.train.fit import fit
from tests.model.networks import random_network
from tests.tiny import TINY, supervised_artifact, tagged, tiny_artifact, tiny_examples


def mean_depth(predictor, texts, **options):
    found = predictor.predict(texts, **options)
    return np.mean([word.depth for prediction in found for word in prediction.words])


def unseen_texts():
    return [example.text for example in demo_corpus(seed=1, train=1, test=300)[1]]


def test_the_average_depth_is_the_target_on_the_held_out_texts():
    assert supervised_artifact().metrics["held_out"]["mean_depth"] == pytest.approx(2.0, rel=0.03)


@pytest.mark.parametrize("budget", [1.2, 1.5, 2.0, 3.0, 6.0])
def test_the_average_depth_of_unseen_texts_is_the_budget(budget):
    predictor = Predictor(supervised_artifact())
    found = mean_depth(predictor, unseen_texts(), depth_budget=budget)
    assert found == pytest.approx(budget, rel=0.1)


def test_the_smallest_and_the_largest_budget_read_every_word_alike():
    predictor = Predictor(supervised_artifact())
    texts = unseen_texts()[:20]
    assert mean_depth(predictor, texts, depth_budget=1) == pytest.approx(1, abs=0.05)
    assert mean_depth(predictor, texts, depth_budget=9) == pytest.approx(9, abs=0.05)
    assert mean_depth(predictor, texts, depth_budget=9, max_depth=3) == pytest.approx(3, abs=0.05)


def test_a_budget_changes_nothing_afterwards():
    predictor = Predictor(supervised_artifact())
    before = predictor.predict(["the film was not bad"])
    predictor.predict(["the film was not bad"], depth_budget=6)
    assert predictor.predict(["the film was not bad"]) == before


@pytest.mark.parametrize("budget", [0.9, 9.1, -1, float("nan"), float("inf")])
def test_a_budget_out_of_range_is_refused(budget):
    with pytest.raises(DepthError, match=rf"^depth budget {budget:g}; use 1 to 9$"):
        Predictor(supervised_artifact()).predict(["a"], depth_budget=budget)


def test_a_model_without_depth_or_without_a_table_says_so():
    tfidf = Predictor(fit(tiny_examples(), TINY.updated({"model": {"name": "tfidf"}})).artifact)
    with pytest.raises(DepthError, match=r"^words have no depth in the model tfidf; leave the"):
        tfidf.predict(["a"], depth_budget=2)
    with pytest.raises(
        DepthError, match=r"^the model has no table of depth budgets; train it with"
    ):
        Predictor(tiny_artifact()).predict(["a"], depth_budget=2)


def test_budgets_are_saved_and_loaded(tmp_path):
    supervised_artifact().save(tmp_path)
    loaded, saved = fathomer.load(tmp_path), Predictor(supervised_artifact())
    texts = unseen_texts()[:5]
    assert loaded.predict(texts, depth_budget=4) == saved.predict(texts, depth_budget=4)
    card = (tmp_path / "README.md").read_text("utf-8")
    assert "| depth budget | mean depth | accuracy | texts per second |" in card


@pytest.mark.skipif(not int8_available(), reason="this processor has no fast 8-bit products")
def test_int8_keeps_the_budget():
    predictor = Predictor(supervised_artifact(), precision="int8")
    assert mean_depth(predictor, unseen_texts(), depth_budget=3) == pytest.approx(3, rel=0.1)


def slow_mean(logits, shift):
    return np.mean([np.argmax(row + shift * np.arange(len(row))) + 1 for row in logits])


def test_thresholds_tell_the_average_depth_at_any_shift():
    logits = np.random.default_rng(0).normal(size=(200, 6))
    thresholds = depth_thresholds(logits)
    assert (np.diff(thresholds, axis=1) >= 0).all()
    for shift in (-5, -0.5, 0, 0.1, 1, 5):
        assert 1 + (thresholds < shift).sum() / 200 == pytest.approx(slow_mean(logits, shift))


def test_a_single_depth_and_texts_without_words_have_a_table():
    texts = Predictor(tiny_artifact()).answer(tiny_examples()).data.texts
    flat = random_network(depth="supervised", max_depth=1)
    budgets = calibrate_depth(flat, texts.take([]), target=1.0, batch_words=100)
    assert set(budgets.depths) == {1.0}
    empty = random_network(depth="supervised")
    found = calibrate_depth(empty, texts.take([]), target=2.0, batch_words=100)
    assert found.shift(2.0) == pytest.approx(0)


def test_a_model_with_several_labels_and_ngrams_has_a_curve():
    recipe = TINY.updated(
        {"model": {"depth": "supervised", "ngrams": True}, "train": {"epochs": 2}}
    )
    curve = fit(tagged(), recipe).artifact.metrics["depth_curve"]
    assert [point["budget"] for point in curve] == [1, 1.5, 2, 3, 4]
    assert all(0 <= point["accuracy"] <= 1 < point["texts_per_second"] for point in curve)


def test_without_held_out_texts_the_training_texts_set_the_depth():
    recipe = TINY.updated({"model": {"depth": "supervised"}, "train": {"epochs": 1, "held_out": 0}})
    artifact = fit(tiny_examples(), recipe).artifact
    assert artifact.depth_budgets.target == 2
    assert "depth_curve" not in artifact.metrics


def test_a_damaged_table_is_refused():
    with pytest.raises(ValueError, match="1 depths, 2 shifts"):
        DepthBudgets((1.0,), (0.0, 1.0), 2.0)
