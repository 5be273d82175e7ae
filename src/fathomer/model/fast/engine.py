"""The network for inference: the function of :class:`DepthAdaptiveNetwork`, computed faster.

* Products of tokens are taken once per distinct word, and those of depths once per depth.
* The window product of layer 1 is folded with the linear map to the initial states, which are
  wider than the inner vectors that they are made of.
* The output of the character CNN is cached for every word of the vocabulary.

The weights are shared with the trained network and must not change.

    N words of the batch, D distinct words, B texts, H hidden_size, Z width of the first layer's input
"""

import copy
from typing import TypeVar

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from fathomer.model.embedding import TokenEmbedding
from fathomer.model.fast.lstm import FastBiLSTM
from fathomer.model.fast.products import write_product
from fathomer.model.fast.steps import AdaptiveSteps, Terms, Weights
from fathomer.model.graph import DepthOrder, WordBatch, sort_by_depth
from fathomer.model.interface import Output
from fathomer.model.lstm import BiLSTM
from fathomer.model.model import SLSTM, DepthAdaptiveNetwork, pool_texts

M = TypeVar("M", bound=nn.Module)


class FastNetwork(DepthAdaptiveNetwork):
    """The inference engine of a trained network."""

    embedding: "FastEmbedding"
    slstm: "FastSLSTM"

    @classmethod
    def of(cls, network: DepthAdaptiveNetwork) -> "FastNetwork":
        """Build the engine of a network in evaluation mode."""
        assert not network.training, "call network.eval() first"
        engine = sharing(network, cls)
        with torch.no_grad():
            engine.embedding = sharing(network.embedding, FastEmbedding)
            engine.embedding.prepare()
            engine.slstm = sharing(network.slstm, FastSLSTM)
            engine.slstm.prepare()
            if isinstance(network.sequence, BiLSTM):
                engine.sequence = sharing(network.sequence, FastBiLSTM)
                engine.sequence.prepare()
        return engine

    @torch.no_grad()
    def forward(
        self,
        batch: WordBatch,
        depths: Int[Tensor, " N"] | None = None,
        max_depth: int | None = None,
    ) -> Output:
        """Classify a batch; ``depths`` forces the depth of each word, ``max_depth`` caps it."""
        tokens, rows = self.embedding.distinct(batch)
        if isinstance(self.sequence, FastBiLSTM):
            features = self.sequence.read_distinct(tokens, rows, batch)
        else:
            features = self.sequence(tokens.index_select(0, rows), batch)
        inner, depth_logits = self.depth(features)
        depths = self.depths_to_run(batch, depth_logits, depths, max_depth)
        graph = sort_by_depth(batch, depths)
        order, embedding = graph.order, self.depth.embedding()
        terms = self.slstm.terms(tokens, rows[order], embedding, depths[order], graph)
        words, sentences = self.slstm.run(inner.index_select(0, order), terms, graph)
        words = words.index_select(0, graph.ranks)
        logits = self.output(pool_texts(words, sentences, batch))
        return Output(self.mixed(logits, batch), depths, depth_logits, words, sentences)


class FastEmbedding(TokenEmbedding):
    """Token embedding with a cache of the character vectors."""

    def prepare(self) -> None:
        """Allocate the cache for all known words."""
        size = self.char.convolution.out_channels
        self.cache = self.word.weight.new_zeros(len(self.word.weight), size)
        self.cached = torch.zeros(len(self.cache), dtype=torch.bool, device=self.cache.device)

    def characters(self, words: Int[Tensor, " D"], batch: WordBatch) -> Float[Tensor, "D char"]:
        """Return the character vectors of sorted words: unknown ones, with negative ids, first."""
        known = words[words >= 0]
        new = known[~self.cached[known]]
        if len(new):
            # Concurrent threads write the same values, and a word is marked after it is written.
            self.cache[new] = self.char(self.spellings[new])
            self.cached[new] = True
        unknown = super().characters(words[words < 0], batch)
        return torch.cat([unknown, self.cache[known]])


class FastSLSTM(SLSTM):
    """S-LSTM with a folded first layer and products shared between equal words."""

    def prepare(self) -> None:
        """Compute the matrix of the first layer, and copy that of the word and character vectors."""
        self.folds = self.initial.in_features + 1 < self.hidden_size
        first = self.folded_window() if self.folds else self.window.weight
        self.weights = Weights(
            first=first.detach(),
            window=self.window.weight,
            window_bias=self.window.bias,
            sentence=self.sentence.weight,
            node=self.node.weight,
            node_bias=self.node.bias,
            node_mean=self.node_mean.weight,
            node_word=self.node_word.weight,
        )
        token_size = self.token.in_features - self.initial.in_features
        self.from_vectors = self.token.weight.detach()[:, :token_size].contiguous()

    def run(
        self, inner: Float[Tensor, "N inner"], terms: Terms, graph: DepthOrder
    ) -> tuple[Float[Tensor, "N H"], Float[Tensor, "B H"]]:
        """Return the last states of words and sentences; the words are sorted by depth."""
        h = self.initial(inner)
        # A column of ones for the bias of the initial states; the row for "no neighbour" has none.
        source = functional.pad(inner, (0, 1), value=1.0) if self.folds else h
        return self.steps(graph, functional.pad(source, (0, 0, 0, 1)), h, terms).run()

    def steps(self, graph: DepthOrder, source: Tensor, h: Tensor, terms: Terms) -> AdaptiveSteps:
        """Build the object that takes the steps."""
        return AdaptiveSteps(graph, source, h, terms, self.weights)

    def terms(
        self,
        tokens: Float[Tensor, "D token"],
        rows: Int[Tensor, " N"],
        depth_embedding: Float[Tensor, "L depth"],
        depths: Int[Tensor, " N"],
        graph: DepthOrder,
    ) -> Terms:
        """Return U x of Eq. (2) for the tokens of Eq. (13), as a part per word and one per depth."""
        parts = len(tokens), len(tokens) + len(depth_embedding)
        table = tokens.new_empty(parts[1] + len(graph.word_counts), len(self.token.weight))
        words, by_depth, _ = table.tensor_split(parts)
        self.write_from_tokens(tokens, words)
        torch.mm(depth_embedding, self.token.weight[:, tokens.shape[1] :].T, out=by_depth)
        places = torch.stack([rows, parts[0] + depths - 1, parts[1] + graph.text_of], 1)
        return Terms(table, places)

    def write_from_tokens(self, tokens: Float[Tensor, "D token"], out: Tensor) -> None:
        """Write U x of Eq. (2) for the word and character parts of the tokens."""
        write_product(tokens, self.from_vectors, out)


def sharing(module: nn.Module, kind: type[M]) -> M:
    """Return a module of another class that shares the parameters and submodules of ``module``."""
    other = copy.copy(module)
    other.__class__ = kind
    other._modules, other._parameters = dict(module._modules), dict(module._parameters)
    assert isinstance(other, kind)
    return other
