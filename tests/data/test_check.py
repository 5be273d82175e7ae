"""Reports about corpora, and the suggested training command."""

import hashlib
from dataclasses import replace

from fathomer.data.check import check_corpus, check_demo, suggest_command
from fathomer.data.datasets import CORPORA
from fathomer.data.reading import ReadOptions
from fathomer.data.survey import survey_file
from tests.data import small
from tests.data.small import HEALTHY, write_table


def test_a_check_counts_everything(tmp_path):
    files = {
        "books.task.train": "1\tA fine book .\n0\tdull\n1\t\n0\tdull\n",
        "books.task.test": "0\tdull\n0\tdull\n1\tA fine book .\n1\tlovely\n",
    }
    small.write_files(tmp_path / "amazon16", files)
    report = check_corpus(CORPORA["amazon16/books"], tmp_path)
    assert report["name"] == "amazon16/books"
    assert (report["train"], report["test"]) == (4, 4)
    assert report["labels"] == {
        "negative": {"train": 2, "test": 2},
        "positive": {"train": 2, "test": 2},
    }
    assert report["duplicates"] == {"train": 1, "test": 1}
    assert report["duplicates_across_splits"] == 2
    assert report["test_texts_seen_in_training"] == 3
    assert report["empty"] == 1
    assert report["average_words"] == round((4 + 1 + 0 + 1 + 1 + 1 + 4 + 1) / 8, 1)
    assert report["longest_words"] == 4
    assert report["checksum_ok"] is False
    assert report["published"]["train"] == 1_600
    assert report["warnings"][:2] == [
        "4 training texts, but the paper says 1,600",
        "4 test texts, but the paper says 400",
    ]
    assert report["warnings"][-1] == (
        "2 texts are in both training and test set: 3 test texts were seen in training"
    )


def test_a_checksum_is_right_wrong_or_unknown(tmp_path):
    corpus = CORPORA["trec"]
    small.write_files(tmp_path / "trec", small.QUESTIONS, encoding="cp1252")

    def with_sums(*sums):
        files = [replace(f, sha256=s) for f, s in zip(corpus.files, sums, strict=True)]
        return check_corpus(replace(corpus, files=tuple(files)), tmp_path)

    right = [hashlib.sha256(t.encode("cp1252")).hexdigest() for t in small.QUESTIONS.values()]
    assert with_sums(*right)["checksum_ok"] is True
    assert with_sums(None, right[1])["checksum_ok"] is True
    assert with_sums(None, None)["checksum_ok"] is None
    report = with_sums(right[0], "0" * 64)
    assert report["checksum_ok"] is False
    problem = f"TREC_10.label is not the published file (its sha256 is {right[1]})"
    assert problem in report["warnings"]


def test_a_text_in_several_folds_is_a_duplicate_across_splits(tmp_path):
    lines = "".join(f"line {number}\n" for number in range(30))
    files = {"rt-polarity.pos": lines, "rt-polarity.neg": "again\n" * 11 + "once\n"}
    small.write_files(tmp_path / "mr", files)
    report = check_corpus(CORPORA["mr"], tmp_path)
    assert (report["train"], report["test"], report["folds"]) == (42, 0, 10)
    assert report["duplicates"] == {"train": 10, "test": 0}
    assert report["duplicates_across_splits"] == 1
    assert report["test_texts_seen_in_training"] == 11


def test_words_without_a_vector_are_counted_as_types_and_as_words(tmp_path):
    small.write_files(tmp_path / "amazon16", {
        "books.task.train": "1\tGood good good odd\n0\tgood\n", "books.task.test": "0\tgood\n",
    })  # fmt: skip
    vectors = tmp_path / "v.txt"
    vectors.write_text("good 1 2\n, 2 3\nother 3 4\n", encoding="utf-8")
    report = check_corpus(CORPORA["amazon16/books"], tmp_path, vectors=vectors)
    assert report["vectors"] == {"file": "v.txt", "unknown_types": 1 / 3, "unknown_words": 1 / 6}


def test_labels_without_a_training_text_are_a_warning(tmp_path):
    small.write_gz(tmp_path / "ag_news" / "train.csv.gz", small.AG["train.csv"])
    small.write_files(tmp_path / "ag_news", {"test.csv": small.AG["test.csv"]})
    report = check_corpus(CORPORA["ag_news"], tmp_path)
    assert [file["checksum_ok"] for file in report["files"]] == [None, False]
    assert report["warnings"][0] == "2 training texts, but the paper says 120,000"
    assert "no training text has the label Business, Sports" in report["warnings"]


def test_an_incomplete_corpus_is_compared_with_the_files_and_the_paper(tmp_path):
    small.write_files(tmp_path / "trec", small.QUESTIONS, encoding="cp1252")
    assert check_corpus(CORPORA["trec"], tmp_path)["warnings"][:3] == [
        "2 training texts, but the published files have 5,452",
        "2 training texts, but the paper says 5,952",
        "2 test texts, but the paper says 500",
    ]


def test_the_demo_corpus_has_no_duplicates_at_all():
    report = check_demo()
    assert (report["train"], report["test"]) == (4000, 600)
    assert report["duplicates"] == {"train": 0, "test": 0}
    assert (report["duplicates_across_splits"], report["empty"]) == (0, 0)


def test_the_suggested_command_names_the_files_and_leaves_the_settings_to_the_data(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    survey = survey_file(write_table("a.csv", HEALTHY), ReadOptions())
    assert suggest_command(survey, {}) == ["fathomer", "train", "a.csv", "--out", "model"]
    files = {"--test": "t.csv", "--held-out": "h.csv"}
    command = suggest_command(survey, files, out="model-2")
    assert command[3:] == ["--out", "model-2", "--test", "t.csv", "--held-out", "h.csv"]
