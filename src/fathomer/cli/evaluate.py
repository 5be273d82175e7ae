"""The command ``fathomer evaluate``."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fathomer.cli.evaluation_data import open_evaluation_data
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
from fathomer.cli.output import (
    messages_console,
    open_model,
    print_json,
    print_line,
    print_scores,
    print_table,
)
from fathomer.errors import ConfigError, MissingFileError

if TYPE_CHECKING:
    from fathomer.data.examples import Examples
    from fathomer.data.opening import Dataset
    from fathomer.evaluate.budget import CurvePoint
    from fathomer.evaluate.label_words import LabelWords
    from fathomer.evaluate.metrics import Answered, Metrics
    from fathomer.evaluate.report import Report
    from fathomer.predictor import Predictor

MATRIX_LABELS = 10
"""Largest number of labels for which the confusion matrix is printed."""
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
        _print_multi_label(predictor.score(answered), source, curve, as_json=as_json)
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
        print_json(report.to_dict() | _curve_content(curve) | source.describe())
    else:
        _print_report(report, data)
        _print_curve(curve)


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


def _curve_content(curve: "list[CurvePoint]") -> dict[str, Any]:
    return {"depth_curve": [point.to_dict() for point in curve]} if curve else {}


def _print_multi_label(
    metrics: "Metrics", source: "Dataset", curve: "list[CurvePoint]", *, as_json: bool
) -> None:
    """Print the scores of a multi-label model."""
    if as_json:
        print_json(metrics.to_dict() | _curve_content(curve) | source.describe())
        return
    print_scores({source.name: metrics.to_dict()})
    print_line(f"micro F1 {metrics.micro_f1:.4f}; accuracy: texts with all labels correct")
    _print_labels(metrics)
    print_line("\nno confusion matrix: a text may have several labels")
    _print_curve(curve)


def _print_report(report: "Report", data: str) -> None:
    print_scores({data: report.metrics.to_dict()})
    if report.unseen and report.unseen.examples < report.metrics.examples:
        seen = report.metrics.examples - report.unseen.examples
        accuracy = "-" if report.unseen.accuracy is None else f"{report.unseen.accuracy:.4f}"
        print_line(
            f"without the {seen:,} that also occur in the training set: accuracy {accuracy} "
            f"on {report.unseen.examples:,}"
        )
    _print_labels(report.metrics)
    _print_confusion(report)
    _print_lengths(report)
    _print_mistakes(report)


def _print_labels(metrics: "Metrics") -> None:
    print_line("")
    print_table(
        ["label", "precision", "recall", "F1", "support"],
        [
            [
                _short(label),
                f"{s.precision:.4f}",
                f"{s.recall:.4f}",
                f"{s.f1:.4f}",
                f"{s.support:,}",
            ]
            for label, s in metrics.per_label.items()
        ],
    )


def _print_confusion(report: "Report") -> None:
    """Print the confusion matrix, or with many labels the most frequent confusions."""
    print_line("")
    if len(report.labels) <= MATRIX_LABELS:
        print_table(
            ["true \\ predicted", *(_short(label, 12) for label in report.labels)],
            [
                [
                    _short(row),
                    *(
                        f"{report.confusion.get(row, {}).get(column, 0):,}"
                        for column in report.labels
                    ),
                ]
                for row in report.labels
            ],
        )
    else:
        print_table(
            ["most confused", "", "texts"],
            [
                [_short(pair.label), f"→ {_short(pair.predicted)}", f"{pair.count:,}"]
                for pair in report.confusions[:MATRIX_LABELS]
            ],
            right=2,
        )


def _print_lengths(report: "Report") -> None:
    from fathomer.evaluate.metrics import shown_depth

    print_line("")
    print_table(
        ["words", "examples", "accuracy", "mean depth"],
        [
            [
                f"{group.shortest:,}–{group.longest:,}",
                f"{group.examples:,}",
                f"{group.accuracy:.4f}",
                shown_depth(group.mean_depth),
            ]
            for group in report.by_length
        ],
    )


def _print_curve(curve: "list[CurvePoint]") -> None:
    """Print accuracy and speed at several depth budgets."""
    if not curve:
        return
    print_line("")
    rows = [
        [
            f"{point.budget:.2f}",
            f"{point.mean_depth:.2f}",
            f"{point.accuracy:.4f}",
            f"{point.texts_per_second:,.0f}",
        ]
        for point in curve
    ]
    print_table(["depth budget", "mean depth", "accuracy", "texts per second"], rows)


def _print_mistakes(report: "Report") -> None:
    """Print the worst mistakes, each cut to one line of the terminal."""
    from rich.cells import cell_len, set_cell_size
    from rich.console import Console

    if not report.mistakes:
        print_line("\nno mistakes")
        return
    console = Console()
    width = console.width if console.is_terminal else 100
    print_line("\nworst mistakes: true label → predicted label, most certain first")
    for mistake in report.mistakes:
        answer = f"{_short(mistake.label, 20)} → {_short(mistake.predicted, 20)}"
        line = f"{answer} {mistake.probability:.1%}  {mistake.text}"
        if cell_len(line) > width:
            line = set_cell_size(line, width - 1) + "…"
        print_line(line)


def _short(label: str, characters: int = 40) -> str:
    from fathomer.evaluate.report import one_line

    return one_line(label, characters=characters)
