"""Measure the memory use of a large corpus: python -m tests.data.large 650000

Generates a csv file of that many rows in Yelp's format, indexes it, prepares it, and trains a small
network on it for ten steps. Prints the peak resident memory after each, in MB.
"""

import argparse
import json
import tempfile
import time
from itertools import islice
from pathlib import Path

import numpy as np

from fathomer import spool

RARE = 10
"""One in this many texts has a word that no other text has."""


def write_yelp(folder: Path, rows: int, *, distinct: int, words: int = 130) -> None:
    """Write a training and a test file with natural word frequencies."""
    random = np.random.default_rng(0)
    vocabulary = np.asarray([f"w{number}" for number in range(distinct)])
    weights = 1 / np.arange(1, len(vocabulary) + 1)
    bounds = np.cumsum(weights) / weights.sum()
    folder.mkdir(parents=True, exist_ok=True)
    for name, count in (("train.csv", rows), ("test.csv", 10)):
        with (folder / name).open("w", encoding="utf-8") as file:
            for row in range(count):
                length = int(random.integers(words // 2, words * 3 // 2))
                text = " ".join(vocabulary[np.searchsorted(bounds, random.random(length))])
                rare = f" rare{row}" if row % RARE == 0 else ""
                file.write(f'"{row % 5 + 1}","{text}{rare}\\n\\n""Quoted"", and done."\n')


def peak() -> int:
    """Return the peak resident memory of this process, in MB."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) // 1024 for line in lines if line.startswith("VmHWM"))


def measure(data_dir: Path) -> dict[str, float]:
    """Open, prepare and train; record the time and the peak memory after each."""
    from fathomer.config import Recipe
    from fathomer.data.opening import open_dataset
    from fathomer.train.checkpoint import TrainingState
    from fathomer.train.loop import train
    from fathomer.train.prepare import data_fingerprint, prepare

    network = {"word_size": 32, "char_size": 8, "depth_size": 16, "hidden_size": 32, "max_depth": 3}
    recipe = Recipe().updated({"model": network, "text": {"max_vocabulary": 20_000}})
    began, found = time.perf_counter(), {"start_mb": peak()}

    def note(name: str) -> None:
        found[f"{name}_mb"] = peak()
        found[f"{name}_s"] = round(time.perf_counter() - began, 1)

    dataset = open_dataset("yelp_full", data_dir=data_dir)
    found["texts"] = len(dataset.train)
    note("index")
    prepared = prepare(dataset.train, recipe)
    found["words"] = len(prepared.train.texts.ids)
    note("prepare")
    data_fingerprint(prepared)
    note("fingerprint")
    for _ in islice(train(TrainingState.start(prepared.network), prepared), 10):
        pass
    note("ten_steps")
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("rows", type=int)
    parser.add_argument("--distinct", type=int, default=50_000, help="different words")
    parser.add_argument("--limit", type=int, default=spool.LIMIT, help="bytes kept in memory")
    options = parser.parse_args()
    spool.LIMIT = options.limit
    with tempfile.TemporaryDirectory() as folder:
        write_yelp(Path(folder) / "yelp_full", options.rows, distinct=options.distinct)
        print(json.dumps(measure(Path(folder))))
