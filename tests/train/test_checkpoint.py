"""Checkpoints: readable even if the process is killed while it writes one."""

import os
import time
from hashlib import sha256
from random import Random

import pytest
import safetensors.torch

from fathomer.errors import ArtifactError
from fathomer.train.checkpoint import TrainingState, load_checkpoint, other_threads
from fathomer.train.folder import CHECKPOINT, check_folder
from tests.forked import CONTEXT
from tests.tiny import tiny_prepared


def write_twice(checkpoint, writing):
    """Save a checkpoint, and stop in the middle of saving the next."""
    state = TrainingState.start(tiny_prepared().network)
    state.keep_best(1)
    state.save(checkpoint, {"number": 1})

    def stall(_):
        writing.set()
        time.sleep(600)

    os.fsync = stall
    state.save(checkpoint, {"number": 2})


def test_sigkill_during_a_checkpoint_write_leaves_a_loadable_checkpoint(tmp_path):
    checkpoint = tmp_path / CHECKPOINT
    writing = CONTEXT.Event()
    writer = CONTEXT.Process(target=write_twice, args=(checkpoint, writing))
    writer.start()
    assert writing.wait(300)
    writer.kill()
    writer.join()
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
    content = safetensors.torch.save({}, metadata={"values": "{}"})
    path.write_bytes(content + sha256(content).digest())
    with pytest.raises(ArtifactError, match=r"not a readable checkpoint .'settings'.; delete it"):
        TrainingState.resume(tiny_prepared().network, path, {})


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Return the bytes of a checkpoint."""
    path = tmp_path_factory.mktemp("run") / CHECKPOINT
    state = TrainingState.start(tiny_prepared().network)
    state.keep_best(1)
    state.save(path, {"number": 1})
    return path.read_bytes()


@pytest.mark.parametrize("seed", range(20))
def test_a_damaged_checkpoint_is_refused_in_one_line(saved, tmp_path, seed):
    random, content = Random(seed), bytearray(saved)
    place = random.randrange(len(content))
    if seed % 4 == 0:
        del content[place:]
    elif seed % 4 == 1:
        content += bytes(8)
    else:
        content[place] ^= 1 << random.randrange(8)
    (tmp_path / CHECKPOINT).write_bytes(content)
    with pytest.raises(
        ArtifactError, match=r"not a readable checkpoint .it is damaged.; delete it"
    ):
        TrainingState.resume(tiny_prepared().network, tmp_path / CHECKPOINT, {"number": 1})


def test_another_number_of_threads_is_said(saved, tmp_path, monkeypatch):
    (tmp_path / CHECKPOINT).write_bytes(saved)
    assert other_threads(tmp_path / CHECKPOINT) is None
    monkeypatch.setattr("torch.get_num_threads", lambda: 7)
    assert "now there are 7; the result may differ" in other_threads(tmp_path / CHECKPOINT)


def test_a_kill_during_the_check_of_a_folder_does_not_lock_it(tmp_path):
    for name in (".probe", "..probe.0123abcd"):
        (tmp_path / "model").mkdir(exist_ok=True)
        (tmp_path / "model" / name).touch()
        check_folder(tmp_path / "model", resume=False)
        assert not list((tmp_path / "model").iterdir())


def test_the_leftover_of_a_killed_replacement_is_removed(tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / ".model.0123abcd").mkdir()
    (tmp_path / ".model.0123abcd" / "config.json").touch()
    check_folder(tmp_path / "model", resume=False)
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
