"""The command train: from a file to a model; what is printed, saved and resumed."""

import json
import re
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from fathomer.cli.settings import SettingChanges
from fathomer.cli.training_result import print_result
from fathomer.config import Recipe
from fathomer.errors import ConfigError
from fathomer.train.automatic import DataSize, automatic_recipe
from tests.forked import Forked
from tests.tiny import tiny_artifact, tiny_examples, write_csv


def test_a_csv_file_becomes_a_model_that_can_be_evaluated(run, data, recipe, tmp_path):
    options = ["--recipe", recipe, "--seed", "3", "--no-baseline"]
    code, out, err = run("train", data, "--out", "model", *options)
    assert code == 0, err
    assert err.startswith("data.csv: 60 examples read\nepoch 1/4  loss ")
    assert max(map(len, [*err.splitlines(), *out.splitlines()])) <= 80
    assert "held out" in out
    assert "TF-IDF" not in out
    assert out.endswith("the model is in model\n")
    assert not (tmp_path / "model" / "checkpoint.safetensors").exists()
    config = json.loads((tmp_path / "model" / "config.json").read_text(encoding="utf-8"))
    assert config["recipe"]["train"]["seed"] == 3
    code, out, err = run("evaluate", "model", data)
    assert code == 0, err
    assert "data.csv        60" in out.replace(",", "")
    assert "positive" in out


def test_json_output_is_one_object_with_scores_and_history(run, data, recipe):
    code, out, _ = run("train", data, "--out", "m", "--recipe", recipe, "--json")
    found = json.loads(out)
    assert code == 0
    assert found["labels"] == ["negative", "positive"]
    assert found["epochs"] == len(found["history"]) == 4
    assert found["baseline"]["accuracy"] == found["baseline"]["held_out"]["accuracy"] <= 1
    assert found["command"].startswith("fathomer train data.csv --out m")


def test_files_can_be_given_as_held_out_and_test_sets(run, data, recipe, tmp_path):
    write_csv(tmp_path / "other.csv", tiny_examples(20))
    arguments = ["--recipe", recipe, "--held-out", "other.csv", "--test", "other.csv", "--json"]
    code, out, _ = run("train", data, "--out", "m", *arguments)
    found = json.loads(out)
    assert code == 0
    baseline = found["baseline"]
    for scores in (found["held_out"], found["test"], baseline, baseline["held_out"]):
        assert scores["examples"] == 20
    stored = json.loads((tmp_path / "m" / "metrics.json").read_text(encoding="utf-8"))
    assert stored["test"] == found["test"]


def test_a_finished_model_is_overwritten_only_on_demand(run, model, data, recipe, tmp_path):
    command = ("train", data, "--out", model, "--recipe", recipe, "--no-baseline", "--epochs", "1")
    before = (tmp_path / model / "model.safetensors").read_bytes()
    code, _, err = run(*command)
    said = "model: holds a model; replace it with --overwrite, or choose another folder"
    assert (code, err) == (2, f"fathomer: {said}\n")
    assert (tmp_path / model / "model.safetensors").read_bytes() == before
    code, out, _ = run(*command, "--overwrite")
    assert (code, "\nbest epoch 1 of 1; the model is in model\n" in out) == (0, True)
    assert (tmp_path / model / "model.safetensors").read_bytes() != before


def test_a_model_goes_on_learning_from_new_texts(run, model, data, tmp_path):
    before = json.loads((tmp_path / model / "config.json").read_text(encoding="utf-8"))
    (tmp_path / "new.csv").write_text("text,label\n" + "The film was odd.,negative\n" * 9)
    code, out, err = run("train", "--continue", model, "new.csv", "--json")
    assert code == 0, err
    said = "warning: no new text has the label 'positive': the model may forget it\n"
    assert said in err
    after = json.loads((tmp_path / model / "config.json").read_text(encoding="utf-8"))
    assert after["labels"] == before["labels"] == json.loads(out)["labels"]
    assert after["files"]["tokenizer.json"] == before["files"]["tokenizer.json"]
    assert after["files"]["model.safetensors"] != before["files"]["model.safetensors"]
    assert (json.loads(out)["epochs"], "baseline" in json.loads(out)) == (3, False)
    code, out, err = run("train", "--continue", model, data, "--out", "other", "--epochs", "1")
    assert (code, "the model is in other\n" in out) == (0, True)
    assert "warning: what the new texts do not show may be forgotten: evaluate" in err


def test_a_new_label_cannot_be_learned_by_an_old_model(run, model, tmp_path):
    (tmp_path / "new.csv").write_text("text,label\n" + "so so,neutral\ngood,positive\n" * 9)
    code, _, err = run("train", "--continue", model, "new.csv")
    assert (code, "label 'neutral' does not occur in the training data" in err) == (2, True)


def test_common_settings_are_plain_options(run, data, recipe, tmp_path):
    options = ("--epochs", "2", "--batch-size", "70", "--learning-rate", "0.01")
    code, *_ = run("train", data, "--out", "m", "--recipe", recipe, "--no-baseline", *options)
    found = json.loads((tmp_path / "m" / "config.json").read_text(encoding="utf-8"))["recipe"]
    chosen = {name: found["train"][name] for name in ("epochs", "batch_words", "learning_rate")}
    assert (code, chosen) == (0, {"epochs": 2, "batch_words": 70, "learning_rate": 0.01})


def test_early_stopping_ends_a_training_with_automatic_settings(run, data):
    options = ("--set", "train.patience=1", "--learning-rate", "0", "--epochs", "9", "--json")
    code, out, _ = run("train", data, "--out", "m", "--no-baseline", *options)
    assert (code, json.loads(out)["epochs"]) == (0, 2)


def test_brackets_in_a_file_name_are_printed_as_they_are(run, recipe, tmp_path):
    write_csv(tmp_path / "a[red].csv", tiny_examples())
    _, _, err = run("train", "a[red].csv", "--out", "new", "--recipe", recipe, "--no-baseline")
    assert err.startswith("a[red].csv: 60 examples read\n")


def test_training_twice_writes_identical_files(run, data, recipe, tmp_path):
    for out in ("one", "two"):
        assert run("train", data, "--out", out, "--recipe", recipe, "--no-baseline")[0] == 0
    for name in ("model.safetensors", "tokenizer.json", "config.json"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_options_change_settings_whatever_the_recipe():
    changes = SettingChanges(["train.epochs=2", "train.seed=4"], seed=5, model="bilstm", minutes=3)
    for recipe in (Recipe(), automatic_recipe(DataSize(50, 1000))):
        changed = changes.applied(recipe)
        settings = {"epochs": 2, "seed": 5, "minutes": 3.0}
        assert changed == recipe.updated({"model": {"name": "bilstm"}, "train": settings})
    with pytest.raises(ConfigError, match="did you mean 'fathomer'"):
        SettingChanges([], model="fathomr").applied(Recipe())


def test_a_model_has_its_own_learning_rate_and_epochs_unless_they_are_set():
    recipe = Recipe().with_settings(["train.learning_rate=0.003", "train.epochs=5"])
    own = recipe.with_settings(["model.name=transformer"])
    limited = recipe.with_settings(["train.minutes=1"])
    for changes, start, rate, epochs in (
        (SettingChanges([], model="transformer"), recipe, 0.0006, 10),
        (SettingChanges(["model.name=transformer"]), recipe, 0.0006, 10),
        (SettingChanges([], model="bilstm"), recipe, 0.003, 5),
        (SettingChanges(["train.learning_rate=0.01"], model="transformer"), recipe, 0.01, 10),
        (SettingChanges([], model="transformer", epochs=3), recipe, 0.0006, 3),
        (SettingChanges([], model="transformer"), limited, 0.0006, 5),
        (SettingChanges([], model="transformer"), own, 0.003, 5),  # a recipe of that model
    ):
        train = changes.applied(start).train
        assert (train.learning_rate, train.epochs) == (rate, epochs)


def test_without_a_recipe_the_settings_follow_from_the_data(run, data, tmp_path):
    changed = ["--set", "train.epochs=1", "--set", "model.max_depth=2"]
    code, out, err = run("train", data, "--out", "m", "--test", data, *changed)
    assert code == 0, err
    assert re.search(
        r"^data\.csv: 60 examples read\nsettings: hidden size 100, max depth 2, 1 epoch, "
        r"200 words per batch\nwith \w+ and n-grams, training takes about \d+ seconds\n"
        r"word vectors often help with few texts: add --vectors wordllama\n"
        r"gains on samples of TREC, MR and kitchen: .* on average\nepoch 1/1  loss ",
        err,
    )
    assert max(map(len, [*err.splitlines(), *out.splitlines()])) <= 80
    rows = [re.split(r" {2,}", line) for line in out.splitlines()]
    assert rows[0][-1] == "training s"
    assert all(float(row[-1]) >= 0 for row in rows[1:5])
    assert [row[:2] for row in rows[1:5]] == [
        ["held out", "12"],
        ["held out, TF-IDF", "12"],
        ["test", "60"],
        ["test, TF-IDF", "60"],
    ]
    assert re.fullmatch(r"n-grams count \d+%, chosen on the held-out texts", out.splitlines()[5])
    config = json.loads((tmp_path / "m" / "config.json").read_text(encoding="utf-8"))
    assert config["recipe"]["model"]["ngrams"] is True


def test_tfidf_itself_is_trained_without_settings_or_another_baseline(run, data):
    code, out, err = run("train", data, "--out", "m", "--model", "tfidf")
    assert (code, "settings:" in err, "TF-IDF" in out) == (0, False, False)
    assert "epoch" not in err + out
    assert out.endswith("\nthe model is in m\n")


def test_tfidf_is_left_out_if_there_is_nothing_to_score_it_on(run, data, recipe, tmp_path):
    (tmp_path / "two.csv").write_text("text,label\ngood,a\nbad,b\n", encoding="utf-8")
    for file, options in ((data, ["--set", "train.held_out=0"]), ("two.csv", ["--overwrite"])):
        code, out, err = run("train", file, "--out", "m", "--recipe", recipe, *options, "--json")
        assert code == 0, err
        assert "baseline" not in json.loads(out)


def test_tfidf_is_left_out_if_the_texts_have_no_words_that_it_could_use(run, tmp_path):
    rows = "a b c,x\nd e f,y\n" * 10
    (tmp_path / "letters.csv").write_text(f"text,label\n{rows}", encoding="utf-8")
    command = ("train", "letters.csv", "--out", "m", "--set", "train.epochs=1")
    code, out, err = run(*command, "--test", "letters.csv", "--json")
    assert code == 0, err
    assert err.endswith("\nTF-IDF cannot be trained on these texts: no word occurs often enough\n")
    found = json.loads(out)
    assert found["ngrams"] == {"share": 0.0, "count": 0}
    assert (found["test"]["examples"], "baseline" in found) == (20, False)


def test_tfidf_is_left_out_if_there_are_very_many_texts(run, data, recipe, monkeypatch):
    monkeypatch.setattr("fathomer.train.automatic.MANY_TEXTS", 50)
    code, out, err = run("train", data, "--out", "m", "--recipe", recipe)
    assert (code, "TF-IDF" in out) == (0, False)
    assert "\nTF-IDF is left out: more than 50 texts\n" in err


@pytest.mark.parametrize(("ours", "better"), [(0.86, True), (0.88, False), (0.95, False)])
@pytest.mark.parametrize("where", ["held_out", "test"])
def test_a_better_tfidf_is_reported_beyond_one_standard_error(ours, better, where, capsys):
    """With 100 texts and an accuracy of 90 %, the standard error is 3 points."""
    metrics = tiny_artifact().metrics
    found = {**metrics["held_out"], "examples": 100}
    baseline = {**found, "accuracy": 0.9, "held_out": {**found, "accuracy": 1.0}, "wall_seconds": 1}
    metrics = {**metrics, where: {**found, "accuracy": ours}, "baseline": baseline}
    artifact = replace(tiny_artifact(), metrics=metrics)
    print_result(artifact, Path("m"), matched=False, as_json=False)
    last = capsys.readouterr().out.splitlines()[-1]
    verdict = f"TF-IDF is better on these 100 texts: 90.0% against {ours:.1%}; "
    assert last.startswith(verdict if better else "best epoch ")


def test_a_time_limit_ends_training_with_a_model_that_can_be_used(run, data, recipe, tmp_path):
    options = ["--recipe", recipe, "--minutes", "0.0001", "--no-baseline"]
    code, out, err = run("train", data, "--out", "m", *options)
    assert code == 0, err
    assert "\nbest epoch 1 of 1 (4 were planned); the model is in m\n" in out
    assert not (tmp_path / "m" / "checkpoint.safetensors").exists()
    assert run("evaluate", "m", data)[0] == 0


def test_a_run_with_a_time_limit_is_resumed_with_the_epochs_it_began_with(
    run, data, monkeypatch, interrupt
):
    command = ("train", data, "--out", "m", "--minutes", "2", "--no-baseline")

    def epochs_take(minutes):
        monkeypatch.setattr(
            "fathomer.train.automatic.estimate_seconds",
            lambda recipe, size: 60 * minutes * recipe.train.epochs,
        )

    epochs_take(1)
    with monkeypatch.context() as patch:
        patch.setattr("fathomer.train.fit.calibrate", interrupt)
        code, _, err = run(*command)
    assert code == 130
    assert ", 2 epochs, " in err
    epochs_take(0.25)  # now eight epochs would fit
    code, _, err = run(*command, "--resume", "--set", "train.epochs=9")
    assert code == 2
    assert "was made with train.epochs = 2, now it is 9" in err
    code, out, err = run(*command, "--resume")
    assert code == 0, err
    assert ", 2 epochs, " in err
    assert " of 2; the model is in m\n" in out


def test_a_model_with_its_own_epochs_is_resumed_with_them(run, data, monkeypatch, interrupt):
    monkeypatch.setattr("fathomer.train.automatic.EPOCHS", (1, 1))
    small = ("--model", "transformer", "--set", "model.hidden_size=8", "--no-baseline")
    with monkeypatch.context() as patch:
        patch.setattr("fathomer.train.fit.calibrate", interrupt)
        assert run("train", data, "--out", "m", *small)[0] == 130
    code, out, err = run("train", data, "--out", "m", *small, "--resume")
    assert code == 0, err
    assert out.endswith("epoch 2 of 2; the model is in m\n")


def test_ctrl_c_saves_the_best_epoch_and_resume_continues(run, data, recipe, tmp_path):
    command = ["train", data, "--out", "model", "--recipe", recipe, "--set", "train.epochs=400"]
    with Forked(*command, folder=tmp_path) as process:
        while not (line := process.stderr.readline()).startswith("epoch 2/"):
            assert line, "training ended before it was interrupted"
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()
    assert process.returncode == 130, rest
    assert rest.endswith(
        "Stopped: model holds the model so far; the same command with --resume continues.\n"
    )
    assert "Traceback" not in rest
    metrics = json.loads((tmp_path / "model" / "metrics.json").read_text(encoding="utf-8"))
    done = metrics["epochs"]
    assert 2 <= done < 400
    checkpoint = tmp_path / "model" / "checkpoint.safetensors"
    kept = checkpoint.read_bytes()
    code, _, err = run(*command)
    assert code == 2
    assert err.startswith("fathomer: model: ")
    assert "--resume" in err
    assert "--overwrite" in err
    assert checkpoint.read_bytes() == kept
    with Forked(*command, "--resume", folder=tmp_path) as resumed:
        resumed.stderr.readline()
        first = resumed.stderr.readline()
        resumed.kill()
    # Ctrl-C may have come before the last epoch was written to the checkpoint.
    assert first.startswith((f"epoch {done + 1}/400", f"epoch {done}/400"))


def test_ctrl_c_after_the_last_epoch_says_what_is_saved(run, data, recipe, monkeypatch, interrupt):
    command = ("train", data, "--out", "model", "--recipe", recipe, "--test", data)
    kept = "the model so far; the same command with --resume continues"
    for place in ("fathomer.train.fit.calibrate", "fathomer.predictor.Predictor.evaluate"):
        with monkeypatch.context() as patch:
            patch.setattr(place, interrupt)
            code, _, err = run(*command, "--overwrite")
        assert (code, err.splitlines()[-1]) == (130, f"Stopped: model holds {kept}.")
        code, out, err = run(*command, "--resume")
        assert code == 0, err
        assert "\ntest " in out


def test_ctrl_c_after_training_in_one_go_leaves_the_model(
    run, data, recipe, monkeypatch, interrupt
):
    command = ("train", data, "--out", "model", "--recipe", recipe, "--test", data)
    with monkeypatch.context() as patch:
        patch.setattr("fathomer.predictor.Predictor.evaluate", interrupt)
        code, _, err = run(*command, "--model", "tfidf")
    kept = "the model; fathomer evaluate scores it"
    assert (code, err.splitlines()[-1]) == (130, f"Stopped: model holds {kept}.")
    assert run("evaluate", "model", data)[0] == 0


def test_a_finished_training_cannot_be_resumed(run, model, data):
    code, _, err = run("train", data, "--out", model, "--resume")
    assert code == 2
    assert err == "fathomer: model: the training there is finished; there is nothing to resume\n"


def test_exact_refuses_to_resume_with_another_number_of_threads(run, data, monkeypatch):
    told = "trained with 4 threads, now there are 2; the result may differ"
    monkeypatch.setattr("fathomer.train.checkpoint.other_threads", lambda _: told)
    code, out, err = run("train", data, "--out", "m", "--resume", "--exact")
    assert (code, out) == (2, "")
    assert err == f"fathomer: {told}; set OMP_NUM_THREADS, or leave --exact out\n"
