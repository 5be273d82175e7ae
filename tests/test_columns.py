"""Texts and labels as columns of pandas, polars, Arrow and Hugging Face."""

import numpy as np
import pytest

from fathomer.columns import checked_labels, checked_texts
from fathomer.errors import DataError
from fathomer.predictor import Predictor
from tests.small_classifier import LABELS, TEXTS, classifier
from tests.tiny import tiny_artifact

pd = pytest.importorskip("pandas", reason="pandas is not installed")
pl = pytest.importorskip("polars", reason="polars is not installed")
pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
datasets = pytest.importorskip("datasets", reason="datasets is not installed")

DATA = {"text": TEXTS, "label": LABELS}
TABLES = {
    "pandas": pd.DataFrame(DATA),
    "polars": pl.DataFrame(DATA),
    "arrow": pa.table(DATA),
    "datasets": datasets.Dataset.from_dict(DATA),
}


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_a_column_is_read_like_a_list(table):
    assert checked_texts(table["text"]) == TEXTS
    assert list(checked_labels(table["label"])) == LABELS
    found = Predictor(tiny_artifact()).predict(table["text"])
    assert found == Predictor(tiny_artifact()).predict(TEXTS)


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_a_table_with_texts_and_labels_can_be_fitted(table):
    fitted = classifier(epochs=1).fit(table)
    assert fitted.classes_.tolist() == ["negative", "positive"]
    assert fitted.predict(table).tolist() == fitted.predict(TEXTS).tolist()


def test_a_table_of_one_column_is_that_column():
    frame = pd.DataFrame({"review": TEXTS})
    assert checked_texts(frame) == checked_texts(pl.from_pandas(frame)) == TEXTS
    assert list(checked_labels(pd.DataFrame({"stars": LABELS}))) == LABELS


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (pd.DataFrame({"a": TEXTS, "b": LABELS}), r"no column 'text' in the DataFrame \(a, b\)"),
        (
            datasets.DatasetDict(train=TABLES["datasets"]),
            r"pass one part, such as dataset\['train'\]",
        ),
        (pd.Series(["good", None]), "text 1 has type float; expected a string"),
        (pa.array(["good", None]), "text 1 has type NoneType; expected a string"),
    ],
)
def test_what_is_not_a_column_of_texts_is_refused_by_name(values, message):
    with pytest.raises(TypeError, match=message):
        checked_texts(values)


@pytest.mark.parametrize("several", [["a", "b"], ("a",), {"a"}])
def test_several_labels_are_refused_by_name(several):
    with pytest.raises(DataError, match=r"^label 0 is a \w+, but .* --multi-label learns several$"):
        checked_labels([several, several])


def test_missing_labels_of_a_column_are_named():
    for column in (pd.Series(["a", None]), pl.Series(["a", None]), pa.array(["a", None])):
        with pytest.raises(DataError, match=r"^label 1 is missing \((None|nan)\);"):
            checked_labels(column)
    numbers = np.array([1.0, np.nan])
    assert checked_labels(numbers) is numbers, "scikit-learn reports it"
