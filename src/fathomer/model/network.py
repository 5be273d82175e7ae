"""The whole network, from packed words to logits (section 3.4 closes it).

N words of the batch, B texts, H hidden_size, L max_depth
"""

from typing import Any

import torch
from jaxtyping import Int, UInt8
from torch import Tensor, nn

from fathomer.config import ModelConfig
from fathomer.errors import DepthError
from fathomer.model.depth import DepthClassifier, select_depths
from fathomer.model.embedding import TokenEmbedding
from fathomer.model.graph import WordBatch, sort_by_depth
from fathomer.model.interface import Network, Output
from fathomer.model.pooling import pool_texts
from fathomer.model.sequence import sequence_module
from fathomer.model.slstm import SLSTM


class DepthAdaptiveNetwork(Network):
    """Classify texts, reading each word to a depth of its own."""

    knows_depth = True

    def __init__(
        self, config: ModelConfig, *, spellings: UInt8[Tensor, "V C"] | None = None
    ) -> None:
        super().__init__(config)
        self.embedding = TokenEmbedding(config, spellings)
        self.sequence = sequence_module(config, self.embedding.size)
        self.depth = DepthClassifier(config, self.sequence.size)
        self.slstm = SLSTM(
            inner_size=config.depth_size,
            token_size=self.embedding.size + config.depth_size,
            hidden_size=config.hidden_size,
        )
        self.output = nn.Linear(3 * config.hidden_size, config.num_labels)
        self.word_dropout = nn.Dropout(config.word_dropout)
        self.hidden_dropout = nn.Dropout(config.hidden_dropout)
        initialise(self)

    def forward(
        self,
        batch: WordBatch,
        depths: Int[Tensor, " N"] | None = None,
        max_depth: int | None = None,
    ) -> Output:
        """Classify a batch; ``depths`` forces the depth of each word, ``max_depth`` caps it."""
        tokens, places = self.embedding(batch)  # Eq. (4)
        if self.training and self.config.word_dropout:  # equal words are no longer alike
            tokens = self.word_dropout(tokens.index_select(0, places))
            places = torch.arange(batch.num_words, device=tokens.device)
        features = self.hidden_dropout(self.sequence(tokens, places, batch))  # Eq. (5)
        inner, depth_logits = self.depth(features)  # Eq. (6)
        if depths is None:
            depths = select_depths(depth_logits, how=self.config.depth, sample=self.training)
        else:
            depths = self.checked_depths(depths, batch)
        if max_depth is not None:
            self.check_max_depth(max_depth)
            depths = depths.clamp(max=max_depth)
        graph = sort_by_depth(batch, depths)
        words, sentences = self.slstm(  # Eq. (2), (3), (13), (14)
            inner.index_select(0, graph.order),
            tokens,
            places[graph.order],
            self.depth.embedding(),
            depths[graph.order],
            graph,
        )
        words = words.index_select(0, graph.ranks)
        logits = self.output(self.hidden_dropout(pool_texts(words, sentences, batch)))  # Eq. (15)
        return Output(logits, depths, depth_logits, words, sentences)

    @property
    def word_vectors(self) -> nn.Embedding:
        """Give the table that pretrained vectors are put into."""
        return self.embedding.word

    def checked_depths(self, depths: Tensor, batch: WordBatch) -> Int[Tensor, " N"]:
        """Refuse forced depths that do not fit the batch or lie outside 1..max_depth."""
        if depths.is_floating_point() or depths.dtype == torch.bool:
            raise DepthError(f"depths are whole numbers, not {depths.dtype}")
        if depths.shape != batch.words.shape:
            raise DepthError(f"{len(depths)} depths for {batch.num_words} words")
        wrong = torch.nonzero((depths < 1) | (depths > self.config.max_depth))
        if len(wrong):
            word = int(wrong[0])
            found = int(depths[word])
            raise DepthError(f"depth {found} at word {word}; use 1..{self.config.max_depth}")
        return depths.long()

    def check_max_depth(self, max_depth: int) -> None:
        """Refuse a cap outside 1..max_depth."""
        if not 1 <= max_depth <= self.config.max_depth:
            raise DepthError(f"max_depth {max_depth}; use 1..{self.config.max_depth}")


def initialise(network: nn.Module) -> None:
    """Set every weight of a network: the one place where that is decided."""
    # Gates share a matrix, but each is a layer of its own, with as many rows as hidden_size says.
    gated: list[Any] = [part for part in network.modules() if hasattr(part, "hidden_size")]
    gate_rows = {weight: gate.hidden_size for gate in gated for weight in gate.parameters()}
    for module in network.modules():
        for name, weight in module.named_parameters(recurse=False):
            if "bias" in name:
                nn.init.zeros_(weight)
            elif weight.dim() == 1:
                nn.init.ones_(weight)  # the scale of a normalisation
            elif isinstance(module, nn.Embedding):
                # About the spread of GloVe's vectors, unless a table says otherwise.
                nn.init.normal_(weight, std=getattr(module, "spread", 0.4))
            elif weight in gate_rows:
                for gate in torch.split(weight.detach().flatten(0, -2), gate_rows[weight]):
                    nn.init.xavier_uniform_(gate)
            else:
                nn.init.xavier_uniform_(weight)
        if isinstance(module, nn.Embedding) and module.padding_idx is not None:
            nn.init.zeros_(module.weight[module.padding_idx].detach())
