"""A model card: what a model is, was trained on, can do and cannot, in Markdown."""

from collections.abc import Mapping, Sequence
from typing import Any

from fathomer.config import ModelConfig, Recipe
from fathomer.evaluate.metrics import shown_depth
from fathomer.model.registry import MODELS

_WIDTH = 40
"""Characters of the longest bar."""


def write_card(
    recipe: Recipe, labels: Sequence[str], metrics: Mapping[str, Any], *, parameters: int
) -> str:
    """Describe a model from its settings and from what its training has measured."""
    parts = {
        name.replace("_", " "): found
        for name in ("held_out", "test")
        if (found := metrics.get(name))
    }
    return _CARD.format(
        labels=", ".join(f"`{label}`" for label in labels),
        description=_describe(recipe.model, parameters),
        scores=_scores(parts, multi_label=recipe.model.multi_label),
        depths=_depths(parts),
        data=_data(metrics),
        given=_SEVERAL if recipe.model.multi_label else _ONE,
        max_words=recipe.text.max_words,
    )


def _describe(model: ModelConfig, parameters: int) -> str:
    return (_OURS if model.name == "fathomer" else _OTHER).format(
        model=model,
        paper=MODELS[model.name].paper,
        parameters=f", {parameters:,} parameters" if parameters else "",
    )


def _scores(parts: Mapping[str, Mapping[str, Any]], *, multi_label: bool) -> str:
    """Write a table of scores, one row per set of texts."""
    if not parts:
        return "No texts were held out, so that it was not scored."
    names = ["accuracy", *(["micro_f1"] if multi_label else []), "macro_f1"]
    shown = [name.replace("_f", " F") for name in names]
    rows = [["texts", "examples", *shown, "mean depth"], ["---", *["---:"] * (len(names) + 2)]]
    for part, found in parts.items():
        scores = [f"{found[name]:.4f}" for name in names]
        rows.append([part, f"{found['examples']:,}", *scores, shown_depth(found["mean_depth"])])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _depths(parts: Mapping[str, Mapping[str, Any]]) -> str:
    """Draw how many words were read how deep, in the last of the sets of texts."""
    counted = [part for part, found in parts.items() if any(found.get("words_by_depth", [])[1:])]
    if not counted:
        return ""
    counts = parts[counted[-1]]["words_by_depth"][1:]  # no word has depth 0
    rows = [
        f"| {depth} | {words:,} | {words / sum(counts):.1%} "
        f"| {'█' * round(_WIDTH * words / max(counts))} |"
        for depth, words in enumerate(counts, start=1)
    ]
    return _DEPTHS.format(part=counted[-1].replace(" ", "-"), rows="\n".join(rows))


def _data(metrics: Mapping[str, Any]) -> str:
    """Say what the model was trained on, as far as that is known."""
    name, found = metrics.get("data_name"), metrics.get("data")
    lines = [f"Trained on `{name}`." if name else "Trained on texts without a name."]
    if found:
        lines.append(f"Fingerprint of texts and labels: `{found}`.")
    if command := metrics.get("command"):
        lines.append(f"\n\n```console\n$ {command}\n```")
    return " ".join(lines)


_OURS = """A depth-adaptive graph recurrent network: each word takes 1 to {model.max_depth} steps
({model.depth} selection), hidden size {model.hidden_size}, {model.vocab_size:,} known words{parameters}."""

_OTHER = """The model `{model.name}` ({paper}),
{model.vocab_size:,} known words{parameters}. All settings are in `config.json`."""

_ONE = "it gives every text one of them"
_SEVERAL = "it gives a text all those that reach their thresholds, or none"

_DEPTHS = """
## How deep it reads

The words of the {part} texts, by the steps that each took:

| depth | words | share | |
|---:|---:|---:|:---|
{rows}
"""

_CARD = """---
library_name: fathomer
pipeline_tag: text-classification
tags:
- text-classification
- adaptive-depth
---

# A Fathomer text classifier

Labels: {labels}.

{description}

{scores}
{depths}
## Use

```python
import fathomer

predictor = fathomer.load("this folder")
predictor.predict(["a text"])
```

## Data

{data}

## Limits

The model knows the labels above and no others: {given}, also a text of another
kind or language than it was trained on. It reads the first {max_words:,} words of a text. The scores hold
for texts like those that they were measured on.
"""
