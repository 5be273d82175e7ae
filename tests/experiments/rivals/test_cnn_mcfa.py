"""The CNN with translations as contexts."""

import json
from random import Random

import pytest
import torch

import fathomer
from experiments.rivals import cnn_mcfa
from experiments.rivals.cnn_mcfa import SEPARATOR, with_translations
from experiments.rivals.translations import FILE
from fathomer.data.examples import Example, Examples
from fathomer.errors import DataError
from fathomer.predictor import Predictor
from fathomer.train.fit import fit
from tests.experiments.rivals.test_text_cnn import max_over_time
from tests.model.baselines.contract import SMALL
from tests.model.baselines.small import assert_close, small_model, tokens_of
from tests.model.networks import packed

RECIPE = SMALL.updated({"model": {"name": "cnn-mcfa"}})


def parts_of(text):
    """Split a list of ids at the unknown word -2, which the tests use as the separator."""
    parts = [[]]
    for word in text:
        if word == -2:
            parts.append([])
        else:
            parts[-1].append(word)
    return parts


def oracle(network, text):
    """Compute the equations of the docstring, one context at a time."""
    contexts = list(network.contexts)
    parts = parts_of(text)
    v = [
        max_over_time(one.convolutions, tokens_of(network, parts[i] if i < len(parts) else []))
        for i, one in enumerate(contexts)
    ]
    a = [torch.sigmoid(one.self_usability.weight[0] @ v[j]) for j, one in enumerate(contexts)]
    fixed = []
    for i, one in enumerate(contexts):
        scores = []
        for j, other in enumerate(contexts):
            inside = one.compared.weight @ v[i] + a[j] * (other.compared.weight @ v[j]) + one.bias
            scores.append(one.relative_usability.weight[0] @ torch.tanh(inside))
        total = sum(torch.exp(score) for score in scores)
        c = sum(
            torch.exp(scores[j]) / total * (other.shared.weight @ v[j])
            for j, other in enumerate(contexts)
        )
        gate = one.fixing.weight @ torch.cat([v[i], c]) + one.fixing.bias
        fixed.append(v[i] * torch.sigmoid(gate))
    return network.output(torch.cat(fixed))


def test_it_agrees_with_plain_loops(monkeypatch):
    monkeypatch.setattr(cnn_mcfa, "SEPARATOR", "z")
    network = small_model("cnn-mcfa", hidden_size=12)
    texts = [[4, 8, -2, 15], [], [16, 3], [-2, 7, -1], [7, 1, -2], [3, 3, -2, 19, 7, 2, -3]]
    found = network(packed(texts)).logits
    assert_close(found, torch.stack([oracle(network, text) for text in texts]))


def test_words_belong_to_the_context_after_the_last_separator(monkeypatch):
    monkeypatch.setattr(cnn_mcfa, "SEPARATOR", "z")
    network = small_model("cnn-mcfa")
    found = network.part_of(packed([[4, -2, 5, 6], [-1, 3], [-2, -2, 8]]))
    assert found.tolist() == [0, -1, 1, 1, 0, 0, -1, -1, 1]  # there is one translation


def test_a_text_is_followed_by_its_translations(tmp_path, monkeypatch):
    path = tmp_path / "a.csv"
    path.write_text("text,de,fr\na film,ein Film,un film\n", encoding="utf-8")
    monkeypatch.setenv(FILE, str(path))
    whole = f"a film {SEPARATOR} ein Film {SEPARATOR} un film"
    assert with_translations("a film") == with_translations(whole) == whole
    assert with_translations("a book") == "a book"


def ambiguous_examples(path):
    """Write translations; the label is in the second word of the second language only."""
    random, examples, rows = Random(0), [], []
    for number in range(60):
        label = random.choice("xy")
        text = f"text {number} {random.choice('abc')}"
        rows.append({"text": text, "one": f"one {number}", "two": f"two {label}{label} end"})
        examples.append(Example(text, label))
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return Examples(examples)


def test_it_learns_from_a_made_up_language_what_the_text_does_not_say(tmp_path, monkeypatch):
    examples = ambiguous_examples(tmp_path / "rows.jsonl")
    monkeypatch.setenv(FILE, str(tmp_path / "rows.jsonl"))
    unseen, seen = examples.take(range(20)), examples.take(range(20, 60))
    artifact = fit(seen, RECIPE.updated({"train": {"epochs": 15, "held_out": 0.0}})).artifact
    assert len(artifact.network.contexts) == 3
    assert Predictor(artifact).evaluate(unseen).accuracy == 1
    artifact.save(tmp_path / "model")
    loaded = fathomer.load(tmp_path / "model")
    texts = [example.text for example in unseen]
    assert loaded.predict(texts) == Predictor(artifact).predict(texts)
    monkeypatch.delenv(FILE)
    assert len(loaded.predict(texts)) == 20  # now without translations


def test_without_translations_it_is_refused_in_one_line(monkeypatch):
    monkeypatch.delenv(FILE, raising=False)
    examples = Examples([Example("good film", "good"), Example("bad film", "bad")] * 4)
    with pytest.raises(DataError, match="cnn-mcfa: no training text has a translation; set") as why:
        fit(examples, RECIPE)
    assert "\n" not in str(why.value)
