"""A report as an HTML page and as a picture."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fathomer.errors import MissingExtraError
from fathomer.evaluate.label_words import LabelWord, LabelWords
from fathomer.evaluate.metrics import LabelMetrics, Metrics
from fathomer.evaluate.render import MATRIX_LABELS, confusion_png, report_page
from fathomer.evaluate.report import LengthGroup, Mistake, Report, UnseenScore
from tests.forked import run_forked

PNG = b"\x89PNG\r\n\x1a\n"


def report_with(labels, *, confusion=None, text="a text", unseen=None):
    """Return a report in which each label has ten texts, one of them mistaken for the next label."""
    names = [*labels[1:], labels[0]]
    confusion = confusion or {a: {a: 9, b: 1} for a, b in zip(labels, names, strict=True)}
    per_label = {label: LabelMetrics(0.9, 0.9, 0.9, 10) for label in labels}
    return Report(
        metrics=Metrics(0.9, 0.9, 0.9, 0.3, 10 * len(labels), 2.5, [0, 3, 3], 0.05, per_label),
        confusion=confusion,
        by_length=(LengthGroup(1, 7, 10, 0.8125, 1.5), LengthGroup(8, 30, 10, 1.0, 3.5)),
        mistakes=(Mistake(17, text, labels[0], labels[1], 0.987),),
        unseen=unseen,
    )


def size_of(png):
    return int.from_bytes(png[16:20]), int.from_bytes(png[20:24])


def test_the_page_shows_the_whole_report():
    page = report_page(
        report_with(["bad", "good"], unseen=UnseenScore(0.75, 12)), title="m on t.csv"
    )
    for shown in ("m on t.csv", "0.9000", "0.7500", "8–30", "0.8125", "a text", "98.7%", "text 17"):
        assert shown in page, shown
    assert re.findall(r'class="(\w+)" style="--share:([\d.]+)">(\d+)', page) == [
        ("right", "0.900", "9"),
        ("wrong", "0.100", "1"),
        ("wrong", "0.100", "1"),
        ("right", "0.900", "9"),
    ]


def test_the_page_loads_no_other_files():
    page = report_page(report_with(["bad", "good"]), title="t")
    assert not re.search(r"(src|href)\s*=|@import|url\(|https?:|<script", page)
    assert "color-scheme: light dark" in page


@given(st.text(max_size=20))
def test_texts_and_labels_are_escaped(text):
    hostile = f"<script>{text}<b>"
    page = report_page(report_with([hostile, "good"], text=hostile), title=hostile)
    assert "<script" not in page
    assert "<b>" not in page
    assert "&lt;script&gt;" in page


def test_the_page_shows_the_words_that_push_towards_each_label():
    report = report_with(["bad", "good"])
    words = LabelWords(
        7, {"<bad": (LabelWord("<dull", 2.0, 3), LabelWord("x", 1.0, 1)), "good": ()}
    )
    page = report_page(report, title="t", words=words)
    assert "<li><b>&lt;bad</b>: &lt;dull (3) · x (1)</li>" in page
    assert "<li><b>good</b>: none</li>" in page
    assert "in 7 texts" in page
    assert "push towards" not in report_page(report, title="t")


def test_a_large_matrix_shows_the_labels_with_the_most_mistakes():
    labels = [f"label{number}" for number in range(MATRIX_LABELS + 5)]
    confusion = {label: {label: 10} for label in labels} | {"label44": {"label43": 7}}
    page = report_page(report_with(labels, confusion=confusion), title="t")
    assert f"The {MATRIX_LABELS} of {MATRIX_LABELS + 5} labels with the most mistakes" in page
    assert page.count('class="right"') == MATRIX_LABELS
    assert re.search(r"Most frequent confusions.*label44</th><td>label43</td><td>7<", page, re.S)


def test_a_report_without_mistakes_has_a_page_too():
    report = Report(report_with(["a", "b"]).metrics, {"a": {"a": 1}}, (), ())
    assert "None." in report_page(report, title="t")


@pytest.mark.parametrize(
    "labels", [["bad", "good"], ["$x_{$", "日本語", "a\nb"], [f"label{n}" for n in range(45)]]
)
def test_any_labels_can_be_drawn(labels):
    png = confusion_png(report_with(labels))
    assert png.startswith(PNG)
    assert max(size_of(png)) < 4000


def test_the_picture_depends_on_the_labels_and_the_counts():
    small, large = report_with(["a", "b"]), report_with([*"abcdefgh"])
    assert size_of(confusion_png(small)) < size_of(confusion_png(large))
    other = report_with(["a", "b"], confusion={"a": {"b": 10}, "b": {"b": 10}})
    assert confusion_png(small) == confusion_png(small) != confusion_png(other)


def test_drawing_does_not_import_pyplot():
    code = (
        "import sys; from tests.evaluate.test_render import *; confusion_png(report_with(['a', 'b']));"
        "print('matplotlib.pyplot' in sys.modules)"
    )
    assert run_forked(["-c", code]).stdout == "False\n"


def test_without_matplotlib_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setattr("fathomer.errors.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"pip install 'fathomer\[plots\]'"):
        confusion_png(report_with(["bad", "good"]))
