"""The spellings of words, for models that read characters or whole strings.

N words of the batch, C bytes of a spelling
"""

import torch
from jaxtyping import Int, UInt8
from torch import Tensor

from fathomer.config import ModelConfig
from fathomer.text.encode import spell


def vocabulary_spellings(
    config: ModelConfig, spellings: UInt8[Tensor, "V C"] | None
) -> UInt8[Tensor, "V C"]:
    """Return the spellings of the known words; without a vocabulary, each is spelled as its id."""
    if spellings is not None:
        return spellings
    names = [str(word) for word in range(config.vocab_size)]
    return torch.from_numpy(spell(names, max_chars=10).copy())


def spelled(
    words: Int[Tensor, " N"], known: UInt8[Tensor, "V A"], unknown: UInt8[Tensor, "K B"]
) -> UInt8[Tensor, "N C"]:
    """Return the spellings of words; id ``-1 - k`` is the k-th row of ``unknown``."""
    width = max(known.shape[1], unknown.shape[1])
    table = known.new_zeros(len(words), width)
    is_known = words >= 0
    table[is_known, : known.shape[1]] = known[words[is_known]]
    table[~is_known, : unknown.shape[1]] = unknown[-1 - words[~is_known]]
    return table
