"""Former commands that now live outside the package."""

from fathomer.errors import ConfigError


def bench() -> None:
    """Report where the benchmarks are now."""
    raise ConfigError(
        "bench has moved: in a clone of the repository, run python -m benchmarks speed|serving"
    )


def experiment() -> None:
    """Report where the experiments are now."""
    raise ConfigError(
        "experiment has moved: in a clone of the repository, run python -m experiments ..."
    )
