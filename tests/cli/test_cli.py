"""The command line as a whole: help, mistakes, moved commands, Ctrl-C."""

import sys

import pytest

from fathomer.cli import app

COMMANDS = [command.callback.__name__ for command in app.registered_commands if not command.hidden]


def test_the_help_lists_every_command(run):
    code, out, _ = run("--help")
    assert code == 0
    for command in [*COMMANDS, "data"]:
        assert f"\n  {command} " in out
    assert "bench" not in out
    assert "experiment" not in out


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_a_command_gives_an_example(run, command):
    code, out, _ = run(command, "--help")
    assert code == 0
    assert "Example: " in out
    assert f"fathomer {command}" in out.partition("Example: ")[2]


def test_no_command_prints_the_help(run):
    assert run()[:2] == run("--help")[:2]


def test_the_version_is_printed(run):
    assert run("--version")[1] == "fathomer 0.1.0\n"


@pytest.mark.parametrize("arguments", [[], ["--help"], ["serve", "model", "--json"], ["--", "-x"]])
@pytest.mark.parametrize(
    ("command", "now"),
    [("bench", "python -m benchmarks speed|serving"), ("experiment", "python -m experiments")],
)
def test_a_moved_command_says_where_it_went(run, command, now, arguments):
    code, out, err = run(command, *arguments)
    assert (code, out) == (2, "")
    assert err.startswith(f"fathomer: {command} has moved: ")
    assert now in err
    assert err.count("\n") == 1


TRAIN = ["train", "data.csv", "--out", "new"]
PREDICT = ["predict", "model", "data.csv"]


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["train", "no.csv", "--out", "new"], ["no.csv: no such file"]),
        (["train", "dem", "--out", "new"], ["dem: ", "did you mean 'demo'?"]),
        (["train", "empty.csv", "--out", "new"], ["empty.csv: ", "empty"]),
        ([*TRAIN, "--text-column", "review"], ["data.csv, line 1: ", "'review'", "--text-column"]),
        (["train", "one.csv", "--out", "new"], ["only one label ('a')"]),
        ([*TRAIN, "--set", "model.max_dept=3"], ["'max_dept'", "did you mean 'max_depth'?"]),
        ([*TRAIN, "--set", "modle.depth=hard"], ["'modle'", "did you mean 'model'?"]),
        ([*TRAIN, "--set", "epochs=3"], ["--set epochs=3: ", "did you mean train.epochs?"]),
        ([*TRAIN, "--recipe", "no.toml"], ["no.toml: no such recipe"]),
        ([*TRAIN, "--vectors", "no.txt"], ["no.txt: no such file"]),
        ([*TRAIN, "--vectors", "bad.txt"], ["bad.txt, line 2: ", "found 2"]),
        ([*TRAIN, "--model", "fathomr"], ["'fathomr'", "did you mean 'fathomer'?"]),
        (
            [*TRAIN, "--track", "tensorbord"],
            ["--track tensorbord: ", "did you mean 'tensorboard'?"],
        ),
        ([*TRAIN, "--test", "one.csv"], ["label 'a' ", "2 of 2 examples"]),
        ([*TRAIN, "--minutes", "-1"], ["minutes must be at least 0, not -1"]),
        ([*TRAIN, "--resume"], ["new/checkpoint.safetensors: "]),
        (["train", "data.csv", "--out", "."], [".: holds other files"]),
        (["train", "data.csv", "--out", "data.csv"], ["data.csv: is a file"]),
        (["train", "data.csv", "--out", "data.csv/m"], ["data.csv/m: cannot be written to (Not a"]),
        (["train", "data.csv"], ["Missing option '--out'. See fathomer train --help."]),
        (["train", "demo", "--folds", "5", "--out", "new"], ["demo ", "--folds"]),
        (["evaluate", "nowhere", "data.csv"], ["nowhere: no such folder"]),
        (["evaluate", ".", "data.csv"], [".: not a Fathomer model", "config.json"]),
        (["evaluate", "data.csv", "model"], ["data.csv: a file where a model's folder "]),
        (["evaluate", "model", "one.csv"], ["label 'a' ", "2 of 2 examples"]),
        (["predict", "model", "no.txt"], ["no.txt: no such file; ", "fathomer explain"]),
        (["predict", "model", "model"], ["model: is a folder"]),
        (["predict", "model", "list.json"], ["list.json: a JSON file; "]),
        (["predict", "model", "book.xlsx"], ["book.xlsx: not an Excel workbook, or damaged"]),
        (["predict", "model", "latin.txt"], ["latin.txt, line 1: ", "0xe9"]),
        (["predict", "model", "latin.txt", "--encoding", "klingon"], ["'klingon'"]),
        ([*PREDICT, "--text-column", "review"], ["data.csv, line 1: ", "'review'"]),
        ([*PREDICT, "--resume"], ["--resume ", "--out"]),
        ([*PREDICT, "--out", "-"], ["--out needs a file"]),
        ([*PREDICT, "--out", "model"], ["model: is a folder; --out needs a file"]),
        ([*PREDICT, "--out", "data.csv"], ["data.csv: is the input"]),
        ([*PREDICT, "--out", "no/a.csv"], ["no: no such folder"]),
        ([*PREDICT, "--out", "a.xlsx"], ["a.xlsx: ", "data.csv are a .csv or .parquet file"]),
        ([*PREDICT, "--out", "new.jsonl"], ["new.jsonl: ", "data.csv are a .csv or .parquet"]),
        (["predict", "model", "latin.txt", "--out", "a.csv"], ["a.csv: ", "are a .jsonl file"]),
        ([*PREDICT, "--out", "a.csv", "--max-depth", "9"], ["max_depth 9; use 1..4"]),
        (["explain", "model", "good", "--max-depth", "9"], ["max_depth 9; use 1..4"]),
        ([*PREDICT, "--depth-budget", "2"], ["no table of depth budgets; ", "--target-depth"]),
        ([*PREDICT, "--out", "a.csv", "--depth-budget", "2"], ["no table of depth budgets"]),
        ([*TRAIN, "--target-depth", "0.5"], ["target_depth must be at least 1, not 0.5"]),
        ([*TRAIN, "--target-depth", "5"], ["target_depth 5 is above model.max_depth; use 1 to 3"]),
        (["explain", "model", "good", "--html", "no/page.html"], ["no/page.html: No such file "]),
        (["frobnicate"], ["No such command 'frobnicate'. See fathomer --help."]),
    ],
)
def test_a_mistake_is_one_clear_line(run, model, data, tmp_path, arguments, parts):
    (tmp_path / "empty.csv").write_text("", encoding="utf-8")
    (tmp_path / "latin.txt").write_bytes(b"caf\xe9")
    (tmp_path / "list.json").write_text("[]", encoding="utf-8")
    (tmp_path / "book.xlsx").write_bytes(b"PK\x03\x04")
    (tmp_path / "one.csv").write_text("text,label\nx,a\ny,a\n", encoding="utf-8")
    (tmp_path / "bad.txt").write_text("a 1 2 3\nb 1 2\nc 1 2 3\nd 1 2 3\n", encoding="utf-8")
    code, out, err = run(*arguments)
    line = err.splitlines()[-1]
    assert line.startswith("fathomer: ")
    assert [part for part in parts if part not in line] == []
    assert "Traceback" not in err
    assert (code, out) == (2, "")
    assert not (tmp_path / "new").exists()


def test_in_a_terminal_a_mistake_is_broken_between_words(run, data, tmp_path, monkeypatch):
    command = ("train", "reviews.csv", "--out", "new")
    header = "identifier of the review,title of the review,review text,sentiment"
    (tmp_path / "reviews.csv").write_text(f"{header}\n1,A,good,positive\n", encoding="utf-8")
    _, _, plain = run(*command)
    assert plain.count("\n") == 1
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    _, _, shown = run(*command)
    assert max(map(len, shown.splitlines())) <= 80 < len(plain)
    assert shown.split() == plain.split()


def test_a_programming_error_is_loud(run, monkeypatch, model):
    monkeypatch.setattr("fathomer.predictor.Predictor.predict", lambda *a, **k: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        run("explain", model, "good")


def test_ctrl_c_with_nothing_to_save_is_one_line(run, monkeypatch, interrupt):
    monkeypatch.setattr("fathomer.cli.data.print_line", interrupt)
    assert run("data", "list") == (130, "", "fathomer: stopped\n")
