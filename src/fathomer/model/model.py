"""The Depth-Adaptive Graph Recurrent Network (Liu et al., 2020), as the paper writes it.

Sections 2 and 3 of the paper in order, one line or one function per equation, in plain PyTorch. This
version trains, and is the reference for the inference engine in ``fast/``. It is sparse by construction:
words are sorted by depth, so those still running in a layer are a prefix of the rows, and a word that
has stopped takes part in no matrix product.

docs/equations.md lists where it departs from the paper and what was decided where the paper is
silent. The main departures: Eq. (6) has no ``b_2``, which could not learn, unless depth is supervised;
depths count from 1; the temperature of Eq. (10) is zero; characters are UTF-8 bytes.

    N words of the batch, k of them still running, B texts, D distinct words, H hidden_size, L max_depth,
    inner: hidden layer of the depth classifier, token: word and character vectors, gates: 7*H, node: 3*H
"""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor, nn
from torch.nn import functional

from fathomer.config import DepthSelection, ModelConfig
from fathomer.model.embedding import TokenEmbedding
from fathomer.model.graph import DepthOrder, WordBatch, sort_by_depth
from fathomer.model.initialise import initialise
from fathomer.model.interface import Network, Output, capped, checked_depths
from fathomer.model.lstm import BiLSTM
from fathomer.model.ngrams import NgramRegression
from fathomer.model.positions import Positions, sinusoids
from fathomer.model.products import LayerWeights, SharedWeight

# Section 2: the S-LSTM


class States(NamedTuple):
    """Hidden and cell states of words and sentence nodes, Eq. (1); row N is "no neighbour"."""

    h: Float[Tensor, "N+1 H"]
    c: Float[Tensor, "N+1 H"]
    g: Float[Tensor, "B H"]
    c_g: Float[Tensor, "B H"]


class SLSTM(nn.Module):
    """Word and sentence transitions, applied to each word as many times as its depth."""

    def __init__(self, inner_size: int, token_size: int, hidden_size: int) -> None:
        super().__init__()
        self.hidden_size = hidden_size
        self.initial = nn.Linear(inner_size, hidden_size)
        self.window = nn.Linear(3 * hidden_size, 7 * hidden_size)  # W, b of Eq. (2): l r f s i o u
        self.token = nn.Linear(token_size, 7 * hidden_size, bias=False)  # U of Eq. (2)
        self.sentence = nn.Linear(hidden_size, 7 * hidden_size, bias=False)  # V of Eq. (2)
        self.node = nn.Linear(hidden_size, 3 * hidden_size)  # W, b of Eq. (3): f_i, f_g, o
        self.node_mean = nn.Linear(hidden_size, 2 * hidden_size, bias=False)  # U_g, U_o of Eq. (3)
        self.node_word = nn.Linear(hidden_size, hidden_size, bias=False)  # U_f of Eq. (3)

    def forward(
        self,
        inner: Float[Tensor, "N inner"],
        from_token: Float[Tensor, "N gates"],
        graph: DepthOrder,
    ) -> tuple[Float[Tensor, "N H"], Float[Tensor, "B H"]]:
        """Return the final ``h`` and ``g``, given U x of Eq. (2); words are in depth order."""
        h = self.initial(inner)
        g, padded = graph.text_mean(h), functional.pad(h, (0, 0, 0, 1))
        states, from_word = States(h=padded, c=padded, g=g, c_g=g), h[:0]
        weights = self.layer_weights()
        source, window_weight = self.first_layer(inner, padded, weights.window)
        for k, runs in zip(graph.running, graph.running_texts, strict=True):
            window = source.index_select(0, graph.window[:k].flatten()).view(k, -1)  # xi of Eq. (2)
            from_token = from_token[:k]
            from_node, node = self.node_sums(states, graph, weights)
            # U_f h of Eq. (3), recomputed only for words that the previous layer updated.
            from_word = torch.cat([weights.node_word.product(h), from_word[len(h) :]])
            sums = window_weight.product(window) + from_token
            h, c = self.word_transition(states, sums, from_node, graph)
            g, c_g = self.sentence_transition(states, node, from_word, graph)
            states = States(  # Eq. (14): running words are updated, stopped words keep their states
                h=torch.cat([h, states.h[k:]]),
                c=torch.cat([c, states.c[k:]]),
                g=torch.where(runs, g, states.g),
                c_g=torch.where(runs, c_g, states.c_g),
            )
            source, window_weight = states.h, weights.window
        return states.h[:-1], states.g

    def layer_weights(self) -> LayerWeights:
        """Return the matrices that every layer uses, rounded if the precision asks for it."""
        node = torch.cat([self.sentence.weight, self.node.weight])
        matrices = (self.window.weight, node, self.node_mean.weight, self.node_word.weight)
        return LayerWeights(*map(SharedWeight, matrices))

    def token_sums(
        self,
        tokens: Float[Tensor, "D token"],
        rows: Int[Tensor, " N"],
        depth_embedding: Float[Tensor, "L inner"],
        depths: Int[Tensor, " N"],
    ) -> Float[Tensor, "N gates"]:
        """Return U x of Eq. (2) for the tokens of Eq. (13), in parts per distinct word and per depth."""
        word, depth = torch.split(self.token.weight, [tokens.shape[1], depth_embedding.shape[1]], 1)
        by_word = SharedWeight(word).product(tokens)
        by_depth = SharedWeight(depth).product(depth_embedding)
        return by_word.index_select(0, rows) + by_depth.index_select(0, depths - 1)

    def first_layer(
        self, inner: Float[Tensor, "N inner"], h: Float[Tensor, "N+1 H"], window: SharedWeight
    ) -> tuple[Float[Tensor, "N+1 Z"], SharedWeight]:
        """Return rows and matrix of the first window product, folded with the linear map to ``h``."""
        size, width = self.hidden_size, inner.shape[1] + 1
        if len(inner) * (size - width) <= size * width:  # too few words to make up for the folding
            return h, window
        ones = functional.pad(inner, (0, 1), value=1.0)  # for the bias of the map
        return functional.pad(ones, (0, 0, 0, 1)), SharedWeight(self.folded_window())

    def folded_window(self) -> Float[Tensor, "gates window"]:
        """Return ``W`` of Eq. (2) times the linear map to the initial states."""
        initial = torch.cat([self.initial.weight, self.initial.bias[:, None]], 1)
        by_neighbour = self.window.weight.view(-1, self.hidden_size)
        return SharedWeight(initial.T).product(by_neighbour).view(len(self.window.weight), -1)

    def node_sums(
        self, states: States, graph: DepthOrder, weights: LayerWeights
    ) -> tuple[Float[Tensor, "B gates"], Float[Tensor, "B node"]]:
        """Return V g + b of Eq. (2), and the sums of Eq. (3) without the words' own part."""
        gates, size = len(self.window.bias), self.hidden_size
        from_node, node = torch.split(weights.node.product(states.g), [gates, 3 * size], 1)
        from_mean = weights.node_mean.product(graph.text_mean(states.h[:-1]))
        node = node + self.node.bias + functional.pad(from_mean, (size, 0))
        return from_node + self.window.bias, node

    def word_transition(
        self,
        states: States,
        sums: Float[Tensor, "k gates"],
        from_node: Float[Tensor, "B gates"],
        graph: DepthOrder,
    ) -> tuple[Float[Tensor, "k H"], Float[Tensor, "k H"]]:
        """Return the next ``h`` and ``c`` of the first ``k`` words, Eq. (2); ``sums`` is W xi + U x."""
        (_, c, _, c_g), k, size = states, len(sums), self.hidden_size
        text_of, (left, right) = graph.text_of[:k], graph.neighbours[:k].unbind(1)
        sums = sums + from_node.index_select(0, text_of)
        mixed, o, u = torch.split(sums, [5 * size, size, size], 1)
        # A softmax over sigmoids: exp lies in (1, e), so no maximum has to be subtracted.
        l, r, f, s, i = mixed.sigmoid().exp().chunk(5, 1)  # noqa: E741
        o, u = o.sigmoid(), u.tanh()
        from_neighbours = l * c.index_select(0, left) + r * c.index_select(0, right)
        c = from_neighbours + f * c[:k] + s * c_g.index_select(0, text_of) + i * u
        c = c / (l + r + f + s + i)
        return o * c.tanh(), c

    def sentence_transition(
        self,
        states: States,
        node: Float[Tensor, "B node"],
        from_word: Float[Tensor, "N H"],
        graph: DepthOrder,
    ) -> tuple[Float[Tensor, "B H"], Float[Tensor, "B H"]]:
        """Return the next ``g`` and ``c_g``, Eq. (3)."""
        (_, c, _, c_g), text_of = states, graph.text_of
        f_i, f_g, o = node.chunk(3, 1)
        f_i = (f_i.index_select(0, text_of) + from_word).sigmoid()
        f_i, f_g = f_i.exp(), f_g.sigmoid().exp()  # a softmax over the words of a text and its node
        c_g = (f_g * c_g).index_add(0, text_of, f_i * c[:-1]) / f_g.index_add(0, text_of, f_i)
        return o.sigmoid() * c_g.tanh(), c_g


# Sections 3.1 and 3.2: Eq. (4) is in embedding.py, Eq. (5) in lstm.py, its alternatives in positions.py.

# Section 3.3: depth-adaptive mechanism


class DepthClassifier(nn.Module):
    """Scores of the depths 1..L of each word, and the embedding of the selected depth."""

    sinusoidal: Tensor

    def __init__(self, config: ModelConfig, feature_size: int) -> None:
        super().__init__()
        self.inner = nn.Linear(feature_size, config.depth_size)  # W_1, b_1
        supervised = config.depth == "supervised"
        self.scores = nn.Linear(config.depth_size, config.max_depth, bias=supervised)  # W_2, b_2
        depths = torch.arange(1, config.max_depth + 1, device="cpu").float()
        self.register_buffer("sinusoidal", sinusoids(depths, config.depth_size), persistent=False)

    def forward(
        self, features: Float[Tensor, "N feature"]
    ) -> tuple[Float[Tensor, "N inner"], Float[Tensor, "N L"]]:
        """Return the inner vectors and the logits of the depths, Eq. (6)."""
        inner = torch.relu(self.inner(features))
        return inner, self.scores(inner)

    def embedding(self) -> Float[Tensor, "L inner"]:
        """Return ``W_2``, reused as the depth embedding, plus the sinusoids of Eq. (12)."""
        return self.scores.weight + self.sinusoidal


def select_depths(
    logits: Float[Tensor, "N L"], *, how: DepthSelection, sample: bool
) -> Int[Tensor, " N"]:
    """Select a depth in 1..L for each word; class ``j = 0..L-1`` means ``j + 1`` steps.

    ``sample`` adds the noise of Eq. (10); Eq. (11) has the same argmax whatever its temperature.
    """
    logits = logits.detach()
    if how == "full":
        return torch.full_like(logits[:, 0], logits.shape[1], dtype=torch.long)
    if how == "soft":
        classes = torch.arange(logits.shape[1], device=logits.device, dtype=logits.dtype)
        expected = (logits.softmax(1) * classes).sum(1)  # Eq. (7), (9)
        return expected.floor().long().clamp(0, logits.shape[1] - 1) + 1
    if how == "gumbel" and sample:
        logits = logits - torch.empty_like(logits).exponential_().log()  # Eq. (10)
    return logits.argmax(1) + 1  # Eq. (8), (11)


# Section 3.4: from states to labels


def pool_words(words: Float[Tensor, "N H"], batch: WordBatch) -> Float[Tensor, "B 2*H"]:
    """Return ``[max ; mean]`` over the words of each text; the caller applies a ReLU."""
    start = words.new_zeros(batch.num_texts, words.shape[1])  # of the maximum; the ReLU ignores it
    text_of = batch.text_of[:, None].expand_as(words)
    highest = start.scatter_reduce(0, text_of, words, "amax")
    sums = start.index_add(0, batch.text_of, words)
    return torch.cat([highest, sums / batch.word_counts[:, None]], 1)


def pool_texts(
    words: Float[Tensor, "N H"], sentences: Float[Tensor, "B H"], batch: WordBatch
) -> Float[Tensor, "B 3*H"]:
    """Return ``v = ReLU([max ; mean ; g])`` of Eq. (15); zeros for an empty text."""
    return torch.relu(torch.cat([pool_words(words, batch), sentences], 1))


class DepthAdaptiveNetwork(Network):
    """A text classifier that reads each word to a depth of its own."""

    knows_depth = True

    def __init__(
        self, config: ModelConfig, *, spellings: UInt8[Tensor, "V C"] | None = None
    ) -> None:
        super().__init__(config)
        self.embedding = TokenEmbedding(config, spellings)
        self.sequence = (
            BiLSTM(self.embedding.size, config.hidden_size)
            if config.sequence == "bilstm"
            else Positions(config, self.embedding.size)
        )
        self.depth = DepthClassifier(config, self.sequence.size)
        token_size = self.embedding.size + config.depth_size
        self.slstm = SLSTM(config.depth_size, token_size, config.hidden_size)
        self.output = nn.Linear(3 * config.hidden_size, config.num_labels)
        self.hidden_dropout = nn.Dropout(config.hidden_dropout)
        self.ngrams = NgramRegression(config, spellings) if config.ngrams else None
        initialise(self)

    def forward(
        self,
        batch: WordBatch,
        depths: Int[Tensor, " N"] | None = None,
        max_depth: int | None = None,
    ) -> Output:
        """Classify a batch; ``depths`` forces the depth of each word, ``max_depth`` caps it."""
        tokens, rows = self.embedding.distinct(batch)  # Eq. (4)
        x = tokens.index_select(0, rows)
        features = self.hidden_dropout(self.sequence(x, batch))  # Eq. (5)
        inner, depth_logits = self.depth(features)  # Eq. (6)
        depths = self.depths_to_run(batch, depth_logits, depths, max_depth)  # Eq. (7)-(11)
        graph = sort_by_depth(batch, depths)
        rows, by_rank = rows.index_select(0, graph.order), depths.index_select(0, graph.order)
        embedding = self.depth.embedding()  # Eq. (12)
        from_token = self.slstm.token_sums(tokens, rows, embedding, by_rank)  # Eq. (13)
        inner = inner.index_select(0, graph.order)
        words, sentences = self.slstm(inner, from_token, graph)  # Eq. (1)-(3), (14)
        words = words.index_select(0, graph.ranks)
        v = pool_texts(words, sentences, batch)
        logits = self.output(self.hidden_dropout(v))  # Eq. (15)
        return Output(self.mixed(logits, batch), depths, depth_logits, words, sentences)

    def depths_to_run(
        self,
        batch: WordBatch,
        logits: Float[Tensor, "N L"],
        forced: Tensor | None,
        max_depth: int | None,
    ) -> Int[Tensor, " N"]:
        """Return the forced depths, or else the selected ones, at most ``max_depth``."""
        if forced is not None:
            return capped(checked_depths(forced, batch, self.config), max_depth, self.config)
        depths = select_depths(logits, how=self.config.depth, sample=self.training)
        return capped(depths, max_depth, self.config)

    @property
    def word_vectors(self) -> nn.Embedding:
        """The table that pretrained vectors are copied into."""
        return self.embedding.word
