"""The benchmark of Ray: its workers answer the same files as the plain path."""

import pytest

from benchmarks.scale import check_answers, measure_scale, predict_seconds
from fathomer.errors import DataError
from fathomer.predictor import Predictor
from tests.tiny import tiny_artifact

pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")


def test_more_workers_than_cores_gain_nothing():
    times = [predict_seconds(1000, speed=10.0, workers=n, cores=2) for n in (1, 2, 4)]
    assert times == [100.0, 50.0, 50.0]


def test_a_missing_a_doubled_and_a_wrong_answer_are_found(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    (tmp_path / "plain.csv").write_text("id,text,label\n0,good,a\n1,bad,b\n")
    (tmp_path / "answers").mkdir()

    def check(ids, labels):
        table = pyarrow.table({"id": ids, "label": labels})
        parquet.write_table(table, tmp_path / "answers" / "0.parquet")
        check_answers(tmp_path / "plain.csv", tmp_path / "answers")

    check([1, 0], ["b", "a"])
    for ids, labels in (([0], ["a"]), ([0, 1, 1], ["a", "b", "b"]), ([0, 1], ["a", "a"])):
        with pytest.raises(DataError, match="differ from those of the plain path"):
            check(ids, labels)


def test_plain_and_ray_answer_alike_although_a_worker_is_killed(ray, capsys):
    predictor = Predictor(tiny_artifact())
    found = measure_scale(predictor, texts=1000, workers=[1], kills=1, report=lambda _: None)
    [row] = found["rows"]
    assert row["killed"] == 1
    assert capsys.readouterr().out == ""  # Ray reports the killed worker on standard error
    assert row["texts_per_second"] > 0
    assert row["predicted_seconds"] == pytest.approx(row["seconds"])
