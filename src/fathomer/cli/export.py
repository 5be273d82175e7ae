"""The command ``fathomer export``."""

from pathlib import Path
from typing import Annotated

import typer

from fathomer.cli.options import Folder, Json
from fathomer.cli.output import print_json, print_line


def export(
    folder: Folder,
    out: Annotated[Path, typer.Option(metavar="FILE", help="ONNX file to write.")],
    as_json: Json = False,
) -> None:
    """Write a model as an ONNX file, after comparing its answers with the predictor's.

    Example: fathomer export model --out model.onnx
    """
    from fathomer.export import export
    from fathomer.files import check_writable
    from fathomer.predictor import load

    check_writable(out)
    predictor = load(folder)
    done = export(predictor, out)
    if as_json:
        print_json({"out": str(out), "labels": list(predictor.labels), **done._asdict()})
        return
    print_line(f"{out}: {done.bytes / 1e6:.1f} MB, operators of opset {done.opset}")
    print_line(f"depth {done.depth}")
    print_line(
        f"compared with the predictor: {done.texts} texts in {done.batches} batches, "
        f"largest difference {done.largest_difference:.1g}"
    )
