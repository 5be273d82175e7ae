"""The scikit-learn estimator: its settings, its validation set and its progress."""

import sys

import pytest

import fathomer
from fathomer.config import Recipe
from fathomer.data.examples import Example, Examples
from fathomer.errors import DataError, MissingFileError
from fathomer.recipes import find_recipe
from fathomer.train.automatic import DataSize, automatic_recipe
from tests.small_classifier import LABELS, TEXTS, classifier
from tests.tiny import TINY

EXAMPLES = Examples([Example(*pair) for pair in zip(TEXTS, LABELS, strict=True)])


def test_without_arguments_the_settings_are_those_of_the_command():
    size = DataSize.of(TEXTS, len(TEXTS), max_words=2000)
    assert fathomer.TextClassifier()._recipe(EXAMPLES) == automatic_recipe(size)


def test_what_is_given_wins_over_the_automatic_settings():
    given = {"max_depth": 9, "hidden_size": 400, "epochs": 10, "seed": 5}
    found = fathomer.TextClassifier(**given, settings={"train.keep": "best"})._recipe(EXAMPLES)
    assert (found.model.max_depth, found.model.hidden_size) == (9, 400)
    assert (found.train.epochs, found.train.seed, found.train.keep) == (10, 5, "best")
    assert found.model.ngrams, "the rest follows from the data"


def test_a_recipe_replaces_the_automatic_settings(tmp_path):
    path = tmp_path / "own.toml"
    path.write_text(TINY.to_toml(), encoding="utf-8")
    for name, recipe in (("small", find_recipe("small")), ("paper", Recipe()), (path, TINY)):
        assert fathomer.TextClassifier(recipe=name)._recipe(EXAMPLES) == recipe
    with pytest.raises(MissingFileError, match="did you mean 'small'"):
        fathomer.TextClassifier(recipe="smal").fit(TEXTS, LABELS)


def test_epochs_are_scored_on_the_validation_set():
    fitted = classifier(epochs=2).fit(TEXTS, LABELS, validation=(TEXTS[:7], LABELS[:7]))
    assert [e["held_out"]["examples"] for e in fitted.predictor_.artifact.metrics["history"]] == [
        7,
        7,
    ]
    with pytest.raises(DataError, match="label 'neutral' does not occur in the training data"):
        classifier().fit(TEXTS, LABELS, validation=(["so so"], ["neutral"]))


def test_the_validation_set_may_be_a_table():
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    table = pandas.DataFrame({"text": TEXTS[:7], "label": LABELS[:7]})
    fitted = classifier(epochs=1).fit(TEXTS, LABELS, validation=table)
    assert fitted.predictor_.artifact.metrics["held_out"]["examples"] == 7
    for other in (TEXTS, (TEXTS,), "abc"):
        with pytest.raises(
            TypeError, match=r"validation must be a pair \(texts, labels\) or a table"
        ):
            classifier().fit(TEXTS, LABELS, validation=other)


def test_a_line_is_shown_while_vectors_are_read(tmp_path, capsys):
    (tmp_path / "own.txt").write_text("good 1 2\nbad 3 4\n", encoding="utf-8")
    fathomer.TextClassifier(epochs=1, verbose=1, vectors=tmp_path / "own.txt").fit(TEXTS, LABELS)
    shown = capsys.readouterr().err
    assert shown.index("reading own.txt ...\n") < shown.index("own.txt covers ")


def test_patience_stops_early_and_keeps_the_best_epoch():
    still = fathomer.TextClassifier(epochs=9, patience=2, settings={"train.learning_rate": 0})
    metrics = still.fit(TEXTS, LABELS).predictor_.artifact.metrics
    assert (metrics["epochs"], metrics["best_epoch"]) == (3, 1)


@pytest.mark.parametrize(
    ("verbose", "interactive", "shown"),
    [(None, False, False), (None, True, True), (0, True, False), (1, False, True)],
)
def test_progress_is_shown_in_an_interactive_session_or_on_demand(
    monkeypatch, capsys, verbose, interactive, shown
):
    if interactive:
        monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
    else:
        monkeypatch.delattr(sys, "ps1", raising=False)
    fathomer.TextClassifier(epochs=1, verbose=verbose).fit(TEXTS, LABELS)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("settings: hidden size 100, ") == ("\nepoch 1/1  " in err) == shown
    assert shown or err == ""
