"""Synthetic texts and depths resemble real ones and are reproducible."""

from itertools import pairwise

import numpy as np
import pytest
import torch

from benchmarks.workloads import (
    IMDB,
    TREC,
    depth_probabilities,
    draw_depths,
    make_workload,
    word_names,
    write_texts,
)
from fathomer.data.opening import open_dataset
from fathomer.text.tokenizer import Tokenizer
from tests.data.real import real_data


def test_lengths_have_the_statistics_of_the_corpora():
    imdb, trec = IMDB.draw(1000), TREC.draw(1000)
    assert np.mean(imdb) == pytest.approx(268.9, rel=0.02)
    assert np.mean(trec) == pytest.approx(10.5, rel=0.02)
    assert min(trec) >= 3
    assert max(trec) <= 37
    assert sum(length > 600 for length in imdb) == pytest.approx(70, abs=20)


def test_lengths_are_fitted_to_the_real_trec():
    source = open_dataset("trec", data_dir=real_data("trec"))
    encoded = Tokenizer.from_words().encode([e.text for e in source.train], max_words=2000)
    lengths = np.array([len(words.ids) for words in encoded])
    assert np.log(lengths).mean() == pytest.approx(TREC.log_mean, abs=0.001)
    assert np.log(lengths).std() == pytest.approx(TREC.log_deviation, abs=0.001)
    assert (lengths.min(), lengths.max()) == (TREC.shortest, TREC.longest)


def test_words_repeat_as_often_as_in_real_reviews():
    """Of IMDB's reviews, 32 have 8,567 words on average, 2,163 of them distinct."""
    [batch] = make_workload(IMDB, batch=32).batches
    assert batch.num_texts == 32
    assert batch.num_words == pytest.approx(8567, rel=0.05)
    assert len(batch.words.unique()) == pytest.approx(2163, rel=0.1)


def test_a_workload_is_reproducible():
    first, second = (make_workload(TREC, batch=4, batches=3) for _ in range(2))
    assert len(first.batches) == 3
    for one, other in zip(first.batches, second.batches, strict=True):
        assert torch.equal(one.words, other.words)
        assert torch.equal(one.lengths, other.lengths)
    assert torch.equal(
        torch.cat(first.depths(3, max_depth=9)), torch.cat(second.depths(3, max_depth=9))
    )


@pytest.mark.parametrize("mean", [1, 2, 3, 5, 7.5, 9])
def test_depths_have_the_given_mean(mean):
    probabilities = depth_probabilities(mean, max_depth=9)
    assert sum(probabilities) == pytest.approx(1)
    assert sum(d * p for d, p in enumerate(probabilities, 1)) == pytest.approx(mean)
    depths = draw_depths(5000, mean=mean, max_depth=9)
    assert depths.double().mean().item() == pytest.approx(mean, abs=0.01)
    assert depths.min() >= 1
    assert depths.max() <= 9


def test_depths_have_the_maximum_entropy_for_their_mean():
    assert depth_probabilities(5, max_depth=9) == pytest.approx([1 / 9] * 9)
    falling = depth_probabilities(3, max_depth=9)
    ratios = [after / before for before, after in pairwise(falling)]
    assert ratios == pytest.approx([ratios[0]] * 8)
    assert 0 < ratios[0] < 1


def test_every_word_has_a_distinct_name_that_is_one_token():
    names = word_names(30_000)
    assert len(set(names)) == 30_000
    workload = make_workload(TREC, batch=5)
    encoded = Tokenizer.from_words(names).encode(write_texts(workload, names), max_words=100)
    ids = [word - 1 for words in encoded for word in words.ids]
    assert ids == workload.batches[0].words.tolist()
