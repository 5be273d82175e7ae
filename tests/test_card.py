"""The model card: written from what was measured, and true of the model that it describes."""

import re
from dataclasses import replace

from fathomer.artifact import CARD, Artifact
from fathomer.train.fit import fit
from tests.tiny import TINY, tagged_artifact, tiny_artifact, tiny_examples


def card_of(artifact: Artifact) -> str:
    return artifact.to_files()[CARD].decode("utf-8")


def test_the_depths_of_the_words_are_drawn():
    counts = tiny_artifact().metrics["held_out"]["words_by_depth"]
    rows = re.findall(
        r"^\| (\d+) \| ([\d,]+) \| ([\d.]+)% \| (█*) \|$", card_of(tiny_artifact()), re.M
    )
    assert [int(depth) for depth, *_ in rows] == list(range(1, len(counts)))
    assert [int(words.replace(",", "")) for _, words, *_ in rows] == counts[1:]
    for (_, _, share, bar), words in zip(rows, counts[1:], strict=True):
        assert float(share) == round(100 * words / sum(counts), 1)
        assert len(bar) == round(40 * words / max(counts))


def test_the_test_texts_count_more_than_the_held_out_ones():
    artifact = tiny_artifact()
    test = {**artifact.metrics["held_out"], "words_by_depth": [0, 1, 3000]}
    card = card_of(replace(artifact, metrics={**artifact.metrics, "test": test}))
    assert "The words of the test texts" in card
    assert "| 2 | 3,000 | 100.0% |" in card
    assert card.index("| held out |") < card.index("| test |")


def test_what_was_not_measured_is_not_shown():
    artifact = tiny_artifact()
    for metrics in ({}, {"held_out": None}):
        card = card_of(replace(artifact, metrics=metrics))
        assert "it was not scored" in card
        assert "How deep" not in card
    older = {
        name: v for name, v in artifact.metrics["held_out"].items() if name != "words_by_depth"
    }
    card = card_of(replace(artifact, metrics={"held_out": older}))
    assert "| held out |" in card
    assert "How deep" not in card


def test_a_model_without_depths_has_none_on_its_card():
    recipe = TINY.updated({"model": {"name": "swem-concat"}, "train": {"epochs": 1}})
    card = card_of(fit(tiny_examples(), recipe).artifact)
    assert "The model `swem-concat`" in card
    assert "How deep" not in card


def test_several_labels_have_their_score_and_their_limits():
    found = tagged_artifact().metrics["held_out"]
    card = card_of(tagged_artifact())
    assert "| accuracy | micro F1 | macro F1 |" in card
    assert f"| {found['micro_f1']:.4f} | {found['macro_f1']:.4f} |" in card
    assert "all those that reach their thresholds, or none" in card
    assert "it gives every text one of them" in card_of(tiny_artifact())
    assert "micro F1" not in card_of(tiny_artifact())


def test_data_and_command_are_named():
    metrics = {"data_name": "reviews.csv", "data": "0123abcd", "command": "fathomer train x"}
    card = card_of(replace(tiny_artifact(), metrics=metrics))
    assert "Trained on `reviews.csv`. Fingerprint of texts and labels: `0123abcd`." in card
    assert "```console\n$ fathomer train x\n```" in card
    assert "Trained on texts without a name." in card_of(replace(tiny_artifact(), metrics={}))
