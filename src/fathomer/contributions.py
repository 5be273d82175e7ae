"""How much each word supports the answer: the log odds with the word minus those without it."""

from collections.abc import Callable
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from fathomer.model.inference import Classified
from fathomer.text.encode import EncodedTexts, plan_batches

MAX_OCCLUSIONS = 200
"""In a text with more words, neighbouring words are left out together."""
_CHUNK_WORDS = 100_000
"""Words of shortened texts that are in memory at a time, unless a single text has more."""


def words_read(count: int) -> int:
    """Return how many words the model reads for the contributions in a text of ``count`` words.

    The text itself is included.

    >>> words_read(3)  # three words, and three times two of them
    9
    """
    return count * min(count, MAX_OCCLUSIONS)


def find_contributions(
    texts: EncodedTexts,
    answers: Classified,
    classify: Callable[[EncodedTexts], Classified],
    *,
    multi_label: bool,
) -> NDArray[np.float64]:
    """Return the contribution of each word to the most probable label, one text after another.

    ``answers`` are those for the whole texts. Words that are left out together share their effect
    equally.
    """
    found = np.zeros(len(texts.ids))
    best = answers.labels
    with_words = _log_odds(answers.log_probabilities, best, multi_label=multi_label)
    not_empty = np.flatnonzero(texts.lengths)
    costs = np.array([words_read(count) for count in texts.lengths[not_empty].tolist()])
    for chunk in plan_batches(costs, budget=_CHUNK_WORDS):
        indices = not_empty[np.sort(chunk)].tolist()
        groups = [_groups(int(texts.lengths[index])) for index in indices]
        shortened = _leave_out(texts, indices, groups)
        labels = np.repeat(best[indices], [len(sizes) for sizes in groups])
        logs = classify(shortened).log_probabilities
        without = iter(_log_odds(logs, labels, multi_label=multi_label).tolist())
        for index, sizes in zip(indices, groups, strict=True):
            effects = [(with_words[index] - next(without)) / size for size in sizes]
            found[texts.starts[index] : texts.starts[index + 1]] = np.repeat(effects, sizes)
    return found


def _log_odds(
    log_probabilities: NDArray[np.float32], labels: NDArray[np.int64], *, multi_label: bool
) -> NDArray[np.float64]:
    """Return the log odds of one label per text.

    They stay finite and exact where the probability rounds to 1: with one label per text, they
    are computed from the probabilities of the other labels.
    """
    logs = log_probabilities.astype(np.float64)
    rows = np.arange(len(logs))
    chosen = logs[rows, labels]
    if multi_label:
        chosen = np.minimum(chosen, -np.finfo(np.float32).tiny)
        return np.asarray(chosen - np.log(-np.expm1(chosen)))
    logs[rows, labels] = -np.inf
    return np.asarray(chosen - np.logaddexp.reduce(logs, axis=1))


def _groups(count: int) -> list[int]:
    """Return the sizes of the groups of neighbouring words that are left out together."""
    number = min(count, MAX_OCCLUSIONS)
    cuts = [count * place // number for place in range(number + 1)]
    return [end - start for start, end in pairwise(cuts)]


def _leave_out(texts: EncodedTexts, indices: list[int], groups: list[list[int]]) -> EncodedTexts:
    """Return each text once without each of its groups of words."""
    parts, lengths = [texts.ids[:0]], [0]
    for index, sizes in zip(indices, groups, strict=True):
        place, end = int(texts.starts[index]), int(texts.starts[index + 1])
        start = place
        for size in sizes:
            parts += [texts.ids[start:place], texts.ids[place + size : end]]
            lengths.append(end - start - size)
            place += size
    return EncodedTexts(np.concatenate(parts), np.cumsum(lengths), texts.unknown)
