"""Biattentive classification network over CoVe (McCann et al., 2017): "CoVe" of the paper's Table 3.

    w~_i = [word ; characters ; MT-LSTM(word)_i]              the MT-LSTM and the word vectors are fixed
    x    = BiLSTM(ReLU(W w~ + b))
    c_i  = Σ_j softmax_j(x_i · x_j) x_j                       attention of the text to itself
    z    = BiLSTM([x ; x - c ; x c])
    p    = [max z ; mean z ; min z ; Σ_i softmax_i(v · z_i) z_i]

Two maxout layers and a linear one classify p. The MT-LSTM is that of the file ``FATHOMER_MT_LSTM``, in the
published layout (:mod:`experiments.rivals.mt_lstm`), and reads the vectors that it was trained with, given by
``--vectors`` and not centred. Without a file, it is trained on the translations of the training texts
(:mod:`experiments.rivals.translations`) and learns its word vectors, if none are given.
Differences from the original: there, the biattention is between two sequences, and a single text is
duplicated; both copies have the same x and c, so one of them is computed here, with one BiLSTM for z. Tokens
have characters, the last layer is linear (there, maxout, too), and maxout layers have layer instead of batch
normalisation, because the answer to a text must not depend on the rest of the batch. The MT-LSTM that is
trained on translations has a simpler decoder.

    N words of the batch, B texts, T words of the longest text
"""

import os
from collections.abc import Iterable
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor, nn

from experiments.rivals.mt_lstm import MTLSTM, pretrain_on_translations, read_published
from experiments.rivals.translations import FILE as TRANSLATIONS
from experiments.rivals.translations import translations_of
from fathomer.errors import ConfigError, DataError
from fathomer.model.baselines.comparison import ComparisonModel, packed, padded
from fathomer.model.graph import WordBatch
from fathomer.model.lstm import BiLSTM
from fathomer.text.tokenizer import Tokenizer, split_words

FILE = "FATHOMER_MT_LSTM"
ADVICE = (
    f"set {FILE} to the weights of github.com/salesforce/cove (wmtlstm-*.pth) as safetensors and give "
    f"GloVe 840B by --vectors, or set {TRANSLATIONS} to translations to train an MT-LSTM on"
)
PIECES = 4
"""Linear pieces of a maxout unit."""
MAX_WORDS = 200
"""Words of a text that an MT-LSTM is trained on."""


class Maxout(nn.Module):
    """The maximum of several linear functions (Goodfellow et al., 2013) of a normalised vector."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.normalise = nn.LayerNorm(inputs)
        self.pieces = nn.Linear(inputs, PIECES * outputs)

    def forward(self, x: Float[Tensor, "B inputs"]) -> Float[Tensor, "B outputs"]:
        """Return one number per unit."""
        return self.pieces(self.normalise(x)).unflatten(1, (PIECES, -1)).amax(1)  # type: ignore[no-any-return]


class Cove(ComparisonModel):
    """The biattentive classification network over a pretrained MT-LSTM."""

    centres_vectors = False

    def build(self, token_size: int) -> int:
        """Create the layers; return the width of the pooled vector."""
        size = 2 * (self.config.hidden_size // 2)
        self.mt_lstm = MTLSTM(self.config.word_size)
        for weight in (*self.mt_lstm.parameters(), self.embedding.word.weight):
            weight.requires_grad_(False)
        self.feedforward = nn.Linear(token_size + self.mt_lstm.size, size)
        self.encoder = BiLSTM(size, size)
        self.integrate = BiLSTM(3 * size, size)
        self.attention = nn.Linear(size, 1, bias=False)
        return 4 * size

    def build_output(self, features: int) -> nn.Module:
        """Create the maxout layers and the linear layer."""
        size = self.config.hidden_size
        return nn.Sequential(
            Maxout(features, size), Maxout(size, size), nn.Linear(size, self.config.num_labels)
        )

    def begin(self, texts: Iterable[str], tokenizer: Tokenizer) -> None:
        """Load the MT-LSTM, or train it on translations; raise an error if there is neither."""
        if file := os.environ.get(FILE):
            self._load(Path(file))
            return
        pairs = [(text, found[0]) for text in texts if (found := translations_of(text))]
        if not pairs:
            raise DataError(f"{self.config.name}: there is no MT-LSTM; {ADVICE}")
        sources = tokenizer.encode([text for text, _ in pairs], max_words=MAX_WORDS)
        targets = [found[:MAX_WORDS] for found in split_words(found for _, found in pairs)]
        pretrain_on_translations(
            self.mt_lstm,
            self.embedding.word,
            [words.ids for words in sources],
            targets,
            learn_words=not self.config.fixed_words,
        )

    def _load(self, path: Path) -> None:
        if not self.config.fixed_words:
            raise ConfigError(
                f"{path}: an MT-LSTM reads the word vectors that it was trained with; give --vectors"
            )
        try:
            self.mt_lstm.load_published(read_published(path))
        except ValueError as error:
            raise DataError(f"{path}: not an MT-LSTM for these vectors: {error}") from None

    def read(
        self, tokens: Float[Tensor, "N token"], batch: WordBatch
    ) -> Float[Tensor, "B features"]:
        """Return the pooled vector of each text; zeros for an empty one."""
        if not batch.num_words:
            return tokens.new_zeros(batch.num_texts, 4 * self.encoder.size)
        with torch.no_grad():
            in_context = self.mt_lstm(self.embedding.word(batch.words.clamp(min=0)), batch)
        x = torch.cat([tokens, self.embedding.dropout(in_context)], 1)
        x = self.encoder(torch.relu(self.feedforward(x)), batch)
        table, here = padded(x, batch)
        among = (table @ table.mT).masked_fill(~here[:, None], -1e9).softmax(2)  # B T T
        c = packed(among @ table, batch)
        z, _ = padded(self.integrate(torch.cat([x, x - c, x * c], 1), batch), batch)
        return self.pool(z, here)

    def pool(self, z: Float[Tensor, "B T size"], here: Tensor) -> Float[Tensor, "B features"]:
        """Return maximum, mean, minimum and the attended mean over the words of each text."""
        words = here[:, :, None]
        mean = (z * words).sum(1) / words.sum(1).clamp(min=1)
        attended = (self.attention(z).masked_fill(~words, -1e9).softmax(1) * z).sum(1)
        high = z.masked_fill(~words, -torch.inf).amax(1)
        low = z.masked_fill(~words, torch.inf).amin(1)
        pooled = torch.cat([high, mean, low, attended], 1)
        return pooled.masked_fill(~here.any(1, keepdim=True), 0.0)
