"""CNN with multiple context fixing attachment (Amplayo et al., 2018): "CNN-MCFA" of the paper's Table 3.

The contexts of a text are the text itself and its translations. Each has its own CNN (Kim, 2014), and the
attachment fixes the vector of each context i by those of all contexts j, itself included:

    v_i  = CNN_i(context i)
    a_j  = σ(t_j · v_j)                                           self usability
    α_ij = softmax_j(x_i · tanh(X_i v_i + a_j X_j v_j + b_i))     relative usability
    c_i  = Σ_j α_ij U_j v_j
    v'_i = v_i σ(V_i [v_i ; c_i] + d_i)                           vector fixing

All v'_i are classified together. The translations are part of the text, each after the word ``SEPARATOR``;
:mod:`experiments.rivals.translations` looks them up. A text without them has zeros instead of their vectors.
Differences from the original: the tokens are ours (with characters), and all languages share one table of
word vectors. The number of languages is that of the file of translations (there, ten), and a demo text is
translated into one made-up language, which says nothing that the text does not say. Weight norms are not
constrained. ``text.max_words`` limits a text together with its translations.

    N words of the batch, B texts, F features of a context, K contexts
"""

from collections.abc import Callable, Iterable, Mapping

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from experiments.rivals.text_cnn import WIDTHS, max_over_time, new_convolutions
from experiments.rivals.translations import ADVICE, translations_of
from fathomer.errors import DataError
from fathomer.model.baselines.comparison import ComparisonModel
from fathomer.model.graph import WordBatch
from fathomer.model.initialise import initialise
from fathomer.model.spelling import spelled
from fathomer.text.tokenizer import Tokenizer

SEPARATOR = "\N{SYMBOL FOR RECORD SEPARATOR}"


def with_translations(text: str) -> str:
    """Return a text followed by its translations, unless they are already there."""
    if SEPARATOR in text:
        return text
    return f" {SEPARATOR} ".join([text, *translations_of(text)])


class Context(nn.Module):
    """The CNN of one context, and its part of the attachment."""

    def __init__(self, token_size: int, maps: int) -> None:
        super().__init__()
        size = len(WIDTHS) * maps
        self.convolutions = new_convolutions(token_size, maps)
        self.self_usability = nn.Linear(size, 1, bias=False)  # t
        self.compared = nn.Linear(size, size, bias=False)  # X
        self.bias = nn.Parameter(torch.zeros(size))  # b
        self.relative_usability = nn.Linear(size, 1, bias=False)  # x
        self.shared = nn.Linear(size, size, bias=False)  # U
        self.fixing = nn.Linear(2 * size, size)  # V and d


class ContextCNN(ComparisonModel):
    """A CNN over a text and one over each of its translations, which fix each other's vectors."""

    sizes_are_free = True  # the number of languages is that of the file

    @classmethod
    def completion(cls) -> Callable[[str], str]:
        """Return what adds its translations to a text."""
        return with_translations

    def build(self, token_size: int) -> int:
        """Create the CNNs and the attachment, for one language at first."""
        return self._build_contexts(token_size, languages=1)

    def _build_contexts(self, token_size: int, languages: int) -> int:
        maps = max(1, self.config.hidden_size // 4)
        contexts = [Context(token_size, maps) for _ in range(1 + languages)]
        self.contexts = nn.ModuleList(contexts)
        return len(contexts) * len(WIDTHS) * maps

    def _set_languages(self, languages: int) -> None:
        """Create everything anew, except the tokens, unless there are as many languages."""
        if languages != len(self.contexts) - 1:
            features = self._build_contexts(self.embedding.size, languages)
            self.output = self.build_output(features)
            initialise(self.contexts)
            initialise(self.output)

    def begin(self, texts: Iterable[str], tokenizer: Tokenizer) -> None:  # noqa: ARG002
        """Count the languages of the translations; raise an error if there are none."""
        languages = max((text.count(SEPARATOR) for text in texts), default=0)
        if not languages:
            raise DataError(f"{self.config.name}: no training text has a translation; {ADVICE}")
        self._set_languages(languages)

    def read(
        self, tokens: Float[Tensor, "N token"], batch: WordBatch
    ) -> Float[Tensor, "B features"]:
        """Return the fixed vectors of all contexts, side by side."""
        part_of = self.part_of(batch)
        vectors = []
        for number, context in enumerate(self._contexts()):
            chosen = part_of == number
            lengths = torch.bincount(batch.text_of[chosen], minlength=batch.num_texts).cpu()
            part = WordBatch(batch.words[chosen], lengths, batch.unknown)
            vectors.append(max_over_time(context.convolutions, tokens[chosen], part))
        return torch.cat(self.fixed(vectors), 1)

    def part_of(self, batch: WordBatch) -> Int[Tensor, " N"]:
        """Return the context of each word, 0 for the text itself; -1 for the separators."""
        name = torch.tensor(list(SEPARATOR.encode()), dtype=torch.uint8, device=batch.words.device)
        letters = spelled(batch.words, self.embedding.spellings, batch.unknown)
        letters = nn.functional.pad(letters, (0, max(0, 1 + len(name) - letters.shape[1])))
        is_separator = (letters[:, : len(name)] == name).all(1) & (letters[:, len(name)] == 0)
        passed = is_separator.long().cumsum(0)
        before = torch.cat([passed.new_zeros(1), passed])  # separators before each word
        starts = torch.arange(batch.num_words, device=passed.device) - batch.positions
        parts = (passed - before[starts]).clamp(max=len(self.contexts) - 1)
        return parts.masked_fill(is_separator, -1)

    def fixed(self, v: list[Float[Tensor, "B F"]]) -> list[Float[Tensor, "B F"]]:
        """Attach the contexts to each other."""
        every = list(zip(self._contexts(), v, strict=True))
        compared = [one.compared(vector) for one, vector in every]  # X v
        usable = [one.self_usability(vector).sigmoid() for one, vector in every]  # a
        shared = torch.stack([one.shared(vector) for one, vector in every])  # U v: K B F
        weighted = torch.stack([a * x for a, x in zip(usable, compared, strict=True)])  # K B F
        found = []
        for number, (one, vector) in enumerate(every):
            scores = one.relative_usability(torch.tanh(compared[number] + weighted + one.bias))
            c = (scores.softmax(0) * shared).sum(0)
            found.append(vector * one.fixing(torch.cat([vector, c], 1)).sigmoid())
        return found

    def _contexts(self) -> list[Context]:
        return [context for context in self.contexts if isinstance(context, Context)]

    def load_tensors(self, tensors: Mapping[str, Tensor]) -> None:
        """Load the weights of a trained model with its number of languages."""
        numbers = {name.split(".")[1] for name in tensors if name.startswith("contexts.")}
        self._set_languages(len(numbers) - 1)
        super().load_tensors(tensors)
