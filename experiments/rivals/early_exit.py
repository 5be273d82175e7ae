"""A Transformer encoder with early exits, after the Depth-Adaptive Transformer (Elbayad et al., 2020).

There is a classifier after each layer of the model ``transformer``, which scores every word. A word
exits at the first layer whose classifier is sure of it: its highest probability is at least
``CONFIDENCE``. It keeps its state, which others still attend to. The logits of a text are the mean of
its words' logits at their exits.

In training no word exits. Each layer classifies the text by the mean of its words' logits, and the
probabilities of the layers are averaged, so that every classifier learns. Differences from the
original: that is a decoder whose words are the targets, trained with the sum of the losses of the
layers; its words can also exit by a trained unit. Every word is computed in every layer, whether it
has left or not.

    N words of the batch, B texts, H width
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

from fathomer.model.baselines.comparison import packed, padded, refuse_several_labels
from fathomer.model.baselines.transformer import LAYERS, Transformer
from fathomer.model.graph import WordBatch

CONFIDENCE = 0.9


class EarlyExitTransformer(Transformer):
    """A Transformer encoder whose words leave when a classifier is sure of them."""

    output: nn.ModuleList

    def build(self, token_size: int) -> int:
        """Build the layers."""
        refuse_several_labels(self.config)
        super().build(token_size)
        self.encoder.norm = None  # each classifier has its own
        return self.size

    def build_output(self, features: int) -> nn.ModuleList:
        """Build one classifier of words per layer."""
        labels = self.config.num_labels
        return nn.ModuleList(
            nn.Sequential(nn.LayerNorm(features), nn.Linear(features, labels))
            for _ in range(LAYERS)
        )

    def score(
        self, tokens: Float[Tensor, "N token"], batch: WordBatch
    ) -> Float[Tensor, "B labels"]:
        """Return the logits, with early exits unless the model is being trained."""
        h = self.embedded(tokens, batch)
        by_layer = []
        running = torch.ones_like(batch.words, dtype=torch.bool)
        exits = h.new_zeros(batch.num_words, self.config.num_labels)
        for layer, classifier in zip(self.encoder.layers, self.output, strict=True):
            table, here = padded(h, batch)
            here[:, 0] = True  # an empty text attends to one word of zeros
            new = packed(layer(table, src_key_padding_mask=~here), batch)
            h = torch.where(running[:, None], new, h)
            logits = classifier(self.hidden_dropout(h))
            exits = torch.where(running[:, None], logits, exits)
            by_layer.append(text_mean(logits, batch).log_softmax(1))
            if not self.training:
                running = running & (exits.softmax(1).amax(1) < CONFIDENCE)
        if self.training:
            return torch.stack(by_layer).logsumexp(0) - math.log(LAYERS)
        return text_mean(exits, batch)


def text_mean(words: Float[Tensor, "N labels"], batch: WordBatch) -> Float[Tensor, "B labels"]:
    """Average over the words of each text."""
    sums = words.new_zeros(batch.num_texts, words.shape[1]).index_add(0, batch.text_of, words)
    return sums / batch.word_counts[:, None]
