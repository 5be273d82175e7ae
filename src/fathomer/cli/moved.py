"""Commands that have moved out of the package."""

from fathomer.errors import ConfigError


def bench() -> None:
    """Moved: run python -m benchmarks from a clone of the repository."""
    raise ConfigError(
        "bench has moved: in a clone of the repository, run python -m benchmarks speed or serving"
    )


def experiment() -> None:
    """Moved: run python -m experiments from a clone of the repository."""
    raise ConfigError(
        "experiment has moved: in a clone of the repository, run python -m experiments"
    )
