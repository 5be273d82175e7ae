"""From examples to all that training needs: words, labels, encoded texts and a network."""

import copy
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from fathomer.config import Recipe, TextConfig
from fathomer.data.examples import Examples, check_weights, split_stratified
from fathomer.errors import ConfigError, DataError, did_you_mean
from fathomer.model.interface import DirectNetwork, Network
from fathomer.model.registry import build_model
from fathomer.model.sizes import match_hidden_size
from fathomer.spool import pieces
from fathomer.text.encode import EncodedTexts
from fathomer.text.tokenizer import Tokenizer
from fathomer.text.vocabulary import Vocabulary, build_vocabulary, spell

DATA_DECIDES = ("vocab_size", "num_labels", "word_size", "fixed_words", "multi_label")
"""Settings of a model that texts and vectors may decide."""

_CHUNK = 1000
"""Texts that are tokenized at a time: enough to keep all cores busy, few enough to hold."""


@dataclass(frozen=True)
class LabelledTexts:
    """Hold encoded texts with the index of each one's label."""

    texts: EncodedTexts
    targets: NDArray[np.int64]
    """Where a text may have several labels, one row per text: 1 for a label that it has."""
    weights: NDArray[np.float32] | None = None
    """How much each text counts in training, 1 on average."""

    def __len__(self) -> int:
        return len(self.targets)


class Coverage(NamedTuple):
    """Hold which part of the training words has a vector."""

    types: float
    """Of the distinct words."""
    words: float
    """Of the words as they occur."""


@dataclass(frozen=True)
class Prepared:
    """Hold what a training starts from."""

    recipe: Recipe
    tokenizer: Tokenizer
    labels: tuple[str, ...]
    network: Network
    train: LabelledTexts
    held_out: LabelledTexts | None
    coverage: Coverage | None = None
    """By the given vectors."""


class Start(NamedTuple):
    """Hold a trained model that another training goes on from."""

    tokenizer: Tokenizer
    labels: tuple[str, ...]
    network: Network
    max_chars: int
    """Of the spellings that the network knows."""

    def going_on(self, recipe: Recipe) -> tuple[Recipe, Network]:
        """Give a copy of the network to train, and the settings that it has."""
        model = self.network.config
        if isinstance(self.network, DirectNetwork):
            raise ConfigError(f"the model {model.name} learns at once; it cannot go on learning")
        before = {f"model.{name}": value for name, value in model.to_dict().items()}
        before["text.max_chars"] = self.max_chars
        for name, value in before.items():
            section, _, setting = name.partition(".")
            wanted = recipe.to_dict()[section][setting]
            if setting not in DATA_DECIDES and value != wanted:
                raise ConfigError(
                    f"training cannot go on with {name} = {wanted!r}: the model has {value!r}"
                )
        return replace(recipe, model=model), copy.deepcopy(self.network)


def prepare(
    examples: Examples,
    recipe: Recipe,
    *,
    held_out: Examples | None = None,
    vectors: Path | None = None,
    match_parameters: bool = False,
    start: Start | None = None,
) -> Prepared:
    """Prepare a training; without ``held_out`` a part of the examples is held out.

    With ``match_parameters`` the hidden size is the one that makes the model as large as ours.
    """
    labels = start.labels if start else tuple(examples.label_counts)
    if len(labels) < (1 if examples.multi_label else 2):
        found = f"only one label ({labels[0]!r})" if labels else "no examples"
        raise DataError(f"{found}; a classifier needs examples of at least two labels")
    if held_out is None and recipe.train.held_out > 0:
        examples, held_out = split_stratified(
            examples, fraction=recipe.train.held_out, seed=recipe.train.seed
        )
    if start:
        vocabulary = Vocabulary(start.tokenizer, None)
        recipe, network = start.going_on(recipe)
    else:
        vocabulary = build_vocabulary((e.text for e in examples), recipe.text, vectors=vectors)
        recipe = recipe.updated({"model": _sizes(vocabulary, labels)})
        recipe = recipe.updated({"model": {"multi_label": examples.multi_label}})
        if match_parameters:
            recipe = recipe.updated({"model": {"hidden_size": match_hidden_size(recipe.model)}})
        network = build_network(recipe, vocabulary)
    train = encode_examples(examples, vocabulary.tokenizer, labels, recipe.text)
    train = replace(train, weights=training_weights(examples, train.targets, recipe))
    return Prepared(
        recipe=recipe,
        tokenizer=vocabulary.tokenizer,
        labels=labels,
        network=network,
        train=train,
        held_out=encode_examples(held_out, vocabulary.tokenizer, labels, recipe.text)
        if held_out
        else None,
        coverage=cover(train.texts, len(vocabulary.tokenizer)) if vectors else None,
    )


def training_weights(
    examples: Examples, targets: NDArray[np.int64], recipe: Recipe
) -> NDArray[np.float32] | None:
    """Give each text its weight, 1 on average; balanced, all labels weigh the same in sum."""
    balanced = recipe.train.class_weight == "balanced"
    if examples.weights is None and not balanced:
        return None
    if balanced and examples.multi_label:
        raise ConfigError("train.class_weight=balanced needs one label per text")
    weights = np.ones(len(targets)) if examples.weights is None else examples.weights
    check_weights(weights)
    if balanced:
        sums = np.bincount(targets, weights=weights)
        weights = weights / np.where(sums > 0, sums, 1)[targets]
    scaled: NDArray[np.float32] = (weights / weights.mean()).astype(np.float32)
    return scaled


def cover(texts: EncodedTexts, vocab_size: int) -> Coverage:
    """Measure which part of the words is known."""
    seen, known = np.zeros(vocab_size, dtype=bool), 0
    for ids in pieces(texts.ids):
        found = ids[ids >= 0]
        seen[found] = True
        known += len(found)
    types = int(seen.sum())
    return Coverage(
        types=types / max(1, types + len(texts.unknown)), words=known / max(1, len(texts.ids))
    )


def _sizes(vocabulary: Vocabulary, labels: Sequence[str]) -> dict[str, int | bool]:
    """Name the model settings that the data decides."""
    sizes: dict[str, int | bool] = {
        "vocab_size": len(vocabulary.tokenizer),
        "num_labels": len(labels),
    }
    if vocabulary.vectors is not None:
        sizes |= {"word_size": vocabulary.vectors.shape[1], "fixed_words": True}
    return sizes


def build_network(recipe: Recipe, vocabulary: Vocabulary) -> Network:
    """Build a network with weights that the seed decides, and with the given vectors."""
    spellings = spell(vocabulary.tokenizer.vocabulary, max_chars=recipe.text.max_chars)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(recipe.train.seed)
        network = build_model(recipe.model, spellings=torch.from_numpy(spellings.copy()))
    if vocabulary.vectors is not None and network.word_vectors is not None:
        network.word_vectors.weight.data.copy_(torch.from_numpy(vocabulary.vectors))
    return network


def encode_texts(texts: Iterable[str], tokenizer: Tokenizer, config: TextConfig) -> EncodedTexts:
    """Tokenize texts and look their words up; of many texts, only some are held at a time."""
    stream = iter(texts)
    chunks = iter(lambda: list(islice(stream, _CHUNK)), [])
    words = (w for chunk in chunks for w in tokenizer.encode(chunk, max_words=config.max_words))
    return EncodedTexts.from_words(words, max_chars=config.max_chars)


def check_labels(examples: Examples, labels: Collection[str]) -> None:
    """Refuse examples with a label that the training data does not have."""
    unknown = sorted(set(examples.label_counts) - set(labels))
    if unknown:
        rows = examples.label_counts[unknown[0]]
        raise DataError(
            f"label {unknown[0]!r} does not occur in the training data, but in {rows:,} of "
            f"{len(examples):,} examples here; {did_you_mean(unknown[0], labels)}"
        )


def encode_examples(
    examples: Examples, tokenizer: Tokenizer, labels: Sequence[str], config: TextConfig
) -> LabelledTexts:
    """Encode the texts and number the labels; a label outside ``labels`` is an error."""
    check_labels(examples, labels)
    number = {label: index for index, label in enumerate(labels)}
    if examples.multi_label:
        targets = np.zeros((len(examples), len(labels)), dtype=np.int64)
        for row, found in enumerate(examples.label_sets):
            targets[row, [number[label] for label in found]] = 1
    else:
        targets = np.fromiter(map(number.__getitem__, examples.labels), dtype=np.int64)
    texts = encode_texts((example.text for example in examples), tokenizer, config)
    return LabelledTexts(texts, targets)
