"""Make up tiny models with random weights: a language model as a GGUF, and an encoder."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Mapping
from pathlib import Path

import gguf
import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import BertConfig, BertModel, Qwen2Config, Qwen2ForCausalLM

from demur.local import ADAPTED
from demur_research.recipe.rows import TrainingRow
from demur_research.recipe.worlds import from_worlds

_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}"
    "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
_OF_NO_ROW = ["The zebra eats quinces.", "A zebra likes quinces.", "No zebra sells quinces."]
_LANGUAGE_MODEL = Qwen2Config(
    hidden_size=64,
    intermediate_size=128,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=1024,
    rope_theta=10000.0,
    tie_word_embeddings=True,
)
_ENCODER = BertConfig(
    hidden_size=64,
    intermediate_size=128,
    num_hidden_layers=2,
    num_attention_heads=4,
    max_position_embeddings=512,
    hidden_dropout_prob=0.0,
    attention_probs_dropout_prob=0.0,
)


@pytest.fixture(scope="session")
def rows() -> list[TrainingRow]:
    """Return a few dozen short rows whose labels follow from rules."""
    found = from_worlds(8, random.Random(4), weight=1.0)
    return [row for row in found if len(row.passages) < 250]


@pytest.fixture(scope="session")
def language_model(tmp_path_factory: pytest.TempPathFactory, rows: list[TrainingRow]) -> Path:
    """Return a language model of two layers that transformers and llama.cpp can read."""
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    texts = [*_texts(rows), ADAPTED.system]
    byte_pairs = Tokenizer(models.BPE())
    byte_pairs.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    byte_pairs.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=900, special_tokens=special, initial_alphabet=alphabet)
    byte_pairs.train_from_iterator(texts, trainer)
    torch.manual_seed(1)
    config = Qwen2Config(**{**_LANGUAGE_MODEL.to_dict(), "vocab_size": byte_pairs.get_vocab_size()})
    # Weights as large as these, so that no layer is without effect.
    weights = {
        name: tensor * (4.0 if tensor.dim() > 1 else 1.0)
        for name, tensor in Qwen2ForCausalLM(config).state_dict().items()
        if name != "lm_head.weight"
    }
    path = tmp_path_factory.mktemp("language model") / "tiny.gguf"
    _write_gguf(path, config, byte_pairs, special, weights)
    return path


def _write_gguf(
    path: Path,
    config: Qwen2Config,
    tokenizer: Tokenizer,
    special: list[str],
    weights: Mapping[str, torch.Tensor],
) -> None:
    writer = gguf.GGUFWriter(path, "qwen2")
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(10000.0)
    pieces = sorted(tokenizer.get_vocab(), key=tokenizer.token_to_id)
    kinds = gguf.TokenType
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list(pieces)
    writer.add_token_types([kinds.CONTROL if one in special else kinds.NORMAL for one in pieces])
    merges = json.loads(tokenizer.to_str())["model"]["merges"]
    writer.add_token_merges([one if isinstance(one, str) else " ".join(one) for one in merges])
    writer.add_eos_token_id(tokenizer.token_to_id("<|im_end|>"))
    writer.add_pad_token_id(tokenizer.token_to_id("<|endoftext|>"))
    writer.add_add_bos_token(False)
    writer.add_chat_template(_TEMPLATE)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.QWEN2, config.num_hidden_layers)
    for name, tensor in weights.items():
        layer, _, kind = name.rpartition(".")
        writer.add_tensor(f"{names.get_name(layer)}.{kind}", tensor.numpy().astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@pytest.fixture(scope="session")
def encoder_folder(tmp_path_factory: pytest.TempPathFactory, rows: list[TrainingRow]) -> Path:
    """Return an encoder of two layers with a unigram tokenizer, as of multilingual-e5-small."""
    unigram = Tokenizer(models.Unigram())
    unigram.normalizer = normalizers.NFKC()
    unigram.pre_tokenizer = pre_tokenizers.Metaspace()
    unigram.decoder = decoders.Metaspace()
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    trainer = trainers.UnigramTrainer(
        vocab_size=400, special_tokens=special, unk_token="<unk>", show_progress=False
    )
    unigram.train_from_iterator([*_texts(rows), *_OF_NO_ROW], trainer)
    torch.manual_seed(2)
    config = BertConfig(**{**_ENCODER.to_dict(), "vocab_size": unigram.get_vocab_size()})
    folder = tmp_path_factory.mktemp("encoder")
    BertModel(config, add_pooling_layer=False).save_pretrained(folder)
    unigram.save(str(folder / "tokenizer.json"))
    return folder


def _texts(rows: Iterable[TrainingRow]) -> list[str]:
    return [text for row in rows for text in (row.passages, row.shown)]
