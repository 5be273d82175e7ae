"""The first half of the network as an ONNX graph: from packed words to the depth of each word.

The texts of a batch come packed, one after another, as in :class:`fathomer.text.encode.PackedWords`.
Where words are summed per text or read in order, they are laid out as a grid with one text per row.

    N words of the batch, B texts, T words of the longest text, L max_depth
    K unknown words, C bytes of a spelling
"""

import math

import numpy as np
import torch
from onnx import TensorProto

from fathomer.export.builder import GraphBuilder, Value
from fathomer.model.lstm import BiLSTM
from fathomer.model.model import DepthAdaptiveNetwork


class EncoderGraph(GraphBuilder):
    """The graph of tokens, sequence features and depths, Eq. (4) to (11)."""

    def __init__(self, network: DepthAdaptiveNetwork) -> None:
        super().__init__()
        self.network = network
        self.words, self.lengths, self.unknown = (
            Value(self, name) for name in ("words", "lengths", "unknown")
        )

    def lay_out(self) -> None:
        """Compute the place of each word in the grid and its neighbours; N means no neighbour."""
        last_axis = self.vector(-1)
        num_words = self.op("Size", self.words)
        lengths = self.op("Unsqueeze", self.lengths, last_axis)  # B 1
        self.counts = self.op("Max", lengths, self.scalar(1))  # B 1
        longest = self.op("ReduceMax", self.counts, keepdims=0)
        is_word = self.op("Less", self.arange(longest), lengths)  # B T
        places = self.op("NonZero", is_word)  # 2 N
        self.text_of, self.position = (
            self.op("Reshape", part, last_axis) for part in self.split(places, 2, axis=0)
        )
        index = self.arange(num_words)  # N
        empty = self.op("Expand", num_words, is_word.shape())
        self.grid = self.op(  # B T: index of the word at each place, N where there is none
            "ScatterND", empty, self.op("Transpose", places, perm=[1, 0]), index
        )
        self.is_word = self.op("Unsqueeze", is_word, last_axis).cast(TensorProto.FLOAT)
        one = self.scalar(1)
        length = self.lengths.gather(self.text_of)
        is_first = self.op("Equal", self.position, self.scalar(0))
        is_last = self.op("Equal", self.position + one, length)
        self.left = self.op("Where", is_first, num_words, index - one)
        self.right = self.op("Where", is_last, num_words, index + one)

    def arange(self, end: Value) -> Value:
        """Return 0, 1, ..., ``end - 1``."""
        return self.op("Range", self.scalar(0), end, self.scalar(1))

    def with_zero_row(self, rows: Value) -> Value:
        """Append a row of zeros, which stands for a missing neighbour."""
        return self.op("Pad", rows, self.vector(0, 0, 1, 0))

    def on_grid(self, rows: Value) -> Value:
        """Lay out words (and the row of zeros) as a grid: N+1 ... -> B T ..."""
        return rows.gather(self.grid)

    def sum_over_text(self, grid: Value) -> Value:
        """Sum the words of each text: B T H -> B H."""
        return self.op("ReduceSum", grid, self.vector(1), keepdims=0)

    def tokens(self) -> Value:
        """Return the word vector and character vector of each word, Eq. (4)."""
        embedding = self.network.embedding
        with torch.no_grad():
            table = torch.cat([embedding.word.weight, embedding.char(embedding.spellings)], 1)
        zero = self.scalar(0)
        known = self.weight(table).gather(self.op("Max", self.words, zero))
        row = self.op("Max", self.op("Neg", self.words), zero)  # 1 + k; 0 for known words
        characters = self.unknown_characters().gather(row)
        unknown_vector = self.op(
            "Expand",
            self.weight(embedding.word.weight[:1]),
            self.concat(row.shape(), self.vector(1), axis=0),
        )
        unknown = self.concat(unknown_vector, characters)
        is_unknown = self.op("Less", self.words, zero).unsqueeze(1)
        return self.op("Where", is_unknown, unknown, known)  # N token

    def unknown_characters(self) -> Value:
        """Return a row of zeros and the character vectors of the unknown words: K+1 char."""
        char = self.network.embedding.char
        spellings = self.unknown.cast(TensorProto.INT64)
        spellings = self.op("Pad", spellings, self.vector(1, 0, 0, 0))
        letters = self.weight(char.bytes.weight).gather(spellings)  # K+1 C input
        convolution = char.convolution
        assert convolution.bias is not None
        responses = self.op(
            "Conv",
            self.op("Transpose", letters, perm=[0, 2, 1]),
            self.weight(convolution.weight),
            self.weight(convolution.bias),
            pads=[1, 1],
        )  # K+1 char C
        padding = self.op("Equal", spellings, self.scalar(0))
        lowest = self.weight(np.float32(-np.inf).reshape(1))
        responses = self.op("Where", padding.unsqueeze(1), lowest, responses)
        strongest = self.op("ReduceMax", responses, self.vector(2), keepdims=0)
        is_empty = self.op("Slice", padding, self.vector(0), self.vector(1), self.vector(1))
        return self.op("Where", is_empty, self.weight(np.zeros(1, np.float32)), strongest)

    def features(self, tokens: Value) -> Value:
        """Return the input of the depth classifier: the BiLSTM, Eq. (5), or its replacement."""
        sequence = self.network.sequence
        if isinstance(sequence, BiLSTM):
            return self.bilstm(tokens, sequence)
        if sequence.kind == "learned":
            last = self.scalar(sequence.position.num_embeddings - 1)
            row = self.op("Min", self.position, last)
            return tokens + self.weight(sequence.position.weight).gather(row)
        if sequence.kind == "sinusoidal":
            return tokens + self.sinusoids(sequence.size)
        return tokens

    def bilstm(self, tokens: Value, lstm: BiLSTM) -> Value:
        """Return both directions of the BiLSTM, Eq. (5); ONNX orders the gates i, o, f, g."""
        weights = []
        for matrix in (lstm.input, lstm.recurrent, lstm.bias):
            g, i, f, o = matrix.chunk(4, 1)
            weights.append(torch.cat([i, o, f, g], 1))
        weights[2] = torch.cat([weights[2], torch.zeros_like(weights[2])], 1)
        by_text = self.on_grid(self.with_zero_row(tokens))  # B T token
        states = self.op(
            "LSTM",
            self.op("Transpose", by_text, perm=[1, 0, 2]),
            *map(self.weight, weights),
            self.op("Squeeze", self.counts, self.vector(1)).cast(TensorProto.INT32),
            direction="bidirectional",
            hidden_size=lstm.hidden_size,
        )  # T 2 B H/2
        by_text = self.op("Transpose", states, perm=[2, 0, 1, 3])
        places = self.concat(self.text_of.unsqueeze(1), self.position.unsqueeze(1))
        return self.op("Reshape", self.op("GatherND", by_text, places), self.vector(-1, lstm.size))

    def sinusoids(self, size: int) -> Value:
        """Return the sinusoidal embedding of each word's position, Eq. (12)."""
        pairs = torch.arange((size + 1) // 2)
        rates = self.weight(torch.exp(pairs * (-2 * math.log(10_000) / size)))
        angles = self.position.cast(TensorProto.FLOAT).unsqueeze(1) * rates
        waves = [self.op(kind, angles) for kind in ("Sin", "Cos")]
        columns = [wave.unsqueeze(2) for wave in waves]
        rows = self.op("Reshape", self.concat(*columns, axis=2), self.vector(-1, 2 * len(pairs)))
        return self.op("Slice", rows, self.vector(0), self.vector(size), self.vector(1))

    def select_depths(self, features: Value) -> tuple[Value, Value]:
        """Return the inner vector of each word and its depth without noise, Eq. (6) to (11)."""
        depth, how = self.network.depth, self.network.config.depth
        inner = self.op("Relu", self.linear(features, depth.inner))  # Eq. (6)
        if how == "full":
            deepest = self.scalar(self.network.config.max_depth)
            return inner, self.op("Expand", deepest, self.words.shape())
        logits, one = self.linear(inner, depth.scores), self.scalar(1)  # N L, Eq. (7)
        if how == "soft":
            classes = torch.arange(self.network.config.max_depth).float()
            weighted = self.op("Softmax", logits, axis=1) * self.weight(classes)
            expected = self.op("ReduceSum", weighted, self.vector(1), keepdims=0)
            return inner, self.op("Floor", expected).cast(TensorProto.INT64) + one  # Eq. (9)
        return inner, self.op("ArgMax", logits, axis=1, keepdims=0) + one  # Eq. (8), (11)
