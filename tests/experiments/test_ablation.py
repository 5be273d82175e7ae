"""The ablation: its variants, and the paper's Table 4 with our figures."""

import pytest

from experiments.ablation import ablated_corpus, table4, variant_settings
from experiments.plan import RECIPES, Experiment
from experiments.published import published
from fathomer.recipes import starting_recipe
from tests.experiments.fakes import DEEP, fake

CHANGES = {
    "full_depth": ["model.depth=full"],
    "no_sequence": ["model.sequence=none"],
    "sinusoidal": ["model.sequence=sinusoidal"],
    "learned": ["model.sequence=learned"],
    "hard": ["model.depth=hard"],
    "soft": ["model.depth=soft"],
}


def test_each_row_of_the_paper_is_a_variant_that_changes_one_setting():
    assert [row.variant for row in published().ablation] == [None, *CHANGES]
    experiment = Experiment.from_toml(RECIPES / "table4.toml")
    assert list(experiment.variants) == list(CHANGES)
    reference = starting_recipe("imdb")
    for variant, settings in CHANGES.items():
        changed = reference.updated(experiment.variants[variant])
        assert changed == reference.with_settings(settings) != reference


def test_every_variant_is_run_with_the_seeds_of_the_full_model():
    plans = Experiment.from_toml(RECIPES / "table4.toml").plans()
    seeds = {name: [p.recipe.train.seed for p in plans if p.variant == name]
             for name in (None, *CHANGES)}  # fmt: skip
    assert set(map(tuple, seeds.values())) == {(0, 1, 2)}


def test_an_unknown_variant_is_an_error():
    assert variant_settings(None) == {}
    with pytest.raises(KeyError):
        variant_settings("none")


def test_the_ablated_corpus_has_the_most_rows():
    assert ablated_corpus([]) == "imdb", "the paper's"
    hard = {"model.depth": "hard"}
    assert ablated_corpus([fake("imdb"), fake(), fake(settings=hard)]) == "trec"
    both = [fake("imdb"), fake("imdb", settings=hard), fake(), fake(settings=hard)]
    assert ablated_corpus(both) == "imdb"


def test_another_corpus_than_the_papers_is_marked():
    runs = [fake(), fake(settings={"model.depth": "hard"})]
    assert "vc" in table4(runs).rows[5][1]


def test_the_ablation_shows_changes():
    runs = [
        fake(right=90, speed=300.0),
        fake(right=88, speed=100.0, settings={"model.depth": "full"}),
    ]
    row = table4(runs).rows[1]
    assert row[2:9] == ["-2.00", "96.10 ± 0.08", "-0.17", "100", "-200", "16", "-41"]


def test_the_note_has_the_speed_up_of_one_model_on_the_papers_corpus():
    assert "both ways" not in table4([fake("imdb"), fake(forced=DEEP)]).note
    note = table4([fake("imdb", forced=DEEP, speed=250.0)]).note
    assert "250 words per second at the selected depths, 100 with every word at depth 9" in note
    assert "2.50 times as fast (the paper's rows: 3.56 times)" in note
