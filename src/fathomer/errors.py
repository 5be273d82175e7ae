"""The exceptions that Fathomer raises for user errors.

Each one also derives from the built-in exception that a caller would expect, so ``except
ValueError`` keeps working. Its message is one line: what is wrong, where, and what to do::

    FathomerError
    ├── ConfigError        (ValueError)         unknown, mistyped or out-of-range setting
    ├── DataError          (ValueError)         file whose content cannot be used
    │   └── VectorsError                        file of word vectors that cannot be used
    ├── MissingFileError   (FileNotFoundError)  file or folder that does not exist
    ├── ArtifactError      (ValueError)         folder that is not a model, or a damaged model
    ├── DepthError         (ValueError)         depth outside 1..max_depth
    ├── TrainingError      (RuntimeError)       training that cannot continue
    ├── ExportError        (RuntimeError)       model that cannot be exported
    └── MissingExtraError  (ImportError)        optional package that is not installed
"""

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import Any

EXTRAS = {
    "arrow": "a Parquet file",
    "fasttext": "the model fasttext",
    "hub": "fathomer.hub",
    "onnx": "export",
    "plots": "a plot",
    "scale": "--engine ray",
    "serve": "serve",
    "track": "--track",
    "tune": "tune",
    "vectors": "this command",
    "xlsx": "an .xlsx file",
}
"""The optional extras of the package, and what each of them is needed for."""


class FathomerError(Exception):
    """Base class of all errors caused by user input."""


class ConfigError(FathomerError, ValueError):
    """A setting is unknown, of the wrong type or out of range."""


class DataError(FathomerError, ValueError):
    """The content of a file cannot be used."""


class VectorsError(DataError):
    """A file of word vectors cannot be used."""


class MissingFileError(FathomerError, FileNotFoundError):
    """A file or folder does not exist."""


class ArtifactError(FathomerError, ValueError):
    """A folder is not a model, or the model in it is damaged."""


class DepthError(FathomerError, ValueError):
    """A depth is outside 1..max_depth."""


class TrainingError(FathomerError, RuntimeError):
    """Training cannot continue."""


class ExportError(FathomerError, RuntimeError):
    """A model cannot be exported."""


class MissingExtraError(FathomerError, ImportError):
    """An optional package is not installed."""


def require(package: str, extra: str) -> Any:
    """Import and return an optional package, or explain which extra installs it."""
    top = package.partition(".")[0]
    if find_spec(top) is None:
        raise missing_extra(top, extra)
    return import_module(package)


def missing_extra(package: str, extra: str) -> MissingExtraError:
    """Return the error for an optional package that is not installed."""
    return MissingExtraError(
        f"{EXTRAS[extra]} needs {package}: pip install 'fathomer[{extra}]', "
        f"or pip install -c constraints.txt '.[{extra}]' in a clone",
        name=package,
    )


@contextmanager
def refuse_damage(error: type[FathomerError], problem: str) -> Iterator[None]:
    """Raise ``error`` for whatever another library raises on a damaged file.

    Such libraries do not list their exceptions; a panic of Rust code is not even an ``Exception``.
    """
    try:
        yield
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as found:
        reason = " ".join(str(found).split()).rstrip(".") or type(found).__name__
        raise error(f"{problem} ({reason[:200]})") from None


def did_you_mean(name: str, choices: Iterable[str]) -> str:
    """Return a hint that names the choice closest to ``name``, or all of them if none is close.

    >>> did_you_mean("max_dept", ["max_depth", "hidden_size"])
    "did you mean 'max_depth'?"
    >>> did_you_mean("zzz", ["max_depth", "hidden_size"])
    'choose from hidden_size, max_depth'
    """
    known = sorted(choices)
    nearest = difflib.get_close_matches(name, known, n=1)
    if nearest:
        return f"did you mean {nearest[0]!r}?"
    return f"choose from {', '.join(known)}"
