"""Where training and test texts come from: a corpus by name, or a user's own file."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from fathomer.data.demo import demo_corpus
from fathomer.data.examples import Examples
from fathomer.data.readers import read_examples
from fathomer.errors import MissingFileError, did_you_mean


@dataclass(frozen=True)
class Source:
    """Hold the examples behind one name or file."""

    name: str
    train: Examples
    test: Examples | None
    """The corpus's own test part; a user's file has none."""


def _demo() -> Source:
    train, test = demo_corpus()
    return Source("demo", train, test)


CORPORA: Mapping[str, Callable[[], Source]] = {"demo": _demo}


def open_source(
    data: str, *, text_column: str = "text", label_column: str = "label", encoding: str = "utf-8"
) -> Source:
    """Open a corpus by its name, or read a file."""
    if data in CORPORA:
        return CORPORA[data]()
    path = Path(data)
    if not path.exists() and not path.suffix:
        raise MissingFileError(f"{data}: no such file or corpus; {did_you_mean(data, CORPORA)}")
    examples = read_examples(
        path, text_column=text_column, label_column=label_column, encoding=encoding
    )
    return Source(data, examples, None)
