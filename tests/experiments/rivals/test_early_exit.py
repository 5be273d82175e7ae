"""The Transformer with early exits."""

import torch

from experiments.rivals import early_exit
from tests.model.baselines.small import RAGGED, assert_close, small_model, transformer_input
from tests.model.networks import packed


def run_plainly(network, text, confidence):
    """Compute the logits of one text; a word that is sure keeps its state and its logits."""
    h = transformer_input(network, text)
    exits = [None] * len(text)
    for layer, classifier in zip(network.encoder.layers, network.output, strict=True):
        new = layer(h[None])[0]
        h = torch.stack([new[j] if exits[j] is None else h[j] for j in range(len(text))])
        for j, logits in enumerate(classifier(h)):
            last = layer is network.encoder.layers[-1]
            if exits[j] is None and (last or logits.softmax(0).max() >= confidence):
                exits[j] = logits
    return sum(exits) / len(text)


def test_a_sure_word_keeps_its_state_and_its_logits(monkeypatch):
    network = small_model("early-exit")
    with torch.no_grad():
        for confidence in (0.0, 0.6, 0.9, 1.1):
            monkeypatch.setattr(early_exit, "CONFIDENCE", confidence)
            for text in filter(None, RAGGED):
                found = network(packed([text])).logits[0]
                assert_close(found, run_plainly(network, text, confidence))


def test_in_training_the_probabilities_of_the_layers_are_averaged():
    network = small_model("early-exit", word_dropout=0.0, hidden_dropout=0.0).train()
    text = RAGGED[3]
    h = transformer_input(network, text)
    probabilities = []
    for layer, classifier in zip(network.encoder.layers, network.output, strict=True):
        h = layer(h[None])[0]
        probabilities.append(classifier(h).mean(0).softmax(0))
    wanted = torch.stack(probabilities).mean(0)
    assert_close(network(packed([text])).logits[0].exp(), wanted)
