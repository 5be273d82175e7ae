"""scikit-learn's own estimator checks, run on rows of numbers that are spelled out as texts.

The checks skip estimators of texts, because they only generate tables of numbers. `NumbersAsWords`
turns each number into a word; everything else is `TextClassifier`.
"""

from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import check_is_fitted, validate_data

import fathomer

SETTINGS = {
    "model.word_size": 4,
    "model.char_size": 2,
    "model.char_input_size": 2,
    "model.depth_size": 2,
    "model.word_dropout": 0.0,
    "model.hidden_dropout": 0.0,
    "text.min_count": 1,
    "train.held_out": 0.0,
    "train.learning_rate": 0.05,
    "train.batch_words": 100,
}


class NumbersAsWords(fathomer.TextClassifier):
    """A classifier of rows of numbers, each number spelled out as a word."""

    def fit(self, X, y, sample_weight=None):
        if y is not None:
            X, y = validate_data(self, X, y)
        return super().fit(spelled_out(X), y, sample_weight)

    def partial_fit(self, X, y, classes=None, sample_weight=None):
        if not hasattr(self, "predictor_"):
            return self.fit(X, y, sample_weight)
        X, y = validate_data(self, X, y, reset=False)
        return super().partial_fit(spelled_out(X), y, classes, sample_weight)

    def predict_proba(self, X):
        check_is_fitted(self)
        return super().predict_proba(spelled_out(validate_data(self, X, reset=False)))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = True
        tags.input_tags.one_d_array = tags.input_tags.string = False
        return tags


def spelled_out(rows):
    return [" ".join(f"{'abcdefghij'[k % 10]}{x:.0f}" for k, x in enumerate(row)) for row in rows]


EXPECTED_FAILURES = {
    "check_sample_weight_equivalence_on_dense_data": (
        "batches are random, so a text with weight two is not the same as that text twice"
    ),
    "check_fit2d_1sample": "the message says 'only one label', but the check looks for 'one class'",
}


@parametrize_with_checks(
    [NumbersAsWords(max_depth=2, hidden_size=4, epochs=3, settings=SETTINGS)],
    expected_failed_checks=lambda _: EXPECTED_FAILURES,
)
def test_the_checks_of_scikit_learn_pass(estimator, check):
    check(estimator)
