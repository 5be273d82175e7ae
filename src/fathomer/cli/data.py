"""The commands ``fathomer data list``, ``check`` and ``get``."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fathomer.cli.options import DataDir, Json, Vectors
from fathomer.cli.output import messages_console, print_json, print_line

if TYPE_CHECKING:
    from fathomer.data.datasets import Corpus, PretrainedVectors, TextLengths

app = typer.Typer(name="data")

Name = Annotated[
    str, typer.Argument(metavar="NAME", help="Name of a corpus; see fathomer data list.")
]


@app.callback(invoke_without_command=True)
def data(context: typer.Context) -> None:
    """List, check and download the corpora of the paper."""
    if context.invoked_subcommand is None:
        print_line(context.get_help())


@app.command("list")
def list_(data_dir: DataDir = None, as_json: Json = False) -> None:
    """List the corpora and word vectors that are known by name.

    Example: fathomer data list --data-dir ~/corpora
    """
    from fathomer.data.datasets import CORPORA, data_folder, known_vectors

    folder = data_folder(data_dir)
    vectors = known_vectors(folder)
    rows = [*(_row(corpus, folder) for corpus in CORPORA.values()), _DEMO]
    if as_json:
        print_json({"data_dir": str(folder), "corpora": rows, "vectors": vectors})
        return
    print_line(_LINE.format("", "", "", "average", "words", "longest", "words", "", "", ""))
    print_line(
        _LINE.format(
            "name", "type", "labels", "ours", "paper", "ours", "paper", "train", "test", ""
        )
    )
    for row in rows:
        print_line(_line(row))
    print_line("")
    for name, present in vectors.items():
        print_line(f"{name:<21}word vectors  {_PRESENT[present]}")
    print_line(f"\nThe data folder is {folder}.")
    print_line("For the amazon16 corpora, the paper gives the lengths of all of them together.")


_PRESENT = {True: "present", False: "-"}
_LINE = "{:<21}{:<11}{:>6}{:>9}{:>7}{:>9}{:>7}{:>9}{:>10}  {}"


def _row(corpus: "Corpus", data_dir: Path) -> dict[str, Any]:
    """Return what the list shows of a corpus."""
    from fathomer.data.layouts import is_present

    return {
        "name": corpus.name,
        "type": corpus.kind,
        "labels": list(corpus.labels.values()),
        "train": corpus.sizes.train,
        "test": corpus.sizes.test,
        "folds": corpus.folds,
        **_lengths(corpus.words),
        "published": corpus.paper.counts(),
        "present": is_present(corpus, data_dir),
        "page": corpus.page,
        "terms": corpus.terms,
    }


def _lengths(lengths: "TextLengths | None") -> dict[str, Any]:
    return {
        "average_words": lengths.average if lengths else None,
        "longest_words": lengths.longest if lengths else None,
    }


_DEMO: dict[str, Any] = {
    "name": "demo",
    "type": "sentiment",
    "labels": ["negative", "positive"],
    "train": 4000,
    "test": 600,
    "folds": 0,
    "average_words": 17.2,
    "longest_words": 34,
    "published": None,
    "present": True,
    "page": None,
    "terms": "comes with Fathomer",
}


def _line(row: dict[str, Any]) -> str:
    published = row["published"] or {"average_words": None, "longest_words": None}
    return _LINE.format(
        row["name"],
        row["type"],
        len(row["labels"]),
        _number(row["average_words"], ".1f"),
        _number(published["average_words"], "d"),
        _number(row["longest_words"], ",d"),
        _number(published["longest_words"], ",d"),
        f"{row['train']:,}",
        f"{row['folds']} folds" if row["folds"] else f"{row['test']:,}",
        _PRESENT[row["present"]],
    )


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


@app.command()
def check(
    name: Name, vectors: Vectors = None, data_dir: DataDir = None, as_json: Json = False
) -> None:
    """Count what a corpus contains, and compare it with the published figures.

    Example: fathomer data check trec
    """
    from fathomer.data.check import check_corpus, check_demo
    from fathomer.data.datasets import data_folder, find_corpus, find_vectors

    file = find_vectors(vectors, data_dir) if vectors else None
    if name == "demo":
        report = check_demo(vectors=file)
    else:
        report = check_corpus(find_corpus(name), data_folder(data_dir), vectors=file)
    if as_json:
        print_json(report)
        return
    _print_report(report)
    messages = messages_console()
    for warning in report["warnings"]:
        messages.print(f"warning: {warning}", highlight=False)


def _print_report(report: dict[str, Any]) -> None:
    width = max(map(len, report["labels"]))
    print_line(f"{report['name']:<{width}}  {'train':>9}  {'test':>9}")
    for label, counts in report["labels"].items():
        print_line(f"{label:<{width}}  {counts['train']:>9,}  {counts['test']:>9,}")
    print_line(f"{'all':<{width}}  {report['train']:>9,}  {report['test']:>9,}")
    if report["folds"]:
        print_line(f"{report['folds']}-fold cross-validation")
    repeated = report["duplicates"]
    print_line(
        f"repeated texts: {repeated['train']:,} in training, {repeated['test']:,} in test, "
        f"{report['duplicates_across_splits']:,} in both; empty texts: {report['empty']:,}"
    )
    line = f"words: {report['average_words']} on average, {report['longest_words']:,} at most"
    if published := report["published"]:
        line += f" (paper: {published['average_words']}, {published['longest_words']:,})"
    print_line(line)
    for file in report["files"]:
        verdict = {True: "as published", False: "NOT as published", None: "unknown checksum"}
        print_line(f"{file['name']}: {file['encoding']}, {verdict[file['checksum_ok']]}")
    if vectors := report["vectors"]:
        print_line(
            f"{vectors['file']}: no vector for {vectors['unknown_words']:.2%} of the words, "
            f"{vectors['unknown_types']:.2%} of the distinct words"
        )


@app.command()
def get(name: Name, data_dir: DataDir = None, as_json: Json = False) -> None:
    """Download a corpus or word vectors from where they are published.

    Example: fathomer data get trec
    """
    from fathomer.data.datasets import data_folder
    from fathomer.data.download import downloads_of, fetch, progress_bar

    messages = messages_console()
    if name == "demo":
        messages.print("demo comes with Fathomer; nothing to download")
        downloads = []
    else:
        wanted = _wanted(name)
        messages.print(f"{name}: published at {wanted.page}", highlight=False)
        messages.print(f"terms: {wanted.terms}", highlight=False)
        downloads = downloads_of(wanted, data_folder(data_dir))
    for download in downloads:
        with progress_bar(messages, download.path.name) as report:
            fetch(download, report=report)
    files = [str(download.path) for download in downloads]
    if as_json:
        print_json({"name": name, "files": files})
        return
    for file in files:
        print_line(file)


def _wanted(name: str) -> "Corpus | PretrainedVectors":
    """Return the corpus or vectors of this name."""
    from fathomer.data.datasets import CORPORA, VECTORS
    from fathomer.errors import MissingFileError, did_you_mean

    wanted = CORPORA.get(name) or VECTORS.get(name)
    if wanted is None:
        hint = did_you_mean(name, [*CORPORA, *VECTORS])
        raise MissingFileError(f"{name}: no such corpus or vectors; {hint}")
    return wanted
