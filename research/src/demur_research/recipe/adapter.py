"""Train a LoRA adapter for a language model, which replies to demur's prompt with one label.

The base is the GGUF file that will be used: its weights are unpacked to PyTorch, so that the
adapter learns to correct the rounding of the quantised file too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import peft
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from demur_research.recipe.drawing import Item
from demur_research.recipe.prompting import label_tokens, prompt_tokens
from demur_research.recipe.rows import TrainingRow
from demur_research.recipe.sharing import alike, joined
from demur_research.recipe.training import Schedule, device, filled_up

RANK = 16
"""The rank of the adapter's matrices. Its alpha is twice the rank."""
MOST_TOKENS = 1100
"""The most tokens of a request that is trained on."""
SCHEDULE = Schedule(seconds=200, rate=2e-4)
AGAIN = Schedule(seconds=200, rate=1.2e-4)
"""The schedule of a training that goes on from an adapter."""
_KIND, _LORA, _ALPHA = "general.type", "adapter.type", "adapter.lora.alpha"
_ARCHITECTURE = "qwen2"
"""The only architecture that is written: llama.cpp reorders the weights of some others."""


@dataclass(frozen=True)
class Judge:
    """Hold a language model with an adapter, and its tokenizer."""

    net: Any
    tokenizer: Any
    labels: tuple[int, ...]
    """The first tokens of the three labels."""

    @property
    def parameters(self) -> list[Any]:
        """Return the tensors of the adapter, which alone are trained."""
        return [one for one in self.net.parameters() if one.requires_grad]

    def encoded(self, row: TrainingRow) -> Item | None:
        """Return the request that judges a row, or None if it has more than `MOST_TOKENS`."""
        tokens = prompt_tokens(self.tokenizer, row)
        return Item(tokens, row.label) if len(tokens) <= MOST_TOKENS else None

    def logits(self, batch: Sequence[Item]) -> Any:
        """Return the logits of the three labels for each item, of shape (items, 3)."""
        where = next(self.net.parameters()).device
        # A GPU is faster with the dense rows of a batch.
        last = self._in_batch(batch, where) if where.type == "cuda" else self._in_groups(batch)
        # Three rows of the head, since the logits of the whole vocabulary would fill the memory.
        head = self.net.get_output_embeddings().weight[list(self.labels)]
        return last.float() @ head.float().T

    def _in_batch(self, batch: Sequence[Item], where: Any) -> Any:
        # Filled up at the end, where it changes nothing: no token sees those behind it.
        tokens, mask = filled_up(batch, self.tokenizer.pad_token_id or 0, where)
        with (
            # peft would keep copies of all inputs in float32, which fill the memory of a GPU.
            peft.helpers.disable_input_dtype_casting(self.net, active=True),
            torch.autocast(where.type, dtype=torch.bfloat16),
        ):
            states = self.net.model(input_ids=tokens, use_cache=False).last_hidden_state
        return states[torch.arange(len(batch), device=where), mask.sum(dim=1) - 1]

    def _in_groups(self, batch: Sequence[Item]) -> Any:
        """Return the state behind each item; what items have in common is read once."""
        found: dict[int, Any] = {}
        for group in alike(batch):
            row = joined([batch[at] for at in group])
            states = self.net.model(
                input_ids=row.tokens,
                position_ids=row.positions,
                attention_mask=row.mask,
                use_cache=False,
            ).last_hidden_state[0]
            found |= zip(group, states[row.last], strict=True)
        return torch.stack([found[at] for at in range(len(batch))])


def load(base: Path, adapter: Path | None = None, rank: int = RANK, seed: int = 0) -> Judge:
    """Return a base model with an adapter: a new one, which changes nothing yet, or a saved one.

    On a GPU the base is in bfloat16. The adapter is in float32 on any device.

    Args:
        base: A GGUF file of the architecture qwen2.
        adapter: The adapter to go on from. It decides the rank.
        rank: The rank of a new adapter.
        seed: The seed of the weights of a new adapter.

    Raises:
        ValueError: A file cannot be read, is not of this kind, or the two do not belong together.
    """
    known = _metadata(base)
    kind, architecture = known.get(_KIND, "model"), known.get("general.architecture")
    if (kind, architecture) != ("model", _ARCHITECTURE):
        raise ValueError(
            f"{base}: expected a model of the architecture {_ARCHITECTURE}, got the {kind} of "
            f"{architecture}"
        )
    where = device()
    model = AutoModelForCausalLM.from_pretrained(
        base.parent,
        gguf_file=base.name,
        dtype=torch.bfloat16 if where.type == "cuda" else torch.float32,
    )
    tokenizer = AutoTokenizer.from_pretrained(base.parent, gguf_file=base.name)
    model.requires_grad_(False)
    tensors = {} if adapter is None else read(adapter)
    if adapter is not None:
        rank = min(tensor.shape[0] for name, tensor in tensors.items() if name.endswith("lora_a"))
    layers = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
    torch.manual_seed(seed)
    config = peft.LoraConfig(r=rank, lora_alpha=2 * rank, target_modules=list(layers))
    peft.inject_adapter_in_model(config, model)
    for parameter in model.parameters():
        if parameter.requires_grad:
            parameter.data = parameter.data.float()
    if adapter is not None:
        _fill(model, tensors, adapter)
    model.to(where)
    return Judge(model, tokenizer, label_tokens(tokenizer))


def save(judge: Judge, path: Path) -> None:
    """Write the adapter as llama.cpp reads it, in float16.

    Raises:
        ValueError: The file cannot be written.
    """
    found = _named(judge.net)
    rank = next(tensor.shape[0] for name, tensor in found.items() if name.endswith("lora_a"))
    try:
        writer = gguf.GGUFWriter(path, _ARCHITECTURE)
        writer.add_string(_KIND, "adapter")
        writer.add_string(_LORA, "lora")
        writer.add_float32(_ALPHA, 2.0 * rank)
        writer.add_string("general.name", "demur judge")
        for name, tensor in found.items():
            writer.add_tensor(name, tensor.detach().float().cpu().numpy().astype(np.float16))
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
    except OSError as error:
        raise ValueError(f"cannot write {path}: {error.strerror or error}") from error


def read(path: Path) -> dict[str, np.ndarray[Any, np.dtype[np.float32]]]:
    """Return the matrices of a saved adapter by their names in llama.cpp.

    Raises:
        ValueError: The file cannot be read, is no adapter, or has another alpha than twice its
            rank.
    """
    known = _metadata(path)
    if known.get(_LORA) != "lora":
        raise ValueError(f"{path} is no LoRA adapter")
    found = {
        tensor.name: np.array(tensor.data).astype(np.float32)
        for tensor in gguf.GGUFReader(path).tensors
    }
    ranks = {tensor.shape[0] for name, tensor in found.items() if name.endswith("lora_a")}
    if len(ranks) != 1 or known.get(_ALPHA) != 2 * min(ranks):
        raise ValueError(f"{path}: expected one rank and an alpha of twice the rank")
    return found


def _metadata(path: Path) -> Mapping[str, Any]:
    try:
        fields = gguf.GGUFReader(path).fields
    except (OSError, ValueError) as error:
        raise ValueError(
            f"{path} is no GGUF file that can be read: {error}. Fetch the base of demur's own "
            "adapter: demur models pull"
        ) from error
    wanted = ("general.architecture", _KIND, _LORA, _ALPHA)
    return {name: fields[name].contents() for name in wanted if name in fields}


def _named(model: Any) -> dict[str, Any]:
    """Return the tensors of the adapter in a model, by their names in llama.cpp."""
    layers = gguf.get_tensor_name_map(gguf.MODEL_ARCH.QWEN2, model.config.num_hidden_layers)
    found = {}
    for name, tensor in model.named_parameters():
        layer, adapts, rest = name.partition(".lora_")
        if adapts:
            matrix = rest.partition(".")[0].lower()
            found[f"{layers.get_name(layer)}.weight.lora_{matrix}"] = tensor
    return found


def _fill(model: Any, tensors: Mapping[str, Any], path: Path) -> None:
    own = _named(model)
    shapes = {name: tuple(tensor.shape) for name, tensor in own.items()}
    if shapes != {name: tensor.shape for name, tensor in tensors.items()}:
        raise ValueError(f"{path} is an adapter of another base model")
    with torch.no_grad():
        for name, tensor in own.items():
            tensor.copy_(torch.tensor(tensors[name]))
