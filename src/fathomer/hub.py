"""Hugging Face `transformers` support: importing this module registers Fathomer's models.

``AutoConfig``, ``AutoTokenizer``, ``AutoModelForSequenceClassification`` and
``pipeline("text-classification")`` then read the folders written by training, and
``save_pretrained`` writes such a folder again, checksums included.
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
from fathomer.train.losses import text_losses

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

_DOWNLOAD_OPTIONS = ("revision", "token", "cache_dir", "local_files_only")
"""Options of ``from_pretrained`` that are passed on to the download."""


def find_folder(name: str | Path, options: dict[str, Any]) -> Path:
    """Return the folder of a model: a local one, or a downloaded repository."""
    subfolder = options.get("subfolder") or ""
    if Path(name).is_dir():
        return Path(name, subfolder)
    chosen = {key: options[key] for key in _DOWNLOAD_OPTIONS if options.get(key) is not None}
    return Path(snapshot_download(str(name), **chosen), subfolder)


def refuse_upload(options: dict[str, Any]) -> None:
    """Raise an error for ``push_to_hub=True``: ``save_pretrained`` does not upload."""
    if options.get("push_to_hub"):
        raise ConfigError(
            "save_pretrained does not upload; omit push_to_hub and upload the folder yourself"
        )


class FathomerConfig(PreTrainedConfig):  # type: ignore[misc]
    """The ``config.json`` of a model folder, as a `transformers` config."""

    model_type = "fathomer"
    labels: list[str] | None = None
    recipe: dict[str, Any] | None = None

    def __post_init__(self, **kwargs: Any) -> None:
        if self.labels is not None:
            self.id2label = dict(enumerate(self.labels))
            self.label2id = {label: number for number, label in enumerate(self.labels)}
        if self.recipe is not None:  # tells a pipeline to apply a sigmoid or a softmax
            several = Recipe.from_dict(self.recipe).model.multi_label
            kind = "multi_label" if several else "single_label"
            self.problem_type = f"{kind}_classification"
        super().__post_init__(**kwargs)


class FathomerTokenizer(PreTrainedTokenizerFast):  # type: ignore[misc]
    """The tokenizer of a model folder; an unknown word has id 0 and its spelling in bytes."""

    model_input_names = ["input_ids", "attention_mask", "spellings"]  # noqa: RUF012 (declared so in the base class)

    def __init__(self, tokenizer: Tokenizer, config: TextConfig) -> None:
        engine = Engine.from_str(tokenizer.to_json())
        super().__init__(
            tokenizer_object=engine,
            unk_token=UNKNOWN,
            pad_token=UNKNOWN,  # padding is recognised by the mask alone
            model_max_length=config.max_words,
        )
        self.word_tokenizer, self.text_config = tokenizer, config

    @classmethod
    def from_pretrained(
        cls, pretrained_model_name_or_path: str | Path, *_: Any, **options: Any
    ) -> "FathomerTokenizer":
        """Load the tokenizer of a model folder."""
        folder = find_folder(pretrained_model_name_or_path, options)
        recipe = Recipe.from_dict(read_config(folder)["recipe"])
        return cls(Tokenizer.from_json((folder / TOKENIZER).read_text("utf-8")), recipe.text)

    def save_pretrained(self, save_directory: str | Path, **options: Any) -> tuple[str]:
        """Write ``tokenizer.json`` exactly as in the model folder."""
        refuse_upload(options)
        path = Path(save_directory) / TOKENIZER
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, self.word_tokenizer.to_json())
        return (str(path),)

    def __call__(self, text: str | Sequence[str], **_: Any) -> BatchEncoding:
        """Encode one text or several, padded to the longest."""
        texts, config = [text] if isinstance(text, str) else list(text), self.text_config
        words = self.word_tokenizer.encode(texts, max_words=config.max_words)
        encoded = EncodedTexts.from_words(words, max_chars=config.max_chars)
        is_word = np.arange(encoded.lengths.max(initial=0)) < encoded.lengths[:, None]
        ids = np.full(is_word.shape, UNKNOWN_ID, dtype=np.int64)
        ids[is_word] = np.maximum(encoded.ids, UNKNOWN_ID)
        is_unknown, width = encoded.ids < 0, encoded.unknown.shape[1]
        spelled = np.zeros((len(encoded.ids), config.max_chars), dtype=np.uint8)
        spelled[is_unknown, :width] = encoded.unknown[-1 - encoded.ids[is_unknown]]
        spellings = np.zeros((*is_word.shape, config.max_chars), dtype=np.uint8)
        spellings[is_word] = spelled
        arrays = {
            "input_ids": ids,
            "attention_mask": is_word.astype(np.int64),
            "spellings": spellings,
        }
        return BatchEncoding({name: torch.from_numpy(array) for name, array in arrays.items()})


class FathomerForSequenceClassification(PreTrainedModel):  # type: ignore[misc]
    """A trained model for `transformers`; the network selects a depth for every word."""

    config_class = FathomerConfig
    base_model_prefix = "network"
    main_input_name = "input_ids"

    def __init__(self, config: FathomerConfig, artifact: Artifact | None = None) -> None:
        super().__init__(config)
        self.artifact = artifact
        if artifact is not None:
            self.network = artifact.network
            return
        assert config.recipe is not None, "the config has no recipe to build the network from"
        self.network = build_model(Recipe.from_dict(config.recipe).model)

    @classmethod
    def from_pretrained(
        cls,
        pretrained_model_name_or_path: str | Path,
        *_: Any,
        config: FathomerConfig | None = None,
        **options: Any,
    ) -> "FathomerForSequenceClassification":
        """Load a model folder and verify its checksums."""
        folder = find_folder(pretrained_model_name_or_path, options)
        artifact = Artifact.load(folder)
        config = config or FathomerConfig.from_pretrained(folder)
        if tuple(config.id2label.values()) != artifact.labels:
            labels = ", ".join(artifact.labels)
            raise ConfigError(
                f"{folder}: the config's labels differ from those of the model ({labels})"
            )
        model = cls(config, artifact)
        model.eval()
        return model

    def save_pretrained(self, save_directory: str | Path, **options: Any) -> None:
        """Write a folder that :func:`fathomer.load` can read."""
        refuse_upload(options)
        if self.artifact is None:
            raise ArtifactError("a model without labels and a tokenizer cannot be saved; train one")
        self.artifact.save(Path(save_directory))

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor,
        spellings: Tensor,
        labels: Tensor | None = None,
        **_: Any,
    ) -> SequenceClassifierOutput:
        """Return the logits of the labels, and the loss if ``labels`` is given."""
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
