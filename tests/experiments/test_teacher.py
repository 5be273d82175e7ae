"""Fine-tuning a teacher: a folder that train --teacher accepts."""

from experiments.teacher import fine_tune
from fathomer.train.teacher import Teacher
from tests.text.encoders import write_encoder
from tests.tiny import tiny_examples


def test_an_encoder_becomes_a_teacher(tmp_path):
    encoder, out = write_encoder(tmp_path / "encoder"), tmp_path / "teacher"
    lines = []
    found = fine_tune(
        str(encoder), tiny_examples(), tiny_examples(20), out,
        epochs=2, held_out=0.2, seed=0, log=lines.append,
    )  # fmt: skip
    assert len(lines) == found.epochs == 2
    assert 0 <= found.test <= 1
    assert found.texts_per_second > 0
    labels = ["negative", "positive"]
    answers = Teacher(out, labels).answer(["good film ."], tmp_path / "answers.jsonl")
    assert answers.shape == (1, 2)
