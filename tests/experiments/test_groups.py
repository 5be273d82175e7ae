"""Groups of runs: which runs belong together, and the cells made of them."""

from experiments.groups import Group, find_group, find_pair
from experiments.tables import table3
from tests.experiments.fakes import fake


def test_runs_with_different_settings_are_not_mixed():
    runs = [fake(seed=0), fake(seed=1), fake(seed=2, settings={"train.epochs": 3}, right=1)]
    assert find_group(runs, "trec", "fathomer").runs == tuple(runs[:2])
    assert find_group(runs, "trec", "fathomer", depth="hard") is None


def test_a_cell_shows_mean_deviation_number_of_runs_and_marks():
    runs = [fake(seed=seed, right=right) for seed, right in enumerate((88, 90, 92))]
    group = find_group(runs, "trec", "fathomer")
    assert group.cell() == "90.00 ± 2.00 (3) v"
    assert find_group(runs[:1], "trec", "fathomer").cell() == "88.00 (1) v"
    assert "| 90.00 ± 2.00 (3) v | 96.4 |" in table3(runs).to_markdown()


def test_differences_from_the_paper_are_marked():
    exact = fake(vectors="glove.840B.300d")
    assert Group((exact,)).marks == ""
    small = fake(settings={"model.hidden_size": 200})
    partial = fake(notes=("partial training file: 1 of 2",))
    folds = fake("mr", fold=1, folds=1)
    assert [Group((run,)).marks for run in (small, partial, folds)] == ["vs", "vp", "vf"]
    short = [fake("imdb", model=name, settings={"train.epochs": 2}) for name in ("bilstm", "tfidf")]
    assert [Group((run,)).marks for run in short] == ["ve", ""], (
        "a model without epochs has no mark"
    )
    size = {"model.hidden_size": 200}
    others = [fake(model=name, settings=size) for name in ("bilstm", "char-cnn", "tfidf")]
    assert [Group((run,)).marks for run in others] == ["vs", "s", ""], "only what a model uses"


def test_a_rival_with_its_own_rate_and_epochs_is_compared_with_ours():
    own = {"train.learning_rate": 0.0006, "train.epochs": 20}
    runs = [fake(), fake(model="transformer", settings=own), fake(model="bilstm", settings=own)]
    assert find_pair(runs, "trec", "transformer")[1].runs == (runs[1],)
    assert find_pair(runs, "trec", "bilstm") is None, "its own are those of ours"
    other = {**own, "model.hidden_size": 200}
    runs[1] = fake(model="transformer", settings=other)
    assert find_pair(runs, "trec", "transformer") is None
