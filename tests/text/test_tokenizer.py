"""The tokenizer: word boundaries, positions, lookup, and linear time for every text."""

import time
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fathomer.text import tokenizer as tokenizer_module
from fathomer.text.tokenizer import UNKNOWN, Tokenizer, Words

SPLITS = {
    "contractions": [
        ("don't can't won't", "do n't ca n't wo n't"),
        ("it's they'll I'd we've you're I'm", "it 's they 'll I 'd we 've you 're I 'm"),
        ("DON'T IT'S THEY'LL", "DO N'T IT 'S THEY 'LL"),
        ("wouldn't've y'all'd", "would n't 've y'all 'd"),
        ("O'Brien's rock'n'roll", "O'Brien 's rock'n'roll"),
        ("don’t it’s O’Brien’s", "do n’t it ’s O’Brien ’s"),
        ("'quoted' dogs' it's.", "' quoted ' dogs ' it 's ."),
        ("it'sy n'then", "it'sy n'then"),
    ],
    "punctuation": [
        ("Good, bad; (ugly)!?", "Good , bad ; ( ugly ) ! ?"),
        ("well-known film--the... -", "well-known film -- the ... -"),
        ("U.S. U.S.A. e.g. end.", "U.S. U.S.A. e.g. end ."),
        ("#tag @user $5 50% C++", "# tag @ user $ 5 50 % C + +"),
    ],
    "line breaks of HTML": [
        ("a<br />b<br>c<BR/>d<br\t/>e", "a b c d e"),
        ("a<br /><br />b < br> <brr>", "a b < br > < brr >"),
    ],
    "addresses": [
        ("see http://x.org/a?b=1,2.", "see http://x.org/a?b=1,2 ."),
        ("(https://x.org/~me) www.x.org!", "( https://x.org/~me ) www.x.org !"),
        ('<a href="http://x.org">', '< a href = " http://x.org " >'),
        ("to a.b+c@d-e.co.uk, me@x.org.", "to a.b+c@d-e.co.uk , me@x.org ."),
        ("a@b @ www. http://", "a @ b @ www . http : / /"),
    ],
    "numbers": [
        ("3.14 1,000 1,000,000.00 12:30 24/7 1990s 21st 1.2.3", None),
        ("3.14, 12:30. -5", "3.14 , 12:30 . - 5"),
        ("1990's 3.5's", "1990 's 3.5 's"),
    ],
    "other scripts": [
        ("naïve Ωmega Привет नमस्ते مرحبا", None),
        ("你好世界，再见", "你好世界 ， 再见"),
        ("👩‍👩‍👧‍👦 👍🏽 ❤️ 1️⃣ 🏳️‍🌈", None),
        ("👍👍good", "👍 👍 good"),
        ("zero\u200bwidth \ufeffmark nul\0l", "zero width mark nul l"),
    ],
}  # fmt: skip

HOSTILE = (
    "a", "1", "!", "-", ".", "'", "<", " ", "_", "’", "a'", "a-", "a.", "a@", "a+", "+", "1.", "1.a.", "1.1a",
    "n't", "an'", "a's", "a@b.", "a@a.a.", "www.!", "http://", "<br ", "<br", "e\u0301", "\u0301",
    "👨\u200d", "👍🏽", "\u1100\u1161", "\ud800", "\u0300\u0316", "\u0316\u0300\u0345",
)  # fmt: skip

# Characters that the rules of the tokenizer treat specially, more often than by chance.
CHARACTERS = st.characters(exclude_categories=()) | st.sampled_from(
    [*"aAnNtTsé1.,:/'’-_@<>br \n!?ßİ👍🏽", "\u0301", "\u0323", "\u0344", "\u0958", "\u200d", "\ufe0f",
     "\u212b", "\ud800", "www.", "http://", "<br />", "n't", "<br", "/>", "\x1c", "\x85", "\u3000"]
)  # fmt: skip
TEXTS = st.lists(CHARACTERS, max_size=40).map("".join)


def encode(text: str, *known: str, max_words: int = 1_000_000) -> Words:
    return Tokenizer.from_words(known).encode([text], max_words=max_words)[0]


def spans(text: str, *, max_words: int = 1_000_000) -> list[tuple[int, int]]:
    return Tokenizer.from_words().spans(text, max_words=max_words)


def pieces(text: str) -> list[str]:
    return [text[start:end] for start, end in spans(text)]


def folded(word: str) -> str:
    """Return a word in the form in which the tokenizer looks it up."""
    word = "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in word)
    return unicodedata.normalize("NFC", word.replace("’", "'"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [pytest.param(*case, id=f"{name}: {case[0]}") for name in SPLITS for case in SPLITS[name]],
)
def test_a_text_is_split_into_words(text, expected):
    assert pieces(text) == (expected or text).split(" ")


@pytest.mark.parametrize("text", ["12:30pm", "3.14abc", "1,000km", "1990:12s"])
def test_a_number_is_not_split_between_its_digits(text):
    starts = [start for start, _ in spans(text)[1:]]
    assert not any(text[at - 1].isdigit() and text[at].isdigit() for at in starts)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cafe\u0301 noir", ["cafe\u0301", "noir"]),
        ("e\u0301\u0302\u0323, x\u0301y", ["e\u0301\u0302\u0323", ",", "x\u0301y"]),
        ("=\u0338!", ["=\u0338", "!"]),
    ],
)
def test_a_span_includes_the_combining_marks(text, expected):
    assert pieces(text) == expected


@pytest.mark.parametrize("text", ["\u1100\u1161\u11a8", "\u0995\u09c7\u09be", "\u0b15\u0b47\u0b3e"])
def test_a_span_includes_everything_that_was_composed(text):
    assert (pieces(text), encode(text).unknown) == ([text], (folded(text),))


def test_the_last_word_of_a_truncated_text_is_whole():
    text = "e\u0301 3.14\u0301"
    assert spans(text, max_words=2) == spans(text)[:2]


@pytest.mark.parametrize(("text", "known"), [("cafe\u0301", "café"), ("DON’T", "n't"), ("Å", "å")])
def test_words_are_looked_up_in_nfc_and_with_a_plain_apostrophe(text, known):
    assert encode(text, known).ids[-1] == 1


def test_a_word_is_looked_up_as_written_and_then_in_lower_case():
    assert encode("US us Us uS", "us", "US").ids == [2, 1, 1, 1]
    assert encode("us", "US").ids == [-1]


def test_unknown_words_have_negative_ids_and_spellings():
    words = encode("The cafe\u0301 isn’t the CAFÉ", "the")
    assert words.ids == [1, -1, -2, -3, 1, -4]
    assert words.unknown == ("café", "is", "n't", "CAFÉ")


@pytest.mark.parametrize(
    ("max_words", "count", "truncated"), [(0, 0, True), (2, 2, True), (3, 3, False), (4, 3, False)]
)
def test_a_text_is_truncated_after_max_words(max_words, count, truncated):
    words = encode("one two three", "two", max_words=max_words)
    assert words.truncated is truncated
    assert words.ids == [-1, 1, -2][:count]
    assert words.unknown == ("one", "three")[: max(0, count - 1) or min(1, count)]
    assert spans("one two three", max_words=max_words) == [(0, 3), (4, 7), (8, 13)][:count]


def test_no_texts_and_empty_texts_have_no_words():
    assert Tokenizer.from_words().encode([], max_words=5) == []
    for text in ("", " \n\t", "<br />", "\u200b\0"):
        assert (encode(text), spans(text)) == (([], (), False), [])


def test_a_word_has_one_id_and_the_first_id_is_the_unknown_word():
    tokenizer = Tokenizer.from_words(["b", "a", "b", UNKNOWN, "c", "A"])
    assert tokenizer.vocabulary == [UNKNOWN, "b", "a", "c", "A"]
    assert len(tokenizer) == 5
    assert [tokenizer.id_of(word) for word in ("b", "C", "A", "d", UNKNOWN)] == [1, 3, 4, 0, 0]


@pytest.mark.parametrize("unit", HOSTILE)
def test_a_hostile_text_takes_linear_time(unit):
    tokenizer = Tokenizer.from_words()
    text = unit * (300_000 // len(unit))
    begin = time.thread_time()
    [words] = tokenizer.encode([text], max_words=2000)
    assert time.thread_time() - begin < 5
    assert len(words.ids) <= 2000


def test_a_text_of_a_million_words_is_cut_before_it_is_split():
    tokenizer = Tokenizer.from_words(["good", "film"])
    text = "good film " * 500_000
    begin = time.thread_time()
    [words] = tokenizer.encode([text], max_words=2000)
    assert time.thread_time() - begin < 0.5  # splitting all of it takes seconds
    assert words == ([1, 2] * 1000, (), True)
    assert tokenizer.spans(text, max_words=2000) == [(5 * i, 5 * i + 4) for i in range(2000)]


def test_long_words_are_found_beyond_the_first_cut():
    long = "x" * 100
    words = encode(f"{long} " * 50, max_words=20)
    assert (len(words.ids), words.truncated) == (20, True)
    words = encode(f"{long} " * 20 + " " * 3000, max_words=20)
    assert (len(words.ids), words.truncated) == (20, False)


@given(text=st.lists(TEXTS | st.just(" ")).map("".join), max_words=st.integers(0, 5))
@settings(max_examples=300)
def test_a_truncated_text_has_the_first_words_of_the_whole_text(text, max_words):
    text *= 1 + 200 // (len(text) + 1)
    whole, cut = encode(text), encode(text, max_words=max_words)
    assert cut.ids == whole.ids[:max_words]
    assert spans(text, max_words=max_words) == spans(text)[:max_words]
    assert cut.unknown == whole.unknown[:max_words]
    assert cut.truncated is (len(whole.ids) > max_words)


@given(text=TEXTS, max_words=st.integers(0, 50))
@settings(max_examples=300)
def test_the_words_of_any_text_are_in_order_and_do_not_overlap(text, max_words):
    words = encode(text, "a", "n't", max_words=max_words)
    where = spans(text, max_words=max_words)
    assert len(words.ids) == len(where) <= max_words
    assert [-id for id in words.ids if id < 0] == list(range(1, len(words.unknown) + 1))
    edges = [edge for span in where for edge in span]
    assert edges == sorted(edges)
    assert all(0 <= start < end <= len(text) for start, end in where)


@given(text=TEXTS)
@settings(max_examples=300)
def test_a_span_is_exactly_the_word_that_was_looked_up(text):
    tokenizer = Tokenizer.from_texts([text], min_count=1, max_vocabulary=1000)
    [words] = tokenizer.encode([text], max_words=1000)
    assert words.unknown == ()
    found = [tokenizer.vocabulary[id] for id in words.ids]
    assert found == list(map(folded, pieces(text)))
    assert list(encode(text).unknown) == found


def test_the_memory_of_parts_of_texts_is_bounded(monkeypatch):
    monkeypatch.setattr(tokenizer_module, "_REMEMBERED", 3)
    tokenizer, long = Tokenizer.from_words(["good"]), "x" * 41
    for text in ("a good film", f"{long} good", "one two good", "three four five six good"):
        [words] = tokenizer.encode([text], max_words=10)
        assert words.unknown == tuple(word for word in text.split() if word != "good")
        assert len(tokenizer._remembered) <= 3
        assert long not in tokenizer._remembered


@pytest.mark.parametrize(
    "space", [" ", "\t", "\x1c", "\x1f", "\x85", "\xa0", "\u2003", "\u3000", "\u200b"]
)
def test_every_kind_of_space_is_treated_as_by_the_library(space):
    text = f"a{space}b<br{space}/>c{space}<br>"
    assert list(encode(text).unknown) == pieces(text)


@given(texts=st.lists(TEXTS, max_size=4))
def test_a_text_has_the_same_words_in_any_batch_and_after_saving(texts):
    tokenizer = Tokenizer.from_texts(texts, min_count=2, max_vocabulary=5)
    alone = [tokenizer.encode([text], max_words=20)[0] for text in texts]
    assert tokenizer.encode(texts, max_words=20) == alone
    read_back = Tokenizer.from_json(tokenizer.to_json())
    assert read_back.vocabulary == tokenizer.vocabulary
    assert read_back.encode(texts, max_words=20) == alone
