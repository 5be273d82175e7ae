"""The benchmark of Ray: its workers answer the same files as the plain path."""

import json

import pytest

from benchmarks.scale import predict_seconds
from tests.tiny import tiny_artifact

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")


def test_more_workers_than_cores_gain_nothing():
    times = [predict_seconds(1000, speed=10.0, workers=n, cores=2) for n in (1, 2, 4)]
    assert times == [100.0, 50.0, 50.0]


def test_plain_and_ray_are_measured_on_the_same_texts(ray, bench, tmp_path):
    tiny_artifact().save(tmp_path / "model")
    code, out, err = bench("scale", "model", "--texts", "3000", "--workers", "1", "--json")
    assert code == 0, err
    [row] = json.loads(out)["rows"]
    assert row["texts_per_second"] > 0
    assert row["predicted_seconds"] == pytest.approx(row["seconds"])
