"""The search for settings, as a user calls it."""

import json
import sys

import pytest

from fathomer.config import Recipe
from fathomer.errors import ConfigError, MissingExtraError
from fathomer.training.prepare import prepare
from fathomer.tune import SIZES, fitting_sizes, megabytes, tune

from .tiny import TINY, tiny_artifact, tiny_examples, write_csv

pytest.importorskip("optuna", reason="the extra tune is not installed")

pytestmark = pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")


@pytest.fixture
def command(tmp_path):
    write_csv(tmp_path / "data.csv", tiny_examples())
    quick = TINY.updated({"train": {"epochs": 1}})
    (tmp_path / "tiny.toml").write_text(quick.to_toml(), encoding="utf-8")
    return ["tune", "data.csv", "--out", "found.toml", "--recipe", "tiny.toml"]


def test_the_best_settings_become_a_recipe_and_a_search_goes_on(run, command, tmp_path):
    code, out, err = run(*command, "--minutes", "0.15", "--json")
    assert code == 0, err
    first = json.loads(out)["trials"]
    assert err.count("held-out accuracy") == len(first)
    accuracies = [trial["accuracy"] for trial in first]
    assert accuracies == sorted(accuracies, reverse=True)
    recipe = Recipe.from_toml(tmp_path / "found.toml")
    assert recipe.train.learning_rate == first[0]["settings"]["train.learning_rate"]
    assert recipe.model.vocab_size == 0  # the data decides that anew
    assert recipe.model.word_size == TINY.model.word_size
    code, out, _ = run(*command, "--minutes", "0.05")
    assert code == 0
    assert out.splitlines()[0].split()[:2] == ["trial", "accuracy"]
    assert len(out.splitlines()) > len(first) + 2
    train = ["train", "data.csv", "--out", "model", "--recipe", "found.toml", "--json"]
    assert run(*train)[0] == 0


@pytest.mark.parametrize("minutes", ["0", "-1", "nan"])
def test_no_time_is_told_in_one_line(run, command, tmp_path, minutes):
    code, out, err = run(*command, "--minutes", minutes)
    assert (code, out) == (2, "")
    assert err == f"fathomer: tuning takes time; give more than {minutes} minutes\n"
    assert not (tmp_path / "found.toml.trials").exists()


def test_too_small_a_cap_is_told_in_one_line(run, command):
    code, _, err = run(*command, "--max-mb", "0.001")
    assert code == 2
    assert err.startswith("fathomer: no model fits in 0.001 MB; with ")


def test_the_cap_holds_for_the_file(tmp_path):
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


def test_ctrl_c_keeps_the_best_so_far(tmp_path):
    def stop(trial):
        if trial.number == 1:
            raise KeyboardInterrupt

    journal = tmp_path / "trials"
    recipe = TINY.updated({"train": {"epochs": 1}})
    with pytest.raises(KeyboardInterrupt):
        tune(tiny_examples(), recipe, minutes=1, journal=journal, report=stop)
    again = tune(tiny_examples(), recipe, minutes=0.0001, journal=journal)
    assert len(again.trials) == 2


def test_ctrl_c_in_a_training_ends_the_search(tmp_path, monkeypatch):
    calls = []

    def interrupted(*arguments, **options):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return fit(*arguments, **options)

    from fathomer.fit import fit

    monkeypatch.setattr("fathomer.tune.fit", interrupted)
    recipe = TINY.updated({"train": {"epochs": 1}})
    tuned = tune(tiny_examples(), recipe, minutes=1, journal=tmp_path / "trials")
    assert tuned.interrupted
    assert [trial.number for trial in tuned.trials] == [0]


def test_trials_of_other_data_are_not_continued(tmp_path):
    recipe = TINY.updated({"train": {"epochs": 1}})
    tune(tiny_examples(), recipe, minutes=0.005, journal=tmp_path / "trials")
    with pytest.raises(ConfigError, match="other data or another recipe"):
        tune(tiny_examples(40), recipe, minutes=0.005, journal=tmp_path / "trials")


def test_a_missing_extra_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'fathomer\[tune\]'"):
        tune(tiny_examples(), TINY, minutes=1, journal=tmp_path / "trials")
