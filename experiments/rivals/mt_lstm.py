"""The MT-LSTM of McCann et al., 2017: an encoder of words in context, pretrained on translation.

    MT-LSTM(w) = BiLSTM(BiLSTM(w))          two layers; each direction is as wide as a word vector

Its weights come from a safetensors file in the published layout, that of PyTorch's ``nn.LSTM`` with two
layers and two directions (``weight_ih_l0``, ..., ``bias_hh_l1_reverse``), or from translations at hand:

    h_t = LSTM(z_1, ..., z_{t-1})                      the words of the translation so far
    a_t = softmax_i(m_i · W h_t)                       attention to the words m_i of the text
    p_t = softmax(O tanh(V [Σ_i a_ti m_i ; h_t]))      the next word

Here the decoder has one layer and does not read its own attention (there, two layers, and it does).

    N words of the batch, B texts, T words of the longest translation, S words of the longest text, W word_size
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, Int
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from fathomer.errors import DataError, MissingFileError
from fathomer.model.baselines.comparison import padded
from fathomer.model.graph import WordBatch
from fathomer.model.initialise import initialise
from fathomer.model.lstm import BiLSTM

LAYERS = 2
EPOCHS, PAIRS, RATE, CLIP = 3, 50, 0.002, 5.0
"""Of the training on translations: passes, pairs per batch, learning rate, gradient norm."""
MOST_WORDS = 20_000
"""Words of the translations' vocabulary."""
UNKNOWN, START = 0, 1


class MTLSTM(nn.Module):
    """Two bidirectional LSTMs."""

    def __init__(self, word_size: int) -> None:
        super().__init__()
        self.word_size, self.size = word_size, 2 * word_size
        self.layers = nn.ModuleList(
            BiLSTM(self.size if layer else word_size, self.size) for layer in range(LAYERS)
        )

    def forward(self, x: Float[Tensor, "N W"], batch: WordBatch) -> Float[Tensor, "N size"]:
        """Return the vector of each word in its context."""
        for layer in self.layers:
            x = layer(x, batch)
        return x

    @torch.no_grad()
    def load_published(self, tensors: Mapping[str, Tensor]) -> None:
        """Copy weights named and sorted like those of ``nn.LSTM``; ValueError if they do not fit."""
        expected = nn.LSTM(
            self.word_size, self.word_size, LAYERS, bidirectional=True, device="meta"
        )
        for name, weight in expected.named_parameters():
            if name not in tensors:
                raise ValueError(f"the tensor {name} is missing")
            if tensors[name].shape != weight.shape:
                raise ValueError(
                    f"{name} has shape {list(tensors[name].shape)}, expected {list(weight.shape)} "
                    f"for word vectors of {self.word_size} numbers"
                )
        for number, layer in enumerate(self.layers):
            assert isinstance(layer, BiLSTM)
            for direction, suffix in enumerate(("", "_reverse")):
                end = f"_l{number}{suffix}"
                layer.input[direction] = _sorted_gates(tensors[f"weight_ih{end}"])
                layer.recurrent[direction] = _sorted_gates(tensors[f"weight_hh{end}"])
                biases = tensors[f"bias_ih{end}"] + tensors[f"bias_hh{end}"]
                layer.bias[direction] = _sorted_gates(biases)


def _sorted_gates(weight: Tensor) -> Tensor:
    """Sort gates from PyTorch's order i, f, g, o to ours, g, i, f, o."""
    i, f, g, o = weight.chunk(4)
    return torch.cat([g, i, f, o])


def read_published(path: Path) -> dict[str, Tensor]:
    """Read the tensors of a safetensors file; a prefix of their names, such as ``rnn.``, is dropped."""
    if not path.is_file():
        raise MissingFileError(f"{path}: no such file of MT-LSTM weights")
    try:
        with safe_open(path, framework="pt") as file:
            return {name.rpartition(".")[2]: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        reason = str(error).partition("\n")[0]
        raise DataError(f"{path}: not a safetensors file ({reason})") from None


class Decoder(nn.Module):
    """An LSTM with attention that predicts the next word of a translation."""

    def __init__(self, size: int, vocab_size: int, word_size: int) -> None:
        super().__init__()
        self.words = nn.Embedding(vocab_size, word_size)
        self.lstm = nn.LSTM(word_size, size, batch_first=True)
        self.attention = nn.Linear(size, size, bias=False)  # W
        self.joined = nn.Linear(2 * size, size)  # V
        self.output = nn.Linear(size, vocab_size)  # O
        initialise(self)

    def forward(
        self, m: Float[Tensor, "N size"], batch: WordBatch, before: Int[Tensor, "B T"]
    ) -> Float[Tensor, "B T words"]:
        """Return the logits of each word, given the ones before it."""
        states, _ = self.lstm(self.words(before))  # B T size
        table, here = padded(m, batch)  # B S size
        scores = self.attention(states) @ table.mT  # B T S
        attended = scores.masked_fill(~here[:, None], -1e9).softmax(2) @ table
        logits: Tensor = self.output(torch.tanh(self.joined(torch.cat([attended, states], 2))))
        return logits


def pretrain_on_translations(
    encoder: MTLSTM,
    words: nn.Embedding,
    texts: Sequence[Sequence[int]],
    translations: Sequence[Sequence[str]],
    *,
    learn_words: bool,
) -> float:
    """Train an encoder, and word vectors if they are to be learned; return the last mean loss."""
    counts = Counter(word for translation in translations for word in translation)
    known = {word: 2 + n for n, (word, _) in enumerate(counts.most_common(MOST_WORDS))}
    targets = [[known.get(word, UNKNOWN) for word in translation] for translation in translations]
    decoder = Decoder(encoder.size, 2 + len(known), encoder.word_size)
    parameters = [*encoder.parameters(), *decoder.parameters()]
    if learn_words:
        parameters += words.parameters()
    frozen = [parameter for parameter in parameters if not parameter.requires_grad]
    for parameter in frozen:
        parameter.requires_grad_(True)
    optimiser = torch.optim.Adam(parameters, lr=RATE)
    losses: list[float] = []
    for _ in range(EPOCHS):
        losses = []
        for chosen in torch.split(torch.randperm(len(texts)), PAIRS):
            batch = WordBatch.from_ids([[max(0, w) for w in texts[i]] for i in chosen.tolist()])
            before, after = _shifted([targets[i] for i in chosen.tolist()])
            logits = decoder(encoder(words(batch.words), batch), batch, before)
            loss = cross_entropy(logits.flatten(0, 1), after.flatten(), ignore_index=-1)
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(parameters, CLIP)
            optimiser.step()
            losses.append(float(loss.detach()))
    for parameter in frozen:
        parameter.requires_grad_(False)
        parameter.grad = None
    return float(np.mean(losses))


def _shifted(targets: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
    """Return the word before each word, and the words; -1 for padding."""
    longest = max(1, *map(len, targets))
    after = torch.full((len(targets), longest), -1)
    for row, target in enumerate(targets):
        after[row, : len(target)] = torch.tensor(target, dtype=torch.long)
    before = torch.cat([after.new_full((len(targets), 1), START), after[:, :-1]], 1)
    return before.clamp(min=UNKNOWN), after
