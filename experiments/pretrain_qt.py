"""Pretraining of the sentence encoders of ``multi-qt`` on texts without labels."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from experiments.rivals.quick_thoughts import ENDS, Channel, Sentences, pretrain, write_channels
from fathomer.config import TextConfig
from fathomer.data.labelled import encode_texts
from fathomer.model.initialise import initialise
from fathomer.text.sources import Sources
from fathomer.text.vocabulary import Vocabulary, build_vocabulary

WORD_SIZE = 300
"""Size of the word vectors that are trained."""


def pretrain_encoders(
    texts: Iterable[str],
    out: Path,
    *,
    names: Sequence[str],
    size: int,
    epochs: int,
    seed: int,
    vectors: Sources = None,
    log: Callable[[str], None],
) -> dict[str, Any]:
    """Train encoders with their own word vectors and, if given, with fixed ones; write them to a file."""
    config = TextConfig(vector_words=0)
    vocabulary = build_vocabulary(texts, config, vectors=vectors)
    words = vocabulary.tokenizer.vocabulary
    encoded = encode_texts(texts, vocabulary.tokenizer, config)
    sentences = Sentences.split(encoded.ids, encoded.lengths, np.isin(words, ENDS))
    channels, losses = {}, {}
    for name, channel in _new_channels(vocabulary, size, seed):
        log(f"{name} word vectors: {len(sentences):,} sentences, {len(words):,} words")
        losses[name] = round(pretrain(channel, sentences, epochs=epochs, seed=seed, log=log), 4)
        channels[name] = channel
    made = {
        "sources": [Path(name).name if Path(name).exists() else name for name in names],
        "size": size,
        "epochs": epochs,
        "seed": seed,
    }
    write_channels(out, channels, words, made)
    return {"sentences": len(sentences), "words": len(words), "loss": losses, "made": made}


def _new_channels(vocabulary: Vocabulary, size: int, seed: int) -> Iterable[tuple[str, Channel]]:
    """Yield untrained encoders: with trained and, if there are vectors, with fixed ones."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        count, given = len(vocabulary.tokenizer), vocabulary.vectors
        trained = Channel(count, WORD_SIZE, size, fixed=False)
        initialise(trained)
        found = [("trained", trained)]
        if given is not None:
            fixed = Channel(count, given.shape[1], size, fixed=True)
            initialise(fixed)
            fixed.words.weight.data.copy_(torch.from_numpy(given))
            found.append(("fixed", fixed))
    return found
