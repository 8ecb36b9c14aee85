"""Load models of ONNX Runtime with their tokenizers, once in each process."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from demur._system import at_the_end, end_abruptly, in_child, is_ending, leave, lock
from demur.errors import LocalModelError, needs
from demur.local.cores import usable_cores

P = ParamSpec("P")
T = TypeVar("T")

_lock = lock()
_sessions: dict[tuple[Path, Path], tuple[Any, Any]] = {}
"""The loaded tokenizers and models, by their files."""
_at_work: set[object] = set()
"""An object for each call that is in C++ or Rust."""


def need_packages(extra: str, what: str) -> None:
    """Check that tokenizers and ONNX Runtime can be imported.

    Args:
        extra: The extra that brings them.
        what: What they are needed for.

    Raises:
        MissingExtraError: One of them is not installed.
    """
    with needs(None, extra, what):
        import onnxruntime  # noqa: F401 -- only whether it is there matters
        import tokenizers  # noqa: F401


def loaded(
    tokenizer: Path,
    weights: Path,
    longest: int | None = None,
    *,
    verify: Callable[[], object] | None = None,
    at_once: int | None = None,
) -> tuple[Any, Any]:
    """Return the tokenizer and the session of these files, loaded at the first call.

    Both serve any number of threads at a time, and let other threads run while they work. The
    tokenizer does not pad.

    Args:
        tokenizer: The file of the tokenizer.
        weights: The file of the model.
        longest: The most tokens of a text that the tokenizer returns. None: any number.
        verify: A function that raises an error if the files must not be loaded. None: they were
            verified.
        at_once: The most runs of the session at a time, which share the cores; further ones wait,
            since each needs memory of its own. As many as there are cores are best for many small
            runs: a run on several cores takes up to a third more time of them altogether. None: any
            number, each on all cores.

    Raises:
        LocalModelError: A file cannot be read.
    """
    with _lock:  # otherwise several threads would load them at first
        if (tokenizer, weights) not in _sessions:
            if verify is not None:
                verify()
            threads = usable_cores() // at_once if at_once else 0
            made, session = delaying_exit(_load, tokenizer, weights, threads)
            if longest is not None:
                made.enable_truncation(longest)
            turns = _InTurns(session, at_once) if at_once else session
            _sessions[tokenizer, weights] = made, turns
        return _sessions[tokenizer, weights]


class _InTurns:
    """Run a session in at most so many threads at a time."""

    def __init__(self, session: Any, at_once: int) -> None:
        self._session = session
        self._turns = threading.Semaphore(at_once)

    def run(self, outputs: Any, inputs: Any) -> Any:
        """Run the session as `InferenceSession.run` does."""
        with self._turns:
            return delaying_exit(self._session.run, outputs, inputs)


def delaying_exit(call: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
    """Make a call into C++ or Rust, during which the process does not end.

    A thread that came back from it while the interpreter ends would abort the process.
    """
    while True:
        one = object()
        _at_work.add(one)
        try:
            if not is_ending():
                return call(*args, **options)
        finally:
            _at_work.discard(one)
        time.sleep(0.05)


def _await_calls() -> None:
    while _at_work:
        time.sleep(0.001)


def _load(tokenizer_file: Path, weights: Path, threads: int) -> tuple[Any, Any]:
    """Load both; 0 threads stand for one on each core, also on cores that `taskset` forbids."""
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
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
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
    _at_work.clear()
    if "onnxruntime" in sys.modules:
        end_abruptly()


in_child(_forked)
at_the_end(_await_calls)
