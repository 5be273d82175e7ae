"""Our network with the cell of the authors' code: not Eq. (2), and not in the paper.

Eq. (2) adds a candidate ``u`` to the cell. The authors' code, like that of the S-LSTM, has none: the
token itself enters the cell. Per word, with the gates normalised by a softmax as in Eq. (2),

    c = l c_left + r c_right + f x + s c_g + i c_word
    h = o tanh(c)

Here x is the refined token of Eq. (13): word, characters and depth. Where it is not as wide as
the states (at the paper's sizes it is: 300 + 50 + 50 = 400), a linear map without a bias makes it so. There is
no engine for fast inference with this cell, and its depths are not shown. Differences from the authors'
code: everything else is our network, as the paper states it.

    N words of the batch, B texts, k words still running, H hidden_size
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from fathomer.model.baselines.comparison import ComparisonModel
from fathomer.model.graph import DepthOrder, WordBatch, sort_by_depth
from fathomer.model.lstm import BiLSTM
from fathomer.model.model import SLSTM, DepthClassifier, States, pool_texts, select_depths
from fathomer.model.positions import Positions
from fathomer.model.products import SharedWeight


class TokenCell(SLSTM):
    """The transitions of the S-LSTM with the token in place of the candidate ``u``."""

    def __init__(self, inner_size: int, token_size: int, hidden_size: int) -> None:
        super().__init__(inner_size, token_size, hidden_size)
        self.window = nn.Linear(3 * hidden_size, 6 * hidden_size)  # W, b: l r f s i o
        self.token = nn.Linear(token_size, 6 * hidden_size, bias=False)  # U
        self.sentence = nn.Linear(hidden_size, 6 * hidden_size, bias=False)  # V
        same = token_size == hidden_size
        self.widen = nn.Identity() if same else nn.Linear(token_size, hidden_size, bias=False)

    def run(
        self, inner: Float[Tensor, "N inner"], x: Float[Tensor, "N token"], graph: DepthOrder
    ) -> tuple[Float[Tensor, "N H"], Float[Tensor, "B H"]]:
        """Return the final ``h`` and ``g``; words are in depth order."""
        h = functional.pad(self.initial(inner), (0, 0, 0, 1))
        g = graph.text_mean(h[:-1])
        states, weights = States(h=h, c=h, g=g, c_g=g), self.layer_weights()
        from_token, x = SharedWeight(self.token.weight).product(x), self.widen(x)
        for k, runs in zip(graph.running, graph.running_texts, strict=True):
            window = states.h.index_select(0, graph.window[:k].flatten()).view(k, -1)
            from_node, node = self.node_sums(states, graph, weights)
            from_word = weights.node_word.product(states.h[:-1])
            sums = weights.window.product(window) + from_token[:k]
            sums = sums + from_node.index_select(0, graph.text_of[:k])
            h, c = self.token_transition(states, sums, x[:k], graph)
            g, c_g = self.sentence_transition(states, node, from_word, graph)
            states = States(
                h=torch.cat([h, states.h[k:]]),
                c=torch.cat([c, states.c[k:]]),
                g=torch.where(runs, g, states.g),
                c_g=torch.where(runs, c_g, states.c_g),
            )
        return states.h[:-1], states.g

    def token_transition(
        self,
        states: States,
        sums: Float[Tensor, "k gates"],
        x: Float[Tensor, "k H"],
        graph: DepthOrder,
    ) -> tuple[Float[Tensor, "k H"], Float[Tensor, "k H"]]:
        """Return the next ``h`` and ``c`` of the first ``k`` words."""
        (_, c, _, c_g), k = states, len(sums)
        left, right = graph.neighbours[:k].unbind(1)
        mixed, o = torch.split(sums, [5 * self.hidden_size, self.hidden_size], 1)
        l, r, f, s, i = mixed.sigmoid().exp().chunk(5, 1)  # noqa: E741
        from_neighbours = l * c.index_select(0, left) + r * c.index_select(0, right)
        c = from_neighbours + f * x + s * c_g.index_select(0, graph.text_of[:k]) + i * c[:k]
        c = c / (l + r + f + s + i)
        return o.sigmoid() * c.tanh(), c


class AuthorsCell(ComparisonModel):
    """Our network with the token in the cell."""

    def build(self, token_size: int) -> int:
        """Create the layers of our network."""
        config = self.config
        self.sequence = (
            BiLSTM(token_size, config.hidden_size)
            if config.sequence == "bilstm"
            else Positions(config, token_size)
        )
        self.depth = DepthClassifier(config, self.sequence.size)
        token_size += config.depth_size
        self.slstm = TokenCell(config.depth_size, token_size, config.hidden_size)
        return 3 * config.hidden_size

    def read(
        self, tokens: Float[Tensor, "N token"], batch: WordBatch
    ) -> Float[Tensor, "B features"]:
        """Return the maximum, mean and sentence node of each text."""
        features = self.hidden_dropout(self.sequence(tokens, batch))
        inner, logits = self.depth(features)
        depths = select_depths(logits, how=self.config.depth, sample=self.training)
        graph = sort_by_depth(batch, depths)
        x = torch.cat([tokens, self.depth.embedding()[depths - 1]], 1)[graph.order]
        words, sentences = self.slstm.run(inner[graph.order], x, graph)
        return pool_texts(words[graph.ranks], sentences, batch)
