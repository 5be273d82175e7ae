"""Downloads are complete and correct, or leave nothing behind; the server is a local one."""

import hashlib
import os
import threading
import time
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from fathomer.data.datasets import CORPORA, VECTORS
from fathomer.data.download import ABANDONED, INCOMING, Download, downloads_of, fetch
from fathomer.data.opening import open_dataset
from fathomer.errors import DataError, FathomerError
from tests.data import small

CONTENT = b"a text\n" * 5000
SHA256 = hashlib.sha256(CONTENT).hexdigest()


class Server(ThreadingHTTPServer):
    """A server of some files that can cut off its first responses."""

    def __init__(self, files):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files, self.breaks, self.asked = files, 0, []

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        name = self.path.strip("/")
        self.server.asked.append(name)
        if name not in self.server.files:
            self.send_error(404, "Not Found")
            return
        content = self.server.files[name]
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.server.breaks:
            self.server.breaks -= 1
            content = content[: len(content) // 2]
        self.wfile.write(content)

    def log_message(self, *_):
        pass


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr("pooch.core.time.sleep", lambda _: None)
    with Server({"a.txt": CONTENT}) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def message(download, **options) -> str:
    """Return the one-line error of a failed download, which leaves nothing behind."""
    with pytest.raises(FathomerError) as caught:
        fetch(download, **options)
    assert "\n" not in str(caught.value)
    assert not download.path.exists()
    assert not list(download.path.parent.glob(".*"))
    return str(caught.value)


def test_a_file_is_verified_and_its_progress_shown(server, tmp_path):
    reports = []
    download = Download(tmp_path / "c" / "a.txt", f"{server.url}a.txt", SHA256)
    assert fetch(download, report=lambda *told: reports.append(told)) == download.path
    assert download.path.read_bytes() == CONTENT
    assert (reports[0], reports[-1]) == ((0, len(CONTENT)), (len(CONTENT), len(CONTENT)))
    assert [path.name for path in download.path.parent.iterdir()] == ["a.txt"]


def test_a_present_file_is_not_downloaded_again(server, tmp_path):
    download = Download(tmp_path / "a.txt", f"{server.url}a.txt", SHA256)
    fetch(download)
    fetch(download)
    assert server.asked == ["a.txt"]
    download.path.write_bytes(b"damaged")
    assert fetch(download).read_bytes() == CONTENT
    assert len(server.asked) == 2


def test_a_broken_download_is_retried(server, tmp_path):
    server.breaks = 2
    download = Download(tmp_path / "a.txt", f"{server.url}a.txt", None)
    assert fetch(download).read_bytes() == CONTENT
    assert len(server.asked) == 3


def test_a_download_that_keeps_breaking_leaves_nothing(server, tmp_path):
    server.breaks = 100
    url = f"{server.url}a.txt"
    assert message(Download(tmp_path / "a.txt", url, None), retries=1) == (
        f"{url} cannot be downloaded (the connection was lost); "
        f"download a.txt yourself and put it into {tmp_path}"
    )


def test_ctrl_c_leaves_nothing(server, tmp_path):
    def interrupt(received, total):
        if received:
            raise KeyboardInterrupt

    download = Download(tmp_path / "a.txt", f"{server.url}a.txt", SHA256)
    with pytest.raises(KeyboardInterrupt):
        fetch(download, report=interrupt)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("age", "left"), [(ABANDONED + 60, []), (ABANDONED - 60, ["tmp123"])])
def test_the_folder_of_a_killed_download_is_deleted_in_time(server, tmp_path, age, left):
    half = tmp_path / f"{INCOMING}abc" / "tmp123"
    small.write_files(half.parent, {half.name: "half"})
    for path in (half, half.parent):
        os.utime(path, (time.time() - age,) * 2)
    fetch(Download(tmp_path / "a.txt", f"{server.url}a.txt", SHA256))
    assert (tmp_path / "a.txt").read_bytes() == CONTENT
    assert [path.name for path in tmp_path.glob(".*/*")] == left


def test_two_downloads_at_the_same_time_do_not_interfere(server, tmp_path):
    download = Download(tmp_path / "a.txt", f"{server.url}a.txt", SHA256)

    def fetch_again(received, total):
        if not received:
            fetch(download)  # another process, while this one has nothing yet
            download.path.unlink()

    assert fetch(download, report=fetch_again, retries=0).read_bytes() == CONTENT
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


def test_a_wrong_checksum_keeps_nothing(server, tmp_path):
    url, wrong = f"{server.url}a.txt", "0" * 64
    assert message(Download(tmp_path / "a.txt", url, wrong), retries=0) == (
        f"{url} is not the expected file (its sha256 is not {wrong}); "
        f"nothing was kept; get a.txt elsewhere and put it into {tmp_path}"
    )


def test_a_refused_download_is_reported_with_which_file_to_put_where(server, tmp_path):
    url = f"{server.url}b.txt"
    assert message(Download(tmp_path / "b.txt", url, None), retries=0) == (
        f"{url} cannot be downloaded (the server answered 404 Not Found); "
        f"download b.txt yourself and put it into {tmp_path}"
    )


def test_being_offline_is_reported_with_which_file_to_put_where(server, tmp_path):
    url = "http://127.0.0.1:1/a.txt"
    assert message(Download(tmp_path / "a.txt", url, None), retries=0) == (
        f"{url} cannot be downloaded (no connection); "
        f"download a.txt yourself and put it into {tmp_path}"
    )


def test_a_folder_that_cannot_be_created_is_an_error(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(
        DataError, match=r"cannot be written to .*; choose another with --data-dir$"
    ):
        fetch(Download(tmp_path / "file" / "a.txt", "http://127.0.0.1:1/a.txt", None))


def test_a_downloaded_corpus_can_be_opened(server, tmp_path):
    packed = small.packed(small.MR, inside="rt-polaritydata/", encoding="cp1252")
    server.files["rt.tar.gz"] = packed
    mr = CORPORA["mr"]
    made = {name: content.encode("cp1252") for name, content in small.MR.items()}
    files = [replace(f, sha256=hashlib.sha256(made[f.name]).hexdigest()) for f in mr.files]
    archive = replace(mr.archive, url=f"{server.url}rt.tar.gz")
    here = replace(mr, archive=archive, files=tuple(files))
    for download in downloads_of(here, tmp_path):
        fetch(download)
    assert (tmp_path / "mr" / "rt-polaritydata.tar.gz").read_bytes() == packed
    assert len(open_dataset("mr", data_dir=tmp_path, folds=2).test) in (2, 3)


@pytest.mark.parametrize("name", [*CORPORA, *VECTORS])
def test_everything_can_be_downloaded(name, tmp_path):
    downloads = downloads_of(CORPORA.get(name) or VECTORS[name], tmp_path)
    assert downloads
    for download in downloads:
        assert download.url.startswith("http")
        assert download.path.is_relative_to(tmp_path)
        assert not download.done


def test_unpacked_files_need_no_archive(tmp_path):
    small.write_files(tmp_path / "mr", small.MR)
    assert downloads_of(CORPORA["mr"], tmp_path) == []


def test_every_download_has_a_checksum():
    for wanted in (*CORPORA.values(), *VECTORS.values()):
        for download in downloads_of(wanted, Path("/nowhere")):
            assert download.sha256 or download.members, download.url


def test_the_files_in_an_archive_without_a_checksum_are_compared(server, tmp_path):
    archive = tmp_path / "made" / "data.tar.gz"
    small.write_archive(archive, {"a.txt": "one", "b.txt": "two"}, inside="inside/")
    server.files["data.tar.gz"] = archive.read_bytes()
    right = {"a.txt": hashlib.sha256(b"one").hexdigest()}
    wrong = {"a.txt": hashlib.sha256(b"two").hexdigest()}
    path, url = tmp_path / "kept" / "data.tar.gz", server.url + "data.tar.gz"
    for members in (wrong, {"c.txt": SHA256}):
        with pytest.raises(DataError, match="is not the expected archive"):
            fetch(Download(path, url, None, members))
        assert not list(path.parent.iterdir())
    assert fetch(Download(path, url, None, right)) == path
    assert Download(path, url, None, right).done
    assert not Download(path, url, None, wrong).done
