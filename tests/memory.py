"""Measure the memory needed to classify a large file: python -m tests.memory 200000

A tiny model classifies the given number of short texts in a separate process, from CSV to CSV. The
script prints the peak resident memory in MB after the first text and after the last one.
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.data.large import peak


def measure(folder: Path) -> dict[str, float]:
    """Classify the file, and return the peak memory before and after."""
    from fathomer.answer_file import AnswerRequest, answer_file
    from fathomer.data.reading import ReadOptions, read_rows
    from fathomer.predictor import load

    predictor = load(folder / "model")
    predictor.predict(["one text, so that all libraries are loaded"])
    loaded, began = peak(), time.perf_counter()
    path = folder / "texts.csv"
    wanted = AnswerRequest(path, folder / "answers.csv", "m", depths=True)
    texts = answer_file(predictor, read_rows(path, ReadOptions(label_column=None)), wanted)
    seconds = round(time.perf_counter() - began, 1)
    return {"texts": texts, "loaded_mb": loaded, "done_mb": peak(), "seconds": seconds}


def measure_apart(count: int) -> dict[str, float]:
    """Write a model and texts, each with a word of its own, and measure in a new process."""
    from tests.tiny import tiny_artifact

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tiny_artifact().save(folder / "model")
        with (folder / "texts.csv").open("w", encoding="utf-8") as file:
            file.write("id,text\n")
            for number in range(count):
                file.write(f'{number},"The film number{number} was good, ""fine"" and long."\n')
        command = [sys.executable, "-m", "tests.memory", name]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        return json.loads(done.stdout)


if __name__ == "__main__":
    [argument] = sys.argv[1:]
    print(
        json.dumps(measure_apart(int(argument)) if argument.isdigit() else measure(Path(argument)))
    )
