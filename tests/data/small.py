"""Tiny corpora in the exact published formats, with texts of our own."""

import gzip
import io
import tarfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from fathomer.data.examples import Example
from fathomer.data.opening import open_dataset
from fathomer.errors import FathomerError

QUESTIONS = {
    "train_5500.label": "DESC:manner How does a café earn money ?\nNUM:date When did it open ?\n",
    "TREC_10.label": "NUM:date When did it open ?\nLOC:city Where is it ?\n",
}
MR = {
    "rt-polarity.pos": "a naïve but charming tale – and short . \nworth every minute … \n",
    "rt-polarity.neg": "a dull clichéd tale . \nnot worth a minute . \nlong . \n",
}
SUBJ = {
    "plot.tok.gt9.5000": "a man looks for his lost brother in the big old city . \n" * 2,
    "quote.tok.gt9.5000": "i have rarely laughed so much at such a silly little film . \n" * 2,
}
BOOKS = {
    "books.task.train": "1\ta fine novel , the best of naïve stories\n0\tdull\n1\t\n",
    "books.task.test": "0\tdull\n1\tlovely\n",
}
AG = {
    "train.csv": '"1","Talks ""fail""","The two sides\\met for \\$5, and\nparted."\n'
    '"4","A chip","It is fast."\n',
    "test.csv": '"2","Cup final","The home side won, 2-1."\n"3","Shares","They fell."\n',
}
YELP = {
    "train.csv": '"1","Cold food.\\n\\nNever \\""again\\""."\n"5","Lovely place, \ngood soup."\n',
    "test.csv": '"3","So so."\n',
}
IMDB = {
    "aclImdb/train/pos/0_9.txt": "A gem.<br /><br />Naïve, but a gem.",
    "aclImdb/train/neg/0_1.txt": "A bore.",
    "aclImdb/train/unsup/0_0.txt": "No label.",
    "aclImdb/test/pos/0_8.txt": "Lovely.",
    "aclImdb/test/neg/0_2.txt": "A bore.",
    "aclImdb/README": "Not a review.",
}

HEALTHY = [(f"text number {n} is {w}", w) for n in range(60) for w in ("good", "bad")]
"""Texts and labels in which ``fathomer check`` finds no problem."""


def write_files(folder: Path, files: dict[str, str], *, encoding: str = "utf-8") -> Path:
    """Write files below a folder."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode(encoding))
    return folder


def packed(files: dict[str, str], *, inside: str = "", encoding: str = "utf-8") -> bytes:
    """Return a tar.gz archive of the files."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(f"{inside}{name}")
            member.size = len(content.encode(encoding))
            tar.addfile(member, io.BytesIO(content.encode(encoding)))
    return buffer.getvalue()


def write_archive(path: Path, files: dict[str, str], **how: str) -> Path:
    """Write a tar.gz archive of the files."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(packed(files, **how))
    return path


def write_gz(path: Path, content: str) -> Path:
    """Write a gzip-compressed file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(content.encode()))
    return path


def write_table(
    name: str,
    rows: Iterable[tuple[Any, ...]],
    *,
    header: str = "text,label",
    separator: str = ",",
    encoding: str = "utf-8",
) -> Path:
    """Write a table with quoted cells into the current folder."""
    lines = [header, *(separator.join(f'"{cell}"' for cell in row) for row in rows)]
    content = "".join(f"{line}\n" for line in lines if line).encode(encoding)
    Path(name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return Path(name)


def pairs(examples: Iterable[Example]) -> list[tuple[str, str]]:
    """Return labels and texts."""
    return [(example.label, example.text) for example in examples]


def message(data: str, folder: Path, **options: Any) -> str:
    """Return the error of a corpus that cannot be opened, without the folder."""
    with pytest.raises(FathomerError) as caught:
        open_dataset(data, data_dir=folder, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value).replace(f"{folder}/", "")
