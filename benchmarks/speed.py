"""The speed benchmark: which cases are measured, and the ratios between them."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from benchmarks.machine import describe_machine
from benchmarks.systems import (
    BILSTM,
    DENSE,
    FATHOMER,
    ONE_BY_ONE,
    OWN_LAYERS,
    PRODUCTS,
    TOKENIZER,
    TRAINING,
    TRANSFORMER,
    TRANSITIONS,
    UNFOLDED,
    Systems,
)
from benchmarks.timing import Case, Measurement, run_in_turns, summarise
from benchmarks.workloads import IMDB, TREC, Lengths, Workload, make_workload
from fathomer.config import ModelConfig

DEPTHS = (1, 2, 3, 5, 9)


@dataclass(frozen=True)
class SpeedPlan:
    """What to measure, and for how long."""

    model: ModelConfig = ModelConfig(
        vocab_size=30_000, num_labels=2, fixed_words=True, word_dropout=0, hidden_dropout=0
    )
    rounds: int = 7
    seconds: float = 10.0
    """Time after which a case skips later rounds."""
    complete: bool = True
    """Whether to measure all rows, not only those of the ratios."""
    alone: int = 16
    """Number of texts measured for a row of batch size 1."""
    reviews: Lengths = IMDB
    questions: Lengths = TREC
    few_words: int = 4_000
    many_words: int = 64_000


COMPLETE = SpeedPlan()
QUICK = SpeedPlan(rounds=3, seconds=2.5, complete=False, alone=8)


class Key(NamedTuple):
    """The key of a row, apart from the lengths of its texts."""

    name: str
    batch: int
    mean_depth: float | None = None
    precision: str | None = "float32"


class Ratio(NamedTuple):
    """The words per second of the first row divided by those of the second."""

    first: Key
    second: Key
    goal: float
    at_most: bool = False
    """Whether the goal is an upper bound."""


def ratios_of(plan: SpeedPlan) -> dict[str, Ratio]:
    """Return the ratios by name, with their goals on two cores."""
    deep2, deep3, full = (Key(FATHOMER, 32, depth) for depth in (2, 3, plan.model.max_depth))
    deep2_alone = Key(FATHOMER, 1, 2)
    few, many = (
        Key(FATHOMER, plan.reviews.texts_of(words), 3)
        for words in (plan.few_words, plan.many_words)
    )
    dense = Key(DENSE, 32, plan.model.max_depth)
    products, transitions = Key(PRODUCTS, 32, 3), Key(TRANSITIONS, 32, 3)
    unfolded, training = Key(UNFOLDED, 32, 3), Key(FATHOMER + TRAINING, 32, 3)
    return {
        "vs_dense_padded_d3": Ratio(deep3, dense, 12),
        "vs_full_d3": Ratio(deep3, full, 3.0),
        "vs_full_d2": Ratio(deep2, full, 4.3),
        "transition_vs_products_b32_d3": Ratio(products, transitions, 1.35, at_most=True),
        "vs_bilstm_b32_d2": Ratio(deep2, Key(BILSTM, 32), 1.25),
        "vs_bilstm_b32_d2_int8": Ratio(int8(deep2), Key(BILSTM, 32), 1.6),
        "vs_bilstm_b1_d2": Ratio(deep2_alone, Key(BILSTM, 1), 1.25),
        "vs_bilstm_b1_d2_int8": Ratio(int8(deep2_alone), Key(BILSTM, 1), 1.5),
        "vs_transformer_b32_d3": Ratio(deep3, Key(TRANSFORMER, 32), 2.6),
        "vs_transformer_b32_d3_int8": Ratio(int8(deep3), Key(TRANSFORMER, 32), 3.9),
        "vs_transformer_b1_d2_int8": Ratio(int8(deep2_alone), Key(TRANSFORMER, 1), 1.1),
        "int8_vs_float32_b32_d3": Ratio(int8(deep3), deep3, 1.5),
        "train_vs_predict": Ratio(unfolded, training, 3.5, at_most=True),
        "time_per_word_64k_vs_4k": Ratio(few, many, 1.15, at_most=True),
    }


def int8(key: Key) -> Key:
    """Return the key of the same row with int8 weights."""
    return key._replace(precision="int8")


def key_of(row: Case | Measurement) -> Key:
    """Return the key of a case or of its row."""
    return Key(row.name, row.batch, row.mean_depth, row.precision)


def compute_ratios(rows: Iterable[Measurement], plan: SpeedPlan) -> dict[str, float | None]:
    """Return all ratios; a ratio is None if one of its rows was not measured."""
    speed = {key_of(row): row.words_per_second for row in rows if row.lengths == plan.reviews.name}
    return {
        name: round(speed[ratio.first] / speed[ratio.second], 3)
        if ratio.first in speed and ratio.second in speed
        else None
        for name, ratio in ratios_of(plan).items()
    }


def select_cases(systems: Systems, plan: SpeedPlan) -> list[Case]:
    """Return all cases, or only those that a quick run needs."""
    cases = [*_encoders(systems, plan), *_parts(systems, plan), *_sizes(systems, plan)]
    if plan.complete:
        return cases
    wanted = {key for ratio in ratios_of(plan).values() for key in (ratio.first, ratio.second)}
    wanted |= {Key(TOKENIZER, 32, precision=None), Key(ONE_BY_ONE, 32), Key(OWN_LAYERS, 32)}
    return [case for case in cases if case.lengths == plan.reviews.name and key_of(case) in wanted]


def _encoders(systems: Systems, plan: SpeedPlan) -> Iterator[Case]:
    """Yield predictions of all systems for all batch sizes, depths and lengths."""
    for lengths in (plan.reviews, plan.questions):
        for batch in (1, 32, 100):
            workload = _workload(lengths, batch, plan)
            for depth in DEPTHS:
                yield systems.predict(workload, depth)
                yield from systems.predict_int8(workload, depth)
            yield from systems.predict_encoders(workload)
            if lengths is plan.questions or batch < 100:  # otherwise a minute per run
                yield systems.predict_dense(workload)
            yield systems.tokenizer(workload)


def _parts(systems: Systems, plan: SpeedPlan) -> Iterator[Case]:
    """Yield parts of a prediction, variants of it, and training steps."""
    workload = _workload(plan.reviews, 32, plan)
    yield systems.transitions(workload, 3)
    yield systems.products(workload, 3)
    yield systems.predict_unfolded(workload, 3)
    yield systems.predict_one_by_one(workload)
    yield systems.predict_own_bilstm(workload)
    yield systems.train(workload, 3)
    # Few reviews: the dense network stores activations for the padding as well.
    for smaller in (_workload(plan.reviews, 8, plan), _workload(plan.questions, 32, plan)):
        yield systems.train(smaller, 3)
        yield from systems.train_others(smaller)


def _sizes(systems: Systems, plan: SpeedPlan) -> Iterator[Case]:
    """Yield predictions of batches with more and more words."""
    words = plan.few_words
    while words <= plan.many_words:
        yield systems.predict(_workload(plan.reviews, plan.reviews.texts_of(words), plan), 3)
        words *= 2


def _workload(lengths: Lengths, batch: int, plan: SpeedPlan) -> Workload:
    return make_workload(
        lengths,
        batch=batch,
        batches=plan.alone if batch == 1 else 1,
        vocabulary=plan.model.vocab_size,
    )


def measure_speed(
    plan: SpeedPlan, *, report: Callable[[str], None] = lambda _: None
) -> dict[str, Any]:
    """Run the benchmark; return the machine, the rows and the ratios as plain values."""
    cases = select_cases(Systems(plan.model), plan)
    timings = run_in_turns(cases, rounds=plan.rounds, seconds=plan.seconds, report=report)
    rows = [summarise(*each) for each in zip(cases, timings, strict=True)]
    return {
        "machine": describe_machine(),
        "rows": [asdict(row) for row in rows],
        "ratios": compute_ratios(rows, plan),
    }
