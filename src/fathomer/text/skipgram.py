"""Word vectors from a user's own texts: skip-gram, as trained by the package ``fasttext``.

Mikolov et al., 2013, "Distributed Representations of Words and Phrases and their Compositionality".
Our tokenizer splits the words, so that what is trained is what is looked up later. They are in lower
case, which gives each word more examples; a word in upper case is looked up in lower case, too.
One thread and a fixed seed give the same vectors every time.

The package trains in a process of its own, ``python -m fathomer.text.skipgram FOLDER``: it ignores
Ctrl-C until it has finished, and ending it from within its own process crashes that.
"""

import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fathomer.errors import DataError, TrainingError, require
from fathomer.text.tokenizer import split_words
from fathomer.text.vectors import Vectors

EPOCHS = (5, 30)
TOTAL_WORDS = 20_000_000
"""Words to read in all epochs together, within the limits above."""
LEARNING_RATE = 0.05
MARK = "="
"""Put before every word, so that none looks like a label or an end of line to fastText."""
OPTIONS, WORDS, TABLE = "options.json", "words.txt", "table.npy"
"""Files that the two processes exchange."""


@dataclass(frozen=True, kw_only=True)
class SkipgramSettings:
    """Settings of skip-gram."""

    size: int = 150
    epochs: int = 0
    """0: more for fewer words."""
    min_count: int = 3
    """Rarer words get no vector."""
    window: int = 5
    seed: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as plain values."""
        return asdict(self)


def train_skipgram(
    texts: Iterable[str], settings: SkipgramSettings, *, show_progress: bool = False
) -> Vectors:
    """Train a vector for each word of ``texts`` that is frequent enough, most frequent first."""
    require("fasttext", "vectors")
    with tempfile.TemporaryDirectory() as folder:
        corpus, start = Path(folder, "corpus.txt"), Path(folder, "start.vec")
        counts = _write_words(texts, corpus)
        frequent = [word for word, count in counts.items() if count >= settings.min_count]
        if not frequent:
            raise DataError(f"no word occurs {settings.min_count} times: no vectors")
        _write_start(start, frequent, settings)
        least, most = EPOCHS
        epochs = settings.epochs or min(most, max(least, TOTAL_WORDS // counts.total()))
        options = {
            "input": str(corpus),
            "model": "skipgram",
            "dim": settings.size,
            "ws": settings.window,
            "epoch": epochs,
            "minCount": settings.min_count,
            "minn": 0,
            "maxn": 0,
            "lr": LEARNING_RATE,
            "pretrainedVectors": str(start),
            "seed": (settings.seed + 1) % 2**31,  # 0 and 1 are the same to the package
            "thread": 1,
            "verbose": 2 if show_progress else 0,
        }
        Path(folder, OPTIONS).write_text(json.dumps(options), encoding="utf-8")
        # Ctrl-C is for this process, which then kills the other one.
        command = [sys.executable, "-m", "fathomer.text.skipgram", folder]
        done = subprocess.run(command, start_new_session=True, check=False)  # noqa: S603
        if done.returncode:
            raise TrainingError("fasttext has ended unexpectedly; there may be too little memory")
        words = Path(folder, WORDS).read_text(encoding="utf-8").split("\n")
        table = np.load(Path(folder, TABLE))
    rows = [row for row, word in enumerate(words) if word.startswith(MARK)]  # not the end of line
    return Vectors([words[row].removeprefix(MARK) for row in rows], table[rows], (settings.size,))


def _write_words(texts: Iterable[str], path: Path) -> Counter[str]:
    """Write one line of words per text, and count the words."""
    counts: Counter[str] = Counter()
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for words in split_words(texts):
            marked = [MARK + word.lower() for word in words]
            counts.update(marked)
            file.write(" ".join(marked) + "\n")
    if not counts:
        raise DataError("the texts have no words; there is nothing to train vectors on")
    return counts


def _write_start(path: Path, words: list[str], settings: SkipgramSettings) -> None:
    """Write random initial vectors, because with one thread the package leaves most at zero."""
    random = np.random.default_rng(settings.seed)
    limit = 1 / settings.size
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write(f"{len(words)} {settings.size}\n")
        for word in words:
            numbers = random.uniform(-limit, limit, settings.size)
            file.write(f"{word} {' '.join(f'{number:.6f}' for number in numbers)}\n")


def _train(folder: Path) -> None:
    """Train on the files in a folder, and write the words and their vectors there."""
    module = require("fasttext", "vectors").FastText
    options = json.loads((folder / OPTIONS).read_text(encoding="utf-8"))
    # The package's own function for this has no seed.
    arguments = module._build_args({**module.unsupervised_default, **options}, set(options))
    model = module._FastText(args=arguments)
    module.fasttext.train(model.f, arguments)
    words = model.get_words(on_unicode_error="replace")
    (folder / WORDS).write_text("\n".join(words), encoding="utf-8", newline="\n")
    np.save(folder / TABLE, np.asarray(model.get_input_matrix(), dtype=np.float32))


if __name__ == "__main__":
    _train(Path(sys.argv[1]))
