"""Model folders are downloaded, so they may hold anything: no crash, no traceback, bounded memory."""

import json
import resource
import threading
from dataclasses import replace
from hashlib import sha256

import pytest
import safetensors.torch
import torch

import fathomer
from fathomer.artifact import Artifact
from fathomer.errors import ArtifactError
from fathomer.files import replace_folder
from fathomer.train.fit import fit
from tests.tiny import TINY, tiny_artifact, tiny_examples

TEXTS = ["The film was lovely.", "The meal was poor!", "", "<unk> <br> unheard-of"]
CONFIG, TOKENIZER, WEIGHTS = "config.json", "tokenizer.json", "model.safetensors"


@pytest.fixture(scope="module")
def tfidf():
    return fit(tiny_examples(), TINY.updated({"model": {"name": "tfidf"}})).artifact


def write(folder, files):
    """Write the files of a model with correct checksums; values that are no bytes become JSON."""
    files = {
        name: content if isinstance(content, bytes) else json.dumps(content).encode()
        for name, content in files.items()
    }
    config = json.loads(files[CONFIG])
    config["files"] = {name: sha256(files[name]).hexdigest() for name in (TOKENIZER, WEIGHTS)}
    replace_folder(folder, {**files, CONFIG: json.dumps(config).encode()})
    return folder


def changed_json(files, name, *path, value):
    """Return the files with one value of a JSON file changed."""
    content = found = json.loads(files[name])
    for key in path[:-1]:
        found = found[key]
    found[path[-1]] = value
    return {**files, name: content}


def changed_tensors(files, **tensors):
    """Return the files with other weights; None removes a tensor, and ``__`` stands for a dot."""
    found = safetensors.torch.load(files[WEIGHTS])
    found |= {name.replace("__", "."): tensor for name, tensor in tensors.items()}
    kept = {name: tensor for name, tensor in found.items() if tensor is not None}
    return {**files, WEIGHTS: safetensors.torch.save(kept)}


def refused(folder, files, match=None):
    """Check that a model is refused in one line."""
    with pytest.raises(ArtifactError, match=match) as caught:
        fathomer.load(write(folder, files))
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 600


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024  # MB


@pytest.mark.parametrize("name", ["hidden_size", "word_size", "char_size", "depth_size"])
def test_settings_alone_take_no_memory(tmp_path, name):
    files = tiny_artifact().to_files()
    before = peak()
    changed = changed_json(files, CONFIG, "recipe", "model", name, value=5000)
    refused(tmp_path / "model", changed, "the settings ask for")
    assert peak() - before < 100


@pytest.mark.parametrize("name", ["fathomer", "tfidf", "fasttext"])
def test_spellings_of_absurd_width_take_no_memory(tfidf, tmp_path, name):
    """A tensor without rows takes no place in the file, whatever its width."""
    if name == "fasttext":
        pytest.importorskip("fasttext", reason="the extra fasttext is not installed")
    recipe = TINY.updated({"model": {"name": name}})
    models = {"fathomer": tiny_artifact, "tfidf": lambda: tfidf}
    artifact = models[name]() if name in models else fit(tiny_examples(), recipe).artifact
    wide = torch.zeros(0, 200_000_000, dtype=torch.uint8)
    before = peak()
    refused(tmp_path / "model", changed_tensors(artifact.to_files(), aaa__spellings=wide))
    assert peak() - before < 100


@pytest.mark.parametrize(
    "metrics",
    [
        {"held_out": 3},
        {"held_out": {"accuracy": "x"}},
        {"test": {"words_by_depth": [1, -1, 1]}},
        {"depth_curve": [{}]},
        {"history": 3},
    ],
)
def test_absurd_metrics_are_one_line_when_the_model_is_saved_again(tmp_path, metrics):
    files = {**tiny_artifact().to_files(), "metrics.json": metrics}
    predictor = fathomer.load(write(tmp_path / "model", files))
    with pytest.raises(ArtifactError, match="metrics cannot be described"):
        predictor.artifact.save(tmp_path / "other")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("recipe", "train", "clip"), "a" * 10_000),
        (("recipe", "text", "max_vocabulary"), [[]] * 1000),
        (("temperature",), "a" * 10_000),
    ],
)
def test_a_long_value_is_not_quoted_whole(tmp_path, path, value):
    changed = changed_json(tiny_artifact().to_files(), CONFIG, *path, value=value)
    refused(tmp_path / "model", changed)


@pytest.mark.parametrize("name", [CONFIG, TOKENIZER, "metrics.json"])
def test_deeply_nested_json_is_refused(tmp_path, name):
    folder = write(tmp_path / "model", tiny_artifact().to_files())
    nested = b"[" * 100_000 + b"]" * 100_000
    if name == TOKENIZER:
        refused(folder, {**tiny_artifact().to_files(), name: nested}, "nested too deeply")
        return
    (folder / name).write_bytes(nested)
    with pytest.raises(ArtifactError, match="nested too deeply"):
        fathomer.load(folder)


@pytest.mark.parametrize("value", [10**400, -1, 0, "nan", "inf", None, [], {}, "x"])
def test_an_absurd_temperature_is_refused(tmp_path, value):
    refused(
        tmp_path / "m", changed_json(tiny_artifact().to_files(), CONFIG, "temperature", value=value)
    )


@pytest.mark.parametrize("number", [b"NaN", b"Infinity", b"1e999"])
@pytest.mark.parametrize("name", [CONFIG, "metrics.json"])
def test_numbers_that_are_not_finite_are_refused(tmp_path, name, number):
    folder = write(tmp_path / "model", tiny_artifact().to_files())
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(content.replace(b"{", b'{"extra": ' + number + b", ", 1))
    with pytest.raises(ArtifactError, match="is not finite"):
        fathomer.load(folder)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_not_finite_are_refused(tmp_path, value):
    bias = torch.tensor([0.0, value])
    changed = changed_tensors(tiny_artifact().to_files(), output__bias=bias)
    refused(tmp_path / "model", changed, "output.bias has values that are not finite")


RULES = {
    "truncation": {"direction": "Right", "max_length": 0, "strategy": "LongestFirst", "stride": 9},
    "padding": {
        "strategy": {"Fixed": 2**40}, "direction": "Left", "pad_to_multiple_of": 2**40,
        "pad_id": 0, "pad_type_id": 0, "pad_token": "x",
    },
    "normalizer": {"type": "Replace", "pattern": {"Regex": ""}, "content": "a" * 1000},
    "post_processor": {"type": "nonsense"},
    "pre_tokenizer": {"type": "Split", "pattern": {"Regex": "("}, "behavior": "x", "invert": 1},
    "decoder": 3,
}  # fmt: skip


@pytest.mark.parametrize("rule", RULES)
def test_absurd_rules_of_a_tokenizer_change_nothing(tmp_path, rule):
    changed = changed_json(tiny_artifact().to_files(), TOKENIZER, rule, value=RULES[rule])
    found = fathomer.load(write(tmp_path / "model", changed)).predict(TEXTS)
    assert found == fathomer.Predictor(tiny_artifact()).predict(TEXTS)


def vocabularies():
    words = json.loads(tiny_artifact().to_files()[TOKENIZER])["model"]["vocab"]
    last = max(words, key=words.__getitem__)
    yield {**words, last: 2**32 - 1}
    yield {**words, last: 2**70}
    yield {**words, last: -1}
    yield {**words, last: "1"}
    yield {**words, last: 1}
    yield {("x" if word == "<unk>" else word): number for word, number in words.items()}
    yield {("\ud800" if word == last else word): number for word, number in words.items()}
    yield {}
    yield list(words)
    yield None


@pytest.mark.parametrize("number", range(10))
def test_absurd_ids_of_words_are_refused(tmp_path, number):
    vocabulary = list(vocabularies())[number]
    changed = changed_json(
        tiny_artifact().to_files(), TOKENIZER, "model", "vocab", value=vocabulary
    )
    refused(tmp_path / "model", changed, "not a tokenizer")


@pytest.mark.parametrize("name", ["forms", "keys", "idf", "weight", "bias"])
def test_shortened_reshaped_or_missing_tensors_of_tfidf_are_refused(tfidf, tmp_path, name):
    files, folder = tfidf.to_files(), tmp_path / "model"
    name = f"regression__{name}"
    tensor = safetensors.torch.load(files[WEIGHTS])[name.replace("__", ".")]
    for other in (None, tensor[:-1].clone(), tensor[None], tensor.bool(), tensor.flatten()[:0]):
        refused(folder, changed_tensors(files, **{name: other}))
    refused(folder, changed_tensors(files, extra=tensor), "extra is not one of this model")


def test_unsorted_keys_of_tfidf_are_refused(tfidf, tmp_path):
    keys = tfidf.network.regression.keys
    for other in (keys.flip(0).contiguous(), keys - 10**6, keys + 10**12):
        changed = changed_tensors(tfidf.to_files(), regression__keys=other)
        refused(tmp_path / "model", changed, "not sorted or out of range")


def test_weights_of_another_type_or_too_many_are_refused(tmp_path):
    files = tiny_artifact().to_files()
    bias = tiny_artifact().network.output.bias.detach()
    refused(tmp_path / "a", changed_tensors(files, output__bias=bias.double()), "has type")
    refused(tmp_path / "b", changed_tensors(files, output__bias=None), "output.bias is missing")
    refused(tmp_path / "c", changed_tensors(files, other=bias.clone()))


def test_weights_stay_when_their_file_is_truncated(tfidf, tmp_path):
    """A memory map of the file would end the process."""
    tfidf.save(tmp_path / "model")
    predictor = fathomer.load(tmp_path / "model")
    (tmp_path / "model" / WEIGHTS).write_bytes(b"")
    assert predictor.predict(TEXTS) == fathomer.Predictor(tfidf).predict(TEXTS)


def test_a_load_never_mixes_two_models(tfidf, tmp_path):
    """A writer replaces the model all the time; every load gives one of the two, and no error."""
    other = replace(tfidf, temperature=3.0, labels=("bad", "good"), metrics={"other": 1})
    folder, stop = tmp_path / "model", threading.Event()
    tfidf.save(folder)

    def save():
        while not stop.is_set():
            other.save(folder)
            tfidf.save(folder)

    writer = threading.Thread(target=save)
    writer.start()
    try:
        loads = [Artifact.load(folder) for _ in range(60)]
    finally:
        stop.set()
        writer.join()
    found = {(load.labels, load.temperature, "other" in load.metrics) for load in loads}
    assert found <= {(a.labels, a.temperature, "other" in a.metrics) for a in (tfidf, other)}


def test_a_loader_that_meets_a_replacement_tries_again(tfidf, tmp_path, monkeypatch):
    folder = tmp_path / "model"
    tfidf.save(folder)
    read = fathomer.artifact._content

    def replaced_after_the_config(path):
        content = read(path)
        if path.name == CONFIG and replaced_after_the_config.calls == 0:
            replaced_after_the_config.calls = 1
            tiny_artifact().save(folder)
        return content

    replaced_after_the_config.calls = 0
    monkeypatch.setattr("fathomer.artifact._content", replaced_after_the_config)
    assert Artifact.load(folder).recipe == tiny_artifact().recipe


def test_other_files_of_the_folder_survive_a_replacement(tmp_path):
    folder = tmp_path / "model"
    tiny_artifact().save(folder)
    (folder / "notes.txt").write_text("mine")
    (folder / "tensorboard").mkdir()
    (folder / "tensorboard" / "events").write_text("log")
    tiny_artifact().save(folder)
    assert (folder / "notes.txt").read_text() == "mine"
    assert (folder / "tensorboard" / "events").read_text() == "log"
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_a_model_is_saved_into_the_present_folder_file_by_file(tmp_path, monkeypatch):
    """A shell that is in the folder would otherwise be left in a deleted one."""
    tiny_artifact().save(tmp_path)
    monkeypatch.chdir(tmp_path)
    before = tmp_path.stat().st_ino
    tiny_artifact().save(tmp_path)
    assert tmp_path.stat().st_ino == before
    assert fathomer.load(".").labels == tiny_artifact().labels
