"""SWEM-concat."""

import torch

from tests.model.baselines.small import WORDY, assert_agrees, assert_close, small_model, tokens_of
from tests.model.networks import packed


def oracle(network, text):
    """Pool the refined words in plain loops."""
    words = [network.refine(token).relu().tolist() for token in tokens_of(network, text)]
    highest = [max(word[i] for word in words) for i in range(6)]
    mean = [sum(word[i] for word in words) / len(words) for i in range(6)]
    return network.output(
        network.hidden(torch.tensor([*highest, *mean], dtype=torch.float64)).relu()
    )


def test_it_pools_maximum_and_mean_of_the_refined_words():
    network = small_model("swem-concat", hidden_size=6)
    assert_agrees(network, oracle, WORDY)


def test_word_order_is_ignored():
    network = small_model("swem-concat", hidden_size=6)
    there, back = network(packed([[1, 2, 3, -1], [-1, 3, 1, 2]])).logits
    assert_close(there, back)
