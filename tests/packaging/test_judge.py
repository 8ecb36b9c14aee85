"""Test that demur-judge carries its files whole, and that pip finds it beside demur's wheel."""

from __future__ import annotations

import hashlib
import json
import zipfile
from pathlib import Path

import pytest

from support.installed import PROJECTS, Built, run

# The first test that asks for the environment waits until pip has made it.
pytestmark = [pytest.mark.packaging, pytest.mark.timeout(600)]

FILES = {
    "judge-1.5b-8bit.onnx",
    "judge-1.5b-lora-r16-f16.gguf",
    "judge-small-int8.onnx",
    "judge-small-tokenizer.json",
}


def _sums(text: str) -> dict[str, str]:
    """Return the sum of each file, as sha256sum writes them."""
    return {name: digest for digest, name in (line.split("  ") for line in text.splitlines())}


def test_the_wheel_holds_the_files_whose_sums_are_written(built: dict[str, Built]) -> None:
    with zipfile.ZipFile(built["demur-judge"].wheel) as wheel:
        inside = {
            name.removeprefix("demur_judge/"): wheel.read(name)
            for name in wheel.namelist()
            if ".dist-info/" not in name
        }
    code = {"__init__.py", "__main__.py", "peft_form.py", "py.typed"}
    assert inside.keys() == {*FILES, *code, "SHA256SUMS", "everyday.jsonl.gz"}
    sums = {name: hashlib.sha256(inside[name]).hexdigest() for name in FILES}
    assert sums == _sums(inside["SHA256SUMS"].decode())


CODE = """
import json
from importlib.metadata import files
import demur_judge
names = [file.name for file in files("demur-judge")]
print(json.dumps({"folder": str(demur_judge.FOLDER), "asked": "REQUESTED" in names}))
"""


def test_the_extra_small_brings_it_from_a_folder_of_wheels(
    everything: Path, tmp_path: Path
) -> None:
    said = json.loads(run(tmp_path, everything, "-c", CODE))
    assert not said["asked"]  # pip took it because demur requires it: see `environments`.
    folder = Path(said["folder"])
    assert folder.is_relative_to(everything.parents[1])
    ours = PROJECTS["demur-judge"] / "src" / "demur_judge"
    written = (folder / "SHA256SUMS").read_text(encoding="utf-8")
    assert written == (ours / "SHA256SUMS").read_text(encoding="utf-8")
    found = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in FILES}
    assert found == _sums(written)
