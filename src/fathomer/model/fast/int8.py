"""Inference with 8-bit weights and activations in the large matrix products.

Weights are quantised per output channel. Word states lie between -1 and 1 and share one fixed scale,
so the answer for a text does not depend on the rest of the batch; tokens and sentence states are
scaled row by row. The recurrent products of the BiLSTM, the window product of the first layer and
everything small stay in float32. The products need oneDNN and a processor with VNNI.

    N words, k of them running, D rows of tokens, B texts, H hidden_size
"""

import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor, nn

from fathomer.model.fast.engine import FastNetwork, FastSLSTM, sharing
from fathomer.model.fast.lstm import FastBiLSTM
from fathomer.model.fast.steps import AdaptiveSteps, Terms, Weights, gather_window
from fathomer.model.graph import DepthOrder, WordBatch
from fathomer.model.model import DepthAdaptiveNetwork

_ZERO = 128
"""The byte that represents 0; 1 and 255 represent -1 and 1."""


def available() -> bool:
    """Whether this processor has fast 8-bit products."""
    abilities = torch.cpu.get_capabilities()
    vnni = abilities.get("avx512_vnni") or abilities.get("avx_vnni")
    return bool(vnni) and torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]


def to_bytes(states: Float[Tensor, "rows width"]) -> UInt8[Tensor, "rows width"]:
    """Round values between -1 and 1 to bytes."""
    return states.mul(127).add_(_ZERO + 0.5).to(torch.uint8)  # the conversion truncates


def rounded(values: Float[Tensor, "*rows width"]) -> Float[Tensor, "*rows width"]:
    """Return the values after quantisation with one scale per row."""
    scales = values.abs().amax(-1, keepdim=True).clamp(min=1e-30) / 127
    return (values / scales).round_().mul_(scales)


class Int8Matrix:
    """A weight matrix in 8 bits, packed for oneDNN."""

    def __init__(self, weight: Float[Tensor, "outputs inputs"]) -> None:
        self.scales = weight.abs().amax(1).clamp(min=1e-30) / 127
        rounded = (weight / self.scales[:, None]).round_().to(torch.int8)
        self.packed = torch.ops.onednn.qlinear_prepack(rounded, None)
        self.zeros = torch.zeros(len(weight), dtype=torch.long)

    def add_product(
        self, sums: Float[Tensor, "rows outputs"], states: UInt8[Tensor, "rows inputs"]
    ) -> None:
        """Add the product with 8-bit states, in place."""
        torch.ops.onednn.qlinear_pointwise.binary(
            states, 1 / 127, _ZERO, self.packed, self.scales, self.zeros,
            sums, None, 1.0, 0, torch.float32, 1.0, 0, "sum", 1.0, "none", [], "",
        )  # fmt: skip

    def product(
        self,
        values: Float[Tensor, "rows inputs"],
        out: Float[Tensor, "rows outputs"],
        bias: Float[Tensor, " outputs"],
    ) -> None:
        """Write the product with float values, which are quantised row by row, plus a bias."""
        highest = torch.linalg.vector_norm(values, torch.inf, 1, keepdim=True).clamp_(min=1e-30)
        self.add_product(out.zero_(), to_bytes(values / highest))
        torch.addcmul(bias, out, highest, out=out)


class Int8Steps(AdaptiveSteps):
    """Adaptive steps that also keep the states of the words in 8 bits."""

    def __init__(
        self,
        graph: DepthOrder,
        source: Tensor,
        h: Tensor,
        terms: Terms,
        weights: Weights,
        window: Int8Matrix,
        sentence: Int8Matrix,
    ) -> None:
        super().__init__(graph, source, h, terms, weights)
        self.window, self.sentence = window, sentence
        self.bytes = torch.full(self.h.shape, _ZERO, dtype=torch.uint8)
        self.byte_buffer = torch.empty(self.window_buffer.shape, dtype=torch.uint8)

    def write(self, h: Float[Tensor, "k H"], c: Float[Tensor, "k H"]) -> None:
        """Write the new states of the running words, which lie between -1 and 1."""
        super().write(h, c)
        self.bytes[: len(h)] = to_bytes(h)

    def write_from_sentence(self, out: Float[Tensor, "B gates"]) -> None:
        """Write ``V g + b`` of Eq. (2)."""
        self.sentence.product(self.g, out, self.weights.window_bias)

    def plus_window_product(
        self, sums: Float[Tensor, "k gates"], rows: slice, *, first: bool
    ) -> Float[Tensor, "k gates"]:
        """Return ``sums + W [h_left, h, h_right]`` of Eq. (2); ``sums`` may be overwritten."""
        if first:
            return super().plus_window_product(sums, rows, first=True)
        window = gather_window(self.bytes, self.graph, rows, self.byte_buffer)
        self.window.add_product(sums, window.flatten(1))
        return sums


class Int8SLSTM(FastSLSTM):
    """S-LSTM with its large matrices in 8 bits."""

    def quantise(self, token_size: int) -> None:
        """Quantise the matrices."""
        self.matrices = (
            Int8Matrix(self.window.weight.detach()),
            Int8Matrix(self.sentence.weight.detach()),
        )
        self.by_word = Int8Matrix(self.token.weight.detach()[:, :token_size])

    def write_from_tokens(self, tokens: Float[Tensor, "D token"], out: Tensor) -> None:
        """Write U x of Eq. (2) for the word and character parts of the tokens."""
        self.by_word.product(tokens, out, out.new_zeros(out.shape[1]))

    def steps(self, graph: DepthOrder, source: Tensor, h: Tensor, terms: Terms) -> AdaptiveSteps:
        """Build the object that takes the steps."""
        return Int8Steps(graph, source, h, terms, self.weights, *self.matrices)


class Int8BiLSTM(FastBiLSTM):
    """BiLSTM with its input matrices in 8 bits."""

    def quantise(self) -> None:
        """Quantise the matrices of both directions."""
        self.directions = [Int8Matrix(weight) for weight in self.input.detach()]
        self.input = nn.Parameter(rounded(self.input.detach()), requires_grad=False)
        self.prepare()  # PyTorch's LSTM gets the rounded weights too: the same answer in any batch

    def read_distinct(
        self, tokens: Float[Tensor, "D token"], rows: Int[Tensor, " N"], batch: WordBatch
    ) -> Float[Tensor, "N hidden"]:
        """Return ``[forward ; backward]`` for each word, given the tokens of the distinct words."""
        return super().read_distinct(rounded(tokens), rows, batch)

    def gate_inputs(self, x: Float[Tensor, "D token"]) -> Float[Tensor, "2*D gates"]:
        """Return what the tokens contribute to the gates, one direction below the other."""
        both = x.new_empty(2, len(x), self.bias.shape[1])
        for matrix, sums, bias in zip(self.directions, both, self.bias, strict=True):
            matrix.product(x, sums, bias)
        return both.flatten(0, 1)


def quantised(network: DepthAdaptiveNetwork) -> FastNetwork:
    """Build the inference engine of a network with 8-bit products."""
    engine = FastNetwork.of(network)
    engine.slstm = slstm = sharing(engine.slstm, Int8SLSTM)
    slstm.quantise(network.embedding.size)
    if isinstance(engine.sequence, FastBiLSTM):
        engine.sequence = sequence = sharing(engine.sequence, Int8BiLSTM)
        sequence.quantise()
    return engine
