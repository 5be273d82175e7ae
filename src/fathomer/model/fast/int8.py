"""Prediction with whole numbers: the large products with 8-bit weights and activations.

Each row of a weight matrix (an output channel) has a scale of its own. States of words lie between -1
and 1 and share one fixed scale, so that the answer for a text does not depend on its company; tokens
and sentence states are scaled row by row. The recurrent products of the BiLSTM, the first layer's
window and all that is small stay as they are. oneDNN multiplies; it needs a processor with VNNI.

    N words, k of them running, D rows of tokens, B texts, H hidden_size
"""

import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor, nn

from fathomer.model.fast.folded import FoldedBiLSTM, FoldedSLSTM, folded, sharing
from fathomer.model.graph import DepthOrder, WordBatch
from fathomer.model.network import DepthAdaptiveNetwork
from fathomer.model.sequence import BiLSTM
from fathomer.model.steps import Steps, Terms, Weights, neighbourhood

_ZERO = 128
"""The byte that stands for zero; 1 and 255 stand for -1 and 1."""


def available() -> bool:
    """Say whether this machine multiplies bytes faster than floats."""
    abilities = torch.cpu.get_capabilities()
    vnni = abilities.get("avx512_vnni") or abilities.get("avx_vnni")
    return bool(vnni) and torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]


def to_bytes(states: Float[Tensor, "rows width"]) -> UInt8[Tensor, "rows width"]:
    """Round values between -1 and 1 to bytes."""
    return states.mul(127).add_(_ZERO + 0.5).to(torch.uint8)  # conversion cuts, hence the half


def rounded(values: Float[Tensor, "*rows width"]) -> Float[Tensor, "*rows width"]:
    """Give the values that bytes stand for when each row has a scale of its own."""
    scales = values.abs().amax(-1, keepdim=True).clamp(min=1e-30) / 127
    return (values / scales).round_().mul_(scales)


class Int8Matrix:
    """Hold a matrix of output rows in bytes, as oneDNN wants it."""

    def __init__(self, weight: Float[Tensor, "outputs inputs"]) -> None:
        self.scales = weight.abs().amax(1).clamp(min=1e-30) / 127
        rounded = (weight / self.scales[:, None]).round_().to(torch.int8)
        self.packed = torch.ops.onednn.qlinear_prepack(rounded, None)
        self.zeros = torch.zeros(len(weight), dtype=torch.long)

    def add_product(
        self, sums: Float[Tensor, "rows outputs"], states: UInt8[Tensor, "rows inputs"]
    ) -> None:
        """Add the product with states in bytes, in place."""
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
        """Write the product with values of any size, which are scaled row by row, and a bias."""
        highest = torch.linalg.vector_norm(values, torch.inf, 1, keepdim=True).clamp_(min=1e-30)
        self.add_product(out.zero_(), to_bytes(values / highest))
        torch.addcmul(bias, out, highest, out=out)


class Int8Steps(Steps):
    """Take the steps with the states of the words in bytes, too."""

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
        self.room_for_bytes = torch.empty(self.room_for_window.shape, dtype=torch.uint8)

    def write(self, h: Float[Tensor, "k H"], c: Float[Tensor, "k H"]) -> None:
        """Write the new states; from the first step on, they lie between -1 and 1."""
        super().write(h, c)
        self.bytes[: len(h)] = to_bytes(h)

    def write_from_sentence(self, out: Float[Tensor, "B gates"]) -> None:
        """Write ``V g + b`` of Eq. (2)."""
        self.sentence.product(self.g, out, self.weights.window_bias)

    def add_window_product(
        self, sums: Float[Tensor, "k gates"], rows: slice, *, first: bool
    ) -> None:
        """Add ``W [h_left, h, h_right]`` of Eq. (2)."""
        if first:
            super().add_window_product(sums, rows, first=True)
            return
        window = neighbourhood(self.bytes, self.graph, rows, self.room_for_bytes)
        self.window.add_product(sums, window.flatten(1))


class Int8SLSTM(FoldedSLSTM):
    """Hold the S-LSTM's large matrices in bytes."""

    def prepare(self, token_size: int) -> None:
        """Round the matrices."""
        self.matrices = (
            Int8Matrix(self.window.weight.detach()),
            Int8Matrix(self.sentence.weight.detach()),
        )
        self.by_word = Int8Matrix(self.token.weight.detach()[:, :token_size])

    def write_from_tokens(self, tokens: Float[Tensor, "D token"], out: Tensor) -> None:
        """Write U x of Eq. (2) for the words' part of the tokens."""
        self.by_word.product(tokens, out, out.new_zeros(out.shape[1]))

    def steps(
        self, graph: DepthOrder, source: Tensor, h: Tensor, terms: Terms, weights: Weights
    ) -> Steps:
        """Get ready to take the steps."""
        return Int8Steps(graph, source, h, terms, weights, *self.matrices)


class Int8BiLSTM(FoldedBiLSTM):
    """Hold the BiLSTM's input matrices in bytes."""

    def prepare(self) -> None:
        """Round the matrices of both directions."""
        self.directions = [Int8Matrix(weight) for weight in self.input.detach()]
        self.input = nn.Parameter(rounded(self.input.detach()), requires_grad=False)
        self.fold()  # PyTorch's LSTM, too, gets rounded numbers: the same answer in any company

    def forward(
        self, tokens: Float[Tensor, "D token"], places: Int[Tensor, " N"], batch: WordBatch
    ) -> Float[Tensor, "N hidden"]:
        """Give ``[forward ; backward]`` for each word."""
        return super().forward(rounded(tokens), places, batch)

    def from_tokens(self, tokens: Float[Tensor, "D token"]) -> Float[Tensor, "2*D gates"]:
        """Give the input's part of the sums inside the gates, one direction below the other."""
        both = tokens.new_empty(2, len(tokens), self.bias.shape[1])
        for matrix, sums, bias in zip(self.directions, both, self.bias, strict=True):
            matrix.product(tokens, sums, bias)
        return both.flatten(0, 1)


def quantised(network: DepthAdaptiveNetwork) -> DepthAdaptiveNetwork:
    """Give the network for prediction, with its large products taken in bytes."""
    other = folded(network)
    other.slstm = sharing(other.slstm, Int8SLSTM)
    other.slstm.prepare(network.embedding.size)
    if isinstance(other.sequence, BiLSTM):
        other.sequence = sharing(other.sequence, Int8BiLSTM)
        other.sequence.prepare()
    return other
