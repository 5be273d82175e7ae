"""What the comparison models share: the token embedding before, and a linear layer after.

In between, each model computes one vector per text from the tokens in its own way.

    N words of the batch, B texts, T words of the longest text
"""

import torch
from jaxtyping import Bool, Float, Int, UInt8
from torch import Tensor, nn

from fathomer.config import ModelConfig
from fathomer.errors import ConfigError, DepthError
from fathomer.model.embedding import TokenEmbedding
from fathomer.model.graph import WordBatch
from fathomer.model.initialise import initialise
from fathomer.model.interface import Network, Output
from fathomer.model.ngrams import NgramRegression


def refuse_several_labels(config: ModelConfig) -> None:
    """Raise an error if the config asks for several labels per text."""
    if config.multi_label:
        raise ConfigError(f"the model {config.name} gives one label per text; choose another model")


class DepthlessNetwork(Network):
    """Base class of models whose words have no depth."""

    def forward(
        self,
        batch: WordBatch,
        depths: Int[Tensor, " N"] | None = None,
        max_depth: int | None = None,
    ) -> Output:
        """Classify a batch; depths cannot be forced or capped."""
        if depths is not None or max_depth is not None:
            name = self.config.name
            raise DepthError(f"the model {name} has no depths to force or cap")
        return Output(self.classify(batch), depths=torch.zeros_like(batch.words))

    def classify(self, batch: WordBatch) -> Float[Tensor, "B labels"]:
        """Return the logits of a batch."""
        raise NotImplementedError


class ComparisonModel(DepthlessNetwork):
    """Base class of models that read the tokens of our network."""

    def __init__(
        self, config: ModelConfig, *, spellings: UInt8[Tensor, "V C"] | None = None
    ) -> None:
        super().__init__(config)
        self.embedding = TokenEmbedding(config, spellings)
        self.hidden_dropout = nn.Dropout(config.hidden_dropout)
        self.output = self.build_output(self.build(self.embedding.size))
        self.ngrams = NgramRegression(config, spellings) if config.ngrams else None
        initialise(self)

    def build(self, token_size: int) -> int:
        """Build the layers for tokens of this width; return the width of a text's vector."""
        raise NotImplementedError

    def build_output(self, features: int) -> nn.Module:
        """Build the layer from a text's vector to its logits."""
        return nn.Linear(features, self.config.num_labels)

    def read(
        self, tokens: Float[Tensor, "N token"], batch: WordBatch
    ) -> Float[Tensor, "B features"]:
        """Return one vector per text."""
        raise NotImplementedError

    def score(
        self, tokens: Float[Tensor, "N token"], batch: WordBatch
    ) -> Float[Tensor, "B labels"]:
        """Return the logits; overridden by models with more than one vector per text."""
        logits: Tensor = self.output(self.hidden_dropout(self.read(tokens, batch)))
        return logits

    def classify(self, batch: WordBatch) -> Float[Tensor, "B labels"]:
        """Return the logits of a batch."""
        if not batch.num_texts:
            return self.word_vectors.weight.new_zeros(0, self.config.num_labels)
        return self.mixed(self.score(self.embedding(batch), batch), batch)

    @property
    def word_vectors(self) -> nn.Embedding:
        """The table that pretrained vectors are copied into."""
        return self.embedding.word


def padded(
    words: Float[Tensor, "N width"], batch: WordBatch
) -> tuple[Float[Tensor, "B T width"], Bool[Tensor, "B T"]]:
    """Pad the texts to the longest, at least one position; also return which positions hold a word."""
    longest = max(1, int(batch.lengths.max()))
    table = words.new_zeros(batch.num_texts, longest, words.shape[1])
    here = torch.zeros(batch.num_texts, longest, dtype=torch.bool, device=words.device)
    places = (batch.text_of, batch.positions)
    return table.index_put(places, words), here.index_put(places, here.new_ones(()))


def packed(table: Float[Tensor, "B T width"], batch: WordBatch) -> Float[Tensor, "N width"]:
    """Undo :func:`padded`: return the words, one text after another."""
    return table[batch.text_of, batch.positions]
