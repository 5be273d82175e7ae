"""TF-IDF of words and pairs: scikit-learn's answers, by itself and mixed into a network."""

from random import Random

import numpy as np
import pytest
import safetensors.torch
import torch
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

import fathomer
from fathomer.artifact import WEIGHTS, Artifact
from fathomer.config import ModelConfig
from fathomer.data.examples import Example, Examples
from fathomer.data.labelled import encode_examples
from fathomer.errors import DataError
from fathomer.evaluate.calibrate import SHARES, fit_temperature, tune_share
from fathomer.evaluate.metrics import score
from fathomer.files import sha256_of
from fathomer.model import WordBatch, ngrams
from fathomer.model.fast import fast_network, int8_available
from fathomer.model.inference import classify
from fathomer.model.ngrams import DEFAULT_PENALTY, PENALTIES, UNSEEN
from fathomer.model.registry import build_model
from fathomer.predictor import Predictor
from fathomer.text.encode import EncodedTexts
from fathomer.train.checkpoint import EpochDone
from fathomer.train.fit import fit
from fathomer.train.prepare import prepare
from tests.tiny import TINY, tagged, tiny_examples, tiny_prepared
from tests.train.test_loop import interrupt_after, weights_hash

TFIDF = TINY.updated({"model": {"name": "tfidf"}})
MIXED = TINY.updated({"model": {"ngrams": True}})
WORDS = ["good", "Bad", "fine", "a", "film", "Film", "plot", ",", "x1", "not", "café"]


def random_examples(count, *, labels=3, seed=0, hints=2):
    """Return texts of random words and a few that may show the label."""
    random = Random(seed)
    items = []
    for _ in range(count):
        label = random.randrange(labels)
        words = random.choices(WORDS, k=random.randrange(1, 12))
        words += random.choices([WORDS[label], "not"], k=hints)
        items.append(Example(" ".join(words), "abc"[label]))
    return Examples(items)


def learned(train, held_out=None, recipe=TFIDF):
    """Return the preparation of a model that has learned from all of the texts."""
    recipe = recipe.updated({"train": {"held_out": 0.0}})
    prepared = prepare(train, recipe, held_out=held_out)
    data, unseen = prepared.train, prepared.held_out
    prepared.network.learn(
        data.texts, data.targets, seed=0, held_out=unseen and (unseen.texts, unseen.targets)
    )
    return prepared


def encoded(prepared, texts):
    words = prepared.tokenizer.encode(texts, max_words=50)
    return EncodedTexts.from_words(words, max_chars=prepared.recipe.text.max_chars)


def batch_of(prepared, texts):
    found = encoded(prepared, texts)
    return WordBatch.from_packed(found.pack(range(len(found))))


def logits_of(prepared, texts):
    with torch.no_grad():
        return prepared.network.eval()(batch_of(prepared, texts)).logits


def of_scikit_learn(train, texts, *, penalty):
    """Return scikit-learn's probabilities for the texts."""
    vectorizer = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True)
    features = vectorizer.fit_transform([example.text for example in train])
    regression = LogisticRegression(C=penalty, max_iter=1000)
    regression.fit(features, [example.label for example in train])
    return regression.predict_proba(vectorizer.transform(texts))


@pytest.mark.parametrize("labels", [2, 3])
def test_it_gives_the_probabilities_of_scikit_learn(labels):
    train = random_examples(80, labels=labels)
    texts = [example.text for example in random_examples(40, labels=labels, seed=1)]
    found = logits_of(learned(train), texts).softmax(1).numpy()
    expected = of_scikit_learn(train, texts, penalty=DEFAULT_PENALTY)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)


def test_the_penalty_has_the_smallest_loss_on_the_held_out_texts():
    chosen = set()
    for hints in (0, 2, 12):
        train, held_out = (random_examples(60, seed=seed, hints=hints) for seed in (1, 2))
        texts = [example.text for example in held_out]
        truth = ["abc".index(example.label) for example in held_out]
        expected = [of_scikit_learn(train, texts, penalty=penalty) for penalty in PENALTIES]
        losses = [-np.log(rows[np.arange(len(truth)), truth]).mean() for rows in expected]
        best = int(np.argmin(losses))
        found = logits_of(learned(train, held_out), texts).softmax(1).numpy()
        np.testing.assert_allclose(found, expected[best], rtol=0, atol=1e-4)
        chosen.add(best)
    assert len(chosen) == 3, "these texts need different penalties"


def test_of_many_texts_only_what_several_of_them_contain_is_kept(monkeypatch):
    items = [("good film", "a"), ("good plot plot", "b"), ("good film", "a"), ("rare", "b")]
    train = Examples([Example(*item) for item in items])
    assert len(learned(train).network.regression.keys) == 4 + 3  # words and pairs
    monkeypatch.setattr(ngrams, "MANY_TEXTS", 4)
    prepared = learned(train)
    keys = prepared.network.regression.keys.tolist()
    words = [prepared.tokenizer.vocabulary[key] for key in keys if key < len(prepared.tokenizer)]
    assert sorted(words) == ["film", "good"]
    assert len(keys) == 3  # "plot" is twice in one text; "good film" is in two


def test_the_penalty_is_not_searched_for_in_many_texts(monkeypatch):
    train, held_out = random_examples(60), random_examples(40, seed=1)
    monkeypatch.setattr(ngrams, "MANY_TEXTS", 60)
    alone, beside = learned(train).network, learned(train, held_out).network
    assert torch.equal(alone.regression.weight, beside.regression.weight)


def test_many_texts_without_a_common_word_have_no_ngrams(monkeypatch):
    monkeypatch.setattr(ngrams, "MANY_TEXTS", 2)
    texts = ["good", "bad", "fine", "dull"]
    train = Examples([Example(text, "ab"[n % 2]) for n, text in enumerate(texts)])
    with pytest.raises(DataError, match="TF-IDF cannot be trained on these texts: no word"):
        learned(train)
    network = prepare(train, MIXED).network.eval()
    assert (len(network.ngrams.keys), float(network.ngrams.share)) == (0, 0.0)
    assert network(WordBatch.from_ids([[1, 2], []])).logits.isfinite().all()


def test_an_empty_text_and_unknown_words_get_the_bias():
    prepared = learned(random_examples(40))
    bias = prepared.network.regression.bias
    for text in ("", "a , ,", "unheard of", "..."):
        assert torch.equal(logits_of(prepared, [text])[0], bias), text
    found = logits_of(prepared, ["", "good film", ""])
    assert torch.equal(found[0], found[2])
    assert not torch.equal(found[1], bias)


def test_unknown_words_are_left_out_and_case_is_ignored():
    prepared = learned(random_examples(40))
    first, second, third = logits_of(
        prepared, ["good film", "good unheard-of film", "GOOD a , Film"]
    )
    assert torch.equal(first, second)
    assert torch.equal(first, third)


def test_a_pair_does_not_reach_into_the_next_text():
    prepared = learned(random_examples(40))
    together = logits_of(prepared, ["good", "film", "not bad"])
    alone = [logits_of(prepared, [text])[0] for text in ("good", "film", "not bad")]
    torch.testing.assert_close(together, torch.stack(alone))


def test_several_labels_are_one_regression_each():
    examples = tagged(60)
    prepared = learned(examples)
    texts = [example.text for example in examples]
    vectorizer = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True)
    features = vectorizer.fit_transform(texts)
    found = logits_of(prepared, texts).sigmoid().numpy()
    for column, label in enumerate(prepared.labels):
        truth = [label in labels for labels in examples.label_sets]
        regression = LogisticRegression(C=DEFAULT_PENALTY, max_iter=1000).fit(features, truth)
        expected = regression.predict_proba(features)[:, 1]
        np.testing.assert_allclose(found[:, column], expected, rtol=0, atol=1e-5)


def test_a_label_that_no_text_or_every_text_has_gets_a_fixed_logit():
    prepared = prepare(tagged(30), TFIDF.updated({"train": {"held_out": 0.0}}))
    targets = prepared.train.targets.copy()
    targets[:, 0], targets[:, 1] = 0, 1
    prepared.network.learn(prepared.train.texts, targets, seed=0)
    logits = logits_of(prepared, ["The hotel was warm.", ""])
    assert logits[:, 0].tolist() == [UNSEEN, UNSEEN]
    assert logits[:, 1].tolist() == [-UNSEEN, -UNSEEN]


def test_tensors_without_a_prefix_are_those_of_an_old_tfidf_model(tmp_path):
    artifact = fit(tiny_examples(), TFIDF).artifact
    artifact.save(tmp_path)
    path = tmp_path / WEIGHTS
    old = {
        name.removeprefix("regression."): tensor
        for name, tensor in safetensors.torch.load_file(path).items()
        if not name.endswith(".share")
    }
    assert sorted(old) == ["bias", "forms", "idf", "keys", "weight"]
    before = sha256_of(path)
    safetensors.torch.save_file(old, path)
    config = tmp_path / "config.json"
    config.write_text(config.read_text("utf-8").replace(before, sha256_of(path)), encoding="utf-8")
    texts = ["The film was good.", "A dull book", ""]
    assert fathomer.load(tmp_path).predict(texts) == Predictor(artifact).predict(texts)


@pytest.fixture(scope="module")
def mixed():
    """A network with n-grams after one epoch."""
    recipe = MIXED.updated({"train": {"epochs": 1}})
    return fit(tiny_examples(), recipe).artifact


def mixed_batch(artifact):
    data = encode_examples(
        tiny_examples(20), artifact.tokenizer, artifact.labels, artifact.recipe.text
    )
    return WordBatch.from_packed(data.texts.pack(range(len(data))))


def own_network(artifact):
    """Return the same network without its n-grams."""
    network = build_model(
        ModelConfig(**{**artifact.recipe.model.to_dict(), "ngrams": False}),
        spellings=artifact.network.embedding.spellings,
    )
    weights = artifact.network.state_dict().items()
    network.load_state_dict({k: v for k, v in weights if not k.startswith("ngrams.")})
    return network


@pytest.fixture
def share(mixed):
    """The share of the n-grams, to be changed by a test."""
    tensor = mixed.network.ngrams.share
    before = tensor.clone()
    yield tensor
    tensor.copy_(before)
    mixed.network.eval()


@torch.no_grad()
def test_in_training_the_logits_are_those_of_the_network_alone(mixed, share):
    share.fill_(1.0)
    batch, results = mixed_batch(mixed), []
    for network in (mixed.network.train(), own_network(mixed).train()):
        torch.manual_seed(5)  # of dropout and depths
        results.append(network(batch).logits)
    assert torch.equal(*results)


@torch.no_grad()
def test_the_share_leads_from_the_network_to_tfidf(mixed, share):
    batch = mixed_batch(mixed)
    alone = own_network(mixed).eval()(batch).logits
    tfidf = mixed.network.ngrams(batch)
    assert (alone - tfidf).abs().amax(1).min() > 0.1
    for part in SHARES:
        share.fill_(part)
        expected = (1 - part) * alone + part * tfidf
        torch.testing.assert_close(mixed.network(batch).logits, expected)


def test_tfidf_inside_a_network_is_tfidf(mixed):
    """Both have the same split, words and seed."""
    artifact = fit(tiny_examples(), TFIDF).artifact
    for name, tensor in artifact.network.regression.state_dict().items():
        if name != "share":
            assert torch.equal(tensor, mixed.network.ngrams.get_buffer(name)), name


@torch.no_grad()
@pytest.mark.parametrize("precision", ["float32", "int8"])
@pytest.mark.parametrize("part", [0.25, 1.0])
def test_the_fast_engine_mixes_in_the_same_ngrams(mixed, share, precision, part):
    if precision == "int8" and not int8_available():
        pytest.skip("this processor has no VNNI")
    share.fill_(part)
    batch = mixed_batch(mixed)
    fast = fast_network(mixed.network, precision=precision)
    tolerance = 1e-5 if precision == "float32" or part == 1.0 else 0.02
    expected = mixed.network(batch).logits
    torch.testing.assert_close(fast(batch).logits, expected, rtol=0, atol=tolerance)


def test_a_comparison_model_mixes_in_ngrams_too():
    recipe = MIXED.updated({"model": {"name": "bilstm"}, "train": {"epochs": 1}})
    artifact = fit(tiny_examples(), recipe).artifact
    batch = mixed_batch(artifact)
    artifact.network.ngrams.share.fill_(1.0)
    with torch.no_grad():
        expected = artifact.network.ngrams(batch)
        torch.testing.assert_close(artifact.network(batch).logits, expected)


def test_a_saved_model_with_ngrams_gives_the_same_answers(mixed, tmp_path):
    mixed.save(tmp_path)
    loaded = Artifact.load(tmp_path)
    assert weights_hash(loaded.network) == weights_hash(mixed.network)
    texts = [*(example.text for example in tiny_examples(20)), "", "unheard of"]
    assert Predictor(loaded).predict(texts) == Predictor(mixed).predict(texts)


def test_a_resumed_training_with_ngrams_ends_like_an_uninterrupted_one(tmp_path):
    stopped = fit(tiny_examples(), MIXED, folder=tmp_path, watch=interrupt_after(2))
    assert stopped.interrupted
    resumed = fit(tiny_examples(), MIXED, folder=tmp_path, resume=True).artifact
    straight = fit(tiny_examples(), MIXED).artifact
    assert weights_hash(resumed.network) == weights_hash(straight.network)
    assert resumed.temperature == straight.temperature
    assert resumed.metrics["ngrams"] == straight.metrics["ngrams"]


def test_training_is_the_same_with_and_without_ngrams():
    """They have no part in the gradients; only the epoch that is kept may differ."""
    results = []
    for recipe in (MIXED, TINY):
        records = []

        def watch(events, records=records):
            for event in events:
                records += [event.loss] if isinstance(event, EpochDone) else []
                yield event

        fit(tiny_examples(), recipe, watch=watch)
        results.append(records)
    assert results[0] == results[1]


def tuned(prepared):
    data = prepared.held_out
    return tune_share(prepared.network, data.texts, data.targets, batch_words=100)


def test_the_better_part_gets_the_whole_share():
    useless_network = tiny_prepared(MIXED)
    useless_network.network.output.weight.data.zero_()
    assert tuned(useless_network) > 0
    useless_network.network.output.weight.data.normal_(std=100)  # noise
    assert tuned(useless_network) == 1.0
    assert float(useless_network.network.ngrams.share) == 1.0

    network = fit(tiny_examples(), MIXED.updated({"train": {"epochs": 15}})).artifact.network
    useless_ngrams = tiny_prepared(MIXED)
    useless_ngrams.network.load_tensors(network.state_dict())
    weight = useless_ngrams.network.ngrams.weight
    weight.copy_(100 * torch.randn(weight.shape, generator=torch.Generator().manual_seed(0)))
    assert tuned(useless_ngrams) == 0.0


@pytest.mark.parametrize("examples", [tiny_examples(), tagged()], ids=["one label", "several"])
def test_the_share_has_the_smallest_loss_of_the_mixed_network(examples):
    recipe = MIXED.updated({"train": {"epochs": 3}})
    prepared = prepare(examples, recipe)
    prepared.network.load_tensors(fit(examples, recipe).artifact.network.state_dict())
    network, data = prepared.network, prepared.held_out
    chosen, losses = tuned(prepared), {}
    for share in SHARES:
        network.ngrams.share.fill_(share)
        found = classify(network, data.texts, batch_words=100).log_probabilities
        temperature = fit_temperature(found, data.targets)
        scaled = classify(network, data.texts, batch_words=100, temperature=temperature)
        losses[share] = score(scaled, data.targets, prepared.labels).loss
    assert max(losses.values()) > min(losses.values()) + 0.05
    assert losses[chosen] == pytest.approx(min(losses.values()), abs=0.005)


def test_the_share_is_tuned_recorded_and_used(mixed):
    found = mixed.metrics["ngrams"]
    assert found == {
        "share": float(mixed.network.ngrams.share),
        "count": len(mixed.network.ngrams.keys),
    }
    assert found["share"] > 0, "after one epoch, TF-IDF knows more"
    assert found["count"] > 10


def test_without_held_out_texts_both_parts_have_half():
    recipe = MIXED.updated({"train": {"epochs": 1, "held_out": 0.0}})
    artifact = fit(tiny_examples(), recipe).artifact
    assert artifact.metrics["ngrams"]["share"] == 0.5
