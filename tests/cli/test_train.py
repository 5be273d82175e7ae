"""The command train: from a file to a model; what is printed, saved and resumed."""

import json
import signal

from fathomer.cli.train import training_recipe
from fathomer.config import Recipe
from tests.forked import Forked
from tests.tiny import tiny_examples, write_csv


def test_a_csv_file_becomes_a_model_that_can_be_evaluated(run, data, recipe, tmp_path):
    code, out, err = run("train", data, "--out", "model", "--recipe", recipe, "--seed", "3")
    assert code == 0, err
    assert err.startswith("data.csv: 60 examples read\nepoch 1/4  loss ")
    assert "held out" in out
    assert out.endswith("the model is in model\n")
    assert not (tmp_path / "model" / "checkpoint.safetensors").exists()
    config = json.loads((tmp_path / "model" / "config.json").read_text(encoding="utf-8"))
    assert config["recipe"]["train"]["seed"] == 3
    code, out, err = run("evaluate", "model", data)
    assert code == 0, err
    assert "data.csv        60" in out.replace(",", "")
    assert "positive" in out


def test_json_output_is_one_object_with_scores_and_history(run, data, recipe):
    code, out, _ = run("train", data, "--out", "m", "--recipe", recipe, "--baseline", "--json")
    found = json.loads(out)
    assert code == 0
    assert found["labels"] == ["negative", "positive"]
    assert found["epochs"] == len(found["history"]) == 4
    assert found["baseline"]["accuracy"] <= 1
    assert found["command"].startswith("fathomer train data.csv --out m")


def test_files_can_be_given_as_held_out_and_test_sets(run, data, recipe, tmp_path):
    write_csv(tmp_path / "other.csv", tiny_examples(20))
    arguments = ["--recipe", recipe, "--held-out", "other.csv", "--test", "other.csv", "--json"]
    code, out, _ = run("train", data, "--out", "m", *arguments)
    found = json.loads(out)
    assert code == 0
    assert found["held_out"]["examples"] == found["test"]["examples"] == 20
    stored = json.loads((tmp_path / "m" / "metrics.json").read_text(encoding="utf-8"))
    assert stored["test"] == found["test"]


def test_replacing_a_model_is_announced(run, model, data, recipe):
    _, _, err = run("train", data, "--out", model, "--recipe", recipe)
    assert err.startswith("model: the existing model will be replaced\n")


def test_brackets_in_a_file_name_are_printed_as_they_are(run, recipe, tmp_path):
    write_csv(tmp_path / "a[red].csv", tiny_examples())
    _, _, err = run("train", "a[red].csv", "--out", "new", "--recipe", recipe)
    assert err.startswith("a[red].csv: 60 examples read\n")


def test_training_twice_writes_identical_files(run, data, recipe, tmp_path):
    for out in ("one", "two"):
        assert run("train", data, "--out", out, "--recipe", recipe)[0] == 0
    for name in ("model.safetensors", "tokenizer.json", "config.json"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_the_default_recipe_is_that_of_the_corpus():
    assert training_recipe("demo", None, []).model.hidden_size == 64
    assert training_recipe("data.csv", None, ["train.epochs=2"], 5) == Recipe().updated(
        {"train": {"epochs": 2, "seed": 5}}
    )


def test_ctrl_c_saves_the_best_epoch_and_resume_continues(run, data, recipe, tmp_path):
    command = ["train", data, "--out", "model", "--recipe", recipe, "--set", "train.epochs=400"]
    with Forked(*command, folder=tmp_path) as process:
        while not (line := process.stderr.readline()).startswith("epoch 2/"):
            assert line, "training ended before it was interrupted"
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()
    assert process.returncode == 130, rest
    assert rest.endswith(
        "Stopped: model holds the best epoch so far; the same command with --resume continues.\n"
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
    assert "model/checkpoint.safetensors" in err
    assert checkpoint.read_bytes() == kept
    with Forked(*command, "--resume", folder=tmp_path) as resumed:
        resumed.stderr.readline()
        first = resumed.stderr.readline()
        resumed.kill()
    # Ctrl-C may have come before the last epoch was written to the checkpoint.
    assert first.startswith((f"epoch {done + 1}/400", f"epoch {done}/400"))


def test_ctrl_c_after_the_last_epoch_says_what_is_saved(run, data, recipe, monkeypatch, interrupt):
    command = ("train", data, "--out", "model", "--recipe", recipe, "--test", data)
    kept = "the best epoch so far; the same command with --resume continues"
    for place in ("fathomer.train.fit.calibrate", "fathomer.predictor.Predictor.evaluate"):
        with monkeypatch.context() as patch:
            patch.setattr(place, interrupt)
            code, _, err = run(*command)
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
