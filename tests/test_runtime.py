"""The runtime answers raw texts with an exported model, and loads no PyTorch."""

import json
import subprocess
import sys

import pytest

from fathomer.errors import ExportError, MissingFileError
from fathomer.export import export
from fathomer.predictor import Predictor
from tests.tiny import tagged_artifact, tiny_artifact

onnx = pytest.importorskip("onnx", reason="the extra onnx is not installed")
pytest.importorskip("onnxruntime", reason="the extra onnx is not installed")

from fathomer.runtime import OnnxPredictor  # noqa: E402

TEXTS = [
    "A good film.",
    "",
    "bad bad <unk> n\u00e4\u00efve \ud800 \U0001f3ac",
    "word " * 3000,
    "Good!",
]


@pytest.fixture(scope="module", params=[tiny_artifact, tagged_artifact])
def pair(request, tmp_path_factory):
    """Return a predictor and the path of its exported model."""
    path = tmp_path_factory.mktemp("exported") / "model.onnx"
    predictor = Predictor(request.param())
    export(predictor, path)
    return predictor, path


def test_the_answers_are_those_of_the_predictor(pair):
    predictor, path = pair
    for texts in (TEXTS, [], [""]):
        found, expected = OnnxPredictor(path).predict(texts), predictor.predict(texts)
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert (one.label, one.labels, one.words) == (other.label, other.labels, other.words)
            assert one.truncated == other.truncated
            assert one.probabilities == pytest.approx(other.probabilities, abs=1e-5)


def test_nothing_but_three_packages_is_needed(pair):
    """All other packages of ours that could be loaded are made unavailable."""
    _, path = pair
    script = f"""
import sys
for name in ("torch", "safetensors", "sklearn", "scipy", "typer", "rich", "pooch", "jaxtyping"):
    sys.modules[name] = None
from fathomer.runtime import OnnxPredictor
print(OnnxPredictor({str(path)!r}).predict(["good film"])[0].label)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def test_other_files_are_refused(tmp_path):
    with pytest.raises(MissingFileError, match="no such file"):
        OnnxPredictor(tmp_path / "none.onnx")
    (tmp_path / "text.onnx").write_text("no model")
    with pytest.raises(ExportError, match="not an ONNX model"):
        OnnxPredictor(tmp_path / "text.onnx")


def test_a_file_without_a_tokenizer_is_refused(pair, tmp_path):
    _, path = pair
    model = onnx.load(path)
    kept = [each for each in model.metadata_props if each.key != "fathomer.tokenizer_json"]
    assert json.loads(kept[0].value)
    del model.metadata_props[:]
    model.metadata_props.extend(kept)
    onnx.save(model, tmp_path / "old.onnx")
    with pytest.raises(ExportError, match="run fathomer export again"):
        OnnxPredictor(tmp_path / "old.onnx")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("labels", "["),
        ("labels", '["good"]'),
        ("labels", "[[], {}]"),
        ("thresholds", "[1]"),
        ("thresholds", '"x"'),
        ("settings", '{"text": {"max_words": -1}}'),
        ("settings", '{"text": {"max_words": "' + "a" * 10_000 + '"}}'),
        ("tokenizer_json", "[" * 100_000),
    ],
)
def test_a_damaged_description_is_one_line(pair, tmp_path, key, value):
    _, path = pair
    model = onnx.load(path)
    [entry] = [each for each in model.metadata_props if each.key == f"fathomer.{key}"]
    entry.value = value
    onnx.save(model, tmp_path / "changed.onnx")
    with pytest.raises(ExportError, match="damaged; run fathomer export again") as caught:
        OnnxPredictor(tmp_path / "changed.onnx")
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 600


def test_a_model_whose_answers_are_not_finite_is_refused(pair, tmp_path):
    _, path = pair
    model = onnx.load(path)
    for tensor in model.graph.initializer:
        if tensor.data_type == onnx.TensorProto.FLOAT and len(tensor.raw_data) > 40:
            tensor.raw_data = b"\0\0\xc0\x7f" * (len(tensor.raw_data) // 4)
    onnx.save(model, tmp_path / "nan.onnx")
    with pytest.raises(ExportError, match="not finite"):
        OnnxPredictor(tmp_path / "nan.onnx")
