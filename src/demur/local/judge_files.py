"""Make the files of the judge, which is the chat model with demur's adapter in it, on 8 bits.

They are made once on each machine, from the model's file and the adapter. Processes share the
memory of the weights, which are mapped from a file.
"""

from __future__ import annotations

import json
import logging
import platform
import shutil
import tempfile
from functools import cache
from pathlib import Path

import numpy as np

from demur.errors import LocalModelError, needs
from demur.local.decoder import EMBEDDINGS, MADE, MODEL, TOKENIZER, Decoder
from demur.local.eight_bits import QWEN_SHAPE, WEIGHTS, Gguf, Shape, tokenizer, write_weights
from demur.local.judges import ADAPTER, GRAPH, find_judge
from demur.local.sessions import delaying_exit
from demur.local.weights import (
    QWEN,
    Progress,
    Weights,
    file_sha256,
    find_fetched,
    hashed,
    model_dir,
    remember,
)
from demur.schema.fingerprints import digest

_log = logging.getLogger(__name__)

_MADE_BY = 1
"""The number of the way in which files are made. Raise it when `eight_bits.py` rounds in another
way, so that they are made again."""
_PACKED = "judge.bin"
_STEPS = 4


@cache  # what a judge has read, all models of its files use
def adapted_judge(base: Weights, adapter: Weights) -> Decoder:
    """Return the judge, whose files are made first if they are not there.

    Raises:
        MissingExtraError: ONNX Runtime, tokenizers, gguf or filelock is not installed.
        LocalModelError: A file is damaged, or cannot be made.
    """
    folder = make_judge(base, adapter)
    try:
        made = json.loads((folder / MADE).read_text())["files"]
        damaged = [file for file, sha256 in made.items() if file_sha256(folder / file) != sha256]
    except (OSError, ValueError, KeyError, AttributeError):
        damaged = [MADE]
    if damaged:
        raise LocalModelError(
            f"Refused {folder / damaged[0]}: it is not as it was made. Remove the folder {folder}, "
            "and make it again: demur models pull"
        )
    return Decoder(folder, QWEN_SHAPE)


def own_judge(progress: Progress | None = None) -> Decoder:
    """Return the judge of the model "local", whose files are made first if they are not there.

    Args:
        progress: A function that hears how far it is.

    Raises:
        MissingExtraError: A package that is needed is not installed.
        LocalModelError: A file is missing or damaged, or there is too little space.
    """
    prepare(progress)
    return adapted_judge(*_own_files())


def _own_files() -> tuple[Weights, Weights]:
    return Weights(find_fetched(QWEN), QWEN.sha256), find_judge(ADAPTER)


def prepare(progress: Progress | None = None) -> Path:
    """Make the files of the judge of the model "local", unless they are there.

    Args:
        progress: A function that hears how far it is.

    Returns:
        The folder of the files.

    Raises:
        MissingExtraError: A package that is needed is not installed.
        LocalModelError: A file is missing or damaged, or there is too little space.
    """
    return make_judge(*_own_files(), progress)


def make_judge(base: Weights, adapter: Weights, progress: Progress | None = None) -> Path:
    """Make the judge's files unless they are there, and return their folder.

    It takes half a minute, 1.7 GB of memory, and 2.8 GB on the disk (4.1 GB while it works).
    Processes that make them at the same time take turns. Files for the same processor from other
    versions of ONNX Runtime or demur-judge are removed.

    Args:
        base: The chat model.
        adapter: The adapter.
        progress: A function that hears how far it is.

    Raises:
        MissingExtraError: A package that is needed is not installed.
        LocalModelError: A file is damaged, or there is too little space.
    """
    with needs(None, "local", "the judge of the local model"):
        import gguf  # noqa: F401 -- only whether it is there matters
        import onnxruntime
        import tokenizers  # noqa: F401
        from filelock import FileLock
    graph = find_judge(GRAPH)
    files = base.sha256, adapter.sha256, graph.sha256
    made_of = digest((_MADE_BY, *files, onnxruntime.__version__))
    folder = model_dir() / f"judge-{_processor()}-{made_of}"
    if (folder / MADE).is_file():
        return folder
    try:
        with FileLock(folder.with_name(f".{folder.name}.lock")):
            if not (folder / MADE).is_file():
                if progress is None:  # a first judgement, which waits
                    _log.warning(
                        "The judge of the local model is made ready for this processor. It takes "
                        "about a minute, once ('demur models pull' does it, too), and 2.8 GB in "
                        "%s.",
                        folder,
                    )
                _make(base, adapter, graph, folder, progress or (lambda what, done, total: None))
    except (OSError, ValueError) as error:
        raise LocalModelError(
            f"The judge of the local model could not be made in {folder}: {error}. It needs 4.1 GB "
            "of space there, and a folder that can be written: free space or set DEMUR_MODELS, and "
            "run: demur models pull"
        ) from error
    return folder


def _make(base: Weights, adapter: Weights, graph: Weights, folder: Path, report: Progress) -> None:
    with tempfile.TemporaryDirectory(prefix=".judge-", dir=folder.parent) as name:
        work = Path(name, folder.name)
        work.mkdir()
        write_files(base.path, adapter.path, graph.path, work, report=report)
        shutil.rmtree(folder, ignore_errors=True)
        work.rename(folder)
    for file, sha256 in json.loads((folder / MADE).read_text())["files"].items():
        remember(folder / file, sha256)
    for old in folder.parent.glob(f"judge-{_processor()}-*"):
        if old != folder:
            shutil.rmtree(old, ignore_errors=True)


def write_files(
    base: Path,
    adapter: Path,
    graph: Path,
    folder: Path,
    shape: Shape = QWEN_SHAPE,
    report: Progress = lambda what, done, total: None,
) -> None:
    """Write the files that a `Decoder` reads into an empty folder.

    Args:
        base: The GGUF of the chat model.
        adapter: The GGUF of the adapter.
        graph: The graph of a model of this shape.
        folder: The folder.
        shape: The sizes of the model.
        report: A function that hears how far it is.

    Raises:
        ValueError: The files are not of such a model.
        OSError: There is too little space.
    """
    steps = iter(range(1, _STEPS + 1))
    chat = Gguf(base)
    tokenizer(chat).save(str(folder / TOKENIZER))
    rows, kind = chat.raw("token_embd.weight")
    np.save(folder / EMBEDDINGS, rows)
    report("making the judge", next(steps), _STEPS)
    write_weights(chat, Gguf(adapter), shape, _bits(), folder / WEIGHTS)
    del chat, rows  # they keep the file in memory
    report("making the judge", next(steps), _STEPS)
    _pack(graph, folder)
    (folder / WEIGHTS).unlink()
    report("making the judge", next(steps), _STEPS)
    files = {file: hashed(folder / file) for file in (MODEL, _PACKED, TOKENIZER, EMBEDDINGS)}
    (folder / MADE).write_text(json.dumps({"kind": kind, "files": files}))
    report("making the judge", next(steps), _STEPS)


def _pack(graph: Path, folder: Path) -> None:
    """Have ONNX Runtime lay the weights out as this processor multiplies them.

    Otherwise each process would do so at its start, in memory that it cannot share.
    """
    import onnxruntime

    beside_weights = folder / "graph.onnx"
    shutil.copyfile(graph, beside_weights)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # it warns that the file is for this processor
    options.optimized_model_filepath = str(folder / MODEL)
    for name, value in {
        "session.save_external_prepacked_constant_initializers": "1",
        "session.optimized_model_external_initializers_file_name": _PACKED,
        "session.optimized_model_external_initializers_min_size_in_bytes": "1024",
    }.items():
        options.add_session_config_entry(name, value)
    try:
        delaying_exit(
            onnxruntime.InferenceSession,
            str(beside_weights),
            options,
            providers=["CPUExecutionProvider"],
        )
    except Exception as error:  # its errors have no class in common; a full disk is one of them
        raise OSError(f"ONNX Runtime cannot write it: {error}") from error
    beside_weights.unlink()


@cache
def _processor() -> str:
    """Return what tells apart processors that lay weights out otherwise."""
    return digest((platform.machine(), *sorted(_features())))


def _features() -> set[str]:
    """Return what the processor says that it can do; nothing where Linux does not tell."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return set()
    told = [line for line in lines if line.lower().startswith(("flags", "features"))]
    return set(told[0].partition(":")[2].split()) if told else set()


def _bits() -> int:
    """Return how many bits of a weight this processor multiplies exactly."""
    return 7 if kernels() == _OVERFLOWS else 8


_OVERFLOWS = "AVX2 without VNNI"


def kernels() -> str:
    """Return which of ONNX Runtime's kernels for 8-bit integers this processor runs."""
    machine = platform.machine()
    if machine.lower() not in ("x86_64", "amd64"):
        return machine
    named = {"amx_int8": "AMX", "avx512_vnni": "AVX-512 with VNNI", "avx_vnni": "AVX2 with VNNI"}
    return next((name for flag, name in named.items() if flag in _features()), _OVERFLOWS)
