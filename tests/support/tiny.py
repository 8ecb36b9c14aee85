"""Save tiny torch models with random weights in the form of the large models."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

Test = TypeVar("Test", bound=Callable[..., None])

WITH_TORCH = [
    pytest.mark.slow,
    pytest.mark.xdist_group("torch"),
    pytest.mark.usefixtures("torch_models"),
]
"""The marks of tests on such models."""


def with_torch(test: Test) -> Test:
    """Put `WITH_TORCH` on one test."""
    for mark in WITH_TORCH:
        test = mark(test)
    return test


@pytest.fixture(scope="session")
def torch_models() -> None:
    """Import what the models need; on a busy machine this takes a minute."""
    pytest.importorskip("sentence_transformers")


_WORDS = ["oslo", "is", "in", "norway", "old", "lies", "it", "was", "founded", "long", "ago", "."]

_CODE = """
import torch
from transformers import AutoConfig, AutoTokenizer, PretrainedConfig, PreTrainedModel
from transformers import T5ForTokenClassification


class TinyConfig(PretrainedConfig):
    model_type = "tiny-pairs"

    def __init__(self, base="", **options):
        super().__init__(**options)
        self.base = base


class TinyPairs(PreTrainedModel):
    config_class = TinyConfig

    def __init__(self, config):  # as HHEM's: it does not end with post_init
        super().__init__(config)
        self.inner = T5ForTokenClassification(AutoConfig.from_pretrained(config.base))
        self.reader = AutoTokenizer.from_pretrained(config.base)

    def predict(self, pairs):
        texts = [f"{premise} is {hypothesis}" for premise, hypothesis in pairs]
        with torch.no_grad():
            logits = self.inner(**self.reader(texts, return_tensors="pt", padding=True)).logits
        return logits[:, 0].softmax(-1)[:, 1]
"""


def _tokenizer(folder: Path, **names: Any) -> int:
    """Save a tokenizer of whole words, and return the size of its vocabulary."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    vocabulary = {word: at for at, word in enumerate(specials + _WORDS)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_max_length=512,
        **names,
    ).save_pretrained(folder)
    return len(vocabulary)


def _shape(vocabulary: int, **options: Any) -> Any:
    from transformers import BertConfig

    return BertConfig(
        vocab_size=vocabulary,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        **options,
    )


def tiny_cross_encoder(folder: Path, classes: list[str]) -> str:
    """Save a BERT of two layers that classifies pairs, and return its folder."""
    import torch
    from transformers import BertForSequenceClassification

    torch.manual_seed(7)
    config = _shape(
        _tokenizer(folder),
        id2label=dict(enumerate(classes)),
        label2id={name: at for at, name in enumerate(classes)},
    )
    BertForSequenceClassification(config).save_pretrained(folder)
    return str(folder)


def tiny_bi_encoder(folder: Path) -> str:
    """Save a BERT of two layers without a classifier, and return its folder."""
    import torch
    from transformers import BertModel

    torch.manual_seed(7)
    BertModel(_shape(_tokenizer(folder))).save_pretrained(folder)
    return str(folder)


def tiny_pair_model(folder: Path) -> Any:
    """Save a T5 whose own code scores pairs, in the form in which HHEM-2.1-Open is published.

    Returns:
        The T5 that the code wraps.
    """
    import torch
    from safetensors.torch import save_file
    from transformers import T5Config, T5ForTokenClassification

    base = folder / "base"
    size = _tokenizer(base, model_input_names=["input_ids", "attention_mask"])
    config = T5Config(vocab_size=size, d_model=16, d_kv=8, d_ff=32, num_layers=2, num_heads=2)
    config.save_pretrained(base)
    model = T5ForTokenClassification(config).eval()
    torch.manual_seed(7)  # Versions of transformers initialise weights differently.
    for _, parameter in sorted(model.named_parameters()):
        torch.nn.init.normal_(parameter, std=0.6)
    # The embeddings that the encoder shares are saved once, as transformers 4 did.
    weights = {
        f"inner.{name}": value.clone()
        for name, value in model.state_dict().items()
        if "embed_tokens" not in name
    }
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "tiny_pairs.py").write_text(_CODE)
    settings = {
        "model_type": "tiny-pairs",
        "base": str(base),
        "architectures": ["TinyPairs"],
        "auto_map": {
            "AutoConfig": "tiny_pairs.TinyConfig",
            "AutoModelForSequenceClassification": "tiny_pairs.TinyPairs",
        },
    }
    (folder / "config.json").write_text(json.dumps(settings))
    return model
