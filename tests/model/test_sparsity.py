"""A word that has stopped costs nothing, and padding does not exist: the products are counted.

Counted are the rows that are multiplied with each matrix of the S-LSTM, as they are dispatched, and
the multiply-adds of the other modules.
"""

from collections import Counter

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
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
DISTINCT = len({word for text in RAGGED for word in text})
WINDOW, LOOK = (3 * H, 7 * H), (H, H)
SENTENCE, NODE, NODE_MEAN = (H, 7 * H), (H, 3 * H), (H, 2 * H)


class CountRows(TorchDispatchMode):
    """Count the rows that are multiplied with matrices of each shape (inputs, outputs)."""

    def __init__(self):
        super().__init__()
        self.rows = Counter()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        factors = {torch.ops.aten.mm: args[:2], torch.ops.aten.addmm: args[1:3]}
        if function.overloadpacket in factors:
            rows, matrix = factors[function.overloadpacket]
            self.rows[tuple(matrix.shape)] += len(rows)
        return function(*args, **(kwargs or {}))


def rows_multiplied(network: DepthAdaptiveNetwork, texts: list[list[int]], depths: Tensor):
    """Count the rows of the S-LSTM's products, by the shape of the matrix."""
    counter = CountRows()
    network.slstm.register_forward_pre_hook(lambda *_: counter.__enter__() and None)
    network.slstm.register_forward_hook(lambda *_: counter.__exit__(None, None, None))
    with torch.no_grad():
        network(packed(texts), depths=depths)
    return counter.rows


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
    rows = rows_multiplied(random_network(), RAGGED, depths)
    assert rows[WINDOW] == int(depths.sum())


def test_a_stopped_word_costs_nothing_on_the_way_back():
    depths = random_depths(packed(RAGGED))
    output = random_network()(packed(RAGGED), depths=depths)
    with CountRows() as counter:
        output.logits.sum().backward()
    assert counter.rows[7 * H, 3 * H] == int(depths.sum())


def test_the_first_layer_is_folded_where_that_pays():
    """The window is then taken of the narrow inner vectors, with a column of ones beside them."""
    network = random_network(hidden_size=12, depth_size=4)
    depths = random_depths(packed(RAGGED))
    rows = rows_multiplied(network, RAGGED, depths)
    assert rows[3 * (4 + 1), 7 * 12] == len(depths)
    assert rows[3 * 12, 7 * 12] == int(depths.sum()) - len(depths)


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
    rows = rows_multiplied(random_network(), RAGGED, depths)
    layers = int(depths.max())
    assert rows == {
        WINDOW: int(depths.sum()),
        (5 + 4, 7 * H): DISTINCT,  # word and characters, once for all words that are equal
        (7, 7 * H): 4,  # the depth embedding, once per depth
        (7, H): len(depths),  # the initial states
        LOOK: len(depths) + int(depths.clamp(max=layers - 1).sum()),
        SENTENCE: layers * len(RAGGED),
        NODE: layers * len(RAGGED),
        NODE_MEAN: layers * len(RAGGED),
    }


def test_max_depth_costs_nothing_but_the_scores_and_the_embedding_of_the_depths():
    network = random_network(max_depth=4)
    depths = random_depths(packed(RAGGED))
    small = multiply_adds(network, RAGGED, depths)
    large = multiply_adds(copied_into(network, max_depth=9), RAGGED, depths)
    assert large["depth.scores"] - small["depth.scores"] == (9 - 4) * len(depths) * 7
    embedding = (9 - 4) * 7 * 7 * H
    assert large["slstm"] - small["slstm"] == embedding
    assert large[""] - large["depth.scores"] == small[""] - small["depth.scores"] + embedding


@pytest.mark.parametrize("product", ["depth.inner", "depth.scores", "output"])
def test_a_batch_costs_what_its_texts_cost_alone(product):
    """Exact for every product over words and for the output's over texts.

    Apart stand the sentence nodes (a step per layer of the batch's deepest word), their look at a
    word (one more when others run on) and what is done once per distinct word of the batch.
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
    embeddings = 2 * 4 * 7 * 7 * H  # of the depths, once per batch
    for name, cost in together.items():
        saved = embeddings if name in ("", "slstm") else 0
        assert cost == sum(each[name] for each in alone) - saved, name


def test_a_repeated_word_is_spelled_once():
    network = random_network()
    once = multiply_adds(network, [[3]], torch.ones(1, dtype=torch.long))
    often = multiply_adds(network, [[3] * 9, [3]], torch.ones(10, dtype=torch.long))
    assert often["embedding"] == once["embedding"] == 3 * 3 * 4  # one byte: "3"


def test_the_bilstm_multiplies_each_distinct_word_once():
    """The inputs' product is shared by equal words; the recurrent one is taken from time 1 on."""
    depths = random_depths(packed(RAGGED))
    counted = multiply_adds(random_network(), RAGGED, depths)["sequence"]
    later = sum(max(0, len(text) - 1) for text in RAGGED)
    assert counted == 2 * (DISTINCT * (5 + 4) + later * 3) * 4 * 3


class CountLarge(TorchDispatchMode):
    """Count the operations that take memory for as many numbers as the states of all words."""

    def __init__(self, numbers: int):
        super().__init__()
        self.numbers, self.taken = numbers, Counter()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        given = {
            t.untyped_storage().data_ptr() for t in tree_leaves((args, kwargs)) if is_tensor(t)
        }
        found = function(*args, **(kwargs or {}))
        for tensor in filter(is_tensor, tree_leaves(found)):
            if tensor.numel() >= self.numbers and tensor.untyped_storage().data_ptr() not in given:
                self.taken[function.overloadpacket.__name__] += 1
        return found


def is_tensor(value):
    return isinstance(value, Tensor)


def test_one_large_piece_of_memory_is_taken_per_layer():
    """Room for states and products is taken once per batch; the look-up of terms alone has none."""
    network = random_network().eval()
    batch = packed([[1] * 40, [2] * 60])

    def taken(depth: int) -> Counter:
        depths = torch.full((100,), depth)
        with torch.inference_mode(), CountLarge(100 * H) as counter:
            network(batch, depths=depths)
        return counter.taken

    assert taken(4) - taken(2) == Counter({"embedding_bag": 2})
