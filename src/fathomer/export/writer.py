"""The words in which an ONNX graph is written: nodes, weights, and the body of a loop."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from torch import Tensor, nn

OPSET, IR_VERSION = 18, 10
"""Of 2022 and 2024: old enough for the runtimes that are in use."""


class GraphWriter:
    """Write nodes one after another; a value is known by its name."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[TensorProto] = []
        self._matrices: dict[nn.Linear, str] = {}
        self._count = 0

    def fresh(self) -> str:
        """Make up a name."""
        self._count += 1
        return f"v{self._count}"

    def op(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Add a node with one output, and name that."""
        return self.several(kind, inputs, 1, **attributes)[0]

    def several(self, kind: str, inputs: Sequence[str], count: int, **attributes: Any) -> list[str]:
        """Add a node with several outputs, and name them."""
        outputs = [self.fresh() for _ in range(count)]
        self.nodes.append(helper.make_node(kind, inputs, outputs, **attributes))
        return outputs

    def split(self, value: str, parts: int, *, axis: int) -> list[str]:
        """Cut a value into equal parts."""
        return self.several("Split", [value], parts, axis=axis, num_outputs=parts)

    def cast(self, value: str, kind: int) -> str:
        """Turn a value into another type."""
        return self.op("Cast", value, to=kind)

    def as_column(self, row: str) -> str:
        """Add an axis behind the first one."""
        return self.op("Unsqueeze", row, self.numbers(1))

    def weight(self, values: Tensor | NDArray[Any]) -> str:
        """Add a tensor that is part of the model."""
        array = values.numpy(force=True) if isinstance(values, Tensor) else values
        name = self.fresh()
        self.weights.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def numbers(self, *values: int) -> str:
        """Add a list of whole numbers."""
        return self.weight(np.array(values, dtype=np.int64))

    def number(self, value: int) -> str:
        """Add a whole number."""
        return self.op("Constant", value_int=value)

    def linear(self, value: str, layer: nn.Linear) -> str:
        """Multiply with a layer's matrix, and add its bias if it has one."""
        if layer not in self._matrices:
            self._matrices[layer] = self.weight(layer.weight.T)
        product = self.op("MatMul", value, self._matrices[layer])
        has_bias = layer.bias is not None
        return self.op("Add", product, self.weight(layer.bias)) if has_bias else product

    def named(self, value: str, name: str) -> None:
        """Give a value a name that users see."""
        self.nodes.append(helper.make_node("Identity", [value], [name]))

    @contextmanager
    def body(self) -> Iterator[list[onnx.NodeProto]]:
        """Collect the nodes that are added meanwhile: they belong to a loop."""
        outside, self.nodes = self.nodes, []
        try:
            yield self.nodes
        finally:
            self.nodes = outside
