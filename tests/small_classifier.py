"""A small classifier for the tests of the estimator, and the texts it is trained on."""

import fathomer
from tests.tiny import TINY, tiny_examples

# Few and large steps: most of these tests train several models.
RECIPE = TINY.updated({"train": {"batch_words": 240, "learning_rate": 0.05}})
TEXTS = [example.text for example in tiny_examples()]
LABELS = [example.label for example in tiny_examples()]
PARAMETERS = (
    "model.max_depth",
    "model.hidden_size",
    "train.epochs",
    "train.seed",
    "train.class_weight",
)
"""Settings that are parameters of the classifier."""


def classifier(**parameters):
    """Return an untrained classifier that trains in a second."""
    defaults = {"max_depth": 3, "hidden_size": 12, "epochs": 12, "settings": small_settings()}
    return fathomer.TextClassifier(**{**defaults, **parameters})


def small_settings(recipe=RECIPE):
    """Return a recipe as ``settings``."""
    return {
        f"{section}.{name}": value
        for section, values in recipe.to_dict().items()
        for name, value in values.items()
        if f"{section}.{name}" not in PARAMETERS
    }


def weights_of(fitted):
    """Return the weights of a trained classifier as bytes."""
    return fitted.predictor_.artifact.to_files()["model.safetensors"]
