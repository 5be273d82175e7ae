"""The learning rate: it falls in a straight line with the steps."""

from fathomer.config import TrainConfig


def learning_rate(progress: float, config: TrainConfig) -> float:
    """Give the rate at ``progress``, the part of the training that is done (0 to 1).

    >>> config = TrainConfig(learning_rate=1.0, decay_to=0.5)
    >>> [learning_rate(progress, config) for progress in (0.0, 0.5, 1.0)]
    [1.0, 0.75, 0.5]
    """
    return config.learning_rate * (1 - progress * (1 - config.decay_to))
