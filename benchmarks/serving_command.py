"""The command ``fathomer bench serve``."""

from typing import Annotated

import typer

from fathomer.cli.options import Folder, Json
from fathomer.cli.output import messages_console, print_json, print_line


def bench_serve(
    folder: Folder,
    connections: Annotated[int, typer.Option(min=1, max=500, help="Clients at a time.")] = 32,
    texts_per_request: Annotated[int, typer.Option(min=1, max=256, help="Texts of each.")] = 8,
    workers: Annotated[
        int, typer.Option(min=1, max=64, help="Workers of the service (see serve).")
    ] = 1,
    seconds: Annotated[float, typer.Option(min=0.1, help="Length of most phases.")] = 10.0,
    overload_seconds: Annotated[
        float, typer.Option(min=0, help="Length of the phase at twice the saturation rate.")
    ] = 60.0,
    hostile_seconds: Annotated[
        float, typer.Option(min=0, help="Length of a phase with hostile clients.")
    ] = 0.0,
    as_json: Json = False,
) -> None:
    """Measure a service of this model on this machine, beside the predictor alone.

    Example: fathomer bench serve model --texts-per-request 8
    """
    from benchmarks.serving import bench_serve as measure

    messages = messages_console()
    found = measure(
        folder,
        connections=connections,
        texts_per_request=texts_per_request,
        workers=workers,
        seconds=seconds,
        overload_seconds=overload_seconds,
        hostile_seconds=hostile_seconds,
        tell=messages.print,
    )
    if as_json:
        print_json(found)
        return
    for name, values in found.items():
        lines = values.items() if isinstance(values, dict) else [("", values)]
        for key, value in lines:
            print_line(f"{name:<18}  {key:<24}  {value}")
