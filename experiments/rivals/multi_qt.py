"""Logistic regression on quick thoughts (Logeswaran and Lee, 2018): "Multi-QT" of the paper's Table 3.

A text is encoded by all encoders of :mod:`experiments.rivals.quick_thoughts`, side by side: those that
learned their own word vectors, and those over given, fixed ones. The encoders do not change any more:

    x = mean_s [f(s) ; g(s) ; f'(s) ; g'(s)]        over the sentences s of a text
    y = W x + b

Differences from the original: the encoders are those of the file ``FATHOMER_QT``, which ``python -m
experiments pretrain-qt`` makes of any texts (there, tens of millions of sentences from books). Without a
file, they are pretrained on the sentences of the training texts, some of which must then have several. The
encoders over fixed vectors are left out if no vectors are given. The width of an encoder is ``hidden_size``
(there, thousands). A text is the mean of its sentences (there, a single sentence). Words that are not in
the vocabulary of the training texts share one vector.

    B texts, V vocabulary, F features
"""

import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, UInt8
from numpy.typing import NDArray
from torch import Tensor, nn

from experiments.rivals import quick_thoughts
from experiments.rivals.quick_thoughts import ENDS, Channel, Sentences, channels_of, read_channels
from fathomer.config import ModelConfig
from fathomer.errors import DataError
from fathomer.model.baselines.comparison import DepthlessNetwork
from fathomer.model.graph import WordBatch
from fathomer.model.initialise import initialise
from fathomer.model.interface import DirectNetwork, check_names
from fathomer.model.ngrams import LabelledArrays, fit_regression
from fathomer.model.spelling import vocabulary_spellings
from fathomer.text.encode import EncodedTexts, plan_batches

FILE = "FATHOMER_QT"
"""Variable of the environment that names the file of pretrained encoders."""
BATCH_WORDS = 4000


class MultiQT(DepthlessNetwork, DirectNetwork):
    """Logistic regression on pretrained sentence encoders."""

    spellings: Tensor
    weight: Tensor
    bias: Tensor

    def __init__(
        self, config: ModelConfig, *, spellings: UInt8[Tensor, "V C"] | None = None
    ) -> None:
        super().__init__(config)
        sizes = config.vocab_size, config.word_size, config.hidden_size
        names = ("trained", "fixed") if config.fixed_words else ("trained",)
        self.channels = nn.ModuleDict(
            {name: Channel(*sizes, fixed=name == "fixed") for name in names}
        )
        self.register_buffer("spellings", vocabulary_spellings(config, spellings))
        self.register_buffer("weight", torch.zeros(self.size, config.num_labels))
        self.register_buffer("bias", torch.zeros(config.num_labels))
        initialise(self)

    @property
    def size(self) -> int:
        """Number of features of a text."""
        return sum(channel.size for channel in self._channels())

    @property
    def word_vectors(self) -> nn.Embedding | None:
        """The table that pretrained vectors are copied into."""
        fixed = dict(self.channels.items()).get("fixed")
        return fixed.words if isinstance(fixed, Channel) else None

    def learn(
        self,
        texts: EncodedTexts,
        targets: NDArray[np.int64],
        *,
        seed: int,
        weights: NDArray[np.float32] | None = None,
        held_out: LabelledArrays | None = None,
    ) -> None:
        """Read or pretrain the encoders, and fit the logistic regression."""
        file = os.environ.get(FILE)
        if file:
            self.channels = nn.ModuleDict(read_channels(Path(file), self.words)).to(self.device)
        else:
            self._pretrain(texts, seed=seed)
        unseen = (self.features(held_out[0]), held_out[1]) if held_out else None
        weight, bias = fit_regression(
            self.features(texts),
            targets,
            self.config.num_labels,
            seed=seed,
            weights=weights,
            held_out=unseen,
        )
        self.weight = torch.from_numpy(weight).to(self.bias)
        self.bias = torch.from_numpy(bias).to(self.bias)

    def _pretrain(self, texts: EncodedTexts, *, seed: int) -> None:
        """Pretrain the encoders on the sentences of the training texts."""
        sentences = Sentences.split(texts.ids, texts.lengths, self.is_end)
        for channel in self._channels():
            try:
                quick_thoughts.pretrain(channel, sentences, epochs=quick_thoughts.EPOCHS, seed=seed)
            except DataError as error:
                raise DataError(
                    f"{self.config.name}: {error}; run python -m experiments pretrain-qt TEXTS on "
                    f"longer texts and set {FILE} to its file"
                ) from None

    def features(self, texts: EncodedTexts) -> NDArray[np.float32]:
        """Encode many texts."""
        found = np.zeros((len(texts), self.size), dtype=np.float32)
        for indices in plan_batches(texts.lengths, budget=BATCH_WORDS):
            with torch.inference_mode():
                batch = WordBatch.from_packed(texts.pack(indices))
                found[indices] = self.encode(batch).float().cpu().numpy()
        return found

    def encode(self, batch: WordBatch) -> Float[Tensor, "B F"]:
        """Return the mean of the sentences of each text; zeros for an empty one."""
        sentences = Sentences.split(batch.words.cpu().numpy(), batch.lengths.numpy(), self.is_end)
        sums = self.weight.new_zeros(batch.num_texts, self.size)
        if not len(sentences):
            return sums
        table = sentences.table(np.arange(len(sentences)))
        vectors = torch.cat([part for each in self._channels() for part in each.both(*table)], 1)
        text_of = torch.from_numpy(sentences.text_of).to(sums.device)
        counts = torch.bincount(text_of, minlength=batch.num_texts).clamp(min=1)
        return sums.index_add(0, text_of, vectors.to(sums.dtype)) / counts[:, None]

    def classify(self, batch: WordBatch) -> Float[Tensor, "B labels"]:
        """Return the logits of a batch."""
        return self.encode(batch) @ self.weight + self.bias

    @property
    def words(self) -> list[str]:
        """The known words."""
        rows = self.spellings.cpu().numpy()
        return [row.tobytes().rstrip(b"\0").decode("utf-8", "replace") for row in rows]

    @property
    def is_end(self) -> NDArray[np.bool_]:
        """Whether each known word ends a sentence."""
        return np.isin(self.words, ENDS)

    def _channels(self) -> list[Channel]:
        return [channel for channel in self.channels.values() if isinstance(channel, Channel)]

    def load_tensors(self, tensors: Mapping[str, Tensor]) -> None:
        """Load encoders, whose sizes were not known before, and the fitted regression."""
        prefix = "channels."
        inside = {name: tensor for name, tensor in tensors.items() if name.startswith(prefix)}
        channels = channels_of({name.removeprefix(prefix): t for name, t in inside.items()})
        self.channels = nn.ModuleDict(channels)
        check_names(tensors, self.state_dict())
        shapes = {
            "spellings": self.spellings.shape,
            "weight": (self.size, self.config.num_labels),
            "bias": self.bias.shape,
        }
        for name, shape in shapes.items():
            if tensors[name].shape != shape:
                raise ValueError(f"the tensor {name} is not of shape {tuple(shape)}")
            setattr(self, name, tensors[name])
        sizes = {channel.words.num_embeddings for channel in self._channels()}
        if sizes != {self.config.vocab_size}:
            raise ValueError("the encoders have another vocabulary")
