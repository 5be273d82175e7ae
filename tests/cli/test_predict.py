"""The command predict: lines, pipes and csv files; nothing is lost when it is interrupted."""

import errno
import json
import os
import signal
import sys
import time
from dataclasses import replace
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest

from fathomer.locks import locked
from tests.forked import Forked
from tests.tiny import tiny_artifact, tiny_examples, write_csv


def test_every_line_is_answered(run, model, tmp_path):
    (tmp_path / "texts.txt").write_text("The film was lovely.\r\n\nbad\x85 one", encoding="utf-8")
    code, out, _ = run("predict", model, "texts.txt", "--depths")
    answers = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert len(answers) == 3
    assert answers[0]["label"] == "positive"
    assert answers[0]["words"][2] == {
        "text": "was",
        "start": 9,
        "end": 12,
        "depth": answers[0]["words"][2]["depth"],
    }
    assert answers[1]["words"] == []


def test_standard_input_is_answered(run, model):
    code, out, err = run("predict", model, piped=b"good film\nb\xffd\n")
    assert (code, err) == (0, "")
    answers = [json.loads(line) for line in out.splitlines()]
    assert len(answers) == 2
    assert all(set(answer) == {"label", "probabilities", "truncated"} for answer in answers)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_a_pipe_is_answered_as_its_lines_arrive(model, tmp_path, encoding):
    command = ["predict", model, "--depths", "--encoding", encoding]
    content = "The film was lövely.\r\nThe book was\n\nlast".encode(encoding)
    first = content.index("book".encode(encoding.removesuffix("-sig") + "-le" * ("16" in encoding)))
    with Forked(*command, folder=tmp_path, pipes=True) as process:
        process.stdin.buffer.write(content[:first])
        process.stdin.flush()
        answers = [process.stdout.readline()]  # comes before anything else is written
        process.stdin.buffer.write(content[first:])
        process.stdin.close()
        answers += process.stdout.readlines()
    assert process.returncode == 0
    words = [[word["text"] for word in json.loads(answer)["words"]] for answer in answers]
    assert words == [["The", "film", "was", "lövely", "."], ["The", "book", "was"], [], ["last"]]


def test_a_csv_file_without_out_is_answered_in_lines_of_json(run, model, tmp_path):
    (tmp_path / "t.csv").write_text('id,review\n1,"good\nfilm"\n2,bad\n', encoding="utf-8")
    code, out, err = run("predict", model, "t.csv", "--text-column", "Review", "--depths")
    answers = [json.loads(line) for line in out.splitlines()]
    assert (code, err) == (0, "")
    assert [len(answer["words"]) for answer in answers] == [2, 1]


def test_a_csv_file_becomes_a_csv_file(run, model, tmp_path):
    write_csv(tmp_path / "t.csv", tiny_examples(10))
    code, out, err = run("predict", model, "t.csv", "--out", "answers.csv", "--depths")
    assert (code, out, err) == (0, "", "answers.csv: 10 texts answered\n")
    lines = (tmp_path / "answers.csv").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "text,label,predicted_label,probability,mean_depth"
    assert lines[1].startswith("The ")
    assert len(lines) == 11
    code, out, err = run("predict", model, "t.csv", "--out", "answers.csv")
    assert err.startswith("answers.csv: the existing file will be replaced\n")
    assert "mean_depth" not in (tmp_path / "answers.csv").read_text(encoding="utf-8")


def test_answers_to_a_pipe_can_be_written_to_a_file(run, model, tmp_path):
    code, _, err = run("predict", model, "-", "--out", "a.jsonl", piped=b"good\n\xff\n")
    assert (code, err) == (0, "a.jsonl: 2 texts answered\n")
    lines = (tmp_path / "a.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["truncated"] for line in lines] == [False, False]


def test_a_run_cannot_be_resumed_with_another_model(run, model, tmp_path):
    write_csv(tmp_path / "t.csv", tiny_examples(1000))
    with (tmp_path / "t.csv").open("ab") as file:
        file.write(b"bad row\n")
    assert run("predict", model, "t.csv", "--out", "a.csv")[0] == 2
    config = tmp_path / "model" / "config.json"
    config.write_text(config.read_text().replace('"seed": 0', '"seed": 1'), encoding="utf-8")
    code, _, err = run("predict", model, "t.csv", "--out", "a.csv", "--resume")
    assert code == 2
    assert err.startswith("fathomer: a.csv.partial: was made with another model; ")


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_run_is_resumed_without_loss(run, model, tmp_path, end):
    write_csv(tmp_path / "t.csv", tiny_examples(10_000))
    partial = tmp_path / "a.csv.partial"
    with Forked("predict", model, "t.csv", "--out", "a.csv", folder=tmp_path) as process:
        while not (partial.exists() and partial.stat().st_size):
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.01)
        process.send_signal(end)
        messages = process.stderr.read()
    assert process.returncode == (130 if end == signal.SIGINT else -9)
    if end == signal.SIGINT:
        assert messages == (
            "Stopped: a.csv.partial holds the answers so far; "
            "the same command with --resume continues.\n"
        )
    assert not (tmp_path / "a.csv").exists()
    stopped_at = partial.read_bytes()
    code, _, err = run("predict", model, "t.csv", "--out", "a.csv", "--resume")
    assert (code, err) == (0, "a.csv: 10,000 texts answered\n")
    run("predict", model, "t.csv", "--out", "straight.csv")
    straight = (tmp_path / "straight.csv").read_bytes()
    assert straight.startswith(stopped_at)
    assert len(stopped_at) < len(straight)
    assert (tmp_path / "a.csv").read_bytes() == straight
    assert {path.name for path in tmp_path.iterdir()} == {"model", "t.csv", "a.csv", "straight.csv"}


def test_a_pipe_can_be_named_as_a_file(run, model):
    source, target = os.pipe()
    os.write(target, b"good film\n")
    os.close(target)
    code, out, err = run("predict", model, f"/dev/fd/{source}")
    os.close(source)
    assert (code, err) == (0, "")
    assert json.loads(out)["label"] in ("negative", "positive")


def test_a_closed_standard_input_is_reported(run, model, monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    assert run("predict", model) == (2, "", "fathomer: standard input is closed; name a file\n")


def test_an_output_that_is_a_link_stays_a_link(run, model, tmp_path):
    (tmp_path / "texts.txt").write_text("good film\n")
    (tmp_path / "real.jsonl").write_text("old\n")
    (tmp_path / "link.jsonl").symlink_to("real.jsonl")
    code, _, err = run("predict", model, "texts.txt", "--out", "link.jsonl")
    assert code == 0, err
    assert (tmp_path / "link.jsonl").is_symlink()
    assert "label" in json.loads((tmp_path / "real.jsonl").read_text())


def test_answers_do_not_replace_a_device(run, model, tmp_path):
    (tmp_path / "texts.txt").write_text("good film\n")
    code, _, err = run("predict", model, "texts.txt", "--out", "/dev/null")
    assert code == 2
    assert err.startswith("fathomer: /dev/null: not a regular file; ")


@pytest.mark.parametrize("encoding", ["cp1252", "ascii"])
def test_answers_are_utf_8_in_any_locale(run, model, monkeypatch, encoding):
    printed = BytesIO()
    monkeypatch.setattr(sys, "stdout", TextIOWrapper(printed, encoding=encoding))
    code, _, err = run("predict", model, "--depths", piped="good 😀 film\n".encode())
    assert (code, err) == (0, "")
    sys.stdout.flush()
    words = json.loads(printed.getvalue().decode("utf-8"))["words"]
    assert [word["text"] for word in words] == ["good", "😀", "film"]


def test_a_pipe_in_another_encoding_than_named_is_one_line(run, model):
    code, out, err = run("predict", model, "-", "--encoding", "utf-16", piped=b"good film\n" * 3)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "standard input" in err
    code, out, _ = run(
        "predict", model, "-", "--encoding", "utf-16", piped="good\n".encode("utf-16")
    )
    assert (code, len(out.splitlines())) == (0, 1)


def test_formulas_are_disarmed_unless_raw_cells_are_asked_for(run, model, tmp_path):
    (tmp_path / "in.csv").write_text("=id,text\n=1+1,good\n-3.5,@cmd\n", encoding="utf-8")
    run("predict", model, "in.csv", "--out", "out.csv")
    lines = (tmp_path / "out.csv").read_text(encoding="utf-8").splitlines()
    assert [line.split(",")[:2] for line in lines] == [
        ["'=id", "text"], ["'=1+1", "good"], ["-3.5", "'@cmd"]
    ]  # fmt: skip
    run("predict", model, "in.csv", "--out", "raw.csv", "--raw-cells")
    raw = (tmp_path / "raw.csv").read_text(encoding="utf-8").splitlines()
    assert [line.split(",")[0] for line in raw] == ["=id", "=1+1", "-3.5"]


def test_a_full_disk_behind_standard_output_is_named(run, model, data, monkeypatch):
    def fill_up(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(sys.modules["fathomer.cli.predict"], "print_json", fill_up)
    code, out, err = run("predict", model, data)
    told = "fathomer: standard output: No space left on device; make room; with --out, --resume"
    assert (code, out, err.startswith(told)) == (2, "", True)


def test_a_second_run_on_ray_into_one_folder_is_refused(run, model, data):
    pytest.importorskip("ray", reason="the extra scale is not installed")
    with locked(Path("answers")):
        code, _, err = run("predict", model, data, "--out", "answers", "--engine", "ray")
    assert (code, "answers: another process is writing it" in err) == (2, True)
    assert not Path("answers").exists()


def test_the_file_of_answers_keeps_its_mode(run, model, tmp_path):
    (tmp_path / "in.csv").write_text("text\ngood\n", encoding="utf-8")
    (tmp_path / "out.csv").touch(0o600)
    run("predict", model, "in.csv", "--out", "out.csv")
    assert (tmp_path / "out.csv").stat().st_mode & 0o777 == 0o600


def test_control_characters_do_not_reach_the_terminal(run, tmp_path):
    label = "\x1b]0;title\x07\x9b2J\u202e"
    replace(tiny_artifact(), labels=("negative", label)).save(tmp_path / "model")
    write_csv(tmp_path / "data.csv", tiny_examples(8))
    shown = run("evaluate", "model", "data.csv")
    answered = run("predict", "model", "-", piped=b"The film was good.\n")
    for _, out, err in (shown, answered):
        assert not set("\x1b\x07\x9b\u202e") & set(out + err)
    assert json.loads(answered[1])["label"] == label


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["none/*.csv", "--out", "a", "--engine", "ray"], "none/*.csv: no such file"),
        (["empty", "--out", "a", "--engine", "ray"], "empty: the folder has no .csv, .tsv, .jsonl"),
        (["data.csv", "--engine", "ray"], "--engine ray needs a folder for the answers"),
        (["data.csv", "--out", "data.csv", "--engine", "ray"], "data.csv: is a file; --engine ray"),
        (["data.csv", "--out", "a", "--engine", "rey"], "--engine rey: did you mean 'ray'?"),
        (["data.csv", "--workers", "2"], "--address and --workers belong to --engine ray"),
        (
            ["data.csv", "--out", "a", "--engine", "ray", "--text-column", "body"],
            "no column 'body'; the columns are text, label; name",
        ),
        (
            ["data.csv", "--out", "a", "--engine", "ray", "--address", "127.0.0.1:1"],
            "--address 127.0.0.1:1: there is no Ray cluster; start one with",
        ),
    ],
)
def test_mistakes_with_ray_are_one_line_and_nothing_is_written(
    run, model, data, options, message, tmp_path
):
    pytest.importorskip("ray", reason="ray is not installed: pip install 'fathomer[scale]'")
    (tmp_path / "empty").mkdir()
    code, out, err = run("predict", model, *options)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1
    assert not (tmp_path / "a").exists()
