"""Write the adapter as PEFT names it, from llama.cpp's file, so that one file holds the weights.

vLLM and transformers read this form. The numbers are the GGUF's own, 16 bits each. Only the names
are others, as `GGUFWriter` and PEFT call the same matrices.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import demur_judge

if TYPE_CHECKING:
    import gguf

BASE = "Qwen/Qwen2.5-Coder-1.5B-Instruct"
"""The model that the adapter is for."""
GGUF = "judge-1.5b-lora-r16-f16.gguf"
"""The adapter in llama.cpp's form."""
CONFIG, TENSORS = "adapter_config.json", "adapter_model.safetensors"
"""The two files of PEFT's form, as PEFT names them."""

_PARTS = {
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
"""The name of each linear layer in transformers, by its name in llama.cpp."""
_AGAIN = "Install demur-judge again: pip install --force-reinstall demur-judge"


class PeftFormError(Exception):
    """Report that PEFT's form could not be written, and say what to do."""


def write_peft(folder: Path) -> None:
    """Write the adapter in PEFT's form.

    Args:
        folder: A new or an empty folder.

    Raises:
        PeftFormError: A package is missing, the GGUF is not the one whose sum is in `SHA256SUMS`,
            the folder has other files, or it cannot be written.
    """
    config, tensors = _in_peft_form()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if others := sorted(path.name for path in folder.iterdir()):
            raise PeftFormError(
                f"{folder} has other files ({', '.join(others[:3])}), expected a new or an empty "
                "folder. Name another folder"
            )
        (folder / TENSORS).write_bytes(tensors)
        (folder / CONFIG).write_bytes(config)  # last, since nothing loads a folder without it
    except OSError as error:
        raise PeftFormError(
            f"Cannot write to {folder}: {error.strerror or error}. Name a folder in which you may "
            f"write {len(tensors) / 1e6:.0f} MB"
        ) from error


def _in_peft_form() -> tuple[bytes, bytes]:
    """Return the contents of both files: the configuration, and the tensors."""
    path = _verified()
    try:
        import gguf
        from safetensors.numpy import save
    except ImportError as error:
        raise PeftFormError(
            f"The adapter in PEFT's form needs {error.name}. Run: pip install 'demur-judge[peft]'"
        ) from error
    try:
        reader = gguf.GGUFReader(path)
        alpha = _alpha(reader)
        tensors = {_peft_name(one.name): one.data for one in reader.tensors}
    except (KeyError, ValueError, IndexError) as error:
        raise PeftFormError(f"{path} is not an adapter for {BASE}: {error}. {_AGAIN}") from error
    ranks = {len(one) for name, one in tensors.items() if ".lora_A." in name}
    if len(ranks) != 1:
        raise PeftFormError(f"{path} has the ranks {sorted(ranks)}, expected one rank. {_AGAIN}")
    config = json.dumps(_config(ranks.pop(), alpha, tensors), indent=2) + "\n"
    return config.encode(), save(tensors, {"format": "pt"})


def _verified() -> Path:
    """Return the path of the GGUF, whose sum was checked."""
    path = demur_judge.FOLDER / GGUF
    try:
        sums = (demur_judge.FOLDER / "SHA256SUMS").read_text(encoding="utf-8").split()
        expected = dict(zip(sums[1::2], sums[::2], strict=True))[GGUF]
        found = hashlib.sha256(path.read_bytes()).hexdigest()
    except (OSError, ValueError, KeyError) as error:
        raise PeftFormError(f"{path} cannot be read: {error}. {_AGAIN}") from error
    if found != expected:
        raise PeftFormError(f"Refused {path}: its sha256 is {found}, expected {expected}. {_AGAIN}")
    return path


def _alpha(reader: gguf.GGUFReader) -> float:
    wanted = {"general.architecture": "qwen2", "adapter.type": "lora"}
    for name, expected in wanted.items():
        if (found := reader.fields[name].contents()) != expected:
            raise ValueError(f"{name} is {found!r}, expected {expected!r}")
    return float(reader.fields["adapter.lora.alpha"].contents())


def _peft_name(name: str) -> str:
    """Return PEFT's name of a tensor: `blk.0.attn_q.weight.lora_a` is one of llama.cpp's."""
    block, layer, part, _, matrix = name.split(".")
    if block != "blk" or matrix not in ("lora_a", "lora_b"):
        raise ValueError(f"it has a tensor {name!r}")
    letter = matrix[-1].upper()
    return f"base_model.model.model.layers.{layer}.{_PARTS[part]}.lora_{letter}.weight"


def _config(rank: int, alpha: float, tensors: Mapping[str, Any]) -> dict[str, Any]:
    named = {name.split(".lora_")[0].rpartition(".")[2] for name in tensors}
    return {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": BASE,
        "r": rank,
        "lora_alpha": int(alpha) if alpha.is_integer() else alpha,
        "target_modules": sorted(named),
        "lora_dropout": 0.0,
        "bias": "none",
        "fan_in_fan_out": False,
        "inference_mode": True,
        "init_lora_weights": True,
        "modules_to_save": None,
        "use_dora": False,
        "use_rslora": False,
    }
