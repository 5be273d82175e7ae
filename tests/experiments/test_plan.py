"""Experiments: which runs a TOML file plans, and how their results are found again."""

from dataclasses import replace

import pytest

from experiments.groups import BY_DEFAULT, DEFAULTS, REFERENCE
from experiments.plan import (
    Experiment,
    Plan,
    RunsEntry,
    corpus_recipe,
    find_experiment,
    select_plans,
    shipped_experiments,
)
from fathomer.errors import ConfigError
from fathomer.recipes import shipped_recipes
from fathomer.train.automatic import DataSize, automatic_recipe


def test_an_experiment_plans_every_combination_once(experiment):
    plans = Experiment.from_toml(experiment).plans()
    found = [(p.recipe.model.name, p.variant, p.fold) for p in plans]
    assert found == [
        ("fathomer", None, 1), ("tfidf", None, 1), ("fathomer", None, 2), ("tfidf", None, 2),
        ("fathomer", "full", 1),
    ], "a variant that changes nothing is not a run of its own"  # fmt: skip
    assert {p.recipe.train.epochs for p in plans} == {2}
    assert plans[4].recipe == plans[0].recipe.with_settings(["model.depth=full"])


def test_a_name_is_readable_and_its_key_depends_on_what_decides_the_result():
    plan = Plan(corpus="amazon16/dvd", settings={"train.seed": 3}, variant="soft", fold=2, folds=5)
    assert plan.name == f"amazon16-dvd-fathomer-soft-fold2-seed3-{plan.key}"
    assert replace(plan, variant="other", forced_depths=(1,)).key == plan.key
    for change in ({"fold": 1}, {"folds": 9}, {"corpus": "mr"}, {"vectors": "v"},
                   {"settings": {}}, {"match_parameters": True}):  # fmt: skip
        assert replace(plan, **change).key != plan.key, change


@pytest.mark.parametrize("name", shipped_experiments())
def test_a_shipped_experiment_compares_models_at_the_same_settings_but_rate_and_epochs(name):
    plans = Experiment.from_toml(shipped_experiments()[name]).plans()
    assert name not in shipped_recipes()
    assert find_experiment(name) == shipped_experiments()[name]
    assert len({plan.key for plan in plans}) == len({plan.name for plan in plans}) == len(plans)
    own = {"model": {"name": "fathomer"}, "train": {"seed": 0, "learning_rate": 0.001, "epochs": 1}}
    for corpus in {plan.corpus for plan in plans}:
        chosen = [p for p in plans if p.corpus == corpus and not p.variant]
        assert len({p.recipe.updated(own) for p in chosen}) <= 1, corpus


def test_a_model_has_its_own_learning_rate_unless_the_experiment_sets_it():
    def rates(**sections):
        runs = (RunsEntry(corpora=["trec"], models=["bilstm", "transformer"]),)
        return [p.recipe.train.learning_rate for p in Experiment(runs=runs, **sections).plans()]

    assert rates() == [0.001, 0.0006]
    assert rates(settings={"train": {"learning_rate": 0.01}}) == [0.01, 0.01]
    assert rates(models={"transformer": {"train": {"learning_rate": 0.1}}}) == [0.001, 0.1]


@pytest.mark.parametrize("corpus", ["trec", "mr", "imdb", "ag_news", "amazon16/books"])
def test_corpora_have_the_automatic_settings_of_their_size(corpus):
    size = DataSize.of(["a b"] * 20, 20_000, max_words=100)
    recipe, automatic = corpus_recipe(corpus), automatic_recipe(size)
    assert recipe.model.hidden_size == automatic.model.hidden_size == 200
    config = automatic.model.to_dict()
    assert {name: config[name] for name in DEFAULTS} == DEFAULTS, "what train does by default"
    config = recipe.model.to_dict()
    assert {name: config[name] for name in REFERENCE} == REFERENCE, "the published model"


def test_the_number_of_epochs_follows_from_the_size_of_the_corpus():
    epochs = {name: corpus_recipe(name).train.epochs for name in ("trec", "imdb", "ag_news")}
    assert epochs["trec"] > epochs["imdb"] >= epochs["ag_news"]


def test_rivals_with_a_hidden_size_are_as_large_as_ours():
    runs = (RunsEntry(corpora=["trec"], models=["fathomer", "bilstm", "s-lstm", "tfidf"]),)
    plans = Experiment(runs=runs, match_parameters=True).plans()
    assert [plan.match_parameters for plan in plans] == [False, True, True, False]


def test_tables_include_the_model_that_train_makes():
    for name in ("table2", "table3"):
        plans = Experiment.from_toml(shipped_experiments()[name]).plans()
        chosen = [p.recipe.model.to_dict() for p in plans if p.variant == "default"]
        assert chosen, name
        assert all(DEFAULTS.items() <= config.items() for config in chosen), BY_DEFAULT


def test_the_papers_tables_and_figure_are_shipped():
    assert set(shipped_experiments()) == {"table2", "table3", "table4", "figure3"}


def test_tables_share_their_runs():
    keys = {
        name: {plan.key for plan in Experiment.from_toml(path).plans()}
        for name, path in shipped_experiments().items()
    }
    assert len(keys["table3"] & keys["table4"]) == 3, "the full model on TREC, three seeds"


def test_forced_depths_of_entries_with_the_same_run_are_united(tmp_path):
    path = tmp_path / "e.toml"
    entry = "[[runs]]\ncorpora = ['trec']\n"
    path.write_text(f"[experiment]\n{entry}forced_depths = [9, 1]\n{entry}forced_depths = [3]\n")
    (plan,) = Experiment.from_toml(path).plans()
    assert plan.forced_depths == (1, 3, 9)


def test_plans_are_selected_by_name():
    plans = [Plan(corpus=corpus, settings={}) for corpus in ("trec", "mr")]
    assert select_plans(plans, None) == plans
    assert select_plans(plans, "mr-*") == plans[1:]
    with pytest.raises(ConfigError, match=f"^no run is called x; one of them is {plans[0].name}$"):
        select_plans(plans, "x")
    with pytest.raises(ConfigError, match="the experiment has no runs"):
        select_plans([], None)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[train]\nepochs = 3", "not an experiment"),
        ("[experiment]\nvector = 'x'", "did you mean 'vectors'"),
        ("[experiment]\n[[runs]]\ncorpora = ['trec']\nseed = [1]", "did you mean 'seeds'"),
        ("[experiment]\n[settings.train]\nepoch = 1\n[[runs]]\ncorpora = ['trec']", "'epochs'"),
        ("[experiment]\n[[runs]]\nmodels = ['tfidf']", "corpora"),
        ("[experiment]\n[[runs]]\ncorpora = ['trec']\nmodels = ['text-cn']", "'text-cnn'"),
        ("[experiment]\n[[runs]]\ncorpora = ['trec']\nvariants = ['x']", "no such variant 'x'"),
        ("[experiment", "E.toml"),
    ],
)
def test_a_mistake_in_an_experiment_is_one_line(tmp_path, text, message):
    (tmp_path / "E.toml").write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=message) as caught:
        Experiment.from_toml(tmp_path / "E.toml")
    assert "\n" not in str(caught.value)
