"""A partial training file is used only by experiments, and marks their results."""

import pytest

from experiments.partial import PARTIAL, open_corpus_or_part
from fathomer.data.opening import open_dataset
from fathomer.errors import ConfigError, MissingFileError
from tests.data import small
from tests.data.real import real_folder
from tests.data.small import pairs


@pytest.fixture
def partial(tmp_path):
    files = {PARTIAL: small.AG["train.csv"], "test.csv": small.AG["test.csv"]}
    small.write_files(tmp_path / "ag_news", files)
    return tmp_path


def test_a_partial_file_replaces_a_missing_one_and_a_note_says_so(partial):
    dataset = open_corpus_or_part("ag_news", data_dir=partial)
    assert [label for label, _ in pairs(dataset.train)] == ["World", "Sci/Tech"]
    assert dataset.test.label_counts == {"Business": 1, "Sports": 1}
    assert dataset.notes == ("partial training file: 2 of 120,000",)
    assert dataset.describe() == {"data_name": "ag_news", "notes": list(dataset.notes)}


def test_the_package_itself_reads_no_partial_file(partial):
    with pytest.raises(MissingFileError, match=r"train\.csv: no such file; run fathomer data get"):
        open_dataset("ag_news", data_dir=partial)


@pytest.mark.parametrize("where", ["files", "archive"])
def test_the_whole_corpus_is_preferred(partial, where):
    if where == "files":
        small.write_files(partial / "ag_news", small.AG)
    else:
        small.write_archive(partial / "ag_news" / "ag_news_csv.tgz", small.AG)
    assert open_corpus_or_part("ag_news", data_dir=partial).notes == ()


def test_other_corpora_and_files_are_opened_as_always(partial):
    small.write_files(partial / "trec", small.QUESTIONS)
    assert len(open_corpus_or_part("trec", data_dir=partial).train) == 2
    (partial / "own.csv").write_text("text,label\na,1\nb,2\n" * 3, encoding="utf-8")
    dataset = open_corpus_or_part(str(partial / "own.csv"), fold=1, folds=2)
    assert dataset.fold.of == 2
    with pytest.raises(MissingFileError):
        open_corpus_or_part("mr", data_dir=partial)
    with pytest.raises(ConfigError, match="its own test set"):
        open_corpus_or_part("ag_news", data_dir=partial, fold=1, folds=2)


def test_a_missing_test_file_is_an_error(partial):
    (partial / "ag_news" / "test.csv").unlink()
    with pytest.raises(MissingFileError, match=r"test\.csv: no such file"):
        open_corpus_or_part("ag_news", data_dir=partial)


def test_the_real_partial_news_are_marked():
    folder = real_folder()
    if not (folder / "ag_news" / PARTIAL).is_file():
        pytest.skip(f"the partial training file is missing: {folder / 'ag_news' / PARTIAL}")
    dataset = open_corpus_or_part("ag_news", data_dir=folder)
    if len(dataset.train) != 120_000:
        assert dataset.notes == ("partial training file: 25,013 of 120,000",)
