"""AdaSent (Zhao, Lu and Poupart, 2015): "AdaSent" of the paper's Table 3.

A pyramid over the words: level 1 holds the words, and each segment of level t is composed of two
overlapping segments of level t - 1, with gates that sum to one:

    h = ω_l h_left + ω_r h_right + ω_c tanh(W [h_left ; h_right] + b)
    ω = softmax(G [h_left ; h_right] + b_G)

The mean of each level is classified by itself, and a gate weighs the levels:
``p(label) = Σ_t γ_t p(label | level t)``. Differences from the original: the pyramid has at most
``LEVELS`` levels (there, as many as the text has words, which is quadratic in its length), and the
classifier is a single linear layer.

    N segments of a level, B texts, H hidden_size
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from fathomer.model.baselines.comparison import ComparisonModel, refuse_several_labels
from fathomer.model.graph import WordBatch

LEVELS = 40


class AdaSent(ComparisonModel):
    """A pyramid of ever longer segments whose levels are classified and weighed."""

    def build(self, token_size: int) -> int:
        """Create the weights that all levels share."""
        refuse_several_labels(self.config)
        size = self.config.hidden_size
        self.words = nn.Linear(token_size, size)
        self.compose = nn.Linear(2 * size, size)  # W, b
        self.gate = nn.Linear(2 * size, 3)  # G, b_G
        self.belief = nn.Linear(size, 1, bias=False)  # a bias would cancel in the softmax
        return size

    def score(
        self, tokens: Float[Tensor, "N token"], batch: WordBatch
    ) -> Float[Tensor, "B labels"]:
        """Average the probabilities of the levels, each with its weight."""
        means, exists = self.level_means(torch.tanh(self.words(tokens)), batch)
        weights = self.belief(means).masked_fill(~exists, -torch.inf).log_softmax(0)
        by_level = self.output(self.hidden_dropout(means)).log_softmax(2)
        return torch.logsumexp(weights + by_level, 0)

    def level_means(
        self, h: Float[Tensor, "N H"], batch: WordBatch
    ) -> tuple[Float[Tensor, "levels B H"], Bool[Tensor, "levels B 1"]]:
        """Return the mean of each level, and whether the text is long enough to have the level."""
        means, text_of = [], batch.text_of
        lengths = batch.lengths.to(h.device)
        for level in range(min(LEVELS, max([1, *batch.lengths.tolist()]))):
            if level:
                pairs = text_of[:-1] == text_of[1:]
                h, text_of = self.composed(h[:-1][pairs], h[1:][pairs]), text_of[:-1][pairs]
            sums = h.new_zeros(batch.num_texts, h.shape[1]).index_add(0, text_of, h)
            means.append(sums / (lengths - level).clamp(min=1)[:, None])
        number = torch.arange(len(means), device=h.device)[:, None]
        return torch.stack(means), (number < lengths.clamp(min=1))[:, :, None]

    def composed(
        self, left: Float[Tensor, "N H"], right: Float[Tensor, "N H"]
    ) -> Float[Tensor, "N H"]:
        """Compose pairs of neighbouring segments."""
        both = torch.cat([left, right], 1)
        by_left, by_right, new = self.gate(both).softmax(1).split(1, 1)
        return by_left * left + by_right * right + new * torch.tanh(self.compose(both))  # type: ignore[no-any-return]
