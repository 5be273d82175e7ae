"""The comparison of depth methods: what is trained, measured, kept and drawn."""

import json

import pytest

from experiments.depth_curves import METHODS, DepthPoint, DepthTrial, method_recipe, open_corpus
from experiments.depth_curves_output import rows_of
from fathomer.config import Recipe
from tests.tiny import TINY, tiny_examples, write_csv

SETTINGS = [
    part
    for name, value in (TINY.changed_values() | {"train.epochs": 1}).items()
    for part in ("--set", f"{name}={value}")
]


@pytest.fixture
def curves(run_experiments, tmp_path):
    """Run the command on a small file with one seed."""
    file = str(write_csv(tmp_path / "opinions.csv", tiny_examples()))

    def run_curves(*options):
        return run_experiments(
            "curves", file, "--out", "curves.jsonl", "--seeds", "1", *SETTINGS, *options
        )

    return run_curves


def test_every_method_is_measured_and_nothing_is_trained_twice(curves, tmp_path):
    code, out, err = curves(
        "--plot", "curves.png", "--json", "--method", "mi", "--method", "bilstm"
    )
    assert code == 0, err
    rows = json.loads(out)["rows"]
    assert [(row["method"], row["budget"]) for row in rows] == [
        *(("mi", budget) for budget in ("1.2", "1.5", "2", "3", "4")), ("bilstm", "-")
    ]  # fmt: skip
    assert (tmp_path / "curves.png").read_bytes()[1:4] == b"PNG"
    before = (tmp_path / "curves.jsonl").read_text("utf-8")
    assert before.count("\n") == 2
    code, _, err = curves("--method", "mi", "--method", "fixed-2")
    assert "fixed-2, seed 0 done" in err
    assert "mi, seed 0 done" not in err
    after = (tmp_path / "curves.jsonl").read_text("utf-8")
    assert after.startswith(before)
    last = DepthTrial.from_json(after.splitlines()[-1])
    [point] = last.points
    assert (point.mean_depth, point.dealt) == (2, None), "equal depths cannot be dealt"
    assert last.settings["model.max_depth"] == 2


def test_methods_differ_only_in_how_depths_are_found():
    for method in METHODS:
        changed = method_recipe(Recipe(), method, 0).changed_values()
        allowed = {"model.depth", "model.max_depth", "train.depth_target"}
        assert set(changed) <= allowed, method


def test_an_unknown_method_is_refused(curves):
    code, _, err = curves("--method", "gumble")
    assert (code, err) == (2, "fathomer: unknown method 'gumble'; did you mean 'gumbel'?\n")


def test_a_file_of_other_lines_is_refused(curves, tmp_path):
    (tmp_path / "curves.jsonl").write_text('{"a": 1}\n', encoding="utf-8")
    code, _, err = curves("--method", "mi")
    assert (code, err) == (2, "fathomer: curves.jsonl, line 1: not a result of this command\n")


def test_every_nth_text_is_used():
    dataset = open_corpus("demo", every=10, data_dir=None)
    assert (len(dataset.train), len(dataset.test)) == (400, 60)


def test_rows_are_averages_over_the_seeds():
    def trial(seed, accuracy):
        point = DepthPoint(2.0, 2.0 + seed / 10, accuracy, 100.0, 0.5, 0.02)
        return DepthTrial("trec", "mi", seed, {}, 500, 10.0 + seed, (point,), {})

    [row] = rows_of([trial(0, 0.8), trial(1, 0.9)])
    assert (row.seeds, row.mean_depth, row.train_seconds) == (2, 2.05, 10.5)
    assert (row.accuracy, row.gain, row.error) == pytest.approx((0.85, 0.35, 0.02))
