"""Corpora by name: every canonical format, plain and packed, and one line for every damage."""

import random
from dataclasses import replace
from pathlib import Path

import pytest

from fathomer.config import Recipe
from fathomer.data.corpora import CORPORA, Fold, describe, find_corpus, open_source
from fathomer.data.places import data_folder, is_present
from fathomer.errors import ConfigError, DataError, FathomerError, MissingFileError
from fathomer.nn import DepthAdaptiveNetwork
from fathomer.recipes import find_recipe, shipped_recipes

from . import small


def pairs(examples):
    return [(example.label, example.text) for example in examples]


def message(data, folder, **options) -> str:
    """Open a corpus that cannot be opened; give the error's line without the folder."""
    with pytest.raises(FathomerError) as caught:
        open_source(data, data_dir=folder, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value).replace(f"{folder}/", "")


def test_there_are_the_24_corpora_of_the_paper():
    assert len(CORPORA) == 24
    assert sum(name.startswith("amazon16/") for name in CORPORA) == 16
    assert {"trec", "mr", "subj", "imdb", "ag_news", "dbpedia", "yelp_full"} < set(CORPORA)
    assert [len(find_corpus(name).labels) for name in ("trec", "dbpedia", "yelp_full")] == [
        6,
        14,
        5,
    ]
    amazon = [corpus for name, corpus in CORPORA.items() if name.startswith("amazon16/")]
    assert sum(corpus.sizes[0] for corpus in amazon) == 25_380
    assert sum(corpus.sizes[1] for corpus in amazon) == 6_400


@pytest.mark.parametrize("corpus", CORPORA.values(), ids=list(CORPORA))
def test_every_entry_says_where_it_comes_from_and_on_what_terms(corpus):
    assert corpus.page.startswith("http")
    assert corpus.terms
    assert corpus.archive or all(file.url for file in corpus.files)
    for known in [file.sha256 for file in corpus.files if file.sha256]:
        assert len(bytes.fromhex(known)) == 32


@pytest.mark.parametrize("name", CORPORA)
def test_every_corpus_has_a_recipe_with_the_settings_of_the_paper(name):
    recipe = find_recipe(name)
    assert name in shipped_recipes()
    assert recipe.model == Recipe().model
    assert (recipe.model.word_size, recipe.model.hidden_size, recipe.model.max_depth) == (
        300,
        400,
        9,
    )
    assert recipe.train.held_out == CORPORA[name].held_out
    labels = len(CORPORA[name].labels)
    sized = recipe.updated({"model": {"vocab_size": 5, "num_labels": labels}})
    assert DepthAdaptiveNetwork(sized.model).output.out_features == labels


def test_questions_have_the_coarse_class_as_their_label(tmp_path):
    small.write_files(tmp_path / "trec", small.QUESTIONS, encoding="latin-1")
    source = open_source("trec", data_dir=tmp_path)
    assert pairs(source.train) == [
        ("description", "How does a café earn money ?"),
        ("number", "When did it open ?"),
    ]
    assert pairs(source.test) == [("number", "When did it open ?"), ("location", "Where is it ?")]
    assert source.notes == ()


@pytest.mark.parametrize("where", ["files", "archive", "gz"])
def test_the_sentences_of_mr_come_from_files_or_from_their_archive(tmp_path, where):
    folder = tmp_path / "mr"
    if where == "archive":
        name, inside = "rt-polaritydata.tar.gz", "rt-polaritydata/"
        small.write_archive(folder / name, small.MR, inside=inside, encoding="cp1252")
    elif where == "files":
        small.write_files(folder, small.MR, encoding="cp1252")
    else:
        for name, content in small.MR.items():
            small.write_gz(folder / f"{name}.gz", content.encode("cp1252").decode("latin-1"))
    source = open_source("mr", data_dir=tmp_path, folds=2)
    found = sorted(pairs(source.train) + pairs(source.test))
    assert len(found) == 5
    if where != "gz":  # whose bytes were not those of the encoding
        assert ("positive", "a naïve but charming tale – and short .") in found
        assert ("positive", "worth every minute …") in found


def test_plots_are_objective_and_quotes_subjective(tmp_path):
    inside = small.write_archive(tmp_path / "subj" / "rotten_imdb.tar.gz", small.SUBJ)
    assert inside.exists()
    source = open_source("subj", data_dir=tmp_path, folds=2)
    assert source.train.label_counts == {"objective": 1, "subjective": 1}


def test_an_amazon_domain_may_hold_an_empty_text(tmp_path):
    small.write_files(tmp_path / "amazon16", small.BOOKS)
    source = open_source("amazon16/books", data_dir=tmp_path)
    assert pairs(source.train) == [
        ("positive", "a fine novel , the best of naïve stories"),
        ("negative", "dull"),
        ("positive", ""),
    ]


def test_a_byte_that_is_not_of_the_encoding_does_not_stop_a_corpus(tmp_path):
    files = {**small.BOOKS, "books.task.train": "1\tclich\xef\xbf '' and na\xc3\xafve\n"}
    small.write_files(tmp_path / "amazon16", files, encoding="latin-1")
    [example] = open_source("amazon16/books", data_dir=tmp_path).train
    assert example.text == "clich\ufffd '' and naïve"


def test_reviews_are_streamed_from_the_archive_of_imdb(tmp_path):
    small.write_archive(tmp_path / "imdb" / "aclImdb_v1.tar.gz", small.IMDB)
    source = open_source("imdb", data_dir=tmp_path)
    assert pairs(source.train) == [
        ("positive", "A gem.<br /><br />Naïve, but a gem."),
        ("negative", "A bore."),
    ]
    assert pairs(source.test) == [("positive", "Lovely."), ("negative", "A bore.")]
    assert sorted(path.name for path in (tmp_path / "imdb").iterdir()) == ["aclImdb_v1.tar.gz"]


def test_an_unpacked_archive_of_imdb_is_read_as_well(tmp_path):
    small.write_files(tmp_path / "imdb", small.IMDB)
    source = open_source("imdb", data_dir=tmp_path)
    assert sorted(pairs(source.test)) == [("negative", "A bore."), ("positive", "Lovely.")]


@pytest.mark.parametrize("where", ["files", "ag_news_csv.tgz", "ag_news_csv.tar.gz"])
def test_news_have_a_title_and_quotes_newlines_and_escapes(tmp_path, where):
    if where == "files":
        small.write_files(tmp_path / "ag_news", small.AG)
    else:
        small.write_archive(tmp_path / "ag_news" / where, small.AG, inside="ag_news_csv/")
    source = open_source("ag_news", data_dir=tmp_path)
    assert pairs(source.train) == [
        ("World", 'Talks "fail" The two sides met for $5, and\nparted.'),
        ("Sci/Tech", "A chip It is fast."),
    ]
    assert source.test.label_counts == {"Business": 1, "Sports": 1}


def test_yelp_has_two_columns_and_escapes_of_its_own(tmp_path):
    small.write_archive(
        tmp_path / "yelp_full" / "yelp_review_full_csv.tgz",
        small.YELP,
        inside="yelp_review_full_csv/",
    )
    source = open_source("yelp_full", data_dir=tmp_path)
    assert pairs(source.train) == [
        ("1 star", 'Cold food.\n\nNever "again".'),
        ("5 stars", "Lovely place, \ngood soup."),
    ]


def test_dbpedia_has_fourteen_labels(tmp_path):
    rows = [f'"{n}","Name {n}"," It is what ""{n}"" is."\n' for n in range(1, 15)]
    small.write_files(tmp_path / "dbpedia", {"train.csv": "".join(rows), "test.csv": rows[0]})
    source = open_source("dbpedia", data_dir=tmp_path)
    assert len(source.train.label_counts) == 14
    assert pairs(source.test) == [("Company", 'Name 1  It is what "1" is.')]


def test_a_partial_file_stands_in_only_with_a_note(tmp_path):
    folder = tmp_path / "ag_news"
    small.write_files(
        folder, {"train_partial_25k.csv": small.AG["train.csv"], "test.csv": small.AG["test.csv"]}
    )
    source = open_source("ag_news", data_dir=tmp_path)
    assert source.notes == ("partial training file: 2 of 120,000",)
    assert describe(source) == {"data_name": "ag_news", "notes": list(source.notes)}
    small.write_files(folder, small.AG)
    assert open_source("ag_news", data_dir=tmp_path).notes == ()


def test_only_the_test_part_needs_to_be_there_to_be_read(tmp_path):
    small.write_files(tmp_path / "ag_news", {"test.csv": small.AG["test.csv"]})
    source = open_source("ag_news", data_dir=tmp_path, only="test")
    assert (len(source.train), len(source.test)) == (0, 2)
    assert not is_present(CORPORA["ag_news"], tmp_path)


# Cross validation


@pytest.fixture
def sentences(tmp_path):
    for label, count in (("pos", 57), ("neg", 46)):
        lines = {f"rt-polarity.{label}": "".join(f"{label} {n}\n" for n in range(count))}
        small.write_files(tmp_path / "mr", lines)
    return tmp_path


def test_the_folds_part_the_texts_and_keep_the_labels_apart_evenly(sentences):
    sources = [open_source("mr", data_dir=sentences, fold=k) for k in range(1, 11)]
    tested = [text for source in sources for _, text in pairs(source.test)]
    assert len(tested) == len(set(tested)) == 103
    for number, source in enumerate(sources, start=1):
        assert source.fold == Fold(number, 10)
        assert not set(pairs(source.train)) & set(pairs(source.test))
        assert len(source.train) + len(source.test) == 103
        assert len(source.test) in (10, 11)
        assert source.test.label_counts["positive"] in (5, 6)


def test_the_folds_are_the_same_whatever_the_state_of_random_numbers(sentences):
    first = pairs(open_source("mr", data_dir=sentences, fold=3).test)
    random.seed(7)
    assert pairs(open_source("mr", data_dir=sentences, fold=3).test) == first
    assert pairs(open_source("mr", data_dir=sentences, fold=4).test) != first


def test_without_a_fold_it_is_the_first_and_is_said_so(sentences):
    source = open_source("mr", data_dir=sentences)
    assert pairs(source.test) == pairs(open_source("mr", data_dir=sentences, fold=1).test)
    assert source.notes == ("mr: fold 1 of 10 is the test part; --fold chooses another",)
    assert describe(source)["fold"] == 1


def test_the_number_of_folds_is_a_setting(sentences):
    source = open_source("mr", data_dir=sentences, fold=5, folds=5)
    assert source.fold == Fold(5, 5)
    assert len(source.test) in (20, 21)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"fold": 11}, "fold must be 1 to 10 for mr, not 11"),
        ({"fold": 0}, "fold must be 1 to 10 for mr, not 0"),
        ({"fold": 6, "folds": 5}, "fold must be 1 to 5 for mr, not 6"),
        ({"folds": 1}, "folds must be 2 to 103 for mr, not 1"),
        ({"folds": 104}, "folds must be 2 to 103 for mr, not 104"),
    ],
)
def test_a_fold_out_of_range_is_an_error(sentences, options, problem):
    assert message("mr", sentences, **options) == problem


def test_a_corpus_with_a_test_part_has_no_folds(tmp_path):
    small.write_files(tmp_path / "trec", small.QUESTIONS)
    problem = "trec has a test part of its own; leave --fold and --folds out"
    assert message("trec", tmp_path, fold=1) == problem
    assert message("demo", tmp_path, fold=1).startswith("demo has a test part")


def test_a_file_may_be_cross_validated_too(tmp_path):
    path = tmp_path / "own.csv"
    path.write_text("text,label\n" + "good,1\nbad,0\n" * 6, encoding="utf-8")
    assert len(open_source(str(path), fold=2, folds=3).test) == 4
    with pytest.raises(ConfigError, match=r"own\.csv has no folds; say how many with --folds"):
        open_source(str(path), fold=2)


# What can be wrong


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("trce", "trce: no such file or corpus; did you mean 'trec'?"),
        ("amazon16/book", "amazon16/book: no such file or corpus; did you mean 'amazon16/books'?"),
        ("dmo", "dmo: no such file or corpus; did you mean 'demo'?"),
    ],
)
def test_an_unknown_corpus_is_answered_with_the_nearest_name(tmp_path, name, problem, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert message(name, tmp_path) == problem


def test_a_missing_corpus_says_which_file_to_put_where(tmp_path):
    with pytest.raises(MissingFileError) as caught:
        open_source("mr", data_dir=tmp_path)
    assert str(caught.value) == (
        f"{tmp_path}/mr/rt-polarity.pos: not there; run fathomer data get mr, or put "
        f"rt-polaritydata.tar.gz (or rt-polarity.pos and rt-polarity.neg) into {tmp_path}/mr"
    )
    assert message("imdb", tmp_path) == (
        "imdb/aclImdb/train/neg: not there; "
        "run fathomer data get imdb, or put aclImdb_v1.tar.gz into imdb"
    )
    assert "put train_5500.label and TREC_10.label into" in message("trec", tmp_path)


def test_a_missing_member_of_an_archive_is_named(tmp_path):
    small.write_archive(
        tmp_path / "ag_news" / "ag_news_csv.tgz", {"train.csv": small.AG["train.csv"]}
    )
    assert message("ag_news", tmp_path) == "ag_news/ag_news_csv.tgz: has no test.csv inside"
    files = {name: text for name, text in small.IMDB.items() if "test/neg" not in name}
    small.write_archive(tmp_path / "imdb" / "aclImdb_v1.tar.gz", files)
    assert message("imdb", tmp_path) == "imdb/aclImdb_v1.tar.gz: has no aclImdb/test/neg/ inside"


@pytest.mark.parametrize("kept", [0, 5, 60, -1500])
def test_a_damaged_archive_is_an_error_that_says_what_to_do(tmp_path, kept):
    path = tmp_path / "imdb" / "aclImdb_v1.tar.gz"
    noise = "".join(random.Random(0).choices("abcdefgh ", k=5000))
    small.write_archive(path, {**small.IMDB, "aclImdb/test/pos/1_9.txt": noise})
    path.write_bytes(path.read_bytes()[:kept])
    assert message("imdb", tmp_path) == (
        "imdb/aclImdb_v1.tar.gz: a damaged or incomplete archive; "
        "delete it and run fathomer data get imdb"
    )


def test_a_damaged_gzip_file_is_an_error(tmp_path):
    small.write_files(tmp_path / "ag_news", {"test.csv": small.AG["test.csv"]})
    path = small.write_gz(tmp_path / "ag_news" / "train.csv.gz", small.AG["train.csv"])
    path.write_bytes(path.read_bytes()[:-9])
    problem = "ag_news/train.csv.gz: a damaged or incomplete gzip file"
    assert message("ag_news", tmp_path) == problem


@pytest.mark.parametrize(
    ("name", "file", "content", "problem"),
    [
        ("trec", "train_5500.label", "DESC what\n", "line 1: 'COARSE:fine question' was expected"),
        ("trec", "train_5500.label", "NUM:x a\nODD:x b\n",
         "line 2: unknown label 'ODD'; trec has ABBR, DESC, ENTY, HUM, LOC, NUM"),
        ("amazon16/books", "books.task.train", "1 x\n",
         "line 1: a label, a tab and a text were expected"),
        ("ag_news", "train.csv", '"1","a","b"\n"2","b"\n',
         "line 2: 2 columns where 3 were expected"),
        ("ag_news", "train.csv", '"1","a","b\n\n',
         "line 1: not a csv row (unexpected end of data)"),
        ("yelp_full", "train.csv", '"1","a"\n"6","b"\n',
         "line 2: unknown label '6'; yelp_full has 1, 2, 3, 4, 5"),
    ],
)  # fmt: skip
def test_a_wrong_row_is_named_with_its_line(tmp_path, name, file, content, problem):
    small.write_files(tmp_path / CORPORA[name].folder, {file: content})
    assert message(name, tmp_path) == f"{CORPORA[name].folder}/{file}, {problem}"


def test_an_empty_part_is_an_error(tmp_path):
    small.write_files(tmp_path / "trec", {**small.QUESTIONS, "TREC_10.label": "\n"})
    with pytest.raises(DataError, match="trec: the test part of trec is empty"):
        open_source("trec", data_dir=tmp_path)


# Where corpora are


def test_the_data_folder_is_chosen_or_a_variable_or_the_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("FATHOMER_DATA", str(tmp_path / "variable"))
    assert data_folder(tmp_path / "chosen") == tmp_path / "chosen"
    assert data_folder() == tmp_path / "variable"
    monkeypatch.delenv("FATHOMER_DATA")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert data_folder().name == "fathomer"


def test_an_entry_may_be_changed_for_a_test_but_not_in_place():
    changed = replace(CORPORA["trec"], terms="ours")
    assert changed != CORPORA["trec"]
    with pytest.raises(AttributeError):
        CORPORA["trec"].terms = "ours"


@pytest.mark.parametrize("corpus", CORPORA.values(), ids=list(CORPORA))
def test_the_documentation_has_the_figures_of_the_entries(corpus):
    page = Path(__file__).resolve().parents[2] / "docs" / "corpora.md"
    lines = page.read_text(encoding="utf-8").splitlines()
    [row] = [line for line in lines if line.startswith(f"| `{corpus.name}` | {corpus.kind} |")]
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    train, test = corpus.sizes
    parts = f"{corpus.folds} folds" if corpus.folds else f"{test:,}"
    assert cells[2:5] == [str(len(corpus.labels)), f"{train:,}", parts]
    if corpus.words:
        assert cells[5].startswith(str(corpus.words.average))
        assert cells[6].startswith(f"{corpus.words.longest:,}")
