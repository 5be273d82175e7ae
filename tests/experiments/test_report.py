"""RESULTS.md, generated from the runs."""

import json
from dataclasses import asdict

import pytest

from experiments.alternatives import Measured, read_measured
from experiments.depth_curves import DepthPoint, DepthTrial
from experiments.depth_report import describe_shuffling
from experiments.figures import figure_tables
from experiments.report import all_tables, judge_results, results_page
from experiments.runs import read_runs
from tests.experiments.fakes import fake
from tests.experiments.small import ROOT
from tests.tiny import tiny_artifact, tiny_examples, write_csv


def test_without_runs_nothing_was_attempted_and_all_our_cells_are_empty(tmp_path):
    assert {claim.verdict for claim in judge_results(tmp_path)} == {"not attempted"}
    page = results_page(tmp_path, beside=tmp_path)
    assert 'Not attempted: "more accurate than S-LSTM";' in page
    assert '"the BiLSTM under the S-LSTM contributes to accuracy" | not attempted |' in page
    assert "| fathomer | – | 96.4 |" in page


def test_the_page_opens_with_the_gaps_to_the_papers_accuracies(tmp_path):
    for each in (fake(right=90), fake("amazon16/dvd", right=80), fake("amazon16/toys", right=90)):
        each.save(tmp_path)
    page = results_page(tmp_path, beside=tmp_path)
    assert (
        "- Our accuracy minus the paper's, in percentage points: trec -6.40, amazon16 -4.90."
        in page
    )
    fake("ag_news", notes=("partial training file: 1 of 2",)).save(tmp_path)
    page = results_page(tmp_path, beside=tmp_path)
    assert "ag_news (with part of the training texts) -4.93, amazon16" in page
    assert "-dirty" not in page
    fake(model="bilstm", commit="0123456789ab-dirty").save(tmp_path)
    assert "1 runs were made before all changes were committed" in results_page(
        tmp_path, beside=tmp_path
    )


def test_the_page_shows_what_one_would_use_instead(tmp_path):
    assert "What one would use instead" not in results_page(tmp_path, beside=tmp_path)
    line = asdict(Measured("trec", "TF-IDF", 0.876, 7.34, 35868.2, 1.6, 500, 1))
    (tmp_path / "alternatives.jsonl").write_text(json.dumps(line) + "\n")
    page = results_page(tmp_path, beside=tmp_path)
    assert "| trec | TF-IDF | 87.6 | 7.3 | 35,868 | 1.6 |" in page
    assert "Threads: 1." in page
    assert "![What one would use instead](figures/alternatives.png)" in page


def test_the_page_shows_accuracy_against_average_depth(run_experiments, tmp_path):
    results = tmp_path / "experiments" / "results"
    fake().save(results)
    trial = DepthTrial(
        corpus="trec", method="mi", seed=0, settings={}, examples=500, train_seconds=80.0, versions={},
        points=(DepthPoint(2.0, 1.96, 0.91, 1200.0, 0.9, 0.005),),
    )  # fmt: skip
    (results / "curves.jsonl").write_text(trial.to_json() + "\n")
    assert run_experiments("report")[0] == 0
    page = (tmp_path / "RESULTS.md").read_text(encoding="utf-8")
    assert "| trec | mi | 2 | 1 | 1.96 | 91.0 | +1.0 ± 0.5 | 1,200 | 80 |" in page
    assert "![Accuracy against average depth](experiments/results/figures/curves.png)" in page
    assert (results / "figures" / "curves.png").read_bytes()[1:4] == b"PNG"
    assert (results / "tables" / "curves.csv").exists()


def test_the_command_writes_page_tables_and_figures(run_experiments, tmp_path):
    results = tmp_path / "experiments" / "results"
    for each in [fake(), *(fake(settings={"model.max_depth": n}, right=80 + n) for n in (1, 5))]:
        each.save(results)
    for seed in (0, 1, 2):
        fake(seed=seed).save(results)
        fake(model="s-lstm", seed=seed, right=70).save(results)
    code, out, _ = run_experiments("report")
    assert code == 0
    assert "reproduced    more accurate than S-LSTM" in out
    page = (tmp_path / "RESULTS.md").read_text(encoding="utf-8")
    assert page == results_page(results, beside=tmp_path)
    for name in ("figure3.png", "figure4.png"):
        assert f"(experiments/results/figures/{name})" in page
        assert (results / "figures" / name).read_bytes()[1:4] == b"PNG"
    names = {path.stem for path in (results / "tables").glob("*.csv")}
    assert names == {table.name for table in all_tables([], [])} | {"figure3", "figure4"}
    assert "| 5 | 85.00% |" in page
    assert "| 9 | 90.00% |" in page
    assert "Word vectors of these runs: `mixed.300d`." in page


def test_the_page_shows_which_words_are_deep(run_experiments, tmp_path):
    tiny_artifact().save(tmp_path / "model")
    data = str(write_csv(tmp_path / "opinions.csv", tiny_examples()))
    folder = tmp_path / "results" / "depths"
    folder.mkdir(parents=True)
    plot = str(folder / "opinions.png")
    code, out, _ = run_experiments("depths", "model", data, "--plot", plot, "--json")
    assert code == 0
    (folder / "opinions.json").write_text(out, encoding="utf-8")
    page = results_page(tmp_path / "results", beside=tmp_path)
    assert "## Which words are read deeply: opinions" in page
    assert "(results/depths/opinions.png)" in page
    found = json.loads(out)
    deepest = found["deepest"][0]
    assert f"The deepest frequent words: {deepest['name']} ({deepest['mean_depth']:.1f})" in page
    assert f"{found['by_length'][0]['name']}: {found['by_length'][0]['mean_depth']:.2f} |" in page


def test_the_speed_up_is_that_of_one_model_over_its_full_depth(tmp_path):
    forced = ({"depth": 9, "accuracy": 0.7, "words_per_second": 40.0},)
    fake(forced=forced, speed=100.0).save(tmp_path)
    page = results_page(tmp_path, beside=tmp_path)
    assert "| trec (1) v | 5.00 | 4.00 | 2.50 | 90.00% |" in page
    fake(seed=1, forced=forced, speed=60.0, mean_depth=7.0).save(tmp_path)
    page = results_page(tmp_path, beside=tmp_path)
    assert "| trec (2) v | 5.00 | 5.50 (4.00 to 7.00) | 2.00 | 90.00% | 9: 70.00% |" in page
    better = ({"depth": 9, "accuracy": 0.76, "words_per_second": 40.0},)
    fake(seed=2, forced=better, speed=80.0, right=84, mean_depth=4.0).save(tmp_path)
    assert "| 2.00 | 88.00% | 9: 72.00% |" in results_page(tmp_path, beside=tmp_path)


@pytest.mark.parametrize(
    ("selected", "verdict"),
    [(0.9, "better than all"), (0.1, "worse than all"), (0.5, "There is no sign")],
)
def test_selected_depths_are_compared_with_shuffled_ones(selected, verdict):
    assert verdict in describe_shuffling(selected, [0.4, 0.5, 0.6])


def test_the_page_in_the_repository_is_up_to_date():
    results = ROOT / "experiments" / "results"
    page = (ROOT / "RESULTS.md").read_text(encoding="utf-8")
    assert page == results_page(results, beside=ROOT)
    runs, measured = read_runs(results), read_measured(results / "alternatives.jsonl")
    for table in (*all_tables(runs, measured), *figure_tables(runs)):
        written = (results / "tables" / f"{table.name}.csv").read_text(encoding="utf-8")
        assert written == table.to_csv()
