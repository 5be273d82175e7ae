"""The training loop: reproducible, resumable at any point, and robust against a loss that is not finite."""

import hashlib
import math
from dataclasses import replace
from itertools import count

import pytest
import safetensors.torch
import torch

from fathomer.data.examples import Example, Examples
from fathomer.errors import ArtifactError, ConfigError, MissingFileError, TrainingError
from fathomer.model.graph import WordBatch
from fathomer.model.inference import classify
from fathomer.train.checkpoint import EpochDone, TrainingState, trained_weights
from fathomer.train.depth_targets import with_depth_targets
from fathomer.train.fit import fit
from fathomer.train.folder import CHECKPOINT
from fathomer.train.loop import (
    RolledBack,
    StepDone,
    score_network,
    train,
    train_steps,
)
from fathomer.train.losses import DEPTH_NOISE, text_losses, with_noise
from fathomer.train.prepare import prepare
from tests.tiny import TINY, tiny_examples, tiny_prepared

EPOCHS = TINY.train.epochs


def recipe_with(**settings):
    return TINY.updated({"train": settings})


def weights_hash(network):
    return hashlib.sha256(safetensors.torch.save(network.state_dict())).hexdigest()


def trained(recipe=TINY):
    prepared = tiny_prepared(recipe)
    state = TrainingState.start(prepared.network)
    return state, list(train(state, prepared))


def test_training_twice_gives_bit_identical_weights():
    assert weights_hash(trained()[0].network) == weights_hash(trained()[0].network)


def test_two_threads_give_the_same_weights_every_time():
    """The sizes are large enough for PyTorch to use both threads."""
    sizes = {"hidden_size": 96, "word_size": 64, "depth_size": 32}
    recipe = recipe_with(epochs=1, batch_words=400).updated({"model": sizes})
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        hashes = {weights_hash(trained(recipe)[0].network) for _ in range(3)}
    finally:
        torch.set_num_threads(before)
    assert len(hashes) == 1


def test_another_seed_gives_different_weights():
    assert weights_hash(trained()[0].network) != weights_hash(
        trained(recipe_with(seed=1))[0].network
    )


def test_training_learns():
    _, events = trained(recipe_with(epochs=20))
    epochs = [event for event in events if isinstance(event, EpochDone)]
    assert epochs[-1].loss < 0.5 * epochs[0].loss
    assert max(epoch.held_out["accuracy"] for epoch in epochs) >= 0.9


def test_the_best_epoch_is_kept_or_the_last():
    best, _ = trained(recipe_with(epochs=12, learning_rate=0.1))
    last, _ = trained(recipe_with(epochs=12, learning_rate=0.1, keep="last"))
    assert (best.best_epoch < 12, last.best_epoch) == (True, 12)
    assert weights_hash(best.network) != weights_hash(last.network)


def test_training_does_not_touch_the_global_random_state():
    torch.manual_seed(7)
    before = torch.get_rng_state()
    trained()
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("stop_after", range(1, EPOCHS))
def test_a_run_resumed_after_any_epoch_ends_like_an_uninterrupted_one(tmp_path, stop_after):
    checkpoint = tmp_path / CHECKPOINT
    prepared = tiny_prepared()
    state = TrainingState.start(prepared.network)
    for event in train(state, prepared, checkpoint=checkpoint):
        if isinstance(event, EpochDone) and event.epoch == stop_after:
            break
    resumed = tiny_prepared()
    state = TrainingState.resume(resumed.network, checkpoint, {})
    events = list(train(state, resumed, checkpoint=checkpoint))
    straight, _ = trained()
    assert sum(isinstance(event, EpochDone) for event in events) == EPOCHS - stop_after
    assert weights_hash(state.network) == weights_hash(straight.network)
    assert state.history == straight.history


def test_a_run_stopped_inside_an_epoch_repeats_that_epoch(tmp_path):
    checkpoint = tmp_path / CHECKPOINT
    prepared = tiny_prepared()
    state = TrainingState.start(prepared.network)
    for event in train(state, prepared, checkpoint=checkpoint):
        if isinstance(event, StepDone) and (event.epoch, event.step) == (3, 2):
            break
    resumed = tiny_prepared()
    state = TrainingState.resume(resumed.network, checkpoint, {})
    list(train(state, resumed))
    assert weights_hash(state.network) == weights_hash(trained()[0].network)


def test_the_weights_of_the_best_epoch_are_kept():
    state, _ = trained(recipe_with(epochs=6, learning_rate=0.05))
    best = max(state.history, key=lambda e: (e.held_out["accuracy"], -e.held_out["loss"]))
    assert state.best_epoch == best.epoch
    for name, weight in state.network.named_parameters():
        assert torch.equal(weight, state.best_weights[name])


def test_without_a_held_out_part_the_last_epoch_is_kept():
    state, _ = trained(recipe_with(held_out=0.0))
    assert state.best_epoch == EPOCHS
    assert all(epoch.held_out is None for epoch in state.history)


def test_patience_ends_a_run_that_does_not_improve():
    state, _ = trained(recipe_with(epochs=30, patience=2, learning_rate=0.0))
    assert len(state.history) == 3
    assert state.best_epoch == 1


def test_no_epoch_begins_that_would_not_end_in_time(monkeypatch):
    """Three epochs of 20 seconds fit into a minute, a fourth does not."""
    monkeypatch.setattr(TrainingState, "seconds", property(lambda state: 20 * len(state.history)))
    state, _ = trained(recipe_with(epochs=10, minutes=1.0))
    assert len(state.history) == 3
    assert len(trained(recipe_with(epochs=5, minutes=0.0))[0].history) == 5, "0 sets no limit"


def test_time_that_runs_out_inside_an_epoch_ends_it_after_the_next_step(monkeypatch):
    clock = count(1)  # a second per step
    monkeypatch.setattr(TrainingState, "seconds", property(lambda _: next(clock)))
    state, events = trained(recipe_with(minutes=1.5 / 60))
    assert [type(event) for event in events] == [StepDone, StepDone, EpochDone]
    assert events[0].steps > 2
    assert state.best_epoch == 1
    assert not state.network.training


class Breaking(torch.nn.Module):
    """A hook that replaces the logits by nan at the given calls of the forward pass."""

    def __init__(self, network, calls):
        super().__init__()
        self.calls, self.count = calls, 0
        network.output.register_forward_hook(self.break_logits)

    def break_logits(self, module, inputs, output):
        self.count += 1
        return output * math.nan if module.training and self.count in self.calls else output


def test_a_loss_that_is_not_finite_rolls_back_to_the_last_good_state():
    prepared = tiny_prepared()
    Breaking(prepared.network, calls={2})
    state = TrainingState.start(prepared.network)
    events = train(state, prepared)
    assert isinstance(next(events), StepDone)
    fresh = tiny_prepared().network
    rolled_back = next(events)
    assert rolled_back == RolledBack(1, 2, TINY.train.learning_rate / 2)
    assert weights_hash(state.network) == weights_hash(fresh)
    assert not state.optimiser.state
    list(events)
    assert len(state.history) == EPOCHS
    assert all(math.isfinite(epoch.loss) for epoch in state.history)
    assert state.rollbacks == 1


def test_a_loss_that_is_never_finite_ends_training_with_advice():
    prepared = tiny_prepared()
    Breaking(prepared.network, calls=range(1000))
    with pytest.raises(
        TrainingError, match=r"loss or its gradient is not finite.*lower train\.learning_rate"
    ):
        list(train(TrainingState.start(prepared.network), prepared))


def test_the_learning_rate_decays_with_the_steps():
    rates = [epoch.learning_rate for epoch in trained()[0].history]
    first = TINY.train.learning_rate
    assert rates == sorted(rates, reverse=True)
    assert rates[-1] == pytest.approx(first * TINY.train.decay_to)


def test_gradients_are_clipped():
    clipped, _ = trained(recipe_with(clip=1e-9, learning_rate=0.001))
    assert clipped.history[-1].loss == pytest.approx(clipped.history[0].loss, abs=0.1)
    free, wide = (trained(recipe_with(clip=clip))[0].network for clip in (0, 1e9))
    assert weights_hash(free) == weights_hash(wide), "0 means no clipping, not no learning"


def test_label_smoothing_raises_the_lowest_possible_loss():
    plain, _ = trained(recipe_with(epochs=12))
    smooth, _ = trained(recipe_with(epochs=12, label_smoothing=0.3))
    assert plain.history[-1].loss < 0.3 < smooth.history[-1].loss


def test_fixed_vectors_stay_fixed(tmp_path):
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("good 1 2 3\nbad -1 -2 -3\nfilm 0 0.5 1\n", encoding="utf-8")
    artifact = fit(tiny_examples(), TINY, vectors=vectors).artifact
    fresh = prepare(tiny_examples(), TINY, vectors=vectors).network
    trained = artifact.network
    assert torch.equal(trained.embedding.word.weight, fresh.embedding.word.weight)
    assert not torch.equal(trained.output.weight, fresh.output.weight)
    assert trained.embedding.word.weight[0].tolist() == [0, 0, 0]  # the centre, for unknown words
    assert (trained.config.fixed_words, trained.config.word_size) == (True, 3)


def test_what_was_subtracted_from_the_vectors_is_recorded(tmp_path):
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("good 1 2 3\nbad -1 -2 -3\nfilm 1 0.5 1\n", encoding="utf-8")
    artifact = fit(tiny_examples(), TINY, vectors=vectors).artifact
    found = artifact.metrics["vectors"]
    good = artifact.network.embedding.word.weight[artifact.tokenizer.id_of("good")]
    restored = good / found["scale"] + torch.tensor(found["subtracted"])
    torch.testing.assert_close(restored, torch.tensor([1.0, 2.0, 3.0]), atol=1e-5, rtol=0)


def interrupt_after(epoch):
    def watch(events):
        for event in events:
            yield event
            if isinstance(event, EpochDone) and event.epoch == epoch:
                raise KeyboardInterrupt

    return watch


def test_ctrl_c_keeps_the_best_epoch_and_the_run_can_be_resumed(tmp_path):
    stopped = fit(tiny_examples(), TINY, folder=tmp_path, watch=interrupt_after(2))
    assert stopped.interrupted
    assert stopped.artifact.metrics["epochs"] == 2
    assert not stopped.artifact.network.training
    resumed = fit(tiny_examples(), TINY, folder=tmp_path, resume=True)
    straight = fit(tiny_examples(), TINY)
    assert not resumed.interrupted
    assert weights_hash(resumed.artifact.network) == weights_hash(straight.artifact.network)


def test_a_watcher_that_stops_early_gets_the_best_epoch():
    def watch(events):
        for event in events:
            yield event
            if event.epoch == 3 and isinstance(event, StepDone):
                return

    recipe = recipe_with(calibrate=False)
    artifact = fit(tiny_examples(), recipe, watch=watch).artifact
    assert artifact.metrics["epochs"] == 2
    prepared = tiny_prepared(recipe)
    found = score_network(artifact.network, prepared.held_out, prepared)
    assert found.to_dict() == artifact.metrics["held_out"]


def test_ctrl_c_before_the_end_of_the_first_epoch_is_raised():
    def watch(events):
        yield next(events)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(tiny_examples(), TINY, watch=watch)


def test_a_run_cannot_be_resumed_with_other_settings(tmp_path):
    fit(tiny_examples(), TINY, folder=tmp_path, watch=interrupt_after(1))
    with pytest.raises(ConfigError, match=r"was made with train\.epochs = 4, now it is 9; use"):
        fit(tiny_examples(), recipe_with(epochs=9), folder=tmp_path, resume=True)


def test_a_run_cannot_be_resumed_with_other_data(tmp_path):
    fit(tiny_examples(), TINY, folder=tmp_path, watch=interrupt_after(1))
    examples = tiny_examples()
    other = replace(examples, items=[examples.items[-1], *examples.items[1:]])
    with pytest.raises(ConfigError, match=r"was made with data = "):
        fit(other, TINY, folder=tmp_path, resume=True)


def test_resuming_without_a_checkpoint_is_an_error(tmp_path):
    with pytest.raises(MissingFileError, match="no checkpoint to resume from"):
        fit(tiny_examples(), TINY, folder=tmp_path, resume=True)


def test_a_damaged_checkpoint_is_refused(tmp_path):
    (tmp_path / CHECKPOINT).write_bytes(b"not a checkpoint")
    with pytest.raises(ArtifactError, match="not a readable checkpoint"):
        fit(tiny_examples(), TINY, folder=tmp_path, resume=True)


def test_training_in_bfloat16_learns():
    recipe = TINY.updated({"train": {"precision": "bfloat16", "epochs": 8}})
    artifact = fit(tiny_examples(), recipe).artifact
    assert artifact.metrics["held_out"]["accuracy"] > 0.9
    weights = artifact.network.state_dict()
    assert weights["slstm.window.weight"].dtype == torch.float32
    exact = fit(tiny_examples(), TINY.updated({"train": {"epochs": 8}})).artifact.network
    assert not torch.equal(weights["slstm.window.weight"], exact.slstm.window.weight)


def test_a_missing_device_is_named():
    with pytest.raises(ConfigError, match="there is no device 'cuda:99' here; use cpu"):
        fit(tiny_examples(), TINY, device="cuda:99")


def test_every_text_counts_the_same_however_long_it_is(monkeypatch):
    """The gradients of an epoch at frozen weights add up to that of the plain average."""
    texts = [("good " if n % 2 else "bad ") * (1 + n % 13) for n in range(60)]
    examples = Examples([Example(text, text.split()[0]) for text in texts])
    recipe = TINY.updated(
        {
            "model": {"depth": "full", "word_dropout": 0.0, "hidden_dropout": 0.0},
            "train": {"clip": 0.0, "batch_words": 40},
        }
    )
    prepared = prepare(examples, recipe)
    network = prepared.network
    state = TrainingState.start(network)
    sums = {name: torch.zeros_like(w) for name, w in trained_weights(network).items()}

    def keep_gradients(*_, **__):
        for name, weight in trained_weights(network).items():
            sums[name] += weight.grad

    monkeypatch.setattr(state.optimiser, "step", keep_gradients)
    steps = list(train_steps(state, prepared))
    assert len({step.texts for step in steps}) > 3
    data = prepared.train
    batch = WordBatch.from_packed(data.texts.pack(range(len(data))))
    losses = text_losses(network(batch).logits, torch.from_numpy(data.targets), 0.0)
    network.zero_grad()
    losses.mean().backward()
    for name, weight in trained_weights(network).items():
        torch.testing.assert_close(sums[name] / len(steps), weight.grad, rtol=1e-4, atol=1e-6)


SUPERVISED = TINY.updated({"model": {"depth": "supervised"}})


def supervised_step(monkeypatch, *, weight):
    """Return the gradients of one step of a network with supervised depth."""
    monkeypatch.setattr("fathomer.train.loop.DEPTH_WEIGHT", weight)
    prepared = with_depth_targets(tiny_prepared(SUPERVISED))
    state = TrainingState.start(prepared.network)
    next(train_steps(state, prepared))
    return {name: parameter.grad for name, parameter in prepared.network.named_parameters()}


def test_the_supervision_of_depth_reaches_both_layers_of_the_classifier(monkeypatch):
    without = supervised_step(monkeypatch, weight=0.0)
    found = supervised_step(monkeypatch, weight=0.5)
    for name in ("depth.inner.weight", "depth.scores.weight", "depth.scores.bias"):
        assert not torch.equal(found[name], without[name]), name
    assert torch.count_nonzero(without["depth.scores.bias"]) == 0
    assert torch.count_nonzero(found["depth.scores.bias"]) == 4
    assert torch.equal(found["output.weight"], without["output.weight"]), "same depths, same loss"


def test_the_depth_classifier_learns_the_targets():
    prepared = with_depth_targets(tiny_prepared(SUPERVISED.updated({"train": {"epochs": 30}})))
    state = TrainingState.start(prepared.network)
    events = list(train(state, prepared))
    answers = classify(state.network, prepared.train.texts, batch_words=60)
    assert (answers.depths == prepared.train.depths).mean() > 0.85
    assert events[-1].held_out["accuracy"] >= 0.9


def test_words_take_their_target_depth_or_now_and_then_a_random_one():
    torch.manual_seed(0)
    wanted = torch.full((10_000,), 2)
    taken = with_noise(wanted, 4)
    shares = torch.bincount(taken, minlength=5)[1:] / len(taken)
    random = DEPTH_NOISE / 4
    expected = torch.tensor([random, 1 - DEPTH_NOISE + random, random, random])
    torch.testing.assert_close(shares, expected, rtol=0, atol=0.02)


@pytest.mark.parametrize("target", ["mi", "oracle"])
def test_a_resumed_run_with_supervised_depth_ends_like_an_uninterrupted_one(tmp_path, target):
    recipe = SUPERVISED.updated({"train": {"epochs": 2, "depth_target": target}})

    def stop(events):
        for event in events:
            yield event
            if isinstance(event, EpochDone):
                raise KeyboardInterrupt

    straight = fit(tiny_examples(), recipe).artifact.network
    fit(tiny_examples(), recipe, folder=tmp_path, watch=stop)
    resumed = fit(tiny_examples(), recipe, folder=tmp_path, resume=True).artifact.network
    assert weights_hash(resumed) == weights_hash(straight)
