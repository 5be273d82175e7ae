"""Recurrently controlled recurrent networks (Tay et al., 2018): "RCRN" of Tables 2 and 3.

Three BiLSTMs read the words. Two of them, the controllers, are the gates of a listener cell that reads
what the third one found; in each direction, with the states h1, h2 and h3 of that direction,

    c_t = σ(h1_t) ⊙ c_{t-1} + (1 - σ(h1_t)) ⊙ h3_t
    h_t = σ(h2_t) ⊙ c_t

What differs: the BiLSTMs are those of our network, and texts are pooled as in Eq. (15), without a
sentence node. An odd ``hidden_size`` is rounded down, so that the directions share it equally.

    N words of the batch, B texts, T words of the longest text, H hidden_size
"""

import torch
from jaxtyping import Float
from torch import Tensor

from fathomer.model.baselines.comparison import ComparisonModel, packed, padded
from fathomer.model.graph import WordBatch
from fathomer.model.pooling import pool_words
from fathomer.model.sequence import BiLSTM


class RecurrentlyControlled(ComparisonModel):
    """Read with a cell whose gates are recurrent networks."""

    def build(self, token_size: int) -> int:
        """Make the controllers and the listener's own BiLSTM."""
        size = self.config.hidden_size // 2 * 2
        self.forget = BiLSTM(token_size, size)
        self.expose = BiLSTM(token_size, size)
        self.listener = BiLSTM(token_size, size)
        return 2 * size

    def read(
        self, tokens: Float[Tensor, "N token"], batch: WordBatch
    ) -> Float[Tensor, "B features"]:
        """Give the maximum and mean over each text's states."""
        places = torch.arange(batch.num_words, device=tokens.device)
        forget, expose, heard = (
            lstm(tokens, places, batch) for lstm in (self.forget, self.expose, self.listener)
        )
        cells = listen(torch.sigmoid(forget), heard, batch)
        return torch.relu(pool_words(torch.sigmoid(expose) * cells, batch))


def listen(
    forget: Float[Tensor, "N H"], heard: Float[Tensor, "N H"], batch: WordBatch
) -> Float[Tensor, "N H"]:
    """Run the listener's cells through the texts: the first half forwards, the second backwards."""
    # Beyond a text's end both are zero, and so are the cells: the way backwards starts there.
    forget, _ = padded(forget, batch)
    kept, _ = padded((1 - forget[batch.text_of, batch.positions]) * heard, batch)
    halves = zip(forget.chunk(2, 2), kept.chunk(2, 2), strict=True)
    (forget_there, kept_there), (forget_back, kept_back) = halves
    there = accumulate(forget_there, kept_there)
    back = accumulate(forget_back.flip(1), kept_back.flip(1)).flip(1)
    return packed(torch.cat([there, back], 2), batch)


def accumulate(
    forget: Float[Tensor, "B T size"], kept: Float[Tensor, "B T size"]
) -> Float[Tensor, "B T size"]:
    """Give ``c_t = forget_t c_{t-1} + kept_t`` for every time."""
    cells = []
    c = torch.zeros_like(kept[:, 0])
    for f, k in zip(
        forget.unbind(1), kept.unbind(1), strict=True
    ):  # unbind: linear on the way back
        c = f * c + k
        cells.append(c)
    return torch.stack(cells, 1)
