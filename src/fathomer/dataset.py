"""Answers for tables of texts: an Arrow table, or a Ray dataset answered by several workers.

Every worker is an actor that holds a copy of the model. The model travels as the bytes of its files, so
the machines of a cluster need no common folder for it.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from fathomer.data.examples import SEPARATOR
from fathomer.errors import DataError, require

if TYPE_CHECKING:
    from fathomer.prediction import Prediction
    from fathomer.predictor import Predictor

BATCH_TEXTS = 4000
"""Rows that a worker gets at a time; the predictor divides them into batches by words."""

Load = Callable[..., "Predictor"]


@dataclass(frozen=True)
class TableOptions:
    """Where the texts of a table are, and how they are answered."""

    text_column: str = "text"
    depths: bool = False
    max_depth: int | None = None
    abstain_below: float = 0.0
    depth_budget: float | None = None

    def added(self, names: Iterable[str]) -> list[str]:
        """Return the names of the new columns of a table that has these columns already."""
        columns = ["label", "probability", *["mean_depth"] * self.depths, "error"]
        return [free_name(name, names) for name in columns]


def free_name(name: str, names: Iterable[str]) -> str:
    """Return ``name``, or a prefixed one if there is such a column already.

    >>> free_name("label", ["id", "Label"])
    'predicted_label'
    """
    taken = {each.strip().casefold() for each in names}
    for choice in (name, f"predicted_{name}"):
        if choice not in taken:
            return choice
    raise DataError(f"the columns {name!r} and 'predicted_{name}' both exist already; rename one")


def label_and_probability(prediction: "Prediction") -> tuple[str | None, float]:
    """Return the label and its probability; several labels are joined as in a training file."""
    labels = prediction.labels
    label = prediction.label if labels is None else SEPARATOR.join(labels)
    return label, round(prediction.probabilities[prediction.best], 6)


def answer_table(
    predictor: "Predictor",
    table: Any,
    options: TableOptions,
    errors: Sequence[str | None] | None = None,
) -> Any:
    """Return an Arrow table with an answer for every row; a row without a text gets an error.

    ``errors`` are those found in the rows before, such as a line that could not be parsed.
    """
    import pyarrow

    texts = _texts(table, options.text_column)
    problems = [
        error or (None if isinstance(text, str) else _problem(text))
        for text, error in zip(texts, errors or [None] * len(texts), strict=True)
    ]
    good = [text for text, problem in zip(texts, problems, strict=True) if problem is None]
    found = iter(
        predictor.predict(
            good,
            max_depth=options.max_depth,
            depth_budget=options.depth_budget,
            abstain_below=options.abstain_below,
        )
    )
    answers = [_answer(None if problem else next(found), problem, options) for problem in problems]
    kinds = {"probability": pyarrow.float64(), "mean_depth": pyarrow.float64()}
    names = ["label", "probability", *["mean_depth"] * options.depths, "error"]
    for position, (name, free) in enumerate(
        zip(names, options.added(table.column_names), strict=True)
    ):
        column = [answer[position] for answer in answers]
        kind = kinds.get(name, pyarrow.string())
        table = table.append_column(free, pyarrow.array(column, type=kind))
    return table


def _texts(table: Any, column: str) -> list[Any]:
    if column not in table.column_names:
        raise DataError(f"no column {column!r}; the columns are {', '.join(table.column_names)}")
    found: list[Any] = table.column(column).to_pylist()
    return found


def _problem(text: Any) -> str:
    return "no text" if text is None else f"a {type(text).__name__} where a text was expected"


def _answer(
    prediction: "Prediction | None", problem: str | None, options: TableOptions
) -> tuple[str | float | None, ...]:
    """Return the values of the new columns of a row."""
    if prediction is None:
        return (None, None, *[None] * options.depths, problem)
    depths: tuple[float | None, ...] = ()
    if options.depths:  # otherwise the words of the prediction need not be made
        depth = prediction.mean_depth
        depths = (None if depth is None else round(depth, 4),)
    return (*label_and_probability(prediction), *depths, None)


class AnswerWorker:
    """A worker of a Ray dataset: tables in, tables with answers out."""

    def __init__(self, model: Any, load: Load, precision: str, options: TableOptions) -> None:
        import ray

        with TemporaryDirectory() as folder:
            for name, content in ray.get(model).items():
                (Path(folder) / name).write_bytes(content)
            self.predictor = load(folder, precision=precision)
        self.options = options

    def __call__(self, table: Any) -> Any:
        """Answer the rows of a table."""
        return answer_table(self.predictor, table, self.options)


def worker_arguments(predictor: "Predictor", load: Load, options: TableOptions) -> dict[str, Any]:
    """Return what :class:`AnswerWorker` is created with; the model is stored once in the cluster."""
    import ray

    model = ray.put(predictor.artifact.to_files())
    arguments = {"model": model, "load": load, "precision": predictor.precision}
    return {"fn_constructor_kwargs": {**arguments, "options": options}}


def map_dataset(
    predictor: "Predictor", dataset: Any, load: Load, options: TableOptions, workers: int | None
) -> Any:
    """Return a Ray dataset with the answers to another one; nothing runs before it is read."""
    ray = require("ray", "scale")
    from ray.data import ActorPoolStrategy

    cores = max(1, int(ray.cluster_resources().get("CPU", 1)))
    pool = (
        ActorPoolStrategy(size=workers)
        if workers
        else ActorPoolStrategy(min_size=1, max_size=cores)
    )
    return dataset.map_batches(
        AnswerWorker,
        compute=pool,
        batch_size=BATCH_TEXTS,
        batch_format="pyarrow",
        num_cpus=1,
        **worker_arguments(predictor, load, options),
    )
