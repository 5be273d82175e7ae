"""Capsule network with dynamic routing (Yang et al., 2018): "Capsule-B" of the paper's Table 3.

Three networks, for n-grams of 3, 4 and 5 words, whose answers are averaged. In each one, an n-gram
convolution (``hidden_size`` maps) is turned into capsules, vectors whose length says how present a
feature is. Above it there is a capsule layer over three neighbours, then one over the whole text, with
a capsule per label. A capsule is routed to the capsules above that agree with it: with votes ``u`` of
the capsules i below and coefficients ``b``, initially zero, repeat three times

    c_ij = |u_i| leaky-softmax(b_i)_j    v_j = squash(Σ_i c_ij u_j|i)    b_ij += v_j · u_j|i

This includes the three extensions of Yang et al.: an orphan label for uninformative words, the leaky
softmax, and the lengths ``|u_i|`` in ``c``. Differences from the original:

- There are 8 capsules of width 8 (there, 16 of 16, which takes 50 KB per word and network).
- Convolutions are padded at the ends of a text, so that short texts have n-grams.
- Lengths become probabilities for the cross entropy that all models share (there, a margin loss).
- ``squash(s) = s / sqrt(1 + |s|²)`` keeps short vectors as they are. The original,
  ``|s|² / (1 + |s|²) s / |s|``, squares their lengths in each of three layers; capsules that are short
  initially (ours had lengths of 1e-4) then get no gradient, and the model stayed at chance.
- ``|u_i|`` is divided by the number of words. Otherwise all capsules of a long text have lengths near
  one, where the gradient of the squash vanishes.

    N words of the batch, B texts, K capsules below a row, P capsules above it
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from fathomer.model.baselines.comparison import (
    ComparisonModel,
    packed,
    padded,
    refuse_several_labels,
)
from fathomer.model.graph import WordBatch

NGRAMS = (3, 4, 5)
CAPSULES = 8
SIZE = 8
ROUTINGS = 3


def squash(vectors: Float[Tensor, "... size"]) -> Float[Tensor, "... size"]:
    """Bring lengths below one, almost linearly for short vectors."""
    return vectors / (1 + vectors.square().sum(-1, keepdim=True)).sqrt()


def lengths_of(capsules: Float[Tensor, "... size"]) -> Float[Tensor, "..."]:
    """Return the lengths of capsules, with a finite gradient at zero."""
    return (capsules.square().sum(-1) + 1e-12).sqrt()


class CapsuleLayer(nn.Module):
    """Dynamic routing of the capsules of some rows to those of the groups of these rows."""

    def __init__(self, below: int, above: int) -> None:
        super().__init__()
        self.hidden_size = SIZE  # each block of this many rows is initialised by itself
        self.transform = nn.Parameter(torch.empty(below, above, SIZE, SIZE))

    def votes(self, capsules: Float[Tensor, "rows K size"]) -> Float[Tensor, "rows K P size"]:
        """Return the vote of each capsule for each capsule above."""
        below, above, size, _ = self.transform.shape
        votes = torch.bmm(
            capsules.transpose(0, 1), self.transform.flatten(1, 2).mT
        )  # K rows P*size
        return votes.view(below, -1, above, size).transpose(0, 1).contiguous()

    def forward(
        self, capsules: Float[Tensor, "rows K size"], group: Int[Tensor, " rows"], groups: int
    ) -> Float[Tensor, "groups P size"]:
        """Return the capsules above."""
        votes = self.votes(capsules)
        group_sizes = group.bincount()[group, None]
        present = (lengths_of(capsules) / group_sizes)[:, :, None]
        agreement = torch.zeros_like(votes[..., 0])  # rows K P
        above = votes.new_zeros(groups, *votes.shape[2:])
        for routing in range(ROUTINGS):
            coupling = present * leaky_softmax(agreement)
            sums = (coupling[..., None] * votes).sum(1)
            above = squash(votes.new_zeros(groups, *votes.shape[2:]).index_add(0, group, sums))
            if routing < ROUTINGS - 1:
                agreement = agreement + (votes * above[group][:, None]).sum(3)
        return above


def leaky_softmax(logits: Float[Tensor, "rows K P"]) -> Float[Tensor, "rows K P"]:
    """Return a softmax with an additional choice, "none of these", whose logit is zero."""
    # PyTorch's softmax is slow for few choices.
    highest = logits.amax(2, keepdim=True).clamp(min=0)
    weights = (logits - highest).exp()
    return weights / ((-highest).exp() + weights.sum(2, keepdim=True))


class NGramCapsules(nn.Module):
    """Capsules of n-grams, and above them capsules of three neighbours."""

    def __init__(self, width: int, token_size: int, hidden_size: int) -> None:
        super().__init__()
        self.ends = (width - 1) // 2, width // 2
        self.convolution = nn.Conv1d(token_size, hidden_size, width)
        self.primary = nn.Linear(hidden_size, CAPSULES * SIZE)
        self.layer = CapsuleLayer(3 * CAPSULES, CAPSULES)

    def forward(
        self, table: Float[Tensor, "B T token"], batch: WordBatch
    ) -> Float[Tensor, "N capsules size"]:
        """Return the capsules at each word."""
        columns = functional.pad(table.transpose(1, 2), self.ends)
        maps = torch.relu(self.convolution(columns)).transpose(1, 2)  # B T maps
        primary = squash(self.primary(packed(maps, batch)).view(-1, CAPSULES, SIZE))
        primary = functional.pad(primary, (0, 0, 0, 0, 0, 1))  # a zero row for "no neighbour"
        words = torch.arange(batch.num_words, device=table.device)
        left, right = batch.neighbours
        window = torch.cat([primary[left], primary[words], primary[right]], 1)  # N 3*capsules size
        capsules: Tensor = self.layer(window, words, batch.num_words)
        return capsules


class CapsuleB(ComparisonModel):
    """Capsules of n-grams, routed to one capsule per label."""

    output: nn.ModuleList

    def build(self, token_size: int) -> int:
        """Create the three networks without their last layer."""
        refuse_several_labels(self.config)
        size = self.config.hidden_size
        self.widths = nn.ModuleList(NGramCapsules(width, token_size, size) for width in NGRAMS)
        return CAPSULES

    def build_output(self, features: int) -> nn.ModuleList:
        """Create the last layers: a capsule per label and an orphan capsule."""
        above = self.config.num_labels + 1
        return nn.ModuleList(CapsuleLayer(features, above) for _ in NGRAMS)

    def score(
        self, tokens: Float[Tensor, "N token"], batch: WordBatch
    ) -> Float[Tensor, "B labels"]:
        """Return the logarithm of the labels' mean capsule lengths: probabilities are proportional to them."""
        table, _ = padded(tokens, batch)
        lengths = [
            lengths_of(
                label(self.hidden_dropout(ngram(table, batch)), batch.text_of, batch.num_texts)
            )
            for ngram, label in zip(self.widths, self.output, strict=True)
        ]
        return torch.stack(lengths).mean(0)[:, :-1].log()
