"""The published figures: complete, equal to the paper's source, and consistent where it is."""

import re
from pathlib import Path
from statistics import mean

import pytest

import experiments.rivals  # noqa: F401 (registers the models)
from experiments.published import published
from fathomer.data.datasets import CORPORA, TABLE_1
from fathomer.model.registry import MODELS

PAPER = Path(__file__).resolve().parents[3] / "shared" / "paper.tex"
PUBLISHED = published()


def systems(table):
    return [system for system in PUBLISHED.systems if system.table == table]


def test_every_cell_is_present():
    assert [len(system.accuracy) for system in systems(2)] == [16] * 7
    assert sum(len(system.accuracy) for system in systems(3)) == 86
    cells = {t: sum(sum(s.accuracy.values()) for s in systems(t)) for t in (2, 3)}
    assert cells == pytest.approx({2: 9814.1, 3: 7709.52}, abs=0.005)  # no digit has changed
    assert [row.row for row in PUBLISHED.ablation] == list(range(7))
    assert len(TABLE_1) == 9


def test_corpora_have_our_names():
    assert {corpus for system in PUBLISHED.systems for corpus in system.accuracy} == set(CORPORA)
    assert len(PUBLISHED.accuracies("trec")) == 13
    assert PUBLISHED.accuracies("imdb")["fathomer"] == 96.27
    assert PUBLISHED.accuracies("amazon16/imdb")["fathomer"] == 89.5


def test_a_system_has_the_name_of_its_model():
    named = {system.name for system in PUBLISHED.systems}
    relatives = {"act-s-lstm", "authors-cell", "early-exit", "r-transformer"}
    others = {"fasttext", "tfidf", "universal-transformer", *relatives}
    assert set(MODELS) - others == named


def test_the_authors_trained_four_rivals_themselves():
    trained = {"transformer", "star-transformer", "bilstm", "s-lstm"}
    for table in (2, 3):
        assert {s.name for s in systems(table) if s.reimplemented} == trained


@pytest.mark.parametrize(
    "system", [s for s in PUBLISHED.systems if s.average], ids=lambda s: f"{s.table}-{s.name}"
)
def test_an_average_is_that_of_its_figures(system):
    places = 1 if system.table == 2 else 2
    rounding = 0.5 * 10**-places + 1e-9
    assert mean(system.accuracy.values()) == pytest.approx(system.average, abs=rounding)


def test_the_paper_is_best_on_eleven_of_sixteen_corpora_not_twelve():
    best = {}
    for corpus in systems(2)[0].accuracy:
        found = PUBLISHED.accuracies(corpus)
        best[corpus] = max(found, key=found.__getitem__)
    assert list(best.values()).count("fathomer") == 11
    assert best["amazon16/dvd"] == "s-lstm"  # the paper prints its own figure in bold


def test_the_changes_of_the_ablation_are_differences_to_its_first_row():
    reference = PUBLISHED.ablation[0]
    for row in PUBLISHED.ablation:
        change = row.accuracy - reference.accuracy
        assert change == pytest.approx(row.accuracy_change, abs=1e-6)
        assert row.speed - reference.speed == row.speed_change
    assert reference.accuracy == PUBLISHED.accuracies("imdb")["fathomer"]


def numbers(text):
    """Return the numbers in a table's body, without the markup around them."""
    text = re.sub(r"\\(short)?cite\{[^}]*\}|\$\\pm\$|\\textbf", " ", text)
    return [float(n) for n in re.findall(r"(?<![\w.])[-+]?\d+(?:\.\d+)?(?![\w.-]*[A-Za-z])", text)]


def body(label):
    """Return the rows of a table in the paper's source."""
    if not PAPER.is_file():
        pytest.skip("the source of the paper is not available")
    source = PAPER.read_text(encoding="utf-8").partition(f"\\label{{{label}}}")[0]
    lines = source[source.rindex("\\begin{tabular}") :].splitlines()
    return [line.replace("{,}", "").replace("\\\\", "") for line in lines if "&" in line][1:]


def test_table_2_is_the_papers():
    rows = [numbers(line.partition("&")[2]) for line in body("amazon16_result")]
    found = zip(*(([*s.accuracy.values(), s.average]) for s in systems(2)), strict=True)
    assert rows == [list(row) for row in found]


def test_table_3_is_the_papers():
    rows = [numbers(line.partition("&")[2]) for line in body("cls_result")]
    found = [[*s.accuracy.values(), *([s.average] if s.average else [])] for s in systems(3)]
    assert rows == found


def test_table_4_is_the_papers():
    rows = [numbers(line.split("&", 2)[2]) for line in body("ablation")]
    found = []
    for v in PUBLISHED.ablation:
        changes = ([v.accuracy_change], [v.speed_change]) if v.row else ([], [])
        accuracy, speed = (v.accuracy, v.accuracy_deviation), (v.speed, v.speed_deviation)
        found.append([*accuracy, *changes[0], *speed, *changes[1]])
    assert [row for row in rows if row] == found


def test_table_1_is_the_papers():
    rows = [numbers(line.partition("&")[2].replace(",", "")) for line in body("data_statistics")]
    labels = {corpus.folder: len(corpus.labels) for corpus in CORPORA.values()}
    found = [
        [labels[name], c.average_words, c.longest_words, c.train, *([c.test] if c.test else [])]
        for name, c in TABLE_1.items()
    ]
    assert [row for row in rows if len(row) > 2] == found
