"""Fine-tuning of a sentence encoder as a classifier: a teacher for ``fathomer train --teacher``.

The held-out texts are those that ``fathomer train`` holds out with the same seed; they are not used. The
settings are the usual ones of such encoders; none was chosen by looking at a test set.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from fathomer.data.examples import Examples, split_stratified
from fathomer.errors import require
from fathomer.text.distill import find_encoder

BATCH_TEXTS = 16
LONGEST = 256
LEARNING_RATE = 5e-5
WARM_UP = 0.1


class TeacherScores(NamedTuple):
    """Accuracy and speed of a fine-tuned encoder."""

    epochs: int
    held_out: float
    test: float | None
    texts_per_second: float
    """Texts of the test set, or of the held-out part, answered on this machine."""
    threads: int


def fine_tune(
    encoder: str,
    examples: Examples,
    test: Examples | None,
    out: Path,
    *,
    epochs: int,
    held_out: float,
    seed: int,
    log: Callable[[str], None],
) -> TeacherScores:
    """Fine-tune an encoder on labelled texts, save it to ``out`` and score it."""
    transformers = require("transformers", "vectors")
    folder, labels = find_encoder(encoder), list(examples.label_counts)
    train, unseen = split_stratified(examples, fraction=held_out, seed=seed)
    torch.manual_seed(seed)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
    network = transformers.AutoModelForSequenceClassification.from_pretrained(
        folder,
        local_files_only=True,
        num_labels=len(labels),
        id2label=dict(enumerate(labels)),
        label2id={label: number for number, label in enumerate(labels)},
    ).float()
    optimiser = torch.optim.AdamW(network.parameters(), lr=LEARNING_RATE, weight_decay=0.01)
    random = np.random.default_rng(seed)
    steps = epochs * -(-len(train) // BATCH_TEXTS)
    step = 0
    for epoch in range(1, epochs + 1):
        network.train()
        total = 0.0
        for batch in _batches(train, tokenizer, labels, random.permutation(len(train)).tolist()):
            progress = step / steps
            rate = LEARNING_RATE * min(progress / WARM_UP, (1 - progress) / (1 - WARM_UP))
            optimiser.param_groups[0]["lr"] = rate
            loss = network(**batch).loss
            optimiser.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimiser.step()
            total += loss.item() * len(batch["labels"])
            step += 1
        accuracy, _ = _score(network, tokenizer, unseen, labels)
        log(f"epoch {epoch}/{epochs}  loss {total / len(train):.4f}  held out {accuracy:.4f}")
    network.save_pretrained(out)
    tokenizer.save_pretrained(out)
    scored, speed = _score(network, tokenizer, test or unseen, labels)
    return TeacherScores(epochs, accuracy, scored if test else None, speed, torch.get_num_threads())


def _batches(
    examples: Examples, tokenizer: Any, labels: Sequence[str], order: Sequence[int]
) -> Iterator[dict[str, torch.Tensor]]:
    """Yield padded batches in the given order."""
    for start in range(0, len(order), BATCH_TEXTS):
        chosen = [examples.items[row] for row in order[start : start + BATCH_TEXTS]]
        texts = [example.text for example in chosen]
        batch = tokenizer(
            texts, truncation=True, max_length=LONGEST, padding=True, return_tensors="pt"
        )
        targets = torch.tensor([labels.index(example.label) for example in chosen])
        yield {**batch, "labels": targets}


def _score(
    network: Any, tokenizer: Any, examples: Examples, labels: Sequence[str]
) -> tuple[float, float]:
    """Return the accuracy, and the texts answered per second."""
    network.eval()
    lengths = [len(example.text) for example in examples]
    order = sorted(range(len(examples)), key=lengths.__getitem__)
    started, correct = time.perf_counter(), 0
    with torch.inference_mode():
        for batch in _batches(examples, tokenizer, labels, order):
            found = network(**batch).logits.argmax(1)
            correct += int((found == batch["labels"]).sum())
    return correct / len(examples), len(examples) / (time.perf_counter() - started)
