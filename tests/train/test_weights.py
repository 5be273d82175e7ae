"""Weights of texts: they scale the loss, equal ones change nothing, and invalid ones are refused."""

from collections import Counter

import numpy as np
import pytest

from fathomer.data.examples import Example, Examples
from fathomer.errors import ConfigError, DataError
from fathomer.train.fit import fit
from fathomer.train.folder import CHECKPOINT
from fathomer.train.prepare import prepare
from tests.tiny import TINY, tiny_examples
from tests.train.test_loop import interrupt_after, weights_hash

BALANCED = TINY.updated({"train": {"class_weight": "balanced"}})
TFIDF = TINY.updated({"model": {"name": "tfidf"}})


def contradictory(count: int = 60) -> Examples:
    """Return the same text with both labels, so that only the weights decide the answer."""
    return Examples(
        [Example("The film was fine.", label) for label in ("no", "yes")] * (count // 2)
    )


def probability_of_yes(examples, recipe=TINY):
    from fathomer.predictor import Predictor

    artifact = fit(examples, recipe.updated({"train": {"held_out": 0.0, "epochs": 12}})).artifact
    [answer] = Predictor(artifact).predict(["The film was fine."])
    return answer.probabilities["yes"]


@pytest.mark.parametrize("weight", [1.0, 0.1, 7.0])
@pytest.mark.parametrize("recipe", [TINY, TINY.updated({"train": {"label_smoothing": 0.1}}), TFIDF])
def test_equal_weights_change_nothing(weight, recipe):
    examples = tiny_examples()
    weighted = examples.weighted(np.full(len(examples), weight))
    assert prepare(weighted, recipe).train.weights is not None
    plain, equal = fit(examples, recipe).artifact, fit(weighted, recipe).artifact
    assert weights_hash(equal.network) == weights_hash(plain.network)
    assert equal.metrics["history"] == plain.metrics["history"]


def test_balanced_weights_change_nothing_if_labels_are_balanced():
    balanced, plain = fit(tiny_examples(), BALANCED).artifact, fit(tiny_examples(), TINY).artifact
    assert weights_hash(balanced.network) == weights_hash(plain.network)


@pytest.mark.parametrize("recipe", [TINY, TFIDF])
def test_a_text_with_a_larger_weight_decides(recipe):
    examples = contradictory()
    for heavy, low, high in (("yes", 0.6, 1.0), ("no", 0.0, 0.4)):
        weights = [9.0 if example.label == heavy else 1.0 for example in examples]
        assert low < probability_of_yes(examples.weighted(weights), recipe) < high


@pytest.mark.parametrize("recipe", [TINY, TFIDF])
def test_a_text_with_zero_weight_is_ignored(recipe):
    examples = contradictory()
    weights = [float(example.label == "yes") for example in examples]
    assert probability_of_yes(examples.weighted(weights), recipe) > 0.9


@pytest.mark.parametrize("recipe", [TINY, TFIDF])
def test_balanced_weights_make_up_for_rare_labels(recipe):
    many = contradictory(20).items
    rare = Examples([*many, *(example for example in many if example.label == "yes")] * 3)
    assert probability_of_yes(rare, recipe) > 0.58
    balanced = recipe.updated({"train": {"class_weight": "balanced"}})
    assert probability_of_yes(rare, balanced) == pytest.approx(0.5, abs=0.05)


def test_balanced_weights_are_those_of_scikit_learn():
    from sklearn.utils.class_weight import compute_sample_weight

    examples = Examples([Example("film", label) for label in "aabbbbbbc"])
    recipe = BALANCED.updated({"train": {"held_out": 0.0}})
    expected = compute_sample_weight("balanced", list(examples.labels))
    assert prepare(examples, recipe).train.weights == pytest.approx(expected / expected.mean())


def test_weights_follow_their_texts_through_the_split():
    examples = tiny_examples()
    weights = np.arange(1.0, len(examples) + 1)
    weight_of = Counter(dict(zip(map(id, examples.items), weights.tolist(), strict=True)))
    kept = examples.weighted(weights).take([5, 3, 8])
    assert kept.weights.tolist() == [weight_of[id(example)] for example in kept]
    found = prepare(examples.weighted(weights), TINY).train.weights
    assert found.mean() == pytest.approx(1)
    assert len(found) == 48
    assert (np.diff(found) > 0).all()  # the split keeps the order


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0], r"60 texts, but weights of shape \(1,\)"),
        (np.ones((60, 1)), r"60 texts, but weights of shape \(60, 1\)"),
        ([1.0] * 59 + [-1.0], "weight 59 is -1.0; weights must be finite and not negative"),
        ([np.nan] + [1.0] * 59, "weight 0 is nan; weights must be finite and not negative"),
        ([np.inf] + [1.0] * 59, "weight 0 is inf; weights must be finite and not negative"),
        ([0.0] * 60, "all weights are zero; there is nothing to learn from"),
    ],
)
def test_invalid_weights_are_a_clear_error(weights, message):
    with pytest.raises(DataError, match=f"^{message}$"):
        tiny_examples().weighted(weights)


def test_weights_that_are_all_zero_outside_the_held_out_part_are_refused():
    examples = tiny_examples()
    kept = {id(example) for example in prepare_split(examples)}
    weights = [float(id(example) not in kept) for example in examples.items]
    with pytest.raises(DataError, match="all weights are zero"):
        fit(examples.weighted(weights), TINY)


def prepare_split(examples):
    from fathomer.data.examples import split_stratified

    fraction, seed = TINY.train.held_out, TINY.train.seed
    return split_stratified(examples, fraction=fraction, seed=seed)[0]


def test_a_run_cannot_be_resumed_with_other_weights(tmp_path):
    examples = tiny_examples()
    fit(examples, TINY, folder=tmp_path, watch=interrupt_after(1))
    assert (tmp_path / CHECKPOINT).exists()
    with pytest.raises(ConfigError, match=r"was made with data = "):
        fit(examples.weighted([1.0, 2.0] * 30), TINY, folder=tmp_path, resume=True)
