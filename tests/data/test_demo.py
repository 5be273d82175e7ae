"""The demo corpus: labels follow from meaning, and cannot be predicted from word counts."""

import re
from collections import Counter
from random import Random

import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from fathomer.data.demo import compose, demo_corpus, parse, polish
from fathomer.data.examples import Examples

PRAISE = ["good", "decent", "pleasant", "impressive", "satisfying", "memorable", "lovely"]
BLAME = ["bad", "poor", "mediocre", "unpleasant", "tiresome", "disappointing", "forgettable"]

START = r"(?:^|[.] )"
WHOLE = r"(?:the|this) \w+"
BE = r"(?:is|was)"

# Sentences with the sentiment of their QUALITY, and sentences with the opposite sentiment.
KEEPS = [
    rf"{START}It {BE} an? QUALITY \w+\.",
    rf"{START}{WHOLE} {BE} QUALITY\.",
    rf"{START}nobody can say that {WHOLE} {BE}n't QUALITY\.",
    rf"{START}it is not true that {WHOLE} {BE}n't QUALITY\.",
    r"called it QUALITY, and he is right",
    r"called it QUALITY, and she isn't wrong",
    rf"called {WHOLE} QUALITY(?:;|, and) I (?:agree|don't disagree)",
    rf"{START}(?:al)?though [^,]*, {WHOLE} {BE} QUALITY\.",
    rf"{START}the [^,;.]*, but {WHOLE} {BE} QUALITY\.",
    rf"{START}{WHOLE} {BE} QUALITY, (?:although|even though) ",
    rf"{START}despite the \w+ \w+, {WHOLE} {BE} QUALITY\.",
    rf"{START}I expected {WHOLE} to be QUALITY, and it {BE}\.",
]
FLIPS = [
    rf"{START}{WHOLE} {BE} not QUALITY\.",
    rf"{START}{WHOLE} {BE}n't QUALITY\.",
    rf"{START}{WHOLE} {BE} (?:hardly|never|far from|anything but) QUALITY\.",
    rf"{START}nobody would call {WHOLE} QUALITY[.;]",
    rf"{START}I don't think that {WHOLE} {BE} QUALITY[.;]",
    r"called it QUALITY, but he is wrong",
    r"called it QUALITY, but she isn't right",
    rf"called {WHOLE} QUALITY(?:;|, but) I (?:disagree|don't agree)",
    rf"{START}(?:al)?though [^,]*, {WHOLE} {BE} (?:not|hardly|never) QUALITY\.",
    rf"{START}I would have \w+ {WHOLE} if the \w+ had been QUALITY\.",
    rf"{START}I expected {WHOLE} to be QUALITY, but it {BE}n't",
    rf"{START}it could have been an? QUALITY \w+, but",
]


MARKERS = [
    *("not", "n't", "never", "hardly", "far from", "anything but", "nobody would call", "no doubt"),
    *("although", "though", "even though", "despite", ", but ", "can't say that", "so did I"),
    *("I disagree", "I don't disagree", "is wrong", "isn't wrong", "critics praised", '," my'),
    *("would have loved", "would have hated", "could have been", "expected", "had been better"),
    *("very", "extremely", "in every way"),
]


@pytest.fixture(scope="module")
def corpus() -> tuple[Examples, Examples]:
    return demo_corpus()


@pytest.fixture(scope="module")
def many() -> tuple[Examples, Examples]:
    """Generate so many texts that every kind of sentence occurs often."""
    return demo_corpus(train=20_000, test=0)


def labels_and_qualities(corpus: tuple[Examples, Examples], pattern: str) -> list[tuple[str, str]]:
    sentence = re.compile(pattern.replace("QUALITY", f"({'|'.join(PRAISE + BLAME)})"), re.I)
    matches = [(e.label, sentence.search(e.text)) for split in corpus for e in split]
    return [(label, match[1]) for label, match in matches if match]


def write(template: str, *, positive: bool) -> str:
    rules = parse("quality = good || bad\nclaim = {S} is {+quality}\nfilm = the film")
    return compose(template, positive=positive, rules=rules, random=Random(0))


def test_the_same_seed_gives_the_same_corpus() -> None:
    assert demo_corpus(seed=3, train=50, test=20) == demo_corpus(seed=3, train=50, test=20)


def test_another_seed_gives_another_corpus() -> None:
    assert demo_corpus(seed=3, train=50, test=20) != demo_corpus(seed=4, train=50, test=20)


def test_the_splits_have_the_requested_sizes(corpus: tuple[Examples, Examples]) -> None:
    assert [len(split) for split in corpus] == [4000, 600]
    assert [len(split) for split in demo_corpus(train=7, test=0)] == [7, 0]


def test_no_text_occurs_twice_in_the_corpus(corpus: tuple[Examples, Examples]) -> None:
    texts = [example.text.casefold() for split in corpus for example in split]
    assert len(set(texts)) == len(texts)


def test_texts_have_5_to_40_words(corpus: tuple[Examples, Examples]) -> None:
    assert all(5 <= len(example.text.split()) <= 40 for split in corpus for example in split)


def test_the_labels_are_balanced_in_both_splits(corpus: tuple[Examples, Examples]) -> None:
    for split in corpus:
        assert set(split.label_counts) == {"negative", "positive"}
        assert abs(split.label_counts["positive"] / len(split) - 0.5) <= 0.02


def test_texts_are_spelled_like_english(corpus: tuple[Examples, Examples]) -> None:
    for example in (example for split in corpus for example in split):
        assert re.fullmatch(r'"?[A-Z][A-Za-z \',.;"]*\.', example.text), example
        assert not re.search(r"\ba [aeiou]|\ban [^aeiou]|  |[.] [a-z]", example.text, re.A), example


def test_almost_every_word_of_the_test_texts_occurs_in_training(
    corpus: tuple[Examples, Examples],
) -> None:
    known, needed = ({w for e in split for w in e.text.lower().split()} for split in corpus)
    assert len(needed - known) <= 0.02 * len(needed)


@pytest.mark.parametrize("marker", MARKERS)
def test_every_phenomenon_occurs_in_both_splits(
    marker: str, corpus: tuple[Examples, Examples]
) -> None:
    for split in corpus:
        assert any(marker.casefold() in example.text.casefold() for example in split)


@pytest.mark.parametrize("pattern", KEEPS)
def test_a_sentence_that_keeps_the_sentiment_of_its_quality_has_that_label(
    pattern: str, many: tuple[Examples, Examples]
) -> None:
    found = labels_and_qualities(many, pattern)
    assert found
    assert all(label == ("positive" if word in PRAISE else "negative") for label, word in found)


@pytest.mark.parametrize("pattern", FLIPS)
def test_a_sentence_that_flips_the_sentiment_of_its_quality_has_the_other_label(
    pattern: str, many: tuple[Examples, Examples]
) -> None:
    found = labels_and_qualities(many, pattern)
    assert found
    assert all(label == ("negative" if word in PRAISE else "positive") for label, word in found)


def test_praise_and_blame_are_frequent_under_both_labels(
    corpus: tuple[Examples, Examples],
) -> None:
    counts = Counter(labels_and_qualities(corpus, r"\bQUALITY\b"))
    for word in PRAISE + BLAME:
        share = counts["positive", word] / (counts["positive", word] + counts["negative", word])
        assert 0.25 < share < 0.75, word


def test_a_minus_flips_the_sentiment_and_two_cancel_out() -> None:
    assert write("{-quality}", positive=True) == "bad"
    assert write("{-quality}, but {+quality}", positive=False) == "good, but bad"
    rules = parse("denial = not {-negation}\nnegation = un{-quality}\nquality = kind || cruel")
    assert compose("{+denial}", positive=True, rules=rules, random=Random(0)) == "not unkind"


def test_a_claim_is_about_its_given_subject() -> None:
    assert write("{-claim of film}", positive=True) == "the film is bad"


def test_a_rule_may_span_lines_and_follow_a_comment() -> None:
    rules = parse("# words = not a rule\nword = yes | of course\n    || no\n     | not at all\n")
    assert rules == {"word": (["yes", "of course"], ["no", "not at all"])}


def test_polish_corrects_articles_and_capitals() -> None:
    assert polish('"a odd film," he said. it was.') == '"An odd film," he said. It was.'


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("inverse_penalty", [0.1, 1, 10])
def test_tfidf_cannot_solve_the_corpus(seed: int, inverse_penalty: float) -> None:
    train, test = demo_corpus(seed=seed)
    vectorizer = TfidfVectorizer(ngram_range=(1, 2))
    seen = vectorizer.fit_transform([example.text for example in train])
    model = LogisticRegression(C=inverse_penalty, max_iter=1000)
    model.fit(seen, [example.label for example in train])
    unseen = vectorizer.transform([example.text for example in test])
    accuracy = model.score(unseen, [example.label for example in test])
    assert 0.55 < accuracy <= 0.80
