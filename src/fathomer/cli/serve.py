"""The command ``fathomer serve``."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fathomer.cli.options import Folder, Precision
from fathomer.cli.output import open_model
from fathomer.errors import ConfigError, MissingFileError, require

if TYPE_CHECKING:
    from fathomer.predictor import Predictor

LOOPBACK = ("127.0.0.1", "localhost", "::1")


def serve(
    folder: Folder,
    host: Annotated[str, typer.Option(metavar="H", help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(metavar="P", min=0, max=65535, help="Port; 0 picks a free one.")
    ] = 8000,
    limit: Annotated[
        list[str] | None, typer.Option(metavar="NAME=N", help="Change a limit (docs/serving.md).")
    ] = None,
    token_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Require the token in this file.")
    ] = None,
    allowed_host: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Also accept requests for this host name."),
    ] = None,
    precision: Precision = "float32",
    workers: Annotated[
        int,
        typer.Option(
            metavar="N", min=1, max=64, help="Worker processes, each with a copy of the model."
        ),
    ] = 1,
    threads: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Threads per copy of the model; default: all cores but one, or an equal share.",
        ),
    ] = None,
) -> None:
    """Serve a model over HTTP, with a web page at /.

    Example: fathomer serve model --port 8000 --limit queue_words=50000
    """
    for package in ("fastapi", "uvicorn", "httptools", "prometheus_client"):
        require(package, "serve")
    import torch

    from fathomer.artifact import CONFIG
    from fathomer.files import sha256_of
    from fathomer.serve.limits import Limits, model_threads
    from fathomer.serve.routes import create_app
    from fathomer.serve.server import run
    from fathomer.serve.worker import start_workers

    threads = threads or model_threads(workers)
    torch.set_num_threads(threads)
    limits = Limits.from_assignments(limit or [])
    token = _read_token(token_file) if token_file else None
    check_hosts = allowed_host or (host in LOOPBACK and not token)
    hosts = [name.lower() for name in allowed_host or ()] if check_hosts else None
    config = folder / CONFIG
    digest = sha256_of(config) if config.is_file() else ""  # before loading: workers compare it
    predictor = open_model(folder, precision, "cpu")

    def announce(address: str) -> None:
        typer.echo(f"serving {folder} at {address}", err=True)

    number = workers if workers > 1 else 0  # a single copy runs in this process
    with start_workers(
        predictor,
        folder,
        digest,
        number=number,
        precision=precision,
        threads=threads,
        deadline=limits.deadline_seconds,
    ) as started:
        copies: list["Predictor"] = [*started] or [predictor]
        for copy in copies:
            copy.warm_up()
        app = create_app(predictor, workers=started, limits=limits, token=token, hosts=hosts)
        run(app, limits=limits, host=host, port=port, announce=announce)


def _read_token(path: Path) -> str:
    if not path.is_file():
        raise MissingFileError(f"{path}: no such file")
    token = path.read_text(encoding="utf-8", errors="replace").strip()
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise ConfigError(f"{path}: expected a token of printable ASCII characters, without spaces")
    return token
