"""One run: what it records, and how it continues after an interruption."""

import json
from dataclasses import replace

import numpy as np
import pytest

from experiments.execute import execute
from experiments.plan import Experiment, Plan
from experiments.runs import read_run
from fathomer.config import Recipe
from fathomer.errors import ConfigError, DataError, MissingFileError
from fathomer.train.folder import CHECKPOINT
from tests.experiments.small import new_job
from tests.tiny import tiny_examples, write_csv

REQUIRED = {
    "corpus", "model", "seed", "fold", "accuracy", "macro_f1", "mean_depth", "parameters", "epochs",
    "train_words_per_second", "predict_words_per_second", "vectors", "settings", "command", "commit",
    "versions", "checksums", "wall_seconds",
}  # fmt: skip


def test_a_run_records_everything_required(executed, tmp_path):
    plan, run, lines = executed
    path = run.save(tmp_path / "results")
    content = json.loads(path.read_text(encoding="utf-8"))
    assert set(content) >= REQUIRED
    assert read_run(path) == run
    assert path == plan.find(tmp_path / "results")
    assert len(path.read_bytes()) < 10_000
    assert len(lines) == 2
    assert "epoch 2/2" in lines[1]


def test_the_figures_of_a_run_agree_with_each_other(executed):
    _, run, _ = executed
    assert run.is_correct.mean() == run.accuracy
    assert len(run.is_correct) == run.examples == 20
    assert sum(run.depths) == run.words
    assert np.dot(run.depths, [1, 2, 3, 4]) / run.words == pytest.approx(run.mean_depth)
    assert [row["depth"] for row in run.forced] == [1, 4], "9 is beyond the maximum depth"
    assert {sample["label"] for sample in run.samples} == {"positive", "negative"}
    assert run.examples_unseen < run.examples, "the small opinions repeat each other"
    assert len(run.curve) == run.epochs == 2
    assert run.train_words_per_second > 0 < run.predict_words_per_second


@pytest.mark.parametrize("model", ["tfidf", "s-lstm", "swem-concat"])
def test_a_model_without_depth_has_no_depths(experiment, tmp_path, model):
    plan = Experiment.from_toml(experiment).plans()[1]
    plan = replace(plan, settings={**plan.settings, "model.name": model})
    assert plan.forced_depths
    run = execute(new_job(plan, tmp_path), print)
    assert (run.model, run.depths, run.forced, run.samples) == (model, (), (), ())
    assert run.train_words_per_second > 0


def test_a_file_without_folds_has_no_test_set(experiment, tmp_path):
    plan = replace(Experiment.from_toml(experiment).plans()[0], fold=None, folds=None)
    with pytest.raises(ConfigError, match=r"opinions\.csv has no test set; give folds"):
        execute(new_job(plan, tmp_path), print)


def test_a_checkpoint_of_other_data_is_not_continued(executed, tmp_path):
    plan, run, _ = executed
    assert (tmp_path / "work" / plan.name / CHECKPOINT).exists()
    write_csv(tmp_path / "opinions.csv", tiny_examples(90))
    lines = []
    again = execute(new_job(plan, tmp_path), lines.append)
    assert "starts again" in lines[0]
    assert again.checksums != run.checksums
    clock = json.loads((tmp_path / "work" / plan.name / "clock.json").read_text("utf-8"))
    assert len(clock["speeds"]) == again.epochs, "the discarded training does not count"


def test_a_kept_model_knows_its_fold(run_experiments, experiment, tmp_path):
    """So that its depths are analysed on texts that it was not trained on."""
    plan = next(p for p in Experiment.from_toml(experiment).plans() if p.fold == 2)
    run = execute(replace(new_job(plan, tmp_path), keep=tmp_path / "kept"), [].append)
    code, out, err = run_experiments(
        "depths", str(tmp_path / "kept" / plan.name), plan.corpus, "--json"
    )
    assert code == 0
    assert f"fold 2 of {plan.folds} is the test part" in err
    assert json.loads(out)["words"] == run.words


def test_a_run_records_all_settings_that_differ_from_the_defaults(executed):
    plan, run, _ = executed
    assert Plan.from_run(run).key == plan.key
    assert run.recipe == plan.recipe != Recipe()


def test_a_file_that_is_not_a_run_is_refused(tmp_path):
    with pytest.raises(MissingFileError, match="no such run"):
        read_run(tmp_path / "none.json")
    (tmp_path / "other.json").write_text("{}", encoding="utf-8")
    with pytest.raises(DataError, match="not a run of an experiment"):
        read_run(tmp_path / "other.json")
