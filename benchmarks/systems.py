"""The systems that are measured: Fathomer, other encoders, and parts of a prediction."""

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.dense import DensePadded
from benchmarks.encoders import TorchBiLSTM, TorchTransformer, build_with_parameters
from benchmarks.timing import Case, time_inside, timed
from benchmarks.workloads import Workload, word_names, write_texts
from fathomer.config import ModelConfig
from fathomer.model import DepthAdaptiveNetwork, Network, WordBatch
from fathomer.model.fast import fast_network, int8_available
from fathomer.model.fast.engine import sharing
from fathomer.model.fast.products import plus_product, product_blocks
from fathomer.model.fast.steps import AdaptiveSteps
from fathomer.model.interface import trainable_parameters
from fathomer.model.registry import build_model
from fathomer.text.encode import spell
from fathomer.text.tokenizer import Tokenizer

FATHOMER, DENSE, BILSTM, TRANSFORMER = "fathomer", "dense padded", "bilstm", "transformer"
UNFOLDED, TRANSITIONS, PRODUCTS = "fathomer unfolded", "word transitions", "bare products"
OWN_LAYERS, ONE_BY_ONE = "bilstm, our layers", "transformer, one by one"
TOKENIZER = "tokenizer"
TRAINING = " training"
"""Suffix in the name of a training step."""

Encoder = TypeVar("Encoder", TorchBiLSTM, TorchTransformer)
Classify = Callable[[WordBatch, Tensor], Tensor]


class Systems:
    """All models, built once; each method returns the case of one system on a workload."""

    def __init__(self, model: ModelConfig) -> None:
        self.names = word_names(model.vocab_size)
        spellings = torch.from_numpy(spell(self.names, max_chars=32).copy())
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            self.network = DepthAdaptiveNetwork(model, spellings=spellings).eval()
            size = trainable_parameters(self.network)
            self.encoders: dict[str, TorchBiLSTM | TorchTransformer] = {
                BILSTM: self._build_encoder(TorchBiLSTM, size),
                TRANSFORMER: self._build_encoder(TorchTransformer, size),
            }
            self.own_bilstm = build_with_parameters(
                lambda hidden: build_model(
                    replace(model, name="bilstm", hidden_size=hidden), spellings=spellings
                ),
                size,
                step=2,
            ).eval()
        self.dense = DensePadded(self.network).eval()
        self.float32 = fast_network(self.network)
        self.int8 = fast_network(self.network, precision="int8") if int8_available() else None

    def _build_encoder(self, kind: type[Encoder], parameters: int) -> Encoder:
        embedding, labels = self.network.embedding, self.network.config.num_labels
        return build_with_parameters(
            lambda size: kind(embedding, size=size, num_labels=labels), parameters, step=kind.STEP
        ).eval()

    def predict(self, workload: Workload, depth: float) -> Case:
        """Return a prediction of Fathomer."""
        return self._prediction(FATHOMER, workload, depth, with_depths(self.float32))

    def predict_int8(self, workload: Workload, depth: float) -> list[Case]:
        """Return a prediction of Fathomer with int8 weights, if the processor supports them."""
        if self.int8 is None:
            return []
        classify = with_depths(self.int8)
        return [self._prediction(FATHOMER, workload, depth, classify, precision="int8")]

    def predict_unfolded(self, workload: Workload, depth: float) -> Case:
        """Return a prediction of the network as it is trained, not prepared for prediction."""
        return self._prediction(UNFOLDED, workload, depth, with_depths(self.network))

    def predict_dense(self, workload: Workload) -> Case:
        """Return a prediction of the dense network, whose time does not depend on the depths."""
        return self._prediction(DENSE, workload, self.network.config.max_depth, self.dense)

    def predict_encoders(self, workload: Workload) -> list[Case]:
        """Return predictions of the encoders of equal size."""
        return [
            self._prediction(name, workload, None, without_depths(self._prepared(encoder)))
            for name, encoder in self.encoders.items()
        ]

    def predict_own_bilstm(self, workload: Workload) -> Case:
        """Return a prediction of Fathomer's own baseline ``bilstm`` at equal size."""
        model = self._prepared(self.own_bilstm)
        return self._prediction(OWN_LAYERS, workload, None, lambda batch, _: model(batch).logits)

    def predict_one_by_one(self, workload: Workload) -> Case:
        """Return a prediction of the Transformer text by text: in a batch, its attention pads them."""
        model = self._prepared(self.encoders[TRANSFORMER])
        return self._prediction(ONE_BY_ONE, workload, None, one_by_one(without_depths(model)))

    def _prepared(self, model: TorchBiLSTM | TorchTransformer | Network) -> nn.Module:
        """Return a copy of a model with the precomputed character embedding of Fathomer."""
        prepared = sharing(model, type(model))
        prepared.embedding = self.float32.embedding
        return prepared

    def train(self, workload: Workload, depth: float) -> Case:
        """Return a training step of Fathomer: forward and backward pass, without the optimiser."""
        network = copy.deepcopy(self.network).train()
        return self._training_step(FATHOMER, workload, depth, network, with_depths(network))

    def train_others(self, workload: Workload) -> list[Case]:
        """Return training steps of the dense network and the encoders."""
        dense = copy.deepcopy(self.dense).train()
        full = self.network.config.max_depth
        cases = [self._training_step(DENSE, workload, full, dense, dense)]
        for name, encoder in self.encoders.items():
            model = copy.deepcopy(encoder).train()
            cases.append(self._training_step(name, workload, None, model, without_depths(model)))
        return cases

    def transitions(self, workload: Workload, depth: float) -> Case:
        """Return the part of a prediction spent in the word transitions, Eq. (2)."""
        whole = self.predict(workload, depth)

        def run() -> float:
            with time_inside(AdaptiveSteps, "word_transition") as seconds:
                whole.run()
            return sum(seconds)

        return replace(whole, name=TRANSITIONS, run=run)

    def products(self, workload: Workload, depth: float) -> Case:
        """Return only the matrix products of the word transitions, which bound their speed."""
        config = self.network.config
        batches = workload.depths(depth, max_depth=config.max_depth)
        work = [bare_products(config, depths) for depths in batches]

        def multiply() -> None:
            for rows, matrix, sums in (product for products in work for product in products):
                for block in product_blocks(len(rows)):
                    plus_product(sums[block], rows[block], matrix)

        return _case(PRODUCTS, workload, depth, timed(multiply))

    def tokenizer(self, workload: Workload) -> Case:
        """Return the tokenisation of the texts."""
        tokenizer = Tokenizer.from_words(self.names)
        texts = write_texts(workload, self.names)
        run = timed(lambda: tokenizer.encode(texts, max_words=2000))
        return _case(TOKENIZER, workload, None, run, precision=None)

    def _prediction(
        self,
        name: str,
        workload: Workload,
        depth: float | None,
        classify: Classify,
        *,
        precision: str = "float32",
    ) -> Case:
        """Return the prediction of all batches."""
        depths = self._depths(workload, depth)

        def predict() -> None:
            with torch.inference_mode():
                for batch, forced in zip(workload.batches, depths, strict=True):
                    classify(replace(batch), forced)  # a copy, without cached properties

        return _case(name, workload, depth, timed(predict), precision=precision)

    def _training_step(
        self,
        name: str,
        workload: Workload,
        depth: float | None,
        model: nn.Module,
        classify: Classify,
    ) -> Case:
        """Return a training step on each batch."""
        depths = self._depths(workload, depth)

        def step() -> None:
            for batch, forced in zip(workload.batches, depths, strict=True):
                logits = classify(replace(batch), forced)
                labels = torch.zeros(len(logits), dtype=torch.long)
                torch.autograd.backward(functional.cross_entropy(logits, labels))
                model.zero_grad()

        return _case(name + TRAINING, workload, depth, timed(step))

    def _depths(self, workload: Workload, depth: float | None) -> list[Tensor]:
        return workload.depths(depth or 1, max_depth=self.network.config.max_depth)


def _case(
    name: str,
    workload: Workload,
    depth: float | None,
    run: Callable[[], float],
    *,
    precision: str | None = "float32",
) -> Case:
    return Case(
        name=name,
        lengths=workload.lengths,
        batch=workload.batch,
        mean_depth=depth,
        precision=precision,
        words=workload.words,
        batches=len(workload.batches),
        run=run,
    )


def with_depths(network: Network) -> Classify:
    """Return a function that classifies a batch with forced depths."""
    return lambda batch, depths: network(batch, depths=depths).logits


def without_depths(model: nn.Module) -> Classify:
    """Return a function that classifies a batch with a model that has no depths."""
    return lambda batch, _: model(batch)


def one_by_one(classify: Classify) -> Classify:
    """Return a function that classifies the texts of a batch one at a time."""

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


def bare_products(config: ModelConfig, depths: Tensor) -> list[tuple[Tensor, Tensor, Tensor]]:
    """Return input, weights and the sums that each layer's window product is added to.

    The first layer is folded: its window holds the inner vectors, each with a constant 1 appended.
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
