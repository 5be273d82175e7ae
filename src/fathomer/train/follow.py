"""The other processes of a run: the first one sends them everything they need."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from fathomer.config import Recipe
from fathomer.data.labelled import LabelledTexts
from fathomer.model.interface import find_device
from fathomer.text.encode import EncodedTexts
from fathomer.text.tokenizer import Tokenizer
from fathomer.text.vocabulary import Vocabulary
from fathomer.train.checkpoint import EpochDone, TrainingState, trained_weights
from fathomer.train.loop import train
from fathomer.train.prepare import Prepared, build_network
from fathomer.train.processes import ProcessGroup

_TEXTS = ("ids", "starts", "unknown")
_OPTIONAL = ("weights", "depths", "soft", "given")
_TENSORS = ("fixed/", "network/", "adam/")


def follow(processes: ProcessGroup, *, device: str) -> None:
    """Train together with the first process until its run ends."""
    processes.connect()
    prepared, state = receive_run(processes, device=device)
    for _ in train(state, prepared, processes=processes):
        pass


def send_run(processes: ProcessGroup, prepared: Prepared, state: TrainingState) -> None:
    """Send the encoded training texts, the network and the state to the other processes.

    They do not get what only the first one uses: the held-out texts, TF-IDF and the best weights.
    """
    data = prepared.train
    tensors = {**_fixed(prepared), **state.tensors()}
    arrays = {name: tensor.numpy(force=True) for name, tensor in tensors.items()}
    arrays |= {f"texts/{name}": getattr(data.texts, name) for name in _TEXTS}
    arrays["targets"] = data.targets
    optional = {name: getattr(data, name) for name in _OPTIONAL}
    arrays |= {name: array for name, array in optional.items() if array is not None}
    values = {
        "recipe": prepared.recipe.updated({"model": {"ngrams": False}}).to_dict(),
        "tokenizer": prepared.tokenizer.to_json(),
        "labels": prepared.labels,
        "rollbacks": state.rollbacks,
        "best_epoch": state.best_epoch,
        "history": [epoch.to_dict() for epoch in state.history],
        "arrays": list(arrays),
    }
    processes.decide(lambda: values)
    for array in arrays.values():
        processes.array(array)


def receive_run(processes: ProcessGroup, *, device: str) -> tuple[Prepared, TrainingState]:
    """Receive what :func:`send_run` sends."""
    values: dict[str, Any] = processes.decide(dict)
    arrays = {name: processes.array(None) for name in values["arrays"]}
    recipe = Recipe.from_dict(values["recipe"])
    tokenizer = Tokenizer.from_json(values["tokenizer"])
    network = build_network(recipe, Vocabulary(tokenizer, None))
    tensors = {name: _tensor(arrays[name]) for name in arrays if name.startswith(_TENSORS)}
    fixed = {name.removeprefix("fixed/"): tensor for name, tensor in tensors.items()}
    network.load_state_dict(fixed, strict=False)
    texts = EncodedTexts(*(arrays[f"texts/{name}"] for name in _TEXTS))
    data = LabelledTexts(texts, arrays["targets"], *map(arrays.get, _OPTIONAL))
    state = TrainingState.start(network.to(find_device(processes.device(device))))
    state.load_tensors(tensors)
    state.rollbacks = values["rollbacks"]
    state.history = [EpochDone(**epoch) for epoch in values["history"]]
    state.keep_best(values["best_epoch"])
    return Prepared(recipe, tokenizer, tuple(values["labels"]), network, data, None), state


def _fixed(prepared: Prepared) -> dict[str, torch.Tensor]:
    """Return the tensors that training does not change, such as pretrained word vectors."""
    trained, found = trained_weights(prepared.network), prepared.network.state_dict()
    return {
        f"fixed/{name}": tensor
        for name, tensor in found.items()
        if name not in trained and not name.startswith("ngrams.")
    }


def _tensor(array: NDArray[Any]) -> torch.Tensor:
    return torch.from_numpy(np.array(array))  # a copy that may be written to
