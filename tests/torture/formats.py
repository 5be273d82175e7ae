"""Small files of every other format that is read, and what reads them."""

import io
import json
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from fathomer.data.reading import read_examples
from fathomer.data.soft_labels import read_soft_labels
from fathomer.export import export
from fathomer.predictor import Predictor
from fathomer.runtime import OnnxPredictor
from fathomer.text.compact import read_compact, write_compact
from fathomer.text.sources import read_source
from fathomer.text.vectors import Vectors
from fathomer.train.teacher import Teacher
from tests.text.test_subwords import write_static_model
from tests.tiny import tiny_artifact

SOFT = b'{"text": "a", "no": 0.25, "yes": 0.75}\n{"text": "b", "no": 1, "yes": 0}\n'
TEACHER = {"architectures": ["BertForSequenceClassification"], "id2label": {"0": "no", "1": "yes"}}


@cache
def files() -> dict[str, bytes]:
    """Return the content of small files by name; one in a folder is read with the whole folder."""
    openpyxl, parquet = pytest.importorskip("openpyxl"), pytest.importorskip("pyarrow.parquet")
    pyarrow = pytest.importorskip("pyarrow")
    book, sheet, table = openpyxl.Workbook(), io.BytesIO(), io.BytesIO()
    rows = [["text", "label"], *([f"film {n}", "good" if n % 2 else "bad"] for n in range(20))]
    for row in rows:
        book.active.append(row)
    book.save(sheet)
    columns = dict(zip(rows[0], zip(*rows[1:], strict=True), strict=True))
    parquet.write_table(pyarrow.table(columns), table, row_group_size=7)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        matrix = np.ones((3, 4), dtype=np.float32)
        write_compact(folder / "v.safetensors", Vectors(["a", "b", "c"], matrix, (1, 3)), {})
        export(Predictor(tiny_artifact()), folder / "m.onnx")
        weights = {"mapping": np.arange(6), "weights": np.ones(6)}
        static = write_static_model(folder / "static", **weights)
        found = {
            path.relative_to(folder).as_posix(): path.read_bytes()
            for path in (*folder.glob("*.*"), *static.iterdir())
        }
    teacher = json.dumps(TEACHER).encode()
    return {
        **found,
        "t.xlsx": sheet.getvalue(),
        "t.parquet": table.getvalue(),
        "soft.jsonl": SOFT,
        "teacher/config.json": teacher,
    }


def use(name: str, path: Path) -> None:
    """Read a file; raise an error if what was read cannot be right."""
    folder = name.partition("/")[0]
    if folder == "static":
        assert np.isfinite(read_source(path.parent, needed={"good"}, also_first=9).matrix).all()
    elif folder == "teacher":
        Teacher(path.parent, ["no", "yes"])
    elif name == "v.safetensors":
        read_compact(path, needed={"a", "c"})
    elif name == "m.onnx":
        OnnxPredictor(path).predict(["The film was lovely.", ""])
    elif name == "soft.jsonl":
        read_soft_labels(path, ["no", "yes"]).of(["b", "a"], "soft.jsonl")
    else:
        list(read_examples(path))
