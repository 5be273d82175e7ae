"""The benchmark of answering on Ray: measured times of several workers against a cost model.

The model: a run takes the time to start, and then the texts divided by the speed of one worker times the
number of workers that have a core of their own. docs/scale.md explains it.
"""

import os
import signal
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import psutil
import torch

from benchmarks.machine import describe_machine
from fathomer.answer_dataset import ChunkAnswered, DatasetRequest, answer_dataset
from fathomer.answer_file import AnswerRequest, answer_file
from fathomer.data.demo import demo_corpus
from fathomer.data.reading import ReadOptions, read_rows
from fathomer.errors import DataError
from fathomer.predictor import Predictor
from fathomer.ray_cluster import connected

FILES = 20


class ScaleRow(NamedTuple):
    """A run with some workers."""

    workers: int
    start_seconds: float
    """Until the first chunk was answered."""
    seconds: float
    """From then to the end."""
    texts_per_second: float
    """After the start."""
    predicted_seconds: float
    memory_mb: tuple[float, float]
    """Largest memory of a worker, after a quarter of the run and at its end."""
    killed: int
    """Workers that were killed during the run."""


def predict_seconds(texts: int, *, speed: float, workers: int, cores: int) -> float:
    """Return the time of a run after its start, by the cost model.

    >>> predict_seconds(200_000, speed=1000.0, workers=4, cores=2)
    100.0
    """
    return texts / (speed * min(workers, cores))


def measure_scale(
    predictor: Predictor,
    *,
    texts: int,
    workers: Sequence[int],
    kills: int = 0,
    report: Callable[[str], None],
) -> dict[str, Any]:
    """Answer the same files plainly and with each number of workers, and compare the answers.

    ``kills`` is the number of workers to kill during each run.
    """
    cores, rows, speed = os.cpu_count() or 1, [], 0.0
    with TemporaryDirectory() as temporary:
        work = Path(temporary)
        _write_files(work, texts)
        report("plain")
        plain = _plain_seconds(predictor, work)
        for number in workers:
            report(f"workers: {number}")
            start, seconds, counted, memory, killed = _timed(predictor, work, number, kills)
            check_answers(work / "all-answers.csv", work / f"answers-{number}")
            found = counted / seconds
            speed = speed or found / min(number, cores)
            predicted = predict_seconds(counted, speed=speed, workers=number, cores=cores)
            rows.append(ScaleRow(number, start, seconds, found, predicted, memory, killed))
    return {
        "texts": texts,
        "plain_texts_per_second": round(texts / plain, 1),
        "overhead": round(texts / plain / speed - 1, 3),
        "rows": [row._asdict() for row in rows],
        "machine": describe_machine(),
    }


def _write_files(work: Path, texts: int) -> None:
    """Write the texts of the demo, repeated, as parquet files and as one csv file."""
    import pyarrow
    from pyarrow import parquet

    demo = list(demo_corpus()[0].texts)
    (work / "data").mkdir()
    with (work / "all.csv").open("w", encoding="utf-8") as file:
        file.write("id,text\n")
        for number in range(FILES):
            ids = range(number * texts // FILES, (number + 1) * texts // FILES)
            drawn = [demo[each % len(demo)] for each in ids]
            table = pyarrow.table({"id": list(ids), "text": drawn})
            parquet.write_table(table, work / "data" / f"{number:02}.parquet")
            quoted = (text.replace('"', '""') for text in drawn)
            file.writelines(f'{n},"{text}"\n' for n, text in zip(ids, quoted, strict=True))


def _plain_seconds(predictor: Predictor, work: Path) -> float:
    """Answer the csv file as ``predict --out`` does, with one thread."""
    torch.set_num_threads(1)
    request = AnswerRequest(work / "all.csv", work / "all-answers.csv", "model")
    began = time.perf_counter()
    answer_file(predictor, read_rows(request.path, ReadOptions("text", None, "utf-8")), request)
    return time.perf_counter() - began


def check_answers(plain: Path, folder: Path) -> None:
    """Raise an error unless every row of ``plain`` has exactly one answer in ``folder``, the same."""
    from pyarrow import csv, parquet

    expected = csv.read_csv(plain).select(["id", "label"]).sort_by("id")
    found = parquet.read_table(folder).select(["id", "label"]).sort_by("id")
    if not found.equals(expected):
        raise DataError(f"the answers of {folder.name} differ from those of the plain path")


def _timed(
    predictor: Predictor, work: Path, workers: int, kills: int
) -> tuple[float, float, int, tuple[float, float], int]:
    """Time a run: return the seconds until the first chunk is answered, those after it and their texts.

    Then the memory of a worker and the number of killed workers.
    """
    request = DatasetRequest(f"{work}/data/*.parquet", f"{work}/answers-{workers}", "model")
    times, rows, memory, killed = [], [], [], set[int]()

    def watch(chunks: Iterable[ChunkAnswered]) -> Iterator[ChunkAnswered]:
        for chunk in chunks:
            times.append(time.perf_counter())
            rows.append(chunk.rows)
            memory.append(_worker_memory() if len(times) % 5 == 0 else 0.0)
            yield chunk
            if len(killed) < kills:
                killed.update(_kill_another(killed))

    began = time.perf_counter()
    with connected(None, workers=workers):
        answer_dataset(predictor, request, workers=workers, watch=watch)
    quarter = max(memory[: len(memory) // 4 + 1])
    start, seconds = times[0] - began, times[-1] - times[0]
    return start, seconds, sum(rows[1:]), (quarter, max(memory[-11:])), len(killed)


def answering_processes() -> Iterator[psutil.Process]:
    """Return the processes of Ray's workers on this machine that answer at the moment."""
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):  # it may just have ended
            if "PartWorker" in "".join(process.cmdline()):
                yield process


def _kill_another(killed: Collection[int]) -> list[int]:
    """Kill a worker that was not killed before, if one answers; return its process id."""
    for process in answering_processes():
        if process.pid not in killed:
            os.kill(process.pid, signal.SIGKILL)
            return [process.pid]
    return []


def _worker_memory() -> float:
    """Return the memory of the largest worker in megabytes."""
    found = [0.0]
    for process in answering_processes():
        with suppress(psutil.Error):
            found.append(process.memory_info().rss / 1e6)
    return round(max(found), 1)
