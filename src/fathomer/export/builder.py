"""A builder of ONNX graphs: values with Python's operators, weights, and loop bodies."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from torch import Tensor, nn

OPSET, IR_VERSION = 18, 10
"""Versions of 2022 and 2024, old enough for the runtimes in use."""


@dataclass(frozen=True)
class Value:
    """A tensor of a graph, known by its name; operators on it add nodes to the graph."""

    graph: "GraphBuilder"
    name: str

    def __add__(self, other: "Value") -> "Value":
        return self.graph.op("Add", self, other)

    def __sub__(self, other: "Value") -> "Value":
        return self.graph.op("Sub", self, other)

    def __mul__(self, other: "Value") -> "Value":
        return self.graph.op("Mul", self, other)

    def __truediv__(self, other: "Value") -> "Value":
        return self.graph.op("Div", self, other)

    def sigmoid(self) -> "Value":
        """Return the sigmoid of every element."""
        return self.graph.op("Sigmoid", self)

    def tanh(self) -> "Value":
        """Return the hyperbolic tangent of every element."""
        return self.graph.op("Tanh", self)

    def exp(self) -> "Value":
        """Return the exponential of every element."""
        return self.graph.op("Exp", self)

    def gather(self, rows: "Value") -> "Value":
        """Return some rows."""
        return self.graph.op("Gather", self, rows)

    def shape(self) -> "Value":
        """Return the shape as a vector of integers."""
        return self.graph.op("Shape", self)

    def cast(self, kind: int) -> "Value":
        """Return the elements converted to another type of ``TensorProto``."""
        return self.graph.op("Cast", self, to=kind)

    def unsqueeze(self, axis: int) -> "Value":
        """Return the value with a new axis of length 1."""
        return self.graph.op("Unsqueeze", self, self.graph.vector(axis))


class GraphBuilder:
    """The nodes and weights of a graph, added one after another."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[TensorProto] = []
        self._matrices: dict[nn.Linear, Value] = {}
        self._count = 0

    def new_value(self) -> Value:
        """Return a value with a fresh name."""
        self._count += 1
        return Value(self, f"v{self._count}")

    def op(self, kind: str, *inputs: Value, **attributes: Any) -> Value:
        """Add a node with one output and return that."""
        return self.op_with_outputs(kind, inputs, 1, **attributes)[0]

    def op_with_outputs(
        self, kind: str, inputs: Sequence[Value | None], count: int, **attributes: Any
    ) -> list[Value]:
        """Add a node and return its outputs; an optional input can be None."""
        outputs = [self.new_value() for _ in range(count)]
        names = ["" if value is None else value.name for value in inputs]
        node = helper.make_node(kind, names, [value.name for value in outputs], **attributes)
        self.nodes.append(node)
        return outputs

    def sum(self, *values: Value) -> Value:
        """Add several values in one node."""
        return self.op("Sum", *values)

    def concat(self, *values: Value, axis: int = 1) -> Value:
        """Join values along an axis."""
        return self.op("Concat", *values, axis=axis)

    def split(self, value: Value, parts: int, *, axis: int = 1) -> list[Value]:
        """Split a value into equal parts."""
        return self.op_with_outputs("Split", [value], parts, axis=axis, num_outputs=parts)

    def weight(self, values: Tensor | NDArray[Any]) -> Value:
        """Add a tensor that is stored in the file."""
        array = values.numpy(force=True) if isinstance(values, Tensor) else values
        value = self.new_value()
        self.weights.append(numpy_helper.from_array(np.ascontiguousarray(array), value.name))
        return value

    def vector(self, *values: int) -> Value:
        """Add a vector of integers."""
        return self.weight(np.array(values, dtype=np.int64))

    def scalar(self, value: int) -> Value:
        """Add an integer."""
        return self.op("Constant", value_int=value)

    def linear(self, value: Value, layer: nn.Linear) -> Value:
        """Apply a linear layer; its matrix is stored once, however often the layer is used."""
        if layer not in self._matrices:
            self._matrices[layer] = self.weight(layer.weight.T)
        product = self.op("MatMul", value, self._matrices[layer])
        has_bias = layer.bias is not None
        return product + self.weight(layer.bias) if has_bias else product

    def name_output(self, value: Value, name: str) -> None:
        """Name an output of the graph."""
        self.nodes.append(helper.make_node("Identity", [value.name], [name]))

    @contextmanager
    def loop_body(self) -> Iterator[list[onnx.NodeProto]]:
        """Collect the nodes added inside the ``with`` block as the body of a loop."""
        outer, self.nodes = self.nodes, []
        try:
            yield self.nodes
        finally:
            self.nodes = outer
