"""The predictor: one answer per text, whatever the text, the batch or the thread."""

import copy
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fathomer.errors import ArtifactError, ConfigError, DepthError
from fathomer.model.fast import int8_available
from fathomer.predictor import Predictor, load
from fathomer.train.fit import fit
from tests.memory import measure_apart
from tests.tiny import TINY, tiny_artifact, tiny_examples

ANY_TEXT = st.text(st.characters(categories=None), max_size=60)


@pytest.fixture(scope="module")
def predictor():
    return Predictor(tiny_artifact())


@settings(max_examples=150)
@given(texts=st.lists(ANY_TEXT, max_size=5))
def test_every_text_gets_one_valid_answer(texts):
    predictions = Predictor(tiny_artifact()).predict(texts)
    assert len(predictions) == len(texts)
    for text, prediction in zip(texts, predictions, strict=True):
        assert sum(prediction.probabilities.values()) == pytest.approx(1)
        assert prediction.label == max(
            prediction.probabilities, key=prediction.probabilities.__getitem__
        )
        assert tuple(prediction.probabilities) == ("negative", "positive")
        for word in prediction.words:
            assert text[word.start : word.end] == word.text != ""
            assert 1 <= word.depth <= 4


@settings(max_examples=50)
@given(texts=st.lists(ANY_TEXT, min_size=1, max_size=6), data=st.data())
def test_an_answer_does_not_depend_on_the_batch_or_its_order(texts, data):
    predictor = Predictor(tiny_artifact())
    order = data.draw(st.permutations(range(len(texts))))
    together = predictor.predict([texts[i] for i in order])
    for position, i in enumerate(order):
        [alone] = predictor.predict([texts[i]])
        assert together[position].words == alone.words
        assert together[position].probabilities == pytest.approx(alone.probabilities, abs=1e-5)


def test_the_training_labels_are_learned(predictor):
    labels = [p.label for p in predictor.predict(["The film was lovely.", "The book was awful."])]
    assert labels == ["positive", "negative"]


def test_an_empty_list_gets_an_empty_list(predictor):
    assert predictor.predict([]) == []


def test_an_empty_text_is_answered(predictor):
    [prediction] = predictor.predict([""])
    assert prediction.words == ()
    assert prediction.mean_depth is None
    assert not prediction.truncated
    assert prediction.label in predictor.labels


def test_a_long_text_is_marked_as_truncated(predictor):
    [short, long] = predictor.predict(["good " * 50, "good " * 51])
    assert (short.truncated, long.truncated) == (False, True)
    assert len(long.words) == 50
    assert long.words == short.words


def test_ten_thousand_words_are_ordinary_input():
    artifact = tiny_artifact()
    recipe = artifact.recipe.updated({"text": {"max_words": 10_000}})
    [prediction] = Predictor(replace(artifact, recipe=recipe)).predict(["good film " * 5000])
    assert len(prediction.words) == 10_000
    assert not prediction.truncated


def test_a_text_of_a_million_words_is_truncated_quickly(predictor):
    text = "The film was good. " * 200_000
    begin = time.thread_time()
    [prediction] = predictor.predict([text])
    assert time.thread_time() - begin < 0.5
    assert (prediction.truncated, len(prediction.words)) == (True, 50)
    assert prediction.words == predictor.predict([text[:1000]])[0].words


def test_answering_a_file_takes_constant_memory():
    """Run ``python -m tests.memory 200000`` to measure more texts."""
    found = measure_apart(20_000)
    assert found["texts"] == 20_000
    assert found["done_mb"] - found["loaded_mb"] < 60


def test_a_word_of_300000_characters_is_answered(predictor):
    [prediction] = predictor.predict(["x" * 300_000])
    assert [word.end for word in prediction.words] == [300_000]


def test_unknown_words_are_distinguished_by_their_characters(predictor):
    one, other = predictor.predict(["zzzzz", "qqqqq"])
    assert one.probabilities != other.probabilities


def test_no_word_exceeds_max_depth(predictor):
    texts = [example.text for example in tiny_examples()]
    for cap in (1, 2):
        depths = {w.depth for p in predictor.predict(texts, max_depth=cap) for w in p.words}
        assert max(depths) == cap or cap == 2
        assert max(depths) <= cap


@pytest.mark.parametrize("cap", [0, 5, -1])
def test_a_max_depth_out_of_range_is_refused(predictor, cap):
    with pytest.raises(DepthError, match=rf"max_depth {cap}; use 1\.\.4"):
        predictor.predict(["good"], max_depth=cap)


def test_a_single_string_is_refused(predictor):
    with pytest.raises(TypeError, match=r"for a single text, pass \[text\]"):
        predictor.predict("good film")
    with pytest.raises(TypeError, match="text 1 has type float; expected a string"):
        predictor.predict(["good", float("nan")])


def test_texts_can_come_from_an_iterator(predictor):
    texts = ["good film", "bad film"]
    assert predictor.predict(text for text in texts) == predictor.predict(texts)


def test_threads_can_share_a_predictor(predictor):
    examples = [example.text for example in tiny_examples()]
    jobs = [[*examples[number : 3 * number + 5], f"zz{number}"] for number in range(16)]
    expected = [predictor.predict(texts) for texts in jobs]
    together = Barrier(16)

    def work(number):
        together.wait()
        for job in [*range(number, 16), *range(number)]:
            assert predictor.predict(jobs[job]) == expected[job]
        return number

    with ThreadPoolExecutor(16) as threads:
        assert list(threads.map(work, range(16))) == list(range(16))


def test_evaluate_agrees_with_predict(predictor):
    examples = tiny_examples()
    predictions = predictor.predict([example.text for example in examples])
    pairs = list(zip(predictions, examples, strict=True))
    metrics = predictor.evaluate(examples)
    assert metrics.accuracy == sum(p.label == e.label for p, e in pairs) / len(pairs)
    words = [word.depth for p in predictions for word in p.words]
    assert metrics.mean_depth == pytest.approx(sum(words) / len(words))


@pytest.mark.skipif(not int8_available(), reason="this processor has no VNNI")
def test_int8_gives_nearly_the_same_probabilities(predictor, tmp_path):
    predictor.artifact.save(tmp_path)
    rounded = load(tmp_path, precision="int8")
    texts = ["The film was lovely.", "The meal was awful."]
    for exact, other in zip(predictor.predict(texts), rounded.predict(texts), strict=True):
        assert other.label == exact.label
        assert other.probabilities == pytest.approx(exact.probabilities, abs=0.05)
        assert other.probabilities != exact.probabilities
    assert predictor.evaluate(tiny_examples()) != rounded.evaluate(tiny_examples())


def test_int8_without_vnni_warns_and_uses_float32(predictor, monkeypatch):
    monkeypatch.setattr("fathomer.predictor.int8_available", lambda: False)
    with pytest.warns(UserWarning, match="int8 needs a CPU with VNNI; using float32 instead"):
        other = Predictor(predictor.artifact, precision="int8")
    assert other.predict(["a lovely film"]) == predictor.predict(["a lovely film"])


def test_an_unknown_precision_is_refused(predictor, tmp_path):
    predictor.artifact.save(tmp_path)
    with pytest.raises(ConfigError, match="unknown precision 'int4'"):
        load(tmp_path, precision="int4")


def test_int8_is_refused_for_models_without_it():
    artifact = fit(tiny_examples(), TINY.updated({"model": {"name": "tfidf"}})).artifact
    with pytest.raises(ConfigError, match="the model tfidf has no int8 precision; use float32"):
        Predictor(artifact, precision="int8")


def test_a_model_whose_answers_are_not_finite_is_found_before_the_first_request():
    network = copy.deepcopy(tiny_artifact().network)
    with torch.no_grad():
        network.output.weight.fill_(3e38)
        network.output.bias.copy_(torch.tensor([3e38, -3e38]))
    predictor = Predictor(replace(tiny_artifact(), network=network, temperature=1e-9))
    with pytest.raises(ArtifactError, match="not finite"):
        predictor.warm_up()
    Predictor(tiny_artifact()).warm_up()


FORKING = """
import os, signal, sys, torch, fathomer
torch.set_num_threads(2)
predictor = fathomer.load(sys.argv[1])
texts = ["The film was lovely and " * 400] * 20
before = predictor.predict(texts)
if not os.fork():
    signal.alarm(20)  # a hang would end with this signal
    os._exit(0 if predictor.predict(texts)[0].label == before[0].label else 1)
sys.exit(os.waitstatus_to_exitcode(os.wait()[1]))
"""


def test_a_forked_process_does_not_wait_for_threads_of_its_parent(tmp_path):
    tiny_artifact().save(tmp_path / "model")
    command = [sys.executable, "-W", "ignore", "-c", FORKING, str(tmp_path / "model")]
    environment = {**os.environ, "OMP_NUM_THREADS": "2"}
    assert subprocess.run(command, env=environment, timeout=60).returncode == 0
