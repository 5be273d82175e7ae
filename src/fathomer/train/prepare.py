"""Preparation of a training run: split, vocabulary, encoded texts and a fresh network."""

import copy
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from fathomer.artifact import Artifact
from fathomer.config import Recipe
from fathomer.data.examples import Examples, check_weights, split_stratified
from fathomer.data.labelled import LabelledTexts, encode_examples
from fathomer.errors import ConfigError, DataError
from fathomer.model.interface import DirectNetwork, Network
from fathomer.model.ngrams import NgramRegression
from fathomer.model.registry import build_model, find_model
from fathomer.model.sizes import match_hidden_size
from fathomer.spool import pieces
from fathomer.text.conditioning import Conditioning, apply_conditioning, fit_conditioning
from fathomer.text.encode import EncodedTexts, spell
from fathomer.text.sources import Sources, as_paths
from fathomer.text.tokenizer import Tokenizer
from fathomer.text.vocabulary import Vocabulary, build_vocabulary

SET_BY_DATA = ("vocab_size", "num_labels", "word_size", "fixed_words", "multi_label")
"""Model settings that follow from the texts and the word vectors."""


@dataclass(frozen=True)
class VectorsFound:
    """Share of the training words that have a pretrained vector; reported before the first step."""

    file: str
    types: float
    """Share of the distinct words."""
    words: float
    """Share of all word occurrences."""
    subtracted: list[float] = field(default_factory=list)
    """The mean vector that was subtracted from all vectors."""
    scale: float | list[float] = 1.0
    """What the centred vectors were multiplied by; for joined vectors, one number per part."""

    def to_dict(self) -> dict[str, Any]:
        """Return the shares as plain values."""
        return asdict(self)


@dataclass(frozen=True)
class Prepared:
    """Everything that a training run starts from."""

    recipe: Recipe
    tokenizer: Tokenizer
    labels: tuple[str, ...]
    network: Network
    train: LabelledTexts
    held_out: LabelledTexts | None
    vectors_found: VectorsFound | None = None
    """Coverage of the given word vectors, if any were given."""


def prepare(
    examples: Examples,
    recipe: Recipe,
    *,
    held_out: Examples | None = None,
    vectors: Sources = None,
    match_parameters: bool = False,
    start: Artifact | None = None,
) -> Prepared:
    """Prepare a training run; without ``held_out``, a part of the examples is held out.

    With ``match_parameters``, the hidden size is chosen so that the model has as many parameters as
    Fathomer's own network. With ``start``, training continues from that model's weights, vocabulary
    and labels.
    """
    vectors_found = None
    model = find_model(recipe.model.name).network
    complete = model.completion()
    examples = examples.completed(complete)
    held_out = held_out and held_out.completed(complete)
    labels = start.labels if start else tuple(examples.label_counts)
    _check_number(labels, multi_label=examples.multi_label)
    if examples.soft is not None:
        check_soft_labels_allowed(recipe, multi_label=examples.multi_label)
        found = examples.soft.shape[1]
        if found != len(labels):
            raise DataError(f"soft labels for {found} labels, but the model has {len(labels)}")
    if held_out is None and recipe.train.held_out > 0:
        examples, held_out = split_stratified(
            examples, fraction=recipe.train.held_out, seed=recipe.train.seed
        )
    if start:
        tokenizer = start.tokenizer
        recipe, network = continue_from(start, recipe)
    else:
        vocabulary = build_vocabulary(examples.texts, recipe.text, vectors=vectors)
        tokenizer = vocabulary.tokenizer
        recipe = _with_sizes(recipe, vocabulary, labels, multi_label=examples.multi_label)
        if match_parameters:
            recipe = recipe.updated({"model": {"hidden_size": match_hidden_size(recipe.model)}})
    train = encode_examples(examples, tokenizer, labels, recipe.text)
    if not start:
        given = vocabulary.vectors
        vocabulary, conditioning = condition_vectors(
            vocabulary, train.texts, centre=model.centres_vectors
        )
        if vectors and conditioning and given is not None:
            vectors_found = measure_coverage(vectors, train.texts, vocabulary, given, conditioning)
        network = build_network(recipe, vocabulary)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(recipe.train.seed)
            network.begin(examples.texts, tokenizer)
    train = replace(train, weights=training_weights(examples, train.targets, recipe))
    unseen = encode_examples(held_out, tokenizer, labels, recipe.text) if held_out else None
    if network.ngrams is not None and not start:
        learn_directly(network.ngrams, train, unseen, seed=recipe.train.seed)
    return Prepared(
        recipe=recipe,
        tokenizer=tokenizer,
        labels=labels,
        network=network,
        train=train,
        held_out=unseen,
        vectors_found=vectors_found,
    )


def _check_number(labels: Sequence[str], *, multi_label: bool) -> None:
    """Raise an error if there are too few labels to tell apart."""
    if len(labels) < (1 if multi_label else 2):
        found = f"only one label ({labels[0]!r})" if labels else "no examples"
        raise DataError(f"{found}; a classifier needs examples of at least two labels")


def check_soft_labels_allowed(recipe: Recipe, *, multi_label: bool) -> None:
    """Raise an error if a model cannot learn from soft labels."""
    if multi_label:
        raise ConfigError("soft labels need one label per text")
    if issubclass(find_model(recipe.model.name).network, DirectNetwork):
        raise ConfigError(
            f"the model {recipe.model.name} is fitted in one go and cannot learn from soft labels"
        )


def learn_directly(
    model: DirectNetwork | NgramRegression,
    train: LabelledTexts,
    held_out: LabelledTexts | None,
    *,
    seed: int,
) -> None:
    """Fit a model that takes no gradient steps, such as TF-IDF."""
    unseen = (held_out.texts, held_out.targets) if held_out else None
    model.learn(train.texts, train.targets, seed=seed, weights=train.weights, held_out=unseen)


def continue_from(start: Artifact, recipe: Recipe) -> tuple[Recipe, Network]:
    """Return a copy of a trained network and the recipe to continue its training with."""
    model = start.network.config
    if isinstance(start.network, DirectNetwork):
        raise ConfigError(
            f"the model {model.name} is fitted in one go and cannot be trained further"
        )
    fixed = {f"model.{name}": v for name, v in model.to_dict().items() if name not in SET_BY_DATA}
    fixed["text.max_chars"] = start.recipe.text.max_chars  # the spellings the network was built for
    for name, value in fixed.items():
        section, _, setting = name.partition(".")
        wanted = recipe.to_dict()[section][setting]
        if value != wanted:
            raise ConfigError(
                f"training cannot continue with {name} = {wanted!r}: the model has {value!r}"
            )
    return replace(recipe, model=model), copy.deepcopy(start.network)


def _with_sizes(
    recipe: Recipe, vocabulary: Vocabulary, labels: Sequence[str], *, multi_label: bool
) -> Recipe:
    """Return the recipe with the model settings that follow from the data."""
    sizes: dict[str, int | bool] = {
        "vocab_size": len(vocabulary.tokenizer),
        "num_labels": len(labels),
        "multi_label": multi_label,
    }
    if vocabulary.vectors is not None:
        sizes |= {"word_size": vocabulary.vectors.shape[1], "fixed_words": True}
    return recipe.updated({"model": sizes})


def build_network(recipe: Recipe, vocabulary: Vocabulary) -> Network:
    """Build a network from the recipe's seed and the given word vectors."""
    spellings = spell(vocabulary.tokenizer.vocabulary, max_chars=recipe.text.max_chars)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(recipe.train.seed)
        network = build_model(recipe.model, spellings=torch.from_numpy(spellings.copy()))
    if vocabulary.vectors is not None and network.word_vectors is not None:
        network.word_vectors.weight.data.copy_(torch.from_numpy(vocabulary.vectors))
    return network


def condition_vectors(
    vocabulary: Vocabulary, texts: EncodedTexts, *, centre: bool = True
) -> tuple[Vocabulary, Conditioning | None]:
    """Centre and scale pretrained vectors for the training texts, if asked to; also return how."""
    if vocabulary.vectors is None:
        return vocabulary, None
    size = vocabulary.vectors.shape[1]
    conditioning = Conditioning(np.zeros(size, np.float32), np.ones(size, np.float32))
    if centre:
        counts = np.zeros(len(vocabulary.vectors), dtype=np.int64)
        for ids in pieces(texts.ids):
            counts += np.bincount(ids[ids >= 0], minlength=len(counts))
        conditioning = fit_conditioning(vocabulary.vectors, counts, vocabulary.parts)
    conditioned = apply_conditioning(vocabulary.vectors, conditioning)
    return vocabulary._replace(vectors=conditioned), conditioning


def training_weights(
    examples: Examples, targets: NDArray[np.int64], recipe: Recipe
) -> NDArray[np.float32] | None:
    """Return the weight of each text, 1 on average; if balanced, every label has the same total."""
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


def measure_coverage(
    vectors: Sources,
    texts: EncodedTexts,
    vocabulary: Vocabulary,
    matrix: NDArray[np.float32],
    conditioning: Conditioning,
) -> VectorsFound:
    """Return the share of the words of ``texts`` that have a vector in ``matrix``."""
    has_vector = np.any(matrix != 0, axis=1)
    seen, covered = np.zeros(len(has_vector), dtype=bool), 0
    for ids in pieces(texts.ids):
        known = ids[ids >= 0]
        seen[known] = True
        covered += int(has_vector[known].sum())
    types = int(seen.sum()) + len(texts.unknown)
    return VectorsFound(
        file=" + ".join(path.name for path in as_paths(vectors)),
        types=int((seen & has_vector).sum()) / max(1, types),
        words=covered / max(1, len(texts.ids)),
        subtracted=[round(float(number), 6) for number in conditioning.mean],
        scale=_scales(vocabulary.parts, conditioning),
    )


def _scales(parts: Sequence[int], conditioning: Conditioning) -> float | list[float]:
    """Return the scale of each part of joined vectors, or the only one."""
    scales = [float(conditioning.scale[end - 1]) for end in np.cumsum(parts)]
    return scales if len(scales) > 1 else scales[0]


def run_settings(prepared: Prepared) -> dict[str, Any]:
    """Return the settings and the data fingerprint that a resumed run must share."""
    sections = prepared.recipe.to_dict().items()
    flat = {f"{section}.{name}": v for section, values in sections for name, v in values.items()}
    return {**flat, "data": data_fingerprint(prepared)}


def data_fingerprint(prepared: Prepared) -> str:
    """Return a short hash of the texts and labels, and of the word vectors if they are fixed."""
    digest = hashlib.sha256(prepared.tokenizer.to_json().encode())
    for part in _fingerprinted(prepared):
        digest.update(part)
    return digest.hexdigest()[:16]


def _fingerprinted(prepared: Prepared) -> Iterator[bytes]:
    yield "\0".join(prepared.labels).encode()
    for data in (prepared.train, prepared.held_out):
        if data is not None:
            texts = data.texts
            arrays = texts.ids, texts.starts, texts.unknown, data.targets, data.weights
            for array in (*arrays, data.soft, data.given):
                if array is not None:
                    yield from (piece.tobytes() for piece in pieces(np.asarray(array)))
    vectors = prepared.network.word_vectors
    if prepared.recipe.model.fixed_words and vectors is not None:
        yield vectors.weight.numpy(force=True).tobytes()
