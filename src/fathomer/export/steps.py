"""The second half of the network as an ONNX graph, with the adaptive depth inside.

The steps of the S-LSTM are a loop that ends with the deepest word of the batch. In each layer only
the words that still run are gathered, multiplied and written back.

    N words of the batch, B texts, T words of the longest, k words that run, H hidden_size
"""

import numpy as np
import onnx
from onnx import TensorProto, helper

from fathomer.export.reading import ReadingGraph
from fathomer.export.writer import IR_VERSION, OPSET


class NetworkGraph(ReadingGraph):
    """Write a network, from packed words to probabilities and depths."""

    def model(self, *, temperature: float = 1.0) -> onnx.ModelProto:
        """Write the whole graph; logits are divided by the temperature."""
        self.lay_out()
        tokens = self.tokens()  # N token
        inner, self.depths = self.select_depths(self.features(tokens))
        h, g = self.steps(inner, tokens)
        self.named(self.classify(h, g, temperature), "probabilities")
        self.named(self.depths, "depths")
        graph = helper.make_graph(
            self.nodes,
            "fathomer",
            [
                helper.make_tensor_value_info("words", TensorProto.INT64, ["words"]),
                helper.make_tensor_value_info("lengths", TensorProto.INT64, ["texts"]),
                helper.make_tensor_value_info("unknown", TensorProto.UINT8, ["spellings", "bytes"]),
            ],
            [
                helper.make_tensor_value_info(
                    "probabilities", TensorProto.FLOAT, ["texts", self.network.config.num_labels]
                ),
                helper.make_tensor_value_info("depths", TensorProto.INT64, ["words"]),
            ],
            self.weights,
        )
        imports = [helper.make_opsetid("", OPSET)]
        return helper.make_model(graph, opset_imports=imports, ir_version=IR_VERSION)

    def steps(self, inner: str, tokens: str) -> tuple[str, str]:
        """Take the steps, Eq. (14): a loop that ends with the deepest word."""
        slstm, depth = self.network.slstm, self.network.depth
        by_depth = self.op(
            "Gather", self.weight(depth.embedding()), self.op("Sub", self.depths, self.number(1))
        )
        refined = self.op("Concat", tokens, by_depth, axis=1)  # Eq. (13)
        self.from_token = self.linear(refined, slstm.token)
        depths = self.op("Pad", self.depths, self.numbers(0, 1))
        text_depths = self.op("ReduceMax", self.on_grid(depths), self.numbers(1))  # B 1
        h = self.with_nobody(self.linear(inner, slstm.initial))
        g = self.text_mean(h)
        seen = self.linear(h, slstm.node_word)  # U_f h_i of Eq. (3)
        before = [h, h, g, g, seen]
        layer, go_on, *states = (self.fresh() for _ in range(2 + len(before)))
        with self.body() as nodes:
            after = self.layer(self.op("Add", layer, self.number(1)), text_depths, *states)
            going_on = self.op("Identity", go_on)
        body = helper.make_graph(
            nodes,
            "layer",
            [
                helper.make_tensor_value_info(layer, TensorProto.INT64, []),
                helper.make_tensor_value_info(go_on, TensorProto.BOOL, []),
                *(_states(name) for name in states),
            ],
            [
                helper.make_tensor_value_info(going_on, TensorProto.BOOL, []),
                *(_states(name) for name in after),
            ],
        )
        deepest = self.op("ReduceMax", text_depths, keepdims=0)
        last = self.several("Loop", [deepest, "", *before], len(before), body=body)
        return last[0], last[2]

    def layer(
        self, layer: str, text_depths: str, h: str, c: str, g: str, c_g: str, seen: str
    ) -> list[str]:
        """Take one step with the words that still run, and with the sentence nodes of their texts."""
        runs = self.op("GreaterOrEqual", self.depths, layer)
        rows = self.op("Reshape", self.op("NonZero", runs), self.numbers(-1))  # k
        next_h, next_c = self.word_step(rows, h, c, g, c_g)
        next_g, next_c_g = self.sentence_step(h, c, g, c_g, seen)
        places = self.as_column(rows)
        next_seen = self.linear(next_h, self.network.slstm.node_word)
        text_runs = self.op("GreaterOrEqual", text_depths, layer)
        return [
            self.op("ScatterND", h, places, next_h),
            self.op("ScatterND", c, places, next_c),
            self.op("Where", text_runs, next_g, g),
            next_c_g,  # of a text that has stopped, nobody reads it again
            self.op("ScatterND", seen, places, next_seen),
        ]

    def word_step(self, rows: str, h: str, c: str, g: str, c_g: str) -> tuple[str, str]:
        """Give the next states of some words, Eq. (2)."""
        slstm = self.network.slstm
        left, right, text_of, from_token = (
            self.op("Gather", rows_of_all, rows)
            for rows_of_all in (self.left, self.right, self.text_of, self.from_token)
        )
        window = self.op(
            "Concat", *(self.op("Gather", h, at) for at in (left, rows, right)), axis=1
        )
        from_sentence = self.op("Gather", self.linear(g, slstm.sentence), text_of)
        sums = self.op("Sum", self.linear(window, slstm.window), from_token, from_sentence)
        *gates, u = self.split(sums, 7, axis=1)
        *five, o = (self.op("Sigmoid", gate) for gate in gates)
        l, r, f, s, i = (self.op("Exp", gate) for gate in five)  # noqa: E741
        terms = [
            self.op("Mul", l, self.op("Gather", c, left)),
            self.op("Mul", f, self.op("Gather", c, rows)),
            self.op("Mul", r, self.op("Gather", c, right)),
            self.op("Mul", s, self.op("Gather", c_g, text_of)),
            self.op("Mul", i, self.op("Tanh", u)),
        ]
        next_c = self.op("Div", self.op("Sum", *terms), self.op("Sum", l, r, f, s, i))
        return self.op("Mul", o, self.op("Tanh", next_c)), next_c

    def sentence_step(self, h: str, c: str, g: str, c_g: str, seen: str) -> tuple[str, str]:
        """Give the next states of all sentence nodes, Eq. (3)."""
        slstm = self.network.slstm
        sums, mean = self.linear(g, slstm.node), self.linear(self.text_mean(h), slstm.node_mean)
        forget_word, forget_g, output = self.split(sums, 3, axis=1)
        mean_g, mean_o = self.split(mean, 2, axis=1)
        output = self.op("Sigmoid", self.op("Add", output, mean_o))
        own = self.op("Exp", self.op("Sigmoid", self.op("Add", forget_g, mean_g)))
        forget_word = self.as_column(forget_word)  # B 1 H
        words = self.op("Sigmoid", self.op("Add", forget_word, self.on_grid(seen)))
        words = self.op("Mul", self.op("Exp", words), self.is_word)  # B T H
        total = self.op("Add", own, self.sum_over_text(words))
        cells = self.sum_over_text(self.op("Mul", words, self.on_grid(c)))
        next_c_g = self.op("Div", self.op("Add", self.op("Mul", own, c_g), cells), total)
        return self.op("Mul", output, self.op("Tanh", next_c_g)), next_c_g

    def text_mean(self, h: str) -> str:
        """Average the words of each text; an empty text has zeros."""
        counts = self.cast(self.counts, TensorProto.FLOAT)
        return self.op("Div", self.sum_over_text(self.on_grid(h)), counts)

    def classify(self, h: str, g: str, temperature: float) -> str:
        """Give the probabilities of the labels, Eq. (15)."""
        # Nobody's zeros may win the maximum: under the ReLU that changes nothing.
        highest = self.op("ReduceMax", self.on_grid(h), self.numbers(1), keepdims=0)
        pooled = self.op("Relu", self.op("Concat", highest, self.text_mean(h), g, axis=1))
        divisor = self.weight(np.array(temperature, dtype=np.float32))
        logits = self.op("Div", self.linear(pooled, self.network.output), divisor)
        if self.network.config.multi_label:
            return self.op("Sigmoid", logits)
        return self.op("Softmax", logits, axis=1)


def _states(name: str) -> onnx.ValueInfoProto:
    """Declare states of words or sentence nodes."""
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, [None, None])
