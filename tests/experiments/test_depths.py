"""Depth analysis: groups agree with the words, and a forced depth is really taken."""

import json

import numpy as np
import pytest

import experiments.depths as depths_module
from experiments.depths import analyse_depths, spearman
from fathomer.data.labelled import encode_examples
from fathomer.errors import ConfigError, DepthError
from fathomer.model.inference import classify
from fathomer.predictor import Predictor
from fathomer.train.fit import fit
from tests.tiny import TINY, tagged, tagged_artifact, tiny_artifact, tiny_examples, write_csv


@pytest.fixture(scope="module")
def found():
    return analyse_depths(Predictor(tiny_artifact()), tiny_examples())


def test_every_grouping_contains_all_words_and_their_mean_depth(found):
    depths = [w.depth for p in Predictor(tiny_artifact()).predict(e.text for e in tiny_examples())
              for w in p.words]  # fmt: skip
    for rows in (found.by_frequency, found.by_length, found.by_position, found.by_vocabulary):
        assert sum(row.words for row in rows) == found.words == len(depths)
        mean = sum(row.words * row.mean_depth for row in rows) / found.words
        assert mean == pytest.approx(found.mean_depth) == pytest.approx(np.mean(depths))


def test_positions_and_lengths_are_those_of_the_words(found):
    assert [(row.name, row.words) for row in found.by_position] == [
        ("1", 60), ("2", 60), ("3–4", 120), ("5–9", 60)
    ], "five words each: The film was good ."  # fmt: skip
    assert found.by_length[0][:2] == ("1", 60), "the full stops"


def test_the_deepest_words_are_deeper_than_the_shallowest(monkeypatch):
    monkeypatch.setattr(depths_module, "EXTREMES", 3)  # there are 14 distinct words
    found = analyse_depths(Predictor(tiny_artifact()), tiny_examples())
    assert len(found.deepest) == len(found.shallowest) == 3
    deepest, shallowest = ([row.mean_depth for row in rows]
                           for rows in (found.deepest, found.shallowest))  # fmt: skip
    assert deepest == sorted(deepest, reverse=True)
    assert shallowest == sorted(shallowest)
    assert deepest[-1] >= shallowest[-1]
    assert deepest[0] > shallowest[0]


def test_of_words_with_equal_depth_the_most_frequent_are_listed(monkeypatch):
    monkeypatch.setattr(depths_module, "EXTREMES", 2)
    names, counts = np.array(["a", "b", "c", "d"]), np.array([1, 5, 9, 5])
    means = np.array([2.0, 2.0, 2.0, 2.0])
    rows = depths_module._extreme_words(names, counts, means, by=-means)
    assert [row[:2] for row in rows] == [("c", 9), ("b", 5)]


def test_a_forced_depth_is_taken_by_every_word(found):
    predictor = Predictor(tiny_artifact())
    artifact = predictor.artifact
    data = encode_examples(
        tiny_examples(), artifact.tokenizer, artifact.labels, artifact.recipe.text
    )
    for depth in (1, 4):
        depths = np.full(len(data.texts.ids), depth)
        answers = classify(predictor.network, data.texts, batch_words=60, depths=depths)
        assert set(answers.depths.tolist()) == {depth}
        right = float(np.mean(answers.labels == data.targets))
        assert dict(found.forced)[depth] == right
    assert [row.depth for row in found.forced] == [1, 2, 3, 4]
    with pytest.raises(DepthError):
        classify(predictor.network, data.texts, batch_words=60, depths=depths + 1)


def test_each_word_can_be_forced_to_its_own_depth():
    predictor = Predictor(tiny_artifact())
    artifact = predictor.artifact
    data = encode_examples(
        tiny_examples(), artifact.tokenizer, artifact.labels, artifact.recipe.text
    )
    selected = classify(predictor.network, data.texts, batch_words=60)
    again = classify(predictor.network, data.texts, batch_words=90, depths=selected.depths)
    np.testing.assert_allclose(again.log_probabilities, selected.log_probabilities, atol=1e-5)
    shuffled = np.random.default_rng(3).permutation(selected.depths)
    other = classify(predictor.network, data.texts, batch_words=60, depths=shuffled)
    assert other.depths.tolist() == shuffled.tolist() != selected.depths.tolist()


def test_shuffling_equal_depths_changes_nothing():
    flat = TINY.updated({"model": {"max_depth": 1}})
    found = analyse_depths(Predictor(fit(tiny_examples(), flat).artifact), tiny_examples())
    assert set(found.shuffled) == {found.accuracy}


def test_the_rank_correlation_has_its_sign_and_equal_values_share_a_rank():
    assert spearman(np.array([5, 1, 5, 9]), np.array([2.5, 1.0, 2.5, 4.0])) == 1.0
    up, down = np.arange(9), -(np.arange(9) ** 3)
    assert spearman(up, up) == pytest.approx(1)
    assert spearman(up, down) == pytest.approx(-1)
    assert spearman(up, np.ones(9)) is None


def test_the_command_prints_and_draws(run_experiments, tmp_path):
    tiny_artifact().save(tmp_path / "model")
    data = str(write_csv(tmp_path / "opinions.csv", tiny_examples()))
    code, out, _ = run_experiments("depths", "model", data, "--plot", "depths.png", "--json")
    assert code == 0
    content = json.loads(out)
    assert list(content["by_position"][0]) == ["name", "words", "mean_depth"]
    assert content["by_position"][0]["words"] == 60
    assert len(content["dealt"]) == 10, "the key is part of the format of result files"
    assert (tmp_path / "depths.png").read_bytes()[1:4] == b"PNG"
    code, out, _ = run_experiments("depths", "model", data)
    assert code == 0
    assert "every word at depth" in out
    assert "selected, shuffled between words" in out


def test_a_chart_that_cannot_be_written_is_refused_before_the_analysis(run_experiments):
    code, _, err = run_experiments("depths", "nowhere", "demo", "--plot", "none/depths.png")
    assert code == 2
    assert err == "fathomer: none/depths.png: cannot be written (No such file or directory)\n"


def test_a_model_without_depth_is_refused():
    artifact = fit(tiny_examples(), TINY.updated({"model": {"name": "tfidf"}})).artifact
    with pytest.raises(ConfigError, match="words have no depth in the model tfidf"):
        analyse_depths(Predictor(artifact), tiny_examples())


def test_a_multi_label_model_is_refused():
    with pytest.raises(ConfigError, match="multi-label model cannot be analysed"):
        analyse_depths(Predictor(tagged_artifact()), tagged())
