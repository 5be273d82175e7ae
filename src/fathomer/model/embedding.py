"""Token representation, section 3.1 of the paper: word vector and character vector, Eq. (4).

N words of the batch, D distinct words, V known words, C bytes of a word,
token: word and character vectors
"""

import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor, nn

from fathomer.config import ModelConfig
from fathomer.model.graph import WordBatch
from fathomer.model.spelling import spelled, vocabulary_spellings

NUM_BYTES = 256  # byte 0 is the padding


class CharCNN(nn.Module):
    """One convolution of width 3 over the bytes of a word, then the maximum over positions."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.bytes = nn.Embedding(NUM_BYTES, config.char_input_size, padding_idx=0)
        self.convolution = nn.Conv1d(config.char_input_size, config.char_size, 3, padding=1)

    def forward(self, spellings: UInt8[Tensor, "D C"]) -> Float[Tensor, "D char"]:
        """Return one vector per spelling; zeros for an empty one."""
        used = (spellings != 0).any(0).nonzero()
        spellings = spellings[:, : int(used[-1]) + 1 if len(used) else 1]  # the longest word
        responses = self.convolution(self.bytes(spellings.int()).mT)  # D char C
        strongest = responses.masked_fill((spellings == 0)[:, None], -torch.inf).amax(2)
        return strongest.masked_fill(spellings[:, :1] == 0, 0.0)  # type: ignore[no-any-return]


class TokenEmbedding(nn.Module):
    """The vectors of words: word vector and character vector, Eq. (4)."""

    spellings: Tensor

    def __init__(self, config: ModelConfig, spellings: UInt8[Tensor, "V C"] | None = None) -> None:
        super().__init__()
        self.size = config.word_size + config.char_size
        self.word = nn.Embedding(config.vocab_size, config.word_size)
        self.word.weight.requires_grad_(not config.fixed_words)
        self.char = CharCNN(config)
        self.dropout = nn.Dropout(config.word_dropout)
        self.whole_dropout = nn.Dropout1d(config.whole_word_dropout)
        self.register_buffer("spellings", vocabulary_spellings(config, spellings))

    def forward(self, batch: WordBatch) -> Float[Tensor, "N token"]:
        """Return the token of each word."""
        tokens, rows = self.distinct(batch)
        return tokens.index_select(0, rows)

    def distinct(self, batch: WordBatch) -> tuple[Float[Tensor, "D token"], Int[Tensor, " N"]]:
        """Return the tokens of the distinct words, and the row of each word among them.

        Dropout takes the same numbers from a word wherever it occurs in the batch.
        """
        words, rows = torch.unique(batch.words, return_inverse=True)
        x = torch.cat([self.word(words.clamp(min=0)), self.characters(words, batch)], 1)  # Eq. (4)
        return self.whole_dropout(self.dropout(x)), rows

    def characters(self, words: Int[Tensor, " D"], batch: WordBatch) -> Float[Tensor, "D char"]:
        """Return the character vectors of words."""
        return self.char(spelled(words, self.spellings, batch.unknown))  # type: ignore[no-any-return]
