"""Corpora by name: every canonical format, plain and packed."""

from dataclasses import replace
from pathlib import Path

import pytest

from fathomer.config import Recipe
from fathomer.data.corpora import CORPORA, describe, find_corpus, open_source
from fathomer.data.places import data_folder, is_present
from fathomer.model import DepthAdaptiveNetwork
from fathomer.recipes import find_recipe, shipped_recipes
from tests.data import small
from tests.data.small import pairs


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
    assert recipe.train.held_out == (0 if name.startswith("amazon16/") else 0.1)
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
