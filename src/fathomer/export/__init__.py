"""A trained model as one ONNX file, which runs without Fathomer and PyTorch.

The graph takes packed texts (``words``, ``lengths``, ``unknown``: what
:meth:`fathomer.text.encode.EncodedTexts.pack` gives) and answers with ``probabilities`` and
``depths``. It is written only if its answers are the predictor's.
"""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

import fathomer
from fathomer.artifact import TOKENIZER, Artifact
from fathomer.errors import ExportError, require
from fathomer.files import check_writable, write_atomically
from fathomer.model.model import DepthAdaptiveNetwork
from fathomer.predictor import Predictor
from fathomer.text.encode import EncodedTexts, PackedWords

if TYPE_CHECKING:
    import onnx

TOLERANCE = 1e-4
"""How far a probability of the graph may lie from the predictor's."""
_LARGEST = 2**31 - 1
"""Bytes that one ONNX file can hold."""
_DEPTH = (
    "adaptive: each word's depth is selected inside the graph, the loop over layers ends with the "
    "deepest word of the batch, and a word that has stopped takes part in no matrix product"
)


class Exported(NamedTuple):
    """Tell what was written, and how its answers were compared with the predictor's."""

    bytes: int
    opset: int
    depth: str
    batches: int
    texts: int
    largest_difference: float
    """Between two probabilities."""


def export(predictor: Predictor, path: Path) -> Exported:
    """Write a model as an ONNX file, after a comparison of its answers with the predictor's."""
    for package in ("onnx", "onnxruntime"):
        require(package, "onnx")
    check_writable(path)
    content, opset = serialise(predictor.artifact)
    batches, texts, difference = compare(content, predictor)
    write_atomically(path, content)
    return Exported(len(content), opset, _DEPTH, batches, texts, difference)


def serialise(artifact: Artifact) -> tuple[bytes, int]:
    """Give the content of the file, and the version of ONNX's operators in it."""
    from fathomer.export.steps import NetworkGraph
    from fathomer.export.writer import OPSET

    network = artifact.network
    if not isinstance(network, DepthAdaptiveNetwork):
        name = artifact.recipe.model.name
        raise ExportError(f"the model {name} cannot be exported; only fathomer can")
    tensors = (*network.parameters(), *network.buffers())
    if sum(tensor.numel() * 4 for tensor in tensors) > _LARGEST:
        raise ExportError("the model is larger than the 2 GB that an ONNX file can hold")
    model = NetworkGraph(network).model(temperature=artifact.temperature)
    describe(model, artifact)
    return model.SerializeToString(), OPSET


def describe(model: "onnx.ModelProto", artifact: Artifact) -> None:
    """Put into the file what a user must know to ask it and to read its answers."""
    model.producer_name, model.producer_version = "fathomer", fathomer.__version__
    tokenizer = artifact.tokenizer.to_json().encode("utf-8")
    properties = {
        "labels": json.dumps(artifact.labels, ensure_ascii=False),
        "thresholds": json.dumps(artifact.thresholds),
        "settings": json.dumps(artifact.recipe.to_dict()),
        "tokenizer": json.dumps(
            {"file": TOKENIZER, "sha256": hashlib.sha256(tokenizer).hexdigest()}
        ),
        "depth": _DEPTH,
    }
    for name, value in properties.items():
        model.metadata_props.add(key=f"fathomer.{name}", value=value)


def compare(content: bytes, predictor: Predictor) -> tuple[int, int, float]:
    """Refuse a graph that answers otherwise; give batches, texts and the largest difference."""
    onnxruntime = require("onnxruntime", "onnx")
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    batches = list(trial_batches(predictor.artifact.tokenizer.vocabulary))
    largest = 0.0
    for texts in batches:
        probabilities, depths = session.run(None, packed(texts, predictor.artifact)._asdict())
        expected = predictor.predict(texts)
        rows = np.array([list(answer.probabilities.values()) for answer in expected])
        difference = float(np.abs(probabilities - rows).max())
        same = depths.tolist() == [word.depth for answer in expected for word in answer.words]
        if not (difference <= TOLERANCE and same):  # nan, too, is a difference
            what = f"probabilities differ by {difference:.2g}" if same else "depths differ"
            raise ExportError(
                f"the graph does not answer as the predictor does ({what} in a batch of "
                f"{len(texts)} texts); nothing was written"
            )
        largest = max(largest, difference)
    return len(batches), sum(map(len, batches)), largest


def packed(texts: list[str], artifact: Artifact) -> PackedWords:
    """Encode texts as the graph takes them."""
    config = artifact.recipe.text
    words = artifact.tokenizer.encode(texts, max_words=config.max_words)
    return EncodedTexts.from_words(words, max_chars=config.max_chars).pack(range(len(texts)))


def trial_batches(vocabulary: list[str]) -> Iterator[list[str]]:
    """Make up texts of all lengths, of known and unknown words, alone and in company."""
    random = Random(0)  # noqa: S311 (texts, not a secret)
    unknown = ["Qzxv", "häßlichst", "知らない", "🦜", "x" * 400]

    def text(words: int) -> str:
        return " ".join(random.choice(random.choice([vocabulary, unknown])) for _ in range(words))

    yield [""]
    yield ["", ""]
    yield [text(1)]
    yield unknown
    yield [text(300)]
    yield [text(2), "", text(40), text(1)]
    yield [text(random.randrange(25)) for _ in range(33)]
