"""Settings: frozen dataclasses, read from TOML recipes and from ``--set section.name=value``.

A :class:`Recipe` has three sections. A file or an override names only what differs from the
defaults; an unknown name is an error that offers the nearest known one.
"""

import dataclasses
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Literal, Self, get_args, get_origin, get_type_hints

from fathomer.errors import ConfigError, MissingFileError, did_you_mean

DepthSelection = Literal["gumbel", "hard", "soft", "full"]
SequenceKind = Literal["bilstm", "none", "sinusoidal", "learned"]
ClassWeight = Literal["none", "balanced"]
TrainPrecision = Literal["float32", "bfloat16"]
PredictPrecision = Literal["float32", "int8"]

MANY = 10**9
"""More than anybody needs, and little enough for every count of words and steps."""


def setting(default: Any, doc: str, *, low: float | None = None, high: float | None = None) -> Any:
    """Declare one setting: its default, what it means, and the range that it must lie in."""
    return field(default=default, metadata={"doc": doc, "low": low, "high": high})


@dataclass(frozen=True, kw_only=True)
class Section:
    """Check every setting of a section against its declared type and range."""

    def __post_init__(self) -> None:
        hints = get_type_hints(type(self))
        for item in fields(self):
            value = _checked_type(item.name, getattr(self, item.name), hints[item.name])
            _check_range(item.name, value, item.metadata["low"], item.metadata["high"])
            object.__setattr__(self, item.name, value)

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as plain values."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Build the section from plain values; an unknown name is an error."""
        known = [item.name for item in fields(cls)]
        for name in values:
            if name not in known:
                raise ConfigError(f"unknown setting {name!r}; {did_you_mean(name, known)}")
        return cls(**values)


@dataclass(frozen=True, kw_only=True)
class ModelConfig(Section):
    """Describe the network; `L`, `d_model` and `d_inner` are the paper's symbols."""

    name: str = setting("fathomer", "which model; `fathomer models` lists them")
    vocab_size: int = setting(0, "number of known words; 0 until the data is read", low=0)
    num_labels: int = setting(0, "number of labels; 0 until the data is read", low=0)
    word_size: int = setting(300, "width of a word vector", low=1, high=10_000)
    char_size: int = setting(50, "width of the character CNN's output", low=1, high=10_000)
    char_input_size: int = setting(
        30, "width of a character's vector inside that CNN", low=1, high=10_000
    )
    depth_size: int = setting(
        50, "width of the inner vector and depth embedding (d_inner)", low=1, high=10_000
    )
    hidden_size: int = setting(
        400, "width of the word and sentence states (d_model)", low=2, high=10_000
    )
    max_depth: int = setting(
        9, "largest number of steps that a word can take (L)", low=1, high=1000
    )
    depth: DepthSelection = setting("gumbel", "how the depth of a word is selected")
    sequence: SequenceKind = setting("bilstm", "where word order comes from")
    max_positions: int = setting(2000, "rows of the learned position table", low=1, high=1_000_000)
    multi_label: bool = setting(False, "a text may have several labels (set by `--multi-label`)")
    fixed_words: bool = setting(False, "keep the word vectors fixed (set when vectors are given)")
    word_dropout: float = setting(0.3, "dropout on word embeddings", low=0, high=0.99)
    hidden_dropout: float = setting(0.2, "dropout on hidden states", low=0, high=0.99)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.sequence == "bilstm" and self.hidden_size % 2:
            raise ConfigError(
                f"hidden_size must be even (half for each direction), not {self.hidden_size}"
            )


@dataclass(frozen=True, kw_only=True)
class TextConfig(Section):
    """Describe how texts become words."""

    min_count: int = setting(
        2, "rarer training words are unknown (without vectors)", low=1, high=MANY
    )
    max_vocabulary: int = setting(
        100_000, "at most this many training words are known", low=1, high=MANY
    )
    vector_words: int = setting(
        30_000,
        "first words of a vectors file that are known beside the training words",
        low=0,
        high=MANY,
    )
    max_chars: int = setting(32, "bytes of a word that the character CNN sees", low=1, high=1000)
    max_words: int = setting(2000, "longer texts are cut to this many words", low=1, high=MANY)


@dataclass(frozen=True, kw_only=True)
class TrainConfig(Section):
    """Describe the training."""

    epochs: int = setting(10, "passes over the training texts", low=1, high=MANY)
    batch_words: int = setting(
        2000, "words in a batch (a longer text stands alone)", low=1, high=MANY
    )
    learning_rate: float = setting(0.001, "Adam's learning rate at first", low=0, high=10)
    decay_to: float = setting(0.05, "part of it left at the end; a straight line", low=0, high=1)
    precision: TrainPrecision = setting(
        "float32", "bfloat16 where the processor has it: CUDA or AMX"
    )
    clip: float = setting(5.0, "largest norm of the gradient; 0: any", low=0, high=MANY)
    label_smoothing: float = setting(0.0, "probability spread over all labels", low=0, high=0.99)
    class_weight: ClassWeight = setting("none", "balanced: rare labels count as much as others")
    held_out: float = setting(
        0.1, "part held out when none is given; of each label at least one", low=0, high=0.9
    )
    calibrate: bool = setting(True, "fit the probabilities to the held-out part afterwards")
    patience: int = setting(
        0, "stop after so many epochs without a better one; 0: never", low=0, high=MANY
    )
    seed: int = setting(0, "decides split, weights, order, dropout, sampling", low=0, high=2**63)


@dataclass(frozen=True)
class Recipe:
    """Hold all settings of one training."""

    model: ModelConfig = field(default_factory=ModelConfig)
    text: TextConfig = field(default_factory=TextConfig)
    train: TrainConfig = field(default_factory=TrainConfig)

    @classmethod
    def from_dict(cls, sections: Mapping[str, Mapping[str, Any]]) -> Self:
        """Build a recipe from the parts that differ from the defaults."""
        return cls().updated(sections)

    @classmethod
    def from_toml(cls, path: str | Path) -> Self:
        """Read a recipe that holds only what differs from the defaults."""
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
        """Return a recipe with some settings changed."""
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
        """Return a recipe with ``section.name=value`` assignments carried out.

        >>> Recipe().with_settings(["model.depth=hard", "train.epochs=3"]).train.epochs
        3
        """
        values = {}
        for assignment in assignments:
            path, equals, text = assignment.partition("=")
            if not (equals and "." in path.strip(". ")):
                hint = _whole_name(path.strip()) if equals else ""
                raise ConfigError(f"--set {assignment}: expected section.name=value{hint}")
            values[path.strip()] = _parsed(text.strip())
        return self.with_values(values)

    def with_values(self, values: Mapping[str, Any]) -> Self:
        """Return a recipe with settings changed that are named ``section.name``."""
        sections: dict[str, dict[str, Any]] = {}
        for path, value in values.items():
            section, _, name = path.partition(".")
            sections.setdefault(section, {})[name] = value
        return self.updated(sections)

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """Return all settings as plain values."""
        return dataclasses.asdict(self)

    def changed_values(self) -> dict[str, Any]:
        """Name what differs from the defaults: ``section.name`` and its value."""
        defaults = type(self)().to_dict()
        return {
            f"{section}.{name}": value
            for section, values in self.to_dict().items()
            for name, value in values.items()
            if value != defaults[section][name]
        }

    def to_toml(self) -> str:
        """Write what differs from the defaults as TOML."""
        changed = [(*path.split("."), v) for path, v in self.changed_values().items()]
        blocks = []
        for section in self.to_dict():
            lines = [f"{name} = {_toml_value(v)}" for where, name, v in changed if where == section]
            if lines:
                blocks.append("\n".join([f"[{section}]", *lines]) + "\n")
        return "\n".join(blocks)


def _whole_name(name: str) -> str:
    """Offer the setting whose section was forgotten."""
    sections = [section for section, values in Recipe().to_dict().items() if name in values]
    return f"; did you mean {sections[0]}.{name}?" if sections else ""


def _parsed(text: str) -> Any:
    """Read a value of ``--set`` as TOML would, and as a bare string otherwise."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):  # no TOML, or one that only an enemy would write
        return text


def _toml_value(value: str | float) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else repr(value)


def _checked_type(name: str, value: Any, kind: Any) -> Any:
    """Return ``value`` as ``kind``; an int is welcome where a float is asked, nothing else is."""
    if get_origin(kind) is Literal:
        choices = get_args(kind)
        if value not in choices:
            raise ConfigError(f"{name} must be one of {', '.join(choices)}, not {value!r}")
        return value
    number = isinstance(value, Real) and not isinstance(value, bool)  # NumPy's numbers, too
    if kind is int and number and isinstance(value, Integral):
        return int(value)
    if kind is float and number and abs(value) < 2**63:
        return float(value)
    if type(value) is not kind:
        raise ConfigError(f"{name} must be of type {kind.__name__}, not {value!r}")
    return value


def _check_range(name: str, value: Any, low: float | None, high: float | None) -> None:
    # Written so that nan, which compares false with everything, is refused too.
    if low is not None and not value >= low:
        raise ConfigError(f"{name} must be at least {low}, not {value!r}")
    if high is not None and not value <= high:
        raise ConfigError(f"{name} must be at most {high}, not {value!r}")
