"""Test that the adapter's form for PEFT is the GGUF's, tensor by tensor, and acts as it should."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("demur_judge")
pytest.importorskip("gguf")
pytest.importorskip("safetensors")

import gguf
from safetensors.numpy import load_file

import demur_judge
from demur_judge.__main__ import main
from demur_judge.peft_form import BASE, CONFIG, GGUF, TENSORS, PeftFormError, write_peft

LAYERS = 28
SIZES = {  # inputs and outputs of the linear layers of Qwen2.5-Coder-1.5B
    "self_attn.q_proj": (1536, 1536),
    "self_attn.k_proj": (1536, 256),
    "self_attn.v_proj": (1536, 256),
    "self_attn.o_proj": (1536, 1536),
    "mlp.gate_proj": (1536, 8960),
    "mlp.up_proj": (1536, 8960),
    "mlp.down_proj": (8960, 1536),
}
TOY_ALPHA, TOY_RANK = 24.0, 4


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("written") / "new" / "adapter"
    write_peft(folder)
    return folder


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with the adapter and its sum, which stands in for that of `demur-judge`."""
    folder = tmp_path / "files"
    folder.mkdir()
    for file in (GGUF, "SHA256SUMS"):
        shutil.copy(demur_judge.FOLDER / file, folder)
    monkeypatch.setattr(demur_judge, "FOLDER", folder)
    return folder


def vouch(folder: Path) -> None:
    """Write the sum of the adapter that is in the folder now."""
    digest = hashlib.sha256((folder / GGUF).read_bytes()).hexdigest()
    (folder / "SHA256SUMS").write_text(f"{digest}  {GGUF}\n")


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


# -- What is written -------------------------------------------------------------------------------


def test_it_has_both_matrices_of_each_linear_layer(written: Path) -> None:
    shapes = {}
    for layer in range(LAYERS):
        for part, (inputs, outputs) in SIZES.items():
            name = f"base_model.model.model.layers.{layer}.{part}"
            shapes[f"{name}.lora_A.weight"] = (16, inputs)
            shapes[f"{name}.lora_B.weight"] = (outputs, 16)
    found = load_file(written / TENSORS)
    assert {name: one.shape for name, one in found.items()} == shapes
    assert {one.dtype for one in found.values()} == {np.dtype(np.float16)}


def test_its_numbers_are_those_of_the_gguf(written: Path) -> None:
    found = load_file(written / TENSORS)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.QWEN2, LAYERS)
    stored = {one.name: one.data for one in gguf.GGUFReader(demur_judge.FOLDER / GGUF).tensors}
    assert len(stored) == len(found) == 2 * 7 * LAYERS
    for name, array in found.items():
        layer, _, rest = name.removeprefix("base_model.model.").partition(".lora_")
        same = stored[f"{names.get_name(layer)}.weight.lora_{rest[0].lower()}"]
        assert same.dtype == array.dtype
        assert same.tobytes() == array.tobytes(), name


def test_its_configuration_is_the_gguf_s(written: Path) -> None:
    config = json.loads((written / CONFIG).read_text())
    alpha = gguf.GGUFReader(demur_judge.FOLDER / GGUF).get_field("adapter.lora.alpha")
    assert alpha is not None
    assert config["lora_alpha"] == alpha.contents() == 32
    assert config["r"] == 16
    assert (config["peft_type"], config["task_type"]) == ("LORA", "CAUSAL_LM")
    assert config["base_model_name_or_path"] == BASE == "Qwen/Qwen2.5-Coder-1.5B-Instruct"
    assert config["target_modules"] == sorted(part.partition(".")[2] for part in SIZES)
    assert (config["bias"], config["lora_dropout"]) == ("none", 0)
    assert config["inference_mode"] is True
    assert {config[name] for name in ("use_rslora", "use_dora", "fan_in_fan_out")} == {False}
    assert config["modules_to_save"] is None


# -- What it does ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_peft_adds_to_the_weights_what_the_adapter_says(files: Path, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    peft = pytest.importorskip("peft")
    transformers = pytest.importorskip("transformers")
    config = transformers.Qwen2Config(
        vocab_size=50,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
    )
    torch.manual_seed(5)
    model = transformers.Qwen2ForCausalLM(config).eval()
    corrections = _toy_adapter(model, files / GGUF)
    vouch(files)
    write_peft(tmp_path / "adapter")
    tokens = torch.arange(20).reshape(2, 10)
    with torch.no_grad():
        plain = model(tokens).logits
        for name, correction in corrections.items():
            model.get_parameter(name).add_(correction)
        expected = model(tokens).logits
        for name, correction in corrections.items():
            model.get_parameter(name).sub_(correction)
        adapted = peft.PeftModel.from_pretrained(model, tmp_path / "adapter")
        found = adapted(tokens).logits
    assert (expected - plain).abs().mean() > 0.1  # else any adapter would do
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)


def _toy_adapter(model: Any, path: Path) -> dict[str, Any]:
    """Write a random adapter for the model's linear layers, and return what it adds to each."""
    import torch

    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.QWEN2, model.config.num_hidden_layers)
    writer = gguf.GGUFWriter(path, "qwen2")
    writer.add_string("general.type", "adapter")
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", TOY_ALPHA)
    random, corrections = np.random.default_rng(5), {}
    for name, weight in model.named_parameters():
        if not name.endswith("_proj.weight"):
            continue
        outputs, inputs = weight.shape
        down, up = (
            random.normal(0, 0.1, shape).astype(np.float16)
            for shape in ((TOY_RANK, inputs), (outputs, TOY_RANK))
        )
        gguf_name = names.get_name(name.removesuffix(".weight"))
        writer.add_tensor(f"{gguf_name}.weight.lora_a", down)
        writer.add_tensor(f"{gguf_name}.weight.lora_b", up)
        product = up.astype(np.float32) @ down.astype(np.float32)
        corrections[name] = torch.tensor(TOY_ALPHA / TOY_RANK * product)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return corrections


# -- What it refuses -------------------------------------------------------------------------------


def test_a_damaged_gguf_is_refused(files: Path, tmp_path: Path) -> None:
    with (files / GGUF).open("r+b") as file:
        file.seek(20_000_000)
        file.write(b"damage")
    with pytest.raises(PeftFormError, match=r"Refused .* sha256 is .* Install demur-judge again"):
        write_peft(tmp_path / "adapter")
    assert not (tmp_path / "adapter").exists()


@pytest.mark.parametrize("missing", [GGUF, "SHA256SUMS"])
def test_a_missing_file_is_said(files: Path, tmp_path: Path, missing: str) -> None:
    (files / missing).unlink()
    with pytest.raises(PeftFormError, match=r"cannot be read: .* Install demur-judge again"):
        write_peft(tmp_path / "adapter")


@pytest.mark.parametrize("kind", ["another file", "another model", "another tensor"])
def test_a_gguf_that_is_no_such_adapter_is_refused(files: Path, tmp_path: Path, kind: str) -> None:
    if kind == "another file":
        (files / GGUF).write_bytes(b"no GGUF" * 1000)
    else:
        writer = gguf.GGUFWriter(files / GGUF, "llama" if kind == "another model" else "qwen2")
        writer.add_string("adapter.type", "lora")
        writer.add_float32("adapter.lora.alpha", TOY_ALPHA)
        writer.add_tensor("token_embd.weight.lora_a", np.zeros((4, 8), np.float16))
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
    vouch(files)
    with pytest.raises(
        PeftFormError, match=f"is not an adapter for {BASE}: .* Install demur-judge"
    ):
        write_peft(tmp_path / "adapter")


@pytest.mark.parametrize("name", ["notes.txt", CONFIG, TENSORS])
def test_a_folder_with_other_files_is_left_as_it_is(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("mine")
    with pytest.raises(PeftFormError, match=rf"has other files \({name}\), expected a new"):
        write_peft(tmp_path)
    assert contents(tmp_path) == {name: b"mine"}


def test_a_file_in_the_place_of_the_folder_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "adapter"
    path.write_text("mine")
    with pytest.raises(PeftFormError, match=r"Cannot write to .*adapter: File exists"):
        write_peft(path)
    assert path.read_text() == "mine"


def test_on_a_full_disk_nothing_is_written_that_loads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fill_the_disk(path: Path, content: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", fill_the_disk)
    with pytest.raises(PeftFormError, match=r"No space left on device. Name a folder .* 37 MB"):
        write_peft(tmp_path / "adapter")
    assert CONFIG not in contents(tmp_path / "adapter")


# -- The command -----------------------------------------------------------------------------------


def test_the_command_writes_it_and_says_where(tmp_path: Path) -> None:
    source = str(Path(demur_judge.__file__).parents[1])
    ran = subprocess.run(
        [sys.executable, "-m", "demur_judge", "adapter"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": source},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert f"adapter has the adapter for {BASE} in PEFT's form" in ran.stdout
    assert {*contents(tmp_path / "adapter")} == {TENSORS, CONFIG}


@pytest.mark.parametrize("package", ["gguf", "safetensors.numpy"])
def test_without_its_packages_the_command_says_what_to_install(
    package: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    assert main([str(tmp_path / "adapter")]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert f"needs {package}. Run: pip install 'demur-judge[peft]'\n" in said.err
    assert not (tmp_path / "adapter").exists()
