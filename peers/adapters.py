"""Run adapters: small programs that have a peer do what lines of JSON ask for.

An adapter runs in its peer's environment, so what runs there imports only the standard library and
the peer. It reads a line of JSON for each task, and replies with one line.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from peers import environments

_ROOT = Path(__file__).parents[1]
_OURS = ("src", "integrations/langchain/src", "integrations/llama-index/src")
_QUIET = {
    "ANONYMIZED_TELEMETRY": "False",
    "DEEPEVAL_DISABLE_DOTENV": "1",
    "DEEPEVAL_NO_INSPECT_PROMPT": "1",
    "DEEPEVAL_TELEMETRY_OPT_OUT": "1",
    "DEEPEVAL_UPDATE_WARNING_OPT_OUT": "1",
    "DO_NOT_TRACK": "1",
    "GUARDRAILS_RUN_SYNC": "false",
    "HF_HUB_OFFLINE": "1",
    "LANGSMITH_TRACING": "false",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_TELEMETRY": "False",
    "NEMO_GUARDRAILS_NO_USAGE_STATS": "1",
    "NEMOGUARDRAILS_TELEMETRY": "false",
    "NO_PROXY": "127.0.0.1",
    "OPENAI_API_KEY": "none",
    "OTEL_SDK_DISABLED": "true",
    "RAGAS_DO_NOT_TRACK": "true",
    "TOKENIZERS_PARALLELISM": "false",
}
"""The environment variables that turn the peers' telemetry and downloads off."""


class AdapterError(Exception):
    """Say that an adapter cannot be started, has ended, or does not answer."""


class Adapter:
    """Represent a running adapter, which `running` starts."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        """Take a process that was started and has not reported yet that it is ready."""
        self._process = process
        self._lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put("")

    def told(self, patience: float) -> dict[str, Any]:
        """Return the next line of the adapter.

        Raises:
            AdapterError: No line has come in `patience` seconds, the adapter has ended, or it
                reports a failure.
        """
        try:
            line = self._lines.get(timeout=patience)
        except queue.Empty:
            raise AdapterError(f"no answer within {patience:.0f} seconds") from None
        if not line:
            raise AdapterError(f"it ended with exit code {self._process.wait()}")
        found: dict[str, Any] = json.loads(line)
        if "error" in found:
            raise AdapterError(found["error"].strip().splitlines()[-1][:300])
        return found

    def ask(self, task: Mapping[str, Any], patience: float) -> dict[str, Any]:
        """Have the adapter do a task, and return its line. It raises what `told` raises."""
        assert self._process.stdin is not None
        print(json.dumps(task), file=self._process.stdin, flush=True)
        return self.told(patience)


@contextmanager
def running(
    environment: str | None,
    program: Path,
    arguments: Sequence[str],
    folder: str,
    errors: IO[str],
    **settings: str,
) -> Iterator[Adapter]:
    """Run an adapter for the length of a `with` block.

    Args:
        environment: The name of its environment. None: that of this interpreter, which has demur.
        program: What runs there.
        arguments: The arguments of the program.
        folder: The folder that it runs in.
        errors: The file for what it writes to standard error.
        settings: Further environment variables.

    Raises:
        environments.NoEnvironmentError: The environment cannot be made.
    """
    own = environment is None
    python = sys.executable if own else str(environments.python(str(environment)))
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    if own:
        env["PYTHONPATH"] = os.pathsep.join(str(_ROOT / path) for path in _OURS)
    with subprocess.Popen(
        [python, str(program), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        text=True,
        cwd=folder,
        env={**env, **_QUIET, **settings},
    ) as process:
        try:
            yield Adapter(process)
        finally:
            process.kill()
