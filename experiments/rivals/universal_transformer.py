"""The Universal Transformer with adaptive computation time (Dehghani et al., 2019).

One layer of the model ``transformer`` is applied again and again, with the same weights. Before each
step, sinusoids of the position and of the step are added to the states:

    h_n = Layer(h_{n-1} + position + step n)

A halting unit (see ``halting.py``) decides after each step which words go on, up to ``max_depth``
steps; a halted word keeps its state, which others still attend to. Differences from the original: it
is the encoder only, normalisation comes before each part, texts are pooled as in Eq. (15), and
every word is computed in every step, whether it has halted or not.

    N words of the batch, B texts, T words of the longest text, H width
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from experiments.rivals.halting import HaltingUnit, with_ponder_cost
from fathomer.model.baselines.comparison import ComparisonModel, packed, padded
from fathomer.model.baselines.transformer import (
    HEADS,
    encoder_layer,
    start_small,
    whole_heads,
)
from fathomer.model.graph import WordBatch
from fathomer.model.model import pool_words
from fathomer.model.positions import sinusoids

POSITIONS = 0.03
"""Scale of the sinusoids, which would otherwise outweigh the tokens."""


class UniversalTransformer(ComparisonModel):
    """A Transformer layer that a word passes as often as its halting unit decides."""

    def build(self, token_size: int) -> int:
        """Create the layer and the halting unit."""
        start_small(self.embedding)
        self.size = whole_heads(self.config.hidden_size, HEADS)
        self.input = nn.Linear(token_size, self.size)
        self.layer = encoder_layer(self.size, self.config.hidden_dropout)
        self.norm = nn.LayerNorm(self.size)
        self.halting = HaltingUnit(self.size)
        return 2 * self.size

    def score(
        self, tokens: Float[Tensor, "N token"], batch: WordBatch
    ) -> Float[Tensor, "B labels"]:
        """Return the logits of the texts after their words have halted."""
        places = POSITIONS * sinusoids(batch.positions.to(tokens.dtype), self.size)
        times = torch.arange(1, self.config.max_depth + 1, device=tokens.device)
        steps = POSITIONS * sinusoids(times.to(tokens.dtype), self.size)
        h = self.hidden_dropout(self.input(tokens))

        def step(number: int, running: Bool[Tensor, " N"]) -> Float[Tensor, "N H"]:
            nonlocal h
            table, here = padded(h + places + steps[number], batch)
            here[:, 0] = True  # an empty text attends to one word of zeros
            new = packed(self.layer(table, src_key_padding_mask=~here), batch)
            h = torch.where(running[:, None], new, h)
            return h

        halted = self.halting(step, batch.num_words, self.config.max_depth)
        words = self.norm(halted.states.expand(batch.num_words, self.size))
        v = torch.relu(pool_words(words, batch))
        logits = self.output(self.hidden_dropout(v))
        return with_ponder_cost(logits, halted.ponder, batch)
