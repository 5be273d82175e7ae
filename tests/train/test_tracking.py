"""The log of a run: one line per epoch, and on request a log for TensorBoard."""

import json

import pytest

from fathomer.errors import ArtifactError
from fathomer.train.checkpoint import EpochDone, TrainingState
from fathomer.train.fit import fit
from fathomer.train.folder import check_folder
from fathomer.train.loop import train
from fathomer.train.tracking import epoch_scalars, track
from tests.tiny import TINY, tiny_artifact, tiny_examples, tiny_prepared, write_csv


def lines(folder):
    content = (folder / "metrics.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in content.splitlines()]


def test_every_epoch_is_logged_as_soon_as_it_is_done(tmp_path):
    seen = []

    def watch(events):
        for event in events:
            yield event
            if isinstance(event, EpochDone):
                seen.append(len(lines(tmp_path)))

    artifact = fit(tiny_examples(), TINY, folder=tmp_path, watch=watch).artifact
    assert seen == [1, 2, 3, 4]
    assert lines(tmp_path) == artifact.metrics["history"]
    artifact.save(tmp_path)
    assert lines(tmp_path) == artifact.metrics["history"]


def test_words_are_counted_by_depth():
    held_out = tiny_artifact().metrics["held_out"]
    counts = held_out["words_by_depth"]
    assert counts[0] == 0
    assert len(counts) <= 5
    mean = sum(depth * count for depth, count in enumerate(counts)) / sum(counts)
    assert held_out["mean_depth"] == pytest.approx(mean)


def test_tensorboard_reads_scores_and_depths(tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    prepared = tiny_prepared()
    state = TrainingState.start(prepared.network)
    list(track(train(state, prepared), tmp_path))
    found = EventAccumulator(str(tmp_path), size_guidance={"scalars": 0, "histograms": 0}).Reload()
    accuracies = [point.value for point in found.Scalars("held_out/accuracy")]
    assert accuracies == pytest.approx([epoch.held_out["accuracy"] for epoch in state.history])
    assert set(found.Tags()["scalars"]) == set(epoch_scalars(state.history[0]))
    histogram = found.Histograms("held_out/depth")[-1].histogram_value
    assert histogram.num == sum(state.history[-1].held_out["words_by_depth"])


def test_the_command_tracks_only_on_request(run, tmp_path):
    pytest.importorskip("tensorboard")
    write_csv(tmp_path / "data.csv", tiny_examples())
    (tmp_path / "tiny.toml").write_text(TINY.to_toml(), encoding="utf-8")
    command = ("train", "data.csv", "--out", "m", "--recipe", "tiny.toml")
    assert run(*command)[0] == 0
    assert not (tmp_path / "m" / "tensorboard").exists()
    code, _, err = run(*command, "--track", "tensorboard", "--overwrite")
    assert code == 0, err
    assert len(list((tmp_path / "m" / "tensorboard").iterdir())) == 1
    code, _, err = run(*command, "--track", "tensorbord", "--overwrite")
    assert code == 2
    assert err == "fathomer: --track tensorbord: did you mean 'tensorboard'?\n"


def test_a_tracked_run_without_an_epoch_can_be_started_again(tmp_path):
    (tmp_path / "m" / "tensorboard").mkdir(parents=True)
    check_folder(tmp_path / "m", resume=False)
    (tmp_path / "m" / "notes.txt").touch()
    with pytest.raises(ArtifactError, match="holds other files"):
        check_folder(tmp_path / "m", resume=False)


def test_a_missing_package_is_named_before_training(run, monkeypatch):
    monkeypatch.setattr("fathomer.errors.find_spec", lambda name: None)
    code, out, err = run("train", "demo", "--out", "m", "--track", "tensorboard")
    assert (code, out) == (2, "")
    assert err.startswith("fathomer: --track needs tensorboard: pip install 'fathomer[track]', or")
