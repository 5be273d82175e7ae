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
    """Export a model to ONNX, verified against the predictor.

    Example: fathomer export model --out model.onnx
    """
    from fathomer.export import export
    from fathomer.files import check_writable
    from fathomer.predictor import load

    check_writable(out)
    predictor = load(folder)
    exported = export(predictor, out)
    if as_json:
        print_json({"out": str(out), "labels": list(predictor.labels), **exported._asdict()})
        return
    print_line(f"{out}: {exported.bytes / 1e6:.1f} MB, ONNX opset {exported.opset}")
    print_line(exported.depth)
    print_line(
        f"compared with the predictor: {exported.texts} texts in {exported.batches} batches, "
        f"largest difference {exported.largest_difference:.1g}"
    )
