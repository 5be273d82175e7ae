"""A teacher's answers: in the student's order, and never asked for twice."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch.nn import functional

from fathomer.config import TrainConfig
from fathomer.data.soft_labels import with_soft_labels
from fathomer.errors import FathomerError
from fathomer.estimator import TextClassifier
from fathomer.train.fit import fit
from fathomer.train.losses import mixed_losses
from fathomer.train.teacher import Teacher, _key
from tests.text.encoders import write_encoder
from tests.tiny import TINY, tiny_examples

LABELS = ["negative", "positive"]
TEXTS = ["good film .", "bad", "a film that is bad and good", "", "good film ."]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_encoder(tmp_path_factory.mktemp("teacher") / "t", labels=LABELS[::-1])


def test_the_answers_are_those_of_the_classifier_in_the_order_of_our_labels(folder, tmp_path):
    transformers = pytest.importorskip("transformers")
    found = Teacher(folder, LABELS).answer(TEXTS, tmp_path / "answers.jsonl")
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    network = transformers.AutoModelForSequenceClassification.from_pretrained(folder).eval()
    for text, row in zip(TEXTS, found, strict=True):
        with torch.inference_mode():
            logits = network(**tokenizer(text, return_tensors="pt")).logits[0]
        np.testing.assert_allclose(row, logits.softmax(0).flip(0).numpy(), atol=1e-5)


def test_an_interrupted_run_does_not_ask_twice(folder, tmp_path, monkeypatch):
    path = tmp_path / "answers.jsonl"
    whole = Teacher(folder, LABELS).answer(TEXTS, path)
    lines = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join([*lines[:3], lines[3][:20]]), encoding="utf-8")  # cut off
    asked = []
    teacher = Teacher(folder, LABELS)
    batches = teacher._batches
    monkeypatch.setattr(teacher, "_batches", lambda new: asked.extend(new) or batches(new))
    np.testing.assert_array_equal(teacher.answer(TEXTS, path), whole)
    assert len(asked) == 2
    monkeypatch.setattr(teacher, "_batches", None)  # everything is known now
    np.testing.assert_array_equal(teacher.answer(TEXTS, path), whole)
    assert len(path.read_text(encoding="utf-8").splitlines()) == len(lines)


def test_an_interruption_does_not_lose_the_answers_so_far(folder, tmp_path, monkeypatch):
    path = tmp_path / "answers.jsonl"
    Teacher(folder, LABELS).answer(TEXTS[:2], path)
    before = path.read_bytes()

    def stop_after_emptying(path, *_, **__):
        path.write_bytes(b"")
        raise KeyboardInterrupt

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("pathlib.Path.write_text", stop_after_emptying)
    teacher = Teacher(folder, LABELS)
    monkeypatch.setattr(teacher, "_batches", stop)
    with pytest.raises(KeyboardInterrupt):
        teacher.answer(TEXTS, path)
    assert path.read_bytes() == before


def test_a_text_that_is_longer_than_the_teacher_reads_is_cut_off(folder, tmp_path):
    found = Teacher(folder, LABELS).answer(["good " * 100, "good " * 38], tmp_path / "a.jsonl")
    np.testing.assert_array_equal(found[0], found[1])  # it has 40 positions, two of them special


def test_a_teacher_without_a_padding_token_is_one_line(tmp_path):
    folder = write_encoder(tmp_path / "t", labels=LABELS)
    settings = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
    settings["pad_token"] = None
    (folder / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
    with pytest.raises(FathomerError, match="its tokenizer has no pad_token"):
        Teacher(folder, LABELS).answer(TEXTS, tmp_path / "a.jsonl")


def test_weights_settings_and_vocabulary_tell_teachers_apart(tmp_path):
    folder = write_encoder(tmp_path / "t", labels=LABELS)
    seen = {Teacher(folder, LABELS).fingerprint}
    config = (folder / "config.json").read_text(encoding="utf-8")
    turned = config.replace('"0": "negative"', '"0": "positive"')
    turned = turned.replace('"1": "positive"', '"1": "negative"')
    (folder / "config.json").write_text(turned, encoding="utf-8")
    seen.add(Teacher(folder, LABELS).fingerprint)
    for name in ("tokenizer.json", "model.safetensors"):
        (folder / name).write_bytes(b"others")
        seen.add(Teacher(folder, LABELS).fingerprint)
    assert turned != config
    assert len(seen) == 4


def test_a_pickle_is_not_opened_and_missing_weights_are_not_random(tmp_path):
    folder = write_encoder(tmp_path / "t", labels=LABELS)
    weights = load_file(folder / "model.safetensors")
    del weights["classifier.weight"]
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(FathomerError, match=r"its weights lack classifier\.weight"):
        Teacher(folder, LABELS).answer(TEXTS, tmp_path / "a.jsonl")
    (folder / "model.safetensors").unlink()
    torch.save(weights, folder / "pytorch_model.bin")
    with pytest.raises(FathomerError, match=r"model\.safetensors"):
        Teacher(folder, LABELS).answer(TEXTS, tmp_path / "a.jsonl")


@pytest.mark.parametrize(
    "changes",
    [
        {"architectures": [3]},
        {"architectures": 0.5},
        {"architectures": ["a" * 10_000]},
        {"id2label": {"0": [[]] * 1000, "1": "positive"}},
        {"id2label": [1]},
        {"id2label": {"x": "y"}},
    ],
)
def test_absurd_settings_of_a_teacher_are_one_short_line(tmp_path, changes):
    settings = {"architectures": ["BertForSequenceClassification"]} | changes
    (tmp_path / "config.json").write_text(json.dumps(settings), encoding="utf-8")
    with pytest.raises(FathomerError) as caught:
        Teacher(tmp_path, LABELS)
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize("byte", range(0, 130, 3))
def test_a_damaged_answer_is_asked_for_again(folder, tmp_path, monkeypatch, byte):
    path, teacher = tmp_path / "a.jsonl", Teacher(folder, LABELS)
    wanted = dict(zip(map(_key, TEXTS), [[0.25, 0.75], [0.5, 0.5]] * 3, strict=False))
    monkeypatch.setattr(teacher, "_batches", lambda new: [{key: wanted[key] for key in new}])
    whole = teacher.answer(TEXTS, path)
    content = bytearray(path.read_bytes())
    content[-1 - byte] ^= 1
    path.write_bytes(content)
    np.testing.assert_array_equal(teacher.answer(TEXTS, path), whole)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"model": {"name": "tfidf"}}, "the model tfidf is fitted in one go and cannot learn"),
        (None, "soft labels need one label per text"),
    ],
)
def test_models_that_cannot_learn_from_soft_labels_are_named(changes, problem):
    examples = replace(tiny_examples(), multi_label=changes is None)
    soft = with_soft_labels(examples, np.full((len(examples), 2), 0.5, np.float32))
    with pytest.raises(FathomerError, match=problem):
        fit(soft, TINY.updated(changes or {}))


def test_answers_of_another_teacher_are_not_used(folder, tmp_path):
    path = tmp_path / "answers.jsonl"
    path.write_text('{"teacher": "other"}\n{"text": "x", "p": [1, 0]}\n', encoding="utf-8")
    Teacher(folder, LABELS).answer(TEXTS[:1], path)
    assert len(path.read_text(encoding="utf-8").splitlines()) == 2


def test_answers_are_asked_for_again_if_the_teachers_labels_are_renamed(tmp_path):
    folder, path = write_encoder(tmp_path / "t", labels=LABELS), tmp_path / "answers.jsonl"
    before = Teacher(folder, LABELS).answer(TEXTS, path)
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    config["id2label"] = dict(enumerate(LABELS[::-1]))
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    np.testing.assert_array_equal(Teacher(folder, LABELS).answer(TEXTS, path), before[:, ::-1])


def test_a_teacher_whose_answers_are_not_finite_is_one_line(tmp_path):
    folder, path = write_encoder(tmp_path / "t", labels=LABELS), tmp_path / "answers.jsonl"
    weights = load_file(folder / "model.safetensors")
    weights["classifier.bias"][0] = torch.nan
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(FathomerError, match="the teacher returns numbers that are not finite"):
        Teacher(folder, LABELS).answer(TEXTS, path)
    assert "NaN" not in path.read_text(encoding="utf-8")


def test_what_is_no_teacher_is_one_line(folder, tmp_path):
    encoder = write_encoder(tmp_path / "encoder")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "config.json").write_text("[", encoding="utf-8")
    for path, labels, problem in (
        (tmp_path / "none", LABELS, "it has no config.json"),
        (encoder, LABELS, "not a sequence classifier (its config.json names BertModel)"),
        (tmp_path / "broken", LABELS, "not the settings of a model"),
        (folder, ["a", "b"], "its labels are positive, negative, those of the data are a, b"),
    ):
        with pytest.raises(FathomerError) as caught:
            Teacher(path, labels)
        assert problem in str(caught.value)


def test_the_mixed_loss_is_that_of_hard_and_soft_labels():
    config = TrainConfig(soft_weight=0.25, soft_temperature=2.0)
    logits, soft = torch.tensor([[1.0, 2.0], [0.0, 1.0]]), torch.tensor([[0.9, 0.1], [0.0, 1.0]])
    hard = functional.cross_entropy(logits, torch.tensor([0, 1]), reduction="none")
    given = torch.tensor([True, False])
    found = mixed_losses(hard, logits, soft, given, config)
    wanted = soft[0].sqrt() / soft[0].sqrt().sum()
    kl = (wanted * (wanted.log() - (logits[0] / 2).log_softmax(0))).sum()
    assert found[0].item() == pytest.approx(float(0.75 * hard[0] + 0.25 * 4 * kl), rel=1e-5)
    assert found[1].item() == pytest.approx(-4 * float((logits[1] / 2).log_softmax(0)[1]), rel=1e-5)


def test_a_student_learns_from_soft_labels_alone():
    """The hard labels are all wrong and weigh nothing."""
    examples = tiny_examples()
    truth = np.array([[label == name for name in LABELS] for label in examples.labels])
    flipped = [
        each._replace(label=LABELS[row.argmin()]) for each, row in zip(examples, truth, strict=True)
    ]
    wrong = with_soft_labels(replace(examples, items=flipped), truth.astype(np.float32))
    recipe = TINY.updated({"train": {"soft_weight": 1.0, "held_out": 0.0, "epochs": 8}})
    artifact = fit(wrong, recipe).artifact
    assert artifact.metrics["history"][-1]["accuracy"] < 0.2  # against the wrong labels


def test_the_estimator_takes_soft_labels_in_the_order_of_its_classes():
    examples = tiny_examples()
    texts = [example.text for example in examples]
    labels = [10 if label == "positive" else 9 for label in examples.labels]  # "10" < "9"
    soft = [[0.02, 0.98] if label == 10 else [0.98, 0.02] for label in labels]
    settings = {name: value for name, value in TINY.changed_values().items() if "." in name}
    settings |= {"train.soft_weight": 1.0, "train.epochs": 8}
    for name in ("model.max_depth", "model.hidden_size"):
        settings.pop(name)
    classifier = TextClassifier(max_depth=4, hidden_size=12, settings=settings)
    classifier.fit(texts, labels, soft_labels=soft)
    assert classifier.score(texts, labels) > 0.9
    with pytest.raises(FathomerError, match="expected 60 rows of 2"):
        classifier.fit(texts, labels, soft_labels=[[1.0]] * 60)


def test_the_cache_is_readable_json(folder, tmp_path):
    Teacher(folder, LABELS).answer(TEXTS[:2], tmp_path / "a.jsonl")
    head, *rows = map(json.loads, (tmp_path / "a.jsonl").read_text("utf-8").splitlines())
    assert set(head) == {"teacher"}
    assert [set(row) for row in rows] == [{"text", "p", "check"}] * 2
