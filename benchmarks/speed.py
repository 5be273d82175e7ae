"""Measure how fast Fathomer is, beside what else could be used: the rows, and their ratios."""

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
    Field,
)
from benchmarks.timing import Contestant, Row, make_row, race
from benchmarks.workloads import IMDB, TREC, Lengths, Workload, make_workload
from fathomer.config import ModelConfig

DEPTHS = (1, 2, 3, 5, 9)


@dataclass(frozen=True)
class Plan:
    """Say what is measured, and how long."""

    model: ModelConfig = ModelConfig(
        vocab_size=30_000, num_labels=2, fixed_words=True, word_dropout=0, hidden_dropout=0
    )
    rounds: int = 7
    seconds: float = 10.0
    """Time after which a contestant sits out the later rounds."""
    complete: bool = True
    """Measure all rows, not only those of the ratios."""
    alone: int = 16
    """Texts that are read one by one for a row of batch 1."""
    reviews: Lengths = IMDB
    questions: Lengths = TREC
    few_words: int = 4_000
    many_words: int = 64_000


COMPLETE = Plan()
QUICK = Plan(rounds=3, seconds=2.5, complete=False, alone=8)


class Key(NamedTuple):
    """Name a row of reviews."""

    name: str
    batch: int
    mean_depth: float | None = None
    precision: str | None = "float32"


class Ratio(NamedTuple):
    """Compare the words per second of two rows: the first's divided by the second's."""

    first: Key
    second: Key
    goal: float
    at_most: bool = False
    """Whether less is better."""


def ratios_of(plan: Plan) -> dict[str, Ratio]:
    """Name the ratios, and what they should reach on two cores."""
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
    """Name the same row with int8 weights."""
    return key._replace(precision="int8")


def key_of(row: Contestant | Row) -> Key:
    """Name a row or who shall have one, whatever its lengths are."""
    return Key(row.name, row.batch, row.mean_depth, row.precision)


def compute_ratios(rows: Iterable[Row], plan: Plan) -> dict[str, float | None]:
    """Compute all ratios; one whose rows are missing is none."""
    speed = {key_of(row): row.words_per_second for row in rows if row.lengths == plan.reviews.name}
    return {
        name: round(speed[ratio.first] / speed[ratio.second], 3)
        if ratio.first in speed and ratio.second in speed
        else None
        for name, ratio in ratios_of(plan).items()
    }


def enter(field: Field, plan: Plan) -> list[Contestant]:
    """Enter all contestants, or only those that a quick look needs."""
    entered = [*_encoders(field, plan), *_parts(field, plan), *_sizes(field, plan)]
    if plan.complete:
        return entered
    wanted = {key for ratio in ratios_of(plan).values() for key in (ratio.first, ratio.second)}
    wanted |= {Key(TOKENIZER, 32, precision=None), Key(ONE_BY_ONE, 32), Key(OWN_LAYERS, 32)}
    return [
        each for each in entered if each.lengths == plan.reviews.name and key_of(each) in wanted
    ]


def _encoders(field: Field, plan: Plan) -> Iterator[Contestant]:
    """Enter predictions of all models for all batches, depths and lengths."""
    for lengths in (plan.reviews, plan.questions):
        for batch in (1, 32, 100):
            workload = _workload(lengths, batch, plan)
            for depth in DEPTHS:
                yield field.predict(workload, depth)
                yield from field.predict_int8(workload, depth)
            yield from field.predict_rivals(workload)
            if lengths is plan.questions or batch < 100:  # else a minute each time
                yield field.predict_dense(workload)
            yield field.tokenizer(workload)


def _parts(field: Field, plan: Plan) -> Iterator[Contestant]:
    """Enter the parts of a prediction, and training."""
    workload = _workload(plan.reviews, 32, plan)
    yield field.transitions(workload, 3)
    yield field.products(workload, 3)
    yield field.predict_unfolded(workload, 3)
    yield field.predict_one_by_one(workload)
    yield field.predict_own_layers(workload)
    yield field.train(workload, 3)
    # Few reviews: what the dense network keeps for its way back grows with the padding.
    for smaller in (_workload(plan.reviews, 8, plan), _workload(plan.questions, 32, plan)):
        yield field.train(smaller, 3)
        yield from field.train_rivals(smaller)


def _sizes(field: Field, plan: Plan) -> Iterator[Contestant]:
    """Enter batches of more and more words."""
    words = plan.few_words
    while words <= plan.many_words:
        yield field.predict(_workload(plan.reviews, plan.reviews.texts_of(words), plan), 3)
        words *= 2


def _workload(lengths: Lengths, batch: int, plan: Plan) -> Workload:
    return make_workload(
        lengths,
        batch=batch,
        batches=plan.alone if batch == 1 else 1,
        vocabulary=plan.model.vocab_size,
    )


def bench(plan: Plan, *, tell: Callable[[str], None] = lambda _: None) -> dict[str, Any]:
    """Measure everything that is planned; give machine, rows and ratios as plain values."""
    contestants = enter(Field(plan.model), plan)
    times = race(contestants, rounds=plan.rounds, seconds=plan.seconds, tell=tell)
    rows = [make_row(*each) for each in zip(contestants, times, strict=True)]
    return {
        "machine": describe_machine(),
        "rows": [asdict(row) for row in rows],
        "ratios": compute_ratios(rows, plan),
    }
