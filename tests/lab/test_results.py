"""The report: cells, comparisons and verdicts follow from the runs; RESULTS.md from all of them."""

import itertools
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fathomer.data.corpora import CORPORA
from fathomer.lab.claims import all_claims, judge
from fathomer.lab.figures import figure_tables, sampled_run
from fathomer.lab.groups import Comparison, Group, compare, find_group
from fathomer.lab.results import _worth, results_page
from fathomer.lab.runs import Run, pack_bits, read_runs
from fathomer.lab.tables import all_tables, significance, table2, table3, table4

from ..tiny import tiny_artifact, tiny_examples, write_csv

ROOT = Path(__file__).parents[2]
NUMBERS = itertools.count()
DEEP = ({"depth": 9, "accuracy": 0.7, "words_per_second": 100.0},)


def fake(corpus="trec", model="fathomer", *, seed=0, right=90, speed=100.0, **others):
    """Make a run up that answers the first texts rightly."""
    answers = np.arange(100) < right
    settings = {"train.seed": seed} | ({"model.name": model} if model != "fathomer" else {})
    deep = model == "fathomer"
    values = dict(  # noqa: C408
        name=f"{corpus}-{model}-{seed}-{next(NUMBERS)}".replace("/", "-"), corpus=corpus,
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
    folds = fake("mr", fold=1, folds=1)
    assert [Group((run,)).marks for run in (small, partial, folds)] == ["vs", "vp", "vf"]
    size = {"model.hidden_size": 200}
    others = [fake(model=name, settings=size) for name in ("bilstm", "char-cnn", "tfidf")]
    assert [Group((run,)).marks for run in others] == ["vs", "s", ""], "what a model does not have"
    ours = fake("trec", settings={"model.depth": "hard"})
    assert "vc" in table4([fake(), ours]).rows[5][1], "the paper's ablation is on IMDB"


def test_settings_are_not_mixed():
    runs = [fake(seed=0), fake(seed=1), fake(seed=2, settings={"train.epochs": 3}, right=1)]
    assert find_group(runs, "trec", "fathomer").runs == tuple(runs[:2])
    assert find_group(runs, "trec", "fathomer", depth="hard") is None


def group(model="fathomer", *, rights=(90,), **others):
    return Group(
        tuple(fake(model=model, seed=n, right=right, **others) for n, right in enumerate(rights))
    )


def test_a_comparison_pairs_the_texts():
    ours, theirs = group(), group("bilstm", rights=(80,))
    found = compare((ours, theirs))
    assert found.gain == pytest.approx(0.1)
    assert found.significant
    assert 0.03 < found.low < 0.1 < found.high < 0.17, "ten texts of a hundred differ"
    back = compare((theirs, ours))
    assert (back.gain, back.p) == (pytest.approx(-0.1), found.p)
    assert not compare((ours, group("bilstm", rights=(89,)))).significant
    assert compare((ours, ours)).p == 1.0
    assert compare((ours, group("bilstm", checksums={"test": "other"}))) is None


def test_several_seeds_are_not_several_texts():
    one = compare((group(), group("bilstm", rights=(86,))))
    many = compare((group(rights=[90] * 9), group("bilstm", rights=[86] * 9)))
    assert many == replace(one, runs=9)
    assert compare((group(rights=(90, 80)), group("bilstm", rights=(80,)))).gain == pytest.approx(
        0.05
    )


def test_only_folds_that_both_have_read_are_compared():
    ours = Group(tuple(fake("mr", fold=fold, folds=10, right=right, checksums={"test": str(fold)})
                       for fold, right in ((1, 90), (2, 90), (3, 10))))  # fmt: skip
    theirs = Group(tuple(fake("mr", "bilstm", fold=fold, folds=10, right=80, checksums={"test": str(fold)})
                         for fold in (1, 2)))  # fmt: skip
    found = compare((ours, theirs))
    assert (found.texts, found.runs, found.gain) == (200, 2, pytest.approx(0.1))


def test_what_cancels_out_is_no_gain():
    """Thirds are no binary fractions: their sum must be zero all the same, and count on both sides."""
    answers = np.arange(100) < 50
    swapped = [answers, answers, np.arange(100) >= 50]
    ours = Group(tuple(fake(seed=n, correct=pack_bits(a)) for n, a in enumerate(swapped)))
    theirs = Group(tuple(fake(seed=n, correct=pack_bits(~a)) for n, a in enumerate(swapped)))
    found = compare((ours, theirs))
    assert found.gain == pytest.approx(0)
    assert found.p == 1.0, (
        "zero is counted to both sides, so that the tails are more than half each"
    )


def test_several_corpora_are_compared_together():
    pairs = [(group(checksums={"test": name}), group("bilstm", rights=(right,), checksums={"test": name}))
             for name, right in (("a", 87), ("b", 88), ("c", 87))]  # fmt: skip
    assert not any(compare(pair).p < 0.01 for pair in pairs)
    found = compare(*pairs)
    assert (found.texts, found.runs, found.gain) == (300, 3, pytest.approx(8 / 300))
    assert found.p < 0.01


def test_verdicts_follow_from_the_gains():
    better, unsure = Comparison(0.1, 0.05, 0.2, 0.001, 9, 3), Comparison(0.1, -0.1, 0.3, 0.4, 9, 3)
    worse, below = (
        Comparison(-0.1, -0.2, -0.05, 0.001, 9, 3),
        Comparison(-0.01, -0.2, 0.1, 0.5, 9, 3),
    )
    assert judge([better]) == judge([better, unsure, below]) == "reproduced"
    assert judge([replace(better, runs=2), unsure]) == "partly", "the others' runs are no help"
    assert judge([better, better, worse]) == "partly"
    assert judge([better, *[replace(below, gain=-0.2)] * 2]) == "not", "no gain in the mean"
    assert judge([unsure]) == judge([unsure, below]) == "not", "it may be chance"
    assert judge([worse]) == judge([better, worse]) == judge([better, *[worse] * 19]) == "not"
    assert judge([]) == "not attempted"


def test_each_claim_has_its_verdict():
    rows = {"hard": {"model.depth": "hard"}, "none": {"model.sequence": "none"}}
    runs = [
        each
        for seed in range(3)
        for each in (
            fake(seed=seed, right=95, speed=400.0, forced=DEEP), fake(model="s-lstm", seed=seed, right=80),
            fake(model="bilstm", seed=seed, right=97),
            fake(seed=seed, right=94, settings={"model.depth": "full"}),
            fake(seed=seed, right=99, settings=rows["hard"]),
            fake(seed=seed, right=70, settings=rows["none"]),
        )
    ]  # fmt: skip
    assert list(verdicts(runs).values()) == [
        "reproduced", "not", "not", "not attempted", "reproduced", "reproduced", "not attempted"
    ]  # fmt: skip
    assert verdicts(runs[:6])["more accurate than S-LSTM"] == "partly", "one run is not enough"
    slow = [replace(run, predict_words_per_second=250.0) for run in runs]
    speed = "adaptive depth is 3 times as fast as full depth, and no less accurate"
    assert verdicts(slow)[speed] == "partly"
    assert "trec: 2.50 times as fast at mean depth 4.00; " in all_claims(slow)[-2].numbers
    poor = [replace(run, correct=pack_bits(np.arange(100) < 60)) if run in runs[::6] else run
            for run in runs]  # fmt: skip
    assert verdicts(poor)[speed] == "not", "fast, but at a price"
    undeep = [replace(run, forced=()) for run in runs]
    assert verdicts(undeep)[speed] == "not attempted"


def test_a_claim_has_the_papers_gain_beside_ours():
    runs = [fake(), fake(model="s-lstm"), fake(settings={"model.sequence": "none"})]
    numbers = {claim.claim: claim.numbers for claim in all_claims(runs)}
    assert numbers["more accurate than S-LSTM"].endswith("(1 run), paper +0.40")
    assert numbers["the BiLSTM below contributes to accuracy"].endswith("(1 run), paper +1.02")


def test_depth_goes_to_words_that_need_it_if_no_deal_is_as_good():
    def verdict(*accuracies):
        depths = [{"mean_depth": 5.0}, {"mean_depth": 3.0}]
        found = {
            str(number): {"accuracy": accuracy, "dealt": [0.4, 0.6], "by_frequency": depths}
            for number, accuracy in enumerate(accuracies)
        }
        return all_claims([], found)[-1].verdict

    assert (verdict(0.7, 0.8), verdict(0.7, 0.6), verdict(0.6)) == ("reproduced", "partly", "not")
    assert verdict() == "not attempted"


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


def test_amazon_has_a_column_without_texts_that_were_seen():
    table = table2([fake("amazon16/dvd", right=85)])
    (row,) = [row for row in table.rows if row[0] == "dvd"]
    assert row[1:4] == ["85.00 (1) v", "80.00 (1) v", "88.8"]
    assert table.rows[-1][1] == "–", "no mean over some of the corpora"


def test_amazon_s_mean_is_over_corpora_not_over_runs():
    names = [name for name in CORPORA if name.startswith("amazon16/")]
    runs = [fake(name, right=80, accuracy_unseen=0.75) for name in names]
    more = [fake(names[0], right=80, accuracy_unseen=0.75, seed=seed) for seed in range(1, 20)]
    low = replace(runs[1], accuracy_unseen=0.59)
    assert table2([*runs, *more, low]).rows[-1][1:3] == ["80.00 (36) v", "74.50 (36) v"]


def test_amazon_is_one_corpus_of_a_claim():
    names = [name for name in CORPORA if name.startswith("amazon16/")]
    runs = [fake(name, model, right=right, forced=DEEP if right == 88 else ()) for name in names
            for model, right in (("fathomer", 88), ("bilstm", 87))]  # fmt: skip
    found = {claim.claim: claim for claim in all_claims(runs)}[
        "more accurate than a three-layer BiLSTM"
    ]
    assert found.verdict == "reproduced", "sixteen trainings, and each is a little better"
    assert found.numbers.startswith("amazon16: +1.00 [")
    assert found.numbers.endswith("(16 runs), paper +1.80")
    assert all_claims(runs)[-2].numbers == "amazon16: 1.00 times as fast at mean depth 4.00"


def test_ours_is_compared_with_rivals_of_the_same_settings():
    short = {"train.epochs": 1}
    runs = [fake(), fake(seed=1), fake(model="s-lstm", right=80)]
    runs += [fake(model=model, seed=seed, right=99, settings=short)
             for model in ("bilstm", "s-lstm") for seed in (0, 1)]  # fmt: skip
    assert [row[:2] for row in significance(runs).rows] == [["trec", "s-lstm"]]
    cells = {row[0]: row[1] for row in table3(runs).rows}
    assert cells == {"fathomer": "90.00 ± 0.00 (2) v", "bilstm": "–", "s-lstm": "80.00 (1) v"}
    sizes = [fake(settings={"model.hidden_size": 200}, hidden_size=200), fake(right=91)]
    assert find_group(sizes, "trec", "fathomer").mean("accuracy") == 0.91, "the larger, if in doubt"


def test_what_part_of_a_corpus_was_used_is_said():
    runs = [fake("mr", fold=fold, folds=10, right=70 + fold, notes=(f"mr: fold {fold} of 10",))
            for fold in (1, 2, 3)]  # fmt: skip
    runs += [fake("mr", "bilstm", fold=fold, folds=10) for fold in (1, 2)]
    runs.append(fake("ag_news", notes=("partial training file: 1 of 2",)))
    assert table3(runs).note.split("\n\n") == [
        "ag_news: partial training file: 1 of 2.",
        "mr: ours was run on 3 folds; on folds 1 and 2, which all have read, it has 71.50 ± 0.71 (2) vf.",
        "Epochs of training: 10.",
    ]
    runs.append(fake("trec", settings={"train.epochs": 1}))
    assert table3(runs).note.endswith("Epochs of training: trec 1, ag_news 10, mr 10.")


def test_the_corpora_of_amazon_are_compared_one_by_one_and_together():
    runs = [fake(f"amazon16/{name}", model, right=right) for name, right in (("dvd", 80), ("toys", 90))
            for model, right in (("fathomer", right), ("tfidf", 85))]  # fmt: skip
    found = [[row[0], row[2], row[3], row[5]] for row in significance(runs).rows]
    assert found == [
        ["amazon16/dvd", "100", "1", "-5.00"],
        ["amazon16/toys", "100", "1", "+5.00"],
        ["amazon16, together", "200", "2", "+0.00"],
    ]


def test_a_comparison_tells_the_runs_and_the_rivals_size():
    runs = [fake(parameters=200), fake(seed=1, parameters=200), fake(model="bilstm", parameters=50)]
    (row,) = significance(runs).rows
    assert row[:5] == ["trec", "bilstm", "100", "1", "0.25"]


def test_the_ablation_shows_changes():
    runs = [
        fake(right=90, speed=300.0),
        fake(right=88, speed=100.0, settings={"model.depth": "full"}),
    ]
    row = table4(runs).rows[1]
    assert row[2:9] == ["-2.00", "96.10 ± 0.08", "-0.17", "100", "-200", "16", "-41"]


def test_the_ablation_tells_what_one_model_gains_on_the_papers_corpus():
    assert "timed both ways" not in table4([fake("imdb"), fake(forced=DEEP)]).note
    note = table4([fake("imdb", forced=DEEP, speed=250.0)]).note
    assert "250 words per second with the selected depths, 100 with every word at depth 9" in note
    assert "2.50 times as fast (the paper's rows: 3.56 times)" in note


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
