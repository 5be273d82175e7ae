"""Target depths: scores computed by hand, and depths with the wanted average."""

import math
from collections import Counter
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fathomer.data.labelled import LabelledTexts
from fathomer.errors import ConfigError
from fathomer.text.encode import EncodedTexts
from fathomer.train.depth_targets import (
    depths_by_rank,
    mutual_information,
    random_scores,
    rarity,
    step_importance,
    truncated_geometric,
    type_scores,
    types_of,
    with_depth_targets,
)
from fathomer.train.prepare import prepare
from tests.model.networks import UNKNOWN, packed, random_network
from tests.tiny import TINY, tagged, tiny_prepared

LOG2 = math.log(2)
SUPERVISED = TINY.updated({"model": {"depth": "supervised"}})


def labelled(texts, targets):
    """Return texts of word ids with their labels; negative ids are unknown words."""
    starts = np.cumsum([0, *map(len, texts)])
    ids = np.array([word for text in texts for word in text], dtype=np.int32)
    return LabelledTexts(EncodedTexts(ids, starts, UNKNOWN.numpy()), np.array(targets))


def by_word(data, scores):
    """Return the score of each word that occurs."""
    types, num_types = types_of(data.texts)
    assert len(scores) == num_types
    return dict(zip(data.texts.ids.tolist(), scores[types].tolist(), strict=True))


# Four texts, two of each label: 0 is in all, 1 in both of one label, 2 in one of each, 3 in one.
FOUR = labelled([[0, 1, 2], [0, 1, 1], [0, 2, 3], [0, 0]], [0, 0, 1, 1])
ONE_OF_FOUR = LOG2 - 0.75 * -(1 / 3 * math.log(1 / 3) + 2 / 3 * math.log(2 / 3))


def test_mutual_information_agrees_with_a_computation_by_hand():
    found = by_word(FOUR, mutual_information(FOUR))
    assert found == pytest.approx({0: 0.0, 1: LOG2, 2: 0.0, 3: ONE_OF_FOUR}, abs=1e-12)


def test_an_unknown_word_that_occurs_once_has_the_information_of_any_such_word():
    data = labelled([[0, -3], [0], [0, 5], [0, -1]], [0, 0, 1, 1])
    found = by_word(data, mutual_information(data))
    assert found == pytest.approx({0: 0, -3: ONE_OF_FOUR, 5: ONE_OF_FOUR, -1: ONE_OF_FOUR})


def slow_information(data):
    """Compute the information from all four joint probabilities of every word and label."""
    starts, texts = data.texts.starts, []
    for first, end in pairwise(starts):
        texts.append(set(data.texts.ids[first:end].tolist()))
    targets = data.targets if data.targets.ndim == 2 else data.targets[:, None]
    found = Counter()
    for word in set().union(*texts):
        for column in targets.T.tolist():
            joint = Counter(
                (word in text, label) for text, label in zip(texts, column, strict=True)
            )
            for (there, label), count in joint.items():
                p = count / len(texts)
                of_word = sum(c for (t, _), c in joint.items() if t == there) / len(texts)
                of_label = sum(c for (_, y), c in joint.items() if y == label) / len(texts)
                found[word] += p * math.log(p / of_word / of_label)
    return dict(found)


UNEQUAL = labelled([[0, 1]] * 97 + [[0, 2], [0, 2, 1], [3, 2]], [0] * 98 + [1, 2])
SEVERAL = labelled([[0, 1], [1, -2], [2, 0], [2], []], [[1, 0], [1, 1], [0, 1], [0, 0], [0, 1]])


@pytest.mark.parametrize("block", [2, 10_000])
@pytest.mark.parametrize("data", [FOUR, UNEQUAL, SEVERAL], ids=["four", "unequal", "several"])
def test_mutual_information_agrees_with_its_definition(monkeypatch, data, block):
    monkeypatch.setattr("fathomer.train.depth_targets._BLOCK", block)
    found = by_word(data, mutual_information(data))
    assert found == pytest.approx(slow_information(data), abs=1e-12)


def test_prior_texts_draw_the_labels_of_a_word_towards_those_of_all_texts():
    found = by_word(FOUR, mutual_information(FOUR, prior=2))
    with_one = 3 / 4 * math.log(3 / 2) + 1 / 4 * math.log(1 / 2)  # 2 and 0 become 3 and 1
    assert found[1] == pytest.approx(with_one)
    assert found[0] == found[2] == pytest.approx(0, abs=1e-12)
    with_three = 1 / 3 * math.log(2 / 3) + 2 / 3 * math.log(4 / 3)  # 0 and 1 become 1 and 2
    without = 3 / 5 * math.log(6 / 5) + 2 / 5 * math.log(4 / 5)  # 2 and 1 become 3 and 2
    assert found[3] == pytest.approx(with_three / 4 + without * 3 / 4)


def test_a_few_texts_of_one_label_are_not_taken_for_information():
    frequent = [[1]] * 55 + [[0]] * 45 + [[1]] * 45 + [[0]] * 55
    rare = [[2], [2], [2], [3], [3], [3]]
    data = labelled([*frequent, *rare], [0] * 100 + [1] * 100 + [0, 0, 0, 1, 1, 1])
    plain = by_word(data, mutual_information(data))
    found = by_word(data, type_scores(data, "mi", seed=0))
    assert plain[1] < min(plain[2], plain[3])
    assert found[1] > max(found[2], found[3])


def test_with_unequal_labels_the_sign_of_the_rare_label_is_the_most_informative_word():
    found = by_word(UNEQUAL, mutual_information(UNEQUAL))
    assert max(found, key=found.get) == 2


def test_rare_words_have_the_highest_rarity():
    assert by_word(FOUR, rarity(FOUR)) == {0: -5, 1: -3, 2: -2, 3: -1}


def test_random_scores_belong_to_word_types_and_follow_the_seed():
    first, again, other = (random_scores(FOUR, seed=seed) for seed in (0, 0, 1))
    assert len(set(by_word(FOUR, first).values())) == 4
    assert first.tolist() == again.tolist() != other.tolist()


@pytest.mark.parametrize("mean", [1.0, 1.2, 2.0, 3.0, 5.0, 6.5, 9.0])
def test_depths_have_the_wanted_average_over_running_words(mean):
    depths = depths_by_rank(np.random.default_rng(0).random(20_000), mean=mean, max_depth=9)
    assert depths.mean() == pytest.approx(mean, rel=0.01)
    assert (depths.min(), depths.max()) >= (1, 1)


def test_depths_follow_a_truncated_geometric_distribution():
    depths = depths_by_rank(np.random.default_rng(0).random(50_000), mean=2.0, max_depth=6)
    shares = np.bincount(depths, minlength=7)[1:] / len(depths)
    np.testing.assert_allclose(shares[1:] / shares[:-1], shares[1] / shares[0], rtol=0.02)
    assert truncated_geometric(1.0, 4).tolist() == [0.25] * 4


def test_the_average_is_weighted_by_running_words_and_equal_words_have_equal_depths():
    """The most frequent of 3,000 types are 2 % of the words, the rarest 0.01 %."""
    shares = 1 / np.arange(10, 3010)
    types = np.random.default_rng(0).choice(3000, 40_000, p=shares / shares.sum())
    counts, scores = np.bincount(types, minlength=3000), np.random.default_rng(1).random(3000)
    depths = depths_by_rank(scores, counts=counts, mean=2.0, max_depth=6)
    assert depths[types].mean() == pytest.approx(2.0, rel=0.01)
    one_by_one = depths_by_rank(scores[types], mean=2.0, max_depth=6)
    assert one_by_one.tolist() == depths[types].tolist()


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 5), max_size=30), st.floats(1, 4))
def test_higher_scores_never_have_smaller_depths(scores, mean):
    depths = depths_by_rank(np.array(scores, dtype=float), mean=mean, max_depth=4)
    pairs = sorted(zip(scores, depths.tolist(), strict=True))
    assert [depth for _, depth in pairs] == sorted(depth for _, depth in pairs)
    assert all(1 <= depth <= 4 for depth in depths)


def test_the_importance_of_steps_agrees_with_finite_differences():
    """With L = 2 the gate is the second step of a word: mix its states with those of the first."""
    network = random_network(max_depth=2, word_dropout=0.0, hidden_dropout=0.0).double()
    texts = labelled([[4, 8, 15], [], [16, -1]], [0, 1, 0]).texts
    found = step_importance(network, texts, batch_words=100)
    batch = packed([[4, 8, 15], [], [16, -1]])
    transition, step = type(network.slstm).word_transition, 1e-6

    def answer(word, size):
        calls = []

        def partly(states, sums, from_node, graph):
            h, c = transition(network.slstm, states, sums, from_node, graph)
            calls.append(1)
            gate = torch.ones(len(h), 1, dtype=torch.double)
            gate[word] -= size * (len(calls) == 2)
            return states.h[:-1].lerp(h, gate), states.c[:-1].lerp(c, gate)

        network.slstm.word_transition = partly
        with torch.no_grad():
            depths = torch.full((5,), 2)
            logits = network(batch, depths=depths).logits.log_softmax(1).amax(1).sum()
        del network.slstm.word_transition
        return logits.item()

    for word in range(5):
        assert found[word] == pytest.approx(abs(answer(word, step) - answer(word, 0)) / step, 1e-3)
    assert len(set(found.tolist())) == 5


@pytest.mark.parametrize("target", ["mi", "frequency", "random", "oracle"])
def test_every_target_gives_depths_to_all_training_words(target):
    recipe = SUPERVISED.updated({"train": {"depth_target": target, "epochs": 1}})
    prepared = tiny_prepared(recipe)
    before = {name: weight.clone() for name, weight in prepared.network.state_dict().items()}
    depths = with_depth_targets(prepared).train.depths
    assert len(depths) == len(prepared.train.texts.ids)
    assert set(depths.tolist()) <= {1, 2, 3, 4}
    assert depths.mean() == pytest.approx(2, rel=0.2), "few types: each is a large share"
    after = prepared.network.state_dict()
    assert all(torch.equal(after[name], weight) for name, weight in before.items())


def test_the_oracle_depends_on_the_context():
    prepared = tiny_prepared(SUPERVISED.updated({"train": {"depth_target": "oracle"}}))
    depths, ids = with_depth_targets(prepared).train.depths, prepared.train.texts.ids
    assert any(len(set(depths[ids == word].tolist())) > 1 for word in set(ids.tolist()))


def test_only_supervised_networks_have_targets():
    assert with_depth_targets(tiny_prepared()).train.depths is None
    tfidf = SUPERVISED.updated({"model": {"name": "tfidf"}})
    assert with_depth_targets(tiny_prepared(tfidf)).train.depths is None


def test_a_target_above_the_largest_depth_is_refused():
    prepared = tiny_prepared(SUPERVISED.updated({"train": {"target_depth": 5.0}}))
    with pytest.raises(ConfigError, match=r"^target_depth 5 is above model.max_depth; use 1 to 4"):
        with_depth_targets(prepared)


def test_several_labels_have_targets_too():
    prepared = with_depth_targets(prepare(tagged(), SUPERVISED))
    texts, depths = prepared.train.texts, prepared.train.depths
    words = np.array(prepared.tokenizer.vocabulary)[texts.ids]
    for word in ("The", "hotel", "was"):  # in every text
        assert set(depths[words == word].tolist()) == {1}
    for word in ("cheap", "swift", "warm"):
        assert depths[words == word].min() > 1
    empty = replace(
        prepared.train, texts=prepared.train.texts.take([]), targets=np.zeros((0, 3), int)
    )
    assert not mutual_information(empty).any()
    assert depths_by_rank(rarity(empty), counts=np.zeros(0), mean=2.0, max_depth=4).tolist() == []
