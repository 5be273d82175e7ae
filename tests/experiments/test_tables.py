"""The paper's tables with our figures next to the published ones."""

from dataclasses import replace

from experiments.groups import find_group
from experiments.tables import significance, table2, table3
from fathomer.data.datasets import CORPORA
from tests.experiments.fakes import fake


def test_amazon_has_a_column_for_test_texts_that_were_not_trained_on():
    table = table2([fake("amazon16/dvd", right=85)])
    (row,) = [row for row in table.rows if row[0] == "dvd"]
    assert row[1:4] == ["85.00 (1) v", "80.00 (1) v", "88.8"]
    assert table.rows[-1][1] == "–", "no mean over only some of the corpora"


def test_the_mean_of_amazon_is_over_corpora_not_over_runs():
    names = [name for name in CORPORA if name.startswith("amazon16/")]
    runs = [fake(name, right=80, accuracy_unseen=0.75) for name in names]
    more = [fake(names[0], right=80, accuracy_unseen=0.75, seed=seed) for seed in range(1, 20)]
    low = replace(runs[1], accuracy_unseen=0.59)
    assert table2([*runs, *more, low]).rows[-1][1:3] == ["80.00 (36) v", "74.50 (36) v"]


def test_ours_is_compared_with_rivals_of_the_same_settings():
    short = {"train.epochs": 1}
    runs = [fake(), fake(seed=1), fake(model="s-lstm", right=80)]
    runs += [fake(model=model, seed=seed, right=99, settings=short)
             for model in ("bilstm", "s-lstm") for seed in (0, 1)]  # fmt: skip
    assert [row[:3] for row in significance(runs).rows] == [["trec", "fathomer", "s-lstm"]]
    cells = {row[0]: row[1] for row in table3(runs).rows}
    assert cells == {"fathomer": "90.00 ± 0.00 (2) v", "bilstm": "–", "s-lstm": "80.00 (1) v"}
    sizes = [fake(settings={"model.hidden_size": 200}, hidden_size=200), fake(right=91)]
    assert find_group(sizes, "trec", "fathomer").mean("accuracy") == 0.91, (
        "the larger of equally many"
    )


def test_the_note_says_which_part_of_a_corpus_was_used():
    runs = [fake("mr", fold=fold, folds=10, right=70 + fold, notes=(f"mr: fold {fold} of 10",))
            for fold in (1, 2, 3)]  # fmt: skip
    runs += [fake("mr", "bilstm", fold=fold, folds=10) for fold in (1, 2)]
    runs.append(fake("ag_news", notes=("partial training file: 1 of 2",)))
    assert table3(runs).note.split("\n\n") == [
        "ag_news: partial training file: 1 of 2.",
        "mr: our figure is over 3 folds; over folds 1 and 2, which all models were run on, it is "
        "71.50 ± 0.71 (2) vf.",
        "Training epochs: 10.",
    ]
    runs.append(fake("trec", settings={"train.epochs": 1}))
    assert table3(runs).note.endswith("Training epochs: trec 1, ag_news 10, mr 10.")


def test_the_corpora_of_amazon_are_compared_one_by_one_and_together():
    runs = [fake(f"amazon16/{name}", model, right=right) for name, right in (("dvd", 80), ("toys", 90))
            for model, right in (("fathomer", right), ("tfidf", 85))]  # fmt: skip
    found = [[row[0], row[3], row[4], row[6]] for row in significance(runs).rows]
    assert found == [
        ["amazon16/dvd", "100", "1", "-5.00"],
        ["amazon16/toys", "100", "1", "+5.00"],
        ["amazon16, together", "200", "2", "+0.00"],
    ]


def test_a_comparison_shows_the_number_of_runs_and_the_size_of_the_rival():
    runs = [fake(parameters=200), fake(seed=1, parameters=200), fake(model="bilstm", parameters=50)]
    (row,) = significance(runs).rows
    assert row[:6] == ["trec", "fathomer", "bilstm", "100", "1", "0.25"]


def test_the_default_model_is_compared_with_the_published_one_and_with_rivals():
    default = {"model.max_depth": 3, "model.ngrams": True}
    runs = [fake(), fake(settings=default, right=99), fake(model="bilstm", right=80)]
    assert [[*row[1:3], row[6], row[-1]] for row in significance(runs).rows] == [
        ["fathomer, by default", "fathomer", "+9.00", "better"],
        ["fathomer, by default", "bilstm", "+19.00", "better"],
        ["fathomer", "bilstm", "+10.00", "better"],
    ]


def test_a_rival_that_has_not_learned_its_training_texts_is_marked_and_not_called_beaten():
    runs = [fake(right=95), fake(model="bilstm", right=60, train_accuracy=0.7)]
    (row,) = significance(runs).rows
    assert row[-1] == "rival has not learned"
    assert {row[0]: row[1] for row in table3(runs).rows}["bilstm"] == "60.00 (1) vt"
    runs[1] = fake(model="bilstm", right=60, train_accuracy=0.95)
    assert significance(runs).rows[0][-1] == "better"


def test_verdicts_are_corrected_for_the_number_of_comparisons():
    rivals = ["bilstm", "s-lstm", "text-cnn", "transformer", "dpcnn", "drnn"]
    one = significance([fake(right=90), fake(model="bilstm", right=85)]).rows[0]
    many = significance([fake(right=90), *(fake(model=name, right=85) for name in rivals)]).rows[0]
    assert one[8] == many[8] == one[9]
    assert (one[-1], many[-1]) == ("better", "no difference shown")


def test_corpora_together_count_the_same_whatever_their_number_of_texts():
    runs = [fake("trec", right=90), fake("trec", "bilstm", right=80)]
    runs += [fake("imdb", right=90), fake("imdb", "bilstm", right=90)]
    assert [row[6] for row in significance(runs).rows if row[0] == "all, together"] == ["+5.00"]
