"""Sections of settings: frozen dataclasses that check the type and range of every value."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from numbers import Integral, Real
from typing import Any, Literal, Self, get_args, get_origin, get_type_hints

from fathomer.errors import ConfigError, did_you_mean


def setting(default: Any, doc: str, *, low: float | None = None, high: float | None = None) -> Any:
    """Declare a setting with its default, its description and its allowed range."""
    return field(default=default, metadata={"doc": doc, "low": low, "high": high})


@dataclass(frozen=True, kw_only=True)
class Section:
    """Base class of a section, which checks every setting against its type and range."""

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
        """Build the section from plain values; unknown names are errors."""
        known = [item.name for item in fields(cls)]
        for name in values:
            if name not in known:
                raise ConfigError(f"unknown setting {name!r}; {did_you_mean(name, known)}")
        return cls(**values)


def _checked_type(name: str, value: Any, kind: Any) -> Any:
    """Return ``value`` as ``kind``; the only conversion is from int to float."""
    if get_origin(kind) is Literal:
        choices = get_args(kind)
        if value not in choices:
            raise ConfigError(f"{name} must be one of {', '.join(choices)}, not {value!r}")
        return value
    number = isinstance(value, Real) and not isinstance(value, bool)  # including NumPy's
    if kind is int and number and isinstance(value, Integral):
        return int(value)
    if kind is float and number and abs(value) < 2**63:
        return float(value)
    if type(value) is not kind:
        raise ConfigError(f"{name} must be of type {kind.__name__}, not {value!r}")
    return value


def _check_range(name: str, value: Any, low: float | None, high: float | None) -> None:
    # nan compares false with everything, so these comparisons refuse it too.
    if low is not None and not value >= low:
        raise ConfigError(f"{name} must be at least {low}, not {value!r}")
    if high is not None and not value <= high:
        raise ConfigError(f"{name} must be at most {high}, not {value!r}")
