"""Tiny models that train in about a second."""

from functools import cache
from pathlib import Path
from random import Random

from fathomer.artifact import Artifact
from fathomer.config import Recipe
from fathomer.data.demo import demo_corpus
from fathomer.data.examples import Example, Examples
from fathomer.train.fit import fit
from fathomer.train.prepare import Prepared, prepare

GOOD = ["good", "lovely", "great", "fine"]
BAD = ["bad", "awful", "poor", "dull"]
THINGS = ["film", "book", "meal", "hotel"]
SIGNS = {"cheap": ["cheap", "bargain"], "fast": ["quick", "swift"], "kind": ["friendly", "warm"]}

TINY = Recipe().updated(
    {
        "model": {
            "word_size": 8,
            "char_size": 4,
            "char_input_size": 4,
            "depth_size": 6,
            "hidden_size": 12,
            "max_depth": 4,
        },
        "text": {"min_count": 1, "max_words": 50},
        "train": {"epochs": 4, "batch_words": 60, "learning_rate": 0.02, "held_out": 0.2},
    }
)

TAGGED = TINY.updated({"train": {"epochs": 18, "batch_words": 240, "learning_rate": 0.05}})


def tiny_examples(count: int = 60) -> Examples:
    """Return short opinions, half of them positive."""
    random = Random(0)
    return Examples(
        [
            Example(
                f"The {random.choice(THINGS)} was {random.choice(words)}.",
                "positive" if words is GOOD else "negative",
            )
            for _ in range(count // 2)
            for words in (GOOD, BAD)
        ]
    )


def tiny_prepared(recipe: Recipe = TINY) -> Prepared:
    """Prepare a run on the short opinions."""
    return prepare(tiny_examples(), recipe)


@cache
def tiny_artifact() -> Artifact:
    """Return a model trained on the short opinions, once for all tests."""
    return fit(tiny_examples(), TINY.updated({"train": {"epochs": 8}})).artifact


@cache
def supervised_artifact() -> Artifact:
    """Return a model of demo texts with supervised depth, trained briefly, once for all tests."""
    recipe = TINY.updated(
        {
            "model": {"depth": "supervised", "max_depth": 9},
            "train": {"epochs": 1, "batch_words": 500, "held_out": 0.3},
        }
    )
    return fit(demo_corpus(train=900)[0], recipe).artifact


def tagged(count: int = 200) -> Examples:
    """Return short texts with several labels, or with none."""
    random = Random(0)
    items = []
    for _ in range(count):
        labels = [label for label in SIGNS if random.random() < 0.5]
        words = [random.choice(SIGNS[label]) for label in labels]
        random.shuffle(words)
        items.append(Example(f"The hotel was {' and '.join(words) or 'there'}.", "|".join(labels)))
    return Examples(items, multi_label=True)


@cache
def tagged_artifact() -> Artifact:
    """Return a model trained on texts with several labels, once for all tests."""
    return fit(tagged(), TAGGED).artifact


def write_csv(path: Path, examples: Examples) -> Path:
    """Write examples to a CSV file with a header."""
    rows = [f'"{e.text}",{e.label}\n' for e in examples]
    path.write_text("text,label\n" + "".join(rows), encoding="utf-8")
    return path
