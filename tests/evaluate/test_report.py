"""Reports, compared with slow plain loops, and made in one pass through the network."""

import json
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fathomer import predictor as predictor_module
from fathomer.data.examples import Example, Examples
from fathomer.data.labelled import LabelledTexts
from fathomer.evaluate.metrics import Answered
from fathomer.evaluate.report import MISTAKES, TEXT_CHARACTERS, make_report, one_line
from fathomer.model.inference import Classified
from fathomer.predictor import Predictor
from fathomer.text.encode import EncodedTexts
from tests.tiny import tiny_artifact, tiny_examples

LABELS = ("bad", "good", "so-so")


def report_of(answers, *, training_texts=None):
    """Return the report of answers ``(text, label, predicted, probability, depths)``."""
    lengths = [len(depths) for *_, depths in answers]
    starts = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    ids = np.ones(starts[-1], dtype=np.int32)
    texts = EncodedTexts(ids, starts, np.zeros((0, 4), dtype=np.uint8))
    targets = np.array([LABELS.index(label) for _, label, *_ in answers], dtype=np.int64)
    logs = np.full((len(answers), len(LABELS)), -20.0, dtype=np.float32)
    for row, (_, _, predicted, probability, _) in enumerate(answers):
        logs[row, LABELS.index(predicted)] = np.log(probability)
    depths = np.array([d for *_, depths in answers for d in depths], dtype=np.int16)
    answered = Answered(LabelledTexts(texts, targets), Classified(logs, depths), tuple(LABELS))
    examples = Examples([Example(text, label) for text, label, *_ in answers])
    return make_report(answered, examples, training_texts=training_texts)


ANSWERS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "c d"]),
        st.sampled_from(LABELS),
        st.sampled_from(LABELS),
        st.floats(0.4, 1.0),
        st.lists(st.integers(1, 9), max_size=12),
    ),
    min_size=1,
    max_size=30,
)


@given(ANSWERS)
def test_confusions_are_counted_as_a_plain_loop_counts_them(answers):
    report = report_of(answers)
    counted = Counter((label, predicted) for _, label, predicted, *_ in answers)
    found = {(true, p): n for true, row in report.confusion.items() for p, n in row.items()}
    assert found == counted
    wrong = {pair: count for pair, count in counted.items() if pair[0] != pair[1]}
    assert {(c.label, c.predicted): c.count for c in report.confusions} == wrong
    counts = [confusion.count for confusion in report.confusions]
    assert counts == sorted(counts, reverse=True)


@given(ANSWERS)
def test_each_text_is_in_exactly_one_length_group(answers):
    groups = report_of(answers).by_length
    assert 1 <= len(groups) <= 4
    assert sum(group.examples for group in groups) == len(answers)
    for before, after in pairwise(groups):
        assert before.longest < after.shortest
    for group in groups:
        inside = [a for a in answers if group.shortest <= len(a[4]) <= group.longest]
        depths = [depth for *_, depths in inside for depth in depths]
        assert group.examples == len(inside)
        assert group.accuracy == pytest.approx(np.mean([a[1] == a[2] for a in inside]))
        assert group.mean_depth == pytest.approx(np.mean(depths) if depths else 0.0)


def test_lengths_are_split_into_quarters():
    answers = [("x", "bad", "bad", 0.9, [1] * length) for length in range(1, 101)]
    bounds = [(group.shortest, group.longest) for group in report_of(answers).by_length]
    assert bounds == [(1, 25), (26, 50), (51, 75), (76, 100)]


def test_the_most_certain_wrong_answers_come_first():
    certainties = [0.5, 0.9, 0.7, 0.99, 0.6]
    answers = [(f"t{n}", "bad", "good", p, [1]) for n, p in enumerate(certainties)]
    answers.append(("right", "bad", "bad", 1.0, [1]))
    mistakes = report_of(answers).mistakes
    assert [mistake.text for mistake in mistakes] == ["t3", "t1", "t2", "t4", "t0"]
    assert mistakes[0].number == 4
    assert (mistakes[0].label, mistakes[0].predicted) == ("bad", "good")
    assert mistakes[0].probability == pytest.approx(0.99)


def test_the_number_of_mistakes_and_their_texts_are_limited():
    answers = [("long \n text " * 200, "bad", "good", 0.9, [1])] * (MISTAKES + 5)
    mistakes = report_of(answers).mistakes
    assert len(mistakes) == MISTAKES
    assert len(mistakes[0].text) == TEXT_CHARACTERS
    assert "\n" not in mistakes[0].text
    assert mistakes[0].text.endswith("…")


def test_texts_from_the_training_set_are_left_out_of_the_unseen_score():
    answers = [
        ("seen", "bad", "good", 0.9, [1]),
        ("seen", "bad", "good", 0.9, [1]),
        ("new", "bad", "bad", 0.9, [1]),
        ("Seen", "good", "good", 0.9, [1]),
        ("other", "good", "bad", 0.9, [1]),
    ]
    found = report_of(answers, training_texts=iter(["seen", "elsewhere"])).to_dict()
    assert found["accuracy"] == pytest.approx(2 / 5)
    assert found["accuracy_unseen"] == pytest.approx(2 / 3)
    assert found["examples_unseen"] == 3
    assert "accuracy_unseen" not in report_of(answers).to_dict()


def test_there_is_no_unseen_score_if_every_text_was_seen():
    report = report_of([("seen", "bad", "bad", 0.9, [1])], training_texts=["seen"])
    assert (report.unseen.accuracy, report.unseen.examples) == (None, 0)
    json.dumps(report.to_dict(), allow_nan=False)


def test_the_labels_with_the_most_mistakes_keep_their_order():
    wrong = [("x", "so-so", "good", 0.9, [1])] * 3 + [("x", "bad", "bad", 0.9, [1])] * 9
    report = report_of(wrong)
    assert report.most_confused(2) == ("good", "so-so")
    assert report.most_confused(9) == LABELS


def test_the_network_runs_once_and_the_scores_are_those_of_evaluate(monkeypatch):
    predictor, examples = Predictor(tiny_artifact()), tiny_examples(40)
    calls = []
    classify = predictor_module.classify

    def counting(*arguments, **options):
        calls.append(1)
        return classify(*arguments, **options)

    monkeypatch.setattr(predictor_module, "classify", counting)
    report = make_report(predictor.answer(examples, max_depth=2), examples)
    assert calls == [1]
    assert report.metrics == predictor.evaluate(examples, max_depth=2)
    assert sum(sum(row.values()) for row in report.confusion.values()) == 40
    found = report.to_dict()
    assert json.loads(json.dumps(found)) == found


def test_a_line_is_safe_to_print():
    assert one_line(" a\tb\n\nc ") == "a b c"
    assert "\x1b" not in one_line("\x1b[31mred")
    assert one_line("abcdef", characters=6) == "abcdef"
    assert one_line("abcdefg", characters=6) == "abcde…"
