"""A teacher: a fine-tuned Hugging Face sequence classifier that gives texts their soft labels.

Its answers are appended to a file as they come, so that an interrupted run does not ask twice.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from fathomer.errors import ConfigError, MissingFileError
from fathomer.files import parse_json, sha256_of, write_atomically
from fathomer.text.distill import load_pretrained

BATCH_SUBWORDS = 4096
LONGEST = 512
"""Subwords of a text that the teacher reads."""
_PARTS = (".safetensors", ".json", ".txt", ".model")
"""Files of a folder that decide what the teacher answers."""


class Teacher:
    """A sequence classifier with the order of the student's labels."""

    def __init__(self, folder: Path, labels: Sequence[str]) -> None:
        self.folder = folder
        names = _label_names(folder)
        if sorted(names) != sorted(labels):
            raise ConfigError(
                f"{folder}: its labels are {', '.join(names):.200}, those of the data are "
                f"{', '.join(labels):.200}; name them in id2label of its config.json"
            )
        self.columns = [names.index(label) for label in labels]
        self.fingerprint = _fingerprint(folder, labels)
        self._loaded: tuple[Any, Any] | None = None

    def answer(
        self,
        texts: Sequence[str],
        cache: Path,
        *,
        progress: Callable[[int], None] = lambda _: None,
    ) -> NDArray[np.float32]:
        """Return the probabilities of the labels for each text, in the student's order."""
        known = _read_answers(cache, self.fingerprint, len(self.columns))
        keys = [_key(text) for text in texts]
        new = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
        if new:
            _start_file(cache, self.fingerprint, known)
            with cache.open("a", encoding="utf-8") as file:
                for answered in self._batches(new):
                    known |= answered
                    file.write("".join(map(_line, answered.items())))
                    file.flush()
                    progress(len(known))
        return np.array([known[key] for key in keys], dtype=np.float32)

    def _batches(self, texts: dict[str, str]) -> Iterator[dict[str, list[float]]]:
        """Yield the answers to batches of texts of about the same length, longest first."""
        tokenizer, network = self._load()
        keys = list(texts)
        positions = getattr(network.config, "max_position_embeddings", LONGEST)
        longest = min(LONGEST, tokenizer.model_max_length, positions)
        ids = tokenizer(list(texts.values()), truncation=True, max_length=longest)["input_ids"]
        order = sorted(range(len(keys)), key=lambda row: -len(ids[row]))
        while order:
            count = max(1, BATCH_SUBWORDS // max(1, len(ids[order[0]])))
            rows, order = order[:count], order[count:]
            batch = tokenizer.pad({"input_ids": [ids[row] for row in rows]}, return_tensors="pt")
            with torch.inference_mode():
                logits = network(**batch).logits.float()
            if not logits.isfinite().all():
                raise ConfigError(f"{self.folder}: the teacher returns numbers that are not finite")
            found = logits.softmax(1)[:, self.columns].double().tolist()
            yield {
                keys[row]: [round(p, 6) for p in each]
                for row, each in zip(rows, found, strict=True)
            }

    def _load(self) -> tuple[Any, Any]:
        if self._loaded is None:
            tokenizer, network = load_pretrained(self.folder, "AutoModelForSequenceClassification")
            if tokenizer.pad_token is None:
                raise ConfigError(f"{self.folder}: its tokenizer has no pad_token; set one")
            self._loaded = tokenizer, network
        return self._loaded


def _label_names(folder: Path) -> list[str]:
    """Return the labels of a sequence classifier, in its own order."""
    path = folder / "config.json"
    if not path.is_file():
        raise MissingFileError(f"{folder}: not a sequence classifier (it has no config.json)")
    try:
        config = parse_json(path.read_bytes())
        kinds = [str(kind) for kind in config.get("architectures") or ["nothing"]]
        names = [str(label) for _, label in sorted(_numbered(config.get("id2label") or {}))]
    except (AttributeError, TypeError, ValueError) as error:
        raise ConfigError(f"{path}: not the settings of a model ({error})") from None
    if not any(kind.endswith("ForSequenceClassification") for kind in kinds):
        raise ConfigError(
            f"{folder}: not a sequence classifier (its config.json names {kinds[0]:.60}); fine-tune one"
        )
    return names


def _numbered(labels: dict[str, Any]) -> list[tuple[int, Any]]:
    return [(int(number), label) for number, label in labels.items()]


def _fingerprint(folder: Path, labels: Sequence[str]) -> str:
    """Return a hash of the teacher's weights, settings and vocabulary, and of our labels."""
    files = (file for file in folder.iterdir() if file.suffix in _PARTS and file.is_file())
    sums = [sha256_of(file) for file in sorted(files)]
    return sha256("\n".join([*sums, *labels]).encode()).hexdigest()[:16]


def _key(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:24]


def _read_answers(path: Path, fingerprint: str, labels: int) -> dict[str, list[float]]:
    """Return the answers of this teacher in a file; a line that is damaged or cut off is ignored."""
    answers: dict[str, list[float]] = {}
    if not path.is_file():
        return answers
    head, *lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    if head != json.dumps({"teacher": fingerprint}):
        return answers
    for line in lines:
        try:
            found = parse_json(line)
            key, p, check = found["text"], found["p"], found["check"]
            intact = len(p) == labels and check == _check_of(key, p)
        except (ValueError, KeyError, TypeError):
            continue
        if intact:
            answers[key] = p
    return answers


def _start_file(path: Path, fingerprint: str, known: dict[str, list[float]]) -> None:
    """Write the head of the file and the answers that are known already."""
    head = json.dumps({"teacher": fingerprint}) + "\n"
    write_atomically(path, head + "".join(map(_line, known.items())))


def _line(answer: tuple[str, list[float]]) -> str:
    key, p = answer
    return json.dumps({"text": key, "p": p, "check": _check_of(key, p)}) + "\n"


def _check_of(key: str, p: list[float]) -> str:
    """Return a checksum of one answer."""
    return sha256(json.dumps([key, p]).encode()).hexdigest()[:16]
