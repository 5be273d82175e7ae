"""The benchmark: its rows, its ratios, and the command."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from benchmarks import speed as bench_module
from benchmarks import systems as contestants
from benchmarks.speed import COMPLETE, Plan, compute_ratios, enter, key_of, ratios_of
from benchmarks.systems import Field, bare_products, one_by_one, time_inside
from benchmarks.timing import Times, make_row
from benchmarks.workloads import TREC, Lengths, make_workload
from fathomer.config import ModelConfig
from fathomer.model import WordBatch
from fathomer.model.interface import trainable_parameters
from fathomer.model.steps import Steps

RATIOS = {
    "vs_dense_padded_d3", "vs_full_d3", "vs_full_d2", "transition_vs_products_b32_d3",
    "vs_bilstm_b32_d2", "vs_bilstm_b32_d2_int8", "vs_bilstm_b1_d2", "vs_bilstm_b1_d2_int8",
    "vs_transformer_b32_d3", "vs_transformer_b32_d3_int8", "vs_transformer_b1_d2_int8",
    "int8_vs_float32_b32_d3", "train_vs_predict", "time_per_word_64k_vs_4k",
}  # fmt: skip
KEYS = {
    "name", "batch", "lengths", "mean_depth", "precision", "words_per_second", "milliseconds",
    "peak_mb",
}  # fmt: skip
TINY = Plan(
    model=ModelConfig(
        vocab_size=300, num_labels=2, word_size=6, char_size=4, char_input_size=3, depth_size=4,
        hidden_size=8, fixed_words=True, word_dropout=0, hidden_dropout=0,
    ),
    rounds=2, seconds=0, complete=False, alone=2, few_words=45, many_words=90,
    reviews=Lengths("imdb", 2.7, 0.5, 2, 60),
)  # fmt: skip


@pytest.fixture
def quantised(monkeypatch):
    """Pretend that int8 exists: the network itself stands in."""
    monkeypatch.setattr(contestants, "quantised_network", lambda network: network)


@pytest.fixture(scope="module")
def field():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(contestants, "quantised_network", lambda network: network)
        return Field(TINY.model)


def rows_with(speeds, field, plan=TINY):
    """Give every contestant a row; ``speeds`` names the seconds of some."""
    entered = enter(field, plan)
    return [
        make_row(replace(each, words=1000), Times(None, [speeds.get(key_of(each), 1.0)] * 2))
        for each in entered
    ]


def test_a_quick_run_measures_all_ratios(run, monkeypatch, quantised):
    monkeypatch.setattr(bench_module, "QUICK", TINY)
    code, out, err = run("bench", "--quick", "--json", "--out", "speed.json", "--plot", "charts")
    assert code == 0, err
    found = json.loads(out)
    assert set(found) == {"machine", "rows", "ratios"}
    assert set(found["ratios"]) == RATIOS
    assert all(ratio > 0 for ratio in found["ratios"].values())
    assert all(set(row) > KEYS for row in found["rows"])
    assert "round 2/2" in err
    assert json.loads(Path("speed.json").read_text(encoding="utf-8")) == found
    for name in ("time-against-words", "time-against-depth", "words-per-second"):
        assert Path(f"charts/{name}.png").read_bytes().startswith(b"\x89PNG")


def test_without_int8_its_rows_are_missing_and_its_ratios_empty(field, monkeypatch):
    monkeypatch.setattr(field, "quantised", None)
    rows = rows_with({}, field)
    assert {row.precision for row in rows} == {"float32", None}
    ratios = compute_ratios(rows, TINY)
    assert {name for name, ratio in ratios.items() if ratio is None} == {
        name for name in RATIOS if "int8" in name
    }


def test_the_table_shows_rows_and_ratios_with_their_goals(run, monkeypatch, field):
    rows = [vars(row) for row in rows_with({}, field)]
    ratios = dict.fromkeys(RATIOS) | {"vs_full_d3": 3.125}
    machine = {
        "processor": "Abacus", "cores": 2, "threads": 2, "instruction_set": ["beads"],
        "torch": "2", "python": "3", "fathomer": "1",
    }  # fmt: skip
    found = {"machine": machine, "rows": rows, "ratios": ratios}
    monkeypatch.setattr(bench_module, "bench", lambda plan, tell: found)
    code, out, err = run("bench")
    assert (code, err) == (0, "")
    lines = [line.split() for line in out.splitlines()]
    assert ["dense", "padded", "float32", "imdb", "32", "9", "1,000", "1,000.00"] in [
        line[:8] for line in lines
    ]
    assert ["vs_full_d3", "3.12", "(at", "least", "3)"] in lines
    assert ["train_vs_predict", "-", "(at", "most", "3.5)"] in lines
    assert "Abacus, beads; 2 threads on 2 cores" in out


def test_ratios_compare_the_rows_that_their_names_say():
    rivals = {"bilstm": "bilstm", "transformer": "transformer", "dense": "dense padded"}
    for name, (first, second, *_) in ratios_of(COMPLETE).items():
        if name.startswith("vs_"):
            batch = 1 if "_b1_" in name else 32
            precision = "int8" if "int8" in name else "float32"
            assert first == ("fathomer", batch, 2 if "_d2" in name else 3, precision)
            rival = rivals.get(name.split("_")[1], "fathomer")
            depth = None if "transformer" in name or "bilstm" in name else 9
            assert second == (rival, batch, depth, "float32")
    others = {name: each[:2] for name, each in ratios_of(COMPLETE).items() if name[:3] != "vs_"}
    assert others == {
        "transition_vs_products_b32_d3": (
            ("bare products", 32, 3, "float32"),
            ("word transitions", 32, 3, "float32"),
        ),
        "int8_vs_float32_b32_d3": (("fathomer", 32, 3, "int8"), ("fathomer", 32, 3, "float32")),
        "train_vs_predict": (
            ("fathomer unfolded", 32, 3, "float32"),
            ("fathomer training", 32, 3, "float32"),
        ),
        "time_per_word_64k_vs_4k": (
            ("fathomer", 15, 3, "float32"),
            ("fathomer", 240, 3, "float32"),
        ),
    }


@pytest.mark.parametrize("name", sorted(RATIOS))
def test_a_ratio_compares_the_speeds_of_its_rows(name, field):
    ratio = ratios_of(TINY)[name]
    rows = rows_with({ratio.first: 0.5, ratio.second: 2.0}, field)
    assert compute_ratios(rows, TINY)[name] == 4.0


def test_a_complete_run_has_all_rows(field):
    entered = enter(field, replace(TINY, complete=True))
    keys = {(each.lengths, *key_of(each)) for each in entered}
    assert len(keys) == len(entered)
    for lengths in ("imdb", "trec"):
        for batch in (1, 32, 100):
            for depth in (1, 2, 3, 5, 9):
                for precision in ("float32", "int8"):
                    assert (lengths, "fathomer", batch, depth, precision) in keys
            assert (lengths, "bilstm", batch, None, "float32") in keys
            assert (lengths, "transformer", batch, None, "float32") in keys
            assert (lengths, "tokenizer", batch, None, None) in keys
        assert (lengths, "dense padded", 32, 9, "float32") in keys
    assert ("imdb", "transformer, one by one", 32, None, "float32") in keys
    assert ("imdb", "bilstm, our layers", 32, None, "float32") in keys
    trained = {each.name for each in entered if each.name.endswith(" training")}
    assert trained == {
        f"{name} training" for name in ("fathomer", "dense padded", "bilstm", "transformer")
    }


def test_quick_rows_are_among_the_complete_ones(field):
    quick, complete = (
        {(each.lengths, *key_of(each)) for each in enter(field, replace(TINY, complete=complete))}
        for complete in (False, True)
    )
    assert quick < complete


def test_every_contestant_runs_and_takes_time(field):
    workload = make_workload(TREC, batch=3, batches=2, vocabulary=300)
    entered = [
        field.predict(workload, 2), *field.predict_int8(workload, 2), field.predict_dense(workload),
        field.predict_unfolded(workload, 2), *field.predict_rivals(workload),
        field.train(workload, 2), *field.train_rivals(workload), field.transitions(workload, 2),
        field.products(workload, 2), field.tokenizer(workload), field.predict_one_by_one(workload),
        field.predict_own_layers(workload),
    ]  # fmt: skip
    for each in entered:
        assert each.run() > 0, each.name
        assert (each.batch, each.batches, each.words) == (3, 2, workload.words)


def test_the_bilstm_of_our_layers_is_about_as_large_as_fathomer(field):
    ours, rival = map(trainable_parameters, (field.network, field.own_layers))
    assert rival == pytest.approx(ours, rel=0.2), "of so small a network, in steps of two"


def test_one_by_one_every_text_gets_the_answer_of_the_batch(field):
    batch = WordBatch.from_ids([[1, 2, 3], [4], [5, 6]])
    depths, sizes = torch.tensor([1, 9, 2, 3, 1, 4]), []

    def classify(batch, depths):
        sizes.append(batch.num_texts)
        return field.network(batch, depths=depths).logits

    with torch.inference_mode():
        torch.testing.assert_close(
            one_by_one(classify)(batch, depths), classify(batch, depths), rtol=0, atol=1e-5
        )
    assert sizes == [1, 1, 1, 3]


def test_a_prediction_knows_nothing_of_its_batch_beforehand(field):
    workload = make_workload(TREC, batch=3, vocabulary=300)
    field.predict(workload, 2).run()
    assert set(vars(workload.batches[0])) == {"words", "lengths", "unknown"}


def test_training_leaves_the_networks_that_predict_alone(field):
    workload = make_workload(TREC, batch=3, vocabulary=300)
    for each in (field.train(workload, 2), *field.train_rivals(workload)):
        each.run()
    models = (field.network, field.dense, *field.rivals.values())
    assert all(p.grad is None for model in models for p in model.parameters())
    assert not any(model.training for model in models)


def test_the_bare_products_are_those_of_the_word_transitions():
    """Counted in multiply-adds; the transitions also multiply the sentence nodes' states."""
    field = Field(replace(TINY.model, hidden_size=16))  # where the first layer's fold pays
    workload = make_workload(TREC, batch=20, vocabulary=300)
    [batch], [depths] = workload.batches, workload.depths(3, max_depth=9)
    counted = []
    original = Steps.word_step

    def counting(steps, *arguments, **named):
        with FlopCounterMode(display=False) as counter:
            answer = original(steps, *arguments, **named)
        counted.append(counter.get_total_flops() - 2 * 20 * 16 * 7 * 16)
        return answer

    with pytest.MonkeyPatch.context() as patch, torch.no_grad():
        patch.setattr(Steps, "word_step", counting)
        field.network(batch, depths=depths)
    products = bare_products(field.network.config, depths)
    assert counted == [2 * rows.numel() * len(matrix) for rows, matrix, _ in products]


def test_the_time_inside_a_method_is_taken_and_the_method_restored():
    class Clock:
        def tick(self, times, *, fail=False):
            if fail:
                raise ValueError
            return times + 1

    tick = Clock.tick
    with time_inside(Clock, "tick") as seconds:
        assert Clock().tick(1) == 2
        with pytest.raises(ValueError, match=r"^$"):
            Clock().tick(1, fail=True)
    assert len(seconds) == 2
    assert min(seconds) >= 0
    assert Clock.tick is tick


@pytest.mark.parametrize(
    ("place", "told"),
    [
        ("nowhere/speed.json", "cannot be written (No such file or directory)"),
        (".", "is a folder; name a file"),
    ],
)
def test_a_place_that_cannot_be_written_is_told_before_the_work(run, place, told):
    code, out, err = run("bench", "--out", place)
    assert (code, out) == (2, "")
    assert err == f"fathomer: {place}: {told}\n"


def test_missing_matplotlib_is_told_before_the_work(run, monkeypatch):
    monkeypatch.setattr("fathomer.errors.find_spec", lambda name: None)
    code, _, err = run("bench", "--plot", "charts")
    assert code == 2
    assert err == "fathomer: a plot needs matplotlib: pip install 'fathomer[plots]'\n"
