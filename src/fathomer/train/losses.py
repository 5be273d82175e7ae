"""The losses of a batch: of labels, soft labels and target depths."""

import torch
from torch import Tensor
from torch.nn import functional

from fathomer.config import TrainConfig

DEPTH_WEIGHT = 0.5
"""Weight of the loss of supervised depths, relative to the loss of the labels."""
DEPTH_NOISE = 0.2
"""Share of the words that take a random depth in training, if depth is supervised: the model then
answers well at other depths too."""


def text_losses(logits: Tensor, targets: Tensor, smoothing: float) -> Tensor:
    """Return the loss of each text: cross entropy, or mean binary cross entropy if multi-label."""
    if targets.dim() == 1:
        return functional.cross_entropy(  # Eq. (17)
            logits, targets, label_smoothing=smoothing, reduction="none"
        )
    truth = targets * (1 - smoothing) + smoothing / 2
    return functional.binary_cross_entropy_with_logits(logits, truth, reduction="none").mean(1)


def depth_loss(logits: Tensor, depths: Tensor) -> Tensor:
    """Return the summed cross entropy of the depth classifier, Eq. (6), with the target depths."""
    return functional.cross_entropy(logits, depths - 1, reduction="sum")


def with_noise(depths: Tensor, max_depth: int) -> Tensor:
    """Replace the depths of some words by random ones."""
    random = torch.randint_like(depths, 1, max_depth + 1)
    return torch.where(torch.rand(depths.shape, device=depths.device) < DEPTH_NOISE, random, depths)


def mixed_losses(
    losses: Tensor, logits: Tensor, soft: Tensor, given: Tensor, config: TrainConfig
) -> Tensor:
    """Mix the losses with those of soft labels; texts without a label of their own have only these.

    Hinton et al., 2015, "Distilling the Knowledge in a Neural Network": both distributions are
    softened by a temperature T, and the loss is multiplied by T² to keep the size of its gradient.
    """
    temperature = config.soft_temperature
    wanted = soft.pow(1 / temperature)
    wanted = wanted / wanted.sum(1, keepdim=True)
    found = functional.log_softmax(logits / temperature, dim=1)
    soft_losses = functional.kl_div(found, wanted, reduction="none").sum(1) * temperature**2
    share = torch.where(given, config.soft_weight, 1.0)
    return (1 - share) * losses + share * soft_losses


def count_correct(logits: Tensor, targets: Tensor) -> Tensor:
    """Count the texts whose label, or whose complete set of labels, is predicted."""
    if targets.dim() == 1:
        return (logits.argmax(1) == targets).sum()
    return ((logits > 0) == targets).all(1).sum()
