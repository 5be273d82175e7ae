"""Training with unlabelled texts, a teacher or soft labels."""

import json

import pytest

from fathomer.text.sources import words_of
from tests.text.encoders import write_encoder
from tests.tiny import tiny_examples, write_csv

pytest.importorskip("fasttext", reason="the extra vectors is not installed")


@pytest.fixture
def options(recipe, tmp_path):
    write_csv(tmp_path / "test.csv", tiny_examples(20))
    more = ["The hotel was splendid ."] * 3 + ["Splendid !"] * 3
    (tmp_path / "more.txt").write_text("\n".join(more), encoding="utf-8")
    (tmp_path / "more.jsonl").write_text('{"text": "a splendid book"}\n', encoding="utf-8")
    return ["--recipe", recipe, "--no-baseline", "--json", "--set", "train.epochs=2"]


def test_vectors_are_trained_on_training_and_unlabelled_texts(run, data, options, tmp_path):
    more = ["--unlabelled", "more.txt", "--unlabelled", "more.jsonl"]
    code, out, err = run("train", data, "--out", "m", *more, *options)
    assert code == 0, err
    assert "unlabelled: 7 texts\n" in err
    words = words_of(tmp_path / "m.vectors.safetensors", count=99)
    assert {"splendid", "good"} <= set(words)
    found = json.loads(out)
    assert found["unlabelled"]["texts"] == 7
    assert found["vectors"]["file"] == "m.vectors.safetensors"
    stored = json.loads((tmp_path / "m" / "metrics.json").read_text(encoding="utf-8"))
    assert stored["unlabelled"] == found["unlabelled"]
    code, again, err = run("train", data, "--out", "m", "--overwrite", *more, *options)
    assert "trained before" in err
    assert json.loads(again)["data"] == found["data"]


def test_they_are_joined_with_the_given_vectors(run, data, options, tmp_path):
    (tmp_path / "own.txt").write_text("good 1 2\nbad 2 1\n", encoding="utf-8")
    more = ["--unlabelled", "more.txt", "--vectors", "own.txt"]
    code, out, err = run("train", data, "--out", "m", *more, *options)
    assert code == 0, err
    found = json.loads(out)["vectors"]
    assert found["file"] == "own.txt + m.vectors.safetensors"
    assert (len(found["subtracted"]), len(found["scale"])) == (152, 2)


def test_texts_of_the_test_and_held_out_sets_are_left_out(run, options, tmp_path):
    rows = [f'"text number {n} is {w}",{w}\n' for n in range(20) for w in ("good", "bad")]
    (tmp_path / "all.csv").write_text("text,label\n" + "".join(rows), encoding="utf-8")
    (tmp_path / "t.csv").write_text('text,label\n"kept secret",good\n', encoding="utf-8")
    texts = [row.partition('",')[0].strip('"') for row in rows]
    more = "\n".join([*texts, "Kept  secret", "kept secret", "new"])
    (tmp_path / "same.txt").write_text(more, encoding="utf-8")
    arguments = ["--unlabelled", "same.txt", "--test", "t.csv", *options]
    code, out, err = run("train", "all.csv", "--out", "m", *arguments)
    assert code == 0, err
    assert "33 texts; 10 left out because they are in a test or held-out set" in err
    assert json.loads(out)["unlabelled"]["left_out"] == 10  # 2 of the test set, 8 held out
    assert "secret" not in words_of(tmp_path / "m.vectors.safetensors", count=999)


def test_a_student_learns_from_a_teacher_on_labelled_and_unlabelled_texts(
    run, data, options, tmp_path
):
    write_encoder(tmp_path / "teacher", labels=["positive", "negative"])
    arguments = ["--teacher", "teacher", "--unlabelled", "more.txt", *options]
    code, out, err = run("train", data, "--out", "m", *arguments)
    assert code == 0, err
    found = json.loads(out)
    assert found["labels"] == ["negative", "positive"]
    assert found["teacher"]["texts"] == 48 + 6
    answers = (tmp_path / "m.teacher.jsonl").read_text(encoding="utf-8")
    assert len(answers.splitlines()) > 10
    (tmp_path / "teacher" / "tokenizer.json").unlink()  # everything is known already
    code, again, err = run("train", data, "--out", "m", "--overwrite", *arguments)
    assert code == 0, err
    assert json.loads(again)["data"] == found["data"]
    code, _, err = run("predict", "m", "test.csv")
    assert code == 0, err


def test_soft_labels_come_from_a_file(run, data, options, tmp_path):
    rows = [f"{int(e.label == 'positive')},{int(e.label != 'positive')}\n" for e in tiny_examples()]
    (tmp_path / "soft.csv").write_text("positive,negative\n" + "".join(rows), encoding="utf-8")
    code, out, err = run("train", data, "--out", "m", "--soft-labels", "soft.csv", *options)
    assert code == 0, err
    assert json.loads(out)["soft_labels"] == "soft.csv"
    more = ["--soft-labels", "soft.csv", "--unlabelled", "more.txt"]
    code, _, err = run("train", data, "--out", "m", "--overwrite", *more, *options)
    assert (code, "needs a column of texts" in err) == (2, True)
    rows = [f'"{e.text}",{row}' for e, row in zip(tiny_examples(), rows, strict=True)]
    (tmp_path / "soft.csv").write_text("text,positive,negative\n" + "".join(rows), encoding="utf-8")
    code, _, err = run("train", data, "--out", "m", "--overwrite", *more, *options)
    assert (code, "soft.csv: 6 texts have no row" in err) == (2, True)
    assert not (tmp_path / "m.vectors.safetensors").exists()  # found before the vectors


@pytest.mark.parametrize("option", [["--vectors", "wordllama"], ["--unlabelled", "more.txt"]])
def test_a_model_that_goes_on_learning_keeps_its_vectors(run, model, data, option, tmp_path):
    (tmp_path / "more.txt").write_text("a splendid film\n", encoding="utf-8")
    code, out, err = run("train", "--continue", model, data, *option)
    assert (code, out) == (2, "")
    assert err.startswith("fathomer: --continue keeps the model's word vectors; remove")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--unlabelled", "none.txt"], "none.txt: no such file"),
        (["--unlabelled", "corpus"], "data.csv is not a corpus; name a file"),
        (["--teacher", "none"], "none: not a sequence classifier"),
        (["--teacher", "none", "--unlabelled", "more.txt"], "none: not a sequence classifier"),
        (["--teacher", "none", "--model", "tfidf"], "tfidf is fitted in one go and cannot learn"),
        (["--teacher", "a", "--soft-labels", "b"], "give one of them"),
        (["--soft-labels", "none.csv"], "none.csv: no such file"),
    ],
)
def test_a_mistake_is_one_line_before_any_work(run, data, options, arguments, problem, tmp_path):
    code, out, err = run("train", data, "--out", "m", *options, *arguments)
    assert (code, out) == (2, "")
    assert problem in err.splitlines()[-1]
    assert not list(tmp_path.glob("m.*"))
