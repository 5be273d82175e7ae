"""The comparison of students with and without a teacher."""

import pytest

from experiments.students import Scored, compare_students, table
from fathomer.data.datasets import corpora_named
from fathomer.data.opening import open_dataset
from tests.text.encoders import write_encoder
from tests.tiny import TINY, tiny_examples

SMALL = [f"{name}={value}" for name, value in TINY.changed_values().items()]


@pytest.fixture
def dataset(tmp_path):
    """Short opinions in the place of amazon16/books; half of its unlabelled texts are test texts."""
    [books] = corpora_named("amazon16/books")
    folder = tmp_path / "amazon16"
    folder.mkdir()
    train, test = (file.name for file in books.files)
    for name, prefix in ((train, ""), (test, "so ")):
        lines = [f"{int(e.label == 'positive')}\t{prefix}{e.text}\n" for e in tiny_examples()]
        (folder / name).write_text("".join(lines), encoding="utf-8")
    known = [f"so {e.text}\n" for e in tiny_examples()]
    new = [f"splendid hotel {number}\n" for number in range(5)]
    (folder / "books.task.unlabel").write_text("".join(known + new), encoding="utf-8")
    return open_dataset("amazon16/books", data_dir=tmp_path)


def test_all_systems_answer_the_same_texts_and_the_teacher_is_kept(dataset, tmp_path):
    encoder, work, log = write_encoder(tmp_path / "encoder"), tmp_path / "work", []

    def compare():
        return compare_students(
            dataset, work, encoder=str(encoder), epochs=1, assignments=[*SMALL, "train.epochs=1"],
            data_dir=tmp_path, log=log.append,
        )  # fmt: skip

    found = compare()
    assert [each.system for each in found] == [
        "teacher",
        "no teacher",
        "teacher, training texts",
        "teacher, unlabelled texts too",
    ]
    assert all(0 <= each.test <= 1 and each.texts_per_second > 0 for each in found)
    answers = (work / "answers.jsonl").read_text(encoding="utf-8")
    asked = {e.text for e in dataset.train}
    assert 1 + 5 < len(answers.splitlines()) <= 1 + len(asked) + 5  # no test texts
    begun = len(log)
    again = compare()
    assert "epoch" not in "".join(log[begun:])  # not fine-tuned again
    assert [each[:4] for each in again] == [each[:4] for each in found]


def test_the_table_is_markdown():
    lines = table([Scored("trec", "teacher", 0.5, 0.25, 1234.5)]).splitlines()
    assert lines[-1] == "| trec | teacher | 50.0% | 25.0% | 1,234 |"
