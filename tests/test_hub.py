"""Model folders in `transformers`, without a network."""

import importlib
import os
import sys
from pathlib import Path

import pytest
import torch

os.environ["HF_HUB_OFFLINE"] = "1"  # before the library is loaded

transformers = pytest.importorskip("transformers", reason="the extra hub is not installed")

import fathomer  # noqa: E402
import fathomer.hub  # noqa: E402
from fathomer.errors import ArtifactError, MissingExtraError  # noqa: E402

from .documents import blocks  # noqa: E402
from .tiny import tiny_artifact  # noqa: E402

PAGE = (Path(__file__).parents[1] / "docs" / "howto" / "hub.md").read_text(encoding="utf-8")
TEXTS = ["The film was lovely.", "", "Qzxv häßlich film", "bad", "good " * 80]


@pytest.fixture
def folder(tmp_path):
    tiny_artifact().save(tmp_path / "model")
    return tmp_path / "model"


@pytest.mark.parametrize("batch_size", [1, 3])
def test_the_pipeline_gives_the_predictors_answers(folder, batch_size):
    ask = transformers.pipeline("text-classification", model=str(folder), batch_size=batch_size)
    expected = fathomer.load(folder).predict(TEXTS)
    for found, answer in zip(ask(TEXTS, top_k=None), expected, strict=True):
        scores = {item["label"]: item["score"] for item in found}
        assert scores == pytest.approx(answer.probabilities, abs=1e-5)
        assert found[0]["label"] == answer.label


def test_auto_classes_find_the_parts(folder):
    config = transformers.AutoConfig.from_pretrained(folder)
    assert type(config).__name__ == "FathomerConfig"
    assert config.id2label == dict(enumerate(tiny_artifact().labels))
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    inputs = tokenizer(TEXTS, return_tensors="pt")
    with torch.inference_mode():
        output = model(**inputs, labels=torch.zeros(len(TEXTS), dtype=torch.long))
    expected = [list(p.probabilities.values()) for p in fathomer.load(folder).predict(TEXTS)]
    torch.testing.assert_close(output.logits.softmax(1), torch.tensor(expected), rtol=0, atol=1e-5)
    loss = -output.logits.log_softmax(1)[:, 0].mean()
    torch.testing.assert_close(output.loss, loss)


def test_what_is_saved_is_a_model_folder_again(folder, tmp_path):
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder)
    model.save_pretrained(tmp_path / "copy")
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    tokenizer.save_pretrained(tmp_path / "copy")
    answers = [fathomer.load(path).predict(TEXTS) for path in (folder, tmp_path / "copy")]
    assert answers[0] == answers[1]
    transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path / "copy")


def test_a_damaged_folder_is_refused(folder):
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\0\0")
    with pytest.raises(ArtifactError, match="damaged"):
        transformers.AutoModelForSequenceClassification.from_pretrained(folder)


def test_a_model_without_a_tokenizer_cannot_be_saved(tmp_path):
    config = fathomer.hub.FathomerConfig(
        labels=list(tiny_artifact().labels), recipe=tiny_artifact().recipe.to_dict()
    )
    model = fathomer.hub.FathomerForSequenceClassification(config)
    with pytest.raises(ArtifactError, match="cannot be saved"):
        model.save_pretrained(tmp_path / "model")


def test_the_card_is_one_for_the_hub(folder):
    card = (folder / "README.md").read_text(encoding="utf-8")
    head = card.split("---\n")[1]
    assert "library_name: fathomer\n" in head
    assert "pipeline_tag: text-classification\n" in head
    assert "## Limits\n" in card


def test_a_missing_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    monkeypatch.delitem(sys.modules, "fathomer.hub")
    with pytest.raises(MissingExtraError, match=r"pip install 'fathomer\[hub\]'"):
        importlib.import_module("fathomer.hub")


def test_the_python_of_the_page_runs(demo, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model").symlink_to(demo.folder)
    [block] = blocks(PAGE, "python")
    exec(compile(block, "hub.md", "exec"), {})
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == [
        line.split()[0] for line in blocks(PAGE, "text")[0].splitlines()
    ]
