"""The depth-adaptive network computed densely: all layers for all words, and for padding.

N words of the batch, B texts, T words of the longest text, H hidden_size
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence

from fathomer.model import DepthAdaptiveNetwork, WordBatch
from fathomer.model.fast.products import write_product
from fathomer.model.model import pool_texts


def pad(rows: Tensor, batch: WordBatch) -> Tensor:
    """Pad the texts with zeros to the length of the longest: N ... -> B T ..."""
    return pad_sequence(list(torch.split(rows, batch.lengths.tolist())), batch_first=True)


def is_word(batch: WordBatch) -> Tensor:
    """Return a mask of the words, which is False for padding, B T."""
    return torch.arange(int(batch.lengths.max())) < batch.lengths[:, None]


class DensePadded(nn.Module):
    """A network that computes every layer for every word; depths only select what is kept.

    It shares the weights of a network. As in Fathomer, products that are the same in every layer
    are computed once, and all gates share one product: only padding and sparsity differ.
    """

    def __init__(self, network: DepthAdaptiveNetwork) -> None:
        super().__init__()
        self.network = network

    def forward(self, batch: WordBatch, depths: Int[Tensor, " N"]) -> Float[Tensor, "B labels"]:
        """Classify a batch with forced depths."""
        network = self.network
        tokens = network.embedding(batch)
        inner, _ = network.depth(network.sequence(tokens, batch))
        depth_embedding = network.depth.embedding().index_select(0, depths - 1)
        refined = torch.cat([tokens, depth_embedding], 1)
        words = is_word(batch)
        h, g = self.read(pad(inner, batch), pad(refined, batch), pad(depths, batch), words)
        logits: Tensor = network.output(pool_texts(h[words], g, batch))
        return logits

    def read(
        self,
        inner: Float[Tensor, "B T inner"],
        refined: Float[Tensor, "B T token"],
        depths: Int[Tensor, "B T"],
        words: Tensor,
    ) -> tuple[Float[Tensor, "B T H"], Float[Tensor, "B H"]]:
        """Run all layers, Eq. (2), (3) and (14); padding has depth 0."""
        slstm = self.network.slstm
        counts = words.sum(1, keepdim=True).clamp(min=1)
        h = c = slstm.initial(inner) * words[:, :, None]
        g = c_g = h.sum(1) / counts
        from_token = multiplied(refined, slstm.token)
        for layer in range(1, self.network.config.max_depth + 1):
            next_h, next_c = self.word_step(h, c, g, c_g, from_token)
            next_g, next_c_g = self.sentence_step(h, c, g, c_g, words, counts)
            runs = (depths >= layer)[:, :, None]
            h, c = torch.where(runs, next_h, h), torch.where(runs, next_c, c)
            g, c_g = torch.where(runs.any(1), next_g, g), torch.where(runs.any(1), next_c_g, c_g)
        return h, g

    def word_step(
        self, h: Tensor, c: Tensor, g: Tensor, c_g: Tensor, from_token: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Update all words, Eq. (2)."""
        slstm = self.network.slstm
        sums = multiplied(torch.cat([left(h), h, right(h)], 2), slstm.window)
        sums = sums + from_token + slstm.sentence(g)[:, None]
        *five, o, u = sums.chunk(7, 2)
        l, r, f, s, i = torch.stack(five).sigmoid().softmax(0)  # noqa: E741
        next_c = l * left(c) + f * c + r * right(c) + s * c_g[:, None] + i * u.tanh()
        return o.sigmoid() * next_c.tanh(), next_c

    def sentence_step(
        self, h: Tensor, c: Tensor, g: Tensor, c_g: Tensor, words: Tensor, counts: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Update all sentence nodes, Eq. (3)."""
        slstm = self.network.slstm
        forget_word, forget_g, output = slstm.node(g).chunk(3, 1)
        mean_g, mean_o = slstm.node_mean(h.sum(1) / counts).chunk(2, 1)
        gates = (forget_word[:, None] + slstm.node_word(h)).sigmoid()
        gates = gates.masked_fill(~words[:, :, None], -torch.inf)
        gates = torch.cat([gates, (forget_g + mean_g).sigmoid()[:, None]], 1).softmax(1)
        next_c_g = (gates * torch.cat([c, c_g[:, None]], 1)).sum(1)
        return (output + mean_o).sigmoid() * next_c_g.tanh(), next_c_g


def multiplied(x: Float[Tensor, "B T in"], layer: nn.Linear) -> Float[Tensor, "B T out"]:
    """Apply a linear layer; at prediction with the products of the inference engine."""
    if torch.is_grad_enabled():
        return layer(x)  # type: ignore[no-any-return]
    out = x.new_empty(*x.shape[:2], layer.out_features)
    write_product(x.flatten(0, 1), layer.weight, out.flatten(0, 1), layer.bias)
    return out


def left(states: Float[Tensor, "B T H"]) -> Float[Tensor, "B T H"]:
    """Return the state of each word's left neighbour."""
    return functional.pad(states, (0, 0, 1, 0))[:, :-1]


def right(states: Float[Tensor, "B T H"]) -> Float[Tensor, "B T H"]:
    """Return the state of each word's right neighbour."""
    return functional.pad(states, (0, 0, 0, 1))[:, 1:]
