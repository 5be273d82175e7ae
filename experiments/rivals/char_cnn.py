"""Character-level CNN (Zhang, Zhao and LeCun, 2015): "Char-CNN" of the paper's Table 3.

    six convolutions with ReLU, of widths 7, 7, 3, 3, 3 and 3, with max-pooling of width 3 after the
    first, second and sixth; two hidden layers with dropout; an output layer

``hidden_size`` is the number of feature maps and the width of the hidden layers (256 and 1024 in
their small model). Differences from the original: a character is a byte of a word's spelling as the
model knows it (words are joined by spaces, long ones are cut) and has a learned vector instead of a
one-hot code over 70 characters. Texts are read whole instead of being cut or padded to 1014
characters; therefore the convolutions preserve the length, and max-pooling over the remaining
positions replaces a hidden layer over all of them.

    N words of the batch, B texts, C bytes of a spelling, T characters of the longest text
"""

import torch
from jaxtyping import Float, UInt8
from torch import Tensor, nn
from torch.nn.functional import max_pool1d

from fathomer.config import ModelConfig
from fathomer.model.baselines.comparison import DepthlessNetwork
from fathomer.model.embedding import NUM_BYTES
from fathomer.model.graph import WordBatch
from fathomer.model.initialise import initialise
from fathomer.model.spelling import spelled, vocabulary_spellings

WIDTHS = (7, 7, 3, 3, 3, 3)
POOLED = (0, 1, 5)
"""Indices of the convolutions that are followed by max-pooling."""
SPACE = 32


class CharacterCNN(DepthlessNetwork):
    """Convolutions over the characters of a text."""

    spellings: Tensor

    def __init__(
        self, config: ModelConfig, *, spellings: UInt8[Tensor, "V C"] | None = None
    ) -> None:
        super().__init__(config)
        size = config.hidden_size
        self.register_buffer("spellings", vocabulary_spellings(config, spellings))
        self.bytes = nn.Embedding(NUM_BYTES, config.char_input_size, padding_idx=0)
        inputs = (config.char_input_size, *(size for _ in WIDTHS[1:]))
        self.convolutions = nn.ModuleList(
            nn.Conv1d(wide, size, width, padding=width // 2)
            for wide, width in zip(inputs, WIDTHS, strict=True)
        )
        self.hidden = nn.ModuleList(nn.Linear(size, size) for _ in range(2))
        self.output = nn.Linear(size, config.num_labels)
        self.hidden_dropout = nn.Dropout(config.hidden_dropout)
        initialise(self)

    def classify(self, batch: WordBatch) -> Float[Tensor, "B labels"]:
        """Return the logits of a batch."""
        features = self.read(characters(batch, self.spellings))
        for layer in self.hidden:
            features = torch.relu(layer(self.hidden_dropout(features)))
        logits: Tensor = self.output(self.hidden_dropout(features))
        return logits

    def read(self, text: UInt8[Tensor, "B T"]) -> Float[Tensor, "B H"]:
        """Return the maximum of each feature map after six convolutions."""
        mask = (text != 0)[:, None, :]
        states: Tensor = self.bytes(text.int()).transpose(1, 2) * mask  # B char T
        for number, convolution in enumerate(self.convolutions):
            # Padding stays zero, so that it changes neither the next convolution nor the maximum.
            states = torch.relu(convolution(states)) * mask  # B H T
            if number in POOLED:
                states = max_pool1d(states, 3, ceil_mode=True)
                mask = mask[:, :, ::3]
        return states.amax(2)


def characters(batch: WordBatch, spellings: UInt8[Tensor, "V C"]) -> UInt8[Tensor, "B T"]:
    """Return the bytes of each text, its words joined by spaces, padded with zeros."""
    words = spelled(batch.words, spellings, batch.unknown)
    gaps = ((batch.positions > 0) * SPACE).to(torch.uint8)
    words = torch.cat([gaps[:, None], words], 1)  # N C+1
    written = words != 0
    text_of = batch.text_of[:, None].expand_as(written)[written]
    lengths = torch.bincount(text_of, minlength=batch.num_texts)
    starts = lengths.cumsum(0) - lengths
    places = torch.arange(len(text_of), device=words.device) - starts[text_of]
    longest = max(1, int(lengths.max())) if batch.num_texts else 1
    return words.new_zeros(batch.num_texts, longest).index_put((text_of, places), words[written])
