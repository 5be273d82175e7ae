"""The model card, in Markdown: what a model is, how well it scores, and what it was trained on."""

from collections.abc import Mapping, Sequence
from typing import Any

from fathomer.config import ModelConfig, Recipe
from fathomer.evaluate.metrics import shown_depth
from fathomer.model.registry import MODELS

_BAR_LENGTH = 40
"""Characters of the longest bar."""


def write_card(
    recipe: Recipe, labels: Sequence[str], metrics: Mapping[str, Any], *, parameters: int
) -> str:
    """Return the model card for the settings of a model and its training metrics."""
    parts = {
        name.replace("_", " "): found
        for name in ("held_out", "test")
        if (found := metrics.get(name))
    }
    return _CARD.format(
        labels=", ".join(f"`{label}`" for label in labels),
        description=_describe(recipe.model, parameters),
        scores=_scores(parts, multi_label=recipe.model.multi_label),
        depths=_depths(parts) + _curve(metrics.get("depth_curve", [])),
        data=_data(metrics),
        assigns=_SEVERAL if recipe.model.multi_label else _ONE,
        max_words=recipe.text.max_words,
    )


def _describe(model: ModelConfig, parameters: int) -> str:
    return (_OURS if model.name == "fathomer" else _OTHER).format(
        model=model,
        paper=MODELS[model.name].paper,
        parameters=f", {parameters:,} parameters" if parameters else "",
    )


def _scores(parts: Mapping[str, Mapping[str, Any]], *, multi_label: bool) -> str:
    """Return a table of scores with one row per set of texts."""
    if not parts:
        return "The model was not scored: no texts were held out."
    names = ["accuracy", *(["micro_f1"] if multi_label else []), "macro_f1"]
    shown = [name.replace("_f", " F") for name in names]
    rows = [["texts", "examples", *shown, "mean depth"], ["---", *["---:"] * (len(names) + 2)]]
    for part, found in parts.items():
        scores = [f"{found[name]:.4f}" for name in names]
        rows.append([part, f"{found['examples']:,}", *scores, shown_depth(found["mean_depth"])])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _depths(parts: Mapping[str, Mapping[str, Any]]) -> str:
    """Return a bar chart of the words at each depth: of the test texts, if there are any."""
    counted = [part for part, found in parts.items() if any(found.get("words_by_depth", [])[1:])]
    if not counted:
        return ""
    counts = parts[counted[-1]]["words_by_depth"][1:]  # no word has depth 0
    rows = [
        f"| {depth} | {words:,} | {words / sum(counts):.1%} "
        f"| {'█' * round(_BAR_LENGTH * words / max(counts))} |"
        for depth, words in enumerate(counts, start=1)
    ]
    return _DEPTHS.format(part=counted[-1].replace(" ", "-"), rows="\n".join(rows))


def _curve(points: Sequence[Mapping[str, float]]) -> str:
    """Return a table of accuracy and speed at several depth budgets."""
    if not points:
        return ""
    rows = [
        f"| {point['budget']:.2f} | {point['mean_depth']:.2f} | {point['accuracy']:.4f} "
        f"| {point['texts_per_second']:,.0f} |"
        for point in points
    ]
    return _CURVE.format(rows="\n".join(rows))


def _data(metrics: Mapping[str, Any]) -> str:
    """Return what is known about the training data and the training command."""
    name, fingerprint = metrics.get("data_name"), metrics.get("data")
    text = f"Trained on `{name}`." if name else "Trained on data without a name."
    if fingerprint:
        text += f" Fingerprint of texts and labels: `{fingerprint}`."
    if command := metrics.get("command"):
        text += f"\n\n```console\n$ {command}\n```"
    return text


_OURS = """A depth-adaptive graph recurrent network. Each word is processed for 1 to {model.max_depth} steps
(`{model.depth}` depth selection).
Hidden size {model.hidden_size}, vocabulary of {model.vocab_size:,} words{parameters}."""

_OTHER = """The model `{model.name}` ({paper}).
Vocabulary of {model.vocab_size:,} words{parameters}. All settings are in `config.json`."""

_ONE = "It assigns exactly one of them to every text"
_SEVERAL = "It assigns all labels whose probability reaches their threshold, possibly none"

_DEPTHS = """
## Depth of the words

Words of the {part} texts by depth, the number of steps that the model spends on a word:

| depth | words | share | |
|---:|---:|---:|:---|
{rows}
"""

_CURVE = """
## Depth budgets

The model can be set to any average depth, for example with `predict(texts, depth_budget=1.5)`.
On the held-out texts, on the machine that trained it:

| depth budget | mean depth | accuracy | texts per second |
|---:|---:|---:|---:|
{rows}
"""

_CARD = """---
library_name: fathomer
pipeline_tag: text-classification
tags:
- text-classification
- adaptive-depth
---

# Fathomer text classifier

Labels: {labels}.

{description}

{scores}
{depths}
## Usage

```python
import fathomer

predictor = fathomer.load("path/to/this/folder")
predictor.predict(["a text"])
```

With Hugging Face `transformers`, import `fathomer.hub` first:

```python
import fathomer.hub
from transformers import pipeline

classifier = pipeline("text-classification", model="path/to/this/folder")
```

## Training data

{data}

## Limitations

The model knows only the labels above. {assigns},
even if the text is in another language or on another subject than the training data.
It reads the first {max_words:,} words of a text and ignores the rest.
The scores apply to texts similar to those they were measured on.
"""
