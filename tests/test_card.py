"""The model card: it shows what was measured, and nothing else."""

import re
from dataclasses import replace

from fathomer.artifact import CARD, Artifact
from fathomer.train.fit import fit
from tests.tiny import TINY, tagged_artifact, tiny_artifact, tiny_examples


def card_of(artifact: Artifact) -> str:
    return artifact.to_files()[CARD].decode("utf-8")


def test_the_card_has_a_bar_chart_of_the_depths():
    counts = tiny_artifact().metrics["held_out"]["words_by_depth"]
    rows = re.findall(
        r"^\| (\d+) \| ([\d,]+) \| ([\d.]+)% \| (█*) \|$", card_of(tiny_artifact()), re.M
    )
    assert [int(depth) for depth, *_ in rows] == list(range(1, len(counts)))
    assert [int(words.replace(",", "")) for _, words, *_ in rows] == counts[1:]
    for (_, _, share, bar), words in zip(rows, counts[1:], strict=True):
        assert float(share) == round(100 * words / sum(counts), 1)
        assert len(bar) == round(40 * words / max(counts))


def test_the_depths_are_those_of_the_test_texts_if_there_are_any():
    artifact = tiny_artifact()
    test = {**artifact.metrics["held_out"], "words_by_depth": [0, 1, 3000]}
    card = card_of(replace(artifact, metrics={**artifact.metrics, "test": test}))
    assert "Words of the test texts" in card
    assert "| 2 | 3,000 | 100.0% |" in card
    assert card.index("| held out |") < card.index("| test |")


def test_the_card_says_what_transformers_needs():
    card = card_of(tiny_artifact())
    assert card.index("import fathomer.hub") < card.index("from transformers import pipeline")


def test_what_was_not_measured_is_not_shown():
    artifact = tiny_artifact()
    for metrics in ({}, {"held_out": None}):
        card = card_of(replace(artifact, metrics=metrics))
        assert "The model was not scored" in card
        assert "Depth of the words" not in card
    older = {
        name: v for name, v in artifact.metrics["held_out"].items() if name != "words_by_depth"
    }
    card = card_of(replace(artifact, metrics={"held_out": older}))
    assert "| held out |" in card
    assert "Depth of the words" not in card


def test_the_card_of_a_model_without_depths_shows_none():
    recipe = TINY.updated({"model": {"name": "bilstm"}, "train": {"epochs": 1}})
    card = card_of(fit(tiny_examples(), recipe).artifact)
    assert "The model `bilstm`" in card
    assert "Depth of the words" not in card


def test_the_card_of_a_multi_label_model_has_micro_f1():
    found = tagged_artifact().metrics["held_out"]
    card = card_of(tagged_artifact())
    assert "| accuracy | micro F1 | macro F1 |" in card
    assert f"| {found['micro_f1']:.4f} | {found['macro_f1']:.4f} |" in card
    assert "It assigns all labels whose probability reaches their threshold" in card
    assert "It assigns exactly one of them to every text" in card_of(tiny_artifact())
    assert "micro F1" not in card_of(tiny_artifact())


def test_the_card_names_the_data_and_the_command():
    metrics = {"data_name": "reviews.csv", "data": "0123abcd", "command": "fathomer train x"}
    card = card_of(replace(tiny_artifact(), metrics=metrics))
    assert "Trained on `reviews.csv`. Fingerprint of texts and labels: `0123abcd`." in card
    assert "```console\n$ fathomer train x\n```" in card
    assert "Trained on data without a name." in card_of(replace(tiny_artifact(), metrics={}))
