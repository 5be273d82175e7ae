"""Locks: the second process is refused while the first one lives."""

import signal
import subprocess
import sys

import pytest

from fathomer.errors import ConfigError
from fathomer.locks import locked
from tests.tiny import tiny_artifact, tiny_examples, write_csv

HOLDER = """
import sys, time
from pathlib import Path
from fathomer.locks import locked
with locked(Path(sys.argv[1])):
    print("locked", flush=True)
    time.sleep(600)
"""


def test_a_lock_is_held_by_one_and_leaves_nothing_behind(tmp_path):
    path = tmp_path / "new" / "folder" / "model"
    with locked(path), pytest.raises(ConfigError, match="another process is writing it"):
        locked(path).__enter__()
    with locked(path):
        pass
    assert not list(tmp_path.iterdir())


def test_a_lock_ends_with_a_killed_process(tmp_path):
    command = [sys.executable, "-c", HOLDER, str(tmp_path / "model")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout.readline() == "locked\n"
        with pytest.raises(ConfigError, match="another process"):
            locked(tmp_path / "model").__enter__()
        holder.send_signal(signal.SIGKILL)
    with locked(tmp_path / "model"):
        pass


def test_a_second_training_and_a_second_file_of_answers_are_refused(run, tmp_path):
    write_csv(tmp_path / "texts.csv", tiny_examples())
    tiny_artifact().save(tmp_path / "model")
    with locked(tmp_path / "other"):
        code, _, err = run("train", "texts.csv", "--out", "other")
    assert (code, err.count("\n")) == (2, 1)
    assert "other: another process is writing it" in err
    with locked(tmp_path / "answers.csv"):
        code, _, err = run("predict", "model", "texts.csv", "--out", "answers.csv")
    assert code == 2
    assert "answers.csv: another process is writing it" in err
    assert not (tmp_path / "other").exists()
    assert not (tmp_path / "answers.csv.partial").exists()
