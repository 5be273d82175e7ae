"""Prediction with an exported model: raw texts in, answers out, without PyTorch.

It needs only numpy, tokenizers and onnxruntime:

>>> from fathomer.runtime import OnnxPredictor
>>> predictor = OnnxPredictor("model.onnx")  # doctest: +SKIP
>>> predictor.predict(["What a lovely film."])[0].label  # doctest: +SKIP
'positive'
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from fathomer.columns import checked_texts
from fathomer.errors import ExportError, MissingFileError, require
from fathomer.prediction import Prediction, make_predictions
from fathomer.text.encode import EncodedTexts, plan_batches
from fathomer.text.tokenizer import Tokenizer

BATCH_WORDS = 4000
"""Words per batch."""


class OnnxPredictor:
    """A model that was written by ``fathomer export``."""

    def __init__(self, path: str | Path, *, threads: int = 1) -> None:
        onnxruntime = require("onnxruntime", "onnx")
        if not Path(path).is_file():
            raise MissingFileError(f"{path}: no such file")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        try:
            content = Path(path).read_bytes()
            self._session = onnxruntime.InferenceSession(
                content, options, providers=["CPUExecutionProvider"]
            )
        except _errors(onnxruntime) as error:
            reason = str(error).partition("\n")[0]
            raise ExportError(f"{path}: not an ONNX model ({reason})") from None
        about = self._session.get_modelmeta().custom_metadata_map
        if "fathomer.tokenizer_json" not in about:
            raise ExportError(f"{path}: not written by this version; run fathomer export again")
        self.labels: tuple[str, ...] = tuple(json.loads(about["fathomer.labels"]))
        settings = json.loads(about["fathomer.settings"])
        self._text, self._several = settings["text"], settings["model"]["multi_label"]
        self._tokenizer = Tokenizer.from_json(about["fathomer.tokenizer_json"])
        self._thresholds = json.loads(about["fathomer.thresholds"]) or [0.5] * len(self.labels)

    def predict(self, texts: Iterable[str]) -> list[Prediction]:
        """Classify texts; return one prediction per text, in the same order."""
        texts = checked_texts(texts)
        words = self._tokenizer.encode(texts, max_words=self._text["max_words"])
        encoded = EncodedTexts.from_words(words, max_chars=self._text["max_chars"])
        probabilities = np.zeros((len(texts), len(self.labels)))
        depths = np.zeros(len(encoded.ids), dtype=np.int64)
        for indices in plan_batches(encoded.lengths, budget=BATCH_WORDS):
            found, taken = self._session.run(None, encoded.pack(indices)._asdict())
            probabilities[indices] = found
            encoded.scatter(indices, taken, depths)
        if self._several:
            chosen = probabilities >= np.asarray(self._thresholds)
        else:
            probabilities /= probabilities.sum(1, keepdims=True)
            chosen = probabilities.argmax(1)[:, None] == np.arange(len(self.labels))
        return make_predictions(
            texts,
            words,
            probabilities,
            chosen,
            depths,
            labels=self.labels,
            multi_label=self._several,
        )


def _errors(onnxruntime: Any) -> tuple[type[Exception], ...]:
    """Return the exceptions of the library, which share no base class."""
    raised = vars(onnxruntime.capi.onnxruntime_pybind11_state).values()
    return tuple(each for each in raised if isinstance(each, type) and issubclass(each, Exception))
