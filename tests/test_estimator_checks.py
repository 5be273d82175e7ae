"""scikit-learn's own checks of an estimator, on rows of numbers that are written as texts.

The checks know only tables of numbers, and pass over an estimator of texts. So that they run all
the same, :class:`Written` writes each number as a word; everything else is `TextClassifier`.
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
    "train.batch_words": 30,
}


class Written(fathomer.TextClassifier):
    """Classify rows of numbers by what they look like when written out."""

    def fit(self, X, y, sample_weight=None):
        if y is not None:
            X, y = validate_data(self, X, y)
        return super().fit(written(X), y, sample_weight)

    def predict_proba(self, X):
        check_is_fitted(self)
        return super().predict_proba(written(validate_data(self, X, reset=False)))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = True
        tags.input_tags.one_d_array = tags.input_tags.string = False
        return tags


def written(rows):
    return [" ".join(f"{'abcdefghij'[k % 10]}{x:.0f}" for k, x in enumerate(row)) for row in rows]


CANNOT_APPLY = {
    "check_sample_weight_equivalence_on_dense_data": (
        "batches are drawn at random, so a text with a weight of two is not that text twice"
    ),
    "check_fit2d_1sample": "the message says 'only one label', where 'one class' is looked for",
}


@parametrize_with_checks(
    [Written(max_depth=2, hidden_size=4, epochs=3, settings=SETTINGS)],
    expected_failed_checks=lambda _: CANNOT_APPLY,
)
def test_scikit_learn_finds_nothing_wrong(estimator, check):
    check(estimator)
