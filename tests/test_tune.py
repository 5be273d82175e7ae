"""The hyperparameter search and its command."""

import json
import re
import signal
import sys
from dataclasses import replace
from functools import partial

import pytest

from fathomer.config import Recipe
from fathomer.errors import ConfigError, MissingExtraError, TrainingError
from fathomer.search_space import SIZES, fitting_sizes, megabytes
from fathomer.train.fit import fit
from fathomer.train.prepare import prepare
from fathomer.tune import (
    FEW_EPOCHS,
    SearchResult,
    Trial,
    fingerprint,
    measure_seconds,
    rounds,
    tune,
)
from tests.forked import Forked
from tests.tiny import TINY, tagged, tiny_artifact, tiny_examples, write_csv

pytest.importorskip("optuna", reason="the extra tune is not installed")

pytestmark = pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")


QUICK = TINY.updated({"train": {"epochs": 1}})


def stop_after(trials):
    """Return a callback that raises KeyboardInterrupt after this many trials."""
    reported = []

    def report(trial):
        reported.append(trial)
        if len(reported) >= trials:
            raise KeyboardInterrupt

    return report


@pytest.fixture
def command(tmp_path):
    write_csv(tmp_path / "data.csv", tiny_examples())
    (tmp_path / "tiny.toml").write_text(QUICK.to_toml(), encoding="utf-8")
    return ["tune", "data.csv", "--out", "found.toml", "--recipe", "tiny.toml"]


def test_the_best_settings_become_a_recipe_and_the_search_can_continue(
    run, command, tmp_path, clock
):
    code, out, err = run(*command, "--minutes", "0.5", "--json")
    assert code == 0, err
    found = json.loads(out)
    first = found["trials"]
    assert err.count("held-out accuracy") == len(first) > 1
    accuracies = [trial["accuracy"] for trial in first]
    assert accuracies == sorted(accuracies, reverse=True)
    recipe = Recipe.from_toml(tmp_path / "found.toml")
    [best] = [trial for trial in first if trial["number"] == found["best"]]
    assert recipe.train.learning_rate == best["settings"]["train.learning_rate"]
    assert recipe.model.vocab_size == 0  # derived from the data again
    assert recipe.model.word_size == TINY.model.word_size
    code, out, _ = run(*command, "--minutes", "0.3")
    assert code == 0
    assert out.splitlines()[0].split()[:2] == ["trial", "accuracy"]
    assert len(out.splitlines()) > len(first) + 2
    train = ["train", "data.csv", "--out", "model", "--recipe", "found.toml", "--json"]
    assert run(*train)[0] == 0


@pytest.mark.parametrize("minutes", ["0", "-1", "nan"])
def test_a_time_budget_of_zero_is_refused(run, command, tmp_path, minutes):
    code, out, err = run(*command, "--minutes", minutes)
    assert (code, out) == (2, "")
    assert err == f"fathomer: --minutes must be greater than 0, not {minutes}\n"
    assert not (tmp_path / "found.toml.trials").exists()


@pytest.mark.parametrize("model", ["tfidf", "fasttext"])
def test_a_model_without_epochs_is_refused(run, command, tmp_path, model):
    code, out, err = run(*command, "--set", f"model.name={model}")
    assert (code, out) == (2, "")
    assert err == f"fathomer: the model {model} has no settings to tune\n"
    assert not (tmp_path / "found.toml.trials").exists()


def test_a_size_limit_that_no_model_meets_is_refused(run, command):
    code, _, err = run(*command, "--max-mb", "0.001")
    assert code == 2
    assert err.startswith("fathomer: no model fits in 0.001 MB; with ")


def test_the_size_limit_holds_for_the_saved_file(tmp_path):
    artifact = tiny_artifact()
    artifact.save(tmp_path)
    size = (tmp_path / "model.safetensors").stat().st_size / 1e6
    assert size <= megabytes(artifact.recipe) * 1.1 + 0.005
    known = prepare(tiny_examples(), TINY).recipe
    assert fitting_sizes(known, None) == SIZES
    sizes = fitting_sizes(known, 1.0)
    assert len(SIZES) > len(sizes) > 0
    largest = known.updated({"model": {"hidden_size": sizes[-1], "max_depth": 9}})
    assert megabytes(largest) <= 1.0


def test_a_smaller_limit_also_applies_to_earlier_trials(tmp_path):
    search = partial(tune, tiny_examples(), QUICK, journal=tmp_path / "trials")
    free = search(minutes=1, report=stop_after(4)).trials
    cap = sorted(trial.megabytes for trial in free)[1]  # the smallest may be less deep than allowed
    capped = search(minutes=0.0001, max_mb=cap).trials
    assert capped
    assert all(trial.megabytes <= cap for trial in capped)
    assert len(search(minutes=0.0001).trials) >= len(free) > len(capped)


def test_ctrl_c_saves_the_best_so_far(command, tmp_path):
    with Forked(*command, "--minutes", "5", folder=tmp_path) as process:
        while not (line := process.stderr.readline()).startswith("trial 2:"):
            assert line, "the search ended before it was interrupted"
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()
    assert process.returncode == 130, rest
    assert rest.endswith(
        "Stopped: the best settings so far are saved; the same command continues.\n"
    )
    best = Recipe.from_toml(tmp_path / "found.toml")
    journal = tmp_path / "found.toml.trials"
    recipe = Recipe.from_toml(tmp_path / "tiny.toml")
    found = tune(tiny_examples(), recipe, minutes=0.0001, journal=journal)
    assert len(found.trials) >= 2
    assert best == recipe.with_values(found.best.settings)


def test_ctrl_c_between_two_trials_ends_the_search(tmp_path):
    tuned = tune(
        tiny_examples(), QUICK, minutes=1, journal=tmp_path / "trials", report=stop_after(2)
    )
    assert tuned.interrupted
    assert len(tuned.trials) == 2


def test_ctrl_c_before_the_first_trial_ends_saves_nothing(run, command, tmp_path, monkeypatch):
    monkeypatch.setattr("fathomer.tune.fit", lambda *_, **__: stop_after(0)(None))
    code, out, err = run(*command)
    assert (code, out) == (130, "")
    assert err == "Stopped: no trial was finished, so nothing was written.\n"
    assert not (tmp_path / "found.toml").exists()
    monkeypatch.undo()  # the given settings still come first
    found = tune(
        tiny_examples(),
        Recipe.from_toml(tmp_path / "tiny.toml"),
        minutes=1,
        journal=tmp_path / "found.toml.trials",
        report=stop_after(1),
    )
    assert found.trials[0].settings["train.learning_rate"] == TINY.train.learning_rate


def test_a_time_budget_shorter_than_an_epoch_is_reported(run, command, tmp_path):
    code, out, err = run(*command, "--minutes", "0.00001")
    assert (code, out) == (2, "")
    assert err == "fathomer: no trial finished an epoch in 1e-05 minutes; increase --minutes\n"
    assert not (tmp_path / "found.toml").exists()


def test_the_objective_with_several_labels_is_micro_f1(run, tmp_path, clock):
    examples = tagged(60)
    write_csv(tmp_path / "data.csv", examples)
    chosen = QUICK.changed_values() | {"model.ngrams": "false"}  # n-grams alone would solve it
    settings = [f"--set={path}={value}" for path, value in chosen.items()]
    code, out, err = run("tune", "data.csv", "--multi-label", "--minutes", "0.5", *settings)
    assert code == 0, err
    assert "held-out micro F1 " in err
    assert out.startswith("trial  micro F1 ")
    again = fit(examples, Recipe.from_toml(tmp_path / "tuned.toml")).artifact.metrics["held_out"]
    chosen = re.search(r"the settings of trial (\d+)$", out)[1]
    [row] = [line.split() for line in out.splitlines() if line.split()[0] == chosen]
    assert row[1] == f"{again['micro_f1']:.4f}" != f"{again['macro_f1']:.4f}"


def test_ctrl_c_during_a_training_ends_the_search(tmp_path, monkeypatch):
    calls = []

    def interrupted(*arguments, **options):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return fit(*arguments, **options)

    monkeypatch.setattr("fathomer.tune.fit", interrupted)
    tuned = tune(tiny_examples(), QUICK, minutes=1, journal=tmp_path / "trials")
    assert tuned.interrupted
    assert [trial.number for trial in tuned.trials] == [0]


def test_a_search_with_other_data_is_not_continued(tmp_path):
    tune(tiny_examples(), QUICK, minutes=0.005, journal=tmp_path / "trials")
    with pytest.raises(ConfigError, match="other data or another recipe"):
        tune(tiny_examples(40), QUICK, minutes=0.005, journal=tmp_path / "trials")


def test_the_fingerprint_covers_labels_and_vectors(tmp_path):
    examples, vectors = tiny_examples(4), tmp_path / "vectors.txt"
    vectors.write_text("good 1 2\nbad 3 4\n", encoding="utf-8")
    several = replace(examples, multi_label=True)
    found = [fingerprint(e, QUICK, v) for e in (examples, several) for v in (None, vectors)]
    assert len(set(found)) == 4


def test_diverging_settings_do_not_end_the_search(tmp_path, monkeypatch):
    calls = []

    def diverging(*arguments, **options):
        calls.append(1)
        if len(calls) == 1:
            raise TrainingError("the loss is not finite")
        return fit(*arguments, **options)

    monkeypatch.setattr("fathomer.tune.fit", diverging)
    search = {"minutes": 1, "journal": tmp_path / "trials"}
    tuned = tune(tiny_examples(), QUICK, **search, report=stop_after(1))
    assert [trial.number for trial in tuned.trials] == [1]


@pytest.mark.parametrize("content", ["garbage\n", "{}\n", "[1]\n"])
def test_a_file_that_is_not_a_journal_is_refused(run, command, tmp_path, content):
    (tmp_path / "found.toml.trials").write_text(content, encoding="utf-8")
    code, _, err = run(*command)
    assert code == 2
    assert err == "fathomer: found.toml.trials: not a journal of trials; delete it to start again\n"


def test_a_missing_extra_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'fathomer\[tune\]'"):
        tune(tiny_examples(), TINY, minutes=1, journal=tmp_path / "trials")


def test_labels_with_a_single_text_leave_nothing_to_hold_out(run, command, tmp_path):
    (tmp_path / "data.csv").write_text("text,label\ngood,a\nbad,b\n", encoding="utf-8")
    code, _, err = run(*command, "--minutes", "1")
    assert code == 2
    assert err.endswith("tuning needs a held-out part, but every label has only one text\n")


LARGE = tiny_examples(1200)


@pytest.fixture
def slow_machine(monkeypatch):
    """A machine on which the first trial would take as long as the whole search."""
    monkeypatch.setattr("fathomer.tune.measure_seconds", lambda *_: 60.0)


def test_trials_get_more_texts_in_every_round(slow_machine):
    assert rounds(LARGE, QUICK, 1.0) == (pytest.approx([0.1]), 1)  # a third of it: too few texts
    assert rounds(LARGE, QUICK, 100.0) == (pytest.approx([1 / 9, 1 / 3, 1]), 1)
    assert rounds(tiny_examples(), QUICK, 0.001) == ([1.0], 1)


def test_with_little_time_trials_have_fewer_epochs_and_fewer_texts(slow_machine):
    recipe = QUICK.updated({"train": {"epochs": 20}})
    shares, epochs = rounds(LARGE, recipe, 2.5)
    assert (shares, epochs) == (pytest.approx([0.5 / 3, 0.5]), 10)  # a quarter of the whole
    assert rounds(LARGE, recipe, 0.001)[1] == FEW_EPOCHS


def test_the_time_of_a_training_is_extrapolated_from_one_epoch_on_few_texts(monkeypatch):
    trained, seconds = [], iter((10.0, 12.0))
    monkeypatch.setattr("fathomer.tune.time.monotonic", lambda: next(seconds))
    monkeypatch.setattr("fathomer.tune.fit", lambda *given: trained.append(given))
    recipe = QUICK.updated({"train": {"epochs": 5}})
    assert measure_seconds(LARGE, recipe) == pytest.approx(2 * 5 * 4)
    [(few, once)] = trained
    assert (len(few), once.train.epochs) == (300, 1)


def test_many_settings_are_tried_and_the_first_is_never_given_up(tmp_path, monkeypatch):
    trained = []

    def counting(examples, *arguments, **options):
        trained.append(len(examples))
        if len(trained) > 8:
            raise KeyboardInterrupt
        return fit(examples, *arguments, **options)

    monkeypatch.setattr("fathomer.tune.fit", counting)
    monkeypatch.setattr("fathomer.tune.measure_seconds", lambda *_: 1.0)
    monkeypatch.setattr("fathomer.tune.FEW_TEXTS", 20)
    examples = tiny_examples(300)  # 240 to train on
    found = tune(examples, QUICK, minutes=30, journal=tmp_path / "trials")
    assert trained[:3] == pytest.approx([27, 80, 240], abs=2)
    assert found.tried > len(found.trials), "some were given up"
    first = [trial for trial in found.trials if trial.number == 0]
    assert len(first) == 1
    assert found.trials[0].micro_f1 >= first[0].micro_f1
    assert found.share == 1.0


def test_a_trial_that_is_far_slower_than_the_first_is_given_up(tmp_path, monkeypatch):
    """The first trial takes 10 seconds, the second 25 and finishes no epoch in 20."""
    now, calls = [0.0], []

    def slow(*arguments, watch, **options):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        now[0] += 10 if len(calls) == 1 else 25
        return fit(*arguments, watch=watch, **options)

    monkeypatch.setattr("fathomer.tune.time.monotonic", lambda: now[0])
    monkeypatch.setattr("fathomer.tune.fit", slow)
    found = tune(tiny_examples(), QUICK, minutes=60, journal=tmp_path / "trials")
    assert [trial.number for trial in found.trials] == [0]
    assert (len(calls), found.interrupted) == (3, True)


def test_two_minutes_are_enough_for_five_settings(tmp_path, monkeypatch):
    """The first trial takes 18 seconds, as planned; all others would take five times as long."""
    now, steps, trainings = [0.0], [], []
    examples, recipe = tiny_examples(240), QUICK.updated({"train": {"batch_words": 100}})
    monkeypatch.setattr("fathomer.search_space.BATCH_WORDS", (100, 100))  # equally many steps
    fit(examples, recipe, watch=lambda events: (steps.append(1) or each for each in events))

    def slow(*arguments, watch, **options):
        trainings.append(1)
        seconds = (18 if len(trainings) == 1 else 90) / len(steps)

        def tick(events):
            for event in events:
                now[0] += seconds
                yield event

        return fit(*arguments, watch=lambda events: watch(tick(events)), **options)

    monkeypatch.setattr("fathomer.tune.time.monotonic", lambda: now[0])
    monkeypatch.setattr("fathomer.tune.fit", slow)
    assert tune(examples, recipe, minutes=2, journal=tmp_path / "trials").tried >= 5


def test_a_search_without_a_recipe_starts_from_the_automatic_settings(run, tmp_path, clock):
    write_csv(tmp_path / "data.csv", tiny_examples())
    small = ("--set", "train.epochs=1", "--set", "model.hidden_size=20")
    code, out, err = run("tune", "data.csv", "--minutes", "0.5", *small)
    assert code == 0, err
    first = next(line for line in out.splitlines() if line.split()[0] == "1")
    assert first.split()[5:] == ["0.001", "200", "20", "3", "0.3,", "0.3"]
    assert " settings tried, 1 epoch on up to 100% of the texts: " in out
    found = Recipe.from_toml(tmp_path / "tuned.toml")
    assert (found.train.keep, found.model.ngrams) == ("last", True)


@pytest.mark.parametrize(("score", "better"), [(0.92, False), (0.94, True), (0.9, False)])
def test_other_settings_are_preferred_only_beyond_one_standard_error(score, better):
    """With 100 texts and an accuracy of about 90 %, the standard error is 3 points."""
    first = Trial(0, {}, 0.9, 0.9, 0.3, 2.0, 1.0, 1.0)
    other = first._replace(number=1, micro_f1=score)
    result = SearchResult([other, first], interrupted=False, held_out=100)
    assert result.best is (other if better else first)
