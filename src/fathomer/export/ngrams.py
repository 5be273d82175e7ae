"""The n-grams of a network as an ONNX graph, and the mix of their logits with the network's.

Words and pairs are looked up by binary search, since ONNX has a hash table only in ``ai.onnx.ml``,
which not every runtime has. Sums use ScatterElements: onnxruntime's ScatterND adds on several
threads, and loses values that go to the same place.

    N words of the batch, B texts, F words and pairs of the batch, M distinct ones of each text
    K known words and pairs
"""

import numpy as np
from onnx import TensorProto

from fathomer.export.builder import Value
from fathomer.export.encoder import EncoderGraph
from fathomer.model.ngrams import NgramRegression


class NgramGraph(EncoderGraph):
    """The graph of TF-IDF with logistic regression, and of its mix into the logits."""

    def mix(self, logits: Value) -> Value:
        """Return the logits mixed with those of the n-grams, if the network has any."""
        ngrams = self.network.ngrams
        if ngrams is None:
            return logits
        return logits + self.weight(ngrams.share) * (self.ngram_logits(ngrams) - logits)

    def ngram_logits(self, ngrams: NgramRegression) -> Value:
        """Return the logits of the n-grams: B labels, or 1 labels if no n-gram is known."""
        bias = self.weight(ngrams.bias.unsqueeze(0))
        if not len(ngrams.keys):
            return bias
        text_of, columns, counts = self.count_known(ngrams, *self.pairs(ngrams))
        factors = self.weight(np.ones(1, np.float32)) + self.op("Log", counts)
        values = (factors * self.weight(ngrams.idf).gather(columns)).unsqueeze(1)  # M 1
        squares = self.add_up(values * values, text_of, columns=1)
        values = values / self.op("Sqrt", squares).gather(text_of)
        weights = self.weight(ngrams.weight).gather(columns)  # M labels
        return self.add_up(values * weights, text_of, columns=len(ngrams.bias)) + bias

    def pairs(self, ngrams: NgramRegression) -> tuple[Value, Value]:
        """Return text and key of every word that is used, and of every pair of adjacent ones: F."""
        zero, one = self.scalar(0), self.scalar(1)
        is_known = self.op("GreaterOrEqual", self.words, zero)
        forms = self.weight(ngrams.forms).gather(self.op("Max", self.words, zero))
        is_used = self.op("And", is_known, self.op("GreaterOrEqual", forms, zero))
        text_of, words = self.select(is_used, self.text_of, forms)
        text, left = (self.slice(value, 0, -1) for value in (text_of, words))
        next_text, right = (self.slice(value, 1, None) for value in (text_of, words))
        keys = (right + one) * self.scalar(ngrams.vocab_size) + left
        text, keys = self.select(self.op("Equal", text, next_text), text, keys)
        return self.concat(text_of, text, axis=0), self.concat(words, keys, axis=0)

    def count_known(
        self, ngrams: NgramRegression, text_of: Value, keys: Value
    ) -> tuple[Value, Value, Value]:
        """Return text, column and count of the distinct known n-grams of each text: M."""
        table, size = self.weight(ngrams.keys), self.scalar(len(ngrams.keys))
        columns = self.search(table, len(ngrams.keys), keys)
        is_known = self.op("Equal", table.gather(columns), keys)
        text_of, columns = self.select(is_known, text_of, columns)
        distinct, _, _, counts = self.op_with_outputs("Unique", [text_of * size + columns], 4)
        column = self.op("Mod", distinct, size)
        return distinct / size, column, counts.cast(TensorProto.FLOAT)

    def search(self, table: Value, size: int, keys: Value) -> Value:
        """Return the last row of a sorted table that is not above the key, or 0, for each key."""
        rows = self.op("Expand", self.scalar(0), keys.shape())
        while size > 1:  # the row sought is one of the next ``size``
            middle = rows + self.scalar(size // 2)
            is_below = self.op("LessOrEqual", table.gather(middle), keys)
            rows = self.op("Where", is_below, middle, rows)
            size -= size // 2
        return rows

    def add_up(self, rows: Value, text_of: Value, *, columns: int) -> Value:
        """Sum the rows of each text: M columns -> B columns."""
        shape = self.concat(self.lengths.shape(), self.vector(columns), axis=0)
        places = self.op("Expand", text_of.unsqueeze(1), rows.shape())
        empty = self.op("ConstantOfShape", shape)
        return self.op("ScatterElements", empty, places, rows, axis=0, reduction="add")

    def select(self, condition: Value, *values: Value) -> list[Value]:
        """Return the elements of each value for which a condition holds."""
        return [self.op("Compress", value, condition, axis=0) for value in values]

    def slice(self, value: Value, start: int, end: int | None) -> Value:
        """Return part of a vector, as in ``value[start:end]``."""
        last = np.iinfo(np.int64).max if end is None else end
        return self.op("Slice", value, self.vector(start), self.vector(int(last)))
