"""The ONNX file gives the answers of the predictor, at the same depths."""

import json
import re
import sys
from copy import deepcopy
from functools import cache
from pathlib import Path
from random import Random

import numpy as np
import pytest
import torch

import fathomer
from fathomer.artifact import Artifact
from fathomer.errors import ConfigError, ExportError, MissingExtraError
from fathomer.export import export, serialise
from fathomer.files import sha256_of
from fathomer.model import WordBatch
from fathomer.predictor import Predictor
from fathomer.train.fit import fit
from tests.model.networks import RAGGED, random_network, random_texts
from tests.model.networks import packed as packed_ids
from tests.tiny import (
    TINY,
    supervised_artifact,
    tagged,
    tagged_artifact,
    tiny_artifact,
    tiny_examples,
)

onnx = pytest.importorskip("onnx", reason="the extra onnx is not installed")
onnxruntime = pytest.importorskip("onnxruntime", reason="the extra onnx is not installed")

from fathomer.export.network import NetworkGraph  # noqa: E402
from fathomer.export.verify import known_pairs, pack_texts, sample_batches  # noqa: E402


def session_of(content, **options):
    settings = onnxruntime.SessionOptions()
    for name, value in options.items():
        setattr(settings, name, value)
    return onnxruntime.InferenceSession(content, settings, providers=["CPUExecutionProvider"])


def answers(session, batch):
    """Run a session on a batch of the network."""
    names = ("words", "lengths", "unknown")
    return session.run(None, {name: getattr(batch, name).numpy() for name in names})


def graph_of(network):
    model = NetworkGraph(network).model()
    onnx.checker.check_model(model, full_check=True)
    return model.SerializeToString()


@cache
def ngram_artifact(*, multi_label=False):
    """Return a trained model with n-grams that count as much as the network."""
    recipe = TINY.updated({"model": {"ngrams": True}, "train": {"epochs": 2}})
    artifact = fit(tagged() if multi_label else tiny_examples(), recipe).artifact
    artifact.network.ngrams.share.fill_(0.5)
    return artifact


def with_random_ngrams(network, count):
    """Give a network some n-grams of the ten words that are used, those with two digits."""
    generator, used = torch.Generator().manual_seed(count), torch.arange(10, 20)
    pairs = (used[:, None] + 1) * network.config.vocab_size + used
    every = torch.cat([used, pairs.flatten()])
    keys = every[torch.randperm(len(every), generator=generator)[:count]].sort().values
    tensors = {
        "idf": 1 + torch.rand(count, generator=generator),
        "weight": torch.randn(count, 3, generator=generator),
        "bias": torch.randn(3, generator=generator),
        "share": torch.tensor(0.7),
    }
    network.ngrams.load_tensors({"keys": keys, "forms": network.ngrams.forms, **tensors})
    return network


@pytest.mark.parametrize("sequence", ["bilstm", "none", "sinusoidal", "learned"])
@pytest.mark.parametrize("depth", ["gumbel", "soft", "full", "supervised"])
def test_the_graph_gives_the_answers_of_the_network(sequence, depth):
    network = random_network(sequence=sequence, depth=depth, max_positions=5)
    session = session_of(graph_of(network))
    texts = [random_texts(seed=number, texts=3 * number + 1) for number in range(5)]
    texts += [RAGGED, [[]], [[], []], [[3]], [[-1]]]
    batches = [*map(packed_ids, texts), WordBatch.from_ids([[1, 2, 3]]), WordBatch.from_ids([[]])]
    for batch in batches:
        with torch.inference_mode():
            expected = network(batch)
        probabilities, depths = answers(session, batch)
        np.testing.assert_allclose(probabilities, expected.logits.softmax(1), atol=2e-6)
        assert depths.tolist() == expected.depths.tolist()


@pytest.mark.parametrize("count", [0, 1, 2, 7, 50, 110])
def test_the_graph_mixes_in_the_ngrams(count):
    network = with_random_ngrams(random_network(ngrams=True), count)
    session = session_of(graph_of(network))
    texts = [random_texts(seed=number, texts=number + 1, longest=30) for number in range(20)]
    texts += [RAGGED, [[]], [[], []], [[13]], [[3]], [[-1]], [[1, 2]], [[12, -1, 3, 13], [14]]]
    texts += [[[15] * 50], [[11, 12] * 20, [], [11, 4, 12, 11]]]
    for batch in map(packed_ids, texts):
        with torch.inference_mode():
            expected = network(batch)
        probabilities, _ = answers(session, batch)
        np.testing.assert_allclose(probabilities, expected.logits.softmax(1), atol=2e-6)


def test_a_stopped_word_is_in_no_matrix_product(tmp_path):
    network = random_network()
    session = session_of(
        graph_of(network), enable_profiling=True, profile_file_prefix=str(tmp_path / "p")
    )
    _, depths = answers(session, packed_ids(RAGGED))
    events = json.loads(Path(session.end_profiling()).read_text(encoding="utf-8"))
    width = 3 * network.config.hidden_size
    shapes = [
        event["args"]["input_type_shape"][0]["float"]
        for event in events
        if event.get("args", {}).get("op_name") in ("MatMul", "Gemm", "FusedMatMul")
    ]
    running = [rows for rows, columns in shapes if columns == width and rows > 0]
    running.remove(len(RAGGED))  # the output layer, applied to pooled texts of the same width
    assert len(set(depths.tolist())) > 2
    assert running == [int((depths > layer).sum()) for layer in range(max(depths))]


def test_the_file_runs_and_describes_itself(run, tmp_path):
    artifact = tiny_artifact()
    artifact.save(tmp_path / "model")
    code, out, err = run("export", "model", "--out", "model.onnx", "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert found["bytes"] == (tmp_path / "model.onnx").stat().st_size
    assert found["largest_difference"] < 1e-5
    session = session_of(str(tmp_path / "model.onnx"))
    about = session.get_modelmeta().custom_metadata_map
    assert tuple(json.loads(about["fathomer.labels"])) == artifact.labels
    assert json.loads(about["fathomer.settings"]) == artifact.recipe.to_dict()
    assert about["fathomer.depth"].startswith("adaptive: ")
    tokenizer = json.loads(about["fathomer.tokenizer"])
    assert tokenizer["sha256"] == sha256_of(tmp_path / "model" / tokenizer["file"])
    texts = ["The film was lovely.", "", "Good?", "zzz " * 70, "bad"]
    probabilities, _ = session.run(None, pack_texts(texts, artifact)._asdict())
    expected = fathomer.load(tmp_path / "model").predict(texts)
    np.testing.assert_allclose(
        probabilities, [list(p.probabilities.values()) for p in expected], atol=1e-6
    )


def test_a_model_with_supervised_depth_has_its_depths_in_the_graph(tmp_path):
    predictor = Predictor(supervised_artifact())
    export(predictor, tmp_path / "model.onnx")
    texts = ["the film was not bad at all, but I did not like the hotel"]
    packed = pack_texts(texts, predictor.artifact)._asdict()
    _, depths = session_of(str(tmp_path / "model.onnx")).run(None, packed)
    assert depths.tolist() == [word.depth for word in predictor.predict(texts)[0].words]
    assert len(set(depths.tolist())) > 1


def test_a_multi_label_model_can_be_exported(tmp_path):
    predictor = Predictor(tagged_artifact())
    export(predictor, tmp_path / "model.onnx")
    session = session_of(str(tmp_path / "model.onnx"))
    about = session.get_modelmeta().custom_metadata_map
    labels, thresholds = (
        json.loads(about[f"fathomer.{name}"]) for name in ("labels", "thresholds")
    )
    texts = [example.text for example in tagged(20)]
    probabilities, _ = session.run(None, pack_texts(texts, predictor.artifact)._asdict())
    for row, answer in zip(probabilities, predictor.predict(texts), strict=True):
        np.testing.assert_allclose(row, list(answer.probabilities.values()), atol=1e-6)
        given = [label for label, p, low in zip(labels, row, thresholds, strict=True) if p >= low]
        assert tuple(given) == answer.labels
    assert max(probabilities.sum(1)) > 1.5


@pytest.mark.parametrize("multi_label", [False, True])
def test_a_model_with_ngrams_can_be_exported(tmp_path, multi_label):
    artifact = ngram_artifact(multi_label=multi_label)
    artifact.save(tmp_path / "model")
    predictor = fathomer.load(tmp_path / "model")
    exported = export(predictor, tmp_path / "model.onnx")
    assert exported.largest_difference < 1e-5
    session, random = session_of(str(tmp_path / "model.onnx")), Random(1)
    choices = [*artifact.tokenizer.vocabulary, *known_pairs(artifact), "THE", "Qzxv", "?"]
    for size in range(1, 30):
        texts = [" ".join(random.choices(choices, k=random.randrange(40))) for _ in range(size)]
        probabilities, _ = session.run(None, pack_texts(texts, artifact)._asdict())
        expected = [list(answer.probabilities.values()) for answer in predictor.predict(texts)]
        np.testing.assert_allclose(probabilities, expected, atol=2e-6)


@pytest.mark.parametrize("part", ["share", "pairs"])
def test_a_graph_with_other_ngrams_is_not_written(tmp_path, monkeypatch, part):
    def share(self, logits):
        self.network = deepcopy(self.network)
        self.network.ngrams.share.fill_(0.6)
        return mix(self, logits)

    def pairs(self, ngrams):
        text_of, keys = all_ngrams(self, ngrams)
        is_word = self.op("Less", keys, self.scalar(ngrams.vocab_size))
        return self.select(is_word, text_of, keys)

    mix, all_ngrams = NetworkGraph.mix, NetworkGraph.pairs
    method, broken = {"share": ("mix", share), "pairs": ("pairs", pairs)}[part]
    monkeypatch.setattr(NetworkGraph, method, broken)
    with pytest.raises(ExportError, match="probabilities differ by"):
        export(Predictor(ngram_artifact()), tmp_path / "model.onnx")
    assert list(tmp_path.iterdir()) == []


def test_the_command_prints_how_depth_is_handled(run, tmp_path):
    tiny_artifact().save(tmp_path / "model")
    code, out, _ = run("export", "model", "--out", "model.onnx")
    assert code == 0
    assert "\nadaptive: the graph selects depths" in out
    assert re.search(r"compared with the predictor: \d+ texts in \d+ batches", out)


def test_sample_batches_cover_the_special_cases():
    batches = list(sample_batches(["good", "film"]))
    assert [""] in batches
    assert len({len(batch) for batch in batches}) >= 4
    lengths = {len(text.split()) for batch in batches for text in batch}
    assert {0, 1, 300} <= lengths
    words = pack_texts([text for batch in batches for text in batch], tiny_artifact())
    assert (words.words < 0).any()
    assert (words.words > 0).any()


def test_the_texts_of_known_pairs_contain_these():
    artifact = ngram_artifact()
    ngrams, pairs = artifact.network.ngrams, known_pairs(artifact)
    assert len(pairs) == sum(ngrams.keys >= ngrams.vocab_size)
    *_, texts = sample_batches(artifact.tokenizer.vocabulary, pairs)
    batch = WordBatch.from_packed(pack_texts(texts, artifact))
    _, keys = ngrams.pairs(batch.text_of, batch.words)
    found = keys[torch.isin(keys, ngrams.keys)]
    assert (found >= ngrams.vocab_size).sum() > 20
    assert known_pairs(tiny_artifact()) == []


@pytest.mark.parametrize(
    ("broken", "message"),
    [("text_mean", "probabilities differ by"), ("select_depths", "depths differ")],
)
def test_a_graph_with_other_answers_is_not_written(tmp_path, monkeypatch, broken, message):
    def text_mean(self, h):
        return self.sum_over_text(self.on_grid(h))

    def select_depths(self, features):
        inner, _ = select(self, features)
        return inner, self.op("Expand", self.scalar(1), self.words.shape())

    select = NetworkGraph.select_depths
    monkeypatch.setattr(NetworkGraph, broken, locals()[broken])
    with pytest.raises(ExportError, match=message):
        export(Predictor(tiny_artifact()), tmp_path / "model.onnx")
    assert list(tmp_path.iterdir()) == []


def test_a_graph_with_nan_answers_is_not_written(tmp_path):
    artifact = deepcopy(tiny_artifact())
    artifact.network.output.bias.data.fill_(torch.nan)
    with pytest.raises(ExportError, match="probabilities differ by nan in a batch of 1 texts"):
        export(Predictor(artifact), tmp_path / "model.onnx")
    assert list(tmp_path.iterdir()) == []


def test_other_models_are_refused(run, tmp_path):
    recipe = TINY.updated({"model": {"name": "bilstm"}, "train": {"epochs": 1}})
    fit(tiny_examples(), recipe).artifact.save(tmp_path / "model")
    code, out, err = run("export", "model", "--out", "model.onnx")
    assert (code, out) == (2, "")
    assert err == "fathomer: the model bilstm cannot be exported; only fathomer can\n"
    assert not (tmp_path / "model.onnx").exists()


def test_an_output_that_cannot_be_written_is_refused_before_the_model_is_loaded(
    run, tmp_path, monkeypatch
):
    monkeypatch.setattr(Artifact, "load", lambda folder: pytest.fail("the model was loaded"))
    (tmp_path / "folder").mkdir()
    code, _, err = run("export", "model", "--out", "missing/model.onnx")
    assert code == 2
    assert err == ("fathomer: missing/model.onnx: cannot be written (No such file or directory)\n")
    code, _, err = run("export", "model", "--out", "folder")
    assert (code, err) == (2, "fathomer: folder: is a folder; name a file\n")
    with pytest.raises(ConfigError, match="cannot be written"):
        export(Predictor(tiny_artifact()), tmp_path / "missing" / "model.onnx")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_a_missing_package_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'fathomer\[onnx\]'"):
        export(Predictor(tiny_artifact()), tmp_path / "model.onnx")


def test_a_model_larger_than_an_onnx_file_is_refused(monkeypatch):
    monkeypatch.setattr("fathomer.export.MAX_BYTES", 1000)
    with pytest.raises(ExportError, match="larger than 2 GB"):
        serialise(tiny_artifact())
