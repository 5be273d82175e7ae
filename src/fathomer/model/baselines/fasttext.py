"""fastText, a linear classifier over averaged embeddings of words and word pairs.

Joulin et al., 2017, "Bag of Tricks for Efficient Text Classification":

    y = softmax(B A x)     x: the words and word pairs of a text, averaged; A and B: linear maps

The ``fasttext`` package trains; :mod:`fathomer.model.baselines.fasttext_file` reads what it has
learned into plain tensors. Ten dimensions and word pairs, as in the paper. Differences: the words
come from our tokenizer, the learning rate and the number of epochs are fixed rather than searched,
and the hash table of pairs is smaller.

    V vocabulary, W words of the training texts, P hash buckets of word pairs, R labels seen, B texts
"""

import tempfile
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int, UInt8
from numpy.typing import NDArray
from torch import Tensor

from fathomer.config import ModelConfig
from fathomer.errors import ConfigError, require
from fathomer.model.baselines.comparison import DepthlessNetwork, refuse_several_labels
from fathomer.model.baselines.fasttext_file import (
    BUCKETS,
    END,
    LABEL,
    PAIRS,
    SIZE,
    read_model_file,
    split_words,
    word_hashes,
)
from fathomer.model.graph import WordBatch
from fathomer.model.interface import DirectNetwork, check_names
from fathomer.model.ngrams import LabelledArrays
from fathomer.model.spelling import vocabulary_spellings
from fathomer.text.encode import EncodedTexts

EPOCHS, LEARNING_RATE = 25, 0.5
UNSEEN = -20.0
"""Log probability of a label without training texts."""
SMALLEST = 1e-5
"""Added to every probability, as in the package."""
FACTOR = np.uint64(116_049_371)
"""Factor of the first word's hash in the hash of a pair."""


class WordLookup(NamedTuple):
    """Words as the package sees them."""

    rows: NDArray[np.int64]
    """Their embeddings; -1 for words that were not in the training texts."""
    hashes: NDArray[np.uint64]
    """Their hashes, from which those of pairs are made."""


class FastText(DepthlessNetwork, DirectNetwork):
    """fastText."""

    spellings: Tensor
    words: Tensor
    embeddings: Tensor
    output: Tensor
    seen: Tensor

    def __init__(
        self, config: ModelConfig, *, spellings: UInt8[Tensor, "V C"] | None = None
    ) -> None:
        super().__init__(config)
        refuse_several_labels(config)
        self.register_buffer("spellings", vocabulary_spellings(config, spellings))
        self.register_buffer("words", torch.zeros(0, dtype=torch.uint8))
        self.register_buffer("embeddings", torch.zeros(0, SIZE))
        self.register_buffer("output", torch.zeros(0, SIZE))
        self.register_buffer("seen", torch.zeros(0, dtype=torch.long))

    def learn(
        self,
        texts: EncodedTexts,
        targets: NDArray[np.int64],
        *,
        seed: int,
        weights: NDArray[np.float32] | None = None,
        held_out: LabelledArrays | None = None,  # noqa: ARG002 (it has no setting to choose)
    ) -> None:
        """Fit the model to all texts, on one thread, because two give different models each time.

        The package takes its steps in the order of the file, and learns little if the texts are
        sorted by label, so they are shuffled.
        """
        if weights is not None:
            raise ConfigError("the model fasttext does not support weights; leave them out")
        package = require("fasttext", "fasttext")
        with tempfile.TemporaryDirectory() as folder:
            corpus, file = Path(folder, "corpus.txt"), Path(folder, "model.bin")
            unknown = torch.from_numpy(texts.unknown.copy())
            with corpus.open("w", encoding="utf-8", newline="\n") as stream:
                order = np.random.default_rng(seed).permutation(len(targets))
                for place, line in zip(order, self.lines(texts, order, unknown), strict=True):
                    stream.write(f"{LABEL}{targets[place]} {line}\n")
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
            content = file.read_bytes()
        self.load_tensors({"spellings": self.spellings, **read_model_file(content)})

    def lines(
        self, texts: EncodedTexts, order: NDArray[np.int64], unknown: UInt8[Tensor, "K C"]
    ) -> Iterator[str]:
        """Return the texts, in some order, each as a line of its words."""
        known, others = written(self.spellings), written(unknown)
        for start, end in zip(texts.starts[order], texts.starts[order + 1], strict=True):
            words = texts.ids[start:end].tolist()
            yield " ".join(known[word] if word >= 0 else others[-1 - word] for word in words)

    def classify(self, batch: WordBatch) -> Float[Tensor, "B labels"]:
        """Return the logits of a batch."""
        logits = torch.full((batch.num_texts, self.config.num_labels), UNSEEN)
        if len(self.seen) and batch.num_texts:
            rows, text_of = self.features(batch)
            vectors = self.embeddings.cpu()[rows].double()
            sums = vectors.new_zeros(batch.num_texts, SIZE).index_add(0, text_of, vectors)
            counts = torch.bincount(text_of, minlength=batch.num_texts).clamp(min=1)
            found = (sums / counts[:, None] @ self.output.cpu().double().T).softmax(1)
            logits[:, self.seen.cpu()] = (found + SMALLEST).log().float()
        return logits.to(self.embeddings.device)

    def features(self, batch: WordBatch) -> tuple[Int[Tensor, " F"], Int[Tensor, " F"]]:
        """Return the rows of all words and pairs, and the text that each belongs to.

        A text ends with a word of its own, which is in pairs, too.
        """
        unknown = self.look_up(written(batch.unknown))
        parts = (self.known, unknown, self.end)
        table = WordLookup(
            np.concatenate([part.rows for part in parts]),
            np.concatenate([part.hashes for part in parts]),
        )
        ids, lengths = batch.words.numpy(force=True), batch.lengths.numpy()
        places = np.where(ids >= 0, ids, len(self.known.rows) - 1 - ids)
        ends = np.cumsum(lengths)
        places = np.insert(places, ends, len(table.rows) - 1)
        text_of = np.repeat(np.arange(batch.num_texts), lengths + 1)
        rows, hashes = table.rows[places], table.hashes[places]
        pairs = (hashes[:-1] * FACTOR + hashes[1:]) % np.uint64(BUCKETS)
        pairs = pairs.astype(np.int64) + self.num_words
        both = text_of[:-1] == text_of[1:]
        used = rows >= 0
        features = np.concatenate([rows[used], pairs[both]])
        texts = np.concatenate([text_of[used], text_of[:-1][both]])
        return torch.from_numpy(features), torch.from_numpy(texts)

    def look_up(self, words: list[str]) -> WordLookup:
        """Return the rows and the hashes of words."""
        rows = [self.row_of.get(word, -1) for word in words]
        return WordLookup(np.array(rows, dtype=np.int64), word_hashes(words))

    @cached_property
    def known(self) -> WordLookup:
        """The vocabulary."""
        return self.look_up(written(self.spellings))

    @cached_property
    def end(self) -> WordLookup:
        """The word that ends every text."""
        return self.look_up([END])

    @cached_property
    def row_of(self) -> dict[str, int]:
        """The row of each word of the training texts."""
        return {word: row for row, word in enumerate(split_words(self.words))}

    @property
    def num_words(self) -> int:
        """The number of words in the training texts; the rows after them belong to pairs."""
        return len(self.embeddings) - BUCKETS

    def load_tensors(self, tensors: Mapping[str, Tensor]) -> None:
        """Load the fitted tensors, whose sizes were not known before.

        The first version kept the package's own file as a tensor of bytes.
        """
        if "model" in tensors:
            content = tensors["model"].numpy(force=True).tobytes()
            tensors = {"spellings": tensors["spellings"], **read_model_file(content)}
        buffers = dict(self.named_buffers())
        check_names(tensors, buffers)
        found = {name: tensors[name].to(buffer) for name, buffer in buffers.items()}
        _check(found, self.config)
        for name, tensor in found.items():
            setattr(self, name, tensor)
        for name in ("known", "end", "row_of"):  # cached values of the old tensors
            self.__dict__.pop(name, None)


def _check(tensors: Mapping[str, Tensor], config: ModelConfig) -> None:
    """Raise ValueError if tensors do not fit together."""
    embeddings, output, seen = tensors["embeddings"], tensors["output"], tensors["seen"]
    rows = len(split_words(tensors["words"])) + BUCKETS if len(seen) else 0
    if embeddings.shape != (rows, SIZE) or output.shape != (len(seen), SIZE) or seen.dim() != 1:
        raise ValueError("the tensors of fastText have unexpected shapes")
    if len(seen) and not 0 <= int(seen.min()) <= int(seen.max()) < config.num_labels:
        raise ValueError("the tensors of fastText name labels that do not exist")
    spellings = tensors["spellings"]
    if spellings.dim() != 2 or len(spellings) != config.vocab_size:
        raise ValueError("the tensors of fastText have another vocabulary")


def written(spellings: UInt8[Tensor, "W C"]) -> list[str]:
    """Return words as strings, prefixed with "=" so that none looks like a label or an end of line.

    >>> written(torch.tensor([[110, 111], [97, 0]], dtype=torch.uint8))
    ['=no', '=a']
    """
    rows = (row.tobytes().rstrip(b"\0") for row in spellings.numpy(force=True))
    return ["=" + row.decode("utf-8", "replace") for row in rows]
