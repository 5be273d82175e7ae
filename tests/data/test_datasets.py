"""The table of corpora and vectors: complete, sourced, and equal to the documentation."""

from dataclasses import replace
from pathlib import Path

import pytest

from fathomer.config import Recipe
from fathomer.data.datasets import (
    CORPORA,
    TABLE_1,
    VECTORS,
    data_folder,
    find_corpus,
    find_vectors,
)
from fathomer.data.layouts import LAYOUTS
from fathomer.errors import MissingFileError
from fathomer.model import DepthAdaptiveNetwork
from fathomer.recipes import shipped_recipes, starting_recipe

AMAZON = {name: corpus for name, corpus in CORPORA.items() if name.startswith("amazon16/")}


def test_there_are_the_24_corpora_of_the_paper():
    assert len(CORPORA) == 24
    assert {"trec", "mr", "subj", "imdb", "ag_news", "dbpedia", "yelp_full"} < set(CORPORA)
    sizes = {"trec": 6, "dbpedia": 14, "yelp_full": 5}
    assert {name: len(find_corpus(name).labels) for name in sizes} == sizes
    assert len(AMAZON) == 16
    assert sum(corpus.sizes.train for corpus in AMAZON.values()) == 25_380
    assert sum(corpus.sizes.test for corpus in AMAZON.values()) == 6_400


def test_the_domains_of_amazon16_share_one_entry_except_for_their_files():
    varying = {"name", "files", "sizes", "words", "encoding"}
    shared = [{k: v for k, v in vars(c).items() if k not in varying} for c in AMAZON.values()]
    assert all(fields == shared[0] for fields in shared)
    assert [name for name, c in AMAZON.items() if c.encoding != "utf-8"] == ["amazon16/mr"]
    assert (TABLE_1["amazon16"].train, AMAZON["amazon16/books"].paper.train) == (31_880, 1_600)


@pytest.mark.parametrize("corpus", CORPORA.values(), ids=list(CORPORA))
def test_every_entry_states_its_source_terms_and_format(corpus):
    assert corpus.page.startswith("http")
    assert corpus.terms
    assert corpus.archive or all(file.url for file in corpus.files)
    assert corpus.layout in LAYOUTS
    assert (corpus.layout == "csv") == (corpus.columns > 1)
    for known in [file.sha256 for file in corpus.files if file.sha256]:
        assert len(bytes.fromhex(known)) == 32


@pytest.mark.parametrize("name", CORPORA)
def test_every_corpus_has_a_recipe_with_the_settings_of_the_paper(name):
    recipe = starting_recipe(name)
    assert CORPORA[name].folder in shipped_recipes()
    assert recipe.model == Recipe().model
    sizes = (recipe.model.word_size, recipe.model.hidden_size, recipe.model.max_depth)
    assert sizes == (300, 400, 9)
    assert recipe.train.held_out == (0 if name.startswith("amazon16/") else 0.1)
    labels = len(CORPORA[name].labels)
    sized = recipe.updated({"model": {"vocab_size": 5, "num_labels": labels}})
    assert DepthAdaptiveNetwork(sized.model).output.out_features == labels


@pytest.mark.parametrize("corpus", CORPORA.values(), ids=list(CORPORA))
def test_the_documentation_shows_the_figures_of_the_table(corpus):
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


def test_an_entry_is_replaced_not_modified():
    changed = replace(CORPORA["trec"], terms="ours")
    assert changed != CORPORA["trec"]
    with pytest.raises(AttributeError):
        CORPORA["trec"].terms = "ours"


def test_the_data_folder_is_chosen_or_from_the_environment_or_the_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("FATHOMER_DATA", str(tmp_path / "variable"))
    assert data_folder(tmp_path / "chosen") == tmp_path / "chosen"
    assert data_folder() == tmp_path / "variable"
    monkeypatch.delenv("FATHOMER_DATA")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert data_folder().name == "fathomer"


def test_vectors_are_found_by_path_and_by_name(tmp_path):
    path = tmp_path / "vectors" / "mine.50d.txt.gz"
    path.parent.mkdir()
    path.write_bytes(b"")
    assert find_vectors(str(path)) == path
    assert find_vectors("mine.50d", tmp_path) == path
    assert find_vectors("mine.50d.txt.gz", tmp_path) == path
    known = path.with_name(VECTORS["glove.840B.300d"].file)
    known.write_bytes(b"")
    assert find_vectors("glove.840B.300d", tmp_path) == known


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("glove.840B.300d", "{0}/glove.840B.300d.zip: no such file; run fathomer data get "
         "glove.840B.300d, or put glove.840B.300d.zip into {0}"),
        ("glove.840B", "glove.840B: no such file or vectors; did you mean 'glove.840B.300d'?"),
        ("mein.50d", "mein.50d: no such file or vectors; did you mean 'mine.50d'?"),
        ("none.txt", "none.txt: no such file"),
    ],
)  # fmt: skip
def test_missing_vectors_are_reported_in_one_line_with_what_to_do(tmp_path, name, problem):
    folder = tmp_path / "vectors"
    folder.mkdir()
    (folder / "mine.50d.txt.gz").write_bytes(b"")
    with pytest.raises(MissingFileError) as caught:
        find_vectors(name, tmp_path)
    assert str(caught.value) == problem.format(folder)
