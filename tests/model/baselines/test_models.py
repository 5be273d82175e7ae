"""The models of the package pass the tests of all models."""

import pytest

from fathomer.data.demo import demo_corpus
from tests.model.baselines.contract import SMALL, ModelContract, StepwiseContract, models
from tests.model.baselines.small import LEARNED_AT_ONCE, SHIPPED


class TestShippedModels(ModelContract):
    name = models(SHIPPED)

    @pytest.fixture
    def train_command(self, run):
        return run


class TestShippedModelsTrainedInSteps(StepwiseContract):
    name = models([name for name in SHIPPED if name not in LEARNED_AT_ONCE])


def test_commands_show_no_depth_for_a_model_without_depths(run, monkeypatch, tmp_path):
    monkeypatch.setattr(demo_corpus, "__kwdefaults__", {"seed": 0, "train": 60, "test": 20})
    (tmp_path / "tiny.toml").write_text(SMALL.to_toml(), encoding="utf-8")
    options = ["--recipe", "tiny.toml", "--set", "train.epochs=1", "--model", "bilstm"]
    code, out, err = run("train", "demo", "--out", "m", *options)
    assert code == 0, err
    assert "depth -  " in err
    assert [line.split()[-2] for line in out.splitlines()[1:3]] == ["-", "-"]
    assert "| - |" in (tmp_path / "m" / "README.md").read_text(encoding="utf-8")
    code, out, err = run("evaluate", "m", "demo", "--html", "page.html")
    assert code == 0, err
    lengths = out.partition("mean depth\n")[2].partition("mean depth\n")[2].partition("\n\n")[0]
    assert {line.split()[-1] for line in lengths.splitlines()} == {"-"}
    assert "0.00<" not in (tmp_path / "page.html").read_text(encoding="utf-8")
    (tmp_path / "texts.txt").write_text("not bad at all", encoding="utf-8")
    code, out, err = run("predict", "m", "texts.txt", "--depths")
    assert (code, out) == (2, "")
    assert "words have no depth in the model bilstm" in err
    assert "--depths" in err
