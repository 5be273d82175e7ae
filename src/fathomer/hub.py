"""Model folders for Hugging Face's `transformers`: importing this module registers them.

``AutoConfig``, ``AutoTokenizer``, ``AutoModelForSequenceClassification`` and
``pipeline("text-classification")`` then read the folder that training has written, and
``save_pretrained`` writes the same kind of folder: one format, with its checksums.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer as Engine
from torch import Tensor

from fathomer.artifact import TOKENIZER, Artifact, read_config
from fathomer.config import Recipe, TextConfig
from fathomer.errors import ArtifactError, ConfigError, require
from fathomer.files import write_atomically
from fathomer.model.graph import WordBatch
from fathomer.model.registry import build_model
from fathomer.text.encode import EncodedTexts
from fathomer.text.tokenizer import UNKNOWN, UNKNOWN_ID, Tokenizer
from fathomer.train.loop import text_losses

for _package in ("huggingface_hub", "transformers"):
    require(_package, "hub")

from huggingface_hub import snapshot_download  # noqa: E402
from transformers import (  # noqa: E402
    AutoConfig,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    BatchEncoding,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)
from transformers.modeling_outputs import SequenceClassifierOutput  # noqa: E402

_DOWNLOAD = ("revision", "token", "cache_dir", "local_files_only")
"""What of the many options of ``from_pretrained`` says where a model comes from."""


def find_folder(name: str | Path, options: dict[str, Any]) -> Path:
    """Find a model: a folder here, or a repository that is downloaded, or a folder in these."""
    subfolder = options.get("subfolder") or ""
    if Path(name).is_dir():
        return Path(name, subfolder)
    chosen = {key: options[key] for key in _DOWNLOAD if options.get(key) is not None}
    return Path(snapshot_download(str(name), **chosen), subfolder)


def refuse_upload(options: dict[str, Any]) -> None:
    """Refuse the option of ``save_pretrained`` that asks for an upload: nothing is uploaded here."""
    if options.get("push_to_hub"):
        raise ConfigError(
            "save_pretrained uploads nothing; leave push_to_hub out and upload the folder"
        )


class FathomerConfig(PreTrainedConfig):  # type: ignore[misc]
    """Show ``config.json`` of a model folder as `transformers` knows settings."""

    model_type = "fathomer"
    labels: list[str] | None = None
    recipe: dict[str, Any] | None = None

    def __post_init__(self, **kwargs: Any) -> None:
        if self.labels is not None:
            self.id2label = dict(enumerate(self.labels))
            self.label2id = {label: number for number, label in enumerate(self.labels)}
        if self.recipe is not None:  # a pipeline applies a sigmoid or a softmax accordingly
            several = Recipe.from_dict(self.recipe).model.multi_label
            kind = "multi_label" if several else "single_label"
            self.problem_type = f"{kind}_classification"
        super().__post_init__(**kwargs)


class FathomerTokenizer(PreTrainedTokenizerFast):  # type: ignore[misc]
    """Split texts as the predictor does; an unknown word has id 0 and its spelling."""

    model_input_names = ["input_ids", "attention_mask", "spellings"]  # noqa: RUF012 (as declared there)

    def __init__(self, tokenizer: Tokenizer, config: TextConfig) -> None:
        engine = Engine.from_str(tokenizer.to_json())
        super().__init__(
            tokenizer_object=engine,
            unk_token=UNKNOWN,
            pad_token=UNKNOWN,  # only the mask tells where a text ends
            model_max_length=config.max_words,
        )
        self.words, self.text_config = tokenizer, config

    @classmethod
    def from_pretrained(
        cls, pretrained_model_name_or_path: str | Path, *_: Any, **options: Any
    ) -> "FathomerTokenizer":
        """Read the tokenizer of a model folder."""
        folder = find_folder(pretrained_model_name_or_path, options)
        recipe = Recipe.from_dict(read_config(folder)["recipe"])
        return cls(Tokenizer.from_json((folder / TOKENIZER).read_text("utf-8")), recipe.text)

    def save_pretrained(self, save_directory: str | Path, **options: Any) -> tuple[str]:
        """Write ``tokenizer.json`` just as the model folder has it."""
        refuse_upload(options)
        path = Path(save_directory) / TOKENIZER
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, self.words.to_json())
        return (str(path),)

    def __call__(self, text: str | Sequence[str], **_: Any) -> BatchEncoding:
        """Encode one text or several; the shorter ones are padded."""
        texts, config = [text] if isinstance(text, str) else list(text), self.text_config
        words = self.words.encode(texts, max_words=config.max_words)
        encoded = EncodedTexts.from_words(words, max_chars=config.max_chars)
        shape = len(texts), int(encoded.lengths.max(initial=0))
        ids, mask = np.full(shape, UNKNOWN_ID), np.zeros(shape, dtype=np.int64)
        spellings = np.zeros((*shape, config.max_chars), dtype=np.uint8)
        for row, length in enumerate(encoded.lengths):
            found = encoded.ids[encoded.starts[row] : encoded.starts[row + 1]]
            ids[row, :length], mask[row, :length] = np.maximum(found, UNKNOWN_ID), 1
            width = encoded.unknown.shape[1]
            spellings[row, np.flatnonzero(found < 0), :width] = encoded.unknown[
                -1 - found[found < 0]
            ]
        arrays = {"input_ids": ids, "attention_mask": mask, "spellings": spellings}
        return BatchEncoding({name: torch.from_numpy(array) for name, array in arrays.items()})


class FathomerForSequenceClassification(PreTrainedModel):  # type: ignore[misc]
    """Classify texts, reading each word to a depth of its own."""

    config_class = FathomerConfig
    base_model_prefix = "network"
    main_input_name = "input_ids"

    def __init__(self, config: FathomerConfig, artifact: Artifact | None = None) -> None:
        super().__init__(config)
        self.artifact = artifact
        if artifact is not None:
            self.network = artifact.network
            return
        assert config.recipe is not None, "a recipe says how large the network is"
        self.network = build_model(Recipe.from_dict(config.recipe).model)

    @classmethod
    def from_pretrained(
        cls,
        pretrained_model_name_or_path: str | Path,
        *_: Any,
        config: FathomerConfig | None = None,
        **options: Any,
    ) -> "FathomerForSequenceClassification":
        """Read a model folder; its checksums are compared."""
        folder = find_folder(pretrained_model_name_or_path, options)
        artifact = Artifact.load(folder)
        config = config or FathomerConfig.from_pretrained(folder)
        if tuple(config.id2label.values()) != artifact.labels:
            labels = ", ".join(artifact.labels)
            raise ConfigError(
                f"{folder}: the given config has other labels than the model ({labels})"
            )
        model = cls(config, artifact)
        model.eval()
        return model

    def save_pretrained(self, save_directory: str | Path, **options: Any) -> None:
        """Write the folder that :func:`fathomer.load` reads."""
        refuse_upload(options)
        if self.artifact is None:
            raise ArtifactError("a model without labels and tokenizer cannot be saved; train one")
        self.artifact.save(Path(save_directory))

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor,
        spellings: Tensor,
        labels: Tensor | None = None,
        **_: Any,
    ) -> SequenceClassifierOutput:
        """Give the logits of the labels, and the loss if the true ones are given."""
        is_word = attention_mask.bool()
        words, spelled = input_ids[is_word], spellings[is_word]
        unknown = words == UNKNOWN_ID
        numbers = -1 - torch.arange(int(unknown.sum()), device=words.device)
        words = words.masked_scatter(unknown, numbers)
        batch = WordBatch(words, attention_mask.sum(1).cpu(), spelled[unknown])
        logits = self.network(batch).logits / (self.artifact.temperature if self.artifact else 1.0)
        loss = None if labels is None else text_losses(logits, labels, 0.0).mean()
        return SequenceClassifierOutput(loss=loss, logits=logits)


AutoConfig.register("fathomer", FathomerConfig, exist_ok=True)
AutoTokenizer.register(FathomerConfig, FathomerTokenizer, exist_ok=True)
AutoModelForSequenceClassification.register(
    FathomerConfig, FathomerForSequenceClassification, exist_ok=True
)
