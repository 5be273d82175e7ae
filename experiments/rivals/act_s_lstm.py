"""The S-LSTM with adaptive computation time, as in the paper's related work.

The transitions are Eq. (2) and (3), as in the model ``s-lstm``, but a halting unit (Graves, 2016; see
``halting.py``) decides after each step which words go on, up to ``max_depth`` steps. A sentence node
takes as many steps as the deepest word of its text. Differences from the original: Graves halts the
time steps of one recurrent network; for words of an S-LSTM nothing is published. Every word is
computed in every step, whether it has halted or not: this compares accuracy, not speed.

    N words of the batch, B texts
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional

from experiments.rivals.halting import HaltingUnit, with_ponder_cost
from fathomer.model.baselines.comparison import ComparisonModel
from fathomer.model.graph import WordBatch, sort_by_depth
from fathomer.model.model import SLSTM, States, pool_texts
from fathomer.model.products import SharedWeight


class ActSentenceStateLSTM(ComparisonModel):
    """S-LSTM in which a halting unit decides how many steps a word takes."""

    def build(self, token_size: int) -> int:
        """Build the transitions and the halting unit."""
        self.slstm = SLSTM(token_size, token_size, self.config.hidden_size)
        self.halting = HaltingUnit(self.config.hidden_size)
        return 3 * self.config.hidden_size

    def score(
        self, tokens: Float[Tensor, "N token"], batch: WordBatch
    ) -> Float[Tensor, "B labels"]:
        """Return the logits of the texts after their words have halted."""
        size = self.config.hidden_size
        graph = sort_by_depth(batch, torch.ones_like(batch.words))  # one depth: the order stays
        weights = self.slstm.layer_weights()
        from_token = SharedWeight(self.slstm.token.weight).product(tokens)
        h = functional.pad(self.slstm.initial(tokens), (0, 0, 0, 1))
        g = graph.text_mean(h[:-1])
        states = States(h, h, g, g)

        def step(_: int, running: Bool[Tensor, " N"]) -> Float[Tensor, "N H"]:
            nonlocal states
            window = states.h.index_select(0, graph.window.flatten()).view(len(tokens), 3 * size)
            from_node, node = self.slstm.node_sums(states, graph, weights)
            from_word = weights.node_word.product(states.h[:-1])
            sums = weights.window.product(window) + from_token
            words = self.slstm.word_transition(states, sums, from_node, graph)
            texts = self.slstm.sentence_transition(states, node, from_word, graph)
            runs = batch.text_of.new_zeros(batch.num_texts).index_add(
                0, batch.text_of, running.long()
            )
            padded = functional.pad(running, (0, 1))[:, None]
            h, c = (functional.pad(each, (0, 0, 0, 1)) for each in words)
            states = States(
                torch.where(padded, h, states.h),
                torch.where(padded, c, states.c),
                torch.where(runs[:, None] > 0, texts[0], states.g),
                torch.where(runs[:, None] > 0, texts[1], states.c_g),
            )
            return states.h[:-1]

        halted = self.halting(step, batch.num_words, self.config.max_depth)
        words = halted.states.expand(batch.num_words, size)
        v = pool_texts(words, states.g, batch)
        logits = self.output(self.hidden_dropout(v))
        return with_ponder_cost(logits, halted.ponder, batch)
