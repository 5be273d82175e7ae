"""Many files on Ray: every row is answered once, whatever happens to the workers."""

import json
import os
import signal
import socket
import time
from dataclasses import replace

import pytest

from benchmarks.scale import answering_processes
from fathomer.answer_dataset import (
    ChunkAnswered,
    DatasetRequest,
    FileProgress,
    answer_dataset,
    check_request,
)
from fathomer.dataset import TableOptions
from fathomer.errors import ConfigError, DataError
from fathomer.predictor import Predictor
from fathomer.ray_cluster import connected
from tests.tiny import tiny_artifact, tiny_examples

pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
parquet = pytest.importorskip("pyarrow.parquet")

# Ray warns about its own code.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")


@pytest.fixture
def predictor():
    return Predictor(tiny_artifact())


@pytest.fixture
def work(tmp_path, monkeypatch):
    """An empty folder with a folder of data in it, to run commands in."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    return tmp_path


def write_parquet(work, files, rows):
    """Write files of texts with an id; return the texts by id."""
    texts = [f"{text} {n}" for n, text in enumerate(tiny_examples(files * rows).texts)]
    for file in range(files):
        ids = range(file * rows, (file + 1) * rows)
        table = pyarrow.table({"id": list(ids), "text": [texts[n] for n in ids]})
        parquet.write_table(table, work / f"data/{file:02}.parquet", row_group_size=700)
    return texts


def request(pattern="data/*", out="answers", **options):
    return DatasetRequest(pattern, out, "model", TableOptions(**options))


def kill_another(killed):
    """Kill a process that answers and was not killed before; return its id."""
    deadline = time.monotonic() + 300  # on a busy machine, Ray takes long to start another
    while not (alive := {process.pid for process in answering_processes()} - {*killed}):
        assert time.monotonic() < deadline, "no process answers"
        time.sleep(0.05)
    os.kill(chosen := min(alive), signal.SIGKILL)
    return chosen


def test_every_row_is_answered_once_although_workers_are_killed(ray, work, predictor):
    texts = write_parquet(work, files=2, rows=5000)  # two chunks each
    killed = []

    def kill_two(chunks):
        for chunk in chunks:
            yield chunk
            if len(killed) < 2:
                killed.append(kill_another(killed))

    done = answer_dataset(predictor, request(), workers=2, watch=kill_two)
    assert len(killed) == 2
    assert done.files == 2
    found = parquet.read_table("answers")
    assert found["id"].to_pylist() == list(range(len(texts)))
    assert found["source_row"].to_pylist() == [*range(5000)] * 2
    expected = [answer.label for answer in predictor.predict(texts)]
    assert found["label"].to_pylist() == expected
    names = sorted(path.name for path in (work / "answers").iterdir())
    assert names == ["00.parquet", "01.parquet", "_run.json"]


def test_a_stopped_run_goes_on_with_the_files_that_are_left(ray, work, predictor):
    write_parquet(work, files=3, rows=1500)

    def stop(chunks):
        seen = set()
        for chunk in chunks:
            yield chunk
            seen |= {chunk.file} if chunk.last else set()
            if len(seen) == 2:
                time.sleep(1)
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        answer_dataset(predictor, request(), workers=1, watch=stop)
    before = {path.name: path.stat().st_mtime_ns for path in work.glob("answers/*.parquet")}
    done = answer_dataset(predictor, request(), workers=1)
    assert done.skipped == len(before) < 3
    assert all((work / "answers" / name).stat().st_mtime_ns == before[name] for name in before)
    assert parquet.read_table("answers").num_rows == 4500


def test_bad_rows_of_csv_and_jsonl_are_answers_with_an_error(ray, work, predictor):
    (work / "data/a.csv").write_text('text,n\n"a good,\nfilm",1\nbad,2,3\n\nfine,4\n')
    lines = ['{"text": "good", "n": [1]}', "{broken", '{"n": 2}', '{"text": "bad", "more": "x"}']
    (work / "data/b.jsonl").write_text("\n".join(lines))
    done = answer_dataset(predictor, request(), workers=1)
    assert (done.files, done.rows, done.errors) == (2, 7, 3)
    found = parquet.read_table("answers/a.csv.parquet")
    assert found["error"].to_pylist() == [None, "line 4: 3 columns, expected 2", None]
    assert found["text"].to_pylist() == ["a good,\nfilm", "bad", "fine"]
    found = parquet.read_table("answers/b.jsonl.parquet")
    errors = found["error"].to_pylist()
    assert errors[1].startswith("line 2: not valid JSON")
    assert (errors[0], errors[2:]) == (None, ["no text", None])
    assert found["n"].to_pylist() == ["[1]", None, "2", None]


def test_an_empty_file_has_empty_answers_and_a_broken_one_loses_no_other(ray, work, predictor):
    write_parquet(work, files=2, rows=2100)
    empty = parquet.read_table("data/00.parquet").slice(0, 0)
    parquet.write_table(empty, "data/02.parquet")
    content = bytearray((work / "data/01.parquet").read_bytes())
    content[20:2000] = bytes(1980)  # the first pages, not the footer
    (work / "data/01.parquet").write_bytes(content)
    with pytest.raises(DataError, match=r"01.parquet: cannot be read .*; the other 2 files are"):
        answer_dataset(predictor, request(), workers=1)
    assert parquet.read_table("answers/00.parquet").num_rows == 2100
    assert parquet.read_table("answers/02.parquet").num_rows == 0
    assert not (work / "answers/01.parquet").exists()


def test_a_folder_with_other_answers_is_refused(ray, work, predictor):
    write_parquet(work, files=1, rows=10)
    answer_dataset(predictor, request(), workers=1, watch=lambda _: [])  # stops before any answer
    with pytest.raises(ConfigError, match="holds answers made with max_depth = None, now it is 2"):
        answer_dataset(predictor, request(max_depth=2), workers=1)
    with pytest.raises(ConfigError, match="made with encoding = 'utf-8', now it is 'latin-1'"):
        check_request(replace(request(), encoding="latin-1"))
    with pytest.raises(ConfigError, match="data: holds other files; choose an empty"):
        check_request(request(out="data"))
    assert json.loads((work / "answers/_run.json").read_text())["files"] == "data/*"
    for content in ("{", "[1]", "[" * 100_000):
        (work / "answers/_run.json").write_text(content)
        with pytest.raises(ConfigError, match=r"answers: _run.json is damaged"):
            check_request(request())


def test_a_file_is_complete_when_all_rows_up_to_its_last_part_are_there():
    progress = FileProgress()
    parts = [(0, 5, False), (8, 2, True), (0, 5, False), (5, 3, False)]
    found = [progress.add(ChunkAnswered("a", *part[:2], 0, part[2], "")) for part in parts]
    assert found == [False, False, False, True]


def test_an_address_without_a_cluster_is_an_error():
    pytest.importorskip("ray", reason="ray is not installed: pip install 'fathomer[scale]'")
    problem = "--address 127.0.0.1:1: there is no Ray cluster"
    with pytest.raises(ConfigError, match=problem), connected("127.0.0.1:1", workers=1):
        pass


def test_a_cluster_that_wants_a_token_is_not_said_to_be_missing(monkeypatch):
    ray = pytest.importorskip("ray", reason="ray is not installed: pip install 'fathomer[scale]'")

    def connect_to(address, error):
        def fail(*_, **__):
            raise error

        monkeypatch.setattr(ray, "init", fail)
        with pytest.raises(ConfigError) as caught, connected(address, workers=1):
            pass
        return str(caught.value)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = f"127.0.0.1:{listening.getsockname()[1]}"
        refused = connect_to(address, ConnectionError("Failed to connect"))
    assert refused.startswith(
        f"--address {address}: no Ray cluster answers; one that wants a token"
    )
    missing = ray.exceptions.AuthenticationError("No token was found.\nMore lines.")
    assert connect_to("auto", missing) == "--address auto: No token was found."
    assert "there is no Ray cluster" in connect_to("auto", ConnectionError("none"))
