"""The command ``fathomer evaluate``."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fathomer.cli.evaluation_data import open_evaluation_data
from fathomer.cli.evaluation_result import (
    curve_content,
    print_curve,
    print_multi_label,
    print_report,
)
from fathomer.cli.options import (
    Data,
    DataDir,
    DepthBudget,
    Device,
    Encoding,
    Fold,
    Folder,
    Folds,
    Html,
    Json,
    LabelColumn,
    MaxDepth,
    Precision,
    TextColumn,
)
from fathomer.cli.output import messages_console, open_model, print_json
from fathomer.errors import ConfigError, MissingFileError

if TYPE_CHECKING:
    from fathomer.data.examples import Examples
    from fathomer.evaluate.label_words import LabelWords
    from fathomer.evaluate.metrics import Answered
    from fathomer.evaluate.report import Report
    from fathomer.predictor import Predictor

SAMPLE_WORDS = 500_000
"""Words that the model reads to find the words that push towards each label."""

Plot = Annotated[Path | None, typer.Option(metavar="FILE.png", help="Draw the confusion matrix.")]
Reliability = Annotated[
    Path | None, typer.Option(metavar="FILE.png", help="Draw a reliability diagram.")
]


def evaluate(
    folder: Folder,
    data: Data,
    plot: Plot = None,
    html: Html = None,
    reliability: Reliability = None,
    max_depth: MaxDepth = None,
    depth_budget: DepthBudget = None,
    precision: Precision = "float32",
    device: Device = "cpu",
    fold: Fold = None,
    folds: Folds = None,
    data_dir: DataDir = None,
    text_column: TextColumn = "text",
    label_column: LabelColumn = "label",
    encoding: Encoding = "utf-8",
    as_json: Json = False,
) -> None:
    """Score a model on labelled texts.

    Example: fathomer evaluate model test.csv --html report.html
    """
    from fathomer.data.opening import training_texts
    from fathomer.data.reading import ReadOptions
    from fathomer.evaluate.report import make_report

    _check_targets(plot, html, reliability)
    predictor = open_model(folder, precision, device)
    if predictor.multi_label and (plot or html):
        raise ConfigError("--plot and --html show one label per text; this model gives several")
    options = ReadOptions(text_column, label_column, encoding)
    source = open_evaluation_data(
        predictor, data, options, fold=fold, folds=folds, data_dir=data_dir
    )
    answered = predictor.answer(
        source.evaluation_set, max_depth=max_depth, depth_budget=depth_budget
    )
    as_trained = max_depth is None and depth_budget is None
    curve = predictor.depth_curve(answered) if as_trained else []
    if reliability:
        _draw_reliability(answered, reliability)
    if predictor.multi_label:
        print_multi_label(predictor.score(answered), source, curve, as_json=as_json)
        return
    seen = training_texts(source, data_dir=data_dir)
    report = make_report(answered, source.evaluation_set, training_texts=seen)
    if plot:
        _draw_confusion(report, plot)
    if html:
        texts = source.evaluation_set
        words = _label_words(predictor, answered, texts, max_depth, depth_budget)
        _write_page(report, html, title=f"{folder} on {data}", words=words)
    if as_json:
        print_json(report.to_dict() | curve_content(curve) | source.describe())
    else:
        print_report(report, data)
        print_curve(curve)


def _check_targets(plot: Path | None, html: Path | None, reliability: Path | None) -> None:
    """Raise an error before the evaluation if its results could not be written."""
    for option, picture in {"--plot": plot, "--reliability": reliability}.items():
        if picture:
            from fathomer.errors import require

            if picture.suffix.lower() != ".png":
                raise ConfigError(f"{picture}: {option} writes a PNG file; use the suffix .png")
            require("matplotlib", "plots")
    for target in (plot, html, reliability):
        if target and not target.parent.is_dir():
            raise MissingFileError(f"{target.parent}: no such folder")


def _draw_confusion(report: "Report", path: Path) -> None:
    from fathomer.evaluate.render import confusion_png
    from fathomer.files import write_atomically

    write_atomically(path, confusion_png(report))
    messages_console().print(f"{path}: written")


def _label_words(
    predictor: "Predictor",
    answered: "Answered",
    examples: "Examples",
    max_depth: int | None,
    depth_budget: float | None,
) -> "LabelWords":
    """Find the words that push towards each label in some of the texts."""
    from fathomer.contributions import words_read
    from fathomer.evaluate.label_words import find_label_words, sample_texts

    costs = [words_read(count) for count in answered.data.texts.lengths.tolist()]
    sample = sample_texts(costs, budget=SAMPLE_WORDS)
    predictions = predictor.predict(
        [examples.items[index].text for index in sample],
        max_depth=max_depth,
        depth_budget=depth_budget,
        contributions=True,
    )
    return find_label_words(predictions, predictor.labels)


def _write_page(report: "Report", path: Path, *, title: str, words: "LabelWords") -> None:
    from fathomer.evaluate.render import report_page
    from fathomer.files import write_atomically

    write_atomically(path, report_page(report, title=title, words=words))
    messages_console().print(f"{path}: written")


def _draw_reliability(answered: "Answered", path: Path) -> None:
    from fathomer.evaluate.reliability import certainties, draw_reliability
    from fathomer.evaluate.reliability import reliability as reliability_of

    found = certainties(answered.answers, answered.data.targets)
    draw_reliability(reliability_of(found), path)
    messages_console().print(f"{path}: written")
