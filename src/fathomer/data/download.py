"""Downloads: from the published source, checked, and whole or not at all.

A file is fetched into a hidden folder beside its place and moved there only when it is complete and
its checksum is right. Each download has a folder of its own; what a killed one has left, and nobody
has touched for a while, the next one clears away.
"""

import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from fathomer.data.corpus import Corpus
from fathomer.data.places import path_of
from fathomer.data.pretrained import FOLDER, Pretrained
from fathomer.errors import DataError, MissingFileError
from fathomer.files import sha256_of

RETRIES = 3
TIMEOUT = 30
INCOMING = ".incoming-"
LEFT_BEHIND = 3600
"""Seconds without a new byte; a download that is alive waits for none longer than its timeout."""


class Bar(Protocol):
    """Show how much has come."""

    def start(self, total: int) -> None:
        """Begin, or begin anew; a total of 0 is not known."""

    def update(self, size: int) -> None:
        """Add bytes that have come."""


@dataclass(frozen=True)
class Download:
    """Describe a file to fetch."""

    path: Path
    url: str
    sha256: str | None

    @property
    def done(self) -> bool:
        """Say whether the file is there already, and is the right one."""
        return self.path.is_file() and self.sha256 in (None, sha256_of(self.path))


def downloads_of(wanted: Corpus | Pretrained, data_dir: Path) -> list[Download]:
    """Name the files to fetch for a corpus or for vectors."""
    if isinstance(wanted, Pretrained):
        return [Download(data_dir / FOLDER / wanted.file, wanted.url, wanted.sha256)]
    folder = data_dir / wanted.folder
    if wanted.archive is None:
        files = [file for file in wanted.files if file.url]
        return [Download(folder / f.name, f.url or "", f.sha256) for f in files]
    plain = [path_of(file, folder) for file in wanted.files]
    if all(plain):  # unpacked files are as good as their archive
        return []
    name = wanted.archive.names[0]
    return [Download(folder / name, wanted.archive.url, wanted.archive.sha256)]


def fetch(download: Download, *, bar: Bar | None = None, retries: int | None = None) -> Path:
    """Download a file, unless it is there already."""
    import pooch

    if download.done:
        return download.path
    pooch.get_logger().setLevel("ERROR")
    name = download.path.name
    with _incoming(download.path.parent) as folder, _explained(download):
        book = pooch.create(
            path=folder,
            base_url="",
            registry={name: f"sha256:{download.sha256}" if download.sha256 else None},
            urls={name: download.url},
            retry_if_failed=RETRIES if retries is None else retries,
        )
        loader = partial(_receive, bar=bar)
        Path(book.fetch(name, downloader=loader)).replace(download.path)
    return download.path


def _receive(url: str, target: str, _: Any, *, bar: Bar | None) -> None:
    """Write what a server sends; unlike pooch's own, close the connection whatever happens."""
    import requests

    with (
        requests.get(url, stream=True, timeout=TIMEOUT) as response,
        Path(target).open("wb") as file,
    ):
        response.raise_for_status()
        if bar:
            bar.start(int(response.headers.get("Content-Length", 0)))
        for piece in response.iter_content(1 << 16):
            file.write(piece)
            if bar:
                bar.update(len(piece))


@contextmanager
def _incoming(folder: Path) -> Iterator[Path]:
    """Make the hidden folder, and clear it away whatever happens."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _clear_leftovers(folder)
        hidden = Path(tempfile.mkdtemp(prefix=INCOMING, dir=folder))
    except OSError as error:
        raise DataError(
            f"{folder}: cannot be written to ({error.strerror}); choose another with --data-dir"
        ) from None
    try:
        yield hidden
    finally:
        shutil.rmtree(hidden, ignore_errors=True)


def _clear_leftovers(folder: Path) -> None:
    """Delete the hidden folders of downloads that are no more."""
    for hidden in folder.glob(f"{INCOMING}*"):
        with suppress(OSError):  # its owner may clear it away at the same time
            touched = max(path.stat().st_mtime for path in (hidden, *hidden.iterdir()))
            if time.time() - touched > LEFT_BEHIND:
                shutil.rmtree(hidden)


@contextmanager
def _explained(download: Download) -> Iterator[None]:
    """Turn what goes wrong into one line that says which file to put where."""
    import requests

    name, folder = download.path.name, download.path.parent
    try:
        yield
    except requests.RequestException as error:
        reason = _reason(error)
        raise MissingFileError(
            f"{download.url} cannot be downloaded ({reason}); get {name} yourself and put it into "
            f"{folder}"
        ) from None
    except ValueError as error:
        if "hash" not in str(error):
            raise
        raise DataError(
            f"{download.url} is not the file that was expected (its sha256 is not "
            f"{download.sha256}); nothing was kept; get {name} elsewhere and put it into {folder}"
        ) from None
    except OSError as error:
        raise DataError(f"{download.path}: cannot be written ({error.strerror or error})") from None


def _reason(error: Exception) -> str:
    """Say in a few words why a server did not give a file."""
    response = getattr(error, "response", None)
    if response is not None:
        return f"the server answered {response.status_code} {response.reason}".strip()
    return {
        "ConnectionError": "no connection",
        "ConnectTimeout": "no answer in time",
        "ReadTimeout": "no answer in time",
        "ChunkedEncodingError": "the connection broke",
        "SSLError": "no secure connection",
        "ProxyError": "the proxy refused",
    }.get(type(error).__name__, type(error).__name__)


class _RichBar:
    """Show a download in a terminal."""

    def __init__(self, progress: Progress) -> None:
        self._progress, self._task = progress, progress.add_task("")

    def start(self, total: int) -> None:
        self._progress.reset(self._task, total=total or None)

    def update(self, size: int) -> None:
        self._progress.update(self._task, advance=size)


@contextmanager
def progress_bar(console: Console, name: str) -> Iterator[Bar]:
    """Open a bar, which is drawn only in a terminal."""
    columns = (TextColumn(name), BarColumn(bar_width=24), DownloadColumn(), TimeRemainingColumn())
    hidden = not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=hidden) as progress:
        yield _RichBar(progress)
