"""RESULTS.md follows from all runs."""

import json
from pathlib import Path

import pytest

from experiments.figures import figure_tables, sampled_run
from experiments.report import _worth, judged, results_page
from experiments.runs import read_runs
from experiments.tables import all_tables
from tests.experiments.fakes import fake
from tests.tiny import tiny_artifact, tiny_examples, write_csv

ROOT = Path(__file__).parents[2]


def test_without_runs_nothing_was_attempted_and_every_cell_of_ours_is_empty(tmp_path):
    assert {claim.verdict for claim in judged(tmp_path)} == {"not attempted"}
    page = results_page(tmp_path, beside=tmp_path)
    assert "Not attempted: more accurate than S-LSTM;" in page
    assert "| fathomer | – | 96.4 |" in page


def test_the_page_opens_with_the_distance_to_the_paper(tmp_path):
    for each in (fake(right=90), fake("amazon16/dvd", right=80), fake("amazon16/toys", right=90)):
        each.save(tmp_path)
    page = results_page(tmp_path, beside=tmp_path)
    assert "- Our accuracy against the paper's own, in points: trec -6.40, amazon16 -4.90." in page
    fake("ag_news", notes=("partial training file: 1 of 2",)).save(tmp_path)
    page = results_page(tmp_path, beside=tmp_path)
    assert "ag_news (with a part of the training texts) -4.93, amazon16" in page
    assert "-dirty" not in page
    fake(model="bilstm", commit="0123456789ab-dirty").save(tmp_path)
    assert "1 runs were made with changes" in results_page(tmp_path, beside=tmp_path)


def test_the_command_writes_page_tables_and_figures(run, tmp_path):
    for each in [fake(), *(fake(settings={"model.max_depth": n}, right=80 + n) for n in (1, 5))]:
        each.save(tmp_path / "results")
    for seed in (0, 1, 2):
        fake(seed=seed).save(tmp_path / "results")
        fake(model="s-lstm", seed=seed, right=70).save(tmp_path / "results")
    code, out, _ = run("experiment", "report")
    assert code == 0
    assert "reproduced    more accurate than S-LSTM" in out
    page = (tmp_path / "RESULTS.md").read_text(encoding="utf-8")
    assert page == results_page(tmp_path / "results", beside=tmp_path)
    for name in ("figure3.png", "figure4.png"):
        assert f"(results/figures/{name})" in page
        assert (tmp_path / "results" / "figures" / name).read_bytes()[1:4] == b"PNG"
    names = {path.stem for path in (tmp_path / "results" / "tables").glob("*.csv")}
    assert names == {table.name for table in all_tables([])} | {"figure3", "figure4"}
    assert "| 5 | 85.00% |" in page
    assert "| 9 | 90.00% |" in page
    assert "Vectors of these runs: `mixed.300d`." in page


def test_the_curves_of_figure_3_are_of_models_of_one_size(tmp_path):
    """The full-size model was run more often, but with one largest depth only."""
    for seed in (0, 1):
        fake(seed=seed, right=99).save(tmp_path)
    for depth in (1, 5, 9):
        settings = {"model.max_depth": depth, "model.hidden_size": 200}
        fake(settings=settings, right=70 + depth).save(tmp_path)
    page = results_page(tmp_path, beside=tmp_path)
    assert "## Figure 3: the largest depth (trec, hidden size 200)" in page
    assert "| 9 | 79.00% |" in page
    assert "Chance alone moves an accuracy on 100 texts by 4.1 points (standard error)." in page


def test_the_page_says_which_words_are_deep(run, tmp_path):
    tiny_artifact().save(tmp_path / "model")
    data = str(write_csv(tmp_path / "opinions.csv", tiny_examples()))
    folder = tmp_path / "results" / "depths"
    folder.mkdir(parents=True)
    plot = str(folder / "opinions.png")
    code, out, _ = run("experiment", "depths", "model", data, "--plot", plot, "--json")
    assert code == 0
    (folder / "opinions.json").write_text(out, encoding="utf-8")
    page = results_page(tmp_path / "results", beside=tmp_path)
    assert "## Which words are read deeply: opinions" in page
    assert "(results/depths/opinions.png)" in page
    found = json.loads(out)
    deepest = found["deepest"][0]
    assert f"The deepest frequent words: {deepest['name']} ({deepest['mean_depth']:.1f})" in page
    assert f"{found['by_length'][0]['name']}: {found['by_length'][0]['mean_depth']:.2f} |" in page


def test_speed_is_compared_with_the_same_model_at_full_depth(tmp_path):
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


def test_figure_4_shows_the_model_itself_not_a_row_of_the_ablation():
    long = tuple({"number": n, "label": "x", "depths": [1] * 99} for n in (1, 2))
    row = fake(settings={"model.sequence": "learned"}, samples=long)
    shallow = fake(settings={"model.max_depth": 1}, samples=long)
    ours = fake()
    assert sampled_run([row, ours, shallow]) is ours
    (table,) = figure_tables([row, ours])
    assert table.rows[1] == ["2", "x", "2", "0", "1", *"000000", "1"]


@pytest.mark.parametrize(
    ("selected", "said"), [(0.9, "better than each"), (0.1, "worse than each"), (0.5, "No sign")]
)
def test_what_the_choice_of_depths_is_worth(selected, said):
    assert said in _worth(selected, [0.4, 0.5, 0.6])


def test_the_page_in_the_repository_is_the_one_that_its_runs_make():
    if not (ROOT / "results" / "runs").is_dir():
        pytest.skip("there are no results")
    page = (ROOT / "RESULTS.md").read_text(encoding="utf-8")
    assert page == results_page(ROOT / "results", beside=ROOT)
    runs = read_runs(ROOT / "results")
    for table in (*all_tables(runs), *figure_tables(runs)):
        written = (ROOT / "results" / "tables" / f"{table.name}.csv").read_text(encoding="utf-8")
        assert written == table.to_csv()
