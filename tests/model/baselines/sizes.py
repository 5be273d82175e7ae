"""Sizes of models by formula, and the tables of costs in docs/models.md.

``python -m tests.model.baselines.sizes`` writes these tables anew.
"""

import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fathomer.config import ModelConfig
from fathomer.errors import ConfigError
from fathomer.model.interface import trainable_parameters
from fathomer.model.registry import MODELS, build_model
from fathomer.model.sizes import (
    PAPER_SIZE,
    SIZES,
    cost_of,
    count_parameters,
    match_hidden_size,
)
from tests.model.baselines.small import SHIPPED, small_config

PAGE = Path(__file__).parents[3] / "docs" / "models.md"
TABLE = re.compile(r"\| (?:name|model) \|.*?\n\n", re.DOTALL)

BILSTM = "2 * (4*(H//2) * (T + H//2) + 4*(H//2))"
"""Parameters of a BiLSTM; H hidden_size, T width of a token."""
SETTINGS = [{}, {"hidden_size": 24, "num_labels": 2, "fixed_words": True}]
"""Settings at which formulas are checked."""
REFERENCES = [{}, {"num_labels": 14, "max_depth": 3, "word_size": 200}]
"""Changes of the paper's settings at which sizes are matched."""

# Multiply-adds at the paper's sizes.
T, H, Y = 350, 400, 2
CHAR = 2 * 3 * 30 * 50
"""Of the character CNN for a word; the 18 words "0" to "17" are padded to two bytes."""
LSTM = 2 * 4 * 200 * (T + 200)
"""Of a BiLSTM for a word."""


def assert_has_parameters(name: str, formula: str, **settings: Any) -> None:
    """Compare the number of trainable parameters of a model that has word vectors with a formula."""
    config = small_config(name, **settings)
    letters = {
        "H": config.hidden_size,
        "T": config.word_size + config.char_size,
        "V": config.vocab_size,
        "Y": config.num_labels,
        "L": config.max_depth,
        "I": config.depth_size,
    }
    wanted = eval(formula, letters) + _embedding_parameters(config)
    assert trainable_parameters(build_model(config)) == count_parameters(config) == wanted


def _embedding_parameters(config: ModelConfig) -> int:
    words = 0 if config.fixed_words else config.vocab_size * config.word_size
    chars = 256 * config.char_input_size + (3 * config.char_input_size + 1) * config.char_size
    return words + chars


def assert_can_be_matched(name: str, **reference: Any) -> None:
    """Check that a model can have as many parameters as our network, if it has a hidden size."""
    config = replace(PAPER_SIZE, **{"name": name, **reference})
    sizes = {count_parameters(replace(config, hidden_size=size)) for size in (SIZES[0], SIZES[-1])}
    if len(sizes) == 1:
        with pytest.raises(ConfigError, match=f"the model {name} has no hidden size that could be"):
            match_hidden_size(config)
        return
    found = count_parameters(replace(config, hidden_size=match_hidden_size(config)))
    wanted = count_parameters(replace(config, name="fathomer"))
    assert abs(found - wanted) <= 0.03 * wanted


def cost_table(names: Sequence[str]) -> str:
    """Return the table of costs of some models as Markdown."""
    lines = ["| name | parameters | multiply-adds per word | paper |", "|---|---:|---:|---|"]
    for cost in map(cost_of, names):
        counts = (cost.parameters, cost.multiply_adds_per_word)
        parameters, products = ("–" if count is None else f"{count:,}" for count in counts)
        lines.append(f"| `{cost.name}` | {parameters} | {products} | {cost.paper} |")
    return "\n".join(lines) + "\n\n"


def difference_table(names: Sequence[str]) -> str:
    """Return a table of what models need and where they differ, from their docstrings."""
    lines = ["| model | rate | epochs | needs | where ours differs |", "|---|---:|---:|---|---|"]
    for name in names:
        page = sys.modules[MODELS[name].network.__module__].__doc__
        _, said, text = page.partition("Differences")
        assert said, f"the docstring of {name} does not say where it differs"
        text = text.partition(":")[2].split("\n\n    ")[0].replace("\n- ", " ").replace("|", "\\|")
        found = MODELS[name]
        rate = "–" if found.rate is None else f"{found.rate:g}"
        needs, differences = found.needs or "–", " ".join(text.split())
        lines.append(f"| `{name}` | {rate} | × {found.epochs} | {needs} | {differences} |")
    return "\n".join(lines) + "\n\n"


def page_tables() -> list[str]:
    """Return the tables on the page: costs of the package's models and of the rivals, differences."""
    return TABLE.findall(PAGE.read_text(encoding="utf-8"))


def write_page() -> None:
    """Write the tables on the page anew."""
    import experiments.rivals  # noqa: F401 (registers the models)

    rivals = [name for name in MODELS if name not in SHIPPED]
    tables = iter([cost_table(SHIPPED), cost_table(rivals), difference_table(rivals)])
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(TABLE.sub(lambda _: next(tables), page), encoding="utf-8")


if __name__ == "__main__":
    write_page()
