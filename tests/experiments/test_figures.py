"""The paper's figures: which runs they show."""

from experiments.figures import figure_tables, sampled_run
from experiments.report import results_page
from tests.experiments.fakes import fake


def test_the_curves_of_figure_3_are_of_models_of_one_size(tmp_path):
    """The full-size model was run more often, but with only one maximum depth."""
    for seed in (0, 1):
        fake(seed=seed, right=99).save(tmp_path)
    for depth in (1, 5, 9):
        settings = {"model.max_depth": depth, "model.hidden_size": 200}
        fake(settings=settings, right=70 + depth).save(tmp_path)
    page = results_page(tmp_path, beside=tmp_path)
    assert "## Figure 3: the maximum depth (trec, hidden size 200)" in page
    assert "| 9 | 79.00% |" in page
    assert "The standard error of an accuracy on 100 texts is 4.1 points." in page


def test_figure_4_shows_the_full_model_not_a_row_of_the_ablation():
    long = tuple({"number": n, "label": "x", "depths": [1] * 99} for n in (1, 2))
    row = fake(settings={"model.sequence": "learned"}, samples=long)
    shallow = fake(settings={"model.max_depth": 1}, samples=long)
    ours = fake()
    assert sampled_run([row, ours, shallow]) is ours
    (table,) = figure_tables([row, ours])
    assert table.rows[1] == ["2", "x", "2", "0", "1", *"000000", "1"]
