"""What ``fathomer evaluate`` prints."""

from typing import TYPE_CHECKING, Any

from fathomer.cli.output import print_json, print_line, print_scores, print_table

if TYPE_CHECKING:
    from fathomer.data.opening import Dataset
    from fathomer.evaluate.budget import CurvePoint
    from fathomer.evaluate.metrics import Metrics
    from fathomer.evaluate.report import Report

MATRIX_LABELS = 10
"""Largest number of labels for which the confusion matrix is printed."""


def curve_content(curve: "list[CurvePoint]") -> dict[str, Any]:
    """Return the JSON content of a depth curve, if there is one."""
    return {"depth_curve": [point.to_dict() for point in curve]} if curve else {}


def print_multi_label(
    metrics: "Metrics", source: "Dataset", curve: "list[CurvePoint]", *, as_json: bool
) -> None:
    """Print the scores of a multi-label model."""
    if as_json:
        print_json(metrics.to_dict() | curve_content(curve) | source.describe())
        return
    print_scores({source.name: metrics.to_dict()})
    print_line(f"micro F1 {metrics.micro_f1:.4f}; accuracy: texts with all labels correct")
    _print_labels(metrics)
    print_line("\nno confusion matrix: a text may have several labels")
    print_curve(curve)


def print_report(report: "Report", data: str) -> None:
    """Print the scores and details of one evaluation."""
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


def print_curve(curve: "list[CurvePoint]") -> None:
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
