"""Quick thoughts: sentence encoders that learn to find the neighbours of a sentence.

Logeswaran and Lee, 2018, "An efficient framework for learning sentence representations". Sentences
of the same text stand in a batch in their order, together with those of other texts:

    p(j | i) = softmax_j(f(s_i) · g(s_j))            j: all other sentences of the batch
    loss     = -mean_i mean_n log p(n | i)           n: the sentence before i and the one after it

f and g are bidirectional GRUs, each with its own weights. A sentence is encoded as ``[f(s) ; g(s)]``.

    S sentences, T words of the longest one, V vocabulary
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.torch
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence

from fathomer.errors import DataError, MissingFileError
from fathomer.files import write_atomically
from fathomer.model.interface import check_names

ENDS = (".", "!", "?", "...")
"""Words that end a sentence."""
LONGEST = 60
"""Longer sentences are split."""
BATCH = 100
"""Sentences of a batch, to within a text."""
RATE, CLIP = 0.001, 5.0
EPOCHS = 5
CHANNELS = ("trained", "fixed")
"""Names of the encoders: with word vectors of their own, and with given ones."""
_KEY = "fathomer_quick_thoughts"


@dataclass(frozen=True)
class Sentences:
    """The sentences of many texts, one after another."""

    words: NDArray[np.int64]
    """Ids of the words; 0 for every unknown one."""
    starts: NDArray[np.int64]
    """Start of each sentence, and the end of the last one."""
    text_of: NDArray[np.int64]

    @classmethod
    def split(
        cls, words: NDArray[Any], lengths: NDArray[np.int64], is_end: NDArray[np.bool_]
    ) -> "Sentences":
        """Split texts after words that end a sentence; ``is_end`` has one entry per known word."""
        known = words.astype(np.int64).clip(min=0)
        ends = is_end[known] & (words >= 0)
        text_of = np.repeat(np.arange(len(lengths)), lengths)
        begins = np.ones(len(known), dtype=bool)
        begins[1:] = (text_of[1:] != text_of[:-1]) | (ends[:-1] & ~ends[1:])
        places = np.arange(len(known))
        since = places - np.maximum.accumulate(np.where(begins, places, 0))
        starts = np.flatnonzero(since % LONGEST == 0)
        return cls(known, np.append(starts, len(known)), text_of[starts])

    def __len__(self) -> int:
        return len(self.text_of)

    def table(self, rows: Sequence[int] | NDArray[np.int64]) -> tuple[Tensor, Tensor]:
        """Return the words of some sentences, padded to the longest, and their lengths."""
        lengths = np.diff(self.starts)[rows]
        table = np.zeros((len(rows), int(lengths.max(initial=1))), dtype=np.int64)
        for place, row in enumerate(rows):
            table[place, : lengths[place]] = self.words[self.starts[row] : self.starts[row + 1]]
        return torch.from_numpy(table), torch.from_numpy(lengths)

    def batches(self, shuffle: np.random.Generator) -> Iterator[NDArray[np.int64]]:
        """Yield the sentences of random texts, in their order; texts of one sentence are left out."""
        bounds = np.flatnonzero(np.diff(self.text_of, prepend=-1, append=-1))
        batch: list[NDArray[np.int64]] = []
        for text in shuffle.permutation(len(bounds) - 1):
            rows = np.arange(bounds[text], bounds[text + 1])
            if len(rows) > 1:
                batch.append(rows)
            if sum(map(len, batch)) >= BATCH:
                yield np.concatenate(batch)
                batch = []
        if len(batch) > 1 or (batch and len(batch[0]) > 2):  # else there is nothing to choose from
            yield np.concatenate(batch)


class SentenceEncoder(nn.Module):
    """A bidirectional GRU; its last states in both directions are the vector of a sentence."""

    def __init__(self, word_size: int, size: int) -> None:
        super().__init__()
        self.gru = nn.GRU(word_size, size // 2, batch_first=True, bidirectional=True)

    def forward(
        self, words: Float[Tensor, "S T word"], lengths: Int[Tensor, " S"]
    ) -> Float[Tensor, "S size"]:
        """Return one vector per sentence."""
        packed = pack_padded_sequence(words, lengths, batch_first=True, enforce_sorted=False)
        states: Tensor = self.gru(packed)[1]
        return torch.cat(list(states), 1)


class Channel(nn.Module):
    """The encoders f and g over one table of word vectors."""

    def __init__(self, vocab_size: int, word_size: int, size: int, *, fixed: bool) -> None:
        super().__init__()
        self.words = nn.Embedding(vocab_size, word_size)
        self.words.weight.requires_grad_(not fixed)
        self.f = SentenceEncoder(word_size, size)
        self.g = SentenceEncoder(word_size, size)

    @property
    def size(self) -> int:
        """Width of a sentence's vector."""
        return 2 * 2 * self.f.gru.hidden_size

    def both(
        self, words: Int[Tensor, "S T"], lengths: Int[Tensor, " S"]
    ) -> tuple[Float[Tensor, "S size"], Float[Tensor, "S size"]]:
        """Return f and g of some sentences."""
        vectors = self.words(words.to(self.words.weight.device))
        return self.f(vectors, lengths), self.g(vectors, lengths)


def neighbour_loss(
    f: Float[Tensor, "S size"], g: Float[Tensor, "S size"], text_of: Int[Tensor, " S"]
) -> Float[Tensor, ""]:
    """Return the loss of finding the neighbours of each sentence that has any."""
    itself = torch.eye(len(f), dtype=torch.bool)
    logs = (f @ g.T).masked_fill(itself, -1e9).log_softmax(1)
    places = torch.arange(len(f))
    near = (text_of[:, None] == text_of) & ((places[:, None] - places).abs() == 1)
    shares = near / near.sum(1, keepdim=True).clamp(min=1)
    return -(shares.to(logs.dtype) * logs).sum() / near.any(1).sum()


def pretrain(
    channel: Channel,
    sentences: Sentences,
    *,
    epochs: int,
    seed: int,
    log: Callable[[str], None] | None = None,
) -> float:
    """Train the encoders, and the word vectors unless they are fixed; return the last mean loss."""
    shuffle = np.random.default_rng(seed)
    weights = [weight for weight in channel.parameters() if weight.requires_grad]
    optimiser = torch.optim.Adam(weights, lr=RATE)
    mean = float("nan")
    for epoch in range(1, epochs + 1):
        losses = []
        for rows in sentences.batches(shuffle):
            text_of = torch.from_numpy(sentences.text_of[rows])
            loss = neighbour_loss(*channel.both(*sentences.table(rows)), text_of)
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(weights, CLIP)
            optimiser.step()
            losses.append(float(loss.detach()))
        if not losses:
            raise DataError(
                "no text has several sentences, so there are no neighbours to learn from"
            )
        mean = sum(losses) / len(losses)
        if log:
            log(f"epoch {epoch} of {epochs}: loss {mean:.3f}")
    return mean


def write_channels(
    path: Path, channels: Mapping[str, Channel], words: Sequence[str], made: dict[str, Any]
) -> None:
    """Write pretrained encoders with their vocabulary; ``made`` says how they were made."""
    tensors = nn.ModuleDict(channels).state_dict()
    spelled = "\n".join(words).encode("utf-8", "replace")
    tensors["vocabulary"] = torch.frombuffer(bytearray(spelled), dtype=torch.uint8)
    metadata = {_KEY: json.dumps(made, ensure_ascii=False)}
    write_atomically(path, safetensors.torch.save(tensors, metadata=metadata))


def read_channels(path: Path, words: Sequence[str]) -> dict[str, Channel]:
    """Read pretrained encoders, with the vectors of ``words`` only.

    A word that is not in the file is looked up in lower case, and then has the vector of all
    unknown words.
    """
    if not path.is_file():
        raise MissingFileError(f"{path}: no such file; python -m experiments pretrain-qt makes one")
    try:
        with safe_open(path, framework="pt") as file:
            if _KEY not in (file.metadata() or {}):
                raise ValueError("it lacks the name of the format")
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        spelled = bytes(tensors.pop("vocabulary").numpy()).decode("utf-8").split("\n")
        rows = {word: row for row, word in reversed(list(enumerate(spelled)))}
        known = torch.tensor([rows.get(word, rows.get(word.lower(), 0)) for word in words])
        for name in [name for name in tensors if name.endswith(".words.weight")]:
            tensors[name] = tensors[name][known]
        return channels_of(tensors)
    except (SafetensorError, KeyError, IndexError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        raise DataError(
            f"{path}: not a file of sentence encoders ({reason}); "
            "python -m experiments pretrain-qt makes one"
        ) from None


def channels_of(tensors: Mapping[str, Tensor]) -> dict[str, Channel]:
    """Build encoders from their weights, named ``trained.f...``; ValueError if these do not fit."""
    names = [name for name in CHANNELS if f"{name}.words.weight" in tensors]
    channels = {}
    for name in names:
        vocab_size, word_size = tensors[f"{name}.words.weight"].shape
        hidden = tensors[f"{name}.f.gru.weight_hh_l0"].shape[1]
        channels[name] = Channel(vocab_size, word_size, 2 * hidden, fixed=name == "fixed")
    wanted = nn.ModuleDict(channels).state_dict()
    check_names(tensors, wanted)
    for name, tensor in wanted.items():
        if tensors[name].shape != tensor.shape or not tensors[name].isfinite().all():
            raise ValueError(f"the tensor {name} does not fit the others")
        tensor.copy_(tensors[name])
    return channels
