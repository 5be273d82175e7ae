"""A tiny sentence encoder with random weights, as a Hugging Face folder."""

import pytest
import torch

LETTERS = "abcdefghijklmnopqrstuvwxyz"
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "good", "bad", "film", ".", *LETTERS]
PIECES += [f"##{letter}" for letter in LETTERS]


def write_encoder(folder, *, labels=None):
    """Write an encoder or, with ``labels``, a sequence classifier."""
    transformers = pytest.importorskip("transformers", reason="the extra vectors is not installed")
    folder.mkdir(parents=True)
    vocabulary = folder / "vocab.txt"
    vocabulary.write_text("\n".join(PIECES), encoding="utf-8")
    tokenizer = transformers.BertTokenizerFast(
        vocab={piece: number for number, piece in enumerate(PIECES)}, do_lower_case=True
    )
    tokenizer.save_pretrained(folder)
    config = transformers.BertConfig(
        vocab_size=len(PIECES), hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=16, max_position_embeddings=40,
    )  # fmt: skip
    kind = transformers.BertModel
    if labels:
        config.id2label = dict(enumerate(labels))
        config.label2id = {label: number for number, label in enumerate(labels)}
        kind = transformers.BertForSequenceClassification
    with torch.random.fork_rng():
        torch.manual_seed(0)
        kind(config).save_pretrained(folder)
    return folder
