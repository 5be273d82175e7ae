"""The first half of the network as an ONNX graph: from packed words to the depth of each word.

Texts come in packed, as in :class:`fathomer.text.encode.PackedWords`. Wherever the words of a text
are added up or read in their order, they are laid out in a grid, one text per row.

    N words of the batch, B texts, T words of the longest, K unknown words, C bytes of a spelling
    L max_depth
"""

import math

import numpy as np
import torch
from onnx import TensorProto

from fathomer.export.writer import GraphWriter
from fathomer.model.lstm import BiLSTM
from fathomer.model.model import DepthAdaptiveNetwork


class ReadingGraph(GraphWriter):
    """Write how words become tokens, and how their depth is decided."""

    def __init__(self, network: DepthAdaptiveNetwork) -> None:
        super().__init__()
        self.network = network

    def lay_out(self) -> None:
        """Find out where each word stands, and who its neighbours are; N means nobody."""
        last_axis = self.numbers(-1)
        num_words = self.op("Size", "words")
        self.lengths = self.op("Unsqueeze", "lengths", last_axis)  # B 1
        self.counts = self.op("Max", self.lengths, self.number(1))  # B 1
        longest = self.op("ReduceMax", self.counts, keepdims=0)
        is_word = self.op("Less", self.count_to(longest), self.lengths)  # B T
        grid_places = self.op("NonZero", is_word)  # 2 N
        text_of, position = self.split(grid_places, 2, axis=0)
        self.text_of, self.position = (
            self.op("Reshape", part, last_axis) for part in (text_of, position)
        )
        index = self.count_to(num_words)  # N
        nobody = self.op("Expand", num_words, self.op("Shape", is_word))
        self.grid = self.op(  # B T: the word in each place
            "ScatterND", nobody, self.op("Transpose", grid_places, perm=[1, 0]), index
        )
        self.is_word = self.cast(self.op("Unsqueeze", is_word, last_axis), TensorProto.FLOAT)
        one = self.number(1)
        length = self.op("Gather", "lengths", self.text_of)
        is_first = self.op("Equal", self.position, self.number(0))
        is_last = self.op("Equal", self.op("Add", self.position, one), length)
        self.left = self.op("Where", is_first, num_words, self.op("Sub", index, one))
        self.right = self.op("Where", is_last, num_words, self.op("Add", index, one))

    def count_to(self, number: str) -> str:
        """Give 0, 1, ... up to a number."""
        return self.op("Range", self.number(0), number, self.number(1))

    def with_nobody(self, rows: str) -> str:
        """Add the row of zeros that stands for no word."""
        return self.op("Pad", rows, self.numbers(0, 0, 1, 0))

    def on_grid(self, rows: str) -> str:
        """Lay words (and nobody) out text by text: N+1 ... -> B T ..."""
        return self.op("Gather", rows, self.grid)

    def sum_over_text(self, grid: str) -> str:
        """Add up the words of each text: B T H -> B H."""
        return self.op("ReduceSum", grid, self.numbers(1), keepdims=0)

    def tokens(self) -> str:
        """Give word vector and character vector of each word, Eq. (4)."""
        embedding = self.network.embedding
        with torch.no_grad():
            table = torch.cat([embedding.word.weight, embedding.char(embedding.spellings)], 1)
        zero = self.number(0)
        known = self.op("Gather", self.weight(table), self.op("Max", "words", zero))
        row = self.op("Max", self.op("Neg", "words"), zero)  # 1 + k; row 0 is there for the others
        characters = self.op("Gather", self.unknown_characters(), row)
        no_word = self.op(
            "Expand",
            self.weight(embedding.word.weight[:1]),
            self.op("Concat", self.op("Shape", row), self.numbers(1), axis=0),
        )
        unknown = self.op("Concat", no_word, characters, axis=1)
        is_unknown = self.as_column(self.op("Less", "words", zero))
        return self.op("Where", is_unknown, unknown, known)

    def unknown_characters(self) -> str:
        """Give the character vectors of a word without characters and of the unknown ones: K+1 char."""
        char = self.network.embedding.char
        spellings = self.cast("unknown", TensorProto.INT64)
        spellings = self.op("Pad", spellings, self.numbers(1, 0, 0, 0))
        letters = self.op("Gather", self.weight(char.bytes.weight), spellings)  # K+1 C input
        convolution = char.convolution
        assert convolution.bias is not None
        responses = self.op(
            "Conv",
            self.op("Transpose", letters, perm=[0, 2, 1]),
            self.weight(convolution.weight),
            self.weight(convolution.bias),
            pads=[1, 1],
        )  # K+1 char C
        padding = self.op("Equal", spellings, self.number(0))
        lowest = self.weight(np.float32(-np.inf).reshape(1))
        responses = self.op("Where", self.as_column(padding), lowest, responses)
        strongest = self.op("ReduceMax", responses, self.numbers(2), keepdims=0)
        is_empty = self.op("Slice", padding, self.numbers(0), self.numbers(1), self.numbers(1))
        return self.op("Where", is_empty, self.weight(np.zeros(1, np.float32)), strongest)

    def features(self, tokens: str) -> str:
        """Give what the depth is decided by, Eq. (5)."""
        sequence = self.network.sequence
        if isinstance(sequence, BiLSTM):
            return self.bilstm(tokens, sequence)
        if sequence.kind == "learned":
            last = self.number(sequence.position.num_embeddings - 1)
            row = self.op("Min", self.position, last)
            table = self.weight(sequence.position.weight)
            return self.op("Add", tokens, self.op("Gather", table, row))
        if sequence.kind == "sinusoidal":
            return self.op("Add", tokens, self.sinusoids(sequence.size))
        return tokens

    def bilstm(self, tokens: str, lstm: BiLSTM) -> str:
        """Read the words in both directions; ONNX has the gates in the order i, o, f, g."""
        weights = []
        for matrix in (lstm.input, lstm.recurrent, lstm.bias):
            g, i, f, o = matrix.chunk(4, 1)
            weights.append(torch.cat([i, o, f, g], 1))
        weights[2] = torch.cat([weights[2], torch.zeros_like(weights[2])], 1)
        by_text = self.on_grid(self.with_nobody(tokens))  # B T token
        states = self.op(
            "LSTM",
            self.op("Transpose", by_text, perm=[1, 0, 2]),
            *map(self.weight, weights),
            self.cast(self.op("Squeeze", self.counts, self.numbers(1)), TensorProto.INT32),
            direction="bidirectional",
            hidden_size=lstm.hidden_size,
        )  # T 2 B H/2
        by_text = self.op("Transpose", states, perm=[2, 0, 1, 3])
        places = self.op(
            "Concat", self.as_column(self.text_of), self.as_column(self.position), axis=1
        )
        return self.op("Reshape", self.op("GatherND", by_text, places), self.numbers(-1, lstm.size))

    def sinusoids(self, size: int) -> str:
        """Encode the position of each word, Eq. (12)."""
        pairs = torch.arange((size + 1) // 2)
        rates = self.weight(torch.exp(pairs * (-2 * math.log(10_000) / size)))
        position = self.as_column(self.cast(self.position, TensorProto.FLOAT))
        angles = self.op("Mul", position, rates)
        waves = [self.op(kind, angles) for kind in ("Sin", "Cos")]
        columns = [self.op("Unsqueeze", wave, self.numbers(2)) for wave in waves]
        rows = self.op(
            "Reshape", self.op("Concat", *columns, axis=2), self.numbers(-1, 2 * len(pairs))
        )
        return self.op("Slice", rows, self.numbers(0), self.numbers(size), self.numbers(1))

    def select_depths(self, features: str) -> tuple[str, str]:
        """Give the inner vector of each word, and its depth without noise, Eq. (6) to (11)."""
        depth, how = self.network.depth, self.network.config.depth
        inner = self.op("Relu", self.linear(features, depth.inner))
        if how == "full":
            every = self.number(self.network.config.max_depth)
            return inner, self.op("Expand", every, self.op("Shape", "words"))
        logits, one = self.linear(inner, depth.scores), self.number(1)  # N L
        if how == "soft":
            classes = torch.arange(self.network.config.max_depth).float()
            weighted = self.op("Mul", self.op("Softmax", logits, axis=1), self.weight(classes))
            expected = self.op("ReduceSum", weighted, self.numbers(1), keepdims=0)
            found = self.cast(self.op("Floor", expected), TensorProto.INT64)
            return inner, self.op("Add", found, one)
        return inner, self.op("Add", self.op("ArgMax", logits, axis=1, keepdims=0), one)
