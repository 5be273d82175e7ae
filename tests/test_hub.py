"""Model folders in `transformers`, without network access."""

import importlib
import os
import re
import sys

import pytest
import torch

os.environ["HF_HUB_OFFLINE"] = "1"  # before the library is loaded

transformers = pytest.importorskip("transformers", reason="the extra hub is not installed")

import fathomer  # noqa: E402
import fathomer.hub  # noqa: E402
from fathomer.errors import ArtifactError, ConfigError, MissingExtraError  # noqa: E402
from tests.forked import run_forked  # noqa: E402
from tests.tiny import SIGNS, supervised_artifact, tagged, tagged_artifact, tiny_artifact  # noqa: E402

TEXTS = ["The film was lovely.", "", "Qzxv häßlich film", "bad", "good " * 80]


@pytest.fixture
def folder(tmp_path):
    tiny_artifact().save(tmp_path / "model")
    return tmp_path / "model"


@pytest.mark.parametrize("batch_size", [1, 3])
def test_a_pipeline_returns_the_answers_of_the_predictor(folder, batch_size):
    ask = transformers.pipeline("text-classification", model=str(folder), batch_size=batch_size)
    expected = fathomer.load(folder).predict(TEXTS)
    for found, answer in zip(ask(TEXTS, top_k=None), expected, strict=True):
        scores = {item["label"]: item["score"] for item in found}
        assert scores == pytest.approx(answer.probabilities, abs=1e-5)
        assert found[0]["label"] == answer.label


def test_a_pipeline_reads_at_the_depth_that_the_model_was_trained_to(tmp_path):
    supervised_artifact().save(tmp_path)
    ask = transformers.pipeline("text-classification", model=str(tmp_path))
    [expected] = fathomer.load(tmp_path).predict(["the film was not bad at all"])
    [other] = fathomer.load(tmp_path).predict(["the film was not bad at all"], depth_budget=9)
    [found] = ask(["the film was not bad at all"], top_k=None)
    scores = {item["label"]: item["score"] for item in found}
    assert scores == pytest.approx(expected.probabilities, abs=1e-5)
    assert scores != pytest.approx(other.probabilities, abs=1e-5)


def test_a_pipeline_returns_multi_label_probabilities(tmp_path):
    tagged_artifact().save(tmp_path)
    config = transformers.AutoConfig.from_pretrained(tmp_path)
    assert config.problem_type == "multi_label_classification"
    ask = transformers.pipeline("text-classification", model=str(tmp_path), batch_size=4)
    texts = [example.text for example in tagged(10)]
    sums = []
    for found, answer in zip(
        ask(texts, top_k=None), fathomer.load(tmp_path).predict(texts), strict=True
    ):
        scores = {item["label"]: item["score"] for item in found}
        assert scores == pytest.approx(answer.probabilities, abs=1e-5)
        sums.append(sum(scores.values()))
    assert max(sums) > 1.5  # impossible with a softmax


def test_the_multi_label_loss_averages_over_labels(tmp_path):
    tagged_artifact().save(tmp_path)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path)
    inputs = transformers.AutoTokenizer.from_pretrained(tmp_path)(TEXTS, return_tensors="pt")
    labels = torch.randint(2, (len(TEXTS), len(SIGNS)), generator=torch.Generator().manual_seed(0))
    output = model(**inputs, labels=labels)
    right = torch.where(labels == 1, output.logits, -output.logits)
    torch.testing.assert_close(output.loss, -torch.nn.functional.logsigmoid(right).mean())


def test_auto_classes_load_all_parts(folder):
    config = transformers.AutoConfig.from_pretrained(folder)
    assert type(config).__name__ == "FathomerConfig"
    assert config.id2label == dict(enumerate(tiny_artifact().labels))
    assert config.problem_type == "single_label_classification"
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    inputs = tokenizer(TEXTS, return_tensors="pt")
    with torch.inference_mode():
        output = model(**inputs, labels=torch.zeros(len(TEXTS), dtype=torch.long))
    expected = [list(p.probabilities.values()) for p in fathomer.load(folder).predict(TEXTS)]
    torch.testing.assert_close(output.logits.softmax(1), torch.tensor(expected), rtol=0, atol=1e-5)
    loss = -output.logits.log_softmax(1)[:, 0].mean()
    torch.testing.assert_close(output.loss, loss)


@pytest.mark.parametrize("local", [True, False], ids=["folder", "repository"])
def test_all_parts_are_read_from_a_subfolder(folder, tmp_path, monkeypatch, local):
    tagged_artifact().save(tmp_path)  # another model in the root
    monkeypatch.setattr(fathomer.hub, "snapshot_download", lambda name, **_: str(tmp_path))
    name = tmp_path if local else "somebody/model"
    config = fathomer.hub.FathomerConfig.from_pretrained(folder)
    kinds = fathomer.hub.FathomerTokenizer, fathomer.hub.FathomerForSequenceClassification
    tokenizer = kinds[0].from_pretrained(name, subfolder="model")
    model = kinds[1].from_pretrained(name, subfolder="model", config=config)
    assert tokenizer.word_tokenizer.vocabulary == tiny_artifact().tokenizer.vocabulary
    assert model.artifact.labels == tiny_artifact().labels


def test_auto_classes_read_a_subfolder(folder, tmp_path):
    tagged_artifact().save(tmp_path)
    kinds = transformers.AutoTokenizer, transformers.AutoModelForSequenceClassification
    tokenizer, model = (kind.from_pretrained(tmp_path, subfolder="model") for kind in kinds)
    with torch.inference_mode():
        found = model(**tokenizer(TEXTS)).logits.softmax(1)
    expected = [list(p.probabilities.values()) for p in fathomer.load(folder).predict(TEXTS)]
    torch.testing.assert_close(found, torch.tensor(expected), rtol=0, atol=1e-5)


def test_a_config_with_other_labels_is_refused(folder, tmp_path):
    tagged_artifact().save(tmp_path / "tagged")
    config = transformers.AutoConfig.from_pretrained(tmp_path / "tagged")
    auto = transformers.AutoModelForSequenceClassification
    with pytest.raises(ConfigError, match=r"labels differ .* \(negative, positive\)$"):
        auto.from_pretrained(folder, config=config)
    with pytest.raises(ConfigError, match="labels differ"):
        auto.from_pretrained(folder, id2label={0: "minus", 1: "plus"})


def test_save_pretrained_refuses_to_upload(folder, tmp_path):
    kinds = transformers.AutoTokenizer, transformers.AutoModelForSequenceClassification
    for part in (kind.from_pretrained(folder) for kind in kinds):
        with pytest.raises(ConfigError, match="does not upload; omit push_to_hub"):
            part.save_pretrained(tmp_path / "copy", push_to_hub=True)
    assert not (tmp_path / "copy").exists()


def test_save_pretrained_writes_a_model_folder(folder, tmp_path):
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder)
    model.save_pretrained(tmp_path / "copy")
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    tokenizer.save_pretrained(tmp_path / "copy")
    answers = [fathomer.load(path).predict(TEXTS) for path in (folder, tmp_path / "copy")]
    assert answers[0] == answers[1]
    transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path / "copy")


def test_a_pipeline_can_be_saved(folder, tmp_path):
    ask = transformers.pipeline("text-classification", model=str(folder))
    ask.save_pretrained(str(tmp_path / "copy"))
    again = transformers.pipeline("text-classification", model=str(tmp_path / "copy"))
    assert again(TEXTS) == ask(TEXTS)


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


def test_the_model_card_has_the_metadata_of_the_hub(folder):
    card = (folder / "README.md").read_text(encoding="utf-8")
    head = card.split("---\n")[1]
    assert "library_name: fathomer\n" in head
    assert "pipeline_tag: text-classification\n" in head
    assert re.findall(r"^## (.*)$", card, re.M) == [
        "Depth of the words",
        "Usage",
        "Training data",
        "Limitations",
    ]


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    monkeypatch.delitem(sys.modules, "fathomer.hub")
    with pytest.raises(MissingExtraError, match=r"pip install 'fathomer\[hub\]'"):
        importlib.import_module("fathomer.hub")


def test_the_folder_tells_users_of_transformers_what_to_import(tmp_path):
    """Without the import, transformers names the model type in config.json, and no more."""
    tiny_artifact().save(tmp_path)
    script = f"from transformers import AutoConfig; AutoConfig.from_pretrained({str(tmp_path)!r})"
    done = run_forked(["-c", script])
    assert "has model type `fathomer`" in done.stderr
    first_lines = (tmp_path / "config.json").read_text(encoding="utf-8").splitlines()[1:3]
    assert '"fathomer"' in first_lines[0]
    assert "import fathomer.hub" in first_lines[1]
    assert "import `fathomer.hub` first" in (tmp_path / "README.md").read_text(encoding="utf-8")
