"""The network for prediction: what follows from the weights alone is worked out once.

* The first layer's window product, folded with the map that makes the initial states.
* The character CNN's output, a table over the vocabulary that fills as words are met.
* The BiLSTM's weights in PyTorch's order: for one or two texts, its own LSTM is quicker than ours.

The answers are those of the network that was trained; its weights are shared, and must not change.

    N words of the batch, D distinct ones, Z width of the first layer's source
"""

import copy
from typing import TypeVar

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from fathomer.model.embedding import TokenEmbedding
from fathomer.model.graph import WordBatch
from fathomer.model.network import DepthAdaptiveNetwork
from fathomer.model.sequence import BiLSTM
from fathomer.model.slstm import SLSTM

M = TypeVar("M", bound=nn.Module)

FEW_TEXTS = 2
"""Up to so many texts, PyTorch's LSTM, text by text, is quicker than ours."""


class FoldedSLSTM(SLSTM):
    """Hold the first layer's matrix."""

    def fold(self) -> None:
        """Work out the matrix of the first layer."""
        self.folded = self.folded_window().detach()

    def first_layer(
        self, inner: Float[Tensor, "N inner"], h: Float[Tensor, "N H"]
    ) -> tuple[Float[Tensor, "rows Z"], Tensor]:
        """Give what the first layer's window is taken of, and its matrix: always folded."""
        if inner.shape[1] + 1 >= h.shape[1]:
            return super().first_layer(inner, h)
        return self.folded_source(inner), self.folded


class FoldedBiLSTM(BiLSTM):
    """Hold the weights in the order of PyTorch's LSTM."""

    def fold(self) -> None:
        """Put the gates, which are g, i, f, o here, into the order i, f, g, o."""
        self.parameters_of_torch: list[Tensor] = []
        for direction in range(2):
            for weight in (self.input, self.recurrent, self.bias):
                g, i, f, o = weight[direction].detach().chunk(4)
                self.parameters_of_torch.append(torch.cat([i, f, g, o]))
            self.parameters_of_torch.append(torch.zeros_like(self.parameters_of_torch[-1]))

    def forward(
        self, tokens: Float[Tensor, "D token"], places: Int[Tensor, " N"], batch: WordBatch
    ) -> Float[Tensor, "N hidden"]:
        """Give ``[forward ; backward]`` for each word."""
        if batch.num_texts > FEW_TEXTS or not batch.num_words:
            return super().forward(tokens, places, batch)
        texts = torch.split(tokens.index_select(0, places), batch.lengths.tolist())
        return torch.cat([self.read_alone(words) for words in texts if len(words)])

    def read_alone(self, words: Float[Tensor, "words token"]) -> Float[Tensor, "words hidden"]:
        """Read one text."""
        start = words.new_zeros(2, 1, self.hidden_size)
        states, _, _ = torch.lstm(
            words[:, None],
            (start, start),
            self.parameters_of_torch,
            has_biases=True,
            num_layers=1,
            dropout=0.0,
            train=False,
            bidirectional=True,
            batch_first=False,
        )
        return states[:, 0]


class FoldedEmbedding(TokenEmbedding):
    """Hold the character vectors of the words that were met."""

    def fold(self) -> None:
        """Make room for the vectors of all known words."""
        size = self.char.convolution.out_channels
        self.table = self.word.weight.new_zeros(len(self.word.weight), size)
        self.met = torch.zeros(len(self.word.weight), dtype=torch.bool, device=self.table.device)

    def characters(self, words: Int[Tensor, " D"], batch: WordBatch) -> Float[Tensor, "D char"]:
        """Give the character vectors of distinct words; unknown ones come first."""
        known = words[words >= 0]
        fresh = known[~self.met[known]]
        if len(fresh):
            # Threads that do so at once write the same; a word is marked after it is there.
            self.table[fresh] = self.char(self.spellings[fresh])
            self.met[fresh] = True
        unknown = super().characters(words[words < 0], batch)
        return torch.cat([unknown, self.table[known]])


def folded(network: DepthAdaptiveNetwork) -> DepthAdaptiveNetwork:
    """Give the network for prediction."""
    assert not network.training, "call network.eval() first"
    other = sharing(network, DepthAdaptiveNetwork)
    with torch.no_grad():
        other.embedding = sharing(network.embedding, FoldedEmbedding)
        other.embedding.fold()
        other.slstm = sharing(network.slstm, FoldedSLSTM)
        other.slstm.fold()
        if isinstance(network.sequence, BiLSTM):
            other.sequence = sharing(network.sequence, FoldedBiLSTM)
            other.sequence.fold()
    return other


def sharing(module: nn.Module, kind: type[M]) -> M:
    """Give a module of another kind that has the same parameters and parts."""
    other = copy.copy(module)
    other.__class__ = kind
    other._modules, other._parameters = dict(module._modules), dict(module._parameters)
    assert isinstance(other, kind)
    return other
