"""Measure the memory that answering a large file takes: python -m tests.memory 200000

A model is trained in a second, and the given number of short texts is answered in a process of its
own, from a csv to a csv. What is printed is the peak of the resident memory in MB: with the model
loaded and one text answered, and when all is done.
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.data.large import peak


def measure(folder: Path) -> dict[str, float]:
    """Answer the file; note the peak before and after."""
    from fathomer.answer_file import AnswerRequest, answer_file
    from fathomer.data.records import Source, iterate_records
    from fathomer.predictor import load

    predictor = load(folder / "model")
    predictor.predict(["one text, so that all libraries are at work"])
    loaded, began = peak(), time.perf_counter()
    source = Source(folder / "texts.csv", "text", None, "utf-8")
    wanted = AnswerRequest(source, folder / "answers.csv", "m", depths=True)
    texts = answer_file(predictor, iterate_records(source), wanted)
    seconds = round(time.perf_counter() - began, 1)
    return {"texts": texts, "loaded_mb": loaded, "done_mb": peak(), "seconds": seconds}


def measure_apart(count: int) -> dict[str, float]:
    """Write the model and the texts, of which each has a word of its own, and start a process."""
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
