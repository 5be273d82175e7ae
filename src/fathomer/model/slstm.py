"""The S-LSTM's weights (section 2), and what is done once before its steps are taken.

The initial states are a linear map of the inner vector, so that the window product of the first
layer can be taken on the inner vectors themselves, which are narrower: the two matrices are folded
into one. The result is the same.

    N words, D rows of tokens, B texts, H hidden_size, Z width of the first layer's source
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from fathomer.model.backward import AdaptiveSteps
from fathomer.model.graph import DepthOrder
from fathomer.model.steps import Steps, Terms, Weights


class SLSTM(nn.Module):
    """Let the words of a batch exchange information, each for as many steps as its depth."""

    def __init__(self, inner_size: int, token_size: int, hidden_size: int) -> None:
        super().__init__()
        self.hidden_size = hidden_size
        self.initial = nn.Linear(inner_size, hidden_size)
        self.window = nn.Linear(3 * hidden_size, 7 * hidden_size)  # W and b of Eq. (2): lrfsiou
        self.token = nn.Linear(token_size, 7 * hidden_size, bias=False)  # U of Eq. (2)
        self.sentence = nn.Linear(hidden_size, 7 * hidden_size, bias=False)  # V of Eq. (2)
        self.node = nn.Linear(hidden_size, 3 * hidden_size)  # W and b of Eq. (3): f_i, f_g, o
        self.node_mean = nn.Linear(hidden_size, 2 * hidden_size, bias=False)  # U_g, U_o of Eq. (3)
        self.node_word = nn.Linear(hidden_size, hidden_size, bias=False)  # U_f of Eq. (3)

    def forward(
        self,
        inner: Float[Tensor, "N inner"],
        tokens: Float[Tensor, "D token"],
        places: Int[Tensor, " N"],
        depth_embedding: Float[Tensor, "L depth"],
        depths: Int[Tensor, " N"],
        graph: DepthOrder,
    ) -> tuple[Float[Tensor, "N H"], Float[Tensor, "B H"]]:
        """Give the last states of words and sentence nodes; words stand sorted by depth."""
        h = self.initial(inner)  # under autocast, its type becomes that of all steps
        source, first = self.first_layer(inner, h)
        terms = self.terms(tokens, places, depth_embedding, depths, graph)
        weights = self.weights(first)
        if h.dtype != self.window.weight.dtype:
            source, terms = source.to(h.dtype), terms._replace(table=terms.table.to(h.dtype))
            weights = Weights(*(weight.to(h.dtype) for weight in weights))
        if torch.is_grad_enabled():
            return AdaptiveSteps.apply(graph, source, h, *terms, *weights)  # type: ignore[no-any-return, no-untyped-call]
        last = self.steps(graph, source, h, terms, weights).take()
        return last.h[:-1], last.g

    def steps(
        self, graph: DepthOrder, source: Tensor, h: Tensor, terms: Terms, weights: Weights
    ) -> Steps:
        """Get ready to take the steps."""
        return Steps(graph, source, h, terms, weights)

    def terms(
        self,
        tokens: Tensor,
        places: Tensor,
        depth_embedding: Tensor,
        depths: Tensor,
        graph: DepthOrder,
    ) -> Terms:
        """Give U x of Eq. (2) for the refined tokens of Eq. (13): the same in every layer.

        It is a sum of a part for the word, taken once per row of tokens, and one for the depth.
        """
        by_word, by_depth = self.token.weight.tensor_split([tokens.shape[1]], 1)
        parts = len(tokens), len(tokens) + len(depth_embedding)
        num_texts = len(graph.word_counts)
        if torch.is_grad_enabled():
            texts = tokens.new_zeros(num_texts, len(by_word))
            table = torch.cat([tokens @ by_word.T, depth_embedding @ by_depth.T, texts])
        else:  # without a copy
            table = tokens.new_empty(parts[1] + num_texts, len(by_word))
            words, depth_rows, _ = table.tensor_split(parts)
            self.write_from_tokens(tokens, words)
            torch.mm(depth_embedding, by_depth.T, out=depth_rows)
        rows = torch.stack([places, parts[0] + depths - 1, parts[1] + graph.text_of], 1)
        return Terms(table, rows)

    def write_from_tokens(self, tokens: Float[Tensor, "D token"], out: Tensor) -> None:
        """Write U x of Eq. (2) for the words' part of the tokens."""
        torch.mm(tokens, self.token.weight[:, : tokens.shape[1]].T, out=out)

    def first_layer(
        self, inner: Float[Tensor, "N inner"], h: Float[Tensor, "N H"]
    ) -> tuple[Float[Tensor, "rows Z"], Tensor]:
        """Give what the first layer's window is taken of, and its matrix: folded where that pays."""
        size, inner_size = self.hidden_size, inner.shape[1] + 1
        if len(inner) * (size - inner_size) <= size * inner_size:
            return functional.pad(h, (0, 0, 0, 1)), self.window.weight
        return self.folded_source(inner), self.folded_window()

    def folded_source(self, inner: Float[Tensor, "N inner"]) -> Float[Tensor, "rows Z"]:
        """Add a column of ones for the bias of the initial states; the row of zeros has none."""
        return functional.pad(functional.pad(inner, (0, 1), value=1.0), (0, 0, 0, 1))

    def folded_window(self) -> Float[Tensor, "gates inputs"]:
        """Fold W of Eq. (2) with the map that makes the initial states."""
        initial = torch.cat([self.initial.weight, self.initial.bias[:, None]], 1)  # H Z
        return (self.window.weight.view(-1, 3, self.hidden_size) @ initial).flatten(1)

    def weights(self, first: Tensor) -> Weights:
        """Name the matrices of the steps."""
        return Weights(
            first=first,
            window=self.window.weight,
            window_bias=self.window.bias,
            sentence=self.sentence.weight,
            node=self.node.weight,
            node_bias=self.node.bias,
            node_mean=self.node_mean.weight,
            node_word=self.node_word.weight,
        )
