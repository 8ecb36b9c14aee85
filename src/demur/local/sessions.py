"""Load models of ONNX Runtime with their tokenizers, once in each process."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from demur._forks import end_abruptly, in_child, leave, lock
from demur.errors import LocalModelError, MissingExtraError

_lock = lock()
_sessions: dict[tuple[Path, Path], tuple[Any, Any]] = {}
"""The loaded tokenizers and models, by their files."""


def need_packages(extra: str, what: str) -> None:
    """Check that tokenizers and ONNX Runtime can be imported.

    Args:
        extra: The extra that brings them.
        what: What they are needed for.

    Raises:
        MissingExtraError: One of them is not installed.
    """
    try:
        import onnxruntime  # noqa: F401 -- only whether it is there matters
        import tokenizers  # noqa: F401
    except ImportError as error:
        raise MissingExtraError(error.name or "onnxruntime", extra, what) from error


def loaded(tokenizer: Path, weights: Path, longest: int | None = None) -> tuple[Any, Any]:
    """Return the tokenizer and the session of these files, loaded at the first call.

    Both serve any number of threads at a time, and let other threads run while they work. The
    tokenizer does not pad.

    Args:
        tokenizer: The file of the tokenizer.
        weights: The file of the model.
        longest: The most tokens of a text that the tokenizer returns. None: any number.

    Raises:
        LocalModelError: A file cannot be read.
    """
    with _lock:  # otherwise several threads would load them at first
        if (tokenizer, weights) not in _sessions:
            _sessions[tokenizer, weights] = _load(tokenizer, weights, longest)
        return _sessions[tokenizer, weights]


def _load(tokenizer_file: Path, weights: Path, longest: int | None) -> tuple[Any, Any]:
    import onnxruntime
    import tokenizers

    try:
        tokenizer = tokenizers.Tokenizer.from_file(str(tokenizer_file))
    except Exception as error:  # the library raises plain exceptions
        raise LocalModelError(
            f"tokenizers could not load {tokenizer_file}: {error}. A newer one may: "
            "pip install --upgrade tokenizers"
        ) from error
    # These override what the file says.
    tokenizer.no_padding()
    tokenizer.no_truncation()
    if longest is not None:
        tokenizer.enable_truncation(longest)
    options = onnxruntime.SessionOptions()
    # Threads that spin while they wait take the cores from the language model.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        session = onnxruntime.InferenceSession(
            str(weights), options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:  # the library's exceptions have no base class in common
        raise LocalModelError(
            f"ONNX Runtime {onnxruntime.__version__} could not load {weights}: {error}. A newer "
            "one may: pip install --upgrade onnxruntime"
        ) from error
    return tokenizer, session


def _forked() -> None:
    """Forget the parent's sessions, so that this process loads its own.

    They would wait for threads that are missing here, even when they are destroyed.
    """
    leave(dict(_sessions))
    _sessions.clear()
    if "onnxruntime" in sys.modules:
        end_abruptly()


in_child(_forked)
