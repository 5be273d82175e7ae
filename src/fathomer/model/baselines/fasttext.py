"""fastText, a linear classifier over averaged embeddings of words and word pairs.

Joulin et al., 2017, "Bag of Tricks for Efficient Text Classification":

    y = softmax(B A x)     x: the words and word pairs of a text, averaged; A and B: linear maps

The ``fasttext`` package trains and predicts; the model file that it writes is kept as a tensor of
bytes, so that the model is saved, loaded and used like every other model. Ten dimensions and word
pairs, as in the paper. Differences: the words come from our tokenizer, the learning rate and the
number of epochs are fixed rather than searched, and the hash table of pairs is smaller.
"""

import math
import tempfile
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, UInt8
from numpy.typing import NDArray
from torch import Tensor

from fathomer.config import ModelConfig
from fathomer.errors import ConfigError, require
from fathomer.model.baselines.comparison import Depthless, refuse_several_labels
from fathomer.model.graph import WordBatch
from fathomer.model.interface import DirectNetwork
from fathomer.model.ngrams import LabelledArrays
from fathomer.model.spelling import vocabulary_spellings
from fathomer.text.encode import EncodedTexts

LABEL = "__label__"
SIZE, PAIRS, BUCKETS = 10, 2, 200_000
EPOCHS, LEARNING_RATE = 25, 0.5
UNSEEN = -20.0
"""Log probability of a label without training texts."""


class FastText(Depthless, DirectNetwork):
    """fastText."""

    spellings: Tensor
    model: Tensor

    def __init__(
        self, config: ModelConfig, *, spellings: UInt8[Tensor, "V C"] | None = None
    ) -> None:
        super().__init__(config)
        refuse_several_labels(config)
        self.register_buffer("spellings", vocabulary_spellings(config, spellings))
        self.register_buffer("model", torch.zeros(0, dtype=torch.uint8))

    def learn(
        self,
        texts: EncodedTexts,
        targets: NDArray[np.int64],
        *,
        seed: int,
        weights: NDArray[np.float32] | None = None,
        held_out: LabelledArrays | None = None,  # noqa: ARG002 (it has no setting to choose)
    ) -> None:
        """Fit the model to all texts, on one thread, because two give different models each time."""
        if weights is not None:
            raise ConfigError("the model fasttext does not support weights; leave them out")
        package = require("fasttext", "fasttext")
        with tempfile.TemporaryDirectory() as folder:
            corpus, file = Path(folder, "corpus.txt"), Path(folder, "model.bin")
            unknown = torch.from_numpy(texts.unknown.copy())
            with corpus.open("w", encoding="utf-8", newline="\n") as stream:
                for target, line in zip(
                    targets.tolist(), self.lines(texts.ids, texts.lengths, unknown), strict=True
                ):
                    stream.write(f"{LABEL}{target} {line}\n")
            learned = package.train_supervised(
                input=str(corpus),
                dim=SIZE,
                wordNgrams=PAIRS,
                bucket=BUCKETS,
                epoch=EPOCHS,
                lr=LEARNING_RATE,
                seed=seed % 2**31,
                thread=1,
                label=LABEL,
                verbose=0,
            )
            learned.save_model(str(file))
            content = np.fromfile(file, dtype=np.uint8)
        self.load_tensors({"spellings": self.spellings, "model": torch.from_numpy(content)})

    def lines(
        self,
        ids: NDArray[np.integer[Any]],
        lengths: NDArray[np.int64],
        unknown: UInt8[Tensor, "K C"],
    ) -> Iterator[str]:
        """Return each text as a line of its words."""
        known, others = self.known, written(unknown)
        start = 0
        for length in lengths.tolist():
            words = ids[start : start + length].tolist()
            yield " ".join(known[word] if word >= 0 else others[-1 - word] for word in words)
            start += length

    @cached_property
    def known(self) -> list[str]:
        """The known words as strings."""
        return written(self.spellings)

    def classify(self, batch: WordBatch) -> Float[Tensor, "B labels"]:
        """Return the logits of a batch."""
        logits = torch.full((batch.num_texts, self.config.num_labels), UNSEEN)
        if len(self.model):
            ids, lengths = batch.words.numpy(force=True), batch.lengths.numpy()
            for row, line in zip(logits, self.lines(ids, lengths, batch.unknown), strict=True):
                for label, probability in self.probabilities(line).items():
                    row[label] = math.log(probability)  # at least 1e-5
        return logits.to(self.model.device)

    def probabilities(self, line: str) -> dict[int, float]:
        """Return the probabilities of one text.

        The package's own ``predict`` fails with NumPy 2 for one text, and for several texts gives
        all labels the probability of the first; the function that it calls has neither fault.
        """
        found = self.loaded.f.predict(line + "\n", -1, 0.0, "strict")
        return {int(label.removeprefix(LABEL)): probability for probability, label in found}

    @cached_property
    def loaded(self) -> Any:
        """The package's own model, loaded from a temporary file."""
        package = require("fasttext", "fasttext")
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "model.bin")
            file.write_bytes(self.model.numpy(force=True).tobytes())
            # load_model would print a deprecation warning every time.
            return package.FastText._FastText(model_path=str(file))

    def load_tensors(self, tensors: Mapping[str, Tensor]) -> None:
        """Load the fitted tensors, whose sizes were not known before."""
        self.spellings, self.model = tensors["spellings"], tensors["model"]
        for name in ("known", "loaded"):  # cached values of the old tensors
            self.__dict__.pop(name, None)


def written(spellings: UInt8[Tensor, "W C"]) -> list[str]:
    """Return words as strings, prefixed with "=" so that none looks like a label or an end of line.

    >>> written(torch.tensor([[110, 111], [97, 0]], dtype=torch.uint8))
    ['=no', '=a']
    """
    rows = (row.tobytes().rstrip(b"\0") for row in spellings.numpy(force=True))
    return ["=" + row.decode("utf-8", "replace") for row in rows]
