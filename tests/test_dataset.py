"""Tables of texts: an answer for every row, whatever is in it."""

import pytest

from fathomer.dataset import TableOptions, answer_table, free_name
from fathomer.errors import DataError
from fathomer.prediction import WordSource
from fathomer.predictor import Predictor
from tests.tiny import tiny_artifact, tiny_examples

pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")

# Ray warns about its own code.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")


@pytest.fixture(scope="module")
def predictor():
    return Predictor(tiny_artifact())


def test_a_table_keeps_its_columns_and_gets_answers(predictor):
    table = pyarrow.table({"id": [1, 2], "text": ["a good film", "a bad film"], "label": [3, 4]})
    found = answer_table(predictor, table, TableOptions(depths=True))
    added = ["predicted_label", "probability", "mean_depth", "error"]
    assert found.column_names == ["id", "text", "label", *added]
    expected = predictor.predict(["a good film", "a bad film"])
    assert found["predicted_label"].to_pylist() == [answer.label for answer in expected]
    assert found["error"].to_pylist() == [None, None]


def test_words_are_made_only_for_depths(predictor, monkeypatch):
    made = []
    monkeypatch.setattr(WordSource, "words", lambda *_: made.append(1) or ())
    table = pyarrow.table({"text": ["a good film", "a bad film"]})
    answer_table(predictor, table, TableOptions())
    assert made == []
    answer_table(predictor, table, TableOptions(depths=True))
    assert len(made) == 2


def test_a_row_without_a_text_has_an_error_and_spoils_no_other(predictor):
    table = pyarrow.table({"text": ["good", None, "", "bad"]})
    found = answer_table(predictor, table, TableOptions(), [None, None, None, "line 5: broken"])
    assert found["error"].to_pylist() == [None, "no text", None, "line 5: broken"]
    assert [label is None for label in found["label"].to_pylist()] == [False, True, False, True]
    numbers = answer_table(predictor, pyarrow.table({"text": [1]}), TableOptions())
    assert numbers["error"].to_pylist() == ["a int where a text was expected"]


def test_names_that_are_taken_and_columns_that_are_missing_are_errors(predictor):
    with pytest.raises(DataError, match="both exist already"):
        free_name("label", ["label", "predicted_label"])
    with pytest.raises(DataError, match="no column 'text'; the columns are body"):
        answer_table(predictor, pyarrow.table({"body": ["good"]}), TableOptions())


def test_a_ray_dataset_is_answered_like_a_list(ray, predictor):
    texts = list(tiny_examples(3000).texts)
    dataset = ray.data.from_items([{"text": text, "id": n} for n, text in enumerate(texts)])
    rows = predictor.map_dataset(dataset, workers=2).take_all()
    answers = {row["id"]: row["label"] for row in rows}
    assert len(rows) == len(texts)
    expected = [answer.label for answer in predictor.predict(texts)]
    assert [answers[n] for n in range(len(texts))] == expected
