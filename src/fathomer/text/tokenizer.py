"""The tokenizer: splits a text into words with their positions, and looks them up.

Words are split as in GloVe's training data: contractions (``do n't``, ``it 's``) and punctuation
are separate words, while URLs, e-mail addresses and numbers stay whole. Rules and vocabulary are
stored together in the ``tokenizer.json`` format of the `tokenizers` library.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import NamedTuple, Self

import tokenizers
from tokenizers import Regex, models, normalizers, pre_tokenizers, trainers

from fathomer.files import parse_json

UNKNOWN = "<unk>"
UNKNOWN_ID = 0

_SURROGATE = re.compile("[\ud800-\udfff]")
# The separators \x1c to \x1f are spaces for Python, but not for the `tokenizers` library.
_LINE_BREAK = re.compile(r"<br[^\S\x1c-\x1f]*/?>", re.IGNORECASE)
_APOSTROPHE = "\N{RIGHT SINGLE QUOTATION MARK}"

_LETTER = r"[\p{L}\p{M}\p{N}_]"
_NOT = rf"[nN]'[tT](?!{_LETTER})"
_CLITIC = rf"'(?:[sSmMdD]|[rR][eE]|[vV][eE]|[lL][lL])(?!{_LETTER})"

# The first matching alternative wins. Repetitions that may backtrack are bounded, so that every
# text, however hostile, takes linear time.
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
        # any other visible character with its combining marks; an emoji with what is joined to it
        r"[^\s\p{Cc}\p{Cf}][\p{M}\x{1F3FB}-\x{1F3FF}]*"
        r"(?:\x{200D}[^\s\p{Cc}\p{Cf}][\p{M}\x{1F3FB}-\x{1F3FF}]*)*",
    )
)

_LONGEST = 1000
"""Characters kept of an unknown word, since composing combining marks takes quadratic time."""
_WORD_ROOM = 16
"""Characters per word that are tokenized at first in a very long text."""
_CHUNK = 1000
"""Texts that are split at a time."""
_REMEMBERED, _REMEMBERED_LENGTH = 1 << 15, 40
"""Parts of texts whose words are remembered, and the characters of the longest of them."""
_NO_LIMIT = 1 << 60
_MARGIN = 5
"""Words at the end of a cut text that may depend on what follows: ``<br`` before ``/>``."""


class Words(NamedTuple):
    """The words of one text.

    A known word has its id in the vocabulary; a negative id ``-1 - k`` is the text's k-th unknown
    word, which has only a spelling.
    """

    ids: list[int]
    unknown: tuple[str, ...]
    truncated: bool


class Tokenizer:
    """A tokenizer with its vocabulary.

    No word contains a space, so a text has the words of its parts between spaces. Most parts are
    frequent, and their words are remembered.
    """

    def __init__(self, engine: tokenizers.Tokenizer) -> None:
        self._engine = engine
        self._ids: dict[str, int] = engine.get_vocab()
        self._remembered: dict[str, tuple[list[int], tuple[str, ...]]] = {}

    @classmethod
    def from_words(cls, words: Iterable[str] = ()) -> Self:
        """Build a tokenizer with a vocabulary of ``words``, whose ids count from 1 in this order."""
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
        """Build a tokenizer from the words of ``texts``, the most frequent first."""
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
        """Load a tokenizer saved by :meth:`to_json`; only the vocabulary is read from the text.

        The rules are those of :meth:`from_words`, whatever the text says.
        """
        try:
            content = parse_json(text)
            ids, special = content["model"]["vocab"], content["added_tokens"]
            words = sorted(ids, key=ids.__getitem__)
            if [ids[word] for word in words] != list(range(len(words))) or words[0] != UNKNOWN:
                raise ValueError("the ids of the words do not count from 0")
            tokenizer = cls.from_words(words)
        except (AttributeError, KeyError, IndexError, TypeError, ValueError) as error:
            raise ValueError(f"not a tokenizer: {type(error).__name__} {error}"[:200]) from None
        if special:  # made by from_texts
            tokenizer._engine.add_special_tokens([UNKNOWN])
        return tokenizer

    def to_json(self) -> str:
        """Return the rules and the vocabulary in the format of the `tokenizers` library."""
        return str(self._engine.to_str())

    def __len__(self) -> int:
        return len(self._ids)

    @property
    def vocabulary(self) -> list[str]:
        """The known words by id; the first represents all unknown ones."""
        return sorted(self._ids, key=self._ids.__getitem__)

    def id_of(self, word: str) -> int:
        """Return the id of a word as written, else in lower case, else of the unknown word.

        >>> Tokenizer.from_words(["good"]).id_of("Good")
        1
        """
        return self._ids.get(word) or self._ids.get(word.lower(), UNKNOWN_ID)

    def encode(self, texts: Iterable[str], *, max_words: int) -> list[Words]:
        """Split texts into words, at most ``max_words`` each, and look them up.

        >>> [words] = Tokenizer.from_words(["yes", "n't"]).encode(["Don't say yes!"], max_words=4)
        >>> words
        Words(ids=[-1, 2, -2, 1], unknown=('Do', 'say'), truncated=True)
        """
        stream, words = map(_encodable, texts), list[Words]()
        while chunk := list(islice(stream, _CHUNK)):
            words += self._encode(chunk, max_words)
        return words

    def _encode(self, texts: list[str], max_words: int) -> Iterator[Words]:
        parts = [_parts(_cut(text, max_words)) for text in texts]
        known = self._look_up(set(chain.from_iterable(parts)))
        for text, of_text in zip(texts, parts, strict=True):
            ids, unknown = _joined(map(known.__getitem__, of_text))
            if len(ids) < max_words + _MARGIN and len(_cut(text, max_words)) < len(text):
                whole = _parts(text)  # its words are long, so all of it is needed
                ids, unknown = _joined(map(self._look_up(set(whole)).__getitem__, whole))
            truncated = len(ids) > max_words
            if truncated:
                del ids[max_words:]
                del unknown[sum(word < 0 for word in ids) :]
            yield Words(ids, tuple(unknown), truncated)

    def spans(self, text: str, *, max_words: int) -> list[tuple[int, int]]:
        """Return where the words of a text begin and end.

        >>> text = "It's 3.14, don't you think?<br />Yes!"
        >>> spans = Tokenizer.from_words().spans(text, max_words=10)
        >>> [text[start:end] for start, end in spans]
        ['It', "'s", '3.14', ',', 'do', "n't", 'you', 'think', '?', 'Yes']
        """
        text = _encodable(text)
        cut = _cut(text, max_words)
        spans = self._engine.encode(cut).offsets
        if len(cut) < len(text) and len(spans) < max_words + _MARGIN:
            spans = self._engine.encode(text).offsets
        return _with_marks(text, spans[: max_words + 1])[:max_words]

    def _look_up(self, parts: set[str]) -> dict[str, tuple[list[int], tuple[str, ...]]]:
        """Return the ids of the words of each part, and its unknown words."""
        remembered = self._remembered
        known = {part: remembered[part] for part in parts if part in remembered}
        missing = [part for part in parts if part not in known]
        for part, encoding in zip(missing, self._engine.encode_batch(missing), strict=True):
            known[part] = self._words(part, encoding.ids, encoding.offsets)
        if len(remembered) + len(missing) > _REMEMBERED:
            remembered = self._remembered = {}  # other threads may still read the old one
        short = (part for part in missing if len(part) <= _REMEMBERED_LENGTH)
        remembered.update((part, known[part]) for part in islice(short, _REMEMBERED))
        return known

    def _words(
        self, text: str, ids: list[int], spans: list[tuple[int, int]]
    ) -> tuple[list[int], tuple[str, ...]]:
        """Return the ids of the words of a text, and the unknown words."""
        spans = _with_marks(text, spans)
        unknown: list[str] = []
        for position, found in enumerate(ids):
            if found == UNKNOWN_ID:
                start, end = spans[position]
                written = text[start : min(end, start + _LONGEST)]
                word = unicodedata.normalize("NFC", written.replace(_APOSTROPHE, "'"))
                ids[position] = self.id_of(word)
                if ids[position] == UNKNOWN_ID:
                    unknown.append(word)
                    ids[position] = -len(unknown)
        return ids, tuple(unknown)


def split_words(texts: Iterable[str]) -> Iterator[list[str]]:
    """Split a stream of texts into words, without a vocabulary."""
    tokenizer, stream = Tokenizer.from_words(), iter(texts)
    while chunk := list(islice(stream, _CHUNK)):
        for words in tokenizer.encode(chunk, max_words=_NO_LIMIT):
            yield list(words.unknown)  # without a vocabulary, every word is unknown


def _encodable(text: str) -> str:
    """Replace lone surrogates, which have no UTF-8 form, keeping the length."""
    return text if text.isascii() else _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text)


def _cut(text: str, max_words: int) -> str:
    """Cut a text far longer than ``max_words`` at a space, which no word contains."""
    room = _WORD_ROOM * (max_words + _MARGIN)
    return text if len(text) <= room else text[: text.rfind(" ", 0, room) + 1] or text


def _parts(text: str) -> list[str]:
    """Split a text at its spaces and line breaks."""
    return (_LINE_BREAK.sub(" ", text) if "<" in text else text).split()


def _joined(parts: Iterable[tuple[list[int], tuple[str, ...]]]) -> tuple[list[int], list[str]]:
    """Return the ids of all parts, and their unknown words."""
    ids: list[int] = []
    unknown: list[str] = []
    for of_part, spelled in parts:
        if spelled:
            ids += [word if word >= 0 else word - len(unknown) for word in of_part]
            unknown += spelled
        else:
            ids += of_part
    return ids, unknown


def _with_marks(text: str, spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Extend each span over the characters that NFC composed into its last one."""
    if unicodedata.is_normalized("NFC", text):
        return spans
    extended = []
    for number, (start, end) in enumerate(spans):
        limit = spans[number + 1][0] if number + 1 < len(spans) else len(text)
        while end < limit and _is_composed(text[end]):
            end += 1
        extended.append((start, end))
    return extended


def _is_composed(character: str) -> bool:
    """Whether NFC may compose a character into the one before: marks and parts of Hangul syllables."""
    return (
        unicodedata.category(character).startswith("M")
        or "\u1161" <= character <= "\u1175"
        or "\u11a8" <= character <= "\u11c2"
    )
