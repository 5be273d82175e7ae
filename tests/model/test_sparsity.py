"""A stopped word costs nothing, and there is no padding: these tests count the matrix products.

They count the rows multiplied with each matrix, or the multiply-adds of each module.
"""

from collections import Counter

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from fathomer.model import DepthAdaptiveNetwork
from tests.model.networks import (
    RAGGED,
    copied_into,
    in_float64,
    packed,
    random_depths,
    random_network,
)

H = 6
WINDOW, WORD_GATE = (3 * H, 7 * H), (H, H)
NODE, NODE_MEAN = (H, (7 + 3) * H), (H, 2 * H)  # NODE: V of Eq. (2) and W of Eq. (3)
TOKEN, DEPTH = (5 + 4, 7 * H), (7, 7 * H)  # the two parts of U of Eq. (2)


class CountRows(TorchDispatchMode):
    """A counter of the rows multiplied with matrices of each shape (inputs, outputs)."""

    def __init__(self):
        super().__init__()
        self.rows = Counter()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if function.overloadpacket in (torch.ops.aten.mm, torch.ops.aten.addmm):
            rows, matrix = args[-2:]
            self.rows[tuple(matrix.shape)] += len(rows)
        elif function == torch.ops.mkldnn._linear_pointwise.default:
            self.rows[tuple(args[1].T.shape)] += len(args[0])
        elif function == torch.ops.mkldnn._linear_pointwise.binary:
            self.rows[tuple(args[2].T.shape)] += len(args[0])
        return function(*args, **(kwargs or {}))


def rows_multiplied(network: DepthAdaptiveNetwork, texts: list[list[int]], depths: Tensor):
    """Return the number of rows in the products of the network, by the shape of the matrix."""
    with CountRows() as counter, torch.no_grad():
        network(packed(texts), depths=depths)
    return counter.rows


def multiply_adds(
    network: DepthAdaptiveNetwork, texts: list[list[int]], depths: Tensor
) -> dict[str, int]:
    """Return the multiply-adds of each module by name; the empty name is the whole network."""
    network = in_float64(network)  # the counter does not see the fused float32 LSTM
    with FlopCounterMode(display=False, depth=None) as counter, torch.no_grad():
        network(packed(texts), depths=depths)
    counts = counter.get_flop_counts()
    root = type(network).__name__
    names = [name for name, _ in network.named_modules()]
    keys = {name: f"{root}.{name}" if name else root for name in names}
    return {name: sum(counts[key].values()) // 2 for name, key in keys.items() if key in counts}


def distinct_words(texts: list[list[int]]) -> int:
    return len({word for text in texts for word in text})


def test_a_stopped_word_costs_nothing():
    depths = random_depths(packed(RAGGED))
    rows = rows_multiplied(random_network(), RAGGED, depths)
    assert rows[WINDOW] == int(depths.sum())


def test_a_stopped_word_costs_nothing_in_the_backward_pass():
    depths = random_depths(packed(RAGGED))
    output = random_network()(packed(RAGGED), depths=depths)
    with CountRows() as counter:
        output.logits.sum().backward()
    assert counter.rows[7 * H, 3 * H] == int(depths.sum())


def test_the_gradient_of_a_matrix_is_one_product_over_all_layers():
    """It has a row for each output of the matrix, and sums over all rows multiplied with it."""
    depths = random_depths(packed(RAGGED))
    output = random_network()(packed(RAGGED), depths=depths)
    with CountRows() as counter:
        output.logits.sum().backward()
    nodes = int(depths.max()) * len(RAGGED)
    assert counter.rows[int(depths.sum()), 3 * H] == 7 * H
    assert counter.rows[nodes, H] == (7 + 3) * H + 2 * H  # NODE and NODE_MEAN
    assert counter.rows[distinct_words(RAGGED), 5 + 4] == 7 * H  # TOKEN


@pytest.mark.parametrize("word", range(1, 18))
def test_one_more_step_of_a_word_costs_one_more_row(word):
    """It is a row of the window product; the sentence node multiplies only words that changed."""
    network = random_network()
    depths = random_depths(packed(RAGGED), max_depth=3)
    depths[0] = 4  # the number of steps of the sentence nodes stays the same
    deeper = depths.clone()
    deeper[word] += 1
    before, after = (multiply_adds(network, RAGGED, each) for each in (depths, deeper))
    word_gate = H * H if deeper[word] < 4 else 0
    assert after[""] - before[""] == 3 * H * 7 * H + word_gate


def test_the_network_computes_only_the_products_of_the_equations():
    """U x is computed once for each distinct word and once for each depth, then added up."""
    depths = random_depths(packed(RAGGED))
    rows = rows_multiplied(random_network(sequence="none"), RAGGED, depths)
    layers = int(depths.max())
    assert rows == {
        (5 + 4, 7): len(depths),  # the depth classifier
        (7, 4): len(depths),
        TOKEN: distinct_words(RAGGED),
        DEPTH: 4,
        (7, H): len(depths),  # the initial states
        WINDOW: int(depths.sum()),
        WORD_GATE: len(depths) + int(depths.clamp(max=layers - 1).sum()),
        NODE: layers * len(RAGGED),
        NODE_MEAN: layers * len(RAGGED),
        (3 * H, 3): len(RAGGED),  # the labels
    }


def test_a_greater_max_depth_costs_only_more_depth_scores_and_embeddings():
    network = random_network(max_depth=4)
    depths = random_depths(packed(RAGGED))
    small = multiply_adds(network, RAGGED, depths)
    large = multiply_adds(copied_into(network, max_depth=9), RAGGED, depths)
    scores, embeddings = (9 - 4) * len(depths) * 7, (9 - 4) * 7 * 7 * H
    assert large["depth.scores"] - small["depth.scores"] == scores
    assert large[""] - small[""] == scores + embeddings


@pytest.mark.parametrize("product", ["depth.inner", "depth.scores", "output"])
def test_a_batch_costs_as_much_as_its_texts_alone(product):
    """This holds for all products over words, and for the output.

    It does not hold for the sentence nodes, which take as many steps as the deepest word of the
    batch, nor for what is computed once per distinct word.
    """
    network = random_network()
    batch = packed(RAGGED)
    depths = random_depths(batch)
    alone = 0
    for text, own in zip(RAGGED, depths.split(batch.lengths.tolist()), strict=True):
        alone += multiply_adds(network, [text], own).get(product, 0)
    assert multiply_adds(network, RAGGED, depths)[product] == alone


def test_texts_of_equal_depth_cost_the_same_together_and_alone():
    """This holds for all modules if the words differ and the texts are equally long and deep.

    Only the products with the depth embeddings are computed once for each batch.
    """
    network = random_network()
    texts = [[10, 11, 12], [13, 14, 15], [16, 17, 18]]
    depths = torch.tensor([1, 4, 2, 4, 4, 1, 1, 2, 4])
    together = multiply_adds(network, texts, depths)
    alone = [
        multiply_adds(network, [text], own)
        for text, own in zip(texts, depths.split(3), strict=True)
    ]
    once = 4 * 7 * 7 * H
    assert together[""] - once == sum(each[""] - once for each in alone)
    for name in together.keys() - {""}:
        assert together[name] == sum(each[name] for each in alone), name


def test_the_characters_of_a_repeated_word_are_computed_once():
    network = random_network()
    once = multiply_adds(network, [[3]], torch.ones(1, dtype=torch.long))
    often = multiply_adds(network, [[3] * 9, [3]], torch.ones(10, dtype=torch.long))
    name = "embedding.char"
    assert often[name] == once[name] == 3 * 3 * 4  # one byte: "3"


@pytest.mark.parametrize("texts", [[[3]], [[3] * 9, [3]], [[3, 5, 3], [], [5, -1, 3, -1]]], ids=str)
def test_the_token_of_a_repeated_word_is_multiplied_once(texts):
    depths = random_depths(packed(texts))
    rows = rows_multiplied(random_network(), texts, depths)
    assert rows[TOKEN] == distinct_words(texts)
    assert rows[WINDOW] == int(depths.sum())  # its states differ between occurrences


def test_the_bilstm_pads_to_the_longest_text_of_the_batch():
    """Nothing else does; batches are made of texts of similar length."""
    depths = random_depths(packed(RAGGED))
    counted = multiply_adds(random_network(), RAGGED, depths)["sequence"]
    places = len(RAGGED) * max(map(len, RAGGED))
    assert counted == 2 * places * (5 + 4 + 3) * 4 * 3
