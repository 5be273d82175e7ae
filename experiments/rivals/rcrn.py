"""Recurrently controlled recurrent network (Tay et al., 2018): "RCRN" of Tables 2 and 3.

Three BiLSTMs read the words. Two of them, the controllers, are the gates of a listener cell whose
input is the third; in each direction, with the states h1, h2 and h3 of that direction,

    c_t = σ(h1_t) ⊙ c_{t-1} + (1 - σ(h1_t)) ⊙ h3_t
    h_t = σ(h2_t) ⊙ c_t

Differences from the original: the BiLSTMs are those of our network, and texts are pooled as in
Eq. (15), without a sentence node. An odd ``hidden_size`` is rounded down to share it equally between
the directions.

    N words of the batch, B texts, T words of the longest text, H hidden_size
"""

import torch
from jaxtyping import Float
from torch import Tensor

from fathomer.model.baselines.comparison import ComparisonModel, packed, padded
from fathomer.model.graph import WordBatch
from fathomer.model.lstm import BiLSTM
from fathomer.model.model import pool_words


class RCRN(ComparisonModel):
    """A recurrent cell whose gates are recurrent networks."""

    def build(self, token_size: int) -> int:
        """Create the two controllers and the BiLSTM of the listener."""
        size = self.config.hidden_size // 2 * 2
        self.forget = BiLSTM(token_size, size)
        self.expose = BiLSTM(token_size, size)
        self.listener = BiLSTM(token_size, size)
        return 2 * size

    def read(
        self, tokens: Float[Tensor, "N token"], batch: WordBatch
    ) -> Float[Tensor, "B features"]:
        """Return the maximum and mean over the states of each text."""
        forget, expose, heard = (
            lstm(tokens, batch) for lstm in (self.forget, self.expose, self.listener)
        )
        cells = listen(torch.sigmoid(forget), heard, batch)
        return torch.relu(pool_words(torch.sigmoid(expose) * cells, batch))


def listen(
    forget: Float[Tensor, "N H"], heard: Float[Tensor, "N H"], batch: WordBatch
) -> Float[Tensor, "N H"]:
    """Return the listener's cells: the first half runs forwards, the second backwards."""
    # Both are zero in the padding, so that the backward direction starts from zero cells.
    forget, _ = padded(forget, batch)
    kept, _ = padded((1 - forget[batch.text_of, batch.positions]) * heard, batch)
    forwards, backwards = zip(forget.chunk(2, 2), kept.chunk(2, 2), strict=True)
    there = accumulate(*forwards)
    back = accumulate(*(half.flip(1) for half in backwards)).flip(1)
    return packed(torch.cat([there, back], 2), batch)


def accumulate(
    forget: Float[Tensor, "B T size"], kept: Float[Tensor, "B T size"]
) -> Float[Tensor, "B T size"]:
    """Return ``c_t = forget_t c_{t-1} + kept_t`` for all t."""
    cells = []
    c = torch.zeros_like(kept[:, 0])
    # With unbind the backward pass is linear in T; with indexing it would be quadratic.
    for f, k in zip(forget.unbind(1), kept.unbind(1), strict=True):
        c = f * c + k
        cells.append(c)
    return torch.stack(cells, 1)
