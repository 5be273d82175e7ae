"""PyTorch encoders that Fathomer is compared with.

They take their tokens from Fathomer's embedding, so that only the encoder differs.

    N words of the batch, B texts, T words of the longest text
"""

import warnings
from collections.abc import Callable
from typing import TypeVar

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from benchmarks.dense import is_word, pad
from fathomer.model import WordBatch
from fathomer.model.embedding import TokenEmbedding
from fathomer.model.interface import trainable_parameters
from fathomer.model.positions import sinusoids
from fathomer.model.sizes import SIZES, nearest_size

Model = TypeVar("Model", bound=nn.Module)


class TorchBiLSTM(nn.Module):
    """PyTorch's LSTM on packed sequences: three bidirectional layers."""

    STEP = 1
    """Sizes are multiples of this."""

    def __init__(self, embedding: TokenEmbedding, *, size: int, num_labels: int) -> None:
        super().__init__()
        self.embedding = embedding
        self.lstm = nn.LSTM(
            embedding.size, size, num_layers=3, bidirectional=True, batch_first=True
        )
        self.output = nn.Linear(4 * size, num_labels)

    def forward(self, batch: WordBatch) -> Float[Tensor, "B labels"]:
        """Classify a batch without empty texts."""
        padded = pad(self.embedding(batch), batch)
        packed = pack_padded_sequence(padded, batch.lengths, batch_first=True, enforce_sorted=False)
        states, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True)
        logits: Tensor = self.output(max_and_mean(states, batch))
        return logits


class TorchTransformer(nn.Module):
    """PyTorch's Transformer encoder: four layers with six heads.

    With as many parameters as the paper's network, a head is 64 wide. Without gradients PyTorch
    takes its fast path: nested tensors remove the padding, except in the attention.
    """

    LAYERS, HEADS = 4, 6
    STEP = 8 * HEADS

    def __init__(self, embedding: TokenEmbedding, *, size: int, num_labels: int) -> None:
        super().__init__()
        self.embedding = embedding
        self.size = size
        self.input = nn.Linear(embedding.size, size)
        layer = nn.TransformerEncoderLayer(
            size, self.HEADS, 4 * size, dropout=0.0, batch_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, self.LAYERS)
        self.output = nn.Linear(2 * size, num_labels)

    def forward(self, batch: WordBatch) -> Float[Tensor, "B labels"]:
        """Classify a batch without empty texts."""
        tokens, rows = self.embedding.distinct(batch)
        words = self.input(tokens).index_select(0, rows)
        padded = pad(words + sinusoids(batch.positions.float(), self.size), batch)
        padding = None if batch.num_texts == 1 else ~is_word(batch)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "The PyTorch API of nested tensors", UserWarning)
            states = self.encoder(padded, src_key_padding_mask=padding)
        logits: Tensor = self.output(max_and_mean(states, batch))
        return logits


def max_and_mean(states: Float[Tensor, "B T size"], batch: WordBatch) -> Float[Tensor, "B 2*size"]:
    """Return the maximum and mean over the words of each text, without padding."""
    padding = ~is_word(batch)[:, :, None]
    highest = states.masked_fill(padding, -torch.inf).amax(1)
    mean = states.masked_fill(padding, 0.0).sum(1) / batch.lengths[:, None]
    return torch.cat([highest, mean], 1)


def build_with_parameters(build: Callable[[int], Model], wanted: int, *, step: int) -> Model:
    """Build a model whose number of trainable parameters is nearest to ``wanted``.

    The size that is passed to ``build`` is a multiple of ``step``.
    """

    def count(size: int) -> int:
        with torch.device("meta"):
            return trainable_parameters(build(size))

    return build(nearest_size(range(step, SIZES.stop, step), wanted, count))
