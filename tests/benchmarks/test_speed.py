"""The speed benchmark: its cases, its ratios and its command."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from benchmarks import speed as speed_module
from benchmarks import systems as systems_module
from benchmarks.speed import COMPLETE, SpeedPlan, compute_ratios, key_of, ratios_of, select_cases
from benchmarks.systems import Systems, bare_products, one_by_one
from benchmarks.timing import Timings, summarise
from benchmarks.workloads import TREC, Lengths, make_workload
from fathomer.config import ModelConfig
from fathomer.model import WordBatch
from fathomer.model.fast import fast_network
from fathomer.model.fast.steps import AdaptiveSteps
from fathomer.model.interface import trainable_parameters
from tests.model.test_sparsity import CountRows

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
TINY = SpeedPlan(
    model=ModelConfig(
        vocab_size=300, num_labels=2, word_size=6, char_size=4, char_input_size=3, depth_size=4,
        hidden_size=8, fixed_words=True, word_dropout=0, hidden_dropout=0,
    ),
    rounds=2, seconds=0, complete=False, alone=2, few_words=45, many_words=90,
    reviews=Lengths("imdb", 2.7, 0.5, 2, 60),
)  # fmt: skip


def pretend_int8(monkeypatch):
    """Pretend that the processor supports int8, with the float32 engine in its place."""
    monkeypatch.setattr(systems_module, "int8_available", lambda: True)
    monkeypatch.setattr(systems_module, "fast_network", lambda network, **_: fast_network(network))


@pytest.fixture
def int8(monkeypatch):
    pretend_int8(monkeypatch)


@pytest.fixture(scope="module")
def systems():
    with pytest.MonkeyPatch.context() as patch:
        pretend_int8(patch)
        return Systems(TINY.model)


def rows_with(seconds, systems, plan=TINY):
    """Return a row for every case, which takes a second unless ``seconds`` has its key."""
    return [
        summarise(replace(case, words=1000), Timings(None, [seconds.get(key_of(case), 1.0)] * 2))
        for case in select_cases(systems, plan)
    ]


def test_a_quick_run_measures_all_ratios(bench, monkeypatch, int8):
    monkeypatch.setattr(speed_module, "QUICK", TINY)
    code, out, err = bench("speed", "--quick", "--json", "--out", "speed.json", "--plot", "charts")
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


def test_without_int8_its_rows_are_missing_and_its_ratios_none(systems, monkeypatch):
    monkeypatch.setattr(systems, "int8", None)
    rows = rows_with({}, systems)
    assert {row.precision for row in rows} == {"float32", None}
    ratios = compute_ratios(rows, TINY)
    assert {name for name, ratio in ratios.items() if ratio is None} == {
        name for name in RATIOS if "int8" in name
    }


def test_the_table_shows_rows_and_ratios_with_their_goals(bench, monkeypatch, systems):
    rows = [vars(row) for row in rows_with({}, systems)]
    ratios = dict.fromkeys(RATIOS) | {"vs_full_d3": 3.125}
    machine = {
        "processor": "Abacus", "cores": 2, "threads": 2, "instruction_set": ["beads"],
        "torch": "2", "python": "3", "fathomer": "1",
    }  # fmt: skip
    found = {"machine": machine, "rows": rows, "ratios": ratios}
    monkeypatch.setattr(speed_module, "measure_speed", lambda plan, report: found)
    code, out, err = bench("speed")
    assert (code, err) == (0, "")
    lines = [line.split() for line in out.splitlines()]
    assert ["dense", "padded", "float32", "imdb", "32", "9", "1,000", "1,000.00"] in [
        line[:8] for line in lines
    ]
    assert ["vs_full_d3", "3.12", "(at", "least", "3)"] in lines
    assert ["train_vs_predict", "-", "(at", "most", "3.5)"] in lines
    assert "Abacus, beads; 2 threads on 2 cores" in out


def test_ratios_compare_the_rows_that_their_names_stand_for():
    others = {"bilstm": "bilstm", "transformer": "transformer", "dense": "dense padded"}
    for name, (first, second, *_) in ratios_of(COMPLETE).items():
        if name.startswith("vs_"):
            batch = 1 if "_b1_" in name else 32
            precision = "int8" if "int8" in name else "float32"
            assert first == ("fathomer", batch, 2 if "_d2" in name else 3, precision)
            other = others.get(name.split("_")[1], "fathomer")
            depth = None if "transformer" in name or "bilstm" in name else 9
            assert second == (other, batch, depth, "float32")
    rest = {name: each[:2] for name, each in ratios_of(COMPLETE).items() if name[:3] != "vs_"}
    assert rest == {
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
def test_a_ratio_divides_the_speeds_of_its_rows(name, systems):
    ratio = ratios_of(TINY)[name]
    rows = rows_with({ratio.first: 0.5, ratio.second: 2.0}, systems)
    assert compute_ratios(rows, TINY)[name] == 4.0


def test_a_complete_run_has_all_rows(systems):
    cases = select_cases(systems, replace(TINY, complete=True))
    keys = {(case.lengths, *key_of(case)) for case in cases}
    assert len(keys) == len(cases)
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
    trained = {case.name for case in cases if case.name.endswith(" training")}
    assert trained == {
        f"{name} training" for name in ("fathomer", "dense padded", "bilstm", "transformer")
    }


def test_quick_rows_are_among_the_complete_ones(systems):
    quick, complete = (
        {(c.lengths, *key_of(c)) for c in select_cases(systems, replace(TINY, complete=complete))}
        for complete in (False, True)
    )
    assert quick < complete


def test_every_case_runs_and_takes_time(systems):
    workload = make_workload(TREC, batch=3, batches=2, vocabulary=300)
    cases = [
        systems.predict(workload, 2), *systems.predict_int8(workload, 2), systems.predict_dense(workload),
        systems.predict_unfolded(workload, 2), *systems.predict_encoders(workload),
        systems.train(workload, 2), *systems.train_others(workload), systems.transitions(workload, 2),
        systems.products(workload, 2), systems.tokenizer(workload), systems.predict_one_by_one(workload),
        systems.predict_own_bilstm(workload),
    ]  # fmt: skip
    for case in cases:
        assert case.run() > 0, case.name
        assert (case.batch, case.batches, case.words) == (3, 2, workload.words)


def test_our_own_bilstm_is_about_as_large_as_fathomer(systems):
    ours, bilstm = map(trainable_parameters, (systems.network, systems.own_bilstm))
    assert bilstm == pytest.approx(ours, rel=0.2), "the steps of two are coarse at this size"


def test_texts_classified_one_by_one_get_the_same_logits(systems):
    batch = WordBatch.from_ids([[1, 2, 3], [4], [5, 6]])
    depths, sizes = torch.tensor([1, 9, 2, 3, 1, 4]), []

    def classify(batch, depths):
        sizes.append(batch.num_texts)
        return systems.network(batch, depths=depths).logits

    with torch.inference_mode():
        torch.testing.assert_close(
            one_by_one(classify)(batch, depths), classify(batch, depths), rtol=0, atol=1e-5
        )
    assert sizes == [1, 1, 1, 3]


def test_a_prediction_leaves_nothing_cached_in_its_batch(systems):
    workload = make_workload(TREC, batch=3, vocabulary=300)
    systems.predict(workload, 2).run()
    assert set(vars(workload.batches[0])) == {"words", "lengths", "unknown"}


def test_training_does_not_change_the_networks_for_prediction(systems):
    workload = make_workload(TREC, batch=3, vocabulary=300)
    for each in (systems.train(workload, 2), *systems.train_others(workload)):
        each.run()
    models = (systems.network, systems.dense, *systems.encoders.values())
    assert all(p.grad is None for model in models for p in model.parameters())
    assert not any(model.training for model in models)


def test_the_bare_products_are_those_of_the_word_transitions():
    """Counted in multiply-adds; the transitions also multiply the states of the sentence nodes."""
    systems = Systems(replace(TINY.model, hidden_size=16))  # large enough for the fold to pay off
    workload = make_workload(TREC, batch=20, vocabulary=300)
    [batch], [depths] = workload.batches, workload.depths(3, max_depth=9)
    counted = []
    owner, method = AdaptiveSteps, "word_transition"
    original = getattr(owner, method)

    def counting(steps, *arguments, **named):
        with CountRows() as counter:
            result = original(steps, *arguments, **named)
        assert counter.rows.pop((16, 7 * 16)) == 20
        counted.append(sum(rows * inputs * out for (inputs, out), rows in counter.rows.items()))
        return result

    with pytest.MonkeyPatch.context() as patch, torch.no_grad():
        patch.setattr(owner, method, counting)
        systems.float32(batch, depths=depths)
    products = bare_products(systems.network.config, depths)
    assert counted == [rows.numel() * len(matrix) for rows, matrix, _ in products]


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("nowhere/speed.json", "cannot be written (No such file or directory)"),
        (".", "is a folder; name a file"),
    ],
)
def test_a_file_that_cannot_be_written_is_reported_before_the_measurement(bench, place, message):
    code, out, err = bench("speed", "--out", place)
    assert (code, out) == (2, "")
    assert err == f"fathomer: {place}: {message}\n"


def test_missing_matplotlib_is_reported_before_the_measurement(bench, monkeypatch):
    monkeypatch.setattr("fathomer.errors.find_spec", lambda name: None)
    code, _, err = bench("speed", "--plot", "charts")
    assert code == 2
    assert err.startswith("fathomer: a plot needs matplotlib: pip install 'fathomer[plots]', or")
