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

_CODE = 'raise RuntimeError("code of the hub was run")'


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
        eos_token="[SEP]",
        mask_token="[MASK]",
        model_max_length=512,
        **names,
    ).save_pretrained(folder)
    return len(vocabulary)


def _sizes(vocabulary: int) -> dict[str, int]:
    return {
        **{"vocab_size": vocabulary, "hidden_size": 32, "num_hidden_layers": 2},
        **{"num_attention_heads": 2, "intermediate_size": 32},
    }


def _shape(vocabulary: int, **options: Any) -> Any:
    from transformers import BertConfig

    return BertConfig(**_sizes(vocabulary), **options)


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


def tiny_seq2seq(folder: Path) -> str:
    """Save a T5 of two layers that writes, and return its folder."""
    from transformers import T5ForConditionalGeneration

    _randomised(T5ForConditionalGeneration(_t5(_tokenizer(folder)))).save_pretrained(folder)
    return str(folder)


def tiny_classifier(folder: Path, kind: str, classes: int) -> str:
    """Save a RoBERTa or a DeBERTa of two layers that classifies a text, and return its folder."""
    import torch
    import transformers

    config_of = getattr(transformers, f"{kind}Config")
    model_of = getattr(transformers, f"{kind}ForSequenceClassification")
    reads = {"pad_token_id": 0, "max_position_embeddings": 2100, "initializer_range": 0.3}
    config = config_of(**_sizes(_tokenizer(folder)), **reads, num_labels=classes)
    torch.manual_seed(7)
    model_of(config).save_pretrained(folder)
    return str(folder)


def _randomised(model: Any) -> Any:
    """Give a model random weights that are the same in every version of transformers."""
    import torch

    torch.manual_seed(7)
    for _, parameter in sorted(model.named_parameters()):
        torch.nn.init.normal_(parameter, std=0.6)
    return model.eval()


def _t5(vocabulary: int) -> Any:
    from transformers import T5Config

    size = max(vocabulary, 256)  # MiniCheck reads the token 209
    shape = {"d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 2, "num_heads": 2}
    return T5Config(vocab_size=size, decoder_start_token_id=0, **shape)


def tiny_pair_model(folder: Path) -> Any:
    """Save a T5 in the form in which HHEM-2.1-Open is published, with code that must not be run.

    Returns:
        The T5 whose weights they are. Its configuration and tokenizer are in the folder `base`.
    """
    from safetensors.torch import save_file
    from transformers import T5ForTokenClassification

    base = folder / "base"
    config = _t5(_tokenizer(base, model_input_names=["input_ids", "attention_mask"]))
    config.save_pretrained(base)
    model = _randomised(T5ForTokenClassification(config))
    # The embeddings that the encoder shares are saved once, as transformers 4 did.
    weights = {
        f"t5.{name}": value.clone()
        for name, value in model.state_dict().items()
        if "embed_tokens" not in name
    }
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "tiny_pairs.py").write_text(_CODE)
    settings = {
        "model_type": "tiny-pairs",
        "architectures": ["TinyPairs"],
        "auto_map": {
            "AutoConfig": "tiny_pairs.TinyConfig",
            "AutoModelForSequenceClassification": "tiny_pairs.TinyPairs",
        },
    }
    (folder / "config.json").write_text(json.dumps(settings))
    return model
