"""How much each word supports the answer."""

import math
import time
from random import Random

import numpy as np
import pytest

import fathomer
from fathomer.contributions import MAX_OCCLUSIONS, words_read
from fathomer.data.demo import demo_corpus
from fathomer.predictor import Predictor
from fathomer.train.fit import fit
from tests.tiny import BAD, GOOD, TINY, tiny_artifact, tiny_examples


def explained(predictor, text, **settings):
    [prediction] = predictor.predict([text], contributions=True, **settings)
    return prediction


def log_odds(predictor, words, label):
    [prediction] = predictor.predict([" ".join(words)])
    probability = prediction.probabilities[label]
    return math.log(probability) - math.log1p(-probability)


def without(words, removed):
    return [word for place, word in enumerate(words) if place not in removed]


@pytest.mark.parametrize("text", ["The film was lovely .", "awful", "a zyxwv film , and good"])
def test_a_contribution_is_the_log_odds_with_the_word_minus_without_it(text):
    predictor = Predictor(tiny_artifact())
    prediction = explained(predictor, text)
    words = [word.text for word in prediction.words]
    whole = log_odds(predictor, words, prediction.best)
    for place, word in enumerate(prediction.words):
        shorter = log_odds(predictor, without(words, {place}), prediction.best)
        assert word.contribution == pytest.approx(whole - shorter, abs=1e-3)


def test_words_of_the_label_speak_for_it_and_words_of_the_other_against_it():
    predictor = Predictor(tiny_artifact())
    for word in (*GOOD, *BAD):
        prediction = explained(predictor, f"The film was {word}.")
        assert prediction.best == ("positive" if word in GOOD else "negative")
        strongest = max(prediction.words, key=lambda word: word.contribution)
        assert strongest.text == word
    mixed = explained(predictor, "The film was good, the film was great, the film was dull.")
    found = {word.text: word.contribution for word in mixed.words}
    sign = 1 if mixed.best == "positive" else -1
    assert sign * found["good"] > 0 > sign * found["dull"]


@pytest.mark.parametrize("name", ["tfidf", "bilstm"])
def test_models_without_depths_are_explained(name):
    recipe = TINY.updated({"model": {"name": name}, "train": {"epochs": 10}})
    predictor = Predictor(fit(tiny_examples(), recipe).artifact)
    prediction = explained(predictor, "The film was lovely.")
    strongest = max(prediction.words, key=lambda word: word.contribution)
    assert (prediction.best, strongest.text) == ("positive", "lovely")


def test_an_empty_text_has_no_contributions():
    predictor = Predictor(tiny_artifact())
    empty, fine = predictor.predict(["", "The film was fine."], contributions=True)
    assert empty.words == ()
    assert [word._replace(contribution=None) for word in fine.words] == list(
        predictor.predict(["The film was fine."])[0].words
    )


def test_without_contributions_the_answer_is_as_before():
    predictor = Predictor(tiny_artifact())
    [plain] = predictor.predict(["a film"])
    assert plain.words[0].contribution is None
    words = plain.to_dict(words=True)["words"]
    assert [list(word) for word in words] == [["text", "start", "end", "depth"]] * 2
    more = explained(predictor, "a film").to_dict(words=True)
    assert [{k: v for k, v in w.items() if k != "contribution"} for w in more["words"]] == words
    assert all(isinstance(word["contribution"], float) for word in more["words"])


def test_certain_answers_have_finite_contributions():
    artifact = tiny_artifact()
    certain = Predictor(type(artifact)(**{**vars(artifact), "temperature": 0.001}))
    prediction = explained(certain, "The film was lovely, great and good.")
    assert prediction.probabilities[prediction.best] == 1
    assert all(math.isfinite(word.contribution) for word in prediction.words)
    assert max(word.contribution for word in prediction.words) > 1


def test_texts_in_several_chunks_have_the_same_contributions(monkeypatch):
    predictor = Predictor(tiny_artifact())
    texts = ["", "a film", "The film was lovely, great and good.", "", "bad", "a dull film"]
    whole = predictor.predict(texts, contributions=True)
    monkeypatch.setattr("fathomer.contributions._CHUNK_WORDS", 10)
    chunked = predictor.predict(texts, contributions=True)
    for one, other in zip(whole, chunked, strict=True):
        expected = [word.contribution for word in one.words]
        assert [word.contribution for word in other.words] == pytest.approx(expected, abs=1e-4)


def test_long_texts_are_explained_by_groups_of_words():
    recipe = TINY.updated({"text": {"max_words": 2000}, "train": {"epochs": 1}})
    predictor = Predictor(fit(tiny_examples(), recipe).artifact)
    read = []
    classify = predictor.classify
    predictor.classify = lambda texts, *rest: read.append(texts) or classify(texts, *rest)
    text = " ".join(Random(0).choices([*GOOD, *BAD, "unknown"], k=2000))
    started = time.process_time()
    prediction = explained(predictor, text)
    assert time.process_time() - started < 60
    assert [len(texts) for texts in read] == [1, MAX_OCCLUSIONS]
    assert sum(len(texts.ids) for texts in read) == words_read(2000)
    effects = np.reshape([word.contribution for word in prediction.words], (MAX_OCCLUSIONS, 10))
    assert (effects == effects[:, :1]).all()
    assert len(np.unique(effects[:, 0])) > MAX_OCCLUSIONS // 2


def changes(predictor, texts, seed=0):
    """Return by how much the log odds fall without the three strongest words, and without any three."""
    random = Random(seed)
    strongest, chance = [], []
    for prediction in predictor.predict(texts, contributions=True):
        words = [word.text for word in prediction.words]
        order = sorted(range(len(words)), key=lambda n: -prediction.words[n].contribution)
        whole = log_odds(predictor, words, prediction.best)
        for found, removed in ((strongest, order[:3]), (chance, random.sample(order, 3))):
            shorter = without(words, set(removed))
            found.append(abs(whole - log_odds(predictor, shorter, prediction.best)))
    return np.mean(strongest), np.mean(chance)


def test_leaving_out_the_strongest_words_changes_the_answer_more_than_leaving_out_any(demo):
    predictor = fathomer.load(demo.folder)
    texts = [example.text for example in demo_corpus()[1].items[:50]]
    strongest, chance = changes(predictor, texts)
    assert strongest > 1.5 * chance
