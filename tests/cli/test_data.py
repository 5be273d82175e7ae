"""The commands ``fathomer data``, and training and evaluating on a corpus by its name."""

import json
from dataclasses import replace

import pytest

from fathomer.data.datasets import CORPORA, VECTORS
from tests.data import small
from tests.data.real import real_data
from tests.tiny import BAD, GOOD, TINY, tiny_examples, write_csv

KEYS = {
    "name", "train", "test", "labels", "duplicates_across_splits", "empty", "average_words",
    "longest_words", "checksum_ok",
}  # fmt: skip


@pytest.fixture(autouse=True)
def tiny_recipe(tmp_path):
    (tmp_path / "tiny.toml").write_text(TINY.to_toml(), encoding="utf-8")


@pytest.fixture
def mr(tmp_path):
    files = {
        "rt-polarity.pos": "".join(f"a {word} film .\n" for word in GOOD * 5),
        "rt-polarity.neg": "".join(f"a {word} film .\n" for word in BAD * 5),
    }
    return small.write_files(tmp_path / "mr", files)


def test_without_a_command_the_help_is_shown(run):
    code, out, err = run("data")
    assert (code, err) == (0, "")
    assert out.startswith("Usage: fathomer data [OPTIONS] COMMAND")


def test_the_list_shows_every_corpus_and_whether_it_is_present(run, mr, tmp_path):
    code, out, err = run("data", "list")
    assert (code, err) == (0, "")
    lines = {line.split()[0]: line for line in out.splitlines() if line.strip()}
    assert set(CORPORA) | {"demo"} < set(lines)
    assert lines["mr"].split() == ["mr", "sentiment", "2", "21.7", "23", "63", "61", "10,662", "10",
                                   "folds", "present"]  # fmt: skip
    assert lines["dbpedia"].split()[-1] == "-"
    code, out, _ = run("data", "list", "--json", "--data-dir", "elsewhere")
    found = json.loads(out)
    assert found["data_dir"] == "elsewhere"
    assert [row["name"] for row in found["corpora"] if row["present"]] == ["demo"]
    assert found["vectors"] == dict.fromkeys(VECTORS, False)


def test_the_list_shows_the_published_vectors_and_the_users_own(run, tmp_path):
    published = {"glove.42B.300d.zip": "", "own.2d.txt.gz": "", "notes.md": ""}
    small.write_files(tmp_path / "vectors", published)
    code, out, _ = run("data", "list", "--json")
    assert code == 0
    wanted = {"glove.840B.300d": False, "glove.42B.300d": True, "own.2d": True}
    assert json.loads(out)["vectors"] == wanted
    code, out, _ = run("data", "list")
    assert "\nown.2d               word vectors  present\n" in out
    assert "\nglove.840B.300d      word vectors  -\n" in out


def test_a_check_prints_counts_and_warns_on_stderr(run, tmp_path):
    small.write_files(tmp_path / "trec", small.QUESTIONS, encoding="cp1252")
    code, out, err = run("data", "check", "trec")
    assert code == 0
    assert "\nall                  2          2\n" in out
    assert "TREC_10.label: cp1252, NOT as published" in out
    assert "warning: 2 training texts, but the paper says 5,952" in err
    assert "1 in both" in out


def test_a_check_is_one_json_object_with_fixed_keys(run, tmp_path):
    small.write_files(tmp_path / "trec", small.QUESTIONS, encoding="cp1252")
    code, out, err = run("data", "check", "trec", "--json")
    found = json.loads(out)
    assert (code, err) == (0, "")
    assert set(found) >= KEYS
    assert (found["train"], found["test"], found["duplicates_across_splits"]) == (2, 2, 1)
    assert set(json.loads(run("data", "check", "demo", "--json")[1])) == set(found)


def test_a_check_counts_the_words_without_a_vector(run, mr, tmp_path):
    small.write_files(tmp_path / "vectors", {"own.2d.txt": "a 1 2\nfilm 3 4\n. 1 1\n"})
    code, out, _ = run("data", "check", "mr", "--vectors", "own.2d")
    assert code == 0
    assert "own.2d.txt: no vector for 25.00% of the words, 72.73% of the distinct words" in out


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["check", "trce"], "trce: no such corpus; did you mean 'trec'?"),
        (["get", "glove"], "glove: no such corpus or vectors; choose from "),
        (["check", "mr", "--vectors", "x.txt"], "x.txt: no such file"),
        (
            ["check", "trec"],
            "trec/train_5500.label: no such file; run fathomer data get trec, or put ",
        ),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(run, tmp_path, arguments, problem):
    code, out, err = run("data", *arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.replace(f"{tmp_path}/", "").startswith(f"fathomer: {problem}")


def test_the_terms_are_printed_before_a_download(run, monkeypatch, tmp_path):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr("fathomer.data.download.RETRIES", 0)
    files = tuple(replace(file, url="http://127.0.0.1:1/x") for file in CORPORA["trec"].files)
    here = {"trec": replace(CORPORA["trec"], files=files, terms="ours alone")}
    monkeypatch.setattr("fathomer.data.datasets.CORPORA", here)
    code, out, err = run("data", "get", "trec")
    assert (code, out) == (2, "")
    assert err.splitlines() == [
        "trec: published at https://cogcomp.seas.upenn.edu/Data/QA/QC/",
        "terms: ours alone",
        "fathomer: http://127.0.0.1:1/x cannot be downloaded (no connection); "
        f"download train_5500.label yourself and put it into {tmp_path}/trec",
    ]


def test_the_demo_corpus_needs_no_download(run):
    code, out, err = run("data", "get", "demo")
    assert (code, out) == (0, "")
    assert err == "demo comes with Fathomer; nothing to download\n"


def test_present_files_are_not_downloaded(run, mr):
    code, out, err = run("data", "get", "mr", "--json")
    assert code == 0
    assert json.loads(out) == {"name": "mr", "files": []}
    assert err.startswith("mr: published at https://www.cs.cornell.edu/people/pabo/")
    assert "terms: no licence stated; distributed" in err


def test_a_fold_of_a_corpus_is_trained_and_evaluated(run, mr):
    arguments = ["--recipe", "tiny.toml", "--fold", "2", "--folds", "4", "--json"]
    code, out, err = run("train", "mr", "--out", "m", *arguments)
    assert code == 0, err
    assert err.startswith("mr: 30 examples read\nmr: fold 2 of 4 is the test part\nepoch 1/4")
    found = json.loads(out)
    assert (found["data_name"], found["fold"], found["folds"]) == ("mr", 2, 4)
    assert found["test"]["examples"] == 10
    code, out, err = run("evaluate", "m", "mr", "--json")
    assert json.loads(out)["accuracy"] == found["test"]["accuracy"]
    assert err == "mr: fold 2 of 4 is the test part\n"
    code, out, err = run("evaluate", "m", "mr", "--fold", "1")
    assert code == 0
    assert "warning: the model was trained for fold 2 of 4, so it has seen texts of this" in err


def test_the_folds_of_a_changed_file_are_others(run, tmp_path):
    write_csv(tmp_path / "data.csv", tiny_examples())
    fold = ["--fold", "2", "--folds", "4"]
    assert run("train", "data.csv", "--out", "m", "--recipe", "tiny.toml", *fold)[0] == 0
    assert run("evaluate", "m", "data.csv")[2] == "data.csv: fold 2 of 4 is the test part\n"
    write_csv(tmp_path / "data.csv", tiny_examples(56))
    code, _, err = run("evaluate", "m", "data.csv")
    assert code == 0
    assert "warning: data.csv is not the file that the model was trained on, so it may" in err


def test_training_without_a_fold_names_the_default_one(run, mr):
    code, _, err = run("train", "mr", "--out", "m", "--recipe", "tiny.toml")
    assert code == 0
    assert "mr: fold 1 of 10 is the test part; --fold chooses another\n" in err


def test_the_coverage_of_vectors_is_printed_and_stored(run, mr, tmp_path):
    words = ["a", "film", *GOOD]
    lines = "".join(f"{word} {n} 1 0 2 0 1 3 {n}\n" for n, word in enumerate(words))
    small.write_files(tmp_path / "vectors", {"own.8d.txt": lines})
    arguments = ["--recipe", "tiny.toml", "--vectors", "own.8d", "--set", "train.held_out=0"]
    code, _, err = run("train", "mr", "--out", "m", "--folds", "4", *arguments)
    assert code == 0, err
    read, found, epoch = "reading own.8d.txt ...\n", "own.8d.txt covers 62.", "epoch 1/"
    assert err.index(read) < err.index(found) < err.index(epoch), "before it takes time"
    metrics = json.loads((tmp_path / "m" / "metrics.json").read_text(encoding="utf-8"))
    found = metrics["vectors"]
    assert found["file"] == "own.8d.txt"
    assert found["types"] == pytest.approx(6 / 11)
    assert 0.6 < found["words"] < 0.65


def test_the_real_trec_is_checked_from_the_command_line(run):
    folder = real_data("trec")
    code, out, _ = run("data", "check", "trec", "--json", "--data-dir", str(folder))
    found = json.loads(out)
    assert code == 0
    assert (found["train"], found["test"], found["duplicates_across_splits"]) == (5452, 500, 10)
    assert found["checksum_ok"] is True
