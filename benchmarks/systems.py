"""Who is measured: Fathomer's networks, their rivals, and the parts that bound them."""

import copy
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.dense import (
    BiLSTMRival,
    DensePadded,
    TransformerRival,
    of_equal_size,
)
from benchmarks.timing import Contestant, timed
from benchmarks.workloads import Workload, word_names, write_texts
from fathomer.config import ModelConfig
from fathomer.model import DepthAdaptiveNetwork, WordBatch
from fathomer.model.fast.folded import folded, sharing
from fathomer.model.fast.int8 import available, quantised
from fathomer.model.interface import Network, trainable_parameters
from fathomer.model.registry import build_model
from fathomer.model.steps import Steps
from fathomer.text.tokenizer import Tokenizer
from fathomer.text.vocabulary import spell

FATHOMER, DENSE, BILSTM, TRANSFORMER = "fathomer", "dense padded", "bilstm", "transformer"
UNFOLDED, TRANSITIONS, PRODUCTS = "fathomer unfolded", "word transitions", "bare products"
OWN_LAYERS, ONE_BY_ONE = "bilstm, our layers", "transformer, one by one"
TOKENIZER = "tokenizer"
TRAINING = " training"
"""What the name of a training step ends with."""

Rival = TypeVar("Rival", BiLSTMRival, TransformerRival)
Classify = Callable[[WordBatch, Tensor], Tensor]


class Field:
    """Build all models once, and enter them for workloads."""

    def __init__(self, model: ModelConfig) -> None:
        self.names = word_names(model.vocab_size)
        spellings = torch.from_numpy(spell(self.names, max_chars=32).copy())
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            self.network = DepthAdaptiveNetwork(model, spellings=spellings).eval()
            size = trainable_parameters(self.network)
            self.rivals: dict[str, BiLSTMRival | TransformerRival] = {
                BILSTM: self._rival(BiLSTMRival, size),
                TRANSFORMER: self._rival(TransformerRival, size),
            }
            self.own_layers = of_equal_size(
                lambda hidden: build_model(
                    replace(model, name="bilstm", hidden_size=hidden), spellings=spellings
                ),
                size,
                step=2,
            ).eval()
        self.dense = DensePadded(self.network).eval()
        self.folded = folded(self.network)
        self.quantised = quantised_network(self.network)

    def _rival(self, kind: type[Rival], parameters: int) -> Rival:
        embedding, labels = self.network.embedding, self.network.config.num_labels
        return of_equal_size(
            lambda size: kind(embedding, size=size, num_labels=labels), parameters, step=kind.STEP
        ).eval()

    def predict(self, workload: Workload, depth: float) -> Contestant:
        """Enter Fathomer."""
        return self._enter(FATHOMER, workload, depth, self._network(self.folded))

    def predict_int8(self, workload: Workload, depth: float) -> list[Contestant]:
        """Enter Fathomer with int8 weights, where the machine can."""
        if self.quantised is None:
            return []
        classify = self._network(self.quantised)
        return [self._enter(FATHOMER, workload, depth, classify, precision="int8")]

    def predict_unfolded(self, workload: Workload, depth: float) -> Contestant:
        """Enter the network as it is trained, without what is prepared for prediction."""
        return self._enter(UNFOLDED, workload, depth, self._network(self.network))

    def predict_dense(self, workload: Workload) -> Contestant:
        """Enter the dense computation, which takes as long whatever the depths are."""
        return self._enter(DENSE, workload, self.network.config.max_depth, self.dense)

    def predict_rivals(self, workload: Workload) -> list[Contestant]:
        """Enter the encoders of equal size."""
        return [
            self._enter(name, workload, None, without_depths(self._predicting(rival)))
            for name, rival in self.rivals.items()
        ]

    def predict_own_layers(self, workload: Workload) -> Contestant:
        """Enter the comparison model `bilstm`, which is made of our layers, at equal size."""
        model = self._predicting(self.own_layers)
        return self._enter(OWN_LAYERS, workload, None, lambda batch, _: model(batch).logits)

    def predict_one_by_one(self, workload: Workload) -> Contestant:
        """Enter the Transformer with one text at a time: in a batch, its attention pads them."""
        model = self._predicting(self.rivals[TRANSFORMER])
        return self._enter(ONE_BY_ONE, workload, None, one_by_one(without_depths(model)))

    def _predicting(self, rival: BiLSTMRival | TransformerRival | Network) -> nn.Module:
        model = sharing(rival, type(rival))
        model.embedding = self.folded.embedding  # the table of characters serves rivals, too
        return model

    def train(self, workload: Workload, depth: float) -> Contestant:
        """Enter a training step of Fathomer: forwards and backwards, no optimiser."""
        network = copy.deepcopy(self.network).train()
        return self._enter_training(
            FATHOMER, workload, depth, network, lambda b, d: network(b, depths=d).logits
        )

    def train_rivals(self, workload: Workload) -> list[Contestant]:
        """Enter training steps of all rivals."""
        dense = copy.deepcopy(self.dense).train()
        full = self.network.config.max_depth
        entered = [self._enter_training(DENSE, workload, full, dense, dense)]
        for name, rival in self.rivals.items():
            model = copy.deepcopy(rival).train()
            entered.append(self._enter_training(name, workload, None, model, without_depths(model)))
        return entered

    def transitions(self, workload: Workload, depth: float) -> Contestant:
        """Enter the part of a prediction that goes to the word transitions, Eq. (2)."""
        whole = self.predict(workload, depth)

        def run() -> float:
            with time_inside(Steps, "word_step") as seconds:
                whole.run()
            return sum(seconds)

        return replace(whole, name=TRANSITIONS, run=run)

    def products(self, workload: Workload, depth: float) -> Contestant:
        """Enter the matrix products of these word transitions, and nothing else: the limit."""
        config = self.network.config
        batches = workload.depths(depth, max_depth=config.max_depth)
        work = [bare_products(config, depths) for depths in batches]

        def multiply() -> None:
            for rows, matrix, out in (product for products in work for product in products):
                torch.mm(rows, matrix.T, out=out)

        return _contestant(PRODUCTS, workload, depth, timed(multiply))

    def tokenizer(self, workload: Workload) -> Contestant:
        """Enter the tokenizer."""
        tokenizer = Tokenizer.from_words(self.names)
        texts = write_texts(workload, self.names)
        run = timed(lambda: tokenizer.encode(texts, max_words=2000))
        return _contestant(TOKENIZER, workload, None, run, precision=None)

    def _network(self, network: DepthAdaptiveNetwork) -> Classify:
        return lambda batch, depths: network(batch, depths=depths).logits

    def _enter(
        self,
        name: str,
        workload: Workload,
        depth: float | None,
        classify: Classify,
        *,
        precision: str = "float32",
    ) -> Contestant:
        """Enter a prediction of all batches."""
        depths = self._depths(workload, depth)

        def predict() -> None:
            with torch.inference_mode():
                for batch, forced in zip(workload.batches, depths, strict=True):
                    classify(replace(batch), forced)  # a copy: nothing is known of it beforehand

        return _contestant(name, workload, depth, timed(predict), precision=precision)

    def _enter_training(
        self,
        name: str,
        workload: Workload,
        depth: float | None,
        model: nn.Module,
        classify: Classify,
    ) -> Contestant:
        """Enter a step of training with each batch."""
        depths = self._depths(workload, depth)

        def step() -> None:
            for batch, forced in zip(workload.batches, depths, strict=True):
                logits = classify(replace(batch), forced)
                labels = torch.zeros(len(logits), dtype=torch.long)
                torch.autograd.backward(functional.cross_entropy(logits, labels))
                model.zero_grad()

        return _contestant(name + TRAINING, workload, depth, timed(step))

    def _depths(self, workload: Workload, depth: float | None) -> list[Tensor]:
        return workload.depths(depth or 1, max_depth=self.network.config.max_depth)


def _contestant(
    name: str,
    workload: Workload,
    depth: float | None,
    run: Callable[[], float],
    *,
    precision: str | None = "float32",
) -> Contestant:
    return Contestant(
        name=name,
        lengths=workload.lengths,
        batch=workload.batch,
        mean_depth=depth,
        precision=precision,
        words=workload.words,
        batches=len(workload.batches),
        run=run,
    )


def without_depths(model: nn.Module) -> Classify:
    """Let a model that knows no depths be called as if it did."""
    return lambda batch, _: model(batch)


def one_by_one(classify: Classify) -> Classify:
    """Let each text of a batch be classified by itself."""

    def classify_each(batch: WordBatch, depths: Tensor) -> Tensor:
        lengths = batch.lengths.tolist()
        parts = zip(torch.split(batch.words, lengths), torch.split(depths, lengths), strict=True)
        return torch.cat(
            [
                classify(WordBatch(words, torch.tensor([len(words)]), batch.unknown), own)
                for words, own in parts
            ]
        )

    return classify_each


def quantised_network(network: DepthAdaptiveNetwork) -> DepthAdaptiveNetwork | None:
    """Give the network with int8 weights, or nothing where the machine lacks them."""
    return quantised(network) if available() else None


def bare_products(config: ModelConfig, depths: Tensor) -> list[tuple[Tensor, Tensor, Tensor]]:
    """Give rows, matrix and room for the result of each layer's window product.

    The first layer's window is that of the inner vectors with a one beside them.
    """
    gates = 7 * config.hidden_size
    first = torch.rand(gates, 3 * (config.depth_size + 1))
    window = torch.rand(gates, 3 * config.hidden_size)
    products = []
    for layer in range(1, int(depths.max()) + 1):
        running = int((depths >= layer).sum())
        matrix = first if layer == 1 else window
        rows = torch.rand(running, matrix.shape[1])
        products.append((rows, matrix, torch.empty(running, gates)))
    return products


@contextmanager
def time_inside(owner: type, method: str) -> Iterator[list[float]]:
    """Collect the seconds of every call of a method."""
    original, seconds = getattr(owner, method), []

    def measured(*arguments: Any, **named: Any) -> Any:
        start = time.perf_counter()
        try:
            return original(*arguments, **named)
        finally:
            seconds.append(time.perf_counter() - start)

    setattr(owner, method, measured)
    try:
        yield seconds
    finally:
        setattr(owner, method, original)
