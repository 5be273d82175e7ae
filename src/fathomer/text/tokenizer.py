"""From a text to its words, each with its place in the text.

Words are split as in the text that GloVe was trained on: contractions (``do n't``, ``it 's``) and
punctuation apart, URLs, addresses and numbers whole. The rules live in one ``tokenizer.json`` of
the `tokenizers` library, together with the vocabulary.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Self

import tokenizers
from tokenizers import Regex, models, normalizers, pre_tokenizers, trainers

UNKNOWN = "<unk>"
UNKNOWN_ID = 0

_SURROGATE = re.compile("[\ud800-\udfff]")
_APOSTROPHE = "\N{RIGHT SINGLE QUOTATION MARK}"

_LETTER = r"[\p{L}\p{M}\p{N}_]"
_NOT = rf"[nN]'[tT](?!{_LETTER})"
_CLITIC = rf"'(?:[sSmMdD]|[rR][eE]|[vV][eE]|[lL][lL])(?!{_LETTER})"

# The first alternative that matches wins. Repetitions that may have to be given back are bounded,
# so that no text, however hostile, takes more than linear time.
_WORD = "|".join(
    (
        r"(?:https?://|www\.)[^\s\p{C}<>\"]{0,2000}[^\s\p{C}<>\".,;:!?'()\[\]]",  # a URL
        r"[\w.+-]{1,64}@\w[\w-]{0,63}(?:\.\w[\w-]{0,63}){1,8}",  # an e-mail address
        r"\p{N}+(?:[.,:/]\p{N}+)+(?![\p{L}\p{N}])",  # 3.14  1,000  12:30  24/7
        rf"{_LETTER}{{1,40}}?(?={_NOT})",  # the do of don't
        rf"(?<={_LETTER}){_NOT}",  # the n't of don't
        rf"(?<={_LETTER}){_CLITIC}",  # the 's of it's
        r"(?:\p{L}\.){2,}",  # U.S.
        rf"{_LETTER}+(?:(?!{_CLITIC})[-']{_LETTER}+)*",  # film  well-known  O'Brien
        r"\.{2,}|-{2,}",  # ...  --
        # any other visible character, with its marks; an emoji with what is joined to it
        r"[^\s\p{Cc}\p{Cf}][\p{M}\x{1F3FB}-\x{1F3FF}]*"
        r"(?:\x{200D}[^\s\p{Cc}\p{Cf}][\p{M}\x{1F3FB}-\x{1F3FF}]*)*",
    )
)

_LONGEST = 1000
"""Characters of an unknown word that are kept; composing marks takes quadratic time."""
_WORD_ROOM = 16
"""Characters per word within which the first words of a very long text are looked for."""
_MARGIN = 5
"""Words at the end of an opening that the rest of the text may change: ``<br`` before ``/>``."""


class Words(NamedTuple):
    """Hold the words of one text.

    A known word has its id in the vocabulary; a negative id ``-1 - k`` is the text's k-th unknown
    word, of which there is only the spelling.
    """

    ids: list[int]
    unknown: list[str]
    spans: list[tuple[int, int]]
    truncated: bool


class Tokenizer:
    """Split texts into words and look them up in a vocabulary."""

    def __init__(self, engine: tokenizers.Tokenizer) -> None:
        self._engine = engine
        self._ids: dict[str, int] = engine.get_vocab()

    @classmethod
    def from_words(cls, words: Iterable[str] = ()) -> Self:
        """Build a tokenizer that knows ``words``; their ids count from 1 in the order given."""
        vocabulary = {UNKNOWN: UNKNOWN_ID}
        for word in words:
            vocabulary.setdefault(word, len(vocabulary))
        engine = tokenizers.Tokenizer(models.WordLevel(vocabulary, unk_token=UNKNOWN))
        engine.normalizer = normalizers.Sequence(
            [
                normalizers.Replace(Regex(r"(?i:<br\s*/?>)"), " "),
                normalizers.Replace(_APOSTROPHE, "'"),
                normalizers.NFC(),
            ]
        )
        engine.pre_tokenizer = pre_tokenizers.Split(Regex(_WORD), behavior="removed", invert=True)
        return cls(engine)

    @classmethod
    def from_texts(cls, texts: Iterable[str], *, min_count: int, max_vocabulary: int) -> Self:
        """Build a tokenizer that knows the words of ``texts``, the most frequent first."""
        tokenizer = cls.from_words()
        trainer = trainers.WordLevelTrainer(
            vocab_size=max_vocabulary + 1,
            min_frequency=min_count,
            show_progress=False,
            special_tokens=[UNKNOWN],
        )
        tokenizer._engine.train_from_iterator(map(_encodable, texts), trainer)
        return cls(tokenizer._engine)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read back what :meth:`to_json` wrote."""
        try:
            return cls(tokenizers.Tokenizer.from_str(text))
        except Exception as error:  # the library raises nothing more exact
            raise ValueError(f"not a tokenizer: {error}") from None

    def to_json(self) -> str:
        """Write rules and vocabulary as the `tokenizers` library does."""
        return str(self._engine.to_str())

    def __len__(self) -> int:
        return len(self._ids)

    @property
    def vocabulary(self) -> list[str]:
        """List the known words by id; the first stands for all unknown ones."""
        return sorted(self._ids, key=self._ids.__getitem__)

    def id_of(self, word: str) -> int:
        """Look a word up as it is written, then in lower case.

        >>> Tokenizer.from_words(["good"]).id_of("Good")
        1
        """
        return self._ids.get(word) or self._ids.get(word.lower(), UNKNOWN_ID)

    def encode(self, texts: Sequence[str], *, max_words: int) -> list[Words]:
        """Split and look up texts; a longer one is cut after ``max_words`` words.

        >>> text = "It's 3.14, don't you think?<br />Yes!"
        >>> [words] = Tokenizer.from_words(["yes", "n't"]).encode([text], max_words=10)
        >>> [text[start:end] for start, end in words.spans]
        ['It', "'s", '3.14', ',', 'do', "n't", 'you', 'think', '?', 'Yes']
        >>> words.ids, words.truncated
        ([-1, -2, -3, -4, -5, 2, -6, -7, -8, 1], True)
        """
        texts = [_encodable(text) for text in texts]
        openings = [_opening(text, max_words) for text in texts]
        encodings = self._engine.encode_batch(openings)
        words = []
        for text, opening, encoding in zip(texts, openings, encodings, strict=True):
            if len(opening) < len(text) and len(encoding.ids) < max_words + _MARGIN:
                encoding = self._engine.encode(text)  # its words are long: all of it is needed
            words.append(self._words(text, encoding.ids, encoding.offsets, max_words))
        return words

    def _words(
        self, text: str, ids: list[int], spans: list[tuple[int, int]], max_words: int
    ) -> Words:
        truncated = len(ids) > max_words
        if not unicodedata.is_normalized("NFC", text):
            spans = _with_marks(text, spans[: max_words + 1])
        ids, spans = ids[:max_words], spans[:max_words]
        unknown: list[str] = []
        for place, known in enumerate(ids):
            if known == UNKNOWN_ID:
                start, end = spans[place]
                written = text[start : min(end, start + _LONGEST)]
                word = unicodedata.normalize("NFC", written.replace(_APOSTROPHE, "'"))
                ids[place] = self.id_of(word)
                if ids[place] == UNKNOWN_ID:
                    unknown.append(word)
                    ids[place] = -len(unknown)
        return Words(ids, unknown, spans, truncated)


def _encodable(text: str) -> str:
    """Replace lone surrogates, which have no UTF-8 form, one for one."""
    return text if text.isascii() else _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text)


def _opening(text: str, max_words: int) -> str:
    """Cut a text that is far longer than what is read of it; no word goes across a space."""
    room = _WORD_ROOM * (max_words + _MARGIN)
    return text if len(text) <= room else text[: text.rfind(" ", 0, room) + 1] or text


def _with_marks(text: str, spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Stretch each span over what NFC has composed into its last character."""
    stretched = []
    for number, (start, end) in enumerate(spans):
        limit = spans[number + 1][0] if number + 1 < len(spans) else len(text)
        while end < limit and _is_composed(text[end]):
            end += 1
        stretched.append((start, end))
    return stretched


def _is_composed(character: str) -> bool:
    """Tell marks, and the vowels and final consonants of decomposed Hangul syllables."""
    return (
        unicodedata.category(character).startswith("M")
        or "\u1161" <= character <= "\u1175"
        or "\u11a8" <= character <= "\u11c2"
    )
