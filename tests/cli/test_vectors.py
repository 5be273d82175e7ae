"""The commands vectors train, distill, join and list."""

import json
import os
import signal
import time

import psutil
import pytest

from fathomer.text.compact import describe_compact, read_compact
from fathomer.text.sources import words_of
from tests.forked import Forked, gone
from tests.text.encoders import write_encoder
from tests.tiny import tiny_examples, write_csv

PLAIN = "The film was good.\nthe book was bad.\n" * 5


@pytest.fixture
def texts(tmp_path):
    """A plain file and a csv file of texts."""
    (tmp_path / "plain.txt").write_text(PLAIN, encoding="utf-8")
    write_csv(tmp_path / "table.csv", tiny_examples())
    return ["plain.txt", "table.csv"]


def test_vectors_are_trained_on_files_and_the_same_file_is_written_again(run, texts, tmp_path):
    pytest.importorskip("fasttext", reason="the extra vectors is not installed")
    for name in ("1.safetensors", "2.safetensors"):
        code, out, err = run("vectors", "train", *texts, "--size", "8", "--out", name)
        assert code == 0, err
    assert out.startswith("2.safetensors: ")
    assert "70 texts\n" in err
    assert (tmp_path / "1.safetensors").read_bytes() == (tmp_path / "2.safetensors").read_bytes()
    made = describe_compact(tmp_path / "1.safetensors")["made"]
    assert (made["sources"], made["texts"], made["seed"]) == (texts, 70, 0)


def test_a_family_of_corpora_is_read_with_its_unlabelled_texts_but_without_test_texts(
    run, tmp_path
):
    pytest.importorskip("fasttext", reason="the extra vectors is not installed")
    from fathomer.data.datasets import corpora_named

    folder = tmp_path / "amazon16"
    folder.mkdir()
    for corpus in corpora_named("amazon16"):
        train, test = (file.name for file in corpus.files)
        (folder / train).write_text("1\tgood trained\n0\tbad trained\n", encoding="utf-8")
        (folder / test).write_text("1\tSecret  test\n0\tother test\n", encoding="utf-8")
    (folder / "books.task.unlabel").write_text("secret test\nnew\n" * 3, encoding="latin-1")
    arguments = ["--min-count", "1", "--size", "4", "--out", "v.safetensors"]
    code, out, err = run("vectors", "train", "amazon16", *arguments, "--json")
    assert code == 0, err
    made = json.loads(out)["made"]
    assert (made["texts"], made["left_out"]) == (35, 3)
    words = words_of(tmp_path / "v.safetensors", count=9)
    assert sorted(words) == ["bad", "good", "new", "trained"]


def test_the_test_fold_is_left_out_and_named(run, tmp_path):
    pytest.importorskip("fasttext", reason="the extra vectors is not installed")
    from fathomer.data.datasets import corpora_named

    [corpus] = corpora_named("mr")
    for file in corpus.files:
        path = tmp_path / corpus.folder / file.name
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(f"{path.suffix[1:]} {n}\n" for n in range(20)), encoding="utf-8")
    arguments = ["--fold", "3", "--size", "4", "--out", "v.safetensors", "--json"]
    code, out, err = run("vectors", "train", "mr", *arguments)
    assert code == 0, err
    made = json.loads(out)["made"]
    assert (made["texts"], made["notes"]) == (36, ["mr: fold 3 of 10 is the test part"])
    assert made["notes"][0] in err.splitlines()


def test_the_same_words_and_files_give_the_same_bytes(run, tmp_path):
    write_encoder(tmp_path / "encoder")
    (tmp_path / "words.txt").write_text("good\nbad\nfilm\n", encoding="utf-8")
    written = []
    for number in range(2):
        made, joined = f"d{number}.safetensors", f"j{number}.safetensors"
        for command in (
            ("distill", "encoder", "--words", "words.txt", "--size", "4", "--out", made),
            ("join", "d0.safetensors", "d0.safetensors", "--out", joined),
        ):
            code, _, err = run("vectors", *command)
            assert code == 0, err
        written.append([(tmp_path / name).read_bytes() for name in (made, joined)])
    assert written[0] == written[1]


def test_words_are_distilled_from_a_list_a_corpus_or_the_encoder(run, texts, tmp_path):
    write_encoder(tmp_path / "encoder")
    (tmp_path / "words.txt").write_text("good\n\nbad\ngood\n", encoding="utf-8")
    for arguments, words in (
        (["--words", "words.txt"], ["good", "bad"]),
        (["--corpus", "plain.txt", "--top", "3"], [".", "the", "was"]),
        (["--top", "2"], ["good", "bad"]),
    ):
        out_file = ["--size", "4", "--out", "d.safetensors"]
        code, _, err = run("vectors", "distill", "encoder", *arguments, *out_file)
        assert code == 0, err
        found = read_compact(tmp_path / "d.safetensors", needed=words)
        assert (found.words, found.size) == (words, 4)


def test_files_are_joined_and_a_model_is_trained_with_them(run, texts, recipe, data, tmp_path):
    (tmp_path / "a.txt").write_text("good 1 2\nbad 2 1\n", encoding="utf-8")
    (tmp_path / "b.txt").write_text("film 1 2 3\ngood 0 1 0\n", encoding="utf-8")
    code, out, err = run("vectors", "join", "a.txt", "b.txt", "--out", "j.safetensors")
    assert (code, out) == (0, "j.safetensors: 3 words, 5 numbers each\n"), err
    sizes = []
    for number, arguments in enumerate(
        (["--vectors", "j.safetensors"], ["--vectors", "a.txt", "--vectors", "b.txt"])
    ):
        options = ["--recipe", recipe, "--no-baseline", "--json", *arguments]
        code, out, err = run("train", data, "--out", f"m{number}", *options)
        assert code == 0, err
        found = json.loads(out)
        sizes.append((found["held_out"]["accuracy"], found["vectors"]["scale"]))
    assert sizes[0] == sizes[1]


def test_the_list_shows_sizes_presence_and_terms(run, tmp_path):
    (tmp_path / "vectors").mkdir()
    (tmp_path / "vectors" / "own.2d.txt").write_text("a 1 2\n", encoding="utf-8")
    code, out, _ = run("vectors", "list", "--json")
    rows = {row["name"]: row for row in json.loads(out)["vectors"]}
    assert code == 0
    assert "Llama 2" in rows["wordllama"]["terms"]
    assert rows["own.2d"]["size"] == 2
    assert (rows["glove.840B.300d"]["present"], rows["own.2d"]["present"]) == (False, True)
    code, out, _ = run("vectors", "list")
    assert "own.2d" in out


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["train", "none.txt", "--out", "v.safetensors"], "none.txt: no such file or corpus"),
        (["train", "empty.txt", "--out", "v.safetensors"], "empty.txt: holds no texts"),
        (["train", "empty.txt", "--out", "v.txt"], "the file must end in .safetensors"),
        (["train", "empty.txt", "--out", "no/v.safetensors"], "cannot be written"),
        (["join", "none", "--out", "v.safetensors"], "none: no such file or vectors"),
        (["distill", "none", "--top", "3", "--out", "v.safetensors"], "none: no such folder"),
        (["distill", "encoder", "--out", "v.safetensors"], "give --words FILE"),
        (["distill", "encoder", "--words", "empty.txt", "--out", "v.safetensors"], "no words"),
    ],
)
def test_a_mistake_is_one_line_and_leaves_no_file(run, tmp_path, arguments, problem):
    (tmp_path / "empty.txt").write_text("\n \n", encoding="utf-8")
    (tmp_path / "encoder").mkdir()
    (tmp_path / "encoder" / "config.json").write_text("{}", encoding="utf-8")
    code, out, err = run("vectors", *arguments)
    assert (code, out) == (2, "")
    assert problem in err.splitlines()[-1]
    assert not list(tmp_path.glob("*v.safetensors*"))


def test_ctrl_c_ends_a_training_at_once_and_leaves_no_file(texts, tmp_path):
    pytest.importorskip("fasttext", reason="the extra vectors is not installed")
    long = ["--epochs", "1000000", "--out", "v.safetensors"]
    with Forked("vectors", "train", *texts, *long, folder=tmp_path) as process:
        while not (children := psutil.Process(process.pid).children()):
            time.sleep(0.05)
        os.kill(process.pid, signal.SIGINT)
        assert all(gone(child.pid) for child in children)
        assert process.wait() == 130
        assert process.stderr.read().splitlines()[1:] == ["fathomer: stopped"]
    assert not list(tmp_path.glob("*v.safetensors*"))


def test_a_training_that_crashes_is_one_line(run, texts, tmp_path, monkeypatch):
    pytest.importorskip("fasttext", reason="the extra vectors is not installed")
    monkeypatch.setattr("sys.executable", "false")
    code, out, err = run("vectors", "train", *texts, "--out", "v.safetensors")
    assert (code, out) == (2, "")
    assert err.splitlines()[-1].startswith("fathomer: fasttext has ended unexpectedly")
    assert not list(tmp_path.glob("*v.safetensors*"))
