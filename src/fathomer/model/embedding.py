"""Token representation (section 3.1): a word vector beside a character CNN's output, Eq. (4).

The CNN reads the UTF-8 bytes of a word, so that there is no unknown character and nothing to store
beside the weights. Both parts are computed once per distinct word of the batch.

    N words of the batch, D distinct ones, V known ones, C bytes of a spelling
"""

import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor, nn

from fathomer.config import ModelConfig
from fathomer.model.graph import WordBatch
from fathomer.text.vocabulary import spell

NUM_BYTES = 256  # byte 0 pads: no tokenizer yields it inside a word


class CharCNN(nn.Module):
    """Turn spellings into vectors: one convolution of width 3, then the maximum over characters."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.bytes = nn.Embedding(NUM_BYTES, config.char_input_size, padding_idx=0)
        self.convolution = nn.Conv1d(config.char_input_size, config.char_size, 3, padding=1)

    def forward(self, spellings: UInt8[Tensor, "D C"]) -> Float[Tensor, "D char"]:
        """Give one vector per spelling; a word without characters gets zeros."""
        used = (spellings != 0).any(0).nonzero()
        if not len(used):
            return self.convolution.weight.new_zeros(len(spellings), self.convolution.out_channels)
        spellings = spellings[:, : int(used[-1]) + 1]  # columns beyond the longest word say nothing
        responses = self.convolution(self.bytes(spellings.int()).transpose(1, 2))  # D char C
        padding = (spellings == 0)[:, None, :]
        strongest = responses.masked_fill(padding, -torch.inf).amax(2)  # D char
        return strongest.masked_fill(spellings[:, :1] == 0, 0.0)  # type: ignore[no-any-return]


class TokenEmbedding(nn.Module):
    """Represent each word by its vector and its characters, Eq. (4)."""

    spellings: Tensor

    def __init__(self, config: ModelConfig, spellings: UInt8[Tensor, "V C"] | None = None) -> None:
        super().__init__()
        self.size = config.word_size + config.char_size
        self.word = nn.Embedding(config.vocab_size, config.word_size)
        self.word.weight.requires_grad_(not config.fixed_words)
        self.char = CharCNN(config)
        if spellings is None:
            # Words without a name, as in tests and benchmarks, are spelled by their ids.
            names = [str(word) for word in range(config.vocab_size)]
            spellings = torch.from_numpy(spell(names, max_chars=10).copy())
        self.register_buffer("spellings", spellings)

    def forward(self, batch: WordBatch) -> tuple[Float[Tensor, "D token"], Int[Tensor, " N"]]:
        """Give ``[word ; char]`` for each distinct word, and the row that each word has there."""
        distinct, places = torch.unique(batch.words, return_inverse=True)
        words = self.word(distinct.clamp(min=0))
        return torch.cat([words, self.characters(distinct, batch)], 1), places

    def characters(self, words: Int[Tensor, " D"], batch: WordBatch) -> Float[Tensor, "D char"]:
        """Give the character vectors of distinct words; unknown ones come first."""
        return self.char(self.spelled(words, batch))  # type: ignore[no-any-return]

    def spelled(self, words: Tensor, batch: WordBatch) -> UInt8[Tensor, "D C"]:
        """Look up spellings: of known words in the model, of unknown ones (first) in the batch."""
        width = max(self.spellings.shape[1], batch.unknown.shape[1])
        unknown = batch.unknown[-1 - words[words < 0]]
        known = self.spellings[words[words >= 0]]
        padded = [nn.functional.pad(s, (0, width - s.shape[1])) for s in (unknown, known)]
        return torch.cat(padded)
