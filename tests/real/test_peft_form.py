"""Test that transformers and PEFT judge by the adapter's other form as llama.cpp does by the GGUF.

Both have the weights of the local model's GGUF. Other weights, such as the official ones of 16
bits, give other probabilities.
"""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import convert_to_openai_messages

pytest.importorskip("xllamacpp", reason="the local runtime is not installed: demur[local]")
pytest.importorskip("demur_judge")
pytest.importorskip("peft")

import peft
import torch
from langchain_core.language_models import BaseChatModel
from transformers import AutoModelForCausalLM, AutoTokenizer, Qwen2Config

from demur.evaluators import resolve_judge
from demur.local import ADAPTED, QWEN, model_dir
from demur_judge import FOLDER
from demur_judge.peft_form import write_peft

pytestmark = pytest.mark.real

LABELS = [2250, 41437, 86907]
"""The first tokens of Entailment, Contradiction and Neutral."""
Messages = list[dict[str, Any]]


@pytest.fixture(scope="module")
def asked() -> list[Messages]:
    """Return requests to judge six everyday claims: every 15th one about a short text."""
    lines = gzip.decompress((FOLDER / "everyday.jsonl.gz").read_bytes()).splitlines()
    rows = [row for row in map(json.loads, lines) if len(row["passages"]) < 300][::15]
    prompts = [ADAPTED.messages(reference=row["passages"], claim=row["claim"]) for row in rows]
    assert {row["label"] for row in rows} == {"Entailment", "Contradiction", "Neutral"}
    return [convert_to_openai_messages(prompt) for prompt in prompts]


def by_llama_cpp(name: str, asked: list[Messages]) -> Any:
    """Return the probabilities of the labels, a row for each request."""
    judge = resolve_judge(name)
    assert isinstance(judge, BaseChatModel)
    told = []
    for messages in asked:
        (first,) = judge.invoke(messages).response_metadata["logprobs"]["content"]
        told.append([one["logprob"] for one in first["top_logprobs"]])
    return torch.tensor(told).exp()


def by_peft(asked: list[Messages], adapter: Path) -> Any:
    """Return the same by transformers, with PEFT's form of the adapter."""
    files = {"pretrained_model_name_or_path": model_dir(), "gguf_file": QWEN.file}
    tokenizer = AutoTokenizer.from_pretrained(**files)
    config = Qwen2Config(  # else transformers parses the whole GGUF once more
        vocab_size=151936,
        hidden_size=1536,
        intermediate_size=8960,
        num_hidden_layers=28,
        num_attention_heads=12,
        num_key_value_heads=2,
        rope_theta=1e6,
        tie_word_embeddings=True,
    )
    base = AutoModelForCausalLM.from_pretrained(**files, config=config, dtype=torch.bfloat16)
    model = peft.PeftModel.from_pretrained(base, adapter).eval()
    tokens = tokenizer.apply_chat_template(
        asked,
        add_generation_prompt=True,
        return_dict=True,
        return_tensors="pt",
        padding=True,
        tokenizer_kwargs={"padding_side": "left"},
    )
    with torch.no_grad():
        logits = model(**tokens, use_cache=False, logits_to_keep=1).logits
    return torch.softmax(logits[:, -1, LABELS].float(), dim=1)


@pytest.mark.skipif(
    not os.environ.get("DEMUR_RUN_ALL"),
    reason="transformers takes a minute to load it: set DEMUR_RUN_ALL, as make test-all does",
)
def test_it_says_what_llama_cpp_says(
    judge_of_llama_cpp: str, asked: list[Messages], tmp_path: Path
) -> None:
    write_peft(tmp_path / "adapter")
    expected = by_llama_cpp(judge_of_llama_cpp, asked)
    found = by_peft(asked, tmp_path / "adapter")
    assert expected[:, 0].max() - expected[:, 0].min() > 0.5  # else any judge would be near
    assert found.argmax(dim=1).tolist() == expected.argmax(dim=1).tolist()
    apart = (found - expected)[:, 0].abs()
    assert apart.max() < 0.05, apart
