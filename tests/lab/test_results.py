"""The report: cells, comparisons and verdicts follow from the runs; RESULTS.md from all of them."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fathomer.lab.claims import all_claims, judge
from fathomer.lab.groups import Comparison, Group, compare, find_group
from fathomer.lab.results import results_page
from fathomer.lab.runs import Run, pack_bits
from fathomer.lab.tables import all_tables, table2, table3, table4

from ..tiny import tiny_artifact, tiny_examples, write_csv

ROOT = Path(__file__).parents[2]


def fake(corpus="trec", model="fathomer", *, seed=0, right=90, speed=100.0, **others):
    """Make a run up that answers the first texts rightly."""
    answers = np.arange(100) < right
    settings = {"train.seed": seed} | ({"model.name": model} if model != "fathomer" else {})
    deep = model == "fathomer"
    values = dict(  # noqa: C408
        name=f"{corpus}-{model}-{seed}-{len(others)}-{right}".replace("/", "-"), corpus=corpus,
        model=model, variant=None, seed=seed, fold=None, folds=None,
        settings=settings | others.pop("settings", {}), match_parameters=False,
        vectors="mixed.300d", notes=(), accuracy=right / 100, macro_f1=0.5, loss=1.0, examples=100,
        correct=pack_bits(answers), accuracy_unseen=0.8, examples_unseen=50, held_out_accuracy=0.9,
        mean_depth=4.0 if deep else 0.0, mean_depth_sampled=5.0, depths=(1, 2) if deep else (),
        forced=({"depth": 1, "accuracy": 0.7, "words_per_second": 9.0},) if deep else (),
        samples=tuple({"number": n, "label": "x", "depths": [n, 9]} for n in (1, 2)) if deep else (),
        parameters=1, hidden_size=400, epochs=1, best_epoch=1, curve=(), train_words_per_second=1.0,
        predict_words_per_second=speed, words=3, command="", commit=None, versions={},
        checksums={"test": corpus}, wall_seconds=1.0, machine={"threads": 1},
    )  # fmt: skip
    return Run(**(values | others))


def verdicts(runs):
    return {claim.claim: claim.verdict for claim in all_claims(runs)}


def test_without_runs_nothing_was_attempted_and_every_cell_of_ours_is_empty(tmp_path):
    assert set(verdicts([]).values()) == {"not attempted"}
    page = results_page(tmp_path, beside=tmp_path)
    assert "Not attempted: more accurate than S-LSTM;" in page
    assert "| fathomer | – | 96.4 |" in page


def test_a_cell_is_mean_deviation_number_and_marks():
    runs = [fake(seed=seed, right=right) for seed, right in enumerate((88, 90, 92))]
    group = find_group(runs, "trec", "fathomer")
    assert group.cell() == "90.00 ± 2.00 (3) v"
    assert find_group(runs[:1], "trec", "fathomer").cell() == "88.00 (1) v"
    assert "| 90.00 ± 2.00 (3) v | 96.4 |" in table3(runs).to_markdown()


def test_what_differs_from_the_paper_is_marked():
    exact = fake(vectors="glove.840B.300d")
    assert Group((exact,)).marks == ""
    small = fake(settings={"model.hidden_size": 200})
    partial = fake(notes=("partial training file: 1 of 2",))
    folds = fake(fold=1, folds=10)
    assert [Group((run,)).marks for run in (small, partial, folds)] == ["vs", "vp", "vf"]
    ours = fake("trec", settings={"model.depth": "hard"})
    assert "vc" in table4([fake(), ours]).rows[5][1], "the paper's ablation is on IMDB"


def test_settings_are_not_mixed():
    runs = [fake(seed=0), fake(seed=1), fake(seed=2, settings={"train.epochs": 3}, right=1)]
    assert find_group(runs, "trec", "fathomer").runs == tuple(runs[:2])
    assert find_group(runs, "trec", "fathomer", depth="hard") is None


def test_a_comparison_pairs_the_texts():
    ours, theirs = Group((fake(right=90),)), Group((fake(model="bilstm", right=80),))
    found = compare(ours, theirs)
    assert found.gain == pytest.approx(0.1)
    assert found.significant
    assert 0.03 < found.low < 0.1 < found.high < 0.17, "ten texts of a hundred differ"
    back = compare(theirs, ours)
    assert (back.gain, back.p) == (pytest.approx(-0.1), found.p)
    assert not compare(ours, Group((fake(model="bilstm", right=89),))).significant
    assert compare(ours, ours).p == 1.0
    assert compare(ours, Group((fake(model="bilstm", checksums={"test": "other"}),))) is None


def test_several_seeds_are_not_several_texts():
    one = compare(Group((fake(right=90),)), Group((fake(model="bilstm", right=86),)))
    many = compare(
        Group(tuple(fake(seed=seed, right=90) for seed in range(9))),
        Group(tuple(fake(model="bilstm", seed=seed, right=86) for seed in range(9))),
    )
    assert many == replace(one, runs=9)
    mixed = Group((fake(seed=0, right=90), fake(seed=1, right=80)))
    assert compare(mixed, Group((fake(model="bilstm", right=80),))).gain == pytest.approx(0.05)


def test_verdicts_follow_from_the_gains():
    better, unsure = Comparison(0.1, 0.05, 0.2, 0.001, 9, 2), Comparison(0.1, -0.1, 0.3, 0.4, 9, 1)
    worse = Comparison(-0.1, -0.2, -0.05, 0.001, 9, 3)
    assert judge([better, unsure]) == "reproduced"
    assert judge([better, worse]) == judge([unsure]) == "partly"
    assert judge([better]) == "partly", "two runs are too few"
    assert judge([worse]) == judge([unsure, worse]) == "not"
    assert judge([]) == "not attempted"


def test_each_claim_has_its_verdict():
    rows = {"hard": {"model.depth": "hard"}, "none": {"model.sequence": "none"}}
    runs = [
        each
        for seed in range(3)
        for each in (
            fake(seed=seed, right=95, speed=400.0), fake(model="s-lstm", seed=seed, right=80),
            fake(model="bilstm", seed=seed, right=97),
            fake(seed=seed, right=94, settings={"model.depth": "full"}),
            fake(seed=seed, right=99, settings=rows["hard"]),
            fake(seed=seed, right=70, settings=rows["none"]),
        )
    ]  # fmt: skip
    assert list(verdicts(runs).values()) == [
        "reproduced", "not", "not", "not attempted", "reproduced", "reproduced"
    ]  # fmt: skip
    assert verdicts(runs[:6])["more accurate than S-LSTM"] == "partly", "one run is not enough"
    slow = [
        replace(run, predict_words_per_second=250.0) if run in runs[::6] else run for run in runs
    ]
    assert list(verdicts(slow).values())[-1] == "partly"


def test_amazon_has_a_column_without_texts_that_were_seen():
    table = table2([fake("amazon16/dvd", right=85)])
    (row,) = [row for row in table.rows if row[0] == "dvd"]
    assert row[1:4] == ["85.00 (1) v", "80.00", "88.8"]
    assert table.rows[-1][1] == "–", "no mean over some of the corpora"


def test_the_ablation_shows_changes():
    runs = [
        fake(right=90, speed=300.0),
        fake(right=88, speed=100.0, settings={"model.depth": "full"}),
    ]
    row = table4(runs).rows[1]
    assert row[2:9] == ["-2.00", "96.10 ± 0.08", "-0.17", "100", "-200", "16", "-41"]


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
    assert names == {table.name for table in all_tables([])}
    assert "| 5 | 85.00% |" in page
    assert "| 9 | 90.00% |" in page
    assert "Vectors of these runs: `mixed.300d`." in page


def test_the_curves_of_figure_3_are_of_models_of_one_size(tmp_path):
    """The full-size model was run more often, but with one largest depth only."""
    for seed in (0, 1):
        fake(settings={"train.seed": seed}, right=99).save(tmp_path)
    for depth in (1, 5, 9):
        settings = {"model.max_depth": depth, "model.hidden_size": 200}
        fake(settings=settings, right=70 + depth).save(tmp_path)
    page = results_page(tmp_path, beside=tmp_path)
    assert "## Figure 3: the largest depth (trec, hidden size 200)" in page
    assert "| 9 | 79.00% |" in page


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
    assert "| trec | 5.00 | 4.00 | 2.50 | 90.00% |" in results_page(tmp_path, beside=tmp_path)


def test_the_page_in_the_repository_is_the_one_that_its_runs_make():
    if not (ROOT / "results" / "runs").is_dir():
        pytest.skip("there are no results")
    page = (ROOT / "RESULTS.md").read_text(encoding="utf-8")
    assert page == results_page(ROOT / "results", beside=ROOT)
