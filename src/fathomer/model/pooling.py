"""From word and sentence states to one vector per text, Eq. (15).

N words of the batch, B texts, H hidden_size
"""

import torch
from jaxtyping import Float
from torch import Tensor

from fathomer.model.graph import WordBatch


def pool_texts(
    words: Float[Tensor, "N H"], sentences: Float[Tensor, "B H"], batch: WordBatch
) -> Float[Tensor, "B 3*H"]:
    """Give ``ReLU([max ; mean ; g])``; an empty text has zeros."""
    return torch.relu(torch.cat([pool_words(words, batch), sentences], 1))


def pool_words(words: Float[Tensor, "N H"], batch: WordBatch) -> Float[Tensor, "B 2*H"]:
    """Give ``[max ; mean]`` of each text, where no maximum is below zero: a ReLU follows."""
    # Starting the maximum at zero gives empty texts a value, and changes nothing under the ReLU.
    start = words.new_zeros(batch.num_texts, words.shape[1])
    text_of = batch.text_of[:, None].expand_as(words)
    highest = start.scatter_reduce(0, text_of, words, "amax")
    sums = start.index_add(0, batch.text_of, words)
    return torch.cat([highest, sums / batch.word_counts[:, None]], 1)
