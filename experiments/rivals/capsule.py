"""Capsule networks with dynamic routing (Yang et al., 2018): "Capsule-B" of the paper's Table 3.

Three networks side by side, for n-grams of 3, 4 and 5 words, whose answers are averaged. In each, an
n-gram convolution (``hidden_size`` maps) is turned into capsules, vectors whose length says how
present something is; a capsule layer over three neighbours follows, and one over the whole text, with
a capsule per label. A capsule is routed to those above that agree with it: with votes ``u`` of the
capsules i below and coefficients ``b`` that are zero at first, three times

    c_ij = |u_i| leaky-softmax(b_i)_j    v_j = squash(Σ_i c_ij u_j|i)    b_ij += v_j · u_j|i

The paper's three amendments are here: an orphan label that takes up what says nothing, the leaky
softmax, and the lengths ``|u_i|`` in ``c``. What differs: capsules are 8 of width 8 (there, 16 of 16:
50 KB for each word and network), convolutions reach over the ends of a text (so that a short one has
n-grams), and lengths are turned into probabilities for the cross entropy that all models share (there,
a margin loss). And ``squash(s) = s / sqrt(1 + |s|²)`` leaves short vectors as they are; theirs,
``|s|² / (1 + |s|²) s / |s|``, squares their lengths in each of three layers, so that capsules that are
short at first (ours were 1e-4 long) get no gradient: with it the model stayed at chance. Last, the
words of a text share the sum (``|u_i|`` is divided by their number): otherwise the capsules of a long
text all have a length near one, where the squash lets no gradient through.

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
    """Bring lengths below one, and leave short ones almost as they are: linear near zero."""
    return vectors / (1 + vectors.square().sum(-1, keepdim=True)).sqrt()


def lengths_of(capsules: Float[Tensor, "... size"]) -> Float[Tensor, "..."]:
    """Give the lengths of capsules; a gradient exists at zero, too."""
    return (capsules.square().sum(-1) + 1e-12).sqrt()


class CapsuleLayer(nn.Module):
    """Route the capsules of some rows to those of the groups that the rows belong to."""

    def __init__(self, below: int, above: int) -> None:
        super().__init__()
        self.hidden_size = SIZE  # rows that are a layer of their own when weights are initialised
        self.transform = nn.Parameter(torch.empty(below, above, SIZE, SIZE))

    def votes(self, capsules: Float[Tensor, "rows K size"]) -> Float[Tensor, "rows K P size"]:
        """Let each capsule say what each one above should be."""
        below, above, size, _ = self.transform.shape
        votes = torch.bmm(
            capsules.transpose(0, 1), self.transform.flatten(1, 2).mT
        )  # K rows P*size
        return votes.view(below, -1, above, size).transpose(0, 1).contiguous()

    def forward(
        self, capsules: Float[Tensor, "rows K size"], group: Int[Tensor, " rows"], groups: int
    ) -> Float[Tensor, "groups P size"]:
        """Give the capsules above."""
        votes = self.votes(capsules)
        rows_beside = group.bincount()[group, None]  # a text's words, of which each has its share
        present = (lengths_of(capsules) / rows_beside)[:, :, None]
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
    """Give a softmax with one choice more, none of these, whose logit is zero."""
    # PyTorch's own softmax is slow where there are few choices.
    highest = logits.amax(2, keepdim=True).clamp(min=0)
    weights = (logits - highest).exp()
    return weights / ((-highest).exp() + weights.sum(2, keepdim=True))


class NGramCapsules(nn.Module):
    """Turn n-grams into capsules, and these into capsules of three neighbours."""

    def __init__(self, width: int, token_size: int, hidden_size: int) -> None:
        super().__init__()
        self.ends = (width - 1) // 2, width // 2
        self.convolution = nn.Conv1d(token_size, hidden_size, width)
        self.primary = nn.Linear(hidden_size, CAPSULES * SIZE)
        self.layer = CapsuleLayer(3 * CAPSULES, CAPSULES)

    def forward(
        self, table: Float[Tensor, "B T token"], batch: WordBatch
    ) -> Float[Tensor, "N capsules size"]:
        """Give the capsules at each word."""
        columns = functional.pad(table.transpose(1, 2), self.ends)
        maps = torch.relu(self.convolution(columns)).transpose(1, 2)  # B T maps
        primary = squash(self.primary(packed(maps, batch)).view(-1, CAPSULES, SIZE))
        primary = functional.pad(
            primary, (0, 0, 0, 0, 0, 1)
        )  # the row that stands for no neighbour
        words = torch.arange(batch.num_words, device=table.device)
        left, right = batch.neighbours
        window = torch.cat([primary[left], primary[words], primary[right]], 1)  # N 3*capsules size
        capsules: Tensor = self.layer(window, words, batch.num_words)
        return capsules


class CapsuleB(ComparisonModel):
    """Route what n-grams say to the labels."""

    output: nn.ModuleList

    def build(self, token_size: int) -> int:
        """Make the three networks up to their last layer."""
        refuse_several_labels(self.config)
        size = self.config.hidden_size
        self.ngrams = nn.ModuleList(NGramCapsules(width, token_size, size) for width in NGRAMS)
        return CAPSULES

    def build_output(self, features: int) -> nn.ModuleList:
        """Make the last layers: a capsule per label, and one for what says nothing."""
        above = self.config.num_labels + 1
        return nn.ModuleList(CapsuleLayer(features, above) for _ in NGRAMS)

    def score(
        self, tokens: Float[Tensor, "N token"], batch: WordBatch
    ) -> Float[Tensor, "B labels"]:
        """Average the lengths of the labels' capsules; probabilities are in proportion to them."""
        table, _ = padded(tokens, batch)
        lengths = [
            lengths_of(
                label(self.hidden_dropout(ngram(table, batch)), batch.text_of, batch.num_texts)
            )
            for ngram, label in zip(self.ngrams, self.output, strict=True)
        ]
        return torch.stack(lengths).mean(0)[:, :-1].log()
