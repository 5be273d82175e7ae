"""The command ``fathomer predict --engine ray``: many files, answered by several workers."""

import os
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from fathomer.cli.output import messages_console, open_model
from fathomer.errors import ConfigError, DepthError, require

if TYPE_CHECKING:
    from fathomer.dataset import TableOptions


def predict_on_ray(
    folder: Path,
    pattern: str,
    out: str | None,
    options: "TableOptions",
    address: str | None,
    workers: int | None,
    precision: str,
    encoding: str,
) -> None:
    """Answer the files that match a pattern, and print how many rows were answered."""
    for package in ("ray", "pyarrow"):
        require(package, "scale")
    from fathomer.answer_dataset import DatasetRequest, answer_dataset, check_request
    from fathomer.artifact import CONFIG
    from fathomer.cli.progress import show_chunks
    from fathomer.files import sha256_of
    from fathomer.locks import locked
    from fathomer.ray_cluster import connected

    if out is None:
        raise ConfigError("--engine ray needs a folder for the answers: name it with --out")
    if Path(out).is_file():
        raise ConfigError(f"{out}: is a file; --engine ray needs a folder")
    predictor = open_model(folder, precision, "cpu")
    if options.depths and not predictor.knows_depth:
        raise DepthError(f"{folder}: words have no depth in this model; leave --depths out")
    model = f"{sha256_of(folder / CONFIG)} {precision}"
    request = DatasetRequest(pattern, out, model, options, encoding)
    check_request(request)  # mistakes are found before Ray is started
    messages = messages_console()
    watch = partial(show_chunks, console=messages)
    count = workers or os.cpu_count() or 1
    is_local = "://" not in out  # other stores have no locks
    try:
        with (
            locked(Path(out)) if is_local else nullcontext(),
            connected(address, workers=count),
        ):
            done = answer_dataset(predictor, request, workers=count, watch=watch)
    except KeyboardInterrupt:
        messages.print(
            f"Stopped: {out} holds the answers to complete files; the same command continues."
        )
        raise typer.Exit(130) from None
    if done.skipped:
        messages.print(f"{done.skipped:,} files had been answered before")
    failed = f", {done.errors:,} of them with an error" if done.errors else ""
    messages.print(f"{out}: {done.rows:,} rows of {done.files:,} files answered{failed}")
