"""What the comparison models share: our words and vectors, and a linear layer at the end.

They differ from our network in how they read: each has its own way from the words' tokens to one
vector per text.

    N words of the batch, B texts, T words of the longest text
"""

import torch
from jaxtyping import Bool, Float, Int, UInt8
from torch import Tensor, nn

from fathomer.config import ModelConfig
from fathomer.errors import ConfigError, DepthError
from fathomer.model.embedding import TokenEmbedding
from fathomer.model.graph import WordBatch
from fathomer.model.interface import Network, Output
from fathomer.model.network import initialise


def refuse_several_labels(config: ModelConfig) -> None:
    """Raise an error where a model's probabilities can only belong to labels of which one is right."""
    if config.multi_label:
        raise ConfigError(f"the model {config.name} gives one label per text; choose another model")


class Depthless(Network):
    """Classify in another way than ours, in which words have no depth."""

    def forward(
        self,
        batch: WordBatch,
        depths: Int[Tensor, " N"] | None = None,
        max_depth: int | None = None,
    ) -> Output:
        """Classify a batch; there is no depth to force or to cap."""
        if depths is not None or max_depth is not None:
            name = self.config.name
            raise DepthError(f"the model {name} has no depth that could be forced or capped")
        return Output(self.classify(batch), depths=torch.zeros_like(batch.words))

    def classify(self, batch: WordBatch) -> Float[Tensor, "B labels"]:
        """Give the logits of a batch."""
        raise NotImplementedError


class ComparisonModel(Depthless):
    """Embed the words as our network does, read them in another way, and classify."""

    def __init__(
        self, config: ModelConfig, *, spellings: UInt8[Tensor, "V C"] | None = None
    ) -> None:
        super().__init__(config)
        self.embedding = TokenEmbedding(config, spellings)
        self.word_dropout = nn.Dropout(config.word_dropout)
        self.hidden_dropout = nn.Dropout(config.hidden_dropout)
        self.output = self.build_output(self.build(self.embedding.size))
        initialise(self)

    def build(self, token_size: int) -> int:
        """Make the layers that read tokens of this width; give the width of a text's vector."""
        raise NotImplementedError

    def build_output(self, features: int) -> nn.Module:
        """Make the layer that tells the labels from a text's vector."""
        return nn.Linear(features, self.config.num_labels)

    def read(
        self, tokens: Float[Tensor, "N token"], batch: WordBatch
    ) -> Float[Tensor, "B features"]:
        """Give one vector per text."""
        raise NotImplementedError

    def score(
        self, tokens: Float[Tensor, "N token"], batch: WordBatch
    ) -> Float[Tensor, "B labels"]:
        """Give the logits; a model that has more than one vector per text does it in its own way."""
        logits: Tensor = self.output(self.hidden_dropout(self.read(tokens, batch)))
        return logits

    def classify(self, batch: WordBatch) -> Float[Tensor, "B labels"]:
        """Give the logits of a batch."""
        if not batch.num_texts:
            return self.word_vectors.weight.new_zeros(0, self.config.num_labels)
        tokens, places = self.embedding(batch)
        tokens = self.word_dropout(tokens.index_select(0, places))
        return self.score(tokens, batch)

    @property
    def word_vectors(self) -> nn.Embedding:
        """Give the table that pretrained vectors are put into."""
        return self.embedding.word


def padded(
    words: Float[Tensor, "N width"], batch: WordBatch
) -> tuple[Float[Tensor, "B T width"], Bool[Tensor, "B T"]]:
    """Lay the texts under each other, at least one place wide; say which places hold a word."""
    longest = max(1, int(batch.lengths.max()))
    table = words.new_zeros(batch.num_texts, longest, words.shape[1])
    here = torch.zeros(batch.num_texts, longest, dtype=torch.bool, device=words.device)
    places = (batch.text_of, batch.positions)
    return table.index_put(places, words), here.index_put(places, here.new_ones(()))


def packed(table: Float[Tensor, "B T width"], batch: WordBatch) -> Float[Tensor, "N width"]:
    """Give the words of :func:`padded` back, texts one after another."""
    return table[batch.text_of, batch.positions]
