"""The first table of RESULTS.md."""

from experiments.alternatives import MINILM, Measured
from experiments.overview import overview, standing
from tests.experiments.fakes import fake

DEFAULT = {"model.max_depth": 3, "model.ngrams": True}


def test_a_row_has_the_systems_that_a_reader_would_choose_from():
    runs = [
        fake(right=90),
        fake(seed=1, right=92),
        fake(settings=DEFAULT, right=94),
        fake(model="tfidf", right=80),
    ]
    table = overview(runs)
    assert table.header == [
        "corpus",
        "paper",
        "as published",
        "Fathomer",
        "BiLSTM",
        "S-LSTM",
        "TF-IDF",
        "MiniLM + regression",
    ]
    assert table.rows == [["trec", "96.4", "91.0 (2)", "94.0", "–", "–", "80.0", "–"]]


def test_sentence_embeddings_are_shown_where_they_saw_the_same_test_set():
    runs = [fake(f"amazon16/{name}", settings=DEFAULT) for name in ("dvd", "toys")]
    runs += [fake(f"amazon16/{name}", "tfidf") for name in ("dvd", "toys")]
    runs += [fake("mr", model, fold=2, folds=10) for model in ("tfidf", "fathomer")]
    accuracies = {"amazon16/dvd": 0.8, "amazon16/toys": 0.9, "mr": 0.7}
    measured = [Measured(c, MINILM, a, 40.0, 30.0, 90.0, 400, 1) for c, a in accuracies.items()]
    assert [row[-1] for row in overview(runs, measured).rows] == ["–", "85.0"], "MR has folds"
    assert [row[-1] for row in overview(runs, measured[1:]).rows] == ["–", "–"]


def test_domains_are_averaged_where_all_systems_of_the_row_were_run():
    runs = [
        fake(f"amazon16/{name}", right=right)
        for name, right in (("dvd", 80), ("toys", 90), ("mr", 10))
    ]
    runs += [fake(f"amazon16/{name}", "tfidf", right=70) for name in ("dvd", "toys")]
    (row,) = overview(runs).rows
    assert row == ["amazon16 (2 of 16)", "89.9", "85.0", "–", "–", "–", "70.0", "–"]


def test_a_system_that_was_run_on_fewer_domains_has_a_row_of_its_own():
    domains = {"dvd": 80, "toys": 90, "mr": 70}
    runs = [fake(f"amazon16/{n}", settings=DEFAULT, right=right) for n, right in domains.items()]
    runs += [fake(f"amazon16/{name}", "tfidf", right=60) for name in domains]
    runs.append(fake("amazon16/toys", "bilstm", right=85))
    assert [[row[0], *row[3:-1]] for row in overview(runs).rows] == [
        ["amazon16 (3 of 16)", "80.0", "–", "–", "60.0"],
        ["amazon16 (1 of 16)", "90.0", "85.0", "–", "60.0"],
    ]


def test_a_partial_training_file_is_named():
    run = fake("ag_news", "tfidf", notes=("partial training file: 1 of 2",))
    assert overview([run]).rows[0][0] == "ag_news (part of the training texts)"


def test_folds_are_averaged_where_all_systems_of_the_row_were_run():
    runs = [fake("mr", "tfidf", fold=fold, folds=10, right=70 + fold) for fold in (1, 2, 3)]
    runs.append(fake("mr", fold=2, folds=10, right=80))
    assert overview(runs).rows == [["mr", "83.4", "80.0", "–", "–", "–", "72.0", "–"]]


def test_lines_say_where_the_default_model_stands():
    runs = [fake(settings=DEFAULT, right=94), fake(model="tfidf", right=80)]
    runs += [fake("imdb", settings=DEFAULT, right=90), fake("imdb", "tfidf", right=92)]
    runs.append(fake(model="bilstm", right=95))
    bilstm, tfidf = standing(runs)
    assert bilstm.startswith(
        "- Fathomer is 1.0 points behind a three-layer BiLSTM on average (95 %"
    )
    assert "which may be chance, and ahead on 0 of the 1 corpora" in bilstm
    assert tfidf.startswith("- Fathomer is 6.0 points ahead of TF-IDF on average (95 %: +")
    assert tfidf.endswith("), and ahead on 1 of the 2 corpora or domains where both were run.")
    assert standing([]) == []
    (level,) = standing([fake(settings=DEFAULT), fake(model="s-lstm")])
    assert level.startswith(
        "- Fathomer is level with the S-LSTM on average (95 %: +0.0 to +0.0), and"
    )


def test_without_runs_there_are_no_rows():
    assert overview([]).rows == []
