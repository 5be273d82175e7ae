"""The trials: each changes something at random, and checks that nothing but one line comes of it."""

import json
import tempfile
from functools import cache
from hashlib import sha256
from pathlib import Path

import safetensors.torch
import torch

from fathomer.artifact import Artifact
from fathomer.config import Recipe
from fathomer.data.reading import read_examples
from fathomer.errors import FathomerError
from fathomer.predictor import Predictor
from fathomer.resumable_file import ResumableFile
from fathomer.text.vectors import read_vectors
from fathomer.train.checkpoint import TrainingState
from fathomer.train.fit import fit
from tests.tiny import TINY, tagged, tiny_artifact, tiny_examples, tiny_prepared
from tests.torture import formats

TEXTS = ["The film was lovely.", "", "unheard-of wörds 😀 <unk>", "good " * 60]
NAMES = ("config.json", "tokenizer.json", "model.safetensors", "metrics.json")
VALUES = [
    None, True, -1, 0, 1, 2**31, 2**63, 10**400, 1e308, -0.5, "", "x", "\ud800", "\0", [], {},
    [1], {"a": 1}, "a" * 10_000, [[]] * 1000, 5000, 9999,
]  # fmt: skip


@cache
def model_files(kind: str) -> dict[str, bytes]:
    """Return the files of a small model of some kind."""
    if kind == "tagged":
        return fit(tagged(60), TINY.updated({"train": {"epochs": 1}})).artifact.to_files()
    if kind == "fathomer":
        return tiny_artifact().to_files()
    changes = {"ngrams": True} if kind == "ngrams" else {"name": kind}
    recipe: Recipe = TINY.updated({"model": changes, "train": {"epochs": 1}})
    return fit(tiny_examples(), recipe).artifact.to_files()


KINDS = ("fathomer", "tfidf", "ngrams", "tagged", "bilstm", "s-lstm", "transformer", "fasttext")


def change_bytes(random, content: bytes) -> bytes:
    """Flip, overwrite, cut, repeat or insert bytes."""
    data = bytearray(content)
    for _ in range(random.choice([1, 1, 2, 8])):
        place = random.randrange(len(data) + 1)
        how = random.randrange(5)
        if how == 0 and data:
            data[place % len(data)] ^= 1 << random.randrange(8)
        elif how == 1:
            data[place : place + 4] = random.choice([b"\xff" * 4, b"\0" * 4, b"\x7f\xff\xff\xff"])
        elif how == 2:
            del data[place : place + random.choice([1, 10, 10**6])]
        elif how == 3:
            data[place:place] = data[place : place + random.randrange(200)]
        else:
            data[place:place] = random.randbytes(random.randrange(20))
    return bytes(data)


def change_json(random, content: bytes) -> bytes:
    """Replace, remove or add one value anywhere in a JSON file."""
    tree = json.loads(content)
    node = tree
    while True:
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))
        if not keys:
            break
        key = random.choice(keys)
        if isinstance(node[key], dict | list) and random.random() < 0.8:
            node = node[key]
            continue
        if random.random() < 0.2:
            del node[key]
        else:
            node[key] = random.choice(VALUES)
        break
    return json.dumps(tree).encode()


def change_tensors(random, content: bytes) -> bytes:
    """Remove, reshape, retype or overwrite one tensor."""
    tensors = safetensors.torch.load(content)
    name = random.choice(sorted(tensors))
    tensor = tensors[name]
    how = random.randrange(7)
    if how == 0:
        del tensors[name]
    elif how == 1:
        tensors[name] = tensor.flatten()[: random.randrange(tensor.numel() + 1)].clone()
    elif how == 2:
        tensors[name] = tensor[None].contiguous()
    elif how == 3:
        tensors[name] = tensor.to(
            random.choice([torch.float64, torch.int32, torch.bool, torch.bfloat16])
        )
    elif how == 4 and tensor.is_floating_point():
        tensors[name] = tensor.clone().fill_(
            random.choice([float("nan"), float("inf"), 3e38, 1e30])
        )
    elif how == 5 and not tensor.is_floating_point():
        lowest = 0 if tensor.dtype == torch.uint8 else -(2**31)
        tensors[name] = torch.randint(lowest, 255, tensor.shape).to(tensor.dtype)
    else:
        tensors[f"{name}.extra"] = tensor.clone()
    return safetensors.torch.save(tensors)


def model_folder(random) -> str | None:
    """Load a changed model and classify with it."""
    files = dict(model_files(random.choice(KINDS)))
    name = random.choice(NAMES)
    how = [change_bytes, change_tensors if name.endswith("safetensors") else change_json]
    files[name] = random.choice(how)(random, files[name])
    honest = name != "config.json" and random.random() < 0.2  # checksums as they were
    if not honest and name != "config.json":
        config = json.loads(files["config.json"])
        config["files"] = {n: sha256(files[n]).hexdigest() for n in config["files"]}
        files["config.json"] = json.dumps(config).encode()
    with tempfile.TemporaryDirectory() as folder:
        for each, content in files.items():
            Path(folder, each).write_bytes(content)
        try:
            predictor = Predictor(Artifact.load(Path(folder)))
            predictor.predict(TEXTS)
        except FathomerError as error:
            return _not_one_line(error)
    return None


model_folder.prepare = lambda: [model_files(kind) for kind in KINDS]


def _not_one_line(error: Exception) -> str | None:
    message = str(error)
    return f"not one line: {message[:200]!r}" if "\n" in message or len(message) > 1500 else None


@cache
def checkpoint() -> bytes:
    """Return the bytes of a checkpoint."""
    with tempfile.TemporaryDirectory() as folder:
        state = TrainingState.start(tiny_prepared().network)
        state.keep_best(1)
        state.save(Path(folder, "c"), {"a": 1})
        return Path(folder, "c").read_bytes()


@cache
def _prepared():
    return tiny_prepared()


def crash_state(random) -> str | None:
    """Resume from a damaged checkpoint or from a damaged file of answers."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if random.random() < 0.5:
            changed = change_bytes(random, checkpoint())
            (folder / "c").write_bytes(changed)
            try:
                TrainingState.resume(_prepared().network, folder / "c", {"a": 1})
            except FathomerError as error:
                return _not_one_line(error)
            return None if changed == checkpoint() else "a damaged checkpoint was resumed"
        with ResumableFile(folder / "out", {"rows": 0}, resume=False) as file:
            file.append(b"first\n" * 50, {"rows": 50})
        path = folder / random.choice(["out.partial", "out.partial.json"])
        before = path.read_bytes()
        path.write_bytes(change_bytes(random, before))
        try:
            with ResumableFile(folder / "out", {}, resume=True) as file:
                resumed = (folder / "out.partial").read_bytes(), file.notes
        except FathomerError as error:
            return _not_one_line(error)
        right = (b"first\n" * 50, {"rows": 50})
        return None if resumed == right else "a damaged file of answers was resumed"


DATA = {
    "a.csv": b'id,text,label\n1,"good, film",pos\n2,bad,neg\n' * 1 + b"3,fine,pos\n" * 20,
    "a.tsv": b"text\tlabel\ngood film\tpos\nbad\tneg\n" * 5,
    "a.jsonl": b'{"text": "good", "label": "pos"}\n{"text": "bad", "label": 3}\n' * 10,
    "a.txt": b"__label__pos good film\n__label__neg bad\n" * 10,
}
VECTORS = {
    "v.txt": b"the 0.1 0.2 0.3\nof 1 2 3\n" * 10,
    "v.vec": b"3 3\nthe 0.1 0.2 0.3\nof 1 2 3\nto 1 1 1\n",
    "v.bin": b"2 3\nthe " + b"\0\0\x80?" * 3 + b"\nof " + b"\0\0\x80?" * 3 + b"\n",
}


def other_file(random) -> str | None:
    """Read a changed workbook, Parquet file, exported model, or another file that is downloaded."""
    contents = formats.files()
    name = random.choice(sorted(contents))
    how = [change_bytes] + ([change_json] if name.endswith(".json") else [])
    with tempfile.TemporaryDirectory() as folder:
        for each in [each for each in contents if Path(each).parent == Path(name).parent]:
            Path(folder, each).parent.mkdir(exist_ok=True)
            Path(folder, each).write_bytes(contents[each])
        path = Path(folder, name)
        path.write_bytes(random.choice(how)(random, contents[name]))
        try:
            formats.use(name, path)
        except FathomerError as error:
            return _not_one_line(error)
    return None


def data_file(random) -> str | None:
    """Read a changed file of texts or of vectors, plain or compressed."""
    import gzip

    if random.random() < 0.5:
        return other_file(random)
    name, content = random.choice([*DATA.items(), *VECTORS.items()])
    content = change_bytes(random, content)
    if random.random() < 0.3:
        name, content = f"{name}.gz", gzip.compress(content)
        if random.random() < 0.5:
            content = change_bytes(random, content)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        path.write_bytes(content)
        try:
            if name.startswith("v"):
                read_vectors(path, needed={"the"}, also_first=100)
            else:
                for _ in read_examples(path):
                    pass
        except FathomerError as error:
            return _not_one_line(error)
    return None


ALPHABET = (
    "abc XYZ 019 .,:;!?'\"-_/\\@#<>()[]{}=+*&%$ \t\n\r\0\x1b\x7f\x85\u00a0\u00ad\u0300\u0301\u200b\u200d"
    "\u202e\u2028\ud800\udfff\ufeff\ufffe\uffff\U0001f600\U0001f1e9\U0010ffffİıßΣςﬁ가각กำ\u0e33"
)
PIECES = [
    "http://",
    "www.",
    "n't",
    "'s",
    "<br />",
    "<unk>",
    "__label__",
    "a@b.c",
    "1.000,",
    "\u0301" * 50,
]


def hostile_string(random):
    """Return a string made to confuse a tokenizer."""
    length = random.choice([0, 1, 3, 8, 20, 60])
    return "".join(
        random.choice(PIECES) if random.random() < 0.2 else random.choice(ALPHABET)
        for _ in range(length)
    )


STRINGS = 500
"""Hostile strings in one trial."""


def strings(random) -> str | None:
    """Classify hostile strings, and check that spans and probabilities are right."""
    texts = [hostile_string(random) for _ in range(STRINGS)]
    for text, answer in zip(texts, _predictor().predict(texts), strict=True):
        if not abs(sum(answer.probabilities.values()) - 1) < 1e-5:
            return f"probabilities of {text!r}"
        if any(text[w.start : w.end] != w.text or not w.text for w in answer.words):
            return f"spans of {text!r}"
    return None


@cache
def _predictor() -> Predictor:
    return Predictor(tiny_artifact())


strings.prepare = _predictor
data_file.prepare = formats.files
crash_state.prepare = lambda: (checkpoint(), _prepared())
