"""Export of a trained model to a single ONNX file, which runs without PyTorch.

The graph takes packed texts (``words``, ``lengths`` and ``unknown``, as returned by
:meth:`fathomer.text.encode.EncodedTexts.pack`) and returns ``probabilities`` and ``depths``. The
tokenizer is in the file's metadata, so that :mod:`fathomer.runtime` takes raw texts. The file is
written only if the answers of the graph are those of the predictor.
"""

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import fathomer
from fathomer.artifact import TOKENIZER, Artifact
from fathomer.errors import ExportError, require
from fathomer.files import check_writable, write_atomically
from fathomer.model.model import DepthAdaptiveNetwork
from fathomer.predictor import Predictor

if TYPE_CHECKING:
    import onnx

MAX_BYTES = 2**31 - 1
"""Size limit of an ONNX file."""
_DEPTH = "adaptive: the graph selects depths and skips words that have stopped"


class Exported(NamedTuple):
    """The result of an export: what was written, and how it compares with the predictor."""

    bytes: int
    opset: int
    """Version of the ONNX operators."""
    depth: str
    """How the graph handles depth, in words."""
    batches: int
    texts: int
    largest_difference: float
    """Largest difference between a probability of the graph and the predictor's."""


def export(predictor: Predictor, path: Path) -> Exported:
    """Write a model as an ONNX file, after verifying its answers against the predictor's."""
    for package in ("onnx", "onnxruntime"):
        require(package, "onnx")
    from fathomer.export.builder import OPSET
    from fathomer.export.verify import verify

    check_writable(path)
    content = serialise(predictor.artifact)
    verified = verify(content, predictor)
    write_atomically(path, content)
    return Exported(len(content), OPSET, _DEPTH, *verified)


def serialise(artifact: Artifact) -> bytes:
    """Return the content of the ONNX file."""
    from fathomer.export.network import NetworkGraph

    network = artifact.network
    if not isinstance(network, DepthAdaptiveNetwork):
        name = artifact.recipe.model.name
        raise ExportError(f"the model {name} cannot be exported; only fathomer can")
    tensors = (*network.parameters(), *network.buffers())
    if sum(tensor.numel() * max(4, tensor.itemsize) for tensor in tensors) > MAX_BYTES:
        raise ExportError("the model is larger than 2 GB, the limit of an ONNX file")
    model = NetworkGraph(network).model(temperature=artifact.temperature)
    add_metadata(model, artifact)
    content: bytes = model.SerializeToString()
    return content


def add_metadata(model: "onnx.ModelProto", artifact: Artifact) -> None:
    """Add what is needed to encode texts and to interpret the outputs."""
    model.producer_name, model.producer_version = "fathomer", fathomer.__version__
    tokenizer = artifact.tokenizer.to_json()
    properties = {
        "labels": json.dumps(artifact.labels, ensure_ascii=False),
        "thresholds": json.dumps(artifact.thresholds),
        "settings": json.dumps(artifact.recipe.to_dict()),
        "tokenizer": json.dumps(
            {"file": TOKENIZER, "sha256": hashlib.sha256(tokenizer.encode("utf-8")).hexdigest()}
        ),
        "tokenizer_json": tokenizer,
        "depth": _DEPTH,
    }
    for name, value in properties.items():
        model.metadata_props.add(key=f"fathomer.{name}", value=value)
