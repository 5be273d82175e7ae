"""Tests that every model must pass, whichever package it belongs to.

A test class inherits from :class:`ModelContract` or :class:`StepwiseContract` and provides the names
of its models as the fixture ``name``, and for the first also a fixture ``train_command`` that runs
``train``.
"""

import json
from functools import cache

import jaxtyping
import pytest
import torch

import fathomer
from fathomer.artifact import Artifact
from fathomer.config import Recipe
from fathomer.data.demo import demo_corpus
from fathomer.data.examples import Examples
from fathomer.errors import ConfigError, DepthError
from fathomer.model import WordBatch
from fathomer.model.interface import DirectNetwork
from fathomer.model.products import mixed_precision
from fathomer.model.registry import MODELS, build_model
from fathomer.predictor import Predictor
from fathomer.train.checkpoint import EpochDone, trained_weights
from fathomer.train.fit import fit
from tests.model.baselines.small import LONG, WORDY, small_config, small_model
from tests.model.networks import packed

SMALL = Recipe().updated(
    {
        "model": {
            "word_size": 16,
            "char_size": 4,
            "char_input_size": 4,
            "depth_size": 16,
            "hidden_size": 32,
            "max_depth": 3,
            "word_dropout": 0.0,
            "hidden_dropout": 0.0,
        },
        "text": {"min_count": 1},
        "train": {"epochs": 60, "batch_words": 250, "learning_rate": 0.005},
    }
)


def models(names):
    """Return the fixture ``name`` of a test class: each of some models."""

    @pytest.fixture(params=names)
    def name(self, request):
        return request.param

    return name


def require_package(name):
    """Skip the test if the package behind a model is not installed."""
    if name == "fasttext":
        pytest.importorskip("fasttext", reason="the package fasttext is not installed")


@cache
def short_examples(count):
    """Return the shortest texts of the demo corpus's training set, equally many per label."""
    texts = sorted(demo_corpus(train=400, test=2)[0], key=lambda e: len(e.text.split()))
    chosen = {
        label: [e for e in texts if e.label == label][: count // 2]
        for label in ("positive", "negative")
    }
    return Examples([e for pair in zip(*chosen.values(), strict=True) for e in pair])


def recipe_of(name, **train):
    if name == "char-cnn":  # many small layers without normalisation
        train = {"learning_rate": 0.003, **train}
    return SMALL.updated({"model": {"name": name}, "train": train})


@cache
def fitted(name) -> Artifact:
    """Train a model on 64 examples until it classifies all of them correctly.

    This takes hundreds of steps, so shapes are only checked in the shorter trainings of other tests.
    """

    def until_correct(events):
        for event in events:
            yield event
            if isinstance(event, EpochDone) and event.held_out["accuracy"] == 1:
                return

    examples = short_examples(64)
    jaxtyping.config.update("jaxtyping_disable", True)
    try:
        return fit(examples, recipe_of(name), held_out=examples, watch=until_correct).artifact
    finally:
        jaxtyping.config.update("jaxtyping_disable", False)


class ModelContract:
    """Tests of all models, also of those that learn from all texts at once."""

    def test_it_learns_64_examples(self, name):
        require_package(name)
        found = Predictor(fitted(name)).evaluate(short_examples(64))
        assert found.examples == 64
        assert found.accuracy >= 0.99

    def test_it_refuses_several_labels_unless_two_can_be_probable(self, name):
        """Several labels need sigmoids: with logits that are never above 0, no label is given."""
        if name in ("adasent", "capsule-b", "early-exit", "fasttext"):
            with pytest.raises(ConfigError, match=f"the model {name} gives one label per text"):
                build_model(small_config(name, multi_label=True))
        elif name not in ("multi-qt", "tfidf"):  # these have a logistic regression per label
            networks = [small_model(name, seed=seed, multi_label=True) for seed in range(3)]
            logits = torch.cat([network(packed(WORDY)).logits for network in networks])
            assert logits.min() < 0 < logits.max()

    def test_a_prediction_does_not_depend_on_the_other_texts(self, name):
        require_package(name)
        predictor = Predictor(fitted(name))
        texts = [e.text for e in short_examples(24)]
        texts += ["", "film", "unheard-of wörds", " ".join(texts[:9])]
        for text, together in zip(texts, predictor.predict(texts), strict=True):
            [alone] = predictor.predict([text])
            assert alone.probabilities == pytest.approx(together.probabilities, abs=1e-5)

    @pytest.mark.parametrize("texts", [[], [[]], [[], []], [[5]]], ids=str)
    def test_a_batch_without_texts_or_words_is_classified(self, name, texts):
        output = small_model(name)(WordBatch.from_ids(texts))
        assert output.logits.shape == (len(texts), 3)
        assert output.logits.isfinite().all()
        assert output.depths.shape == (sum(map(len, texts)),)

    def test_a_saved_model_predicts_the_same(self, name, tmp_path):
        require_package(name)
        fitted(name).save(tmp_path / "model")
        texts = [*(e.text for e in short_examples(8)), "", "wörd"]
        before = Predictor(fitted(name)).predict(texts)
        assert fathomer.load(tmp_path / "model").predict(texts) == before
        card = (tmp_path / "model" / "README.md").read_text(encoding="utf-8")
        assert ("depth-adaptive" in card) == (name == "fathomer")
        assert name == "fathomer" or f"The model `{name}` ({MODELS[name].paper})" in card

    def test_the_same_seed_gives_the_same_model_and_another_seed_another(self, name):
        require_package(name)
        examples = short_examples(16)
        first, again, other = (
            fit(examples, recipe_of(name, epochs=1, held_out=0.0, seed=seed)).artifact.network
            for seed in (3, 3, 4)
        )
        mine, same, theirs = (network.state_dict() for network in (first, again, other))
        assert all(torch.equal(mine[key], same[key]) for key in mine)
        if not isinstance(first, DirectNetwork):
            assert any(not torch.equal(mine[key], theirs[key]) for key in mine)

    def test_only_our_network_has_depths_to_force(self, name):
        network, batch = small_model(name), WordBatch.from_ids([[1, 2]])
        if name == "fathomer":
            assert network(batch, max_depth=1).depths.tolist() == [1, 1]
            return
        with pytest.raises(DepthError, match=f"the model {name} has no depths"):
            network(batch, max_depth=1)
        assert network(batch).depths.tolist() == [0, 0]

    def test_it_is_trained_by_name(self, name, train_command, run, monkeypatch, tmp_path):
        require_package(name)
        monkeypatch.setattr(demo_corpus, "__kwdefaults__", {"seed": 0, "train": 60, "test": 20})
        (tmp_path / "tiny.toml").write_text(SMALL.to_toml(), encoding="utf-8")
        options = ["--recipe", "tiny.toml", "--set", "train.epochs=1", "--json"]
        code, out, err = train_command("train", "demo", "--out", "m", "--model", name, *options)
        assert code == 0, err
        assert json.loads(out)["test"]["examples"] == 20
        code, out, err = run("explain", "m", "not bad at all")
        assert code == 0, err
        assert ("mean depth" in out) == (name == "fathomer")
        assert "not" in out.splitlines()[2].split()


class StepwiseContract:
    """Tests of all models that are trained in steps."""

    def test_it_can_be_trained_in_bfloat16(self, name):
        model = small_model(name).float()
        batch = WordBatch.from_ids([[4, 8, 15], [], [16, 1, 2, 3, 9]])
        with mixed_precision("bfloat16"):
            loss = model(batch).logits.float().square().sum()
        loss.backward()
        assert all(p.grad.isfinite().all() for p in model.parameters() if p.grad is not None)

    @pytest.mark.parametrize("grad", [True, False])
    def test_logits_do_not_depend_on_the_rest_of_the_batch_or_its_order(self, name, grad):
        network = small_model(name)
        with torch.set_grad_enabled(grad):
            together = network(packed(LONG)).logits
            backwards = network(packed(LONG[::-1])).logits
            alone = torch.cat([network(packed([text])).logits for text in LONG])
        assert together.std(0).min() > 1e-3, "the logits hardly differ between texts"
        torch.testing.assert_close(together, alone, rtol=1e-9, atol=1e-9)
        torch.testing.assert_close(backwards.flip(0), alone, rtol=1e-9, atol=1e-9)

    def test_every_parameter_gets_a_gradient(self, name):
        network = small_model(name).train()
        logits = network(packed(LONG)).logits
        torch.nn.functional.cross_entropy(logits, torch.arange(len(LONG)) % 3).backward()
        for parameter_name, parameter in trained_weights(network).items():
            assert parameter.grad is not None, parameter_name
            assert parameter.grad.isfinite().all(), parameter_name
            assert parameter.grad.any(), parameter_name

    def test_gradients_of_a_single_empty_text_are_finite(self, name):
        network = small_model(name).train()
        logits = network(WordBatch.from_ids([[]])).logits
        torch.nn.functional.cross_entropy(logits, torch.tensor([1])).backward()
        gradients = [p.grad for p in network.parameters() if p.grad is not None]
        assert gradients
        assert all(gradient.isfinite().all() for gradient in gradients)
