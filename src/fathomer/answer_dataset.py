"""Answers for many files on Ray: one parquet file of answers per file of texts.

Ray's tasks read the files in chunks, and its actors answer a chunk and write it as a part of the answers,
under a name that follows from its file and first row. A chunk that is answered twice, because a worker was
killed, is therefore written once. When all parts of a file are there, they are joined in their order.
"""

import io
import json
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from fathomer.data.file_store import absolute, folder_of
from fathomer.data.tables import TextTables, find_tables
from fathomer.dataset import (
    BATCH_TEXTS,
    AnswerWorker,
    TableOptions,
    answer_table,
    worker_arguments,
)
from fathomer.errors import ConfigError, DataError
from fathomer.files import parse_json

if TYPE_CHECKING:
    from fathomer.predictor import Predictor

NOTES, PARTS = "_run.json", "_parts"
"""Names that begin with an underscore are ignored by readers of a folder of parquet files."""
BLOCK_BYTES = 1 << 20
"""Size of Ray's blocks: small, so that a single large file keeps all workers busy."""
WORKERS_PER_READER = 32
SOURCE_FILE, SOURCE_ROW = "source_file", "source_row"


@dataclass(frozen=True)
class DatasetRequest:
    """Files to answer, the folder for the answers, and the options of the predictions."""

    pattern: str
    out: str
    model: str
    """Checksum of the model; a run cannot be continued with a different one."""
    options: TableOptions = field(default_factory=TableOptions)
    encoding: str = "utf-8"

    def settings(self) -> dict[str, Any]:
        """Return everything that must stay the same when a run is continued."""
        given = {"files": self.pattern, "model": self.model, "encoding": self.encoding}
        return given | asdict(self.options)


class ChunkAnswered(NamedTuple):
    """A part of the answers that a worker has written."""

    file: str
    first: int
    rows: int
    errors: int
    last: bool
    problem: str
    """Why the rest of the file could not be read, or nothing."""


@dataclass
class FileProgress:
    """The parts of a file's answers so far, by first row."""

    parts: dict[int, int] = field(default_factory=dict)
    end: int = -1

    def add(self, chunk: ChunkAnswered) -> bool:
        """Add a part; return whether all parts are there."""
        self.parts[chunk.first] = chunk.rows
        if chunk.last:
            self.end = chunk.first + chunk.rows
        return sum(self.parts.values()) == self.end


class DatasetSummary(NamedTuple):
    """What a run has answered."""

    files: int
    rows: int
    errors: int
    skipped: int
    """Files that were answered before."""


Watch = Callable[[Iterable[ChunkAnswered]], Iterable[ChunkAnswered]]


def answer_dataset(
    predictor: "Predictor",
    request: DatasetRequest,
    *,
    workers: int,
    watch: Watch = iter,
) -> DatasetSummary:
    """Answer all files that have no answers yet; Ray must have been initialised."""
    import ray

    tables = check_request(request)
    out, address = folder_of(request.out), absolute(request.out)
    out.delete(PARTS)
    out.write(NOTES, json.dumps(request.settings()).encode())
    files = {name: path for name, path in tables.files.items() if not out.exists(name)}
    progress = {name: FileProgress() for name in files}
    rows, errors, failed = 0, 0, {}
    joining: list[Any] = []
    answered = _answered(predictor, tables, files, request, workers)
    with closing(answered):  # stops Ray's execution, whatever happens
        for chunk in watch(answered):
            rows, errors = rows + chunk.rows, errors + chunk.errors
            if chunk.problem:
                failed[files[chunk.file]] = chunk.problem
            elif progress[chunk.file].add(chunk):
                if len(joining) >= _helpers(workers):
                    joined, joining = ray.wait(joining, num_returns=1)
                    ray.get(joined)
                joining.append(_join_remotely(address, chunk.file, progress[chunk.file]))
    ray.get(joining)
    out.delete(PARTS)
    if failed:
        path, problem = next(iter(failed.items()))
        done = f"the other {len(files) - len(failed)} files are answered"
        raise DataError(f"{path}: {problem}; {done}, the same command continues with the rest")
    return DatasetSummary(len(files), rows, errors, len(tables.files) - len(files))


def check_request(request: DatasetRequest) -> TextTables:
    """Return the files of a request; raise an error if they, or its folder, cannot be used."""
    tables = find_tables(request.pattern, request.options.text_column, request.encoding)
    request.options.added([*tables.names, SOURCE_FILE, SOURCE_ROW])
    out = folder_of(request.out)
    try:
        before = dict(parse_json(out.read(NOTES))) if out.exists(NOTES) else None
    except (TypeError, ValueError):
        raise ConfigError(f"{request.out}: {NOTES} is damaged; choose another folder") from None
    if before is None and out.names():
        raise ConfigError(f"{request.out}: holds other files; choose an empty or a new folder")
    for name, value in request.settings().items():
        if before is not None and before.get(name) != value:
            raise ConfigError(
                f"{request.out}: holds answers made with {name} = {before.get(name)!r:.100}, now it is "
                f"{value!r}; choose another folder"
            )
    return tables


def _answered(
    predictor: "Predictor",
    tables: TextTables,
    files: dict[str, str],
    request: DatasetRequest,
    workers: int,
) -> Generator[ChunkAnswered, None, None]:
    """Answer files on Ray, and yield a record of each part that was written, in any order."""
    import ray
    from ray.data import ActorPoolStrategy, DataContext, TaskPoolStrategy

    from fathomer.predictor import load  # here, so that reading and joining need not import PyTorch

    if not files:
        return
    context = DataContext.get_current()
    context.target_max_block_size = BLOCK_BYTES
    context.enable_progress_bars = False
    items = [{"file": name, "path": path} for name, path in files.items()]
    arguments = worker_arguments(predictor, load, request.options)
    arguments["fn_constructor_kwargs"]["out"] = absolute(request.out)
    chunks = ray.data.from_items(items, override_num_blocks=len(items)).map_batches(
        _read_chunks,  # type: ignore[arg-type]
        batch_size=1,
        fn_kwargs={"tables": tables},
        num_cpus=0,  # reading takes little time compared with answering
        compute=TaskPoolStrategy(size=_helpers(workers)),
    )
    parts = chunks.map_batches(
        PartWorker,
        compute=ActorPoolStrategy(size=workers),
        batch_size=1,
        num_cpus=1,
        **arguments,
    )
    batches: Any = iter(
        parts.iter_batches(batch_size=None, batch_format="pyarrow", prefetch_batches=0)
    )
    with closing(batches):
        for batch in batches:
            for row in batch.to_pylist():
                yield ChunkAnswered(**row)


def _read_chunks(batch: dict[str, Any], tables: TextTables) -> Iterator[dict[str, Any]]:
    """Read a file as chunks of rows, each as the bytes of an Arrow table."""
    name, path, first = str(batch["file"][0]), str(batch["path"][0]), 0
    chunk = None
    problem = ""
    try:
        for table, errors in tables.read(path, rows=BATCH_TEXTS):
            if chunk is not None:
                yield chunk
                first += chunk["rows"][0]
            chunk = _chunk(name, first, table, errors)
    except DataError as error:
        problem = str(error)
    if chunk is None:
        chunk = _chunk(name, 0, tables.empty(), [])
    yield {**chunk, "last": [True], "problem": [problem]}


def _chunk(name: str, first: int, table: Any, errors: list[str | None]) -> dict[str, Any]:
    import pyarrow

    rows = pyarrow.array(range(first, first + len(table)), type=pyarrow.int64())
    files = pyarrow.array([name] * len(table), type=pyarrow.string())
    table = table.append_column(SOURCE_FILE, files).append_column(SOURCE_ROW, rows)
    content = io.BytesIO()
    with pyarrow.ipc.new_stream(content, table.schema) as stream:
        stream.write_table(table)
    return {
        "file": [name],
        "first": [first],
        "rows": [len(table)],
        "data": [content.getvalue()],
        "errors": [json.dumps(errors)],
        "last": [False],
        "problem": [""],
    }


class PartWorker(AnswerWorker):
    """A worker that writes its answers as parts of files."""

    def __init__(self, *, out: str, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.out = folder_of(out)

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        """Answer one chunk, write it, and return a record of it."""
        import pyarrow

        chunk = {name: values[0] for name, values in batch.items()}
        with pyarrow.ipc.open_stream(chunk["data"]) as stream:
            table = stream.read_all()
        answers = answer_table(self.predictor, table, self.options, json.loads(chunk["errors"]))
        name = _part(str(chunk["file"]), int(chunk["first"]))
        self.out.write_tables(name, answers.schema, [answers])
        failed = len(answers) - answers.column(answers.column_names[-1]).null_count
        return {
            **{name: [chunk[name]] for name in ("file", "first", "rows", "last", "problem")},
            "errors": [failed],
        }


def _helpers(workers: int) -> int:
    """Return how many tasks read at a time, and how many join: every one is a process to start."""
    return 1 + workers // WORKERS_PER_READER


def _part(file: str, first: int) -> str:
    return f"{PARTS}/{file}/{first:012}.parquet"


def _join_remotely(out: str, file: str, progress: FileProgress) -> Any:
    import ray

    parts = [_part(file, first) for first in sorted(progress.parts)]
    return ray.remote(join_parts).options(num_cpus=0).remote(out, file, parts)


def join_parts(out: str, file: str, parts: list[str]) -> None:
    """Join the parts of a file's answers, in their order."""
    folder = folder_of(out)
    schema = folder.common_schema(parts)
    folder.write_tables(file, schema, (folder.read_table(part) for part in parts))
    for part in parts:
        folder.delete(part)
