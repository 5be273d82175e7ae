"""The scikit-learn estimator: what it accepts and what it refuses."""

import numpy as np
import pytest

from fathomer.errors import ConfigError, DataError
from tests.small_classifier import LABELS, TEXTS, classifier, small_settings


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((["good", "bad"], ["a"]), "2 texts, but 1 labels"),
        ((["good", "fine"], ["a", "a"]), r"only one label \('a'\)"),
        ((["good", "fine"], None), "requires y to be passed, but the target y is None"),
        ((["good", "bad"], ["a", "b"], [1.0]), r"2 texts, but weights of shape \(1,\)"),
        ((["good", "bad"], ["a", "b"], [0, 0]), "all weights are zero"),
        ((["good", "bad"], ["a", "b"], [1, -1]), "weight 1 is -1.0"),
    ],
)
def test_a_mistake_is_one_clear_line(arguments, message):
    with pytest.raises(DataError, match=message):
        classifier().fit(*arguments)


def test_labels_of_the_wrong_kind_are_refused():
    with pytest.raises(DataError, match="label 0 is a list, but TextClassifier gives one label"):
        classifier().fit(TEXTS, [[0, 1]] * 60)
    with pytest.raises(ValueError, match="y should be a 1d array"):
        classifier().fit(TEXTS, np.array([[0, 1]] * 60))
    with pytest.raises(ValueError, match="contains NaN"):
        classifier().fit(TEXTS, np.array([np.nan, 1.0] * 30))
    with pytest.raises(ValueError, match="Unknown label type"):
        classifier().fit(TEXTS, np.linspace(0, 1, 60))
    with pytest.raises(ValueError, match="not in class_weight"):
        classifier(class_weight={"other": 2}).fit(TEXTS, LABELS)
    with pytest.raises(
        ConfigError, match="class_weight must be one of none, balanced, not 'equal'"
    ):
        classifier(class_weight="equal").fit(TEXTS, LABELS)


def test_anything_but_a_list_of_texts_is_refused():
    with pytest.raises(TypeError, match=r"for a single text, pass"):
        classifier().fit("good", ["a"])
    with pytest.raises(TypeError, match="text 1 has type NoneType; expected a string"):
        classifier().fit(["good", None], ["a", "b"])


def test_a_data_frame_or_mapping_is_refused():
    fitted = classifier(epochs=1).fit(TEXTS, LABELS)
    for table in ({"text": TEXTS}, np.array([TEXTS]), np.array("good")):
        with pytest.raises(TypeError, match="expected a list or a single column of texts, not a "):
            fitted.predict(table)


@pytest.mark.parametrize("missing", [None, float("nan"), "", " "])
@pytest.mark.parametrize("column", [list, lambda values: np.array(values, dtype=object)])
def test_a_missing_label_is_named(missing, column):
    labels = column([*LABELS[:-1], missing])
    told = rf"^label {len(LABELS) - 1} is missing \({missing!r}\); leave out rows without a label$"
    with pytest.raises(DataError, match=told):
        classifier().fit(TEXTS, labels)


def test_a_missing_label_of_pandas_is_named():
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    labels = pandas.Series([pandas.NA, *LABELS[1:]], dtype="string")
    with pytest.raises(DataError, match=r"^label 0 is missing "):
        classifier().fit(TEXTS, labels)


def test_settings_can_be_numpy_numbers():
    settings = {**small_settings(), "train.learning_rate": np.float64(0.02)}
    found = classifier(hidden_size=np.int64(12), settings=settings)._recipe()
    assert (found.model.hidden_size, found.train.learning_rate) == (12, 0.02)
    assert type(found.model.hidden_size) is int
    with pytest.raises(ConfigError, match="epochs must be of type int"):
        classifier(epochs=np.float64(2))._recipe()


def test_an_unknown_setting_is_refused():
    with pytest.raises(ConfigError, match=r"unknown setting 'epoch'; did you mean 'epochs'\?"):
        classifier(settings={"train.epoch": 3}).fit(TEXTS, LABELS)
