"""Downloads of corpora and vectors from where they are published.

A file is downloaded into a hidden folder beside its destination, and moved there once it is complete
and its checksum is right. Every download has its own hidden folder. One left behind by a killed
process is deleted by a later download.
"""

import hashlib
import lzma
import shutil
import tarfile
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from fathomer.data.datasets import VECTORS_FOLDER, Corpus, PretrainedVectors
from fathomer.data.layouts import find_file
from fathomer.errors import DataError, MissingFileError
from fathomer.files import sha256_of

RETRIES = 3
TIMEOUT = 30
INCOMING = ".incoming-"
ABANDONED = 3600
"""Seconds without a new byte after which a hidden folder is abandoned, well above ``TIMEOUT``."""


Report = Callable[[int, int], None]
"""A function that is told the number of bytes received so far, and of all, which is 0 if unknown."""


@dataclass(frozen=True)
class Download:
    """A file to download."""

    path: Path
    url: str
    sha256: str | None
    members: Mapping[str, str] = field(default_factory=dict)
    """Checksums of files in an archive that has no known checksum of its own."""

    @property
    def done(self) -> bool:
        """Whether the file is already present, with the right checksums."""
        if not self.path.is_file() or self.sha256 not in (None, sha256_of(self.path)):
            return False
        return self.holds_members(self.path)

    def holds_members(self, path: Path) -> bool:
        """Whether a file is an archive with the expected files in it."""
        if not self.members:
            return True
        found = {}
        try:
            with tarfile.open(path, "r|*") as tar:
                for member in tar:
                    name = PurePosixPath(member.name).name
                    stream = tar.extractfile(member) if name in self.members else None
                    if stream:
                        found[name] = hashlib.file_digest(stream, "sha256").hexdigest()  # type: ignore[arg-type]
        except (tarfile.TarError, EOFError, OSError, zlib.error, lzma.LZMAError):
            return False
        return found == dict(self.members)


def downloads_of(wanted: Corpus | PretrainedVectors, data_dir: Path) -> list[Download]:
    """Return the files to download for a corpus or for vectors."""
    if isinstance(wanted, PretrainedVectors):
        path = data_dir / VECTORS_FOLDER / wanted.file
        return [Download(path, wanted.url, wanted.sha256)]
    folder = data_dir / wanted.folder
    if wanted.archive is None:
        files = [file for file in wanted.files if file.url]
        return [Download(folder / f.name, f.url or "", f.sha256) for f in files]
    if all(find_file(file, folder) for file in wanted.files):  # no need for the archive
        return []
    archive = wanted.archive
    path = folder / archive.names[0]
    known = {} if archive.sha256 else {f.name: f.sha256 for f in wanted.files if f.sha256}
    return [Download(path, archive.url, archive.sha256, known)]


def fetch(
    download: Download, *, report: Report = lambda *_: None, retries: int | None = None
) -> Path:
    """Download a file unless it is already present, and return its path."""
    import pooch

    if download.done:
        return download.path
    pooch.get_logger().setLevel("ERROR")
    name = download.path.name
    with _hidden_folder(download.path.parent) as folder, _explain_failure(download):
        registry = pooch.create(
            path=folder,
            base_url="",
            registry={name: f"sha256:{download.sha256}" if download.sha256 else None},
            urls={name: download.url},
            retry_if_failed=RETRIES if retries is None else retries,
        )
        received = registry.fetch(name, downloader=partial(_receive, report=report))
        if not download.holds_members(Path(received)):
            raise DataError(
                f"{download.url} is not the expected archive (a file in it has another sha256); "
                f"nothing was kept; get {name} elsewhere and put it into {download.path.parent}"
            )
        Path(received).replace(download.path)
    return download.path


def _receive(url: str, target: str, _: Any, *, report: Report) -> None:
    """Download a URL to a file; unlike pooch's own downloader, always close the connection."""
    import requests

    with (
        requests.get(url, stream=True, timeout=TIMEOUT) as response,
        Path(target).open("wb") as file,
    ):
        response.raise_for_status()
        total = int(response.headers.get("Content-Length", 0))
        report(0, total)
        for block in response.iter_content(1 << 16):
            file.write(block)
            report(file.tell(), total)


@contextmanager
def _hidden_folder(folder: Path) -> Iterator[Path]:
    """Create a hidden folder, and delete it in the end."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _delete_abandoned(folder)
        hidden = Path(tempfile.mkdtemp(prefix=INCOMING, dir=folder))
    except OSError as error:
        raise DataError(
            f"{folder}: cannot be written to ({error.strerror}); choose another with --data-dir"
        ) from None
    try:
        yield hidden
    finally:
        shutil.rmtree(hidden, ignore_errors=True)


def _delete_abandoned(folder: Path) -> None:
    """Delete the hidden folders of downloads that were killed."""
    for hidden in folder.glob(f"{INCOMING}*"):
        with suppress(OSError):  # its owner may delete it at the same time
            modified = max(path.stat().st_mtime for path in (hidden, *hidden.iterdir()))
            if time.time() - modified > ABANDONED:
                shutil.rmtree(hidden)


@contextmanager
def _explain_failure(download: Download) -> Iterator[None]:
    """Turn errors into one line that says which file to put where."""
    import requests

    name, folder = download.path.name, download.path.parent
    try:
        yield
    except requests.RequestException as error:
        reason = _reason(error)
        raise MissingFileError(
            f"{download.url} cannot be downloaded ({reason}); download {name} yourself and put it "
            f"into {folder}"
        ) from None
    except ValueError as error:
        if isinstance(error, DataError) or "hash" not in str(error):
            raise
        raise DataError(
            f"{download.url} is not the expected file (its sha256 is not {download.sha256}); "
            f"nothing was kept; get {name} elsewhere and put it into {folder}"
        ) from None
    except OSError as error:
        raise DataError(f"{download.path}: cannot be written ({error.strerror or error})") from None


def _reason(error: Exception) -> str:
    """Return in a few words why a download failed."""
    response = getattr(error, "response", None)
    if response is not None:
        return f"the server answered {response.status_code} {response.reason}".strip()
    return {
        "ConnectionError": "no connection",
        "ConnectTimeout": "no answer in time",
        "ReadTimeout": "no answer in time",
        "ChunkedEncodingError": "the connection was lost",
        "SSLError": "no secure connection",
        "ProxyError": "the proxy refused",
    }.get(type(error).__name__, type(error).__name__)


@contextmanager
def progress_bar(console: Console, name: str) -> Iterator[Report]:
    """Open a progress bar, which is drawn only in a terminal."""
    columns = (TextColumn(name), BarColumn(bar_width=24), DownloadColumn(), TimeRemainingColumn())
    hidden = not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=hidden) as progress:
        task = progress.add_task("")
        yield lambda received, total: progress.update(task, completed=received, total=total or None)
