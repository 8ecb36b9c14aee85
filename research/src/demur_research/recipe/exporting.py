"""Write an encoder as ONNX with 8 bits, and check that exported files say what PyTorch says."""

from __future__ import annotations

import importlib
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import torch
from onnxruntime.quantization import QuantType, quantize_dynamic

from demur_research.recipe.adapter import Judge
from demur_research.recipe.encoder import PairJudge
from demur_research.recipe.prompting import messages
from demur_research.recipe.rows import TrainingRow

EXACT = 1e-3
"""The greatest difference of a probability between PyTorch and ONNX in float32."""
ROUNDED = 0.05
"""The greatest mean difference of a probability between PyTorch and a file with fewer bits. Single
rows may differ by more."""
_TOKENS_TOLD = 1000

Probabilities = np.ndarray[Any, np.dtype[np.float64]]


ENCODER, TOKENIZER = "judge-small-int8.onnx", "judge-small-tokenizer.json"
"""The files of an encoder, as `demur-judge` names them."""


def export_encoder(judge: PairJudge, rows: Sequence[TrainingRow], folder: Path) -> float:
    """Write an encoder as ONNX with weights of 8 bits, and return how far it is from PyTorch.

    `reduce_range` leaves one of the 8 bits unused. Without it, sums of products saturate on CPUs
    that lack VNNI, and the same file would judge otherwise there.

    Args:
        judge: The encoder, which is moved to the CPU.
        rows: Some rows to compare with.
        folder: The folder that gets the files `ENCODER` and `TOKENIZER`.

    Returns:
        The mean difference of a probability on the rows between the file and PyTorch.

    Raises:
        ValueError: The file differs from PyTorch by more than `EXACT` before its weights are
            rounded, or by more than `ROUNDED` after.
    """
    net = judge.net.to("cpu").eval()
    expected = torch_probabilities(judge, rows)
    item = next(item for row in rows if (item := judge.encoded(row)) is not None)
    inputs = judge.inputs([item, item])
    changing = {0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC}
    path = folder / ENCODER
    with tempfile.TemporaryDirectory() as temporary:
        whole = Path(temporary) / "whole.onnx"
        torch.onnx.export(
            net,
            kwargs=inputs,
            f=whole,
            input_names=list(inputs),
            output_names=["logits"],
            dynamic_shapes=dict.fromkeys(inputs, changing),
            external_data=False,
            dynamo=True,
            verbose=False,
        )
        exact = np.abs(expected - onnx_probabilities(whole, judge, rows)).max()
        if exact > EXACT:
            raise ValueError(
                f"the ONNX file differs from PyTorch by {exact:.4f}, expected at most {EXACT}"
            )
        quantize_dynamic(
            whole, path, per_channel=True, reduce_range=True, weight_type=QuantType.QInt8
        )
    judge.tokenizer.save(str(folder / TOKENIZER))
    return _checked(path, expected, onnx_probabilities(path, judge, rows))


def check_adapter(base: Path, adapter: Path, judge: Judge, rows: Sequence[TrainingRow]) -> float:
    """Return how far llama.cpp with the saved adapter is from PyTorch, as a mean probability.

    Args:
        base: The GGUF file of the base model.
        adapter: The file that `adapter.save` wrote.
        judge: The model that was trained.
        rows: Some rows to compare with.

    Raises:
        ValueError: The two differ by more than `ROUNDED`.
    """
    expected = torch_probabilities(judge, rows)
    return _checked(adapter, expected, llama_probabilities(base, adapter, judge, rows))


def torch_probabilities(judge: Judge | PairJudge, rows: Sequence[TrainingRow]) -> Probabilities:
    """Return the probabilities of the three labels for each row, of shape (rows, 3).

    Rows that are too long are left out, here and in the functions below.
    """
    with torch.no_grad():
        found = [judge.logits([item]) for row in rows if (item := judge.encoded(row)) is not None]
    return _shares(torch.cat(found).float().cpu().numpy())


def onnx_probabilities(path: Path, judge: PairJudge, rows: Sequence[TrainingRow]) -> Probabilities:
    """Return the same by an ONNX file, one row at a time, as demur asks it."""
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    found = []
    for row in rows:
        item = judge.encoded(row)
        if item is not None:
            inputs = {name: one.cpu().numpy() for name, one in judge.inputs([item]).items()}
            found.append(session.run(None, inputs)[0])
    return _shares(np.concatenate(found))


def llama_probabilities(
    base: Path, adapter: Path, judge: Judge, rows: Sequence[TrainingRow]
) -> Probabilities:
    """Return the same by llama.cpp, from the log-probabilities of a reply's first token.

    llama.cpp applies the chat template itself. A label that is not among the thousand most likely
    tokens counts with the least of these.
    """
    runtime = importlib.import_module("xllamacpp")
    params = runtime.CommonParams()
    params.model.path = str(base)
    loaded = runtime.CommonAdapterLoraInfo()
    loaded.path, loaded.scale = str(adapter), 1.0
    params.lora_adapters = [loaded]
    params.n_ctx, params.n_parallel, params.warmup, params.verbosity = 2048, 1, False, -1
    params.hostnames, params.port = ["127.0.0.1"], 0
    server = runtime.Server(params)
    forced = [[judge.labels[0], 100.0]]
    found = []
    for row in rows:
        if judge.encoded(row) is not None:
            asked = {"messages": messages(row), "max_tokens": 1, "temperature": 0}
            # The reply is made to be a label: one that ends at once, or within a character, comes
            # without log-probabilities. These are of before the bias.
            told = {"logprobs": True, "top_logprobs": _TOKENS_TOLD, "logit_bias": forced}
            reply = server.handle_chat_completions({**asked, **told})
            likely = reply["choices"][0]["logprobs"]["content"][0]["top_logprobs"]
            known = {one["id"]: one["logprob"] for one in likely}
            least = min(known.values())
            found.append([known.get(label, least) for label in judge.labels])
    return _shares(np.array(found))


def _shares(logits: Any) -> Probabilities:
    weights = np.exp(logits.astype(np.float64) - logits.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def _checked(path: Path, expected: Probabilities, found: Probabilities) -> float:
    apart = float(np.abs(expected - found).mean())
    if apart > ROUNDED:
        raise ValueError(
            f"{path} differs from PyTorch by {apart:.3f} in a probability, on the mean; expected "
            f"at most {ROUNDED}"
        )
    return apart
