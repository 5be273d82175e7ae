"""State transitions of the S-LSTM (section 2), Eq. (2) and (3), in adaptive steps, Eq. (14).

The words stand sorted by depth, so that those which still run are a prefix of the rows: a word that
has stopped takes part in no matrix product, not even in the sentence node's, whose view of a word
is kept from the last step that changed the word.

    N words, k of them running, B texts, H hidden_size; the states of words have a last row of zeros
"""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from fathomer.nn.graph import DepthOrder


class States(NamedTuple):
    """Hold the states of words (with the row of zeros) and of sentence nodes, Eq. (1)."""

    h: Float[Tensor, "N+1 H"]
    c: Float[Tensor, "N+1 H"]
    g: Float[Tensor, "B H"]
    c_g: Float[Tensor, "B H"]


def word_gates(
    projected: Float[Tensor, "k gates"],
    c: Float[Tensor, "k H"],
    c_left: Float[Tensor, "k H"],
    c_right: Float[Tensor, "k H"],
    c_g: Float[Tensor, "k H"],
) -> tuple[Float[Tensor, "k H"], Float[Tensor, "k H"]]:
    """Give the next ``h`` and ``c`` of words from the sums inside the gates of Eq. (2)."""
    size = c.shape[1]
    # The inputs of the softmax are sigmoids: exp lies in (1, e), no maximum need be taken off.
    l, r, f, s, i = projected[:, : 5 * size].sigmoid().exp().chunk(5, 1)  # noqa: E741
    o = projected[:, 5 * size : 6 * size].sigmoid()
    u = projected[:, 6 * size :].tanh()
    c = (l * c_left + f * c + r * c_right + s * c_g + i * u) / (l + r + f + s + i)
    return o * c.tanh(), c


def sentence_gates(
    forget_word: Float[Tensor, "N H"],
    forget_g: Float[Tensor, "B H"],
    output: Float[Tensor, "B H"],
    c: Float[Tensor, "N H"],
    c_g: Float[Tensor, "B H"],
    text_of: Int[Tensor, " N"],
) -> tuple[Float[Tensor, "B H"], Float[Tensor, "B H"]]:
    """Give the next ``g`` and ``c_g`` from the sums inside the gates of Eq. (3)."""
    f = forget_word.sigmoid().exp()
    f_g = forget_g.sigmoid().exp()
    total = f_g.index_add(0, text_of, f)
    c_g = (f_g * c_g).index_add(0, text_of, f * c) / total
    return output.sigmoid() * c_g.tanh(), c_g


class SLSTM(nn.Module):
    """Let the words of a batch exchange information, each for as many steps as its depth."""

    def __init__(self, token_size: int, hidden_size: int) -> None:
        super().__init__()
        self.hidden_size = hidden_size
        self.window = nn.Linear(3 * hidden_size, 7 * hidden_size)  # W and b of Eq. (2): lrfsiou
        self.token = nn.Linear(token_size, 7 * hidden_size, bias=False)  # U of Eq. (2)
        self.sentence = nn.Linear(hidden_size, 7 * hidden_size, bias=False)  # V of Eq. (2)
        self.node = nn.Linear(hidden_size, 3 * hidden_size)  # W and b of Eq. (3): f_i, f_g, o
        self.node_mean = nn.Linear(hidden_size, 2 * hidden_size, bias=False)  # U_g, U_o of Eq. (3)
        self.node_word = nn.Linear(hidden_size, hidden_size, bias=False)  # U_f of Eq. (3)

    def forward(
        self,
        h: Float[Tensor, "N H"],
        tokens: Float[Tensor, "N token"],
        graph: DepthOrder,
        word_counts: Int[Tensor, " B"],
    ) -> tuple[Float[Tensor, "N H"], Float[Tensor, "B H"]]:
        """Give the last states of words and sentence nodes; words stand sorted by depth."""
        states = self.initial_states(h, graph.text_of, word_counts)
        from_token = self.token(tokens)  # the same in every layer
        seen = self.node_word(h)  # U_f h_i of Eq. (3)
        for layer, running in enumerate(graph.running):
            if layer:  # only the words that took the step before look different
                changed = graph.running[layer - 1]
                seen = torch.cat([self.node_word(states.h[:changed]), seen[changed:]])
            h, c = self.word_transition(states, from_token[:running], graph)
            g, c_g = self.sentence_transition(states, seen, graph.text_of, word_counts)
            states = States(  # both transitions have read the layer below; Eq. (14)
                h=torch.cat([h, states.h[running:]]),
                c=torch.cat([c, states.c[running:]]),
                g=torch.where(graph.running_texts[layer], g, states.g),
                c_g=c_g,  # of a text that has stopped, nobody reads it again
            )
        return states.h[:-1], states.g

    def initial_states(
        self, h: Float[Tensor, "N H"], text_of: Int[Tensor, " N"], word_counts: Int[Tensor, " B"]
    ) -> States:
        """Start with ``c = h``, and with their mean in the sentence node."""
        h = functional.pad(h, (0, 0, 0, 1))
        g = text_mean(h[:-1], text_of, word_counts)
        return States(h=h, c=h, g=g, c_g=g)

    def word_transition(
        self, states: States, from_token: Float[Tensor, "k gates"], graph: DepthOrder
    ) -> tuple[Float[Tensor, "k H"], Float[Tensor, "k H"]]:
        """Take one step with the running words, Eq. (2)."""
        running = len(from_token)
        left, right = graph.left[:running], graph.right[:running]
        text_of = graph.text_of[:running]
        h, c = states.h, states.c
        window = torch.cat([h.index_select(0, left), h[:running], h.index_select(0, right)], 1)
        from_sentence = self.sentence(states.g).index_select(0, text_of)
        return word_gates(
            self.window(window) + from_token + from_sentence,
            c=c[:running],
            c_left=c.index_select(0, left),
            c_right=c.index_select(0, right),
            c_g=states.c_g.index_select(0, text_of),
        )

    def sentence_transition(
        self,
        states: States,
        seen: Float[Tensor, "N H"],
        text_of: Int[Tensor, " N"],
        word_counts: Int[Tensor, " B"],
    ) -> tuple[Float[Tensor, "B H"], Float[Tensor, "B H"]]:
        """Take one step with all sentence nodes, Eq. (3)."""
        mean = text_mean(states.h[:-1], text_of, word_counts)
        forget_word, forget_g, output = self.node(states.g).chunk(3, 1)
        mean_g, mean_o = self.node_mean(mean).chunk(2, 1)
        return sentence_gates(
            forget_word=forget_word.index_select(0, text_of) + seen,
            forget_g=forget_g + mean_g,
            output=output + mean_o,
            c=states.c[:-1],
            c_g=states.c_g,
            text_of=text_of,
        )


def text_mean(
    h: Float[Tensor, "N H"], text_of: Int[Tensor, " N"], word_counts: Int[Tensor, " B"]
) -> Float[Tensor, "B H"]:
    """Average the words of each text; an empty text has zeros."""
    sums = h.new_zeros(len(word_counts), h.shape[1]).index_add(0, text_of, h)
    return sums / word_counts[:, None]
