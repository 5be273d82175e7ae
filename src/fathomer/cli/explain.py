"""The command ``fathomer explain``."""

import os
from typing import Annotated

import typer

from fathomer.cli.options import DepthBudget, Folder, Html, Json, MaxDepth
from fathomer.cli.output import messages_console, print_json


def explain(
    folder: Folder,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The text to classify.")],
    html: Html = None,
    max_depth: MaxDepth = None,
    depth_budget: DepthBudget = None,
    as_json: Json = False,
) -> None:
    """Classify one text and show what each word contributed, and how deep it was read.

    Example: fathomer explain model "not bad at all" --html words.html
    """
    from rich.console import Console

    from fathomer.explain import draw_prediction, prediction_page
    from fathomer.files import write_atomically
    from fathomer.predictor import load

    predictor = load(folder)
    shown_depth = predictor.max_depth if predictor.knows_depth else None
    text = os.fsencode(text).decode("utf-8", "replace")  # arguments can hold any bytes
    [prediction] = predictor.predict(
        [text], max_depth=max_depth, depth_budget=depth_budget, contributions=True
    )
    if html:
        write_atomically(html, prediction_page(prediction, max_depth=shown_depth))
        messages_console().print(f"{html}: written")
    if as_json:
        print_json(prediction.to_dict(words=True))
        return
    console = Console(highlight=False, soft_wrap=True)
    width = console.width if console.is_terminal else 100
    console.print(draw_prediction(prediction, max_depth=shown_depth, width=width))
