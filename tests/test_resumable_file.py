"""Files that are written in steps."""

import pytest

from fathomer.errors import DataError
from fathomer.files import write_atomically
from fathomer.resumable_file import ResumableFile


def stopped(folder):
    """Return a file that was stopped after two steps."""
    path = folder / "answers"
    with ResumableFile(path, {"rows": 0}, resume=False) as file:
        file.append(b"first", {"rows": 1})
        file.append(b"second", {"rows": 2})
    return path


@pytest.mark.parametrize("name", ["answers.partial", "answers.partial.json"])
def test_any_change_of_a_stopped_file_is_refused(tmp_path, name):
    stopped(tmp_path)
    content = (tmp_path / name).read_bytes()
    for place in range(len(content)):
        changed = bytearray(content)
        changed[place] ^= 1
        (tmp_path / name).write_bytes(changed)
        with pytest.raises(DataError, match="damaged; delete it"):
            ResumableFile(tmp_path / "answers", {}, resume=True)
    (tmp_path / name).write_bytes(content[:-1])
    with pytest.raises(DataError, match="damaged; delete it"):
        ResumableFile(tmp_path / "answers", {}, resume=True)


def test_a_stopped_file_is_continued(tmp_path):
    path = stopped(tmp_path)
    with (tmp_path / "answers.partial").open("ab") as file:
        file.write(b"after the last notes")
    with ResumableFile(path, {}, resume=True) as file:
        assert file.notes == {"rows": 2}
        file.append(b"third", {"rows": 3})
        file.finish()
    assert path.read_bytes() == b"firstsecondthird"
    assert list(tmp_path.iterdir()) == [path]


def test_a_replaced_file_keeps_its_mode(tmp_path):
    path = tmp_path / "answers"
    path.write_bytes(b"old")
    path.chmod(0o640)
    write_atomically(path, b"new")
    assert path.stat().st_mode & 0o777 == 0o640
    path.chmod(0o600)
    with ResumableFile(path, {}, resume=False) as file:
        file.finish()
    assert path.stat().st_mode & 0o777 == 0o600
