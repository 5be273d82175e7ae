"""What Fathomer's speed is compared with: the same network computed densely, and two encoders.

All of them take the tokens from the same embedding, so that only what reads the texts differs.

    N words of the batch, B texts, T words of the longest text, H hidden_size
"""

import warnings
from collections.abc import Callable
from typing import TypeVar

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

from fathomer.model import DepthAdaptiveNetwork, WordBatch
from fathomer.model.embedding import TokenEmbedding
from fathomer.model.interface import trainable_parameters
from fathomer.model.pooling import pool_texts
from fathomer.model.sequence import sinusoids
from fathomer.model.sizes import SIZES, nearest_size

Rival = TypeVar("Rival", bound=nn.Module)


def pad(rows: Tensor, batch: WordBatch) -> Tensor:
    """Lay the texts side by side, padded with zeros to the longest: N ... -> B T ..."""
    return pad_sequence(list(torch.split(rows, batch.lengths.tolist())), batch_first=True)


def is_word(batch: WordBatch) -> Tensor:
    """Tell words from padding, B T."""
    return torch.arange(int(batch.lengths.max())) < batch.lengths[:, None]


class DensePadded(nn.Module):
    """Compute every layer for every word and for the padding; depths only choose what is kept.

    The weights are a network's own. Products that are the same in every layer are taken once, and
    gates share one product, as in Fathomer: what differs is padding and sparsity.
    """

    def __init__(self, network: DepthAdaptiveNetwork) -> None:
        super().__init__()
        self.network = network

    def forward(self, batch: WordBatch, depths: Int[Tensor, " N"]) -> Float[Tensor, "B labels"]:
        """Classify a batch with forced depths."""
        network = self.network
        tokens, places = network.embedding(batch)
        inner, _ = network.depth(network.sequence(tokens, places, batch))
        depth_embedding = network.depth.embedding().index_select(0, depths - 1)
        refined = torch.cat([tokens.index_select(0, places), depth_embedding], 1)
        words = is_word(batch)
        h, g = self.read(pad(inner, batch), pad(refined, batch), pad(depths, batch), words)
        logits: Tensor = network.output(pool_texts(h[words], g, batch))
        return logits

    def read(
        self,
        inner: Float[Tensor, "B T inner"],
        refined: Float[Tensor, "B T token"],
        depths: Int[Tensor, "B T"],
        words: Tensor,
    ) -> tuple[Float[Tensor, "B T H"], Float[Tensor, "B H"]]:
        """Take all steps, Eq. (2), (3) and (14); padding has depth 0."""
        slstm = self.network.slstm
        counts = words.sum(1, keepdim=True).clamp(min=1)
        h = c = slstm.initial(inner) * words[:, :, None]
        g = c_g = h.sum(1) / counts
        from_token = slstm.token(refined)
        for layer in range(1, self.network.config.max_depth + 1):
            next_h, next_c = self.word_step(h, c, g, c_g, from_token)
            next_g, next_c_g = self.sentence_step(h, c, g, c_g, words, counts)
            runs = (depths >= layer)[:, :, None]
            h, c = torch.where(runs, next_h, h), torch.where(runs, next_c, c)
            g, c_g = torch.where(runs.any(1), next_g, g), torch.where(runs.any(1), next_c_g, c_g)
        return h, g

    def word_step(
        self, h: Tensor, c: Tensor, g: Tensor, c_g: Tensor, from_token: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Update all words, Eq. (2)."""
        slstm = self.network.slstm
        sums = slstm.window(torch.cat([left(h), h, right(h)], 2))
        sums = sums + from_token + slstm.sentence(g)[:, None]
        *five, o, u = sums.chunk(7, 2)
        l, r, f, s, i = torch.stack(five).sigmoid().softmax(0)  # noqa: E741
        next_c = l * left(c) + f * c + r * right(c) + s * c_g[:, None] + i * u.tanh()
        return o.sigmoid() * next_c.tanh(), next_c

    def sentence_step(
        self, h: Tensor, c: Tensor, g: Tensor, c_g: Tensor, words: Tensor, counts: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Update all sentence nodes, Eq. (3)."""
        slstm = self.network.slstm
        forget_word, forget_g, output = slstm.node(g).chunk(3, 1)
        mean_g, mean_o = slstm.node_mean(h.sum(1) / counts).chunk(2, 1)
        gates = (forget_word[:, None] + slstm.node_word(h)).sigmoid()
        gates = gates.masked_fill(~words[:, :, None], -torch.inf)
        gates = torch.cat([gates, (forget_g + mean_g).sigmoid()[:, None]], 1).softmax(1)
        next_c_g = (gates * torch.cat([c, c_g[:, None]], 1)).sum(1)
        return (output + mean_o).sigmoid() * next_c_g.tanh(), next_c_g


def left(states: Float[Tensor, "B T H"]) -> Float[Tensor, "B T H"]:
    """Give each word its left neighbour's state."""
    return functional.pad(states, (0, 0, 1, 0))[:, :-1]


def right(states: Float[Tensor, "B T H"]) -> Float[Tensor, "B T H"]:
    """Give each word its right neighbour's state."""
    return functional.pad(states, (0, 0, 0, 1))[:, 1:]


class BiLSTMRival(nn.Module):
    """Read the texts with PyTorch's LSTM: three layers, both directions, packed."""

    STEP = 1
    """What the size is a multiple of."""

    def __init__(self, embedding: TokenEmbedding, *, size: int, num_labels: int) -> None:
        super().__init__()
        self.embedding = embedding
        self.lstm = nn.LSTM(
            embedding.size, size, num_layers=3, bidirectional=True, batch_first=True
        )
        self.output = nn.Linear(4 * size, num_labels)

    def forward(self, batch: WordBatch) -> Float[Tensor, "B labels"]:
        """Classify a batch without empty texts."""
        tokens, places = self.embedding(batch)
        padded = pad(tokens.index_select(0, places), batch)
        packed = pack_padded_sequence(padded, batch.lengths, batch_first=True, enforce_sorted=False)
        states, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True)
        logits: Tensor = self.output(max_and_mean(states, batch))
        return logits


class TransformerRival(nn.Module):
    """Read the texts with PyTorch's Transformer encoder: four layers of six heads.

    At the paper's size that makes heads 64 wide. Without gradients it takes PyTorch's fast path, in
    which padding is cut off (as nested tensors) before the first layer, and comes back for attention.
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
        tokens, places = self.embedding(batch)
        words = self.input(tokens).index_select(0, places)
        padded = pad(words + sinusoids(batch.positions.float(), self.size), batch)
        padding = None if batch.num_texts == 1 else ~is_word(batch)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "The PyTorch API of nested tensors", UserWarning)
            states = self.encoder(padded, src_key_padding_mask=padding)
        logits: Tensor = self.output(max_and_mean(states, batch))
        return logits


def max_and_mean(states: Float[Tensor, "B T size"], batch: WordBatch) -> Float[Tensor, "B 2*size"]:
    """Pool the words of each text; padding takes no part."""
    padding = ~is_word(batch)[:, :, None]
    highest = states.masked_fill(padding, -torch.inf).amax(1)
    mean = states.masked_fill(padding, 0.0).sum(1) / batch.lengths[:, None]
    return torch.cat([highest, mean], 1)


def of_equal_size(build: Callable[[int], Rival], wanted: int, *, step: int) -> Rival:
    """Build a rival with about as many trainable parameters: its size is a multiple of a step."""

    def count(size: int) -> int:
        with torch.device("meta"):
            return trainable_parameters(build(size))

    return build(nearest_size(range(step, SIZES.stop, step), wanted, count))
