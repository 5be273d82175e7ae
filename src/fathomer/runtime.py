"""Prediction with an exported model: raw texts in, answers out, without PyTorch.

It needs only numpy, tokenizers and onnxruntime:

>>> from fathomer.runtime import OnnxPredictor
>>> predictor = OnnxPredictor("model.onnx")  # doctest: +SKIP
>>> predictor.predict(["What a lovely film."])[0].label  # doctest: +SKIP
'positive'
"""

import math
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from fathomer.columns import checked_texts
from fathomer.config import Recipe
from fathomer.errors import ExportError, MissingFileError, refuse_damage, require
from fathomer.files import parse_json
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
        content = Path(path).read_bytes()
        with refuse_damage(ExportError, f"{path}: not an ONNX model"):
            self._session = onnxruntime.InferenceSession(
                content, options, providers=["CPUExecutionProvider"]
            )
            about = self._session.get_modelmeta().custom_metadata_map
        if "fathomer.tokenizer_json" not in about:
            raise ExportError(f"{path}: not written by this version; run fathomer export again")
        with refuse_damage(ExportError, f"{path}: damaged; run fathomer export again"):
            self._read_description(about)
            [answer] = self.predict(["one text"])  # before the first real one
            if not all(map(math.isfinite, answer.probabilities.values())):
                raise ValueError("it answers with probabilities that are not finite")

    def _read_description(self, about: dict[str, str]) -> None:
        """Read labels, settings and tokenizer, which are kept beside the network."""
        labels = parse_json(about["fathomer.labels"])
        if not labels or not all(isinstance(label, str) for label in labels):
            raise ValueError("the labels are not strings")
        self.labels: tuple[str, ...] = tuple(labels)
        recipe = Recipe.from_dict(parse_json(about["fathomer.settings"]))
        self._text, self._several = recipe.text, recipe.model.multi_label
        self._tokenizer = Tokenizer.from_json(about["fathomer.tokenizer_json"])
        thresholds = parse_json(about["fathomer.thresholds"]) or [0.5] * len(labels)
        self._thresholds = np.asarray(thresholds, dtype=np.float64)
        if self._thresholds.shape != (len(labels),):
            raise ValueError(f"{len(labels)} labels need as many thresholds")

    def predict(self, texts: Iterable[str]) -> list[Prediction]:
        """Classify texts; return one prediction per text, in the same order."""
        texts = checked_texts(texts)
        words = self._tokenizer.encode(texts, max_words=self._text.max_words)
        encoded = EncodedTexts.from_words(words, max_chars=self._text.max_chars)
        probabilities = np.zeros((len(texts), len(self.labels)))
        depths = np.zeros(len(encoded.ids), dtype=np.int64)
        for indices in plan_batches(encoded.lengths, budget=BATCH_WORDS):
            found, taken = self._session.run(None, encoded.pack(indices)._asdict())
            probabilities[indices] = found
            encoded.scatter(indices, taken, depths)
        if self._several:
            chosen = probabilities >= self._thresholds
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
            spans=self._tokenizer.spans,
        )
