"""Many rows on Ray with three kills: ``python -m tests.torture.rows MODEL WORK [ROWS]``.

Every row must be answered once, in its place, as the same model answers it without Ray.
"""

import sys
from itertools import cycle, islice
from pathlib import Path

import pyarrow
from pyarrow import parquet

from fathomer.answer_dataset import DatasetRequest, answer_dataset, connected
from fathomer.data.demo import demo_corpus
from fathomer.predictor import Predictor, load
from tests.test_answer_dataset import kill_another

FILES, KILLS, WORKERS = 20, 3, 2


def answer_with_kills(predictor: Predictor, work: Path, rows: int) -> list[int]:
    """Answer generated files while workers are killed; return the ids of the killed processes."""
    (work / "data").mkdir(parents=True)
    texts = cycle(demo_corpus()[0].texts)
    for file in range(FILES):
        ids = range(file * rows // FILES, (file + 1) * rows // FILES)
        named = [f"{text} {n}" for n, text in zip(ids, texts, strict=False)]
        table = pyarrow.table({"id": list(ids), "text": named})
        parquet.write_table(table, work / f"data/{file:02}.parquet")
    killed: list[int] = []

    def kill(chunks):
        done = 0
        for chunk in chunks:
            yield chunk
            done += chunk.rows
            if len(killed) < KILLS and done > rows * (1 + len(killed)) / (KILLS + 1):
                killed.append(kill_another(killed))

    request = DatasetRequest(str(work / "data/*.parquet"), str(work / "answers"), "model")
    with connected(None, workers=WORKERS):
        answer_dataset(predictor, request, workers=WORKERS, watch=kill)
    return killed


def differences(predictor: Predictor, work: Path) -> tuple[int, int]:
    """Return the number of answered rows, and of those whose key or answer is wrong."""
    rows = wrong = 0
    for path in sorted(work.glob("answers/*.parquet")):
        found = parquet.read_table(path).to_pylist()
        for place, row in enumerate(found):
            key = (row["id"], row["source_file"], row["source_row"], row["error"])
            wrong += key != (rows + place, path.name, place, None)
        for start in range(0, len(found), 1000):
            part = found[start : start + 1000]
            answers = predictor.predict([row["text"] for row in part])
            for row, answer in zip(part, answers, strict=True):
                near = abs(row["probability"] - answer.probabilities[answer.best]) < 1e-4
                wrong += row["label"] != answer.label or not near
        rows += len(found)
    return rows, wrong


def main(model: str, work: str, rows: str = "1000000") -> None:
    """Print what was found; a wrong or missing row is exit code 1."""
    predictor = load(model)
    killed = answer_with_kills(predictor, Path(work), int(rows))
    found, wrong = differences(predictor, Path(work))
    print(
        f"{found:,} of {int(rows):,} rows answered, {wrong:,} wrong, {len(killed)} workers killed"
    )
    sys.exit(wrong > 0 or found != int(rows) or len(killed) != KILLS)


if __name__ == "__main__":
    main(*islice(sys.argv, 1, 4))
