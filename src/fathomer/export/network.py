"""The second half of the network as an ONNX graph: the adaptive steps of the S-LSTM.

The steps are a loop that ends when the deepest word of the batch stops. Each layer gathers,
multiplies and writes back only the words that are still running.

    N words of the batch, B texts, T words of the longest text, k running words, H hidden_size
"""

import numpy as np
import onnx
from onnx import TensorProto, helper

from fathomer.export.builder import IR_VERSION, OPSET, Value
from fathomer.export.ngrams import NgramGraph


class NetworkGraph(NgramGraph):
    """The graph of a whole network, from packed words to probabilities and depths."""

    def model(self, *, temperature: float = 1.0) -> onnx.ModelProto:
        """Return the complete ONNX model; logits are divided by the temperature."""
        self.lay_out()
        tokens = self.tokens()  # N token
        inner, self.depths = self.select_depths(self.features(tokens))
        h, g = self.steps(inner, tokens)
        self.name_output(self.classify(h, g, temperature), "probabilities")
        self.name_output(self.depths, "depths")
        num_labels = self.network.config.num_labels
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
                    "probabilities", TensorProto.FLOAT, ["texts", num_labels]
                ),
                helper.make_tensor_value_info("depths", TensorProto.INT64, ["words"]),
            ],
            self.weights,
        )
        imports = [helper.make_opsetid("", OPSET)]
        return helper.make_model(graph, opset_imports=imports, ir_version=IR_VERSION)

    def steps(self, inner: Value, tokens: Value) -> tuple[Value, Value]:
        """Return the last states of the words and sentence nodes, Eq. (14)."""
        slstm, depth = self.network.slstm, self.network.depth
        depth_embedding = self.weight(depth.embedding()).gather(self.depths - self.scalar(1))
        refined = self.concat(tokens, depth_embedding)  # Eq. (13)
        self.from_token = self.linear(refined, slstm.token)  # U x of Eq. (2), same in every layer
        depths = self.op("Pad", self.depths, self.vector(0, 1))
        text_depths = self.op("ReduceMax", self.on_grid(depths), self.vector(1))  # B 1
        h = self.with_zero_row(self.linear(inner, slstm.initial))
        g = self.text_mean(h)
        seen = self.linear(h, slstm.node_word)  # U_f h_i of Eq. (3)
        h, _, g, *_ = self.loop([h, h, g, g, seen], text_depths)
        return h, g

    def loop(self, before: list[Value], text_depths: Value) -> list[Value]:
        """Return h, c, g, c_g and U_f h after as many layers as the deepest word takes steps."""
        layer, condition, *states = (self.new_value() for _ in range(2 + len(before)))
        with self.loop_body() as nodes:
            after = self.layer(layer + self.scalar(1), text_depths, *states)
            next_condition = self.op("Identity", condition)
        body = helper.make_graph(
            nodes,
            "layer",
            [
                helper.make_tensor_value_info(layer.name, TensorProto.INT64, []),
                helper.make_tensor_value_info(condition.name, TensorProto.BOOL, []),
                *map(_states_info, states),
            ],
            [
                helper.make_tensor_value_info(next_condition.name, TensorProto.BOOL, []),
                *map(_states_info, after),
            ],
        )
        deepest = self.op("ReduceMax", text_depths, keepdims=0)
        return self.op_with_outputs("Loop", [deepest, None, *before], len(before), body=body)

    def layer(
        self,
        layer: Value,
        text_depths: Value,
        h: Value,
        c: Value,
        g: Value,
        c_g: Value,
        seen: Value,
    ) -> list[Value]:
        """Return the states after one step of the running words and their sentence nodes."""
        runs = self.op("GreaterOrEqual", self.depths, layer)
        rows = self.op("Reshape", self.op("NonZero", runs), self.vector(-1))  # k
        next_h, next_c = self.word_step(rows, h, c, g, c_g)
        next_g, next_c_g = self.sentence_step(h, c, g, c_g, seen)
        places = rows.unsqueeze(1)
        next_seen = self.linear(next_h, self.network.slstm.node_word)
        text_runs = self.op("GreaterOrEqual", text_depths, layer)
        return [
            self.op("ScatterND", h, places, next_h),
            self.op("ScatterND", c, places, next_c),
            self.op("Where", text_runs, next_g, g),
            next_c_g,  # not masked: the c_g of a stopped text is never read again
            self.op("ScatterND", seen, places, next_seen),
        ]

    def word_step(
        self, rows: Value, h: Value, c: Value, g: Value, c_g: Value
    ) -> tuple[Value, Value]:
        """Return the next h and c of some words, Eq. (2)."""
        slstm = self.network.slstm
        left, right, text_of, from_token = (
            value.gather(rows) for value in (self.left, self.right, self.text_of, self.from_token)
        )
        window = self.concat(h.gather(left), h.gather(rows), h.gather(right))
        from_sentence = self.linear(g, slstm.sentence).gather(text_of)
        sums = self.sum(self.linear(window, slstm.window), from_token, from_sentence)
        *gates, u = self.split(sums, 7)
        l, r, f, s, i, o = (gate.sigmoid() for gate in gates)  # noqa: E741
        l, r, f, s, i = (gate.exp() for gate in (l, r, f, s, i))  # noqa: E741
        total = self.sum(
            l * c.gather(left),
            f * c.gather(rows),
            r * c.gather(right),
            s * c_g.gather(text_of),
            i * u.tanh(),
        )
        next_c = total / self.sum(l, r, f, s, i)  # a softmax over the five gates
        return o * next_c.tanh(), next_c

    def sentence_step(
        self, h: Value, c: Value, g: Value, c_g: Value, seen: Value
    ) -> tuple[Value, Value]:
        """Return the next g and c_g of all sentence nodes, Eq. (3)."""
        slstm = self.network.slstm
        sums, mean = self.linear(g, slstm.node), self.linear(self.text_mean(h), slstm.node_mean)
        f_word, f_g, o = self.split(sums, 3)
        mean_g, mean_o = self.split(mean, 2)
        o = (o + mean_o).sigmoid()
        f_g = (f_g + mean_g).sigmoid().exp()
        f_word = (f_word.unsqueeze(1) + self.on_grid(seen)).sigmoid().exp() * self.is_word  # B T H
        total = f_g + self.sum_over_text(f_word)
        cells = self.sum_over_text(f_word * self.on_grid(c))
        next_c_g = (f_g * c_g + cells) / total  # a softmax over the words and the node itself
        return o * next_c_g.tanh(), next_c_g

    def text_mean(self, h: Value) -> Value:
        """Return the mean over the words of each text; zeros for an empty text."""
        counts = self.counts.cast(TensorProto.FLOAT)
        return self.sum_over_text(self.on_grid(h)) / counts

    def classify(self, h: Value, g: Value, temperature: float) -> Value:
        """Return the probabilities of the labels, Eq. (15)."""
        # Padding adds zeros to the maximum; the ReLU makes that harmless.
        highest = self.op("ReduceMax", self.on_grid(h), self.vector(1), keepdims=0)
        pooled = self.op("Relu", self.concat(highest, self.text_mean(h), g))
        divisor = self.weight(np.array(temperature, dtype=np.float32))
        logits = self.mix(self.linear(pooled, self.network.output)) / divisor
        if self.network.config.multi_label:
            return logits.sigmoid()
        return self.op("Softmax", logits, axis=1)


def _states_info(value: Value) -> onnx.ValueInfoProto:
    """Declare the states of words or sentence nodes."""
    return helper.make_tensor_value_info(value.name, TensorProto.FLOAT, [None, None])
