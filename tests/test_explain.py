"""The depth and the contribution of each word, in a terminal and as a page."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from fathomer.explain import draw_prediction, prediction_page
from fathomer.prediction import Prediction, Word
from fathomer.predictor import Predictor
from tests.tiny import tiny_artifact


def prediction_of(*words, truncated=False):
    placed, start = [], 0
    for text, *numbers in words:
        placed.append(Word(text, start, start + len(text), *numbers))
        start += len(text) + 1
    return Prediction("good", {"bad": 0.25, "good": 0.75}, tuple(placed), truncated)


def drawn(prediction, *, width=80, colour=False, max_depth=9):
    console = Console(
        width=width, force_terminal=colour, color_system="truecolor" if colour else None
    )
    with console.capture() as captured:
        console.print(draw_prediction(prediction, max_depth=max_depth, width=width), soft_wrap=True)
    return captured.get()


def test_each_word_stands_above_its_depth():
    assert drawn(prediction_of(("not", 9), ("a", 1), ("bad", 5))) == (
        "good  75.0%, mean depth 5.0 of 9\n\nnot a  bad\n█9  ▁1 ▅5\n\n"
    )


EXPLAINED = prediction_of(("not", 9, 2.04), ("a", 1, 0.01), ("bad", 5, -13.2))
LEGEND = "+ supports good, - opposes it: log odds with the word minus without it\n"


def test_contributions_stand_below_the_depths():
    assert drawn(EXPLAINED) == (
        f"good  75.0%, mean depth 5.0 of 9\n\nnot  a   bad\n█9   ▁1  ▅5\n+2.0 0.0 -13\n\n{LEGEND}\n"
    )


def test_models_without_depths_show_only_contributions():
    assert drawn(EXPLAINED, max_depth=None) == (
        f"good  75.0%\n\nnot  a   bad\n+2.0 0.0 -13\n\n{LEGEND}\n"
    )
    page = prediction_page(EXPLAINED, max_depth=None)
    assert "depth" not in page
    assert "<td>not +2.0</td>" in page


def test_words_for_and_against_the_answer_differ_in_a_terminal_and_in_the_page():
    text = drawn(EXPLAINED, colour=True)
    assert "\x1b[32m+2.0" in text
    assert "\x1b[31m-13" in text
    page = prediction_page(EXPLAINED, max_depth=9)
    assert re.findall('class="word (for|against)"', page) == ["for", "for", "against"]
    assert 'title="depth 5, contribution -13.20">bad' in page
    assert "<th scope=row>against</th><td>bad -13</td>" in page


def test_a_long_label_keeps_the_legend_within_the_width():
    prediction = Prediction("x" * 90, {"x" * 90: 1.0}, EXPLAINED.words, False)
    assert max(map(len, drawn(prediction).splitlines()[1:])) <= 80


def test_wide_characters_keep_words_and_depths_aligned():
    lines = drawn(prediction_of(("日本語", 3), ("x", 2))).splitlines()
    assert lines[2].index("x") == 4
    assert lines[3].index("▂2") == 7 == 2 * 3 + 1


def test_long_texts_are_wrapped():
    lines = drawn(prediction_of(*[("word", 2)] * 30), width=40).splitlines()
    assert len(lines) > 8
    assert all(len(line) <= 40 for line in lines)


def test_deeper_words_are_darker_in_a_terminal():
    text = drawn(prediction_of(("shallow", 1), ("deep", 9)), colour=True)
    shades = [sum(map(int, rgb)) for rgb in re.findall(r"48;2;(\d+);(\d+);(\d+)", text)]
    assert shades[0] > shades[1]


def test_an_empty_text_is_drawn():
    assert drawn(prediction_of()).startswith("good  75.0%, no words")


def test_control_characters_are_replaced_and_long_words_are_cut():
    text = drawn(prediction_of(("\x1b[31mred", 1), ("x" * 300_000, 2)))
    assert "\x1b" not in text
    assert "…" in text
    assert len(text) < 300


def test_a_truncated_text_is_marked():
    assert "The text was cut" in drawn(prediction_of(("a", 1), truncated=True))
    assert "The text was cut" in prediction_page(
        prediction_of(("a", 1), truncated=True), max_depth=9
    )


@given(st.text(max_size=30))
def test_text_is_escaped_in_the_page(text):
    content = prediction_page(prediction_of((f"<b>{text}<script>", 2)), max_depth=9)
    assert "<script" not in content
    assert "<b>" not in content
    assert "&lt;script&gt;" in content


def test_the_page_is_self_contained():
    content = prediction_page(prediction_of(("fine", 3)), max_depth=9)
    assert not re.search(r"(src|href)\s*=|@import|url\(|https?:", content)
    assert '<meta charset="utf-8">' in content


@pytest.mark.parametrize("text", ["", "The film was lovely.", "x" * 1000])
def test_every_prediction_can_be_explained(text):
    predictor = Predictor(tiny_artifact())
    [prediction] = predictor.predict([text], contributions=True)
    assert prediction.label in drawn(prediction)
    assert prediction.label in prediction_page(prediction, max_depth=predictor.max_depth)
