"""Checkpoints: readable even if the process is killed while it writes one."""

import subprocess
import sys

import pytest
import safetensors.torch

from fathomer.errors import ArtifactError
from fathomer.train.checkpoint import TrainingState, load_checkpoint
from fathomer.train.fit import CHECKPOINT, check_folder
from tests.tiny import tiny_prepared

WRITER = """
import os, sys, time
from pathlib import Path
from fathomer.train.checkpoint import TrainingState
from tests.tiny import tiny_prepared

state = TrainingState.start(tiny_prepared().network)
state.keep_best(1)
state.save(Path(sys.argv[1]), {"number": 1})

def stall(_):
    print("writing", flush=True)
    time.sleep(600)

os.fsync = stall  # the next write stops here
state.save(Path(sys.argv[1]), {"number": 2})
"""


def test_sigkill_during_a_checkpoint_write_leaves_a_loadable_checkpoint(tmp_path):
    checkpoint = tmp_path / CHECKPOINT
    command = [sys.executable, "-c", WRITER, str(checkpoint)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout.readline() == "writing\n"
        writer.kill()
    _, values = load_checkpoint(checkpoint)
    assert values["settings"] == {"number": 1}
    TrainingState.resume(tiny_prepared().network, checkpoint, {"number": 1})
    assert len(list(tmp_path.iterdir())) == 2, "the write had not started"
    check_folder(tmp_path, resume=True)
    assert list(tmp_path.iterdir()) == [checkpoint]


def test_hidden_files_of_other_programs_are_left_alone(tmp_path):
    for name in ("README.md", ".README.md.swp", ".config.json.bak", ".config.json.0123abcd"):
        (tmp_path / name).touch()
    with pytest.raises(ArtifactError, match="holds other files"):
        check_folder(tmp_path, resume=False)
    assert len(list(tmp_path.iterdir())) == 4


def test_the_leftover_of_a_killed_first_write_is_removed(tmp_path):
    (tmp_path / f".{CHECKPOINT}.0123abcd").touch()
    check_folder(tmp_path, resume=False)
    assert list(tmp_path.iterdir()) == []


def test_the_time_before_a_stop_is_counted(tmp_path):
    checkpoint = tmp_path / "checkpoint"
    state = TrainingState.start(tiny_prepared().network)
    state.keep_best(1)
    state.began -= 1000
    state.save(checkpoint, {})
    resumed = TrainingState.resume(tiny_prepared().network, checkpoint, {})
    assert 1000 < resumed.seconds < 1100


def test_a_checkpoint_without_its_values_is_refused(tmp_path):
    path = tmp_path / "checkpoint"
    path.write_bytes(safetensors.torch.save({}, metadata={"values": "{}"}))
    with pytest.raises(ArtifactError, match=r"not a readable checkpoint .'settings'.; delete it"):
        TrainingState.resume(tiny_prepared().network, path, {})
