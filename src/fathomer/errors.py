"""The exceptions that Fathomer raises for a user's mistakes.

Each one is also a child of the builtin that a caller would expect, so that ``except ValueError``
keeps working, and each carries one line that says what was wrong, where, and what to do::

    FathomerError
    ├── ConfigError        (ValueError)         a setting is unknown, mistyped or out of range
    ├── DataError          (ValueError)         a file's content cannot be used
    │   └── VectorsError                        a file of word vectors cannot be used
    ├── MissingFileError   (FileNotFoundError)  a file or folder is not there
    ├── ArtifactError      (ValueError)         a folder is not a model, or a damaged one
    ├── DepthError         (ValueError)         a depth lies outside 1..max_depth
    ├── TrainingError      (RuntimeError)       training cannot go on
    ├── ExportError        (RuntimeError)       a model cannot be exported
    └── MissingExtraError  (ImportError)        an optional package is not installed
"""

import difflib
from collections.abc import Iterable
from importlib.util import find_spec


class FathomerError(Exception):
    """Be the parent of every error that a user can cause."""


class ConfigError(FathomerError, ValueError):
    """Report a setting that is unknown, of the wrong type or out of range."""


class DataError(FathomerError, ValueError):
    """Report a file whose content cannot be used."""


class VectorsError(DataError):
    """Report a file of word vectors that cannot be used."""


class MissingFileError(FathomerError, FileNotFoundError):
    """Report a file or folder that is not there."""


class ArtifactError(FathomerError, ValueError):
    """Report a folder that is not a model, or a damaged one."""


class DepthError(FathomerError, ValueError):
    """Report a depth outside 1..max_depth."""


class TrainingError(FathomerError, RuntimeError):
    """Report training that cannot go on."""


class ExportError(FathomerError, RuntimeError):
    """Report a model that cannot be exported."""


class MissingExtraError(FathomerError, ImportError):
    """Report an optional package that is not installed."""


def require_matplotlib() -> None:
    """Refuse to draw where matplotlib is not installed."""
    if find_spec("matplotlib") is None:
        raise MissingExtraError("a plot needs matplotlib: pip install 'fathomer[plots]'")


def did_you_mean(name: str, choices: Iterable[str]) -> str:
    """Return a hint that offers the choice nearest to ``name``, or else all of them.

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
