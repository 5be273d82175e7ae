"""The cell of the authors' code against plain loops over its equations."""

import pytest
import torch

from tests.model.baselines.small import RAGGED, assert_close, pooled, small_model, tokens_of
from tests.model.networks import packed


def run_plainly(network, text):
    """Compute the logits of one text word by word."""
    cell, n = network.slstm, len(text)
    tokens = tokens_of(network, text)
    inner, scores = network.depth(network.sequence(tokens, packed([text])))
    depths = (scores.argmax(1) + 1).tolist()
    x = [torch.cat([tokens[j], network.depth.embedding()[d - 1]]) for j, d in enumerate(depths)]
    zero = torch.zeros(cell.hidden_size, dtype=torch.float64)
    h = [cell.initial(inner[j]) for j in range(n)]
    c, g = list(h), sum(h) / n
    c_g = g
    for layer in range(1, max(depths) + 1):
        old_h, old_c = [zero, *h, zero], [zero, *c, zero]
        h, c = list(h), list(c)
        for j in range(n):
            if depths[j] < layer:
                continue
            window = torch.cat(old_h[j : j + 3])
            gates = cell.window(window) + cell.token(x[j]) + cell.sentence(g)
            *mixed, o = gates.sigmoid().chunk(6)
            shares = torch.stack(mixed).softmax(0)
            parts = [old_c[j], old_c[j + 2], cell.widen(x[j]), c_g, old_c[j + 1]]
            c[j] = sum(share * part for share, part in zip(shares, parts, strict=True))
            h[j] = o * c[j].tanh()
        mean = sum(old_h) / n
        f_i, f_g, o = cell.node(g).chunk(3)
        u_g, u_o = cell.node_mean(mean).chunk(2)
        words = [(f_i + cell.node_word(each)).sigmoid() for each in old_h[1:-1]]
        shares = torch.stack([*words, (f_g + u_g).sigmoid()]).softmax(0)
        parts = [*old_c[1:-1], c_g]
        c_g = sum(share * part for share, part in zip(shares, parts, strict=True))
        g = (o + u_o).sigmoid() * c_g.tanh()
    return network.output(pooled(torch.stack(h), g))


@pytest.mark.parametrize("hidden_size", [16, 14])
def test_it_agrees_with_plain_loops(hidden_size):
    network = small_model("authors-cell", hidden_size=hidden_size)
    with torch.no_grad():
        for text in filter(None, RAGGED):
            assert_close(network(packed([text])).logits[0], run_plainly(network, text))


def test_a_token_as_wide_as_the_states_enters_the_cell_as_it_is():
    token = small_model("authors-cell").slstm.token.in_features
    raw = small_model("authors-cell", hidden_size=token)
    assert isinstance(raw.slstm.widen, torch.nn.Identity)
