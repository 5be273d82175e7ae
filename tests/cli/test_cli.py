import json
import signal
import subprocess
import sys

import pytest

from fathomer.config import Recipe
from tests.tiny import TINY, tiny_artifact, tiny_examples, write_csv


@pytest.fixture
def recipe(tmp_path):
    path = tmp_path / "tiny.toml"
    path.write_text(TINY.to_toml(), encoding="utf-8")
    return str(path)


@pytest.fixture
def model(tmp_path):
    tiny_artifact().save(tmp_path / "model")
    return "model"


@pytest.fixture
def data(tmp_path):
    write_csv(tmp_path / "data.csv", tiny_examples())
    return "data.csv"


def test_from_a_csv_to_an_answer(run, data, recipe, tmp_path):
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


def test_train_prints_one_json_object(run, data, recipe):
    code, out, _ = run("train", data, "--out", "m", "--recipe", recipe, "--baseline", "--json")
    found = json.loads(out)
    assert code == 0
    assert found["labels"] == ["negative", "positive"]
    assert found["epochs"] == len(found["history"]) == 4
    assert found["baseline"]["accuracy"] <= 1
    assert found["command"].startswith("fathomer train data.csv --out m")


def test_own_files_may_be_held_out_and_tested_on(run, data, recipe, tmp_path):
    write_csv(tmp_path / "other.csv", tiny_examples(20))
    arguments = ["--recipe", recipe, "--held-out", "other.csv", "--test", "other.csv", "--json"]
    code, out, _ = run("train", data, "--out", "m", *arguments)
    found = json.loads(out)
    assert code == 0
    assert found["held_out"]["examples"] == found["test"]["examples"] == 20
    stored = json.loads((tmp_path / "m" / "metrics.json").read_text(encoding="utf-8"))
    assert stored["test"] == found["test"]


def test_evaluate_prints_the_agreed_keys(run, model, data):
    code, out, _ = run("evaluate", model, data, "--json")
    found = json.loads(out)
    assert code == 0
    assert {"accuracy", "macro_f1", "examples", "mean_depth", "per_label"} <= set(found)
    assert set(found["per_label"]) == {"negative", "positive"}
    assert found["examples"] == 60


def test_explain_shows_words_over_depths(run, model, tmp_path):
    code, out, _ = run("explain", model, "The film was lovely.", "--html", "page.html")
    lines = out.splitlines()
    assert code == 0
    assert lines[0].startswith("positive  ")
    assert lines[2].split() == ["The", "film", "was", "lovely", "."]
    assert len(lines[3].split()) == 5
    assert "\x1b" not in out
    assert "lovely" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_help_names_every_command_and_gives_examples(run):
    code, out, _ = run("--help")
    assert code == 0
    for command in ("check", "train", "evaluate", "predict", "explain", "threshold"):
        assert f"\n  {command} " in out
        code, text, _ = run(command, "--help")
        assert code == 0
        assert "Example: " in text
        assert f"fathomer {command}" in text


def test_no_command_prints_the_help(run):
    assert run()[:2] == run("--help")[:2]


def test_the_version_is_printed(run):
    assert run("--version")[1] == "fathomer 0.1.0\n"


TRAIN = ["train", "data.csv", "--out", "new"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "no.csv", "--out", "new"], "no.csv: no such file"),
        (["train", "dem", "--out", "new"], "dem: no such file or corpus; did you mean 'demo'?"),
        (["train", "empty.csv", "--out", "new"], "empty.csv: the file is empty"),
        (
            [*TRAIN, "--text-column", "review"],
            "data.csv, line 1: no column 'review' in the header ('text', 'label'); "
            "name yours with --text-column",
        ),
        (
            ["train", "one.csv", "--out", "new"],
            "only one label ('a'); a classifier needs examples of at least two labels",
        ),
        (
            [*TRAIN, "--set", "model.max_dept=3"],
            "unknown setting 'max_dept'; did you mean 'max_depth'?",
        ),
        ([*TRAIN, "--set", "modle.depth=hard"], "unknown section 'modle'; did you mean 'model'?"),
        (
            [*TRAIN, "--set", "epochs=3"],
            "--set epochs=3: expected section.name=value; did you mean train.epochs?",
        ),
        ([*TRAIN, "--recipe", "no.toml"], "no.toml: no such recipe"),
        ([*TRAIN, "--vectors", "no.txt"], "no.txt: no such file"),
        (
            [*TRAIN, "--vectors", "bad.txt"],
            "bad.txt, line 2: expected 3 numbers, found 2",
        ),
        ([*TRAIN, "--model", "fathomr"], "unknown model 'fathomr'; did you mean 'fathomer'?"),
        (
            [*TRAIN, "--test", "one.csv"],
            "label 'a' does not occur in the training data, but in 2 of 2 examples here; choose",
        ),
        (
            [*TRAIN, "--baseline", "--set", "train.held_out=0"],
            "--baseline needs texts to be scored on: give --test or --held-out",
        ),
        (
            ["train", "two.csv", "--out", "new", "--baseline"],
            "--baseline needs texts to be scored on: give --test or --held-out",
        ),
        ([*TRAIN, "--resume"], "new/checkpoint.safetensors: no checkpoint to resume from; "),
        (["train", "data.csv", "--out", "."], ".: holds other files; choose an empty or a new"),
        (["train", "data.csv", "--out", "data.csv"], "data.csv: is a file; a model needs a folder"),
        (["train", "data.csv"], "Missing option '--out'. See fathomer train --help."),
        (["evaluate", "nowhere", "data.csv"], "nowhere: no such folder"),
        (["evaluate", ".", "data.csv"], ".: not a Fathomer model (it has no config.json)"),
        (
            ["evaluate", "model", "one.csv"],
            "label 'a' does not occur in the training data, but in 2 of 2 examples here; choose",
        ),
        (
            ["predict", "model", "data.csv", "--out", "a.xlsx"],
            "a.xlsx: the answers to data.csv are a .csv file; name it so",
        ),
        (["evaluate", "data.csv", "model"], "data.csv: a file where a model's folder was expected"),
        (["predict", "model", "no.txt"], "no.txt: no such file; one text is answered by fathomer"),
        (["predict", "model", "list.json"], "list.json: a JSON file; write one object per line"),
        (["predict", "model", "book.xlsx"], "book.xlsx: not a text file; save it as .csv"),
        (["predict", "model", "data.csv", "--out", "-"], "--out is a file; without it, answers go"),
        (["predict", "model", "model"], "model: a folder"),
        (["predict", "model", "latin.txt"], "latin.txt, line 1: not UTF-8 (byte 0xe9); pass the"),
        (
            ["predict", "model", "latin.txt", "--encoding", "klingon"],
            "unknown encoding 'klingon'; ",
        ),
        (
            ["predict", "model", "data.csv", "--text-column", "review"],
            "data.csv, line 1: no column 'review' in the header ('text', 'label'); name yours with",
        ),
        (["predict", "model", "data.csv", "--resume"], "--resume continues a file of answers: "),
        (["predict", "model", "data.csv", "--out", "model"], "model: is a folder; --out is a file"),
        (["predict", "model", "data.csv", "--out", "data.csv"], "data.csv: is the input itself; "),
        (
            ["predict", "model", "data.csv", "--out", "new.jsonl"],
            "new.jsonl: the answers to data.csv are a .csv file; name it so",
        ),
        (
            ["predict", "model", "latin.txt", "--out", "a.csv"],
            "a.csv: the answers to latin.txt are",
        ),
        (["predict", "model", "data.csv", "--out", "no/a.csv"], "no: no such folder"),
        (
            ["predict", "model", "data.csv", "--out", "a.csv", "--max-depth", "9"],
            "max_depth 9; use 1..4",
        ),
        (["train", "data.csv", "--out", "data.csv/m"], "data.csv/m: cannot be written to (Not a"),
        (
            ["explain", "model", "good", "--html", "no/page.html"],
            "no/page.html: No such file or directory",
        ),
        (
            ["train", "demo", "--folds", "5", "--out", "new"],
            "demo has its own test set; remove",
        ),
        (["explain", "model", "good", "--max-depth", "9"], "max_depth 9; use 1..4"),
        (["frobnicate"], "No such command 'frobnicate'. See fathomer --help."),
    ],
)
def test_a_mistake_is_one_clear_line(run, model, data, tmp_path, arguments, message):
    (tmp_path / "empty.csv").write_text("", encoding="utf-8")
    (tmp_path / "latin.txt").write_bytes(b"caf\xe9")
    (tmp_path / "list.json").write_text("[]", encoding="utf-8")
    (tmp_path / "book.xlsx").write_bytes(b"PK\x03\x04")
    (tmp_path / "one.csv").write_text("text,label\nx,a\ny,a\n", encoding="utf-8")
    (tmp_path / "two.csv").write_text("text,label\ngood,a\nbad,b\n", encoding="utf-8")
    (tmp_path / "bad.txt").write_text("a 1 2 3\nb 1 2\nc 1 2 3\nd 1 2 3\n", encoding="utf-8")
    code, out, err = run(*arguments)
    assert err.splitlines()[-1].startswith(f"fathomer: {message}")
    assert "Traceback" not in err
    assert (code, out) == (2, "")
    assert not (tmp_path / "new").exists()


def test_scoring_the_training_file_itself_is_warned_of(run, data, recipe):
    assert run("train", data, "--out", "new", "--recipe", recipe)[0] == 0
    code, _, err = run("evaluate", "new", f"./{data}")
    assert code == 0
    assert err == "warning: the model was trained on this very file; the scores say little\n"


def test_a_model_that_is_replaced_is_named(run, model, data, recipe):
    _, _, err = run("train", data, "--out", model, "--recipe", recipe)
    assert err.startswith("model: the model there will be replaced\n")


def test_brackets_in_a_file_name_are_just_brackets(run, recipe, tmp_path):
    write_csv(tmp_path / "a[red].csv", tiny_examples())
    _, _, err = run("train", "a[red].csv", "--out", "new", "--recipe", recipe)
    assert err.startswith("a[red].csv: 60 examples read\n")


def test_bytes_that_are_no_text_can_be_explained(run, model):
    code, out, _ = run("explain", model, "caf\udce9 good", "--json", "--html", "page.html")
    assert code == 0
    assert json.loads(out)["words"][-1]["text"] == "good"


def test_a_programming_error_is_loud(run, monkeypatch, model):
    monkeypatch.setattr("fathomer.predictor.Predictor.predict", lambda *a, **k: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        run("explain", model, "good")


def test_ctrl_c_keeps_the_best_model_and_resume_continues(data, recipe, tmp_path):
    command = [sys.executable, "-m", "fathomer", "train", data, "--out", "model"]
    command += ["--recipe", recipe, "--set", "train.epochs=400"]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    with process:
        while not (line := process.stderr.readline()).startswith("epoch 2/"):
            assert line, "training ended before it was interrupted"
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()
    assert process.returncode == 130, rest
    assert (
        "Stopped: model holds the best epoch so far; the same command with --resume continues."
        in rest
    )
    assert "Traceback" not in rest
    metrics = json.loads((tmp_path / "model" / "metrics.json").read_text(encoding="utf-8"))
    done = metrics["epochs"]
    assert 2 <= done < 400
    checkpoint = tmp_path / "model" / "checkpoint.safetensors"
    kept = checkpoint.read_bytes()
    again = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (again.returncode, again.stderr) == (
        2,
        "fathomer: model: holds a stopped training; continue it with --resume, delete "
        "model/checkpoint.safetensors, or choose another folder\n",
    )
    assert checkpoint.read_bytes() == kept
    resumed = subprocess.Popen(
        [*command, "--resume"], cwd=tmp_path, stderr=subprocess.PIPE, text=True
    )
    with resumed:
        resumed.stderr.readline()
        first = resumed.stderr.readline()
        resumed.kill()
    # Ctrl-C may have come before the last epoch was written to the checkpoint.
    assert first.startswith((f"epoch {done + 1}/400", f"epoch {done}/400"))


def interrupt(*_, **__):
    raise KeyboardInterrupt


def test_ctrl_c_where_there_is_nothing_to_keep_is_one_line(run, monkeypatch):
    monkeypatch.setattr("fathomer.cli.data.print_line", interrupt)
    assert run("data", "list") == (130, "", "fathomer: stopped\n")


def test_ctrl_c_after_the_last_epoch_says_what_is_kept(run, data, recipe, monkeypatch):
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
    with monkeypatch.context() as patch:
        patch.setattr("fathomer.predictor.Predictor.evaluate", interrupt)
        code, _, err = run(*command, "--model", "tfidf")
    kept = "the model; fathomer evaluate scores it"
    assert (code, err.splitlines()[-1]) == (130, f"Stopped: model holds {kept}.")
    assert run("evaluate", "model", data)[0] == 0


def test_training_twice_gives_the_same_file(run, data, recipe, tmp_path):
    for out in ("one", "two"):
        assert run("train", data, "--out", out, "--recipe", recipe)[0] == 0
    for name in ("model.safetensors", "tokenizer.json", "config.json"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_a_finished_training_has_nothing_to_resume(run, model, data):
    code, _, err = run("train", data, "--out", model, "--resume")
    assert code == 2
    assert err == "fathomer: model: the training there is finished; there is nothing to resume\n"


def test_the_shipped_recipe_of_a_corpus_is_its_default():
    from fathomer.cli.train import _recipe

    assert _recipe("demo", None, [], None).model.hidden_size == 64
    assert _recipe("data.csv", None, ["train.epochs=2"], 5) == Recipe().updated(
        {"train": {"epochs": 2, "seed": 5}}
    )
