"""Settings as frozen dataclasses, read from TOML recipes and from ``--set section.name=value``.

A :class:`Recipe` has three sections. A file or an override only needs the settings that differ from
the defaults. An unknown name is an error that suggests the closest known one.
"""

import dataclasses
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, Self

from fathomer.errors import ConfigError, MissingFileError, did_you_mean
from fathomer.section import Section, setting

DepthSelection = Literal["gumbel", "hard", "soft", "full", "supervised"]
DepthTarget = Literal["mi", "frequency", "random", "oracle"]
SequenceKind = Literal["bilstm", "none", "sinusoidal", "learned"]
ClassWeight = Literal["none", "balanced"]
TrainPrecision = Literal["float32", "bfloat16"]
KeptEpoch = Literal["best", "last"]
PredictPrecision = Literal["float32", "int8"]

MAX_COUNT = 10**9
"""Upper bound of counts: more than anybody needs, and small enough for sums not to overflow."""


@dataclass(frozen=True, kw_only=True)
class ModelConfig(Section):
    """Settings of the model; `L`, `d_model` and `d_inner` are the paper's symbols."""

    name: str = setting("fathomer", "name of the model; `fathomer models` lists them")
    vocab_size: int = setting(0, "size of the vocabulary; set from the data", low=0)
    num_labels: int = setting(0, "number of labels; set from the data", low=0)
    word_size: int = setting(300, "size of a word vector", low=1, high=10_000)
    char_size: int = setting(50, "output size of the character CNN", low=1, high=10_000)
    char_input_size: int = setting(
        30, "size of a character embedding in the character CNN", low=1, high=10_000
    )
    depth_size: int = setting(
        50, "size of the inner vector and the depth embedding (d_inner)", low=1, high=10_000
    )
    hidden_size: int = setting(
        400, "size of the word and sentence states (d_model)", low=2, high=10_000
    )
    max_depth: int = setting(9, "largest depth of a word, in steps (L)", low=1, high=1000)
    depth: DepthSelection = setting(
        "gumbel",
        "how the depth of a word is selected: `gumbel`, `hard`, `soft`, `full`, or `supervised`:"
        " trained towards target depths",
    )
    sequence: SequenceKind = setting(
        "bilstm", "source of word order: `bilstm`, `none`, `sinusoidal` or `learned`"
    )
    max_positions: int = setting(
        2000, "size of the position table, if `sequence` is `learned`", low=1, high=1_000_000
    )
    ngrams: bool = setting(
        False, "whether to mix TF-IDF of words and word pairs into the scores of the labels"
    )
    multi_label: bool = setting(False, "whether texts have several labels; set by `--multi-label`")
    fixed_words: bool = setting(
        False, "whether word vectors stay fixed; set when vectors are given"
    )
    word_dropout: float = setting(0.3, "dropout rate of word embeddings", low=0, high=0.99)
    whole_word_dropout: float = setting(
        0.0, "dropout rate of whole words, wherever they occur in a batch", low=0, high=0.99
    )
    hidden_dropout: float = setting(0.2, "dropout rate of hidden states", low=0, high=0.99)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.sequence == "bilstm" and self.hidden_size % 2:
            raise ConfigError(
                f"hidden_size must be even (half for each direction), not {self.hidden_size}"
            )


@dataclass(frozen=True, kw_only=True)
class TextConfig(Section):
    """Settings of tokenization and vocabulary."""

    min_count: int = setting(
        2, "rarer training words are unknown, unless vectors are given", low=1, high=MAX_COUNT
    )
    max_vocabulary: int = setting(
        100_000, "largest number of training words in the vocabulary", low=1, high=MAX_COUNT
    )
    vector_words: int = setting(
        30_000,
        "words from the start of the vectors file to add to the vocabulary",
        low=0,
        high=MAX_COUNT,
    )
    max_chars: int = setting(32, "bytes of a word that the character CNN reads", low=1, high=1000)
    max_words: int = setting(
        2000, "longer texts are truncated to this many words", low=1, high=MAX_COUNT
    )


@dataclass(frozen=True, kw_only=True)
class TrainConfig(Section):
    """Settings of training."""

    epochs: int = setting(10, "passes over the training set", low=1, high=MAX_COUNT)
    batch_words: int = setting(
        2000, "words per batch; a longer text is a batch of its own", low=1, high=MAX_COUNT
    )
    learning_rate: float = setting(0.001, "initial learning rate of Adam", low=0, high=10)
    decay_to: float = setting(
        0.05, "share of the learning rate left at the end of a linear decay", low=0, high=1
    )
    precision: TrainPrecision = setting(
        "float32", "`float32`, or `bfloat16` on hardware that is fast at it (CUDA, AMX)"
    )
    clip: float = setting(
        5.0, "gradient norm to clip at; 0 turns clipping off", low=0, high=MAX_COUNT
    )
    label_smoothing: float = setting(
        0.0, "probability spread evenly over all labels", low=0, high=0.99
    )
    soft_weight: float = setting(
        0.5, "share of soft labels in the loss of a text that has a label, too", low=0, high=1
    )
    soft_temperature: float = setting(
        2.0, "temperature that soft labels are softened with", low=0.1, high=100
    )
    class_weight: ClassWeight = setting(
        "none", "`balanced` gives every label the same total weight, however rare it is"
    )
    held_out: float = setting(
        0.1,
        "share of each label's texts to hold out, at least one, unless held-out texts are given",
        low=0,
        high=0.9,
    )
    calibrate: bool = setting(True, "calibrate the probabilities on the held-out part")
    target_depth: float = setting(
        2.0, "average depth of the words, if `model.depth` is `supervised`", low=1, high=1000
    )
    depth_target: DepthTarget = setting(
        "mi",
        "which words are deep, if `model.depth` is `supervised`: words that tell much about the label"
        " (`mi`), rare words (`frequency`), words that matter to a full-depth model that is trained"
        " first (`oracle`), or `random` ones",
    )
    keep: KeptEpoch = setting(
        "best", "which epoch to keep: the `best` on the held-out part, or the `last`"
    )
    patience: int = setting(
        0,
        "stop after this many epochs without improvement; 0 turns early stopping off",
        low=0,
        high=MAX_COUNT,
    )
    minutes: float = setting(
        0.0, "stop training after this many minutes; 0 sets no limit", low=0, high=MAX_COUNT
    )
    seed: int = setting(
        0, "seed of the split, the initial weights, batches, dropout and depths", low=0, high=2**63
    )


@dataclass(frozen=True)
class Recipe:
    """All settings of a training run."""

    model: ModelConfig = field(default_factory=ModelConfig)
    text: TextConfig = field(default_factory=TextConfig)
    train: TrainConfig = field(default_factory=TrainConfig)

    @classmethod
    def from_dict(cls, sections: Mapping[str, Mapping[str, Any]]) -> Self:
        """Build a recipe from the settings that differ from the defaults."""
        return cls().updated(sections)

    @classmethod
    def from_toml(cls, path: str | Path) -> Self:
        """Read a recipe from a TOML file with the settings that differ from the defaults."""
        try:
            sections = tomllib.loads(Path(path).read_text(encoding="utf-8-sig"))
        except FileNotFoundError:
            raise MissingFileError(f"{path}: no such recipe") from None
        except (ValueError, RecursionError, OSError) as error:
            raise ConfigError(f"{path}: {error}") from None
        try:
            return cls.from_dict(sections)
        except ConfigError as error:
            raise ConfigError(f"{path}: {error}") from None

    def updated(self, sections: Mapping[str, Mapping[str, Any]]) -> Self:
        """Return a copy of the recipe with some settings changed."""
        known = {item.name: getattr(self, item.name) for item in fields(self)}
        for name, values in sections.items():
            if name not in known:
                raise ConfigError(f"unknown section {name!r}; {did_you_mean(name, known)}")
            if not isinstance(values, Mapping):
                raise ConfigError(f"{name} is a section, not a setting; write {name}.<setting>")
            section = known[name]
            known[name] = type(section).from_dict({**section.to_dict(), **values})
        return type(self)(**known)

    def with_settings(self, assignments: Iterable[str]) -> Self:
        """Return a copy of the recipe changed by assignments of the form ``section.name=value``.

        >>> Recipe().with_settings(["model.depth=hard", "train.epochs=3"]).train.epochs
        3
        """
        values = {}
        for assignment in assignments:
            path, equals, text = assignment.partition("=")
            if not (equals and "." in path.strip(". ")):
                hint = _full_name_hint(path.strip()) if equals else ""
                raise ConfigError(f"--set {assignment}: expected section.name=value{hint}")
            values[path.strip()] = _parsed(text.strip())
        return self.with_values(values)

    def with_values(self, values: Mapping[str, Any]) -> Self:
        """Return a copy of the recipe with new values for settings named ``section.name``."""
        sections: dict[str, dict[str, Any]] = {}
        for path, value in values.items():
            section, _, name = path.partition(".")
            sections.setdefault(section, {})[name] = value
        return self.updated(sections)

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """Return all settings as plain values."""
        return dataclasses.asdict(self)

    def changed_values(self) -> dict[str, Any]:
        """Return the settings that differ from the defaults, named ``section.name``."""
        defaults = type(self)().to_dict()
        return {
            f"{section}.{name}": value
            for section, values in self.to_dict().items()
            for name, value in values.items()
            if value != defaults[section][name]
        }

    def to_toml(self) -> str:
        """Return the settings that differ from the defaults as TOML."""
        changed = [(*path.split("."), v) for path, v in self.changed_values().items()]
        blocks = []
        for section in self.to_dict():
            lines = [f"{name} = {_toml_value(v)}" for where, name, v in changed if where == section]
            if lines:
                blocks.append("\n".join([f"[{section}]", *lines]) + "\n")
        return "\n".join(blocks)


def _full_name_hint(name: str) -> str:
    """Return a hint if ``name`` is a setting without its section."""
    sections = [section for section, values in Recipe().to_dict().items() if name in values]
    return f"; did you mean {sections[0]}.{name}?" if sections else ""


def _parsed(text: str) -> Any:
    """Parse a value of ``--set`` as TOML, or return it as a string if it is not TOML."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):  # RecursionError: maliciously nested input
        return text


def _toml_value(value: str | float) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else repr(value)
