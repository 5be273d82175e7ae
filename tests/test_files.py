"""Files that are complete or absent."""

import hashlib
import os
import stat
from pathlib import Path

import pytest

from fathomer.errors import ConfigError
from fathomer.files import (
    check_writable,
    leftovers_of,
    replace_folder,
    sha256_of,
    write_atomically,
)


@pytest.fixture
def umask(request):
    """Set the umask of the process for one test."""
    before = os.umask(request.param)
    yield request.param
    assert os.umask(before) == request.param, "the umask was left changed"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"\0\xff\r\n", b"\0\xff\r\n"),
        ("é\n", b"\xc3\xa9\n"),
        ("", b""),
        (b"x" * 10**6, b"x" * 10**6),
    ],
)
@pytest.mark.parametrize("before", [None, b"a much longer content than the new one" * 9])
def test_a_file_is_replaced_completely(tmp_path, content, expected, before):
    path = tmp_path / "file"
    if before is not None:
        path.write_bytes(before)
    write_atomically(path, content)
    assert path.read_bytes() == expected
    assert list(tmp_path.iterdir()) == [path]


def test_a_missing_folder_is_an_error_and_is_not_created(tmp_path):
    path = tmp_path / "mistyped" / "file"
    with pytest.raises(FileNotFoundError) as caught:
        write_atomically(path, "text")
    assert caught.value.filename == str(path)
    assert list(tmp_path.iterdir()) == []


def test_the_error_names_the_path_that_the_user_gave(tmp_path):
    (tmp_path / "page").touch()
    with pytest.raises(NotADirectoryError) as caught:
        write_atomically(tmp_path / "page" / "file", "text")
    assert caught.value.filename == str(tmp_path / "page" / "file")


def test_a_reader_of_the_old_file_is_not_disturbed(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with path.open("rb") as reader:
        write_atomically(path, b"new")
        assert reader.read() == b"old"
    assert path.read_bytes() == b"new"


def test_the_old_file_stays_until_the_new_one_is_on_disk(tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    seen = []

    def fsync(handle: int) -> None:
        beside = set(tmp_path.iterdir()) - {path}  # on the same file system
        seen.extend((path.read_bytes(), new.read_bytes()) for new in beside)

    monkeypatch.setattr(os, "fsync", fsync)
    write_atomically(path, b"new")
    assert seen == [(b"old", b"new")]


@pytest.mark.parametrize("error", [OSError("no space left"), KeyboardInterrupt()])
@pytest.mark.parametrize("where", ["os.fsync", "pathlib.Path.replace"])
@pytest.mark.parametrize("before", [None, b"old"])
def test_a_failure_leaves_the_old_file_and_nothing_else(
    tmp_path, monkeypatch, error, where, before
):
    path = tmp_path / "file"
    if before is not None:
        path.write_bytes(before)

    def fail(*_: object) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(where, fail)
        with pytest.raises(type(error)):
            write_atomically(path, b"new")
    assert [file.read_bytes() for file in tmp_path.iterdir()] == ([before] if before else [])


def test_a_folder_is_not_replaced_by_a_file(tmp_path):
    (tmp_path / "file").mkdir()
    with pytest.raises(OSError, match="directory"):
        write_atomically(tmp_path / "file", b"new")
    assert list(tmp_path.iterdir()) == [tmp_path / "file"]


def test_characters_that_cannot_be_encoded_are_replaced(tmp_path):
    write_atomically(tmp_path / "file", "a\ud800b")
    assert (tmp_path / "file").read_bytes() == b"a?b"


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
@pytest.mark.parametrize("umask", [0o022, 0o077, 0o002], indirect=True, ids=oct)
def test_the_umask_decides_the_permissions_of_a_file(tmp_path, umask):
    path = tmp_path / "file"
    write_atomically(path, b"content")
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~umask


@pytest.mark.parametrize("content", [b"", b"abc", os.urandom(3_000_000)], ids=len)
def test_the_checksum_is_the_sha256_of_the_content(tmp_path, content):
    path = Path(tmp_path / "file")
    path.write_bytes(content)
    assert sha256_of(path) == hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize("there", [True, False])
def test_a_link_stays_a_link_and_its_target_is_written(tmp_path, there):
    (tmp_path / "folder").mkdir()
    real, link = tmp_path / "folder" / "real.txt", tmp_path / "link.txt"
    if there:
        real.write_text("old")
    link.symlink_to(real)
    check_writable(link)
    write_atomically(link, "new")
    assert link.is_symlink()
    assert real.read_text() == "new"
    assert [path.name for path in real.parent.iterdir()] == ["real.txt"]


def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        check_writable(pipe)
        write_atomically(pipe, "content")
        assert os.read(reader, 100) == b"content"
    finally:
        os.close(reader)
    assert pipe.is_fifo()


def test_a_folder_cannot_be_written_as_a_file(tmp_path):
    with pytest.raises(ConfigError, match=r"is a folder; name a file$"):
        check_writable(tmp_path)


def test_only_our_own_leftovers_are_found(tmp_path):
    names = [".a.json.0123abcd", ".a.json.swp", ".a.json.0123abcdef", ".b.json.0123abcd", "a.json"]
    for name in names:
        (tmp_path / name).touch()
    assert leftovers_of(tmp_path / "a.json") == [tmp_path / ".a.json.0123abcd"]
    assert leftovers_of(tmp_path / "nowhere" / "a.json") == []


def test_the_new_name_is_synced_with_its_folder(tmp_path, monkeypatch):
    synced = []

    def sync(folder):
        synced.append((folder, sorted(path.name for path in folder.iterdir())))

    monkeypatch.setattr("fathomer.files.sync_folder", sync)
    write_atomically(tmp_path / "file", "text")
    assert synced == [(tmp_path, ["file"])]
    replace_folder(tmp_path / "model", {"config.json": b"{}"})
    assert synced[-1] == (tmp_path, ["file", "model"])
