"""Several processes: each batch is divided by words, and they train as one process would."""

import json
import os
import shutil
import signal
import sys
from pathlib import Path

import numpy as np
import psutil
import pytest
import torch

from fathomer.data.examples import Examples
from fathomer.errors import ConfigError
from fathomer.train.checkpoint import TrainingState, load_checkpoint, trained_weights
from fathomer.train.depth_targets import with_depth_targets
from fathomer.train.fit import fit
from fathomer.train.folder import CHECKPOINT
from fathomer.train.loop import StepDone, add_gradients
from fathomer.train.processes import ALONE, Processes, divide, join_processes
from tests.forked import Forked, gone, run_forked
from tests.tiny import TINY, tiny_examples, tiny_prepared, write_csv

STEADY = {"model": {"word_dropout": 0.0, "hidden_dropout": 0.0, "depth": "full"}}
"""Settings without random numbers, which depend on how a batch is divided."""


class WithBatchesOfTwo(Processes):
    """A single process that takes the batches which two would divide."""

    count = 2


def test_a_batch_is_divided_by_words():
    lengths = np.random.default_rng(0).integers(1, 40, 60)
    divided = divide(range(60), lengths, 3)
    assert sorted(index for part in divided for index in part) == list(range(60))
    words = [lengths[part].sum() for part in divided]
    assert max(words) - min(words) <= 2


def test_there_can_be_more_processes_than_texts():
    assert divide([4], np.full(9, 7), 3) == [[4], [], []]
    assert sorted(map(len, divide([0, 1, 2], np.zeros(3, dtype=int), 2))) == [1, 2]


@pytest.mark.parametrize("depth", ["full", "supervised"])
@pytest.mark.parametrize("parts", [1, 2, 3])
def test_the_gradients_of_the_parts_add_up_to_those_of_the_batch(parts, depth, monkeypatch):
    monkeypatch.setattr("fathomer.train.losses.DEPTH_NOISE", 0.0)
    recipe = TINY.updated(STEADY).updated({"model": {"depth": depth}})
    prepared = with_depth_targets(tiny_prepared(recipe))
    data, state = prepared.train, TrainingState.start(prepared.network)

    def gradients(indices):
        sums = add_gradients(state, data, indices, TINY.train, mean_texts=5.0)
        found = trained_weights(state.network).values()
        return sums, [torch.zeros_like(w) if w.grad is None else w.grad.clone() for w in found]

    whole = gradients(range(11))
    added = [gradients(part) for part in divide(range(11), data.texts.lengths, parts)]
    assert torch.allclose(whole[0], sum(sums for sums, _ in added))
    for expected, *found in zip(whole[1], *(each for _, each in added), strict=True):
        assert torch.allclose(expected, sum(found), atol=1e-6)


def test_one_process_is_not_asked_for_anything():
    with join_processes(None, device="cpu") as alone, join_processes(1, device="cpu") as one:
        assert alone is one is ALONE


def command(*options):
    """Return a training command."""
    return [
        *(sys.executable, "-m", "fathomer", "train", "data.csv", "--out", "model"),
        *("--recipe", "tiny.toml", "--no-baseline", *options),
    ]


def write_run(folder, settings, examples=None):
    recipe = TINY.updated(settings)
    (folder / "tiny.toml").write_text(recipe.to_toml(), encoding="utf-8")
    write_csv(folder / "data.csv", examples or tiny_examples())
    return recipe


def losses(folder, name="model"):
    lines = (folder / name / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["loss"] for line in lines]


def train_on(folder, *options):
    """Run the training command; return exit code, standard output and standard error."""
    with Forked(*command(*options)[3:], folder=folder, pipes=True) as process:
        printed, shown = process.stdout.read(), process.stderr.read()
    return process.returncode, printed, shown


@pytest.mark.parametrize("launcher", ["--processes", "torchrun"])
def test_two_processes_have_the_losses_of_one(tmp_path, launcher):
    """More than 50 steps of float32, with texts of many lengths."""
    text = " ".join(f"word{number}" for number in range(40))
    examples = tiny_examples(80)
    longer = [e._replace(text=f"{e.text} {text[: 7 * (n % 9)]}") for n, e in enumerate(examples)]
    examples = Examples(longer)
    recipe = write_run(tmp_path, STEADY | {"train": {"epochs": 5}}, examples)
    if launcher == "torchrun":
        arguments = command()
        arguments[1:1] = ["-m", "torch.distributed.run", "--nproc-per-node", "2"]
        done = run_forked(arguments[1:], tmp_path)
        code, out, err = done.returncode, done.stdout, done.stderr
    else:
        code, out, err = train_on(tmp_path, "--processes", "2")
    assert code == 0, err
    assert err.count("epoch 1/5") == out.count("the model is in model") == 1
    steps = []
    fit(
        examples,
        recipe,
        processes=WithBatchesOfTwo(),
        watch=lambda events: (steps.append(event) or event for event in events),
    )
    epochs = [event.loss for event in steps if not isinstance(event, StepDone)]
    assert sum(isinstance(event, StepDone) for event in steps) >= 50
    assert losses(tmp_path) == pytest.approx(epochs, abs=1e-4)
    metrics = json.loads((tmp_path / "model" / "metrics.json").read_text(encoding="utf-8"))
    assert metrics["processes"] == 2


def test_vectors_bfloat16_balance_and_ngrams_work_on_three_processes(tmp_path):
    words = {word for text in tiny_examples().texts for word in text.lower().split()}
    vectors = "".join(f"{word} 0.5 {len(word)} -1\n" for word in sorted(words))
    (tmp_path / "v.txt").write_text(vectors, encoding="utf-8")
    train = {"precision": "bfloat16", "class_weight": "balanced", "batch_words": 12, "epochs": 1}
    write_run(tmp_path, {"model": {"ngrams": True}, "train": train})
    code, _, err = train_on(tmp_path, "--processes", "3", "--vectors", "v.txt")
    assert code == 0, err
    assert err.count("v.txt covers ") == 1


@pytest.fixture
def started(tmp_path):
    """Start a long training on two processes, and wait for the end of its second epoch."""
    write_run(tmp_path, {"train": {"epochs": 400}})
    with Forked(*command("--processes", "2")[3:], folder=tmp_path) as process:
        lines = iter(process.stderr.readline, "")
        assert any(line.startswith("epoch 2/") for line in lines)
        [other] = psutil.Process(process.pid).children()
        yield process, other
        process.kill()
        assert gone(other.pid)


def last_epoch(folder):
    _, values = load_checkpoint(folder / "model" / CHECKPOINT)
    return len(values["history"])


def test_ctrl_c_keeps_the_model_and_one_process_resumes_it(started, tmp_path):
    process, other = started
    for pid in (other.pid, process.pid):  # as torchrun does
        os.kill(pid, signal.SIGINT)
    rest = process.stderr.read()
    assert process.wait() == 130
    saved = "Stopped: model holds the model so far; the same command with --resume continues.\n"
    assert rest.endswith(saved)
    assert rest.count("\n") == rest.count("epoch ") + 1
    done = last_epoch(tmp_path)
    with Forked(*command("--resume")[3:], folder=tmp_path) as resumed:
        assert any(line.startswith(f"epoch {done + 1}/400") for line in resumed.stderr)
        resumed.kill()


@pytest.mark.parametrize("first", [True, False], ids=["first", "second"])
def test_a_killed_process_ends_all_with_one_line(started, first, tmp_path):
    process, other = started
    os.kill(process.pid if first else other.pid, signal.SIGKILL)
    rest = process.stderr.read()
    assert process.wait() == (-signal.SIGKILL if first else 2)
    [line] = [line for line in rest.splitlines() if not line.startswith("epoch ")]
    assert line == (
        "fathomer: a training process has ended unexpectedly; model holds a checkpoint, the same "
        "command with --resume continues"
    )
    assert last_epoch(tmp_path) >= 2


def test_a_run_of_one_process_is_resumed_on_two(tmp_path):
    """Everything that the second process needs is sent to it, also Adam's moments."""
    # 54 words are nine texts: one process and two have other batches.
    recipe = write_run(tmp_path, STEADY | {"train": {"epochs": 4, "batch_words": 54}})

    def stop_after_two(events):
        for event in events:
            yield event
            if getattr(event, "held_out", None) and event.epoch == 2:
                raise KeyboardInterrupt

    fit(tiny_examples(), recipe, folder=tmp_path / "model", watch=stop_after_two)
    assert last_epoch(tmp_path) == 2
    copy = shutil.copytree(tmp_path / "model", tmp_path / "copy")
    two = WithBatchesOfTwo()
    alone = fit(tiny_examples(), recipe, folder=copy, resume=True, processes=two).artifact
    code, _, err = train_on(tmp_path, "--processes", "2", "--resume")
    assert code == 0, err
    expected = [epoch["loss"] for epoch in alone.metrics["history"]]
    assert losses(tmp_path) == pytest.approx(expected, abs=1e-4)


def test_arrays_of_any_kind_and_size_reach_the_other_process():
    done = run_forked(["-m", "tests.train.pair"], Path(__file__).parents[2])
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(done.stdout.split()) == ["0", "1"]


def test_models_without_steps_are_trained_on_one_process(run, tmp_path):
    write_run(tmp_path, {})
    code, _, err = run(*command("--processes", "2", "--model", "tfidf")[3:])
    assert code == 2
    assert err.splitlines()[-1] == (
        "fathomer: the model tfidf is fitted in one go; train it on one process"
    )


def test_torchrun_and_the_option_exclude_each_other(monkeypatch):
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "1")
    with pytest.raises(ConfigError, match="leave --processes out"), join_processes(2, device="cpu"):
        pass
