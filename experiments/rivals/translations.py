"""Translations of texts, as an input of models.

They come from the file that ``FATHOMER_TRANSLATIONS`` names: a csv, tsv or jsonl file with the column
``text``, as in the corpus, and one column per language. It may be the corpus itself; a column ``label`` is
ignored. Without a file, only the demo corpus is translated, into a language as made up as its texts.
"""

import os
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from fathomer.data.demo import demo_corpus
from fathomer.data.reading import ReadOptions, read_rows
from fathomer.errors import DataError, MissingFileError

FILE = "FATHOMER_TRANSLATIONS"
NOT_LANGUAGES = ("text", "label")
ADVICE = f"set {FILE} to a csv or jsonl file with the column text and one column per language"


def translations_of(text: str) -> tuple[str, ...]:
    """Return the translations of a text into all languages; empty if it is not known."""
    file = os.environ.get(FILE)
    known = read_translations(Path(file)) if file else demo_translations()
    return known.get(_key(text), ())


@cache
def read_translations(path: Path) -> Mapping[str, tuple[str, ...]]:
    """Read a file of translations; the columns of its first row are the languages."""
    if not path.is_file():
        raise MissingFileError(f"{FILE}={path}: no such file; {ADVICE}")
    found: dict[str, tuple[str, ...]] = {}
    languages: list[str] = []
    for row in read_rows(path, ReadOptions(label_column=None)):
        languages = languages or [name for name in row.names if name not in NOT_LANGUAGES]
        if not languages:
            raise DataError(f"{path}: there is no column of translations; {ADVICE}")
        cells = dict(zip(row.names, row.values, strict=True))
        found[_key(row.text)] = tuple(str(cells.get(name) or "") for name in languages)
    return found


@cache
def demo_translations() -> Mapping[str, tuple[str, ...]]:
    """Translate the demo corpus into a made-up language."""
    parts = demo_corpus(seed=0, train=4000, test=600)
    return {_key(text): (made_up(text),) for part in parts for text in part.texts}


def made_up(text: str) -> str:
    """Translate a text word by word, from its end to its beginning.

    >>> made_up("Not bad!")
    '!o dabo toNo'
    """
    words = re.findall(r"[\w']+|[^\w\s]", text)
    return " ".join(f"{word[::-1]}o" for word in reversed(words))


def _key(text: str) -> str:
    return " ".join(text.split())
