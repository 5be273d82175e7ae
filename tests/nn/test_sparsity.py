"""A word that has stopped costs nothing, and padding does not exist: the products are counted.

Counted are multiply-adds of matrix products and convolutions, as they are dispatched.
"""

import pytest
import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from fathomer.nn import DepthAdaptiveNetwork

from .networks import RAGGED, copied_into, in_float64, packed, random_depths, random_network

H = 6
TOKEN = 5 + 4 + 7  # word, characters, depth
SENTENCE_NODES = ["slstm.sentence", "slstm.node", "slstm.node_mean"]


def multiply_adds(
    network: DepthAdaptiveNetwork, texts: list[list[int]], depths: Tensor
) -> dict[str, int]:
    """Count per module, by name; the empty name is the whole network."""
    network = in_float64(network)  # of the fused LSTM of float32 nothing is seen
    with FlopCounterMode(display=False, depth=None) as counter, torch.no_grad():
        network(packed(texts), depths=depths)
    counts = counter.get_flop_counts()
    root = type(network).__name__
    names = [name for name, _ in network.named_modules()]
    keys = {name: f"{root}.{name}" if name else root for name in names}
    return {name: sum(counts[key].values()) // 2 for name, key in keys.items() if key in counts}


def test_a_stopped_word_costs_nothing():
    depths = random_depths(packed(RAGGED))
    counted = multiply_adds(random_network(), RAGGED, depths)
    assert counted["slstm.window"] == int(depths.sum()) * 3 * H * 7 * H


@pytest.mark.parametrize("word", range(1, 18))
def test_one_more_step_of_a_word_costs_one_row_more(word):
    """The row is the window's; the sentence node looks at a word again only if it has changed."""
    network = random_network()
    depths = random_depths(packed(RAGGED), max_depth=3)
    depths[0] = 4  # so that no sentence node takes a step for the word's sake
    deeper = depths.clone()
    deeper[word] += 1
    before, after = (multiply_adds(network, RAGGED, each) for each in (depths, deeper))
    looks = H * H if deeper[word] < 4 else 0
    assert after[""] - before[""] == 3 * H * 7 * H + looks


def test_the_s_lstm_consists_of_the_products_of_the_equations():
    depths = random_depths(packed(RAGGED))
    counted = multiply_adds(random_network(), RAGGED, depths)
    window = int(depths.sum()) * 3 * H * 7 * H
    token = len(depths) * TOKEN * 7 * H
    looks = (len(depths) + int(depths.clamp(max=3).sum())) * H * H
    nodes = sum(counted[name] for name in SENTENCE_NODES)
    assert counted["slstm"] == window + token + looks + nodes


def test_sentence_nodes_cost_at_most_a_step_per_text_and_layer_of_the_batch():
    """V g, W g and U mean: 7 + 3 + 2 products of H by H, for no more texts than there are."""
    depths = random_depths(packed(RAGGED))
    counted = multiply_adds(random_network(), RAGGED, depths)
    nodes = sum(counted[name] for name in SENTENCE_NODES)
    assert nodes <= len(RAGGED) * int(depths.max()) * (7 + 3 + 2) * H * H


def test_max_depth_costs_nothing_but_the_scores_of_the_depths():
    network = random_network(max_depth=4)
    depths = random_depths(packed(RAGGED))
    small = multiply_adds(network, RAGGED, depths)
    large = multiply_adds(copied_into(network, max_depth=9), RAGGED, depths)
    assert large[""] - large["depth.scores"] == small[""] - small["depth.scores"]
    assert large["depth.scores"] == len(depths) * 7 * 9


@pytest.mark.parametrize(
    "product",
    ["sequence", "depth.inner", "depth.scores", "initial", "slstm.window", "slstm.token", "output"],
)
def test_a_batch_costs_what_its_texts_cost_alone(product):
    """Exact for every product over words, the BiLSTM's included, and for the output's over texts.

    Apart stand the sentence nodes (a step per layer of the batch's deepest word), their look at a
    word (one more when others run on) and the character CNN (once per distinct word of the batch).
    """
    network = random_network()
    batch = packed(RAGGED)
    depths = random_depths(batch)
    alone = 0
    for text, own in zip(RAGGED, depths.split(batch.lengths.tolist()), strict=True):
        alone += multiply_adds(network, [text], own).get(product, 0)
    assert multiply_adds(network, RAGGED, depths)[product] == alone


def test_texts_of_equal_depth_cost_together_what_they_cost_alone():
    """With disjoint words of like spelling and the same deepest depth it holds for everything."""
    network = random_network()
    texts = [[10, 11, 12], [13], [14, 15, 16, 17, 18]]
    depths = torch.tensor([1, 4, 2, 4, 4, 1, 1, 2, 3])
    together = multiply_adds(network, texts, depths)
    alone = [
        multiply_adds(network, [text], own)
        for text, own in zip(texts, depths.split([3, 1, 5]), strict=True)
    ]
    assert together == {name: sum(each[name] for each in alone) for name in together}


def test_a_repeated_word_is_spelled_once():
    network = random_network()
    once = multiply_adds(network, [[3]], torch.ones(1, dtype=torch.long))
    often = multiply_adds(network, [[3] * 9, [3]], torch.ones(10, dtype=torch.long))
    assert often["embedding"] == once["embedding"] == 3 * 3 * 4  # one byte: "3"
